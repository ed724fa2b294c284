"""Ops of a program's own: `pygrad.library`."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from itertools import combinations, permutations
from typing import Any

import pytest

import pygrad as torch
from pygrad import library
from pygrad.library import custom_op, infer_schema, opcheck
from pygrad.utils._python_dispatch import TorchDispatchMode

Tensor = torch.Tensor


class Told(TorchDispatchMode):
    """Keeps the names of the ops that it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.fixture
def cube() -> Iterator[Any]:
    @custom_op("tests::cube", mutates_args=())
    def cube(x: Tensor) -> Tensor:
        return x**3

    yield cube
    library._registry.forget(cube._entry)


def with_gradient(op: Any) -> None:
    op.register_autograd(
        lambda ctx, g: g * 3 * ctx.saved_tensors[0] ** 2,
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )


# ------------------------------------------------------------------ custom_op


def test_an_op_has_a_name_and_a_schema(cube: Any) -> None:
    op = torch.ops.tests.cube.default
    assert str(op._schema) == "tests::cube(Tensor x) -> Tensor"
    assert (str(op), op.namespace, repr(cube)) == (
        "tests.cube.default",
        "tests",
        "<CustomOpDef(tests::cube)>",
    )
    assert cube._opoverload is op
    assert op(torch.tensor([2.0])).tolist() == [8.0] == cube(torch.tensor([2.0])).tolist()


