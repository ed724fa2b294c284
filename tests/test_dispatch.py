"""Ops answered by modes and by classes of tensors: ``__torch_dispatch__``."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import sys
import warnings
from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import sweep
from helpers import leaves_nothing, names_of, order_of_asking, subclass_orders

import pygrad as torch
from pygrad._boundary.release import live_count
from pygrad._table import functions
from pygrad._table.function_schema import native_lines, parse_schema
from pygrad.autograd import forward_ad
from pygrad.utils import _python_dispatch as python_dispatch
from pygrad.utils._python_dispatch import TorchDispatchMode
from pygrad.utils._pytree import tree_map

aten = torch.ops.aten


class Listing(TorchDispatchMode):
    """Lists the names of ops, which run as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    @property
    def names(self) -> list[str]:
        return [str(func) for func, _, _ in self.calls]

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.calls.append((func, args, kwargs or {}))
        return func(*args, **(kwargs or {}))


class Wrapper(torch.Tensor):
    """Has its elements in another tensor."""

    elem: torch.Tensor
    __slots__ = ["elem"]
    names: ClassVar[list[str]] = []

    @staticmethod
    def __new__(cls, elem: torch.Tensor, requires_grad: bool = False) -> Any:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            requires_grad=requires_grad,
        )
        made.elem = elem.detach() if requires_grad else elem
        return made

    def __repr__(self) -> str:  # type: ignore[override]
        return f"Wrapper({self.elem})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Wrapper.names.append(str(func))
        inner = tree_map(lambda e: e.elem if isinstance(e, cls) else e, (args, kwargs or {}))
        made = func(*inner[0], **inner[1])
        return tree_map(lambda e: cls(e) if isinstance(e, torch.Tensor) else e, made)


@pytest.fixture(autouse=True)
def fresh_names() -> None:
    Wrapper.names.clear()


# ------------------------------------------------------------------ overloads


def test_every_schema_is_read_and_shown_as_it_is_written() -> None:
    for name, overloads in native_lines().items():
        for overload, (_, schema) in overloads.items():
            shown = str(parse_schema(f"aten::{schema}"))
            assert shown == f"aten::{schema}", (name, overload)


def test_an_overload_tells_its_names_schema_and_tags() -> None:
    op = aten.add.Tensor
    assert (str(op), op.name(), op.__name__) == (
        "aten.add.Tensor",
        "aten::add.Tensor",
        "add.Tensor",
    )
    assert op.__module__ == "torch._ops.aten"
    assert op.overloadpacket is aten.add
    assert op is aten.add.Tensor
    assert [a.name for a in op._schema.arguments] == ["self", "other", "alpha"]
    assert op._schema.arguments[2].kwarg_only
    assert op._schema.arguments[2].default_value == 1
    assert torch.Tag.pointwise in op.tags
    assert aten.view.default.is_view
    assert not op.is_view
    assert aten.add_.Tensor._schema.is_mutable
    assert {op: 1}[aten.add.Tensor] == 1


def test_an_overload_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no overload name 'nothing'"):
        aten.add.nothing  # noqa: B018
    with pytest.raises(AttributeError, match="'_OpNamespace' 'aten' object has no attribute"):
        aten.no_such_op  # noqa: B018


# ------------------------------------------------------------------ modes


def test_a_mode_sees_ops_as_the_dispatcher_has_them() -> None:
    x = torch.ones(2, 3)
    with Listing() as seen:
        (x * 2 + 1).exp().sum(1, keepdim=True)
        torch.softmax(x, -1)
        x.add_(1)
        torch.cat([x, x])
    assert seen.names == [
        "aten.mul.Tensor",
        "aten.add.Tensor",
        "aten.exp.default",
        "aten.sum.dim_IntList",
        "aten._softmax.default",
        "aten.add_.Tensor",
        "aten.cat.default",
    ]
    assert seen.calls[0][1][1] == 2
    assert type(seen.calls[0][1][1]) is int
    assert seen.calls[3][1][1:] == ([1], True)


def test_a_composite_op_shows_as_what_it_is_made_of() -> None:
    x, w, b = torch.ones(2, 3), torch.ones(4, 3), torch.ones(4)
    with Listing() as seen:
        y = torch.nn.functional.linear(x, w, b)
    assert seen.names == ["aten.t.default", "aten.addmm.default"]
    assert torch.equal(y, x @ w.T + b)


PLACE = torch.tensor([1, 0])
SUBSCRIPTS: list[tuple[Any, str]] = [
    ((..., 0), "select.int 2 0"),
    ((0, ..., 1), "select.int 0 0, select.int 1 1"),
    ((slice(None), 1, ...), "select.int 1 1"),
    ((0, 1, 2, ...), "select.int 0 0, select.int 0 1, select.int 0 2"),
    ((..., 0, 1, 2), "select.int 0 0, select.int 0 1, select.int 0 2"),
    (-1, "select.int 0 -1"),
    (None, "unsqueeze.default 0"),
    ((..., None, 0), "unsqueeze.default 2, select.int 3 0"),
    ((None, ..., slice(1, None)), f"unsqueeze.default 0, slice.Tensor 3 1 {2**63 - 1}"),
    ((..., 1, None, slice(None, 2)), "select.int 1 1, unsqueeze.default 1, slice.Tensor 2 0 2"),
    (slice(None, None, 2), f"slice.Tensor 0 0 {2**63 - 1} 2"),
    ((..., PLACE), "index.Tensor [None, None, at]"),
    ((0, ..., PLACE), "select.int 0 0, index.Tensor [None, at]"),
    ((PLACE, ..., 1), "select.int 2 1, index.Tensor [at]"),
    ((None, PLACE), "unsqueeze.default 0, index.Tensor [None, at]"),
    ((slice(None), PLACE, None), "unsqueeze.default 2, index.Tensor [None, at]"),
]
"""Subscripts of a tensor of three dimensions, and the ops of which they are made."""


