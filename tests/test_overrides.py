"""``__torch_function__``: other types and modes in the place of the package's functions."""

from __future__ import annotations

import gc
import inspect
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from helpers import names_of, order_of_asking, subclass_orders

import pygrad
from pygrad import overrides
from pygrad._boundary import overriding
from pygrad.utils._python_dispatch import TorchDispatchMode

TESTED = overrides.get_testing_overrides()
NAMES = {function: overrides.resolve_name(function) for function in TESTED}
TOLD_AS_ANOTHER = {
    f"torch.Tensor.{name}"
    for name in (
        "__add__ __radd__ __iadd__ __sub__ __isub__ __mul__ __rmul__ __imul__ __truediv__ __div__ "
        "__itruediv__ __idiv__ __mod__ __imod__ __matmul__ __ifloordiv__ __ne__ __lt__ __le__ "
        "__gt__ __ge__ __rand__ __ror__ __rxor__ __neg__ __pos__ __abs__ nelement"
    ).split()
}
"""Methods that are told as another: operators as that of their op."""


class Told:
    """What every class below was told of, and says to all."""

    functions: ClassVar[list[Any]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.functions.append(func)
        return -1


class ToldTensor(Told, pygrad.Tensor):
    pass


class Kept(pygrad.Tensor):
    pass


class Raising(pygrad.Tensor):
    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise KeyError("mine")


@pytest.fixture(autouse=True)
def all_is_as_before() -> Iterator[None]:
    Told.functions.clear()
    yield
    assert overriding.state.off == overriding.ENABLED
    assert overriding.state.modes == []
    assert not overriding.modes_anywhere


def arguments_of(function: Any, make: Callable[[], Any]) -> tuple[list[Any], dict[str, Any]]:
    """As many as a function must have."""
    parameters = inspect.signature(TESTED[function]).parameters.values()
    needed = [each for each in parameters if each.default is each.empty]
    positional = [each for each in needed if each.kind in (0, 1)]
    named = {each.name: make() for each in needed if each.kind == each.KEYWORD_ONLY}
    rest = [make()] * any(each.kind == each.VAR_POSITIONAL for each in needed)
    return [*(make() for _ in positional), *rest], named


# ------------------------------------------------------------------ who is asked


@pytest.mark.parametrize("function", TESTED, ids=[str(name) for name in NAMES.values()])
def test_every_function_asks_and_tells_what_users_know(function: Any) -> None:
    tensors = overrides.is_tensor_method_or_property(function)
    make = (lambda: pygrad.ones(2).as_subclass(ToldTensor)) if tensors else Told
    args, kwargs = arguments_of(function, make)
    assert function(*args, **kwargs) == -1
    if NAMES[function] not in TOLD_AS_ANOTHER:
        assert Told.functions == [function]
    else:
        assert len(Told.functions) == 1
        assert Told.functions[0] in TESTED


def test_there_are_many() -> None:
    assert len(TESTED) > 1200
    assert {str(name).rpartition(".")[0] for name in NAMES.values()} >= {
        *("torch", "torch.Tensor", "torch.nn.functional", "torch.linalg", "torch.fft"),
        *("torch.special", "torch.Tensor.grad"),
    }
    assert not overrides.get_ignored_functions() & TESTED.keys()


@pytest.mark.parametrize("name", ["zeros", "add", "cat", "tensor", "einsum", "arange", "rand"])
def test_modes_are_told_by_the_same_objects(name: str) -> None:
    seen = []

    class Note(overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return "instead"

    with Note():
        assert getattr(pygrad, name)(1, 2) == "instead"
    assert seen == [getattr(pygrad, name)]


class Asked(pygrad.Tensor):
    """Notes which classes are asked, and leaves the answer to the next."""

    order: ClassVar[list[type]] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.order.append(cls)
        return NotImplemented


PLACES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "arguments": lambda a, b, c: pygrad.addcmul(a, b, c),
    "arguments by name": lambda a, b, c: pygrad.addcmul(input=a, tensor1=b, tensor2=c),
    "a method's arguments": lambda a, b, c: a.addcmul(b, c),
    "a list, with one of them twice": lambda a, b, c: pygrad.cat([a, b, c, a]),
    "a subscript": lambda a, b, c: a[b, c],
    "a subscript of a plain tensor": lambda a, b, c: pygrad.ones(2, 2, 2)[a, b, c],
    "an assigned subscript of one": lambda a, b, c: pygrad.ones(2, 2).__setitem__((a, b), c),
    "an assigned subscript": lambda a, b, c: a.__setitem__(b, c),
    "a function written in Python": lambda a, b, c: pygrad.nn.functional.triplet_margin_loss(
        a, b, c
    ),
    "an op": lambda a, b, c: pygrad.ops.aten.addcmul.default(a, b, c),
}
"""Calls of three tensors, which lie in different places of the arguments."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kinds", subclass_orders(Asked), ids=names_of)
def test_subclasses_are_asked_before_their_bases(place: str, kinds: tuple[type, ...]) -> None:
    """Else from left to right."""
    wanted = order_of_asking(kinds)
    Asked.order.clear()
    with pytest.raises(TypeError, match=r"no implementation found|Multiple dispatch failed"):
        PLACES[place](*(pygrad.ones(2).long().as_subclass(kind) for kind in kinds))
    assert Asked.order == wanted
    values = [pygrad.ones(1).as_subclass(kind) for kind in kinds]
    assert [type(each) for each in overrides._get_overloaded_args(values)] == wanted


def test_modes_nest_in_the_same_order_at_each_call() -> None:
    seen: list[str] = []

    class Note(overrides.TorchFunctionMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(self.name)
            return func(*args, **(kwargs or {}))

    with Note("outer"), Note("middle"), Note("inner"):
        for _ in range(3):
            pygrad.ones(2)
    assert seen == ["inner", "middle", "outer"] * 3


def test_a_scope_asks_nobody_whom_an_outer_scope_has_switched_off() -> None:
    seen = []

    class Note(overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            return func(*args, **(kwargs or {}))

    with Note(), pygrad._C.DisableTorchFunction(), pygrad._C.DisableTorchFunctionSubclass():
        pygrad.ones(2)
    assert not seen


def test_private_functions_ask_nobody() -> None:
    x = pygrad.ones(2).as_subclass(Raising)
    assert type(pygrad._C.data(x)) is pygrad.Tensor


def test_a_type_is_looked_at_once() -> None:
    looked = []

    class Meta(type):
        def __getattribute__(cls, name: str) -> Any:
            if name == "__torch_function__":
                looked.append(cls)
            return super().__getattribute__(name)

    class Duck(metaclass=Meta):
        @classmethod
        def __torch_function__(cls, *_: Any) -> int:
            return 1

    duck, n = Duck(), 5
    for _ in range(n):
        assert pygrad.relu(duck) == 1
    assert len(looked) <= n + 1  # each answer needs the method itself


# ------------------------------------------------------------------ what is not paid

BEFORE = """
import sys
import pygrad
from pygrad import nn
from pygrad._boundary import overriding

places = [pygrad.Tensor, pygrad, nn.functional, nn.init, pygrad.autograd, pygrad.linalg]
def found():
    return {(i, name): x for i, place in enumerate(places) for name, x in vars(place).items()}
def forms(of):
    return {key: value.__code__ for key, value in of.items() if hasattr(value, "__code__")}

assert not overriding._armed
before = found()
codes = forms(before)
nn.Linear(2, 2)(pygrad.ones(2)).sum().backward()
assert not overriding._armed and forms(found()) == codes
import pygrad.overrides
assert not overriding._armed

class Kept(pygrad.Tensor): pass
assert not overriding._armed
x = pygrad.ones(2).as_subclass(Kept)
assert overriding._armed and forms(found()) != codes
after = found()
assert all(after[key] is value for key, value in before.items() if key != (1, "overrides"))
assert all(pygrad.Tensor.__dict__[name] is value for (i, name), value in before.items() if not i)

import inspect
assert list(inspect.signature(pygrad.Tensor.backward).parameters)[:2] == ["self", "gradient"]
assert str(inspect.signature(pygrad.tensordot)).startswith("(a: ")
assert pygrad.Tensor.backward.__doc__.startswith("Adds")
print("fine")
"""


def test_functions_stay_the_same_objects_and_nothing_changes_before_it_must() -> None:
    ran = subprocess.run([sys.executable, "-c", BEFORE], capture_output=True, text=True)
    assert (ran.stdout, ran.stderr) == ("fine\n", "")


def test_methods_that_a_program_sets_on_the_class_ask_nobody() -> None:
    program = """
import pygrad as torch

def label(self, other):
    return type(self).__name__, type(other).__name__

torch.Tensor.label = label
torch.Tensor.labels = property(lambda self: type(self).__name__)
torch.Tensor.__add__ = label

class A(torch.Tensor):
    pass

class B(torch.Tensor):
    pass

a, b = torch.ones(1).as_subclass(A), torch.ones(1).as_subclass(B)
print(a.label(b), b.label(a), a.labels, (a + b), (a * 2).sum().item())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "('A', 'B') ('B', 'A') A ('A', 'B') 2.0\n", done.stderr


def test_the_first_duck_may_come_to_a_function_written_in_python() -> None:
    program = (
        "import pygrad\n"
        "class Duck:\n"
        "    @classmethod\n"
        "    def __torch_function__(cls, func, types, args=(), kwargs=None):\n"
        "        return func is pygrad.einsum\n"
        "print(pygrad.einsum('i,i', Duck(), pygrad.ones(2)))\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.stdout == "True\n"


# ------------------------------------------------------------------ errors


def recursing() -> Any:
    def ask(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

    return type("Recursing", (pygrad.Tensor,), {"__torch_function__": classmethod(ask)})


FAILING: dict[str, Any] = {"raises": Raising, "recurses": recursing()}


@pytest.mark.parametrize("name", FAILING)
def test_after_an_error_the_engine_is_as_before(name: str) -> None:
    x, y = pygrad.ones(3).as_subclass(FAILING[name]), pygrad.ones(3)
    calls: list[Callable[[], Any]] = [
        lambda: pygrad.add(y, x),
        lambda: y * x,
        lambda: x.sum(),
        lambda: x.shape,
        lambda: x[0],
        lambda: y[x],
        lambda: pygrad.cat([y, x]),
        lambda: y.add_(x),
        lambda: len(x),
        lambda: pygrad.einsum("i,i", x, y),
        lambda: pygrad.nn.functional.linear(y, x),
        lambda: x.__setitem__(0, 1.0),
        lambda: setattr(x, "grad", y),
        lambda: x.backward(),
    ]
    gc.collect()
    live = pygrad.pg_live_count()
    for call in calls:
        with pytest.raises((KeyError, RecursionError)):
            call()
        assert overriding.state.off == overriding.ENABLED
    gc.collect()
    assert pygrad.pg_live_count() == live
    assert y.tolist() == [1.0, 1.0, 1.0]
    with pygrad._C.DisableTorchFunctionSubclass():
        assert (x + y).tolist() == [2.0, 2.0, 2.0]


def test_an_answer_may_be_anything() -> None:
    class Odd(pygrad.Tensor):
        answer: Any = None

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return cls.answer

    x = pygrad.ones(2).as_subclass(Odd)
    for Odd.answer in (None, 3, "text", [1], pygrad.Tensor, x):
        assert x + 1 is Odd.answer
        assert pygrad.relu(x) is Odd.answer
        assert x.shape is Odd.answer
    Odd.answer = "text"
    with pytest.raises(TypeError, match="should return bool|__bool__"):
        bool(x)
    with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
        len(x)


def test_modes_are_left_however_they_end() -> None:
    class Failing(overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise KeyError("mine")

    with pytest.raises(KeyError), Failing(), Failing():
        pygrad.ones(2)
    assert pygrad.ones(2).tolist() == [1.0, 1.0]


# ------------------------------------------------------------------ threads and engines


def test_what_is_switched_off_and_modes_are_a_threads_own() -> None:
    seen: list[Any] = []
    x = pygrad.ones(2).as_subclass(ToldTensor)

    class Note(overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(threading.current_thread())
            return func(*args, **(kwargs or {}))

    def run_other() -> None:
        assert x + 1 == -1
        pygrad.ones(2) + 1
        with Note():
            pygrad.ones(2)

    with Note(), pygrad._C.DisableTorchFunctionSubclass():
        thread = threading.Thread(target=run_other)
        thread.start()
        thread.join()
        pygrad.ones(2)
    assert seen == [thread, threading.current_thread()]
    assert Told.functions == [pygrad.Tensor.add]


def test_engines_have_types_and_modes_of_their_own() -> None:
    engine = pygrad.Engine()
    kind = type("Mine", (engine.Tensor,), {})
    x = engine.ones(2).as_subclass(kind)
    assert type(x * 2) is kind
    with pytest.raises(TypeError, match="belongs to another engine"):
        pygrad.add(pygrad.ones(2), x)
    with pytest.raises(TypeError, match="belongs to another engine"):
        engine.add(pygrad.ones(2).as_subclass(Kept), x)

    class Note(overrides.TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return "instead"

    with Note():
        assert engine.ones(2).tolist() == [1.0, 1.0]
        assert pygrad.ones(2) == "instead"
    gone = weakref.ref(engine)
    del engine, kind, x
    gc.collect()
    gc.collect()
    assert gone() is None


# ------------------------------------------------------------------ together with the rest


def test_lists_of_subclasses_among_results() -> None:
    x = pygrad.arange(4.0).as_subclass(Kept)
    for found in (x.split(2), pygrad.unbind(x), pygrad.meshgrid(x, x, indexing="ij")):
        assert type(found) is tuple
        assert {type(each) for each in found} == {Kept}
    values, places = pygrad.sort(x)
    assert type(values) is type(places) is Kept
    assert x.shape == (4,)
    assert type(x.shape) is pygrad.Size


def test_a_module_and_an_optimizer_with_subclasses() -> None:
    layer = pygrad.nn.Linear(2, 1)
    layer.weight = pygrad.nn.Parameter(pygrad.ones(1, 2).as_subclass(Kept))
    optimizer = pygrad.optim.Adam(layer.parameters(), lr=0.5)
    for _ in range(2):
        optimizer.zero_grad()
        loss = layer(pygrad.ones(3, 2)).sum()
        loss.backward()
        optimizer.step()
    assert type(loss) is type(layer.weight) is Kept
    assert isinstance(layer.weight, pygrad.nn.Parameter)
    assert layer.weight[0].tolist() == pytest.approx([0.0, 0.0], abs=1e-5)


def test_checkpoints_that_choose_ops_see_through_subclasses() -> None:
    from pygrad.utils.checkpoint import (
        CheckpointPolicy,
        checkpoint,
        create_selective_checkpoint_contexts,
    )

    told = []

    def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
        told.append(str(op))
        return CheckpointPolicy.MUST_SAVE

    def contexts() -> Any:
        return create_selective_checkpoint_contexts(policy)

    x = pygrad.ones(2, 2, requires_grad=True)
    y = checkpoint(
        lambda a: (a.as_subclass(Kept) @ a).sin().sum(),
        x,
        use_reentrant=False,
        context_fn=contexts,
    )
    y.backward()
    assert "aten.mm.default" in told
    assert x.grad is not None


def test_vmap_and_transforms_of_subclasses() -> None:
    x = pygrad.arange(3.0).as_subclass(Kept)
    assert pygrad.vmap(lambda a: a * 2)(x).tolist() == [0.0, 2.0, 4.0]
    assert pygrad.func.grad(lambda a: (a * a).sum())(x).tolist() == [0.0, 2.0, 4.0]


def test_assigning_another_class() -> None:
    x = pygrad.ones(2)
    assert type(x + 1) is pygrad.Tensor
    x.__class__ = Kept
    assert type(x + 1) is Kept
    assert type(x[0]) is Kept


def test_constructor_of_a_class_keeps_the_history_of_a_tensor() -> None:
    x = pygrad.tensor([1.0, 2.0], requires_grad=True)
    y = Kept(x * 3)
    assert type(y) is Kept
    assert y.grad_fn is not None
    assert y.grad_fn.name() == "AliasBackward0"
    (found,) = pygrad.autograd.grad(y.sum(), x)
    assert found.tolist() == [3.0, 3.0]
    z = Kept(x.detach())
    assert z._base is not None
    z.zero_()
    assert x.tolist() == [0.0, 0.0]


def test_constructor_of_a_class_asks_no_class() -> None:
    assert type(pygrad.Tensor.__new__(Kept, ToldTensor([1.0]))) is Kept
    assert Told.functions == []


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", ["jacobian", "hessian", "vjp", "jvp", "hvp", "vhp"])
def test_function_gets_inputs_of_their_class(name: str, create_graph: bool) -> None:
    seen = []

    def function(t: Any) -> Any:
        seen.append(type(t))
        return (t * t * t).sum()

    x = pygrad.tensor([1.0, 2.0], requires_grad=True)
    vector = {"vjp": pygrad.ones(())}.get(name, pygrad.ones(2))
    arguments = () if name in ("jacobian", "hessian") else (vector,)
    derive = getattr(pygrad.autograd.functional, name)
    found = derive(function, x.as_subclass(Kept), *arguments, create_graph=create_graph)
    wanted = derive(function, x, *arguments)
    assert seen[0] is Kept
    found, wanted = (r[-1] if isinstance(r, tuple) else r for r in (found, wanted))
    assert found.tolist() == wanted.tolist()
    assert found.requires_grad is create_graph


def test_hooks_and_saved_tensors_of_subclasses() -> None:
    x = pygrad.ones(2).as_subclass(Kept).requires_grad_()
    seen = []
    x.register_post_accumulate_grad_hook(lambda t: seen.append(t is x))
    with pygrad.autograd.graph.saved_tensors_hooks(lambda t: t * 1, lambda t: t):
        (x * x).sum().backward()
    assert seen == [True]
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_ops_of_the_dispatcher_ask_as_themselves() -> None:
    told: list[Any] = []

    class Asked(pygrad.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            told.append(func)
            return super().__torch_function__(func, types, args, kwargs or {})

    x = pygrad.ones(2).as_subclass(Asked)
    aten = pygrad.ops.aten
    assert isinstance(aten.add.Tensor(pygrad.ones(2), other=x), Asked)
    assert isinstance(aten.sin(x), Asked)
    assert told == [aten.add.Tensor, aten.sin]


class Noting(overrides.TorchFunctionMode):
    """Notes the functions that it is told of."""

    def __init__(self) -> None:
        super().__init__()
        self.functions: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.functions.append(func)
        return func(*args, **(kwargs or {}))


def test_modes_are_told_of_ops_of_the_dispatcher() -> None:
    x = pygrad.ones(2)
    with Noting() as told:
        pygrad.ops.aten.add.Tensor(x, 1)
    assert told.functions == [pygrad.ops.aten.add.Tensor]


@pytest.mark.parametrize(
    ("base", "name"),
    [
        (overrides.TorchFunctionMode, "__torch_function__"),
        (TorchDispatchMode, "__torch_dispatch__"),
    ],
)
def test_a_mode_s_method_is_of_the_mode(base: Any, name: str) -> None:
    def of_class(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))

    mode, x = type("Mode", (base,), {name: classmethod(of_class)})(), pygrad.ones(2)
    for call in (lambda: x + x, lambda: pygrad.sin(x)):
        with mode, pytest.raises(RuntimeError, match=f"{name}` as a classmethod is not supported"):
            call()
    assert (x + x).tolist() == [2, 2]


def test_modes_are_told_of_makers_of_sparse_tensors_once() -> None:
    with Noting() as told:
        pygrad.sparse_coo_tensor([[0, 1]], [1.0, 2.0])
        pygrad.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
    names = [each.__name__ for each in told.functions]
    assert names == ["sparse_coo_tensor", "sparse_csr_tensor"]


def test_has_torch_function_wants_a_sequence() -> None:
    with pytest.raises(TypeError, match="expected a sequence"):
        overrides.has_torch_function(object())  # type: ignore[arg-type]


def test_a_function_of_a_namespace_without_a_name_is_called_again() -> None:
    class Loud(pygrad.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return overrides.redispatch_function(func, types, args, kwargs)

    space: dict[str, Any] = {"overrides": overrides}
    source = (
        "def twice(x):\n"
        "    if overrides.has_torch_function((x,)):\n"
        "        return overrides.handle_torch_function(twice, (x,), x)\n"
        "    return x.as_subclass(Plain) * 2\n"
    )
    space["Plain"] = pygrad.Tensor
    exec(source, space)  # which has no __name__
    assert space["twice"](pygrad.ones(1).as_subclass(Loud)).tolist() == [2.0]


def test_a_method_that_is_told_again_by_its_op_is_redispatched_once() -> None:
    class Redispatching(pygrad.Tensor):
        told: ClassVar[list[str]] = []

        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            cls.told.append(func.__name__)
            return pygrad.overrides.redispatch_function(func, types, args, kwargs)

    x: Any = pygrad.ones(2).as_subclass(Redispatching)
    x.requires_grad_()
    assert Redispatching.told == ["requires_grad_"]


def test_all_same_mode_compares_modes() -> None:
    from pygrad.utils._mode_utils import all_same_mode

    x, y = pygrad.overrides.TorchFunctionMode(), pygrad.overrides.TorchFunctionMode()
    assert all_same_mode([x, x])
    assert not all_same_mode([x, y])
    assert not all_same_mode([x, None])


def test_to_enable_overrides_lasts_as_long_as_its_object() -> None:
    class Kept(pygrad.Tensor):
        pass

    x = pygrad.ones(1).as_subclass(Kept)
    with pygrad._C.DisableTorchFunctionSubclass():
        enabled = pygrad._C._EnableTorchFunction()
        assert type(x + 1) is Kept
        del enabled
        assert type(x + 1) is pygrad.Tensor
