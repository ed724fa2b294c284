"""Forward mode over the table: tangents against central differences and against reverse mode,
first and second order; then views, writes in place, and what a level leaves behind.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    array_of,
    assert_same,
    dependent,
    differentiable_outputs,
    floating,
    leaves_nothing,
    run,
    sweep_entries,
    with_grad,
)
from samples import Entry
from sampling import Array, Call, fill_sample
from special_points import POINTS, sample_at_point
from test_gradients import STEP, contract, differentiable, inputs, outputs, weights

import pygrad
from pygrad._transforms.vmap import is_batchedtensor
from pygrad.autograd import forward_ad as fw

pytestmark = pytest.mark.filterwarnings("ignore")

INTERNAL = {"_delayed_error", "_save_tensor"}
"""Parts of the custom functions, tested with them."""

PADDED = {"embedding"}
"""Ops whose gradient leaves out what their tangent does not: as PyTorch's."""


BATCHES = {"_vmap_dual"}
"""Ops that make a batch of what is none."""


def has_tangents(entry: Entry) -> bool:
    return differentiable(entry) and entry.name not in INTERNAL


def moving(sample: Call, arrays: list[Array]) -> list[int]:
    """Which arrays the op has a derivative by."""
    free = enumerate(zip(arrays, sample.tensors(), strict=True))
    return [k for k, (a, what) in free if a.dtype == np.float64 and not what.constant]


def directions(sample: Call, arrays: list[Array], seed: int) -> dict[int, Array]:
    """A tangent for each array that moves; symmetric matrices stay so."""
    rng = np.random.default_rng(seed)
    way = {k: np.asarray(rng.uniform(-1, 1, arrays[k].shape)) for k in moving(sample, arrays)}
    for k, what in enumerate(sample.tensors()):
        if k in way and what.kind == "definite":
            way[k] = way[k] + np.swapaxes(way[k], -1, -2)
    return way


def duals(made: list[Any], tangents: dict[int, Any]) -> list[Any]:
    """The tensors, those with a tangent as dual ones."""
    return [fw.make_dual(t, tangents[k]) if k in tangents else t for k, t in enumerate(made)]


def tensors(arrays: dict[int, Array], grad: bool = False) -> dict[int, Any]:
    """Tensors of arrays."""
    return {k: pygrad.from_numpy(a.copy()).requires_grad_(grad) for k, a in arrays.items()}


def results(entry: Entry, sample: Call, made: list[Any]) -> list[Any]:
    """The floating outputs of a call."""
    return floating(run(entry, *fill_sample(sample, made)))


def value(entry: Entry, sample: Call, arrays: list[Array]) -> float:
    """The outputs that depend on the inputs, as one number."""
    return float(contract(outputs(entry, sample, arrays)[0], 1).item())


def contracted_tangent(found: list[Any], seed: int) -> Any:
    """The tangents of some outputs as one number, weighted as `contract` weights values."""
    parts = [fw.unpack_dual(t).tangent for t in found]
    total = pygrad.zeros((), dtype=pygrad.float64)
    for tangent, weight in zip(parts, weights(found, seed), strict=True):
        if tangent is not None:
            total = total + (tangent * weight).sum()
    return total


def move(arrays: list[Array], way: dict[int, Array], step: float) -> list[Array]:
    """The arrays, a step along a direction."""
    return [np.asarray(a + step * way[k]) if k in way else a for k, a in enumerate(arrays)]


@sweep_entries(has_tangents)
@leaves_nothing
def test_tangent(entry: Entry, sample: Call) -> None:
    """J t is the slope along t, and agrees with <J^T v, t>."""
    arrays = inputs(sample)
    way = directions(sample, arrays, 5)
    made = with_grad(sample, arrays)
    recorded = differentiable_outputs(entry, results(entry, sample, made), made)
    if not recorded:
        pytest.skip("nothing is differentiable")
    back = pygrad.autograd.grad(
        contract(recorded, 1), [made[k] for k in way], materialize_grads=True
    )
    expected = sum(float((g.numpy() * way[k]).sum()) for k, g in zip(way, back, strict=True))
    plain = [pygrad.from_numpy(a.copy()) for a in arrays]
    with fw.dual_level():
        found = results(entry, sample, duals(plain, tensors(way)))
        for tensor in found:
            tangent = fw.unpack_dual(tensor).tangent
            if tangent is not None:
                assert (tangent.shape, tangent.dtype) == (tensor.shape, tensor.dtype)
                assert tangent.stride() == tensor.stride()
                assert not tangent.requires_grad
        mine = float(contracted_tangent(dependent(entry, found), 1).item())
    above, below = (value(entry, sample, move(arrays, way, s)) for s in (STEP, -STEP))
    np.testing.assert_allclose(mine, (above - below) / (2 * STEP), rtol=1e-4, atol=1e-6)
    if entry.name not in PADDED:
        np.testing.assert_allclose(mine, expected, rtol=1e-9, atol=1e-12)


