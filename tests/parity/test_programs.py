"""Random programs: ops, views, in-place writes and backward, in both libraries, step by step."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import Outcome, array, describe, layout, normalize_message, outcome, torch

import pygrad

UNARY = [
    "exp",
    "sin",
    "tanh",
    "relu",
    "neg",
    "abs",
    "sigmoid",
    "square",
    "clone",
    "detach",
    "contiguous",
]
BINARY = ["add", "sub", "mul", "maximum", "minimum", "atan2"]
INPLACE = ["mul_", "add_", "sub_", "copy_"]
INPLACE_UNARY = [
    "exp_",
    "sin_",
    "tanh_",
    "relu_",
    "neg_",
    "zero_",
    "sigmoid_",
    "detach_",
    "requires_grad_",
]
REDUCE = ["sum", "mean", "prod", "amax", "cumsum", "softmax", "logsumexp"]


def small() -> st.SearchStrategy[int]:
    return st.integers(0, 7)


STEP = st.one_of(
    st.tuples(st.just("unary"), st.sampled_from(UNARY), small()),
    st.tuples(st.just("binary"), st.sampled_from(BINARY), small(), small()),
    st.tuples(
        st.just("number"),
        st.sampled_from(["add", "mul", "sub", "add_", "mul_"]),
        small(),
        st.sampled_from([2, 0.5, -1.5]),
    ),
    st.tuples(st.just("inplace"), st.sampled_from(INPLACE), small(), small()),
    st.tuples(st.just("inplace_unary"), st.sampled_from(INPLACE_UNARY), small()),
    st.tuples(st.just("reduce"), st.sampled_from(REDUCE), small(), st.integers(-2, 1)),
    st.tuples(st.just("select"), small(), st.integers(-2, 2), st.integers(-3, 2)),
    st.tuples(st.just("slice"), small(), st.integers(0, 2), st.integers(1, 3), st.integers(1, 2)),
    st.tuples(st.just("transpose"), small(), st.integers(-2, 1), st.integers(-2, 1)),
    st.tuples(st.just("view"), small(), st.sampled_from([(-1,), (2, 3), (3, 2), (1, 6)])),
    st.tuples(st.just("expand"), small(), st.sampled_from([(2, 2, 3), (2, 3), (3, 3)])),
    st.tuples(st.just("assign"), small(), st.integers(-2, 1), small()),
    st.tuples(st.just("cat"), small(), small(), st.integers(-1, 1)),
    st.tuples(st.just("matmul"), small(), small()),
    st.tuples(st.just("masked"), small(), st.sampled_from([0.0, 0.3])),
    st.tuples(st.just("no_grad"), st.sampled_from(["add_", "mul_"]), small()),
    st.tuples(st.just("data"), small()),
    st.tuples(st.just("backward"), small(), st.booleans()),
    st.tuples(st.just("grad"), small(), small(), st.booleans()),
)


def run(step: tuple[Any, ...], library: Any, pool: list[Any]) -> Any:
    """One step on the pool's tensors; what it returns joins the pool."""
    kind, *rest = step

    def pick(k: int) -> Any:
        return pool[k % len(pool)]

    if kind == "unary":
        return getattr(pick(rest[1]), rest[0])()
    if kind == "binary":
        return getattr(library, rest[0])(pick(rest[1]), pick(rest[2]))
    if kind == "number":
        return getattr(pick(rest[1]), rest[0])(rest[2])
    if kind == "inplace":
        return getattr(pick(rest[1]), rest[0])(pick(rest[2]))
    if kind == "inplace_unary":
        return getattr(pick(rest[1]), rest[0])()
    if kind == "reduce":
        return getattr(pick(rest[1]), rest[0])(rest[2])
    if kind == "select":
        return pick(rest[0]).select(rest[1], rest[2])
    if kind == "slice":
        return pick(rest[0])[..., rest[1] : rest[1] + rest[2] : rest[3]]
    if kind == "transpose":
        return pick(rest[0]).transpose(rest[1], rest[2])
    if kind == "view":
        return pick(rest[0]).view(rest[1])
    if kind == "expand":
        return pick(rest[0]).expand(rest[1])
    if kind == "assign":
        pick(rest[0])[rest[1]] = pick(rest[2])
        return None
    if kind == "cat":
        return library.cat([pick(rest[0]), pick(rest[1])], rest[2])
    if kind == "matmul":
        return pick(rest[0]) @ pick(rest[1])
    if kind == "masked":
        x = pick(rest[0])
        return x.masked_fill(x > rest[1], 0.25)
    if kind == "no_grad":
        with library.no_grad():
            return getattr(pick(rest[1]), rest[0])(2)
    if kind == "data":
        return pick(rest[0]).data
    if kind == "backward":
        pick(rest[0]).sum().backward(retain_graph=rest[1])
        return None
    root, leaf, create = rest
    found = library.autograd.grad(
        pick(root).sum(), pick(leaf), create_graph=create, retain_graph=True, allow_unused=True
    )[0]
    # Whether a gradient is a view of something unseen, and by which ops it was made, is left to the
    # library.
    return found if found is None else found.clone()