def test_its_gradient_is_what_was_registered(cube: Any) -> None:
    with_gradient(cube)
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    cube(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [12.0, 27.0]
    double = torch.tensor([2.0, 3.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(cube, (double,))
    assert torch.autograd.gradgradcheck(cube, (double,))


def test_without_a_gradient_backward_says_what_to_do(cube: Any) -> None:
    y = cube(torch.ones(1, requires_grad=True))
    assert y.requires_grad
    with pytest.raises(RuntimeError, match=r"no autograd formula was registered. Please use regis"):
        y.backward()


def test_lists_of_tensors_have_gradients() -> None:
    @custom_op("tests::total", mutates_args=())
    def total(xs: Sequence[Tensor], scale: float = 1.0) -> Tensor:
        return (xs[0] + xs[1]) * scale

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.scale = inputs[1]

    total.register_autograd(
        lambda ctx, g: ([g * ctx.scale, g * ctx.scale], None), setup_context=setup
    )
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    total([a, b], 3.0).sum().backward()
    assert a.grad is not None
    assert a.grad.tolist() == [3.0, 3.0]
    assert b.grad is not None
    assert b.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError, match="missing value for argument 'xs'"):
        torch.ops.tests.total()


def test_an_op_that_writes_says_so_in_its_schema() -> None:
    @custom_op("tests::grow_", mutates_args={"x"})
    def grow(x: Tensor) -> None:
        x.add_(1)

    x = torch.zeros(2)
    assert grow(x) is None
    assert x.tolist() == [1.0, 1.0]
    assert str(grow._opoverload._schema) == "tests::grow_(Tensor(a0!) x) -> ()"
    library.define("tests::same", "(Tensor(a!) x) -> Tensor(a!)")
    with pytest.raises(RuntimeError, match="Cannot register autograd formula"):
        library.register_autograd("tests::same", lambda ctx, g: g)


def test_a_result_that_is_an_argument_is_refused() -> None:
    @custom_op("tests::same_again", mutates_args=())
    def same(x: Tensor) -> Tensor:
        return x

    with pytest.raises(RuntimeError, match="must not also be an input to this custom operator"):
        same(torch.ones(2))


def test_results_that_share_memory_are_refused() -> None:
    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.clone()
        return y, y.view(-1)

    op = custom_op("tests::twice_the_same", twice, mutates_args=())
    with pytest.raises(RuntimeError, match="may not alias any inputs .* or other returns"):
        op(torch.ones(2))


def test_what_is_written_to_counts_a_write_and_nothing_else_does() -> None:
    def write(a: Tensor, b: Tensor) -> None:
        a.detach().numpy()[0] = 3

    op = custom_op("tests::write_first", write, mutates_args={"a"})
    a, b = torch.ones(1), torch.ones(1)
    op(a, b)
    assert (a.item(), a._version, b._version) == (3, 1, 0)


def test_vmap_does_what_was_registered(cube: Any) -> None:
    with_gradient(cube)
    cube.register_vmap(lambda info, in_dims, x: (cube(x), in_dims[0]))
    x = torch.rand(3, 2)
    assert torch.equal(torch.func.vmap(cube)(x), x**3)


def test_modes_see_it_as_one_op(cube: Any) -> None:
    with_gradient(cube)
    names: list[str] = []

    class Listing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    x = torch.ones(2, requires_grad=True)
    with Listing():
        y = cube(x)
    assert names[0] == "tests.cube.default"
    assert y.grad_fn is not None

    @cube.register_torch_dispatch(Listing)
    def rule(mode: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
        return torch.full((2,), 7.0)

    with Listing():
        assert cube(x).tolist() == [7.0, 7.0]


def test_opcheck_tells_what_is_absent(cube: Any) -> None:
    x = torch.rand(2, requires_grad=True)
    found = opcheck(cube, (x,), raise_exception=False)
    assert found["test_schema"] == "SUCCESS" == found["test_autograd_registration"]
    assert "Please use `cube.register_fake` to add an fake impl" in str(found["test_faketensor"])
    cube.register_fake(lambda x: x.new_empty(x.shape))
    assert set(opcheck(cube, (x,)).values()) == {"SUCCESS"}
    cube.register_fake(lambda x: x.new_empty(5))
    with pytest.raises(library._check.OpCheckError, match=r"Shapes .*2.* and .*5.* are not equal!"):
        opcheck(cube, (x,))


def test_opcheck_finds_what_is_written_in_secret() -> None:
    @custom_op("tests::secret", mutates_args=())
    def secret(x: Tensor) -> Tensor:
        x.add_(1)
        return x * 2

    with pytest.raises(library._check.OpCheckError, match="not defined as mutable but was mutated"):
        opcheck(secret, (torch.ones(2),))


def test_opcheck_knows_ops_of_pytorch() -> None:
    x = torch.rand(2, 2, requires_grad=True)
    for op, args in (
        (torch.ops.aten.mm.default, (x, x)),
        (torch.ops.aten.sin_.default, (torch.rand(2),)),
        (torch.ops.aten.view.default, (x, [4])),
        (torch.ops.aten.nonzero.default, (x.detach(),)),
    ):
        assert set(opcheck(op, args).values()) == {"SUCCESS"}
    with pytest.raises(RuntimeError, match="can only test operators without overloads"):
        opcheck(torch.ops.aten.sum, (x,))


def test_opcheck_compares_no_sizes_that_depend_on_data() -> None:
    @custom_op("tests::where", mutates_args=())
    def where(x: Tensor) -> Tensor:
        return x.nonzero()

    @where.register_fake
    def _(x: Tensor) -> Tensor:
        return x.new_empty([library.get_ctx().new_dynamic_size(), x.ndim], dtype=torch.int64)

    x = torch.eye(3)
    assert set(opcheck(where, (x,)).values()) == {"SUCCESS"}
    where.register_fake(lambda x: x.new_empty([library.get_ctx().new_dynamic_size(), 3]))
    with pytest.raises(library._check.OpCheckError, match="are not equal!"):
        opcheck(where, (x,))
    where.register_fake(lambda x: x.new_empty(library.get_ctx().new_dynamic_size(min=-1)))
    with pytest.raises(ValueError, match="expected min to be greater than or equal to 0"):
        where(x.to("meta"))


@pytest.mark.parametrize(
    ("schema", "function", "message"),
    [
        ("(Tensor x) -> Tensor", lambda x: x[:], "Argument x is not defined to alias output"),
        ("(Tensor x) -> Tensor", lambda x: x.sin_() + 0, "not defined as mutable but was mutated"),
        ("(Tensor x) -> (Tensor, Tensor)", lambda x: (y := x + 1, y[:]), "Outputs 0 and 1 alias"),
        ("(Tensor(a) x) -> Tensor(a)", lambda x: x[:], None),
    ],
)
def test_opcheck_finds_what_a_schema_conceals(schema: str, function: Any, message: Any) -> None:
    with library._scoped_library("tests_conceal", "FRAGMENT") as lib:
        lib.define("f" + schema)
        lib.impl("f", function, "CompositeExplicitAutograd")
        f, x = torch.ops.tests_conceal.f, torch.rand(2)
        if message is None:
            assert opcheck(f, (x,), test_utils="test_schema") == {"test_schema": "SUCCESS"}
            return
        with pytest.raises(library._check.OpCheckError, match=message):
            opcheck(f, (x,))


def test_opcheck_finds_a_gradient_in_the_place_of_a_function() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * 2

    x = torch.rand(2, requires_grad=True)
    with library._scoped_library("tests_place", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", Doubled.apply, "CPU")
        f = torch.ops.tests_place.f
        with pytest.raises(library._check.OpCheckError, match="does not have an autograd kernel"):
            opcheck(f, (x,), test_utils="test_autograd_registration")
        lib.impl("f", Doubled.apply, "Autograd")
        assert "SUCCESS" in opcheck(f, (x,), test_utils="test_autograd_registration").values()


def test_a_backward_through_an_op_without_a_gradient_warns() -> None:
    x = torch.ones(2, requires_grad=True)
    with library._scoped_library("tests_warns", "FRAGMENT") as lib:
        lib.define("f(Tensor x, bool cut) -> Tensor")
        lib.impl("f", lambda x, cut: (x.detach() if cut else x) * 2, "CPU")
        y, cut = torch.ops.tests_warns.f(x, False), torch.ops.tests_warns.f(x, True)
        assert y.requires_grad
        with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
            assert torch.autograd.grad(y.sum(), x)[0].tolist() == [2.0, 2.0]
        with pytest.warns(UserWarning, match="an autograd kernel was not registered"):
            assert torch.autograd.grad(cut.sum(), x, allow_unused=True) == (None,)
        torch._C._set_autograd_fallback_mode("nothing")
        try:
            assert not torch.ops.tests_warns.f(x, True).requires_grad
        finally:
            torch._C._set_autograd_fallback_mode("warn")


def test_a_guard_counts_from_when_it_is_made() -> None:
    seen = []
    with library._scoped_library("tests_guard", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")

        def watch_above(x: Tensor) -> Tensor:
            seen.append(x)
            guard = torch._C._AutoDispatchBelowAutograd()
            try:
                return torch.ops.tests_guard.f(x)
            finally:
                del guard

        lib.impl("f", watch_above, "Autograd")
        assert torch.ops.tests_guard.f(torch.zeros(1)).tolist() == [1.0]
        assert torch.ops.tests_guard.f(torch.zeros(1)).tolist() == [1.0]
        assert len(seen) == 2


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="Triton"):
        library.triton_op("tests::t", mutates_args=())
    with pytest.raises(NotImplementedError, match=r"needs torch\.compile"):
        opcheck(
            custom_op(
                "tests::one", lambda x: x + 1, mutates_args=(), schema="(Tensor x) -> Tensor"
            ),
            (torch.ones(1),),
            test_utils="test_aot_dispatch_dynamic",
        )
    with pytest.raises(ValueError, match="must have a namespace"):
        custom_op("alone", mutates_args=())
    with pytest.raises(RuntimeError, match="may only be called from a fake impl"):
        library.get_ctx()


# ------------------------------------------------------------------ Library


def test_a_library_defines_and_is_forgotten() -> None:
    with library._scoped_library("tests_lib", "FRAGMENT") as lib:
        assert lib.define("scale(Tensor x, *, float by=2.0) -> Tensor") == "scale"
        lib.impl("scale", lambda x, *, by=2.0: x * by, "CPU")
        op = torch.ops.tests_lib.scale
        assert op(torch.ones(1)).tolist() == [2.0]
        assert op.default(torch.ones(1), by=3.0).tolist() == [3.0]
        with pytest.raises(RuntimeError, match="Tried to register an operator"):
            lib.define("scale(Tensor x) -> Tensor")
        with pytest.raises(RuntimeError, match="already a kernel registered"):
            lib.impl("scale", lambda x: x, "CPU", allow_override=False)
        with pytest.raises(RuntimeError, match="Unknown keyword argument 'too'"):
            op.default(torch.ones(1), too=1)
    with pytest.raises(AttributeError, match="has no attribute 'scale'"):
        torch.ops.tests_lib.scale  # noqa: B018


@pytest.fixture
def lib() -> Iterator[Any]:
    with library._scoped_library("tests_lib", "FRAGMENT") as made:
        yield made


DEFAULTS: list[tuple[tuple[int, ...], dict[str, int], tuple[int, int, int]]] = [
    ((), {}, (10, 20, 30)),
    ((1, 2), {"c": 3}, (10, 20, 30)),
    ((5,), {}, (5, 20, 30)),
    ((5, 2), {}, (5, 20, 30)),
    ((1, 5), {}, (1, 5, 30)),
    ((), {"b": 2}, (10, 20, 30)),
    ((), {"b": 7}, (1, 7, 30)),
    ((), {"c": 4}, (10, 20, 4)),
]


@pytest.mark.parametrize(("args", "kwargs", "wanted"), DEFAULTS)
def test_values_at_the_end_that_are_defaults_are_left_to_the_function(
    lib: Any, args: Any, kwargs: Any, wanted: Any
) -> None:
    seen = []

    def function(x: Any, a: int = 10, b: int = 20, *, c: int = 30) -> Any:
        seen.append((a, b, c))
        return x.clone()

    lib.define("f(Tensor x, int a=1, int b=2, *, int c=3) -> Tensor")
    lib.impl("f", function, "CPU")
    torch.ops.tests_lib.f(torch.ones(1), *args, **kwargs)
    assert seen == [wanted]


@pytest.mark.parametrize("order", [*permutations(("out", "Scalar", "Tensor", ""))], ids=" ".join)
def test_the_first_overload_that_takes_the_arguments_is_called(
    lib: Any, order: tuple[str, ...]
) -> None:
    schemas = {
        "": "f(Tensor x) -> Tensor",
        "out": "f.out(Tensor x, *, Tensor(a!)? out=None) -> Tensor(a!)",
        "Tensor": "f.Tensor(Tensor x, Tensor? y=None) -> Tensor",
        "Scalar": "f.Scalar(Tensor x, Scalar y=1) -> Tensor",
    }
    called = []
    for name in order:
        lib.define(schemas[name])
        lib.impl(
            f"f.{name}".rstrip("."),
            lambda x, *y, out=None, name=name: (called.append(name), x.clone())[1],
            "CPU",
        )
    x, f = torch.ones(1), torch.ops.tests_lib.f
    for args in ((x,), (x, x), (x, 2.0)):
        f(*args)
    f(x, out=x)
    assert called == [order[0], "Tensor", "Scalar", "out"]


def test_a_function_may_be_given_before_the_op_is_defined(lib: Any) -> None:
    lib.impl("f", lambda x: x * 5, "CPU")
    lib.define("f(Tensor x) -> Tensor")
    assert torch.ops.tests_lib.f(torch.ones(1)).item() == 5


def test_a_gradient_may_be_changed_between_calls(lib: Any) -> None:
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "CPU")
    for slope in (3.0, 4.0):
        library.register_autograd("tests_lib::f", lambda ctx, g, by=slope: g * by, lib=lib)
        x = torch.ones(1, requires_grad=True)
        torch.ops.tests_lib.f(x).backward()
        assert x.grad.item() == slope


def test_calls_are_recorded_again_after_a_scope_below_autograd(lib: Any) -> None:
    lib.define("f(Tensor x) -> Tensor")
    lib.impl("f", lambda x: x * 2, "Autograd")
    lib.impl("f", lambda x: x * 3, "CPU")
    x = torch.ones(1, requires_grad=True)
    with torch._C._AutoDispatchBelowAutograd():
        assert torch.ops.tests_lib.f(x).item() == 3
    made = torch.ops.tests_lib.f(x)
    assert (made.item(), made.requires_grad) == (2, True)
    assert torch.is_grad_enabled()


KEYS = (
    "CPU Meta Autograd AutogradCPU AutogradMeta CompositeExplicitAutograd CompositeImplicitAutograd"
).split()


def choose_key(keys: tuple[str, ...], device: str) -> str | None:
    """The key whose function PyTorch calls for tensors of a device."""
    own = {device, "CompositeExplicitAutograd"} & {*keys}
    order = [f"Autograd{device}", *["CompositeImplicitAutograd"] * (not own), "Autograd", device]
    return next((key for key in (*order, "CompositeExplicitAutograd") if key in keys), None)


@pytest.mark.parametrize("device", ["CPU", "Meta"])
@pytest.mark.parametrize(
    "keys", [k for n in (1, 2, 3) for k in combinations(KEYS, n)], ids=" ".join
)
def test_each_kind_of_function_is_chosen(keys: tuple[str, ...], device: str) -> None:
    called: list[str] = []

    def kernel_of(key: str) -> Any:
        return lambda x: (called.append(key), x.detach().clone())[1]

    with library._scoped_library("tests_lib", "FRAGMENT") as lib:
        lib.define("f(Tensor x) -> Tensor")
        for key in keys:
            lib.impl("f", kernel_of(key), key)
        wanted = choose_key(keys, device)
        for requires_grad in (False, True):
            x = torch.ones(1, device=device.lower(), requires_grad=requires_grad)
            if wanted is None:
                with pytest.raises(NotImplementedError):
                    torch.ops.tests_lib.f(x)
            else:
                torch.ops.tests_lib.f(x)
    assert called == [wanted] * 2 * (wanted is not None)


def test_a_library_that_outlives_the_modules_is_no_error_at_exit() -> None:
    program = (
        "import sys, types, pygrad as torch\n"
        "types.kept = torch.library.Library('kept', 'DEF')\n"
        "sys.stays = sys.modules['pygrad.library._registry'], types\n"
        "types.kept.define('f(Tensor x) -> Tensor')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_composite_op_is_differentiated_through() -> None:
    with library._scoped_library("tests_lib", "DEF") as lib:
        lib.define("twice(Tensor x) -> Tensor")
        lib.impl("twice", lambda x: x * 2, "CompositeImplicitAutograd")
        x = torch.ones(2, requires_grad=True)
        torch.ops.tests_lib.twice(x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2.0, 2.0]


def test_an_op_without_a_function_for_the_device_says_so() -> None:
    with library._scoped_library("tests_lib", "DEF") as lib:
        lib.define("nowhere(Tensor x) -> Tensor")
        with pytest.raises(
            NotImplementedError, match="Could not run 'tests_lib::nowhere' with arg"
        ):
            torch.ops.tests_lib.nowhere(torch.ones(1))


def test_a_library_is_of_a_kind_that_there_is() -> None:
    with pytest.raises(ValueError, match="Unsupported kind"):
        library.Library("tests_lib", "BLA")
    with pytest.raises(ValueError, match="reserved namespace"):
        library.Library("prim", "DEF")


# ------------------------------------------------------------------ schemas


def f_plain(x: Tensor, n: int, s: str = "a", f: float = 1.0, b: bool = True) -> Tensor: ...  # type: ignore[empty-body]
def f_lists(xs: list[Tensor], ns: Sequence[int], y: Tensor | None = None) -> tuple[Tensor, int]: ...  # type: ignore[empty-body]
def f_only(x: Tensor, *, k: int | float | bool, d: torch.dtype = torch.float32) -> list[Tensor]: ...  # type: ignore[empty-body]
def f_none(x: Tensor) -> None: ...
def f_absent(x) -> Tensor: ...  # type: ignore[no-untyped-def, empty-body]
def f_odd(x: Tensor, y: dict[str, int]) -> Tensor: ...  # type: ignore[empty-body]
def f_more(*xs: Tensor) -> Tensor: ...  # type: ignore[empty-body]
def f_no_return(x: Tensor): ...  # type: ignore[no-untyped-def]


def test_schemas_are_inferred_of_annotations() -> None:
    assert infer_schema(f_plain, mutates_args=()) == (
        '(Tensor x, SymInt n, str s="a", float f=1.0, bool b=True) -> Tensor'
    )
    assert infer_schema(f_lists, mutates_args={"xs"}) == (
        "(Tensor(a0!)[] xs, SymInt[] ns, Tensor? y=None) -> (Tensor, SymInt)"
    )
    assert infer_schema(f_only, mutates_args=(), op_name="mine::f") == (
        "mine::f(Tensor x, *, Scalar k, ScalarType d=float32) -> Tensor[]"
    )
    assert infer_schema(f_none, mutates_args="unknown") == "(Tensor(a0!) x) -> ()"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (f_absent, "must have a type annotation"),
        (f_odd, "has unsupported type"),
        (f_more, "We do not support"),
        (f_no_return, "No return type annotation"),
    ],
)
def test_what_no_schema_has_is_refused(function: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        infer_schema(function, mutates_args=())
    with pytest.raises(ValueError, match="were not found in the custom op's signature"):
        infer_schema(f_none, mutates_args={"z"})


# ------------------------------------------------------------------ ops of PyTorch's own


def test_a_function_in_the_place_of_an_op_runs_in_every_thread_below_modes() -> None:
    seen: list[Any] = []
    began, may_end = threading.Event(), threading.Event()

    def run_other() -> None:
        seen.append(torch.ones(1).sinh().item())
        began.set()
        may_end.wait(10)
        seen.append(torch.ones(1).sinh().item())

    thread = threading.Thread(target=run_other)
    thread.start()
    assert began.wait(10)
    lib = library.Library("aten", "IMPL")
    lib.impl("sinh", lambda x: x * 7, "CPU")
    may_end.set()
    thread.join()
    later = threading.Thread(target=lambda: seen.append(torch.ones(1).sinh().item()))
    later.start()
    later.join()
    assert seen[1:] == [7.0, 7.0]
    with Told() as mode:
        assert torch.ones(1).sinh().item() == 7.0
    assert "aten.sinh.default" in mode.ops
    lib._destroy()
    assert torch.ones(1).sinh().item() == seen[0]


def test_the_function_that_was_replaced_can_be_called_each_time() -> None:
    own = library.get_kernel("aten::sinh", "CPU")
    x = torch.tensor([0.5])
    plain = x.sinh().item()
    with library._scoped_library("aten", "IMPL") as lib:
        lib.impl("sinh", lambda keys, x: own.call_boxed(keys, x) * 10, "CPU", with_keyset=True)
        found = [x.sinh().item() for _ in range(3)]
    assert found == [pytest.approx(10 * plain)] * 3
    assert x.sinh().item() == plain


def test_a_kernel_that_raises_or_recurses_leaves_all_as_it_was() -> None:
    lib = library.Library("aten", "IMPL")
    lib.impl("sinh", lambda x: 1 / 0, "CPU")
    lib.impl("cosh", lambda x: x.cosh(), "CPU")
    lib.impl("tanh", lambda x: "text", "CPU")
    x = torch.ones(1)
    gc.collect()
    live = torch.pg_live_count()
    for _ in range(3):
        with pytest.raises(ZeroDivisionError):
            x.sinh()
        with pytest.raises(RecursionError):
            x.cosh()
        with pytest.raises(RuntimeError, match="Unable to cast text to Tensor"):
            x.tanh()
    gc.collect()
    assert torch.pg_live_count() == live
    lib._destroy()
    assert x.cosh().item() == pytest.approx(1.5430806)


def new_op(number: int) -> Any:
    lib = library.Library("tests_later", "FRAGMENT")
    lib.impl("f", lambda x: x * 0 + number, "CPU", allow_override=True)
    return lib


def in_place_of_native(number: int) -> Any:
    lib = library.Library("aten", "IMPL")
    lib.impl("sinh", lambda x: x.clone().fill_(number), "CPU")
    return lib


def fake(number: int) -> Any:
    lib = library.Library("tests_later", "FRAGMENT")
    library.register_fake("tests_later::f", lambda x: x.new_empty(number), lib=lib)
    return lib


def gradient(number: int) -> Any:
    lib = library.Library("tests_later", "FRAGMENT")
    library.register_autograd("tests_later::f", lambda ctx, g: g * number, lib=lib)
    return lib


def slope() -> float:
    x = torch.ones(1, requires_grad=True)
    torch.ops.tests_later.f(x).backward()
    assert x.grad is not None
    return x.grad.item()


RULES: dict[str, tuple[Any, Any, float]] = {
    "a function": (new_op, lambda: torch.ops.tests_later.f(torch.ones(1)).item(), 7),
    "in the place of PyTorch's": (in_place_of_native, lambda: torch.zeros(1).sinh().item(), 0),
    "a fake function": (
        fake,
        lambda: torch.ops.tests_later.f(torch.ones(1, device="meta")).numel(),
        9,
    ),
    "a gradient": (gradient, slope, 7),
}
"""Makers of libraries that add a rule with a number, its number now, and that without them."""


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("ends", [*permutations((1, 2, 3))], ids=str)
def test_libraries_may_end_in_any_order(rule: str, ends: tuple[int, ...]) -> None:
    """The rule is that of the latest one that has not ended."""
    make, now, bare = RULES[rule]
    with library._scoped_library("tests_later", "FRAGMENT") as base:
        base.define("f(Tensor x) -> Tensor")
        base.impl("f", lambda x: x * 7, "CPU")
        library.register_fake("tests_later::f", lambda x: x.new_empty(9), lib=base)
        library.register_autograd("tests_later::f", lambda ctx, g: g * 7, lib=base)
        libraries = {number: make(number) for number in (1, 2, 3)}
        assert now() == 3
        for end in ends:
            libraries.pop(end)._destroy()
            assert now() == max(libraries, default=bare)


def test_the_first_function_in_the_place_of_an_op_warns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pygrad._ground.warnings._given", set())
    lib = library.Library("aten", "IMPL")
    with pytest.warns(UserWarning, match=r"operator: aten::sinh\(Tensor self\) -> Tensor\n.*CPU"):
        lib.impl("sinh", lambda x: x, "CPU")
    lib.impl("cosh", lambda x: x, "CPU")


def test_calls_beside_functions_in_the_place_of_ops_keep_nothing() -> None:
    lib = library.Library("aten", "IMPL")
    lib.impl("sinh", lambda x: x, "CPU")

    def work() -> None:
        w = torch.ones(3, requires_grad=True)
        for _ in range(10):
            (w.sin() * w).sum().backward()

    work()
    gc.collect()
    live = torch.pg_live_count()
    for _ in range(3):
        work()
    gc.collect()
    assert torch.pg_live_count() == live
    lib._destroy()


def test_what_cannot_be_put_in_the_place_of_an_op_says_so() -> None:
    lib = library.Library("aten", "IMPL")
    with pytest.raises(NotImplementedError, match="CPU and Meta, and not for AutogradCPU"):
        lib.impl("neg", lambda x: x, "AutogradCPU")
    with pytest.raises(NotImplementedError, match="aten::narrow is made of other operators"):
        lib.impl("narrow", lambda x: x, "CPU")
    with pytest.raises(NotImplementedError, match="no function of aten::neg for Autograd"):
        library.get_kernel("aten::neg", "Autograd")
    with pytest.raises(TypeError, match="The first is a DispatchKeySet"):
        library.get_kernel("aten::neg", "CPU").call_boxed(torch.ones(1))


# ------------------------------------------------------------------ compiled libraries


def add_rules(name: str) -> None:
    library.register_fake(name)(lambda x: x)
    library.register_kernel(name, "cpu")(lambda x: x)
    library.register_autograd(name, lambda ctx, g: g)
    library.Library("compiled", "IMPL").impl(name, lambda x: x, "Meta")


def test_rules_of_ops_of_a_compiled_library_that_was_refused_are_of_no_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.ops, "refused_libraries", set())
    with pytest.raises(RuntimeError, match=r"operator compiled::nms does not exist"):
        add_rules("compiled::nms")
    with pytest.raises(OSError, match=r"Could not load this library: .*_C\.so"):
        torch.ops.load_library("/somewhere/_C.so")
    add_rules("compiled::nms")
    assert not hasattr(torch.ops.compiled, "nms")
    assert torch.ops.loaded_libraries == set()
    with pytest.raises(RuntimeError, match=r"operator aten::nms does not exist"):
        library.register_fake("aten::nms")
    with pytest.raises(ValueError, match=r"op must be instance of torch\._ops\.OpOverload"):
        opcheck("compiled::nms", (torch.ones(1),))


# ------------------------------------------------------------------ misuse


def _op(name: str, function: Any) -> Any:
    return library.custom_op(f"misuse::{name}", function, mutates_args=())


def test_a_result_of_another_type_is_an_error() -> None:
    def number(x: Tensor) -> Tensor:
        return 3  # type: ignore[return-value]

    def one(x: Tensor) -> tuple[Tensor, Tensor]:
        return x.clone()  # type: ignore[return-value]

    with pytest.raises(RuntimeError, match="Unable to cast 3 to Tensor"):
        _op("number", number)(torch.ones(1))
    with pytest.raises(TypeError, match="Object of type 'Tensor' is not an instance of 'sequence'"):
        _op("one", one)(torch.ones(1))


@pytest.mark.parametrize("value", ["x", 2.5, None, [1]])
def test_an_argument_of_another_type_is_an_error(value: Any) -> None:
    def scale(x: Tensor, a: int) -> Tensor:
        return x * a

    op = _op(f"scale_{type(value).__name__}", scale)
    with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'a'"):
        op(torch.ones(1), value)
    assert op(torch.ones(1), 2).item() == 2


def test_gradients_of_one_list_may_be_a_list() -> None:
    def total(xs: list[Tensor]) -> Tensor:
        return torch.stack(xs).sum(0)

    op = _op("total", total)
    op.register_autograd(lambda ctx, g: [g * 2, g * 3])
    xs = [torch.ones(2, requires_grad=True) for _ in range(2)]
    op(xs).sum().backward()
    assert [x.grad.tolist() for x in xs if x.grad is not None] == [[2, 2], [3, 3]]
    op.register_autograd(lambda ctx, g: g)
    with pytest.raises(RuntimeError, match="to be of the same structure as the inputs"):
        op(xs).sum().backward()


def test_an_op_without_a_rule_for_vmap_is_run_slice_by_slice() -> None:
    seen = []

    def pair(x: Tensor, y: Tensor, a: float) -> tuple[Tensor, Tensor]:
        seen.append(x.shape)
        return x * a, x + y

    op = _op("pair", pair)
    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(2)
    times, plus = torch.vmap(op, in_dims=(1, None, None), out_dims=1)(x, y, 2.0)
    assert times.tolist() == (x * 2).tolist()
    assert plus.tolist() == (x + 1).tolist()
    assert seen == [(2,)] * 3


def test_arguments_are_cast_under_autocast_as_registered() -> None:
    def twice(x: Tensor) -> Tensor:
        return x * 2

    op = _op("twice", twice)
    op.register_autocast("cpu", torch.bfloat16)
    assert op(torch.ones(1)).dtype is torch.float32
    with torch.autocast("cpu"):
        assert op(torch.ones(1)).dtype is torch.bfloat16
        assert op(torch.ones(1, dtype=torch.float64)).dtype is torch.float64


def test_calls_of_a_custom_op_are_recorded_in_a_graph(cube: Any) -> None:
    def f(x: Any) -> Any:
        return torch.ops.tests.cube.default(torch.ops.tests.cube(cube(x)))

    graph = torch.fx.symbolic_trace(f)
    calls = [node.target for node in graph.graph.nodes if node.op == "call_function"]
    op = torch.ops.tests.cube
    assert calls == [op.default, op, op.default]
    assert graph(torch.tensor(2.0)).item() == 2.0**27


@pytest.mark.parametrize("name", ["register_autograd", "register_vmap"])
def test_tensors_by_keyword_alone_have_no_rules(name: str) -> None:
    def function(x: Tensor, *, y: Tensor) -> Tensor:
        return x + y

    with pytest.raises(NotImplementedError, match="custom_op with kwarg-only Tensor args"):
        _op("keyword", function)
    with library._scoped_library("misuse_keyword", "FRAGMENT") as lib:
        lib.define("f(Tensor x, *, Tensor? y) -> Tensor")
        with pytest.raises(NotImplementedError, match=f"{name} with kwarg-only Tensor args"):
            getattr(library, name)("misuse_keyword::f", lambda *args: args[0])


def test_types_that_no_schema_has() -> None:
    for kind, message in (
        (list[int | None], "has unsupported type"),
        (tuple[int, int], r"try to use List instead. For example, typing.List\[int\]"),
        (tuple[int, float], "We do not support Tuple inputs in schema"),
    ):

        def function(x: Tensor, y: Any) -> Tensor:
            return x

        function.__annotations__["y"] = kind
        with pytest.raises(ValueError, match=message):
            infer_schema(function)


def test_an_argument_that_is_written_to_has_a_new_version() -> None:
    @custom_op("tests::fill", mutates_args={"x"})
    def fill(x: Tensor) -> None:
        x.numpy()[:] = 3

    x = torch.zeros(2)
    fill(x)
    assert (x.tolist(), x._version) == ([3.0, 3.0], 1)
    assert fill(torch.zeros(2, device="meta")) is None


def test_gradients_of_arguments_with_defaults_may_be_left_out() -> None:
    with library._scoped_library("tests_left_out", "FRAGMENT") as lib:
        lib.define("f(Tensor x, int by=2) -> Tensor")
        lib.impl("f", lambda x, by=2: x * by, "CPU")
        library.register_autograd("tests_left_out::f", lambda ctx, g: g * 2, lib=lib)
        x, f = torch.ones(1, requires_grad=True), torch.ops.tests_left_out.f
        assert torch.autograd.grad(f(x), x)[0].tolist() == [2.0]
        with pytest.raises(RuntimeError, match=r"\(expected 3, got 2\)"):
            f(x, 3).backward()


def test_what_is_known_of_an_op(cube: Any) -> None:
    from pygrad.torch._library import simple_registry, utils

    find = simple_registry.singleton.find
    assert find("tests::cube").fake_impl.kernel is None
    cube.register_fake(lambda x: x.new_empty(x.shape))
    assert "test_library.py:" in find("tests::cube").fake_impl.kernel.source
    assert utils.lookup_op("tests::cube") is cube._opoverload
    assert not utils.is_builtin(cube._opoverload)
    assert cube._opoverload.tags == [torch.Tag.pt2_compliant_tag]  # type: ignore[attr-defined]
    assert utils.fill_defaults(torch.ops.aten.add.Tensor._schema, (1, 2), {}) == (
        (1, 2),
        {"alpha": 1},
    )


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ("f(Tensor a) -> asdf", r"unknown type specifier.*\n               ~~~~ <--- HERE"),
        ("f(asdf? a) -> Tensor", r"unknown type specifier.*\n  ~~~~ <--- HERE"),
        ("f(int64_t[] a) -> Tensor", "Use `SymInt` or `int` instead of `int64_t`"),
        ("f(double a) -> Tensor", "Use `float` instead of `double`"),
    ],
)
def test_a_type_that_is_none_is_shown_in_its_schema(schema: str, message: str) -> None:
    with library._scoped_library("misuse_types", "FRAGMENT") as lib:
        with pytest.raises(RuntimeError, match=f"(?s){message}"):
            lib.define(schema)
        lib.define("f(__torch__.torch.classes.mine.Thing t, Dict(str, Tensor) d) -> Any")