@pytest.mark.parametrize(("index", "ops"), SUBSCRIPTS, ids=[ops for _, ops in SUBSCRIPTS])
def test_a_subscript_shows_as_the_ops_of_which_it_is_made(index: Any, ops: str) -> None:
    def show(value: Any) -> str:
        if isinstance(value, (list, tuple)):
            return f"[{', '.join(map(show, value))}]"
        return "at" if isinstance(value, torch.Tensor) else str(value)

    x = torch.arange(24.0).view(2, 3, 4)
    with Listing() as seen:
        found = x[index]
    assert torch.equal(found, x[index])
    calls = [" ".join([str(f).removeprefix("aten."), *map(show, a[1:])]) for f, a, _ in seen.calls]
    assert ", ".join(calls) == ops


RANKS = [(4,), (3, 4), (2, 3, 4), (1, 3, 4), (5, 2, 3, 4), (5, 1, 3, 4)]


@pytest.mark.parametrize("first", RANKS, ids=str)
@pytest.mark.parametrize("second", RANKS, ids=str)
def test_a_product_of_any_ranks_is_the_same_in_a_mode(first: Any, second: Any) -> None:
    a, b = torch.randn(first), torch.randn(second).mT if len(second) > 1 else torch.randn(4)
    with Listing() as seen:
        found = a @ b
    assert torch.equal(found, a @ b)
    assert {"aten.dot.default", "aten.mv.default", "aten.mm.default", "aten.bmm.default"} & {
        *seen.names
    }


def test_a_mode_is_given_the_very_tensors_of_the_call() -> None:
    x, y = torch.ones(2, 3), torch.ones(3)
    with Listing() as seen:
        x + y
        torch.cat([x, x], dim=0)
        torch.where(condition=x > 0, input=x, other=y)
    (_, pair, _), (_, joined, _), _, (_, chosen, _) = seen.calls
    given = [*pair, *joined[0], *chosen[1:]]
    assert [each is wanted for each, wanted in zip(given, [x, y, x, x, x, y], strict=True)] == [
        True
    ] * 6


def test_ops_of_a_backward_pass_the_mode() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    plain = torch.autograd.grad((x * x).exp().sum(), x)[0]
    y = (x * x).exp().sum()
    with Listing() as seen:
        found = torch.autograd.grad(y, x)[0]
    assert torch.equal(found, plain)
    assert "aten.mul.Tensor" in seen.names
    assert "aten.exp.default" not in seen.names


def test_a_gradient_of_a_backward_in_a_mode_has_memory_of_its_own() -> None:
    x = torch.ones(3, 4, requires_grad=True)
    for n_backwards in (1, 2):
        with Listing() as seen:
            x.sum().backward()  # the gradient of a sum is one expanded number
        assert x.grad.stride() == (4, 1)
        assert x.grad.tolist() == [[float(n_backwards)] * 4] * 3
        assert seen.names[-1] == ("aten.copy_.default" if n_backwards == 1 else "aten.add_.Tensor")


def test_what_a_mode_answers_is_the_result_and_has_its_history() -> None:
    class Doubled(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            made = func(*args, **(kwargs or {}))
            return made * 2 if func is aten.exp.default else made

    x = torch.zeros(2, requires_grad=True)
    with Doubled():
        y = x.exp()
    assert y.tolist() == [2.0, 2.0]
    assert y.grad_fn is not None
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_in_place_op_under_a_mode_is_recorded_once() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    version = y._version
    with Listing() as seen:
        y.mul_(3)
    assert seen.names == ["aten.mul_.Tensor"]
    assert y.tolist() == [3.0, 6.0]
    assert y._version == version + 1
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 3.0]


def test_modes_nest_and_are_asked_from_the_inside() -> None:
    order: list[str] = []

    class Named(TorchDispatchMode):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            order.append(self.name)
            assert self not in python_dispatch._get_current_dispatch_mode_stack()
            return func(*args, **(kwargs or {}))

    with Named("outer"), Named("inner") as inner:
        assert python_dispatch._get_current_dispatch_mode() is inner
        torch.ones(2) + 1
    assert order == ["inner", "outer", "inner", "outer"]
    assert python_dispatch._get_current_dispatch_mode() is None


def test_modes_are_off_where_they_are_disabled() -> None:
    with Listing() as seen:
        with python_dispatch._disable_current_modes():
            torch.ones(2) + 1
        assert seen.names == []
        torch.ones(2)
    assert seen.names == ["aten.ones.default"]


def test_to_pop_a_mode_that_is_not_there_is_an_error() -> None:
    with pytest.raises(AssertionError, match="empty stack"):
        python_dispatch._pop_mode()


def test_after_a_mode_raises_all_is_as_before() -> None:
    class Raises(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            raise ValueError("no")

    x = torch.ones(3, requires_grad=True)
    gc.collect()
    before = live_count()
    for _ in range(3):
        with pytest.raises(ValueError, match="no"), Raises():
            x * 2
        with pytest.raises(ValueError, match="no"), Raises():
            x.detach().mul_(2)
    gc.collect()
    assert live_count() == before
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert (x * 2).tolist() == [2.0, 2.0, 2.0]


def test_a_mode_around_a_product_passes_at_most_fifty_frames() -> None:
    a = b = torch.ones(2, requires_grad=True)
    frames: list[Any] = []

    class Passing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    def multiply() -> None:
        with Passing():
            a * b

    multiply()  # what calls of these kinds come to is found out once
    sys.setprofile(lambda frame, event, _: frames.append(frame.f_code) if event == "call" else None)
    try:
        multiply()
    finally:
        sys.setprofile(None)
    assert len([code for code in frames if code.co_filename != __file__]) <= 50


@pytest.mark.parametrize("wrong", ["text", 3])
def test_an_answer_that_is_no_tensor_is_refused(wrong: Any) -> None:
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return wrong

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="Unable to cast"), Wrong():
        x.exp()
    assert x.exp().shape == (3,)