def clashes(step: tuple[Any, ...], tensors: list[Any]) -> bool:
    """Whether PyTorch would read what the step itself writes: it checks dense operands only."""
    if step[0] not in ("inplace", "assign"):
        return False
    to, source = (
        tensors[step[k] % len(tensors)] for k in ((2, 3) if step[0] == "inplace" else (1, 3))
    )
    shared = to.untyped_storage().data_ptr() == source.untyped_storage().data_ptr()
    same = layout(to) == layout(source) and to.shape == source.shape
    return shared and (step[0] == "assign" or not same)


def pool(library: Any) -> list[Any]:
    rng = np.random.default_rng(0)
    tensors = [
        library.from_numpy(rng.uniform(-1, 1, shape)) for shape in [(2, 3), (2, 3), (3,), ()]
    ]
    for tensor in tensors[:3]:
        tensor.requires_grad_(True)
    return [*tensors, tensors[0] * 2]


def state(tensors: list[Any]) -> list[Any]:
    """All there is to see of the pool."""
    return [
        (
            *describe(t),
            layout(t),
            t.is_leaf,
            t._version,
            t._is_view(),
            (t.grad is None) if t.is_leaf else None,
        )
        for t in tensors
    ]


def assert_close(mine: Any, theirs: Any) -> None:
    np.testing.assert_allclose(array(mine), array(theirs), rtol=1e-7, atol=1e-10)


SAVED = "modified by an inplace operation"