def test_a_device_that_is_none_is_refused_before_there_is_a_function() -> None:
    with pytest.raises(RuntimeError, match="Expected one of cpu, cuda.* device string: nothing"):
        library.impl("misuse::f", "nothing")


# ------------------------------------------------------------------ the older form


@pytest.fixture
def older() -> Iterator[Any]:
    """An op of the older form: the sine, of whose result a gradient may be asked."""
    from pygrad import _custom_ops

    @_custom_ops.custom_op("tests::older")
    def older(x: Tensor, by: float) -> Tensor: ...

    @_custom_ops.impl("tests::older", device_types="cpu")
    def older_cpu(x: Tensor, by: float) -> Tensor:
        return x.sin() * by

    yield _custom_ops
    _custom_ops._destroy("tests::older")
    assert not hasattr(torch.ops.tests, "older")


def test_an_op_of_the_older_form_has_no_gradient_until_it_is_told_two_functions(older: Any) -> None:
    op, x = torch.ops.tests.older, torch.ones(2, requires_grad=True)
    assert op(x.detach(), 2.0).tolist() == (x.sin() * 2).tolist()
    with pytest.raises(RuntimeError, match="Autograd has not been implemented for operator"):
        op(x, 2.0)
    older.impl_save_for_backward(
        "tests::older", func=lambda inputs, output: {"x": inputs.x, "by": inputs.by}
    )
    with pytest.raises(RuntimeError, match=r"but were unable to find a 'backward' registration"):
        op(x, 2.0)
    older.impl_backward(
        "tests::older", func=lambda ctx, saved, g: {"x": g * saved["x"].cos() * saved["by"]}
    )
    op(x, 2.0).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == (x.cos() * 2).tolist()


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (torch.ones(2), "expected the output of the backward function to be a dict"),
        ({}, r"to have keys \{'x'\} but got"),
        ({"x": None, "by": None}, r"to have keys \{'x'\} but got"),
        ({"x": 1.0}, "expected the gradient to be either None or a Tensor"),
    ],
)
def test_gradients_of_the_older_form_are_by_the_names_of_tensors(
    older: Any, found: Any, message: str
) -> None:
    older.impl_save_for_backward("tests::older", func=lambda inputs, output: None)
    older.impl_backward("tests::older", func=lambda ctx, saved, g: found)
    y = torch.ops.tests.older(torch.ones(2, requires_grad=True), 2.0)
    with pytest.raises(RuntimeError, match=message):
        y.sum().backward()