class Giving(TorchDispatchMode):
    """Answers all with one value."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self.answer = answer

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.answer


def test_none_for_a_tensor_is_none() -> None:
    x = torch.ones(3, requires_grad=True)
    with Giving(None):
        assert torch.ones(2) is None
        assert x.exp() is None
        assert (x + 1) is None
    assert x.exp().shape == (3,)


@pytest.mark.parametrize("kind", [list, tuple])
def test_a_list_of_one_tensor_stays_a_list(kind: Any) -> None:
    x = torch.ones(3)
    with Giving(kind([x])):
        found = torch.split(x, 3)
    assert isinstance(found, tuple)
    assert len(found) == 1
    assert found[0] is x


def test_a_tensor_that_has_its_elements_takes_others_whatever_its_class_answers() -> None:
    class Counting(torch.Tensor):
        n = 0

        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            Counting.n += 1
            return super().__torch_dispatch__(func, types, args, kwargs)

    x = Counting(torch.zeros(2))
    x.set_(torch.ones(3))
    assert (Counting.n, x.shape, type(x)) == (1, (3,), Counting)
    x.data = torch.ones(4)
    assert (Counting.n, x.shape, type(x)) == (1, (4,), Counting)
    version = x._version
    x.data.add_(1)
    assert (Counting.n, x._version) == (2, version)
    x.detach().add_(1)
    assert x._version == version + 1


def test_a_wrong_number_of_answers_is_refused() -> None:
    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return (torch.ones(1),)

    x = torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="was to return 2 values, and 1 came"), Wrong():
        x.max(0)


def test_answers_that_are_not_implemented_are_told() -> None:
    class Passes(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    x = torch.ones(2)
    with (
        pytest.raises(TypeError, match="Multiple dispatch failed for 'torch.ops.aten.exp"),
        Passes(),
    ):
        x.exp()


class Asked(torch.Tensor):
    """Notes which classes are asked, and leaves the answer to the next."""

    order: ClassVar[list[type]] = []

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        cls.order.append(cls)
        return NotImplemented


PLACES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "arguments": lambda a, b, c: torch.addcmul(a, b, c),
    "arguments by name": lambda a, b, c: torch.addcmul(input=a, tensor1=b, tensor2=c),
    "a list, with one of them twice": lambda a, b, c: torch.cat([a, b, c, a]),
    "out=": lambda a, b, c: torch.add(a, b, out=c),
    "an op that writes": lambda a, b, c: a.addcmul_(b, c),
    "an op of the dispatcher": lambda a, b, c: aten.addcmul.default(a, b, c),
}
"""Calls of three tensors, which lie in different places of the arguments."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kinds", subclass_orders(Asked), ids=names_of)
def test_subclasses_are_asked_before_their_bases(place: str, kinds: tuple[type, ...]) -> None:
    """Else from left to right."""
    wanted = order_of_asking(kinds)
    values = [torch.ones(2).as_subclass(kind) for kind in kinds]
    Asked.order.clear()
    with pytest.raises(TypeError, match="Multiple dispatch failed"):
        PLACES[place](*values)
    assert Asked.order == wanted


# ------------------------------------------------------------------ tensors of classes that answer