@given(st.lists(STEP, min_size=1, max_size=14))
@settings(
    max_examples=400, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_program_is_the_same_in_both(steps: list[tuple[Any, ...]]) -> None:
    """In "check" mode, where a write to a saved tensor is an error in both."""
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        mine, theirs = pool(pygrad), pool(torch)
        for step in steps:
            if clashes(step, theirs):
                continue
            a: Outcome = outcome(lambda step=step: run(step, pygrad, mine))
            b: Outcome = outcome(lambda step=step: run(step, torch, theirs))
            assert (a.error, normalize_message(a.message)) == (
                b.error,
                normalize_message(b.message),
            ), step
            if a.error:
                continue
            if b.values[0] is not None:
                mine.append(a.values[0])
                theirs.append(b.values[0])
            assert state(mine) == state(theirs), step
            for x, y in zip(mine, theirs, strict=True):
                assert_close(x, y)
                if y.is_leaf and y.grad is not None:
                    assert_close(x.grad, y.grad)


@given(st.lists(STEP, min_size=1, max_size=14))
@settings(
    max_examples=200, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_program_that_pytorch_accepts_needs_no_check_mode(steps: list[tuple[Any, ...]]) -> None:
    """Snapshots differ from PyTorch only where PyTorch raises for a saved tensor that was written
    to.
    """
    mine, theirs = pool(pygrad), pool(torch)
    for step in steps:
        if clashes(step, theirs):
            continue
        b = outcome(lambda step=step: run(step, torch, theirs))
        if SAVED in b.message:
            return
        a = outcome(lambda step=step: run(step, pygrad, mine))
        assert a.error == b.error, step
        if not a.error and b.values[0] is not None:
            mine.append(a.values[0])
            theirs.append(b.values[0])
            assert_close(mine[-1], theirs[-1])


# ------------------------------------------------------------------ hooks, higher order

HOOKED = st.one_of(
    STEP,
    st.tuples(st.just("hook"), small(), st.sampled_from(["look", "double", "zero"])),
    st.tuples(st.just("post_accumulate"), small()),
    st.tuples(st.just("node_hook"), small()),
    st.tuples(st.just("prehook"), small()),
    st.tuples(st.just("retain_grad"), small()),
    st.tuples(st.just("backward"), small(), st.booleans()),
    st.tuples(st.just("second"), small(), small()),
    st.tuples(st.just("third"), small(), small()),
)


def watch(step: tuple[Any, ...], library: Any, tensors: list[Any], seen: list[Any]) -> Any:
    """A step that may set a hook; what hooks see is put down in `seen`, in order."""
    kind, *rest = step
    x = tensors[rest[0] % len(tensors)] if isinstance(rest[0], int) else None
    name = len(seen)

    def note(*gradients: Any) -> None:
        kept = [
            g if g is None else (describe(g)[:2], array(g).round(9).tolist()) for g in gradients
        ]
        seen.append((name, kind, kept))

    if kind == "hook":

        def hook(gradient: Any) -> Any:
            note(gradient)
            return {"look": None, "double": gradient * 2, "zero": gradient * 0}[rest[1]]

        x.register_hook(hook)
    elif kind == "post_accumulate":
        x.register_post_accumulate_grad_hook(lambda t: note(t.grad))
    elif kind == "node_hook":
        if x.grad_fn is not None:
            x.grad_fn.register_hook(lambda inputs, outputs: note(*inputs, *outputs))
    elif kind == "prehook":
        if x.grad_fn is not None:
            x.grad_fn.register_prehook(lambda outputs: note(*outputs))
    elif kind == "retain_grad":
        x.retain_grad()
    elif kind in ("second", "third"):
        leaf = tensors[rest[1] % len(tensors)]
        g = library.autograd.grad(x.sum(), leaf, create_graph=True)[0]
        for _ in range(kind == "third"):
            g = library.autograd.grad((g * g).sum(), leaf, create_graph=True)[0]
        return library.autograd.grad((g * g).sum(), leaf, retain_graph=True)[0].clone()
    else:
        return run(step, library, tensors)
    seen.append((name, kind))
    return None


def follow(
    steps: list[tuple[Any, ...]],
    do: Callable[[tuple[Any, ...], Any, list[Any], list[Any]], Any],
    skips: Callable[[tuple[Any, ...], list[Any]], bool],
) -> None:
    """Runs a program in both libraries, up to its first error: the same events, values, gradients.

    Args:
        do: one step: (step, library, tensors, events) -> a new tensor or None.
        skips: whether a step is left out: (step, PyTorch's tensors) -> bool.
    """
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        mine, theirs = pool(pygrad), pool(torch)
        my_events: list[Any] = []
        their_events: list[Any] = []
        for step in steps:
            if skips(step, theirs):
                continue
            a = outcome(lambda step=step: do(step, pygrad, mine, my_events))
            b = outcome(lambda step=step: do(step, torch, theirs, their_events))
            assert (a.error, normalize_message(a.message)) == (
                b.error,
                normalize_message(b.message),
            ), step
            if a.error and step[0] == "saved_hooks":
                return  # PyTorch packs for an op before it finds that shapes do not fit
            assert repr(my_events) == repr(their_events), step
            if a.error:
                return
            if b.values[0] is not None:
                mine.append(a.values[0])
                theirs.append(b.values[0])
            for x, y in zip(mine, theirs, strict=True):
                assert_close(x, y)
                if y.is_leaf or y.retains_grad:
                    assert (x.grad is None) == (y.grad is None)
                    if y.grad is not None:
                        assert_close(x.grad, y.grad)


@given(st.lists(HOOKED, min_size=1, max_size=14))
@settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_hooks_see_the_same_in_both(steps: list[tuple[Any, ...]]) -> None:
    """Hooks of every kind, retained gradients, second and third order: the same events in order."""
    follow(steps, watch, clashes)


# ------------------------------------------------------------------ custom functions, checkpoints

RICH = st.one_of(
    HOOKED,
    st.tuples(st.just("custom"), small(), st.sampled_from(["cube", "write", "pair", "once"])),
    st.tuples(st.just("checkpoint"), small(), st.booleans(), small()),
    st.tuples(st.just("saved_hooks"), small(), small()),
    st.tuples(st.just("compare_"), small(), st.sampled_from(["gt_", "le_", "logical_not_"])),
    st.tuples(
        st.just("activation"), small(), st.sampled_from(["gelu", "elu", "softplus", "hardtanh"])
    ),
)


def functions(library: Any) -> dict[str, Any]:
    """Custom functions: of higher order, in place, of two outputs, differentiable once."""
    Function = library.autograd.Function

    class Cube(Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 3 * x * x

    class Write(Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    class Pair(Function):  # type: ignore[misc]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            y = x.sin()
            ctx.save_for_backward(x, y)
            signs = x.sign()
            ctx.mark_non_differentiable(signs)
            return y, signs

        @staticmethod
        def backward(ctx: Any, g: Any, _: Any) -> Any:
            x, y = ctx.saved_tensors
            return g * x.cos() + 0 * y

    class Once(Function):  # type: ignore[misc]
        @staticmethod
        def forward(x: Any) -> Any:
            return x.exp()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(output)

        @staticmethod
        @library.autograd.function.once_differentiable
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0]

    return {
        "cube": Cube.apply,
        "write": Write.apply,
        "pair": lambda x: Pair.apply(x)[0],
        "once": Once.apply,
    }


MADE = {library: functions(library) for library in (pygrad, torch)}


def perform(step: tuple[Any, ...], library: Any, tensors: list[Any], seen: list[Any]) -> Any:
    """A step of any kind."""
    kind, *rest = step
    x = tensors[rest[0] % len(tensors)] if isinstance(rest[0], int) else None
    if kind == "custom":
        return MADE[library][rest[1]](x)
    if kind == "checkpoint":
        other = tensors[rest[2] % len(tensors)]
        checkpoint = importlib.import_module(f"{library.__name__}.utils.checkpoint").checkpoint

        def inner(a: Any, b: Any) -> Any:
            seen.append("run")
            return MADE[library]["cube"](a.sin()) * b.sum()

        return checkpoint(inner, x, other, use_reentrant=rest[1])
    if kind == "saved_hooks":

        def pack(saved: Any) -> Any:
            seen.append(("pack", array(saved).round(9).tolist()))
            return saved.detach().clone()

        with library.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
            return x * tensors[rest[1] % len(tensors)].tanh()
    if kind == "compare_":
        return getattr(x, rest[1])(*([] if "not" in rest[1] else [0.5]))
    if kind == "activation":
        return getattr(library.nn.functional, rest[1])(x)
    return watch(step, library, tensors, seen)


def is_refused(step: tuple[Any, ...], tensors: list[Any]) -> bool:
    """Logic on a leaf or a view of one, which pygrad refuses as any other write, and PyTorch does
    not.
    """
    if step[0] != "compare_" or step[2] != "logical_not_":
        return False
    x = tensors[step[1] % len(tensors)]
    return bool(x.requires_grad and (x.is_leaf or x._is_view()))


@given(st.lists(RICH, min_size=1, max_size=14))
@settings(
    max_examples=300, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
def test_custom_functions_and_checkpoints_do_the_same(steps: list[tuple[Any, ...]]) -> None:
    """With hooks, views, writes and higher orders between."""
    follow(steps, perform, lambda step, theirs: clashes(step, theirs) or is_refused(step, theirs))