def test_an_op_of_the_older_form_says_what_it_lacks() -> None:
    from pygrad import _custom_ops
    from pygrad.torch._custom_op import impl

    _custom_ops.custom_op("tests::bare", "(Tensor[] xs) -> Tensor")
    try:
        op = impl.get_op("tests::bare")
        with pytest.raises(NotImplementedError, match="there is no cpu impl registered"):
            op([torch.ones(1)])
        with pytest.raises(NotImplementedError, match="was no fake impl or Meta kernel registered"):
            op([torch.ones(1, device="meta")])
        with pytest.raises(NotImplementedError, match="There were no Tensor inputs"):
            op([])
        made = impl.global_registry["tests::bare"]
        made.impl_factory()(lambda xs: torch.ones(3))
        assert op([]).tolist() == [1.0] * 3
        with pytest.raises(RuntimeError, match=r"already has a factory impl .*test_library\.py:"):
            made.impl_factory()(lambda xs: torch.ones(3))
    finally:
        _custom_ops._destroy("tests::bare")
    with pytest.raises(ValueError, match="Could not find the operator tests::bare"):
        impl.get_op("tests::bare")


def test_which_results_of_the_older_form_have_gradients() -> None:
    from pygrad import _custom_ops

    _custom_ops.custom_op("tests::two", "(Tensor x) -> (Tensor[], Tensor)")
    try:
        _custom_ops.impl("tests::two", func=lambda x: ([x * 2, x * 3], x * 4))
        _custom_ops.impl_save_for_backward("tests::two", func=lambda inputs, output: [])
        with pytest.raises(RuntimeError, match="expected output_differentiability to be a list"):
            _custom_ops.impl_backward("tests::two", [True], func=print)
        _custom_ops.impl_backward(
            "tests::two", [False, True], func=lambda ctx, saved, lists, g: {"x": g * 4}
        )
        (a, b), c = torch.ops.tests.two(torch.ones(1, requires_grad=True))
        assert [each.requires_grad for each in (a, b, c)] == [False, False, True]
    finally:
        _custom_ops._destroy("tests::two")