def test_a_wrapper_has_sizes_and_answers_for_its_ops() -> None:
    x = Wrapper(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert x.shape == (2, 2)
    assert x.stride() == (2, 1)
    assert x.dtype is torch.float32
    y = (x * 2).sum(0)
    assert type(y) is Wrapper
    assert y.elem.tolist() == [8.0, 12.0]
    assert Wrapper.names == ["aten.mul.Tensor", "aten.sum.dim_IntList"]


def test_a_wrapper_is_made_of_a_subclass_alone() -> None:
    make = torch.Tensor._make_wrapper_subclass
    with pytest.raises(TypeError, match="from a class that does not inherit from Tensor"):
        make(int, (2,))
    with pytest.raises(TypeError, match="Tensor must define __torch_dispatch__"):
        make(torch.Tensor, (2,))


def test_a_wrapper_has_the_place_that_it_is_given() -> None:
    make = torch.Tensor._make_wrapper_subclass
    x = make(Wrapper, (2, 3), strides=(1, 2), storage_offset=5)
    assert (x.shape, x.stride(), x.storage_offset()) == ((2, 3), (1, 2), 5)
    assert make(Wrapper, (2,), device="meta").is_meta
    with pytest.raises(RuntimeError, match=r"sizes \(2\) must match dimensionality of strides"):
        make(Wrapper, (2, 3), strides=(1,))
    with pytest.raises(RuntimeError, match="setting storage offset without stride"):
        make(Wrapper, (2,), storage_offset=5)
    with pytest.raises(NotImplementedError, match="device='cuda'"):
        make(Wrapper, (2,), device="cuda")
    with pytest.raises(NotImplementedError, match=r"layout=torch\.sparse_coo"):
        make(Wrapper, (2,), layout=torch.sparse_coo)


@pytest.mark.parametrize("how", ["copy", "deepcopy", "pickle", "save", "save before 1.6"])
@pytest.mark.parametrize("kind", ["wrapper", "parameter"])
def test_a_wrapper_is_copied_and_saved_with_its_elements(how: str, kind: str) -> None:
    x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
    if kind == "parameter":
        x = torch.nn.Parameter(Wrapper(torch.tensor([1.0, 2.0])))
    if how == "copy":
        found = copy.copy(x)
    elif how == "deepcopy":
        found = copy.deepcopy(x)
        found.elem[0] = 1.0
        assert found.elem is not x.elem
    elif how == "pickle":
        found = pickle.loads(pickle.dumps(x))
    else:
        file = io.BytesIO()
        torch.save(x, file, _use_new_zipfile_serialization=how == "save")
        file.seek(0)
        with torch.serialization.safe_globals([Wrapper]):
            found = torch.load(file)
    assert type(found) is Wrapper
    assert found.requires_grad
    assert (found * 2).elem.tolist() == [2.0, 4.0]
    assert isinstance(found, torch.nn.Parameter) == (kind == "parameter")


def test_slots_of_a_subclass_are_copied() -> None:
    class Named(torch.Tensor):
        __slots__ = ("name",)

        def new_empty(self, *size: Any, **options: Any) -> Any:
            return super().new_empty(*size, **options).as_subclass(Named)

    x: Any = torch.ones(1).as_subclass(Named)
    x.name = ["a"]
    assert copy.copy(x).name is x.name
    assert copy.deepcopy(x).name == ["a"]
    assert copy.deepcopy(x).name is not x.name


def test_a_class_that_makes_no_tensors_of_its_own_has_no_deep_copies() -> None:
    class Plain(torch.Tensor):
        pass

    with pytest.raises(RuntimeError, match="implement new_empty.* for which that function returns"):
        copy.deepcopy(torch.ones(1).as_subclass(Plain))

    class Unwrapping(Wrapper):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return args[0].elem.clone()

    with pytest.raises(RuntimeError, match="implement clone.* for which cloning returns another"):
        copy.deepcopy(Unwrapping(torch.ones(1)))


def test_the_default_runs_the_op_itself() -> None:
    seen: list[Any] = []

    class Passing(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(func)
            result = super().__torch_dispatch__(func, types, list(args), kwargs)
            assert not result.requires_grad
            return result

    x: Any = torch.Tensor._make_subclass(Passing, torch.tensor([1.0, 2.0]), True)
    y = x + x
    assert y.tolist() == [2.0, 4.0]
    assert y.requires_grad
    assert seen == [torch.ops.aten.add.Tensor]


def test_a_class_that_answers_below_autograd_is_not_asked_above_it() -> None:
    class Above(torch.Tensor):
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return NotImplemented

    class Both(Above):
        __torch_dispatch__ = Wrapper.__torch_dispatch__

    assert Wrapper.__torch_function__ is torch._C._disabled_torch_function_impl
    assert Both.__torch_function__.__func__ is Above.__torch_function__.__func__  # type: ignore[attr-defined]


def test_a_parameter_needs_a_class_that_its_detach_keeps() -> None:
    class Unwrapping(Wrapper):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(args[0].elem)

    x = Unwrapping(torch.ones(1))
    assert type(x.detach()) is torch.Tensor
    with pytest.raises(RuntimeError, match="returns an instance of the same type"):
        torch.nn.Parameter(x)


def test_functions_that_make_tensors_tell_where() -> None:
    with Listing() as seen:
        torch.empty([])
        torch.zeros(2, dtype=torch.int32, device="meta")
        torch.ones(1).new_zeros(2)
    cpu, meta = torch.device("cpu"), torch.device("meta")
    assert [kwargs for _, _, kwargs in seen.calls] == [
        {"device": cpu, "pin_memory": False},
        {"dtype": torch.int32, "device": meta, "pin_memory": False},
        {"device": cpu, "pin_memory": False},
        {"pin_memory": False},
    ]


def test_no_mode_is_asked_while_dispatch_is_off() -> None:
    from pygrad.utils._mode_utils import no_dispatch

    with Listing() as seen, no_dispatch():
        torch.ones(1) + 1
    assert not seen.names


def test_data_of_a_wrapper_is_a_wrapper() -> None:
    x = Wrapper(torch.ones(2), requires_grad=True)
    assert x.data.elem.tolist() == [1.0, 1.0]  # type: ignore[attr-defined]
    assert not x.data.requires_grad
    assert type(x.as_subclass(torch.Tensor)) is Wrapper


def test_as_subclass_gives_a_tensor_that_is_asked() -> None:
    class Answering(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return torch.tensor(7.0)

    assert (torch.ones(1).as_subclass(Answering) + 1).item() == 7


FUNCTIONS: dict[str, Any] = {
    "exp": lambda x: x.exp() * x,
    "mul": lambda x: x * x,
    "pow": lambda x: 3 * x**2,
    "cos": lambda x: x.cos().exp(),
    "relu": lambda x: torch.relu(x - 1.5),
    "tanh": lambda x: x.tanh(),
    "sigmoid": lambda x: x.sigmoid(),
    "gelu": lambda x: torch.nn.functional.gelu(x),
    "softplus": lambda x: torch.nn.functional.softplus(x),
    "softmax": lambda x: x.softmax(0)[0],
    "mean": lambda x: x.mean(0, keepdim=True) * x,
    "view": lambda x: x.view(-1)[1:].reshape(3, 1),
    "matmul": lambda x: x @ x.T,
    "cat": lambda x: torch.cat([x, x * 2]),
    "linear": lambda x: torch.nn.functional.linear(x, x),
    "max": lambda x: x.max(1)[0],
    "index": lambda x: x[:, 1],
    "where": lambda x: torch.where(x > 2, x, x * 3),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradients_through_a_wrapper_are_those_of_its_elements(name: str) -> None:
    function, elem = FUNCTIONS[name], torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    x, wrapped = elem.clone().requires_grad_(), Wrapper(elem.clone(), requires_grad=True)
    y, made = function(x), function(wrapped)
    assert type(made) is Wrapper
    assert made.grad_fn is not None
    torch.testing.assert_close(made.elem, y.detach())
    y.sum().backward()
    made.sum().backward()
    assert type(wrapped.grad) is Wrapper
    torch.testing.assert_close(wrapped.grad.elem, x.grad)


def test_second_derivatives_through_a_wrapper() -> None:
    x = Wrapper(torch.tensor([1.0, 2.0, 3.0]), requires_grad=True)
    (first,) = torch.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert first.elem.tolist() == [3.0, 12.0, 27.0]
    assert first.grad_fn is not None
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.elem.tolist() == [6.0, 12.0, 18.0]


def test_a_saved_wrapper_outlives_its_object() -> None:
    x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
    y = (x.exp() * 2).exp()
    gc.collect()
    y.sum().backward()
    plain = torch.tensor([1.0, 2.0], requires_grad=True)
    (plain.exp() * 2).exp().sum().backward()
    assert torch.equal(x.grad.elem, plain.grad)


def test_a_view_of_a_wrapper_counts_writes_with_its_base() -> None:
    x = Wrapper(torch.ones(2, 2), requires_grad=True)
    assert x._version == 0
    y = x * 2
    view = y.view(-1)
    assert (view._version, y._version) == (0, 0)
    view.add_(1)
    assert (view._version, y._version) == (1, 1)
    y.mul_(3)
    assert (view._version, y._version) == (2, 2)


def test_gradients_add_up_in_place() -> None:
    x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
    (x * 2).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first
    assert first.elem.tolist() == [5.0, 5.0]


def test_gradcheck_of_a_wrapper() -> None:
    x = Wrapper(torch.rand(2, 2, dtype=torch.float64), requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x.exp() * x.cos(), (x,))


def test_a_wrapper_carries_a_tangent() -> None:
    x = Wrapper(torch.tensor([1.0, 2.0]))
    with forward_ad.dual_level():
        y = 3 * forward_ad.make_dual(x, torch.ones(2)) ** 2
        found = forward_ad.unpack_dual(y).tangent
    assert type(found) is Wrapper
    assert found.elem.tolist() == [6.0, 12.0]
    assert "aten.alias.default" in Wrapper.names


TURNED = torch.arange(6.0).view(3, 2).t()
"""Lies in memory in another order than a matrix that was just made."""


@pytest.mark.parametrize(
    ("primal", "tangent"),
    [(Wrapper, Wrapper), (Wrapper, torch.Tensor.detach), (torch.Tensor.detach, Wrapper)],
)
def test_a_tangent_is_laid_out_by_its_class(primal: Any, tangent: Any) -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(primal(torch.ones(2, 3)), tangent(TURNED))
        y = (x @ x.t()).relu().t()
        found = forward_ad.unpack_dual(y).tangent
    assert "aten._new_zeros_with_same_feature_meta.default" in Wrapper.names
    assert "aten.copy_.default" in Wrapper.names
    assert type(found) is Wrapper
    sums = TURNED.sum(1)
    torch.testing.assert_close(found.elem, sums[:, None] + sums)


def test_a_tangent_of_a_wrapper_is_written_into_a_view() -> None:
    base = torch.zeros(2, 3)
    with forward_ad.dual_level():
        base.t().copy_(forward_ad.make_dual(torch.ones(3, 2), Wrapper(TURNED.t())))
        found = forward_ad.unpack_dual(base).tangent
    assert found is not None
    assert found.elem.tolist() == TURNED.tolist()


def test_a_wrapper_with_a_tangent_is_not_written_to() -> None:
    ones = torch.ones(3)
    writes = (lambda x: x.mul_(x), lambda x: x.copy_(x * 2), lambda x: x[1:].copy_(x[:2] * 2))
    for write in writes:
        elem = ones.clone()
        with forward_ad.dual_level():
            x = forward_ad.make_dual(Wrapper(elem), Wrapper(ones))
            with pytest.raises(NotImplementedError, match="_ in forward mode"):
                write(x)
            assert forward_ad.unpack_dual(x).tangent.elem.tolist() == [1.0] * 3
        assert elem.tolist() == [1.0] * 3


def test_an_op_that_gives_its_argument_gives_the_tangent_too() -> None:
    with forward_ad.dual_level():
        x = forward_ad.make_dual(Wrapper(torch.ones(2)), Wrapper(torch.ones(2)))
        found = forward_ad.unpack_dual(x.float()).tangent
    assert found is not None
    assert found.elem.tolist() == [1.0, 1.0]


def test_several_results_have_tangents_that_the_class_works_out() -> None:
    """The class computes them when the call ends, by calls with results of their own."""
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]])
    with forward_ad.dual_level():
        plain = forward_ad.unpack_dual(torch.linalg.eigh(forward_ad.make_dual(a, a))[0]).tangent
        x = forward_ad.make_dual(Wrapper(a), Wrapper(a))
        mantissa, exponent = torch.frexp(x)
        values, vectors = torch.linalg.eigh(x)
        found = forward_ad.unpack_dual(values).tangent
        assert type(mantissa) is type(exponent) is type(vectors) is Wrapper
    torch.testing.assert_close(found.elem, plain)


def test_jacobians_of_wrappers_by_batches_of_tangents() -> None:
    x, y = torch.rand(3, 3), torch.rand(3, 3)

    def f(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x.relu() * x @ y.sin() @ y).sum()

    hessian = torch.autograd.functional.hessian
    expected = hessian(f, (x, y))
    found = hessian(
        f, (Wrapper(x), Wrapper(y)), vectorize=True, outer_jacobian_strategy="forward-mode"
    )
    for mine, theirs in zip(found, expected, strict=True):
        for one, other in zip(mine, theirs, strict=True):
            torch.testing.assert_close(one.elem, other)


def test_a_subclass_with_its_own_data_is_asked_too() -> None:
    seen: list[str] = []

    class Noted(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            with torch._C._DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    x = torch.Tensor._make_subclass(Noted, torch.ones(2))
    assert (x + 1).tolist() == [2.0, 2.0]
    assert seen[0] == "aten.add.Tensor"


def test_nothing_is_left_when_wrappers_are_gone() -> None:
    def work() -> None:
        x = Wrapper(torch.tensor([1.0, 2.0]), requires_grad=True)
        (x.exp() * x).sum().backward()
        torch.autograd.grad((x * x).sum(), x, create_graph=True)

    work()
    gc.collect()
    before = live_count()
    for _ in range(3):
        work()
    gc.collect()
    assert live_count() == before


def test_a_class_that_recurses_is_an_error_and_no_trap() -> None:
    class Recursing(Wrapper):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            return func(*args, **(kwargs or {}))

    x = Recursing(torch.ones(2))
    with pytest.raises(RecursionError):
        x + 1
    assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]


def test_every_elementwise_op_of_the_table_is_told_by_its_overload() -> None:
    x = torch.rand(3) * 0.5 + 0.25
    for op in functions.TABLE:
        if not {"torch", "direct"} <= op.words or len(op.schemas) > 1:
            continue
        inside = op.schemas[0].partition("(")[2]
        if inside.partition(")")[0] != "Tensor self" or op.name not in native_lines():
            continue
        function = functions.SPACES["torch"][op.name]
        if op.name == "bitwise_not":
            continue  # of integers
        with Listing() as seen:
            found = function(x)
        assert seen.names, op.name
        assert torch.equal(torch.nan_to_num(found), torch.nan_to_num(function(x))), op.name


# ------------------------------------------------------------------ what is built on modes


def test_operations_are_counted_by_module_and_op() -> None:
    from pygrad.utils.flop_counter import FlopCounterMode

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    with FlopCounterMode(display=False) as counter:
        model(torch.ones(7, 3)).sum().backward()
    assert counter.get_total_flops() == 672  # as PyTorch counts
    assert counter.get_flop_counts()["Sequential.0"] == {aten.addmm: 168, aten.mm: 168}
    with FlopCounterMode(display=False) as counter:
        torch.nn.functional.conv2d(torch.ones(2, 3, 8, 8), torch.ones(5, 3, 3, 3))
    assert counter.get_total_flops() == 2 * 2 * 36 * 5 * 3 * 9
    assert "Global" in counter.get_table()


def test_a_tensor_made_in_a_mode_may_require_grad() -> None:
    with Listing():
        x = torch.rand(2, requires_grad=True)
    assert x.requires_grad
    assert x.is_leaf


def test_a_gradient_that_reads_elements_refuses_a_wrapper() -> None:
    x = Wrapper(torch.rand(5), requires_grad=True)
    y = torch.logcumsumexp(x, 0)
    assert type(y) is Wrapper
    with pytest.raises(NotImplementedError, match="LogcumsumexpBackward0 reads elements"):
        y.sum().backward()


nn = torch.nn.functional
BACKWARD_OPS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "convolution_backward": (
        lambda x, w, b: nn.conv2d(x, w, b, 1, 1),
        [(2, 4, 5, 5), (6, 4, 3, 3), (6,)],
    ),
    "max_pool2d_with_indices_backward": (lambda x: nn.max_pool2d(x, 2), [(2, 3, 6, 6)]),
    "max_pool3d_with_indices_backward": (lambda x: nn.max_pool3d(x, 2), [(2, 3, 4, 4, 4)]),
    "avg_pool2d_backward": (
        lambda x: nn.avg_pool2d(x, 2, 1, 1, count_include_pad=False),
        [(2, 3, 6, 6)],
    ),
    "avg_pool3d_backward": (lambda x: nn.avg_pool3d(x, 2), [(2, 3, 4, 4, 4)]),
    "_adaptive_avg_pool2d_backward": (lambda x: nn.adaptive_avg_pool2d(x, 2), [(2, 3, 5, 5)]),
    "_adaptive_avg_pool3d_backward": (lambda x: nn.adaptive_avg_pool3d(x, 2), [(1, 2, 3, 3, 3)]),
    "adaptive_max_pool2d_backward": (lambda x: nn.adaptive_max_pool2d(x, 2), [(2, 3, 5, 5)]),
    "adaptive_max_pool3d_backward": (lambda x: nn.adaptive_max_pool3d(x, 2), [(1, 2, 3, 3, 3)]),
    "reflection_pad1d_backward": (lambda x: nn.pad(x, (1, 2), mode="reflect"), [(2, 3, 5)]),
    "reflection_pad2d_backward": (
        lambda x: nn.pad(x, (1, 1, 2, 1), mode="reflect"),
        [(1, 2, 4, 4)],
    ),
    "replication_pad2d_backward": (
        lambda x: nn.pad(x, (1, 1, 2, 1), mode="replicate"),
        [(1, 2, 4, 4)],
    ),
    "nll_loss_backward": (lambda x: nn.nll_loss(x, torch.tensor([1, 0])), [(2, 3)]),
    "nll_loss2d_backward": (
        lambda x: nn.nll_loss(x, torch.ones(2, 2, 2, dtype=torch.int64)),
        [(2, 3, 2, 2)],
    ),
    "embedding_dense_backward": (lambda w: nn.embedding(torch.tensor([1, 1, 0]), w), [(4, 3)]),
    "native_layer_norm_backward": (
        lambda x, w, b: nn.layer_norm(x, (4, 5), w, b),
        [(3, 4, 5), (4, 5), (4, 5)],
    ),
    "native_batch_norm_backward": (
        lambda x, w, b: nn.batch_norm(x, None, None, w, b, training=True),
        [(4, 3, 5), (3,), (3,)],
    ),
    "native_group_norm_backward": (
        lambda x, w, b: nn.group_norm(x, 2, w, b),
        [(3, 4, 5), (4,), (4,)],
    ),
    "index_put": (lambda x: x[torch.tensor([0, 0, 2])], [(3, 4)]),
    "scatter_add": (lambda x: x.gather(1, torch.tensor([[0, 0], [1, 3]])), [(2, 4)]),
    "index_add": (lambda x: x.index_select(1, torch.tensor([2, 2])), [(3, 4)]),
    "cumsum": (lambda x: x.cumsum(1), [(3, 4)]),
}
"""Functions whose gradients read elements, by the op that a backward asks for."""


