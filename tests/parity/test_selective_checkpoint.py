"""Selective checkpointing: what a policy is told, what runs again, what comes out."""

from __future__ import annotations

import functools
import gc
import importlib
import threading
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error, torch

import pygrad
import pygrad.utils._selective as selective

LAYOUT = {"t", "view", "expand", "_unsafe_view", "unsqueeze", "squeeze_", "clone", "transpose"}
"""Ops of PyTorch's inside of a product, which is one op here."""


def module(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.utils.checkpoint")


def inputs(t: Any, *shapes: tuple[int, ...]) -> list[Any]:
    t.manual_seed(0)
    return [t.rand(*shape, dtype=t.float64).requires_grad_() for shape in shapes]


def run(t: Any, function: Any, args: list[Any], policy: Any, **options: Any) -> Any:
    """The checkpointed function's result."""
    made = functools.partial(module(t).create_selective_checkpoint_contexts, policy, **options)
    return module(t).checkpoint(function, *args, use_reentrant=False, context_fn=made)


def count(t: Any, name: str, call: Callable[[], Any]) -> int:
    """How often an op runs in a call."""
    with t.autograd.profiler.profile() as prof:
        call()
    return sum(event.name == f"aten::{name}" for event in prof.function_events)


def attention(t: Any) -> Callable[..., Any]:
    def function(x: Any, w: Any) -> Any:
        q = x @ w
        scores = (q @ q.transpose(-2, -1) / 3).softmax(-1)
        y = t.nn.functional.layer_norm(scores @ q + x, (3,))
        return t.nn.functional.linear(t.nn.functional.gelu(y), w, w[0]) ** 2

    return function


POLICIES = {
    "products": lambda op: str(op) in ("aten.mm.default", "aten.bmm.default", "aten.addmm.default"),
    "all": lambda op: True,
    "none": lambda op: False,
    "cheap ones": lambda op: any(n in str(op) for n in ("gelu", "add", "softmax", "layer_norm")),
}


@pytest.mark.parametrize("name", POLICIES)
def test_gradients_do_not_depend_on_the_policy(name: str) -> None:
    def script(t: Any) -> Any:
        x, w = inputs(t, (2, 4, 3), (3, 3))
        y = run(t, attention(t), [x, w], lambda ctx, op, *args, **kwargs: POLICIES[name](op))
        y.sum().backward()
        grads = x.grad, w.grad
        x.grad = w.grad = None
        attention(t)(x, w).sum().backward()
        return [
            *grads,
            *((a - b).abs().max() < 1e-12 for a, b in zip(grads, (x.grad, w.grad), strict=False)),
        ]

    both(script)


@pytest.mark.parametrize("name", POLICIES)
def test_what_is_kept_does_not_run_again(name: str) -> None:
    def script(t: Any) -> Any:
        (x,) = inputs(t, (3,))
        policy = {"products": "sin", "all": "", "none": "?", "cheap ones": "mul"}[name]
        y = run(t, lambda x: (x.sin() * x).tan(), [x], lambda c, op, *a: policy in str(op)).sum()
        # PyTorch's profile also has the call that is answered from memory.
        return [count(t, "sin", lambda: y.backward()) - (t is torch), x.grad]

    both(script)


def test_policy_is_told_of_each_op() -> None:
    def script(t: Any) -> Any:
        told: list[Any] = []

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> bool:
            out = ctx.op_output
            shape = tuple(out.shape) if hasattr(out, "shape") else len(out)
            if str(op).split(".")[1] not in LAYOUT:
                told.append((str(op), ctx.is_recompute, shape))
            return False

        def function(x: Any, w: Any) -> Any:
            y = (x @ w).relu() + 1
            y = t.nn.functional.linear(y, w, w[0]).sigmoid() * 2 - y / 3
            y = t.nn.functional.linear(y, w).exp_().log()
            y, _places = y.max(0)
            z = t.cat([y[:2], y.pow(2), 2**y, y**y]).tanh().sum(0, keepdim=True)
            z = z.mean() + y.sum() + (y > 0).float().sum() + y.to(t.float32).sum()
            v = x @ x[0] + x[0] @ x[1] + x.softmax(0)[:, 0] + t.where(x > 0, x, 2 * x)[:, 1]
            return z + v.square().clamp(0, 1).var() + t.bmm(x[None], w[None]).norm()

        x, w = inputs(t, (3, 3), (3, 3))
        y = run(t, function, [x, w], policy)
        y.backward()
        return [*told, x.grad, w.grad]

    both(script)


@pytest.mark.parametrize("keep", [True, False])
def test_backward_runs_once_where_something_is_kept(keep: bool) -> None:
    def script(t: Any) -> Any:
        (x,) = inputs(t, (3, 3))
        y = run(t, lambda x: (x @ x).exp(), [x], [t.ops.aten.mm.default] if keep else []).sum()
        y.backward(retain_graph=True)
        return [result_or_error(y.backward), x.grad]

    both(script)


@pytest.mark.parametrize("what", ["packet", "function", "number", "text"])
@pytest.mark.parametrize("listed", [True, False])
def test_errors_of_the_policy(what: str, listed: bool) -> None:
    def script(t: Any) -> Any:
        bad = {"packet": t.ops.aten.mm, "function": len, "number": 3, "text": "mm"}[what]
        text = result_or_error(
            lambda: module(t).create_selective_checkpoint_contexts([bad] if listed else bad)
        )
        return str(text).split(" of type")[0] if listed else isinstance(text, tuple) or text

    both(script)


def test_other_ops_in_backward_are_errors() -> None:
    def script(t: Any) -> Any:
        texts = []
        for first, then in (("sin", "cos"), ("exp", "twice")):
            turn = iter((first, then))

            def function(x: Any, turn: Any = turn) -> Any:
                name = next(turn)
                y = x.exp().exp() if name == "twice" else getattr(x, name)()
                return y * y.sin()

            (x,) = inputs(t, (2,))
            y = run(t, function, [x], lambda ctx, op, *a: False)
            texts.append(result_or_error(lambda y=y: y.sum().backward()))
        return texts

    both(script)


def test_policy_may_compute() -> None:
    def script(t: Any) -> Any:
        (x,) = inputs(t, (4,))

        def policy(ctx: Any, op: Any, *args: Any, **kwargs: Any) -> Any:
            kinds = module(t).CheckpointPolicy
            return kinds.PREFER_SAVE if ctx.op_output.sum() > 1 else kinds.MUST_RECOMPUTE

        run(t, lambda x: (x.exp() * x).sin(), [x], policy).sum().backward()
        return x.grad

    both(script)


def test_random_numbers_several_results_and_writes() -> None:
    def script(t: Any) -> Any:
        def function(x: Any) -> Any:
            y, order = x.sort(0)
            y = t.nn.functional.dropout(y, 0.5) + x
            with t.no_grad():
                scale = y.abs().max()
            z = (y / scale).clone()
            z[0] = 1
            z.mul_(2)
            a, b = z.chunk(2, 1)
            return a.exp() * b + order.sum()

        def grad(name: str) -> Any:
            x = inputs(t, (3, 4))[0]
            run(t, function, [x], lambda c, op, *a, **k: POLICIES[name](op)).sum().backward()
            return x.grad

        return grad

    both(lambda t: script(t)("none"))
    for name in POLICIES:  # PyTorch raises where what is kept is written to afterwards
        assert pygrad.allclose(script(pygrad)(name), script(pygrad)("none"))


def test_custom_function_and_a_checkpoint_inside() -> None:
    def script(t: Any) -> Any:
        class Cube(t.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, x: Any) -> Any:
                ctx.save_for_backward(x)
                return x * x * x

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                (x,) = ctx.saved_tensors
                return g * 3 * x * x

        def function(x: Any) -> Any:
            y = Cube.apply(x.sin()).exp()
            return y * module(t).checkpoint(lambda y: (y.cos() * y).tanh(), y, use_reentrant=False)

        grads = []
        for kept in ("mul", "sin", "exp", "nothing"):
            (x,) = inputs(t, (3,))
            run(t, function, [x], lambda c, op, *a, kept=kept: kept in str(op)).sum().backward()
            grads.append(x.grad)
        return grads

    both(script)


@pytest.mark.parametrize("allow", [True, False])
def test_writing_to_what_is_kept(allow: bool) -> None:
    """In "check" mode as PyTorch; by default what is kept is a snapshot."""

    def script(t: Any) -> Any:
        seen: list[Any] = []

        def function(x: Any) -> Any:
            y = x.sin()
            seen.append(y)
            return y * x

        (x,) = inputs(t, (3,))
        keep = [t.ops.aten.sin.default]
        y = run(t, function, [x], keep, allow_cache_entry_mutation=allow).sum()
        with t.no_grad():
            seen[0].add_(1)
        return [result_or_error(y.backward), x.grad]

    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        both(script)
    (x,) = inputs(pygrad, (3,))
    assert script(pygrad)[0] is None
    assert pygrad.allclose(script(pygrad)[1], x.sin() + x * x.cos())


def test_names_of_ops() -> None:
    names = (
        "mm.default add.Tensor sum.dim_IntList mul_.Tensor pow.Tensor_Scalar index.Tensor".split()
    )

    def script(t: Any) -> Any:
        aten = t.ops.aten
        ops = [functools.reduce(getattr, name.split("."), aten) for name in names]
        return [
            *(
                (repr(op), str(op), op.name(), op.__name__, op.namespace, hash(op) == hash(op))
                for op in ops
            ),
            *(
                op is functools.reduce(getattr, name.split("."), aten)
                for op, name in zip(ops, names, strict=False)
            ),
            *(str(op.overloadpacket) for op in ops),
            repr(aten.mm),
            aten.add.Tensor(t.ones(2), 3),
            aten.mm(t.ones(2, 2), t.ones(2, 2)),
            result_or_error(lambda: aten.no_such_op),
            result_or_error(lambda: aten.mm.no_such_overload),
        ]

    both(script)


INF = float("inf")
OF_THE_DISPATCHER: dict[str, Callable[[Any, Any], Any]] = {
    "slice": lambda aten, x: aten.slice.Tensor(x, 1, 0, 4, 2),
    "slice_from_the_end": lambda aten, x: aten.slice(x, -2, -2, 9),
    "slice_step": lambda aten, x: aten.slice(x, 0, 0, 4, 0),
    "slice_dim": lambda aten, x: aten.slice(x, 3),
    "slice_of_number": lambda aten, x: aten.slice(x.sum()),
    "index": lambda aten, x: aten.index(x, [None, x[0].detach().argsort()]),
    "alias": lambda aten, x: (aten.alias(x), aten.alias(x)._is_view()),
    "_to_copy": lambda aten, x: aten._to_copy(x, dtype=x.dtype),
    "_softmax": lambda aten, x: aten._softmax(x, 1, False),
    "_softmax_half": lambda aten, x: aten._softmax(x, 1, True),
    "_log_softmax": lambda aten, x: aten._log_softmax(x, 0, False),
    "_adaptive_avg_pool2d": lambda aten, x: aten._adaptive_avg_pool2d(x[None], [1, 2]),
    "convolution": lambda aten, x: aten.convolution(
        x[None], x[None, :1], None, [1], [2], [1], False, [0], 4
    ),
    "convolution_transposed": lambda aten, x: aten.convolution(
        x[None], x[:, None], x[0, :2], [2], [1], [1], True, [1], 2
    ),
    "_safe_softmax": lambda aten, x: aten._safe_softmax(
        x.log().masked_fill(x[:, :1] < 0.5, -INF), 1
    ),
    "_softmax_backward_data": lambda aten, x: aten._softmax_backward_data(x, x.sin(), 1, x.dtype),
    "max_pool2d_with_indices_backward": lambda aten, x: aten.max_pool2d_with_indices_backward(
        x[None, :3, :3],
        x[None],
        [2, 2],
        [1, 1],
        [0, 0],
        [1, 1],
        False,
        aten.max_pool2d_with_indices(x[None], [2, 2], [1, 1])[1],
    ),
    "native_dropout_backward": lambda aten, x: aten.native_dropout_backward(x, x > 0.5, 2.0),
    "of_the_torch_namespace": lambda aten, x: aten.renorm(x, 2, 0, 0.5),
    "of_linalg": lambda aten, x: aten.linalg_lu_factor_ex(x)[0],
    "native_group_norm": lambda aten, x: aten.native_group_norm(x, x[0], None, 4, 4, 1, 2, 0.5),
}


@pytest.mark.parametrize("name", OF_THE_DISPATCHER)
def test_ops_of_the_dispatcher(name: str) -> None:
    def script(t: Any) -> Any:
        (x,) = inputs(t, (4, 4))
        result = OF_THE_DISPATCHER[name](t.ops.aten, x)
        results = result if isinstance(result, tuple) else (result,)
        sum((y**2).sum() for y in results if isinstance(y, t.Tensor)).backward()
        return results, x.grad

    both(script)


def test_other_threads_are_not_asked() -> None:
    (x,) = inputs(pygrad, (3,))
    told: list[str] = []
    thread = threading.Thread(target=lambda: told.append(f"done {x.tan().sum().item() > 0}"))

    def function(x: Any) -> Any:
        thread.start()
        thread.join()
        return x.sin()

    run(pygrad, function, [x], lambda ctx, op, *args: told.append(str(op)))
    assert told == ["done True", "aten.sin.default"]
    assert not selective.packers
    assert pygrad._boundary.calls.invoke is pygrad._boundary.calls.call_op


def test_an_error_leaves_nothing_behind() -> None:
    (x,) = inputs(pygrad, (3,))
    with pytest.raises(RuntimeError, match="size"):
        run(pygrad, lambda x: x + pygrad.ones(7), [x], [])
    assert pygrad._boundary.calls.invoke is pygrad._boundary.calls.call_op
    assert not selective.packers
    assert not selective._packed


@pytest.mark.parametrize(
    "shapes", ["3 3", "23 3", "3 32", "23 32", "423 32", "423 3", "423 431", "1423 432"]
)
def test_products_are_told_as_pytorch_computes_them(shapes: str) -> None:
    def script(t: Any) -> Any:
        told: list[str] = []
        left, right = ([int(n) for n in shape] for shape in shapes.split())
        x, y = inputs(t, tuple(left), tuple(right))

        def policy(ctx: Any, op: Any, *args: Any) -> bool:
            if str(op).split(".")[1] not in LAYOUT:
                told.append(str(op))
            return False

        run(t, lambda x, y: (x @ y).exp(), [x, y], policy).sum().backward()
        return [told, x.grad, y.grad]

    both(script)


@pytest.mark.parametrize("kept", [True, False])
def test_ops_of_libraries_are_told_and_kept(kept: bool) -> None:
    def script(t: Any) -> Any:
        calls: list[int] = []
        told: list[str] = []
        with t.library._scoped_library("selective", "FRAGMENT"):
            text = "(Tensor x) -> (Tensor, SymInt)"

            @t.library.custom_op("selective::sine", mutates_args=(), schema=text)  # type: ignore[untyped-decorator]
            def sine(x: Any) -> Any:
                calls.append(1)
                return x.sin() + 0, 2

            def setup(ctx: Any, inputs: Any, output: Any) -> None:
                ctx.save_for_backward(*inputs)

            sine.register_autograd(
                lambda ctx, g, _: g * ctx.saved_tensors[0].cos(), setup_context=setup
            )

            def policy(ctx: Any, op: Any, *args: Any) -> bool:
                told.append(str(op))
                return kept and op is t.ops.selective.sine.default

            def function(x: Any) -> Any:
                y, two = t.ops.selective.sine(x)
                return (y * two * x.exp()).sin()

            (x,) = inputs(t, (3,))
            y = run(t, function, [x], policy).sum()
            y.backward()
            return [len(calls), told, x.grad, t.autograd.grad(function(x).sum(), x)]

    both(script)


def test_the_modes_of_the_two_calls() -> None:
    def script(t: Any) -> Any:
        dispatch = importlib.import_module(f"{t.__name__}.utils._python_dispatch")
        first, again = module(t)._CachingTorchDispatchMode, module(t)._CachedTorchDispatchMode
        seen: list[Any] = []

        class Other(dispatch.TorchDispatchMode):  # type: ignore[misc,name-defined]
            def __torch_dispatch__(
                self, func: Any, types: Any, args: Any = (), kwargs: Any = None
            ) -> Any:
                return func(*args, **(kwargs or {}))

        def function(x: Any) -> Any:
            y = x.cos().exp()
            mode = dispatch._get_current_dispatch_mode()
            seen.append([isinstance(mode, each) for each in (first, again)])
            if isinstance(mode, first):
                kept = mode.storage[t.ops.aten.exp.default][0].val
                seen.append([kept, kept.requires_grad])
            with Other() as other:
                seen.append(dispatch._get_current_dispatch_mode() is other)
            return y.sin()

        (x,) = inputs(t, (3,))
        outside = Other()
        with outside:
            y = run(t, function, [x], lambda *args: True).sum()
            seen.append(dispatch._get_current_dispatch_mode() is outside)
        y.backward()
        return [*seen, dispatch._get_current_dispatch_mode(), x.grad]

    both(script)


def test_what_is_kept_goes_with_the_graph_or_the_backward() -> None:
    def script(t: Any) -> Any:
        kept: list[Any] = []

        def function(x: Any) -> Any:
            y = x.cos().exp()
            mode = current()
            if isinstance(mode, module(t)._CachingTorchDispatchMode):
                kept.append(weakref.ref(mode.storage[t.ops.aten.exp.default][0].val))
            return y.sin()

        name = f"{t.__name__}.utils._python_dispatch"
        current = importlib.import_module(name)._get_current_dispatch_mode
        (x,) = inputs(t, (3,))
        y = run(t, function, [x], lambda *args: True)
        found = [kept[0]() is None]
        del y
        found.append(kept[0]() is None)
        y = run(t, function, [x], lambda *args: True)
        y.sum().backward(retain_graph=True)
        return [*found, kept[1]() is None]

    gc.disable()
    try:
        with pygrad.autograd.graph.set_saved_tensor_mode("check"):
            both(script)
    finally:
        gc.enable()