def test_a_second_fake_function_may_be_refused() -> None:
    """Ops that a library defined refuse it; ops of `custom_op` may always be changed."""

    @library.custom_op("tests_fakes::custom", mutates_args=())
    def custom(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    with library._scoped_library("tests_fakes", "FRAGMENT") as lib:
        lib.define("defined(Tensor x) -> Tensor")
        for name in ("tests_fakes::custom", "tests_fakes::defined"):
            library.register_fake(name, lambda x: x.new_empty(1), lib=lib)
            library.register_fake(name, lambda x: x.new_empty(2), lib=lib)
        library.register_fake("tests_fakes::custom", lambda x: x.new_empty(3), allow_override=False)
        with pytest.raises(RuntimeError, match=r"already has a fake impl registered at .*\.py:\d+"):
            library.register_fake("tests_fakes::defined", lambda x: x, allow_override=False)
        x, ops = torch.ones(4, device="meta"), torch.ops.tests_fakes
        assert (ops.custom(x).shape, ops.defined(x).shape) == ((3,), (2,))
    assert ops.custom(x).shape == (3,)


def test_a_function_for_meta_stands_in_for_an_op_of_torch() -> None:
    devices = []

    def note_device(x: Any) -> Any:
        devices.append(x.device.type)
        return x.clone()

    with library._scoped_library("aten", "IMPL") as lib, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lib.impl("hardswish", note_device, "Meta")
        torch.ops.aten.hardswish(torch.ones(2, device="meta"))
        torch.ops.aten.hardswish(torch.ones(2))
    assert devices == ["meta"]


# ------------------------------------------------------------------ values of arguments


@pytest.mark.parametrize(
    ("kind", "value", "taken"),
    [
        ("int", torch.tensor([3]), 3),
        ("int", True, 1),
        ("float", torch.tensor(0.5), 0.5),
        ("float", 2, 2.0),
        ("bool", torch.tensor(1), True),
        ("int[2]", 3, [3, 3]),
        ("int[]", (1, 2), [1, 2]),
        ("float?", None, None),
        ("Device", "cpu", torch.device("cpu")),
        ("Device", torch.device("meta"), torch.device("meta")),
        ("ScalarType", torch.int32, torch.int32),
        ("ScalarType", 6, torch.float32),
        ("Layout", torch.strided, torch.strided),
        ("Layout", 0, torch.strided),
        ("MemoryFormat", torch.contiguous_format, torch.contiguous_format),
    ],
)
def test_a_value_becomes_an_argument_of_its_type(
    lib: Any, kind: str, value: Any, taken: Any
) -> None:
    given = []
    lib.define(f"kept({kind} x) -> ()")
    lib.impl("kept", given.append, "CompositeExplicitAutograd")
    torch.ops.tests_lib.kept(value)
    assert (given, type(given[0])) == ([taken], type(taken))


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("int", 0.5),
        ("int", torch.ones(2)),
        ("int", 2**63),
        ("int", torch.tensor(float("nan"))),
        ("float", 1j),
        ("float", "0.5"),
        ("Device", 3),
        ("ScalarType", 99),
        ("Layout", "strided"),
        ("int[]", "12"),
        ("int[]", 3),
        ("Tensor[]", [None]),
    ],
)
def test_a_value_of_another_type_is_no_argument(lib: Any, kind: str, value: Any) -> None:
    lib.define(f"refused({kind} x) -> ()")
    lib.impl("refused", lambda x: None, "CompositeExplicitAutograd")
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        torch.ops.tests_lib.refused(value)