def gradients(function: Any, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
    y = function(*inputs)
    weight = torch.linspace(-1, 1, y.numel()).reshape(y.shape)
    return list(torch.autograd.grad((y * weight).sum(), inputs))


@pytest.mark.parametrize("name", BACKWARD_OPS)
def test_a_mode_is_asked_for_what_a_gradient_reads(name: str) -> None:
    function, shapes = BACKWARD_OPS[name]
    torch.manual_seed(0)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    alone = gradients(function, inputs)
    with Listing() as outer, Listing() as inner:
        watched = gradients(function, inputs)
    assert f"aten.{name}.default" in inner.names
    assert outer.names == inner.names  # a mode hands an op on to the next as it is
    for found, expected in zip(watched, alone, strict=True):
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("name", BACKWARD_OPS)
def test_a_wrapper_has_the_gradients_of_its_elements(name: str) -> None:
    function, shapes = BACKWARD_OPS[name]
    torch.manual_seed(0)
    inputs = [torch.randn(shape, requires_grad=True) for shape in shapes]
    alone = gradients(function, inputs)
    before = live_count()
    wrapped: list[torch.Tensor] = [Wrapper(each.detach(), requires_grad=True) for each in inputs]
    found = gradients(function, wrapped)
    for each, expected in zip(found, alone, strict=True):
        assert type(each) is Wrapper
        torch.testing.assert_close(each.elem, expected)
    del each, found, wrapped
    assert live_count() == before


# ------------------------------------------------------------------ every op of the table

DESCRIPTION = sweep.describe()


class HostedCase(sweep._Case):
    """A call whose tensors are wrappers."""

    def tensor(self, what: Any, constant: bool) -> Any:
        leaves, made = len(self.leaves), super().tensor(what, constant)
        if len(self.leaves) == leaves:
            return Wrapper(made)
        self.leaves[leaves] = Wrapper(self.leaves[leaves].detach(), requires_grad=True)
        return self.leaves[leaves]


def outcome(case: type[sweep._Case], op: Any, call: Any, mode: str) -> list[Any] | Exception:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = case(torch, DESCRIPTION["tensors"], "float64", mode).run(op, call)
            return [getattr(each, "elem", each) for each in sweep._flat(result)]
        except torch.EngineError:
            raise
        except Exception as error:
            return error


def alike(mine: Any, theirs: Any, blank: bool) -> bool:
    """Whether outcomes are the same, to rounding: a wrapper's may be made of other steps."""
    if isinstance(mine, Exception) or isinstance(theirs, Exception):
        return type(mine) is type(theirs)
    if len(mine) != len(theirs):
        return False
    for one, other in zip(mine, theirs, strict=True):
        if not sweep.is_tensor(one) or not sweep.is_tensor(other):
            if one is not other and one != other and not (one != one and other != other):
                return False
            continue
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return False
        if not blank:
            try:
                torch.testing.assert_close(one.detach(), other.detach(), equal_nan=True)
            except AssertionError:
                return False
    return True


SAMPLES = {"forward": 2, "backward": 1, "in-place": 1}
"""How many calls of an op there are, at most."""


@pytest.mark.parametrize("mode", SAMPLES)
def test_an_op_of_wrappers_gives_what_it_gives_of_their_elements_or_is_refused(mode: str) -> None:
    differ, refused = set(), set()
    for op in DESCRIPTION["ops"]:
        if mode == "in-place" and "inplace" not in op:
            continue
        for call in op["calls"][: SAMPLES[mode]]:
            plain = outcome(sweep._Case, op, call, mode)
            hosted = outcome(HostedCase, op, call, mode)
            if isinstance(hosted, NotImplementedError):
                refused.add(op["id"])
                continue
            try:
                if not alike(hosted, plain, "blank" in op):
                    differ.add(op["id"])
            except NotImplementedError:  # whoever reads them is refused
                refused.add(op["id"])
    assert not differ
    assert len(refused) < len(DESCRIPTION["ops"]) // 3


class DualCase(sweep._Case):
    """A call whose tensors carry tangents that lie in memory in another order."""

    wrapped: ClassVar[Any] = staticmethod(lambda each: each)

    def tensor(self, what: Any, constant: bool) -> Any:
        leaf = super().tensor(what, constant)
        primal = self.wrapped(leaf.detach())
        if not leaf.requires_grad:
            return primal
        turned = (leaf.detach().mT if leaf.dim() > 1 else leaf.detach()).clone() + 0.5
        tangent = turned.mT if leaf.dim() > 1 else turned
        return forward_ad.make_dual(primal, self.wrapped(tangent))

    def gradients(self, result: Any) -> list[Any]:
        """The tangents."""
        found = [each for each in sweep._flat(result) if sweep.is_tensor(each)]
        return [forward_ad.unpack_dual(each).tangent for each in found]


class HostedDualCase(DualCase):
    wrapped = Wrapper


@leaves_nothing
def test_tangents_of_wrappers_are_those_of_their_elements_or_refused() -> None:
    differ, refused = set(), set()
    for op in DESCRIPTION["ops"]:
        with forward_ad.dual_level():
            plain, hosted = (
                outcome(case, op, op["calls"][0], "backward") for case in (DualCase, HostedDualCase)
            )
            if isinstance(hosted, NotImplementedError):
                refused.add(op["id"])
                continue
            try:
                if not alike(hosted, plain, "blank" in op):
                    differ.add(op["id"])
            except NotImplementedError:
                refused.add(op["id"])
    assert not differ
    assert len(refused) < len(DESCRIPTION["ops"]) // 3


def test_what_reads_the_memory_of_a_wrapper_is_refused_by_name() -> None:
    x = Wrapper(torch.rand(1, 2, 4, 4), requires_grad=True)
    with pytest.raises(NotImplementedError, match="interpolate"):
        torch.nn.functional.interpolate(x, scale_factor=2.0)
    q = Wrapper(torch.rand(1, 2, 3, 4), requires_grad=True)
    with pytest.raises(NotImplementedError):
        torch.nn.functional.scaled_dot_product_attention(q, q, q).sum().backward()


def test_a_refused_op_leaves_nothing() -> None:
    x = Wrapper(torch.rand(1, 2, 4, 4))
    gc.collect()
    before = live_count()
    for _ in range(3):
        with pytest.raises(NotImplementedError):
            torch.nn.functional.interpolate(x, scale_factor=2.0)
    gc.collect()
    assert live_count() == before


def test_a_refused_op_in_place_leaves_the_graph_as_it_was() -> None:
    x = Wrapper(torch.rand(2, 3), requires_grad=True)
    y = x * 2
    gc.collect()
    before, node = live_count(), y.grad_fn
    with pytest.raises(NotImplementedError, match="renorm"):
        y.renorm_(2, 0, 1.0)
    gc.collect()
    assert live_count() == before
    assert y.grad_fn is node


def test_what_an_op_in_place_keeps_of_a_wrapper_is_what_it_was() -> None:
    elem = torch.tensor([1.0, 2.0])
    x = Wrapper(elem.clone(), requires_grad=True)
    y = (x * 1).sin_().exp_()
    y.sum().backward()
    torch.testing.assert_close(y.elem, elem.sin().exp())
    torch.testing.assert_close(x.grad.elem, elem.sin().exp() * elem.cos())


def test_a_conversion_of_a_wrapper_to_its_own_type_is_itself() -> None:
    x = Wrapper(torch.ones(2), requires_grad=True)
    (x * 2).float().sum().backward()
    assert x.grad.elem.tolist() == [2.0, 2.0]


STEPS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.2, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "weight_decay": 0.1, "amsgrad": True}),
    ("AdamW", {"lr": 0.1, "maximize": True}),
    ("Adagrad", {"lr": 0.1}),
    ("RMSprop", {"lr": 0.1}),
]