def gradient_along(entry: Entry, sample: Call, arrays: list[Array], way: dict[int, Array]) -> float:
    """<J^T v, way> at some arrays."""
    made = with_grad(sample, arrays)
    found = differentiable_outputs(entry, results(entry, sample, made), made)
    got = pygrad.autograd.grad(contract(found, 1), [made[k] for k in way], materialize_grads=True)
    return sum(float((g.numpy() * way[k]).sum()) for k, g in zip(way, got, strict=True))


@sweep_entries(has_tangents)
@leaves_nothing
def test_forward_over_reverse(entry: Entry, sample: Call) -> None:
    """The tangent of a gradient is the slope of the gradient."""
    arrays = inputs(sample)
    way, other = directions(sample, arrays, 5), directions(sample, arrays, 6)
    if not outputs(entry, sample, arrays)[0]:
        pytest.skip("nothing is differentiable")
    mine = 0.0
    with fw.dual_level():
        made = duals(with_grad(sample, arrays), tensors(way))
        found = differentiable_outputs(entry, results(entry, sample, made), made)
        got = pygrad.autograd.grad(
            contract(found, 1), [made[k] for k in way], materialize_grads=True
        )
        for k, g in zip(way, got, strict=True):
            tangent = fw.unpack_dual(g).tangent
            if tangent is not None:
                mine += float((tangent.numpy() * other[k]).sum())
    above, below = (
        gradient_along(entry, sample, move(arrays, way, s), other) for s in (STEP, -STEP)
    )
    np.testing.assert_allclose(mine, (above - below) / (2 * STEP), rtol=1e-4, atol=1e-5)


@sweep_entries(has_tangents)
@leaves_nothing
def test_reverse_over_forward(entry: Entry, sample: Call) -> None:
    """The gradients of a tangent: by the inputs the slope of J^T, by the input's tangent J^T."""
    arrays = inputs(sample)
    way, other = directions(sample, arrays, 5), directions(sample, arrays, 6)
    if not outputs(entry, sample, arrays)[0]:
        pytest.skip("nothing is differentiable")
    with fw.dual_level():
        made, along = with_grad(sample, arrays), tensors(way, grad=True)
        found = differentiable_outputs(entry, results(entry, sample, duals(made, along)), made)
        total = contracted_tangent(found, 1)
    wanted = [made[k] for k in way] + list(along.values())
    if total.requires_grad:
        got = list(pygrad.autograd.grad(total, wanted, materialize_grads=True))
    else:  # which says that there is no tangent, wherever the inputs are
        got = [pygrad.zeros_like(each) for each in wanted]
    by_input = sum(
        float((g.numpy() * other[k]).sum()) for k, g in zip(way, got[: len(way)], strict=True)
    )
    by_tangent = sum(
        float((g.numpy() * other[k]).sum()) for k, g in zip(way, got[len(way) :], strict=True)
    )
    np.testing.assert_allclose(by_tangent, gradient_along(entry, sample, arrays, other), rtol=1e-9)
    above, below = (
        gradient_along(entry, sample, move(arrays, other, s), way) for s in (STEP, -STEP)
    )
    np.testing.assert_allclose(by_input, (above - below) / (2 * STEP), rtol=1e-4, atol=1e-5)


def both(push: Any, way: dict[int, Array], other: dict[int, Array]) -> tuple[Any, Any]:
    """Maps a function over two sets of tangents as one batch, and over one after the other."""
    pairs = [tensors(way), tensors(other)]
    batch = [pygrad.stack([each[k] for each in pairs]) for k in way]
    mapped = pygrad.vmap(lambda *ts: push(dict(zip(way, ts, strict=True))), randomness="same")
    return mapped(*batch), [pygrad.stack(ts) for ts in zip(*map(push, pairs), strict=True)]