# ------------------------------------------------------------------ other forms


def test_the_older_form_decorates_functions(lib: Any) -> None:
    @library.define(lib, "doubled(Tensor x) -> Tensor")
    def doubled(x: Tensor) -> Tensor:
        return x * 2

    @library.impl(lib, "doubled", "CPU")
    def other(x: Tensor) -> Tensor:
        return x * 3

    assert repr(lib).startswith("Library(kind=")
    assert torch.ops.tests_lib.doubled(torch.ones(1)).tolist() == [3.0]


def test_rules_are_given_to_ops_as_to_names(lib: Any, cube: Any) -> None:
    lib.define("rules(Tensor x) -> Tensor")
    op, meta = torch.ops.tests_lib.rules.default, torch.ones(3, device="meta")
    library.register_kernel(op, "cpu", lambda x: x + 1, lib=lib)
    library.impl_abstract("tests_lib::rules", lambda x: x.new_empty(2), lib=lib)
    assert op(meta).shape == (2,)
    library.register_fake(op, lambda x: x.new_empty(4), lib=lib)
    assert op(meta).shape == (4,)
    lib._register_fake("rules", lambda x: x.new_empty(5))
    assert op(meta).shape == (5,)
    lib._register_torch_dispatch_rule(op, Told, lambda mode, *_: torch.zeros(1))
    with Told():
        assert op(torch.ones(3)).tolist() == [0.0]
    assert op(torch.ones(1)).tolist() == [2.0]
    library.register_kernel(cube._opoverload, "cpu", lambda x: x + 3)
    library.register_kernel("tests::cube", "meta", lambda x: x)
    assert cube(torch.ones(1)).tolist() == [4.0]