@pytest.mark.parametrize(("name", "options"), STEPS)
def test_an_optimizer_changes_the_elements_of_a_wrapper(name: str, options: dict[str, Any]) -> None:
    def train(start: torch.Tensor) -> tuple[Any, Any]:
        parameter = torch.nn.Parameter(start)
        optimizer = getattr(torch.optim, name)([parameter], **options)
        for _ in range(3):
            optimizer.zero_grad()
            (parameter * parameter).sum().backward()
            optimizer.step()
        return parameter, optimizer.state_dict()

    (mine, state), (plain, plain_state) = (
        train(start) for start in (Wrapper(torch.tensor([1.0, -2.0])), torch.tensor([1.0, -2.0]))
    )
    torch.testing.assert_close(mine.elem, plain.detach())
    assert [*state["state"].get(0, ())] == [*plain_state["state"].get(0, ())]


@pytest.mark.parametrize("norm", [2.0, float("inf")])
def test_gradients_of_a_wrapper_are_clipped(norm: float) -> None:
    mine, plain = torch.nn.Parameter(Wrapper(torch.ones(2))), torch.nn.Parameter(torch.ones(2))
    mine.grad, plain.grad = Wrapper(torch.tensor([3.0, 4.0])), torch.tensor([3.0, 4.0])
    totals: list[Any] = [
        torch.nn.utils.clip_grad_norm_([each], 1.0, norm) for each in (mine, plain)
    ]
    torch.testing.assert_close(totals[0].elem, totals[1])
    torch.testing.assert_close(mine.grad.elem, plain.grad)