def tangents_of(found: list[Any]) -> list[Any]:
    """The tangents of tensors, zeros where they have none."""
    parts = [fw.unpack_dual(y) for y in found]
    return [pygrad.zeros_like(p.primal) if p.tangent is None else p.tangent for p in parts]


def batchable(entry: Entry, sample: Call) -> tuple[list[Array], dict[int, Array], dict[int, Array]]:
    """The arrays of a call, and two directions."""
    arrays = inputs(sample)
    way, other = directions(sample, arrays, 5), directions(sample, arrays, 6)
    if not way or not outputs(entry, sample, arrays)[0]:
        pytest.skip("nothing is differentiable")
    return arrays, way, other


@sweep_entries(lambda entry: has_tangents(entry) and entry.name not in BATCHES)
@leaves_nothing
def test_batch_of_tangents_at_one_point(entry: Entry, sample: Call) -> None:
    """Each slice is the tangent for that slice alone; the value is no batch."""
    arrays, way, other = batchable(entry, sample)
    made = [pygrad.from_numpy(a.copy()) for a in arrays]

    def push(along: dict[int, Any]) -> tuple[Any, ...]:
        with fw.dual_level():
            found = dependent(entry, results(entry, sample, duals(made, along)))
            for y in found:
                assert not is_batchedtensor(fw.unpack_dual(y).primal)
            return tuple(tangents_of(found))

    for batch, expected in zip(*both(push, way, other), strict=True):
        np.testing.assert_allclose(array_of(batch), array_of(expected), rtol=1e-10, atol=1e-12)


@sweep_entries(lambda entry: has_tangents(entry) and "inplace" in entry.words)
@leaves_nothing
def test_batch_of_tangents_of_what_is_written_in_place(entry: Entry, sample: Call) -> None:
    """A view gets the tangents of the op's result, and its base those in its place."""
    arrays, way, other = batchable(entry, sample)
    written = getattr(pygrad.Tensor, entry.name + "_", None)
    if written is None or 0 not in way or not sample.tensors()[0:1]:
        pytest.skip("the op has no form in place")

    def push(along: dict[int, Any]) -> tuple[Any, ...]:
        made = [pygrad.from_numpy(a.copy()) for a in arrays]
        base = pygrad.stack([made[0], pygrad.zeros_like(made[0])])
        with fw.dual_level():
            given = duals(made, along)
            given[0] = base[0].copy_(given[0])
            args, kwargs = fill_sample(sample, given)
            if args[0] is not given[0]:
                pytest.skip("the op writes to another tensor")
            pygrad.manual_seed(0)
            try:
                written(*args, **kwargs)
            except PROPER_ERRORS:
                pytest.skip("the result does not fit")
            return tuple(tangents_of([given[0], base]))

    for batch, expected in zip(*both(push, way, other), strict=True):
        np.testing.assert_allclose(array_of(batch), array_of(expected), rtol=1e-10, atol=1e-12)


@sweep_entries(has_tangents)
@leaves_nothing
def test_a_linearized_function_is_kept(entry: Entry, sample: Call) -> None:
    """Its map gives the tangents at the point as it was, whatever is written there later."""
    arrays = inputs(sample)
    way = directions(sample, arrays, 5)
    made, along = [pygrad.from_numpy(a.copy()) for a in arrays], tensors(way)
    if not way or not outputs(entry, sample, arrays)[0]:
        pytest.skip("nothing is differentiable")

    def function(*moved: Any) -> list[Any]:
        given = dict(zip(way, moved, strict=True))
        return results(entry, sample, [given.get(k, t) for k, t in enumerate(made)])

    primals, tangent = tuple(made[k] for k in way), tuple(along.values())
    pygrad.manual_seed(1)
    value, expected = pygrad.func.jvp(function, primals, tangent)
    for t, a in zip(made, arrays, strict=True):
        t.copy_(pygrad.from_numpy(a))  # an op in place has written to it
    pygrad.manual_seed(1)
    output, push = pygrad.func.linearize(function, *primals)
    for t in made:
        t.fill_(0)
    for found, wanted in ((output, value), (push(*tangent), expected)):
        for mine, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(
                mine.numpy(force=True), theirs.numpy(force=True), rtol=1e-12, atol=1e-14
            )