def test_an_op_tells_its_rules(cube: Any) -> None:
    assert (cube._abstract_fn, cube._backward_fn) == (None, None)
    cube.register_fake(torch.empty_like)
    with_gradient(cube)
    assert cube._abstract_fn is torch.empty_like
    assert callable(cube._backward_fn)
    assert cube._opoverload.has_kernel_for_dispatch_key("Autograd")


def test_a_kernel_of_an_op_stays_what_it_was(lib: Any) -> None:
    lib.define("counted(Tensor x, *, int n=2) -> Tensor")
    lib.impl("counted", lambda x, n: x * n, "CPU")
    own = library.get_kernel(torch.ops.tests_lib.counted.default, "CPU")
    assert "tests_lib::counted" in repr(own)
    lib.impl("counted", lambda x, n: x * 0, "CPU")
    keys = torch._C.DispatchKeySet("CPU")
    assert own.call_boxed(keys, torch.ones(1)).tolist() == [2.0]
    assert own.call_boxed(keys, torch.ones(1), n=3).tolist() == [3.0]


def test_functions_for_devices_that_are_not_there_are_taken() -> None:
    lib = library.Library("aten", "IMPL")
    lib.impl("neg", lambda x: x, "CUDA")
    assert torch.ones(1).neg().tolist() == [-1.0]