def test_a_norm_of_wrappers_that_is_infinite_is_an_error() -> None:
    mine = torch.nn.Parameter(Wrapper(torch.ones(2)))
    mine.grad = Wrapper(torch.tensor([float("inf"), 4.0]))
    with pytest.raises(RuntimeError, match="is non-finite, so it cannot be clipped"):
        torch.nn.utils.clip_grad_norm_([mine], 1.0, error_if_nonfinite=True)


def test_a_list_of_a_wrapper_is_refused() -> None:
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses, got Wrapper"):
        Wrapper(torch.ones(2)).tolist()
    with pytest.raises(RuntimeError, match="not supported for tensor subclasses"):
        Wrapper(torch.ones(2)).numpy()


def test_numbers_that_scale_are_told() -> None:
    a, b, c = Wrapper(torch.rand(2, 2)), torch.rand(2, 3), torch.rand(3, 2)
    found = torch.addmm(a, b, c, beta=0.5, alpha=2)
    torch.testing.assert_close(found.elem, 0.5 * a.elem + 2 * (b @ c))


def test_a_random_op_under_a_mode_draws_once() -> None:
    x = torch.ones(100, requires_grad=True)
    torch.manual_seed(0)
    plain = torch.nn.functional.dropout(x, 0.5)
    after = torch.rand(3)
    torch.manual_seed(0)
    with Listing():
        found = torch.nn.functional.dropout(x, 0.5)
    assert torch.equal(torch.rand(3), after)
    assert torch.equal(found, plain)
    assert torch.equal(torch.autograd.grad(found.sum(), x)[0], plain.detach())