def test_a_linearized_function_runs_once() -> None:
    seen = []

    def noisy(x: Any) -> Any:
        seen.append(x)
        x.add_(1)
        return {"y": pygrad.nn.functional.dropout(x, 0.5) * state, "rest": (x.argmax(), None, 3)}

    x, state = pygrad.ones(64), pygrad.full((64,), 2.0)
    output, push = pygrad.func.linearize(noisy, x)
    state.zero_()
    first, second = push(pygrad.ones(64)), push(pygrad.ones(64))
    assert len(seen) == 1
    assert x.eq(2).all()
    assert first["y"].tolist() == second["y"].tolist() == output["y"].div(2).tolist()
    assert first["rest"] == (0, None, 3)


def test_a_linearized_function_uses_its_own_jvp() -> None:
    class Tripled(pygrad.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x * 3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None: ...

        @staticmethod
        def jvp(ctx: Any, tangent: Any) -> Any:
            return tangent * 3

    assert (
        pygrad.func.linearize(Tripled.apply, pygrad.ones(2))[1](pygrad.ones(2)).tolist() == [3] * 2
    )


def test_maps_of_tangents_nest_in_forward_mode() -> None:
    x, one = pygrad.tensor([1.0, 2.0], dtype=pygrad.float64), pygrad.ones(2, dtype=pygrad.float64)
    jvp, cos, sin = pygrad.func.jvp, x.cos().tolist(), x.sin().neg().tolist()
    by_point = jvp(lambda a: pygrad.func.linearize(pygrad.sin, a)[1](one), (x,), (one,))
    by_direction = jvp(pygrad.func.linearize(pygrad.sin, x)[1], (one,), (x,))
    assert [each.tolist() for each in by_point] == [cos, sin]
    assert [each.tolist() for each in by_direction] == [cos, (x.cos() * x).tolist()]
    assert all(each.grad_fn is None for each in (*by_point, *by_direction))

    def gradient_by_direction(a: Any) -> Any:
        return pygrad.func.grad(lambda t: jvp(pygrad.sin, (a,), (t,))[1].sum())(one)

    assert [each.tolist() for each in jvp(gradient_by_direction, (x,), (one,))] == [cos, sin]


SPECIAL = POINTS if os.environ.get("PYGRAD_EVERY_POINT") else ("zeros", "repeats")

OTHERWISE_AT_ZERO = {
    "nn.functional.lp_pool1d": "a root at 0, in front of which the gradient alone has a mask",
    "nn.functional.lp_pool2d": "nn.functional.lp_pool1d",
    "nn.functional.lp_pool3d": "nn.functional.lp_pool1d",
    "nn.functional.gaussian_nll_loss": "the gradient passes a bound, the tangent does not",
}
"""Ops whose tangents at zeros are PyTorch's and not those of the gradient."""


@pytest.mark.parametrize("point", SPECIAL)
@sweep_entries(has_tangents)
def test_tangent_at_special_points(entry: Entry, sample: Call, point: str) -> None:
    """The tangent agrees with the gradient where that is a number; with the slope where indices
    repeat, since a gradient goes to each of several writes.
    """
    found = sample_at_point(sample, point)
    if (
        found is None
        or entry.name in PADDED
        or (entry.id in OTHERWISE_AT_ZERO and point == "zeros")
    ):
        pytest.skip("no such point")
    sample, arrays = found
    way = directions(sample, arrays, 5)
    try:
        made = with_grad(sample, arrays)
        recorded = [y for y in results(entry, sample, made) if y.requires_grad]
        if not way or not recorded or (point == "empty" and contract(recorded, 1).isnan().item()):
            pytest.skip("nothing is differentiable")
        wanted = [made[k] for k in way]
        back = pygrad.autograd.grad(contract(recorded, 1), wanted, materialize_grads=True)
    except (*PROPER_ERRORS, ZeroDivisionError):
        pytest.skip("not of such numbers")
    expected = sum(float((g.numpy() * way[k]).sum()) for k, g in zip(way, back, strict=True))
    if not math.isfinite(expected):
        pytest.skip("no gradient")
    with fw.dual_level():
        plain = [pygrad.from_numpy(a.copy()) for a in arrays]
        outs = results(entry, sample, duals(plain, tensors(way)))
        mine = float(contracted_tangent(dependent(entry, outs), 1).item())
    if point == "repeats":
        above, below = (value(entry, sample, move(arrays, way, s)) for s in (STEP, -STEP))
        np.testing.assert_allclose(mine, (above - below) / (2 * STEP), rtol=1e-4, atol=1e-6)
    else:
        np.testing.assert_allclose(mine, expected, rtol=1e-8, atol=1e-10)


WRITES = {
    "whole": lambda x: x,
    "view": lambda x: x.view(2, 2),
    "transposed": lambda x: x.t(),
    "part": lambda x: x[1:],
}


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("part", WRITES)
def test_tangents_of_writes_in_check_mode(part: str, recorded: bool) -> None:
    """What an op saves for its tangent is of before its own write, which is no mutation of it."""

    def tangents() -> list[Any]:
        x = pygrad.full((2, 2), 2.0, dtype=pygrad.float64, requires_grad=recorded)
        v = pygrad.arange(4.0, dtype=pygrad.float64).view(2, 2)
        with fw.dual_level():
            base = fw.make_dual(x * 1, v)
            dual = fw.make_dual(WRITES[part](x.detach() + 1), WRITES[part](v * 10))
            to = WRITES[part](base)
            to.mul_(dual)
            to.sigmoid_()
            to.pow_(3)
            return [fw.unpack_dual(each).tangent.detach().tolist() for each in (base, to)]

    expected = tangents()
    with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        assert tangents() == expected


LAST_WRITES = {
    "index_put": lambda x, i, v: x.index_put((i,), v),
    "setitem": lambda x, i, v: [y := x.clone(), y.__setitem__(i, v)][0],
    "scatter": lambda x, i, v: x.scatter(0, i, v),
    "put": lambda x, i, v: x.put(i, v),
    "index_copy": lambda x, i, v: x.index_copy(0, i, v),
    "max_unpool1d": lambda x, i, v: pygrad.nn.functional.max_unpool1d(v[None], i[None], 1)[0] + x,
}


@pytest.mark.parametrize("write", LAST_WRITES)
def test_tangent_of_the_last_write_to_a_place_counts(write: str) -> None:
    x, index = pygrad.zeros(3), pygrad.tensor([0, 0, 2])
    v = pygrad.tensor([1.0, 2.0, 3.0])
    y, tangent = pygrad.func.jvp(lambda v: LAST_WRITES[write](x, index, v), (v,), (v * 10,))
    assert (y.tolist(), tangent.tolist()) == ([2, 0, 3], [20, 0, 30])


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_tangent_of_what_an_index_smaller_than_src_reaches(reduce: str, include_self: bool) -> None:
    x = pygrad.tensor([[3.0, 0.5], [2.0, 7.0]], dtype=pygrad.float64)
    src = pygrad.tensor([[1.0, 0.0, 3.0], [4.0, 5.0, 6.0]], dtype=pygrad.float64)
    index, rows = pygrad.tensor([[0, 0]]), pygrad.tensor([[0, 0]])

    def reduce_all(x: Any, src: Any) -> Any:
        return x.scatter_reduce(1, index, src, reduce, include_self=include_self)

    def reduce_part(x: Any, src: Any) -> Any:
        return x.scatter_reduce(1, rows, src[:1, :2], reduce, include_self=include_self)

    ways = (x * 0.3 - 1, src * 0.7 + 1)
    assert_same(
        pygrad.func.jvp(reduce_all, (x, src), ways), pygrad.func.jvp(reduce_part, (x, src), ways)
    )


def test_tangent_of_a_product_of_several_zeros() -> None:
    """The transpose of the gradient could not give this tangent."""
    src, index = pygrad.zeros(3), pygrad.tensor([0, 0, 1])
    way = pygrad.tensor([5.0, 6.0, 7.0])
    f = lambda s: pygrad.tensor([2.0, 3.0]).scatter_reduce(0, index, s, "prod")  # noqa: E731
    assert pygrad.func.jvp(f, (src,), (way,))[1].tolist() == [0, 21]


def test_tangent_of_a_deviation_that_is_zero() -> None:
    x = pygrad.full((3,), 2.0, dtype=pygrad.float64)
    jacobian = pygrad.func.jacfwd(lambda x: (x - x.mean()) / (x.std() + 0.5))(x)
    assert_same(jacobian, (pygrad.eye(3, dtype=pygrad.float64) - 1 / 3) / 0.5, rtol=1e-12)