def test_the_overload_that_a_call_runs_is_told() -> None:
    x, resolve = torch.ones(2), torch._C._jit_resolve_packet
    assert resolve("aten::add", x, x) == "Tensor"
    assert resolve("aten::add", x, 1) == "Tensor"  # a number is wrapped
    assert resolve("aten::add", x, x, out=x) == "out"
    assert resolve("aten::sum", x, dim=[0]) == "dim_IntList"


@pytest.mark.parametrize("name", ["aten::add.Tensor", "aten::absent", "tests::absent"])
def test_an_op_exists_or_not(name: str) -> None:
    assert library._registry.exists(name) is (name == "aten::add.Tensor")


def test_annotations_that_cannot_be_read_have_no_type() -> None:
    def function(x: Absent) -> Tensor: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ValueError, match="has unsupported type"):
        infer_schema(function)
    assert library._infer.tuple_to_list(tuple) is list


def test_vmap_rules_may_give_dims_for_several_results() -> None:
    @custom_op("tests::two", mutates_args=())
    def two(x: Tensor) -> tuple[Tensor, Tensor]:
        return x + 1, x + 2

    @two.register_vmap
    def _(info: Any, in_dims: Any, x: Tensor) -> Any:
        return two(x), (in_dims[0], in_dims[0])

    try:
        found = torch.func.vmap(two)(torch.zeros(3, 2))
        assert [each.tolist() for each in found] == [[[1.0, 1.0]] * 3, [[2.0, 2.0]] * 3]
    finally:
        library._registry.forget(two._entry)