def test_a_result_that_no_op_of_the_class_made_is_not_answered_for() -> None:
    """A dual tensor is made by the engine, so the class has given it no attributes."""
    x, v = Wrapper(torch.ones(2)), Wrapper(torch.ones(2))
    _, product = torch.autograd.functional.vjp(lambda t: t.exp(), x, v, create_graph=True)
    assert type(product) is Wrapper
    torch.testing.assert_close(product.elem, torch.ones(2).exp())
    jacobian = torch.autograd.functional.jacobian(
        lambda t: t.exp(), x, vectorize=True, strategy="forward-mode"
    )
    assert jacobian.shape == (2, 2)


# ------------------------------------------------------------------ storages


def test_the_storage_of_a_wrapper_shows_its_size_and_nothing_else() -> None:
    storage = Wrapper(torch.ones(2)).untyped_storage()
    assert storage.nbytes() == 8
    for call in (
        storage.data_ptr,
        lambda: storage.resize_(0),
        lambda: storage.copy_(storage),
        lambda: storage.fill_(0),
        lambda: storage._write_file("file", False, False, 1),
    ):
        with pytest.raises(RuntimeError, match="on an invalid python storage"):
            call()


def test_set_is_an_op_that_a_class_answers() -> None:
    x = Wrapper(torch.ones(2))
    assert x.set_(Wrapper(torch.tensor([2.0, 3.0]))) is x
    assert Wrapper.names == ["aten.set_.source_Tensor"]
    assert x.elem.tolist() == [2.0, 3.0]


def test_a_tensor_of_a_class_that_answers_becomes_none_of_another() -> None:
    class Other(torch.Tensor):
        pass

    x = Wrapper(torch.ones(2))
    text = "subclass Other but the raw Tensor object is already associated to a python object of"
    for make in (
        lambda: torch.Tensor._make_subclass(Other, x),
        lambda: x.as_subclass(Other),
        lambda: Other(x),
    ):
        with pytest.raises(RuntimeError, match=text):
            make()


def test_tensors_whose_ops_are_another_s_to_answer_are_told_apart() -> None:
    assert torch._C._dispatch_isTensorSubclassLike(Wrapper(torch.ones(1)))
    assert not torch._C._dispatch_isTensorSubclassLike(torch.ones(1))


def test_what_runs_within_an_answer_is_recorded_where_it_asks_for_that() -> None:
    """The answer records as the caller does: not under `no_grad`, and not after the scope. Answers
    nest.
    """
    found: list[list[bool]] = []

    class Asking(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            x = torch.ones(1, requires_grad=True)
            with torch.overrides.enable_reentrant_dispatch():
                within = x.exp().requires_grad
                with torch.no_grad():
                    off = x.exp().requires_grad
                with Listing():
                    nested = x.exp().requires_grad
            found.append([within, off, nested, x.exp().requires_grad])
            return func(*args, **(kwargs or {}))

    with Asking():
        torch.ones(1).exp()
        with torch.no_grad():
            torch.ones(1).exp()
    recorded, unrecorded = found[1], found[3]  # beside each call of `ones`
    assert recorded == [True, False, True, False]
    assert unrecorded == [False] * 4
    with torch.overrides.enable_reentrant_dispatch():  # outside of an answer nothing changes
        assert torch.is_grad_enabled()


def test_a_dual_tensor_s_class_may_record_within_its_answer() -> None:
    recorded: list[bool] = []

    class Kind(torch.Tensor):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func is aten.alias.default:
                with torch.overrides.enable_reentrant_dispatch():
                    recorded.append(torch.ones(1, requires_grad=True).exp().grad_fn is not None)
            with torch._C._DisableTorchDispatch():
                return func(*args, **(kwargs or {}))

    x = torch.Tensor._make_subclass(Kind, torch.tensor(1.0))
    with forward_ad.dual_level():
        forward_ad.make_dual(x, torch.ones(()))
    assert recorded == [True]
