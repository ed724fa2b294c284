"""vmap over the op table: mapping a call equals making it for each slice; so do its gradients, its
in-place form, and two levels at once.
"""

from __future__ import annotations

import gc
import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    RANDOM,
    UNINITIALISED,
    array_of,
    arrays,
    floating,
    leaves,
    leaves_nothing,
    sweep_entries,
)
from samples import Entry, samples
from sampling import Array, Call, fill_sample, numbers

import pygrad
from pygrad import vmap
from pygrad._table import functions
from pygrad._transforms.vmap import is_batchedtensor
from pygrad.autograd import forward_ad as fw
from pygrad.profiler import profile

pytestmark = pytest.mark.filterwarnings("ignore")

REFUSED = set(
    "nonzero where _where_nonzero unique unique_consecutive item allclose equal masked_select"
    " one_hot t_ as_strided_ resize_ resize_as_ set_ is_set_to requires_grad_ argwhere"
    " retain_grad bincount repeat_interleave".split()
)
"""Ops that PyTorch refuses to map, or whose results differ in shape from slice to slice."""

ABOUT_THE_TENSOR = {"is_contiguous", "_is_view", "is_same_size", "result_type", "can_cast"}
"""Ops that say the same of every slice."""

ABOUT_STRIDES = {"view", "as_strided", "view_copy", "as_strided_copy", "view_as_complex"}
"""Ops that depend on how a slice lies in memory."""

OPS_OF_THE_HOST = {"_div", "_index", "_where_nonzero", "_tensordot", "_delayed_error"}
"""Ops that only the host calls; the others of its own are services about the tensor itself."""

STREAM = RANDOM | {"randperm", "rand", "randn", "randint", "scaled_dot_product_attention"}


def mappable(entry: Entry) -> bool:
    if entry.space == "internal" and entry.name[0] == "_" and entry.name not in OPS_OF_THE_HOST:
        return False
    skipped = UNINITIALISED | STREAM | ABOUT_THE_TENSOR | {"as_strided_scatter"}
    return entry.name not in skipped  # the last one depends on where in its storage a slice lies


def slices(sample: Call, count: int = 2) -> list[list[Array]]:
    """By tensor of the sample: different numbers of the same kind for each slice."""
    return [
        [numbers(what, "float64", salt + 40 * i) for i in range(count)]
        for salt, what in enumerate(sample.tensors(), 1)
    ]


def patterns(n: int) -> list[tuple[bool, ...]]:
    """Which of n tensors are batched: all, only the first, all but the first, only the last."""
    every = tuple([True] * n)
    found = [every]
    if n > 1:
        first = (True, *[False] * (n - 1))
        last = (*[False] * (n - 1), True)
        found += [first, tuple(not b for b in first), last]
    return list(dict.fromkeys(found))


def caller(function: Callable[..., Any], sample: Call, mutates: bool) -> Callable[..., Any]:
    """A function of the sample's tensors alone."""

    def call(*tensors: Any) -> Any:
        args, kwargs = fill_sample(sample, list(tensors))
        if mutates and isinstance(args[0], pygrad.Tensor):
            args[0] = args[0].clone()
        return function(*args, **kwargs)

    return call


def one_by_one(call: Callable[..., Any], columns: list[list[Any]]) -> list[list[Any]] | None:
    """The tensors of each slice's result; None if a slice fails or gives other shapes or none."""
    try:
        results = [leaves(call(*row)) for row in zip(*columns, strict=True)]
    except pygrad.EngineError:
        raise
    except PROPER_ERRORS:
        return None
    shapes = [[t.shape for t in result] for result in results]
    return results if shapes[0] and all(s == shapes[0] for s in shapes) else None


def compare(got: Any, expected: list[list[Any]]) -> None:
    assert len(leaves(got)) == len(expected[0])
    for mine, parts in zip(leaves(got), zip(*expected, strict=True), strict=True):
        assert mine.dtype == parts[0].dtype
        assert mine.shape == (len(parts), *parts[0].shape)
        other = np.stack(arrays(list(parts)))
        np.testing.assert_allclose(array_of(mine), other, rtol=1e-11, atol=1e-12)


def check(function: Callable[..., Any], sample: Call, mutates: bool, name: str, end: bool) -> None:
    """Maps the sample in every pattern, and compares with the slices."""
    data = slices(sample)
    call = caller(function, sample, mutates)
    for pattern in patterns(len(data)):
        rows = [
            [pygrad.from_numpy((a if batched else column[0]).copy()) for a in column]
            for column, batched in zip(data, pattern, strict=True)
        ]
        expected = one_by_one(call, rows)
        inputs, dims = [], []
        for column, batched in zip(rows, pattern, strict=True):
            at = column[0].ndim if end else 0
            inputs.append(pygrad.stack(column, at) if batched else column[0])
            dims.append(at if batched else None)
        mapped = vmap(call, in_dims=tuple(dims))
        if expected is None:
            with pytest.raises(PROPER_ERRORS):
                compare(mapped(*inputs), [])
            continue
        try:
            got = mapped(*inputs)
        except RuntimeError as error:
            shared = "running_mean" in str(error)  # statistics that all slices would write to
            assert name in REFUSED or shared or (mutates and not pattern[0]), str(error)
            continue
        compare(got, expected)


@sweep_entries(mappable)
@pytest.mark.parametrize("end", [False, True])
@leaves_nothing
def test_mapping_equals_the_slices(entry: Entry, sample: Call, end: bool) -> None:
    if not sample.tensors() or (end and entry.name in ABOUT_STRIDES):
        pytest.skip("nothing to compare")
    check(entry.function, sample, entry.mutates, entry.name, end)


@sweep_entries(
    lambda entry: (
        mappable(entry) and "inplace" in entry.words and entry.space in ("torch", "method")
    )
)
@leaves_nothing
def test_mapping_in_place_equals_the_slices(entry: Entry, sample: Call) -> None:
    function = functions.SPACES[entry.space][entry.name + "_"]
    if sample.args and sample.tensors():
        check(function, sample, True, entry.name, False)


def weigh(tensors: list[Any]) -> Any:
    """One number of all floating results, each element with a weight of its own."""
    total = pygrad.zeros((), dtype=pygrad.float64)
    for k, tensor in enumerate(floating(tensors)):
        if tensor.requires_grad:
            weights = pygrad.arange(1, tensor.numel() + 1, dtype=pygrad.float64) + k
            total = total + (tensor * weights.view(tensor.shape).cos()).sum()
    return total


def gradients(results: list[Any], inputs: list[Any]) -> list[Any] | None:
    total = weigh(results)
    if not total.requires_grad:
        return None
    return list(pygrad.autograd.grad(total, inputs, materialize_grads=True))


@sweep_entries(lambda entry: mappable(entry) and not entry.mutates)
@leaves_nothing
def test_gradients_flow_through_the_map(entry: Entry, sample: Call) -> None:
    what = sample.tensors()
    wanted = [i for i, x in enumerate(what) if x.dtype is None and not x.constant]
    if not wanted or entry.name in ABOUT_STRIDES:
        pytest.skip("nothing to compare")
    call = caller(entry.function, sample, False)
    whole = [pygrad.from_numpy(np.stack(column)) for column in slices(sample)]
    for i in wanted:
        whole[i].requires_grad_()
    expected = one_by_one(call, [list(tensor.unbind(0)) for tensor in whole])
    if expected is None or entry.name in REFUSED:
        pytest.skip("the slices fail")
    stacked = [pygrad.stack(list(parts)) for parts in zip(*expected, strict=True)]
    try:
        theirs = gradients(stacked, [whole[i] for i in wanted])
    except (NotImplementedError, RuntimeError):
        pytest.skip("PyTorch has no derivative either, by one of its inputs")
    mine = gradients(leaves(vmap(call)(*whole)), [whole[i] for i in wanted])
    assert (mine is None) == (theirs is None)
    for a, b in zip(mine or [], theirs or [], strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)


@sweep_entries(lambda entry: mappable(entry) and entry.name not in REFUSED)
@leaves_nothing
def test_two_levels_equal_the_slices(entry: Entry, sample: Call) -> None:
    data = slices(sample, 4)
    call = caller(entry.function, sample, entry.mutates)
    rows = [[pygrad.from_numpy(a.copy()) for a in column] for column in data]
    expected = one_by_one(call, rows) if data else None
    if expected is None:
        pytest.skip("the slices fail")
    inputs = [pygrad.stack(column).view(2, 2, *column[0].shape) for column in rows]
    got = vmap(vmap(call))(*inputs)
    flat = [t.reshape(4, *t.shape[2:]) for t in leaves(got)]
    compare(flat, expected)
    # The second tensor is batched by the inner level alone, the first by the outer alone.
    if len(rows) == 2 and not entry.mutates:
        outer = [[rows[0][i], rows[1][j]] for i in range(2) for j in range(2)]
        expected = one_by_one(call, [list(column) for column in zip(*outer, strict=True)])
        if expected is not None:
            a, b = pygrad.stack(rows[0][:2]), pygrad.stack(rows[1][:2])
            got = vmap(lambda x: vmap(lambda y: call(x, y))(b))(a)
            compare([t.reshape(4, *t.shape[2:]) for t in leaves(got)], expected)


def steps(call: Callable[..., Any], columns: list[list[Array]], on: tuple[bool, ...]) -> list[int]:
    """How many ops run for maps over two and three slices of the tensors that are `on`."""
    mapped = vmap(call, in_dims=tuple(0 if batched else None for batched in on))
    found = []
    for n in (2, 3):
        chosen = zip(columns, on, strict=True)
        given = [np.stack(a[:n]) if batched else a[0] for a, batched in chosen]
        with profile() as seen:
            mapped(*map(pygrad.from_numpy, given))
        found.append(len(seen.events()))
    return found


@sweep_entries(
    lambda entry: (
        mappable(entry)
        and any(word.startswith("batch:") for word in entry.words - {"batch:itself"})
        and any(sample.tensors() for sample in samples(entry))
    )
)
def test_an_op_of_a_kind_takes_as_many_steps_however_long_the_batch(entry: Entry) -> None:
    for sample in samples(entry):
        call, columns = caller(entry.function, sample, entry.mutates), slices(sample, 3)
        for pattern in itertools.product([True, False], repeat=len(columns)):
            try:
                if any(pattern) and len(set(steps(call, columns, pattern))) == 1:
                    return
            except PROPER_ERRORS:
                continue
    pytest.fail(f"{entry.id} is always done slice by slice")


@pytest.mark.parametrize("on", [(True, True, True), (False, True, False), (False, False, True)])
def test_convolutions_of_batched_weights_take_as_many_steps(on: tuple[bool, ...]) -> None:
    columns = [list(np.ones((3, *shape))) for shape in ((2, 4, 5), (6, 4, 3), (6,))]
    two, three = steps(pygrad.conv1d, columns, on)
    assert two == three


def test_slices_of_a_history_are_of_one_node() -> None:
    """The gradient of a selected slice is as large as all of them together."""
    gc.collect()  # while a tensor with __torch_dispatch__ lives, slices are taken op by op
    x = pygrad.ones(50, 4, 2, requires_grad=True)
    calls = vmap(pygrad.pdist)(x).grad_fn.next_functions
    assert len({call.next_functions[0][0] for call, _ in calls}) == 2, "the first, and all"


F = pygrad.nn.functional


def heads(**options: Any) -> Callable[..., Any]:
    """Attention of two heads as a function of queries, and what else it takes by position."""
    pygrad.manual_seed(0)
    module = pygrad.nn.MultiheadAttention(4, 2, dtype=pygrad.float64, **options.pop("of", {}))
    masks = options.pop("masks", ())

    def call(query: Any, *rest: Any) -> Any:
        named = dict(zip(masks, rest[-len(masks) :], strict=True)) if masks else {}
        key, value = rest[:2] if len(rest) - len(masks) == 2 else (query, query)
        y = module(query, key, value, **options, **named)
        return y if options.get("need_weights", True) else y[0]

    return call


def make_mask(*sizes: int) -> Any:
    return pygrad.arange(pygrad.Size(sizes).numel()).view(*sizes) % 5 == 1


def sequences(*sizes: int) -> Any:
    return pygrad.arange(float(pygrad.Size(sizes).numel()), dtype=pygrad.float64).view(*sizes).sin()


DRAWING: dict[str, tuple[Callable[..., Any], list[Any]]] = {
    "heads": (heads(), [sequences(3, 5, 2, 4)]),
    "heads of one sequence": (heads(), [sequences(3, 5, 4)]),
    "heads, batch first": (heads(of={"batch_first": True}), [sequences(3, 2, 5, 4)]),
    "heads of a query": (heads(), [sequences(3, 5, 2, 4), *[sequences(3, 6, 2, 4)] * 2]),
    "heads, all weights": (heads(average_attn_weights=False), [sequences(3, 5, 2, 4)]),
    "heads, no weights": (heads(need_weights=False), [sequences(3, 5, 2, 4)]),
    "heads, learnt": (
        heads(of={"add_bias_kv": True, "add_zero_attn": True}),
        [sequences(3, 5, 2, 4)],
    ),
    "heads, padding": (
        heads(masks=("key_padding_mask",)),
        [sequences(3, 5, 2, 4), make_mask(3, 2, 5)],
    ),
    "heads, padding of one sequence": (
        heads(masks=("key_padding_mask",)),
        [sequences(3, 5, 4), make_mask(3, 5)],
    ),
    "heads, mask": (heads(masks=("attn_mask",)), [sequences(3, 5, 2, 4), make_mask(3, 5, 5)]),
    "heads, masks": (heads(masks=("attn_mask",)), [sequences(3, 5, 2, 4), make_mask(3, 4, 5, 5)]),
    "heads, dropout": (heads(of={"dropout": 0.5}), [sequences(3, 5, 2, 4)]),
    "attention": (F.scaled_dot_product_attention, [sequences(3, 2, 2, 5, 4)] * 3),
    "attention of one": (F.scaled_dot_product_attention, [sequences(3, 5, 4)] * 3),
    "attention, mask": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, m),
        [sequences(3, 2, 2, 5, 4), sequences(3, 2, 1, 5, 5)],
    ),
    "attention, one mask": (
        lambda q: F.scaled_dot_product_attention(q, q, q, sequences(2, 5, 5)),
        [sequences(3, 4, 2, 5, 4)],
    ),
    "attention, dropout": (
        lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=0.5, is_causal=True),
        [sequences(3, 2, 2, 5, 4)],
    ),
    "fractional pool": (
        lambda x: F.fractional_max_pool2d(x, 2, output_size=2, return_indices=True),
        [sequences(3, 2, 2, 5, 5)],
    ),
    "fractional pool of an image": (
        lambda x: F.fractional_max_pool2d(x, 2, output_ratio=0.5),
        [sequences(3, 2, 5, 5)],
    ),
    "fractional pool, samples": (
        lambda x, s: F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=s.abs()),
        [sequences(3, 4, 2, 5, 5), sequences(3, 4, 2, 2)],
    ),
    "fractional pool, samples of an image": (
        lambda x, s: F.fractional_max_pool2d(x, 2, output_size=2, _random_samples=s.abs()),
        [sequences(3, 2, 5, 5), sequences(3, 1, 2, 2)],
    ),
    "gumbel": (lambda x: F.gumbel_softmax(x, dim=0), [sequences(3, 4, 5)]),
}
"""Functions that draw numbers or may, and batches of three for all that they take."""


@pytest.mark.parametrize("case", DRAWING)
@pytest.mark.parametrize("levels", [1, 2])
@leaves_nothing
def test_a_batch_draws_what_the_slices_draw_in_turn(case: str, levels: int) -> None:
    function, batches = DRAWING[case]
    if levels == 2:
        batches = [pygrad.stack([a, a.roll(1, 0)]) for a in batches]
    rows = [a.flatten(0, 1) if levels == 2 else a for a in batches]
    for pattern in patterns(len(batches)):
        pygrad.manual_seed(3)
        used = [a if on else a[:1].expand_as(a) for a, on in zip(rows, pattern, strict=True)]
        expected = one_by_one(function, [list(a) for a in used])
        assert expected is not None
        at = tuple(0 if on else None for on in pattern)
        given = [
            a if on else a.flatten(0, levels - 1)[0] for a, on in zip(batches, pattern, strict=True)
        ]
        mapped = vmap(function, in_dims=at, randomness="different")
        if levels == 2:
            mapped = vmap(mapped, in_dims=at, randomness="different")
        pygrad.manual_seed(3)
        got = mapped(*given)
        compare([t.flatten(0, levels - 1) for t in leaves(got)], expected)


@pytest.mark.parametrize("case", DRAWING)
def test_a_batch_of_the_same_numbers_draws_them_once(case: str) -> None:
    function, batches = DRAWING[case]
    state = pygrad.get_rng_state()
    rows = []
    for row in zip(*batches, strict=True):
        pygrad.set_rng_state(state)
        rows.append(leaves(function(*row)))
    pygrad.set_rng_state(state)
    compare(vmap(function, randomness="same")(*batches), rows)


def test_levels_are_of_a_thread() -> None:
    entered, done, seen = threading.Event(), threading.Event(), []

    def run_other() -> None:
        entered.wait(10)
        try:
            x = pygrad.rand(3).requires_grad_()  # both refused in the mapped function
            (x * 2).sum().backward()
            seen.append(vmap(lambda v: v + 1)(x.detach()).shape)
        finally:
            done.set()

    thread = threading.Thread(target=run_other)
    thread.start()

    def map_slow(v: Any) -> Any:
        entered.set()
        assert done.wait(10)
        with pytest.raises(RuntimeError, match="randomness error mode"):
            pygrad.rand(3)
        return v * 2

    assert vmap(map_slow)(pygrad.ones(2)).tolist() == [2.0, 2.0]
    thread.join()
    assert seen == [(3,)]


@leaves_nothing
def test_a_level_is_left_after_an_error() -> None:
    def fails(v: Any) -> Any:
        with pygrad.no_grad():
            raise KeyError("mine")

    for _ in range(40):  # more often than levels can be nested
        with pytest.raises(KeyError, match="mine"):
            vmap(vmap(fails))(pygrad.ones(2, 2))
    assert pygrad.rand(2).shape == (2,)


def test_levels_have_an_end() -> None:
    def nest(f: Callable[..., Any], depth: int) -> Callable[..., Any]:
        return vmap(nest(f, depth - 1)) if depth else f

    x = pygrad.ones(*[1] * 20)
    assert nest(lambda v: v + 1, 20)(x).tolist() == (x + 1).tolist()
    with pytest.raises(RuntimeError, match="at most 20 levels"):
        nest(lambda v: v + 1, 21)(pygrad.ones(*[1] * 21))
    assert vmap(lambda v: v + 1)(pygrad.ones(2)).tolist() == [2.0, 2.0]


@leaves_nothing
def test_custom_functions_leave_nothing() -> None:
    class Cube(pygrad.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(v: Any) -> Any:
            return v**3

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (v,) = ctx.saved_tensors
            return 3 * v**2 * g

    x = pygrad.arange(6.0).view(2, 3).requires_grad_()
    y = vmap(vmap(Cube.apply))(x)
    (g,) = pygrad.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = pygrad.autograd.grad(g.sum(), x)
    assert h.tolist() == (6 * x).tolist()


def test_distributions_check_all_slices() -> None:
    from pygrad.distributions import Gamma

    def density(a: Any, value: Any) -> Any:
        return Gamma(a, 1.0).log_prob(value)

    a, value = pygrad.tensor([[0.5, 1.0], [2.0, 3.0]]), pygrad.tensor([[1.0, 3.0]] * 2)
    assert vmap(density)(a, value).tolist() == [
        density(*each).tolist() for each in zip(a, value, strict=True)
    ]
    with pytest.raises(ValueError, match="Expected parameter concentration"):
        vmap(density)(pygrad.tensor([[0.5, 1.0], [1.0, -1.0]]), value)
    with pytest.raises(ValueError, match="within the support"):
        vmap(density)(a, pygrad.tensor([[1.0, 3.0], [1.0, -1.0]]))


# ------------------------------------------------------------------ tangents
# A tangent may be batched where the value is not: many directions at one point.

POINT = pygrad.tensor([1.0, 2.0, 3.0, 4.0])
WAYS = pygrad.arange(12.0).view(3, 4)


def tangent_of(tensor: Any) -> Any:
    return fw.unpack_dual(tensor).tangent


def push_all(body: Callable[[Any], Any], ways: Any = WAYS) -> Any:
    """Maps a function of a dual at one point over a batch of tangents."""

    def push(way: Any) -> Any:
        with fw.dual_level():
            return body(fw.make_dual(POINT.clone(), way))

    return vmap(push)(ways.clone())


def test_a_batched_tangent_is_kept_as_it_is() -> None:
    """A tangent needs no storage as long as the value's; one of another layout is copied."""
    ways, part = WAYS.clone(), pygrad.arange(5.0)[:4].detach()

    def push(way: Any, primal: Any) -> tuple[Any, bool]:
        with fw.dual_level():
            found = tangent_of(fw.make_dual(primal, way))
            same.append(found is way)
            return found

    for primal, shape, expected in (
        (part, (3, 4), True),
        (pygrad.ones(2, 2), (3, 2, 2), True),
        (pygrad.ones(2, 2).t(), (3, 2, 2), False),
        (pygrad.arange(5.0)[1:], (3, 4), False),
    ):
        same: list[bool] = []
        given = ways.view(shape)
        found = vmap(push, in_dims=(0, None))(given, primal)
        assert (same, found is given) == ([expected], expected)
        assert found.tolist() == given.tolist()


def test_values_of_batched_tangents_are_no_batch() -> None:
    def body(x: Any) -> Any:
        y = x * 2 if x.sum() > 0 else x
        assert fw.unpack_dual(y).primal.tolist() == [2.0, 4.0, 6.0, 8.0]
        return tangent_of(y * x[0].item())

    assert push_all(body).tolist() == (2 * WAYS).tolist()


def add(base: Any, x: Any) -> None:
    base.add_(x.sin(), alpha=2)


def multiply(base: Any, x: Any) -> None:
    base.mul_(x).mul_(base)


def copy(base: Any, x: Any) -> None:
    base.copy_(x)


def subscript(base: Any, x: Any) -> None:
    base[0] = x[1]


def twice(base: Any, x: Any) -> None:
    base[:2].copy_(x[2:])
    base.mul_(3).add_(x)


def overwrite(base: Any, x: Any) -> None:
    base.copy_(x)
    base[1:3].fill_(1)


def add_to_dual(base: Any, x: Any) -> None:
    fw.make_dual(base, pygrad.ones(4)).add_(x)


@pytest.mark.parametrize("write", [add, multiply, copy, subscript, twice, overwrite, add_to_dual])
def test_what_is_written_once_gets_a_batch_of_tangents(write: Any) -> None:
    """The tensor, its base and its views, as each tangent alone gives them."""

    def written(x: Any) -> tuple[Any, ...]:
        whole = pygrad.ones(6)
        base, after = whole[1:5], whole[3:]
        write(base, x)
        values.append(whole.tolist())
        found = [tangent_of(t) for t in (whole, base, after, base.view(2, 2))]
        return tuple(t * 0 if y is None else y for y, t in zip(found, (whole,) * 4, strict=True))

    values: list[Any] = []
    batch = push_all(written)

    def alone(way: Any) -> tuple[Any, ...]:
        with fw.dual_level():
            return written(fw.make_dual(POINT.clone(), way.clone()))

    each = [alone(way) for way in WAYS]
    assert all(value == values[0] for value in values)
    for found, expected in zip(batch, zip(*each, strict=True), strict=True):
        np.testing.assert_allclose(found.numpy(), pygrad.stack(expected).numpy(), rtol=1e-6)


def test_a_dual_that_gets_a_batch_of_tangents_shares_them_with_its_views() -> None:
    def body(x: Any) -> tuple[Any, ...]:
        base = fw.make_dual(pygrad.zeros(4), pygrad.ones(4))
        before = base[:2]
        tangent_of(before)
        base[1:].add_(x[1:])
        before.mul_(2)
        return tangent_of(base), tangent_of(before)

    whole, part = push_all(body)
    assert whole.tolist() == [[2.0, 4.0, 3.0, 4.0], [2.0, 12.0, 7.0, 8.0], [2.0, 20.0, 11.0, 12.0]]
    assert part.tolist() == whole[:, :2].tolist()


def test_a_view_of_all_of_its_base_shares_the_tangent() -> None:
    """Other views get a view of the base's tangent."""
    for turned in (False, True):
        base = pygrad.zeros(2, 2)
        view = base.t() if turned else base.view_as(base)

        def body(x: Any, view: Any = view, base: Any = base) -> tuple[Any, Any]:
            view.copy_(x.view(2, 2))
            return tangent_of(view), tangent_of(base)

        of_view, of_base = push_all(body)
        assert (of_view is of_base, of_view._base is of_base) == (not turned, turned)
        assert of_view.tolist() == WAYS.view(3, 2, 2).tolist()
        assert base.tolist() == (POINT.view(2, 2).t() if turned else POINT.view(2, 2)).tolist()


def test_batched_values_are_not_written_to_what_is_not_batched() -> None:
    base = pygrad.zeros(4)
    for write in (base.add_, base.mul_, base.copy_):
        with pytest.raises(RuntimeError, match="vmapped over|broadcast shape"):
            vmap(write)(WAYS)
        with pytest.raises(RuntimeError, match="vmapped over|broadcast shape"):
            push_all(lambda x, write=write: write(x * tangent_of(x)))
    assert base.tolist() == [0.0] * 4


def test_as_strided_stays_in_its_slice() -> None:
    outside = r"can access memory outside of `tensor`. `result` can access some memory in range "
    ways = pygrad.arange(24.0).view(4, 6)
    with pytest.raises(RuntimeError, match=outside + r"\[0, 5\]"):
        vmap(lambda x: x.as_strided((5,), (1,), 0))(ways[:, :4])
    with pytest.raises(RuntimeError, match=outside + r"\[0, 2\]"):
        vmap(lambda x: x.as_strided((2,), (1,), 0))(ways[:, 1:])
    assert vmap(lambda x: x.as_strided((2,), (2,), 2))(ways[:, 1:]).tolist() == (
        ways[:, 2:5:2].tolist()
    )
    storage = pygrad.arange(5.0)

    def body(way: Any) -> Any:
        with fw.dual_level():
            return fw.make_dual(storage[:4].detach(), way).as_strided((5,), (1,), 0)

    with pytest.raises(RuntimeError, match=outside):
        vmap(body)(WAYS)


def test_batched_tangents_meet_batched_values() -> None:
    def push(way: Any, factor: Any) -> tuple[Any, Any]:
        with fw.dual_level():
            y = fw.make_dual(POINT, way) * factor
            return fw.unpack_dual(y * y)

    factors = pygrad.tensor([1.0, 2.0, 3.0])
    values, tangents = vmap(push)(WAYS, factors)
    assert values.tolist() == [(POINT * k).square().tolist() for k in factors]
    assert tangents.tolist() == [
        (2 * POINT * way * k * k).tolist() for way, k in zip(WAYS, factors, strict=True)
    ]


def test_tangents_of_gradients_at_one_point() -> None:
    """Forward over reverse gives the rows of the Hessian, as does reverse over forward."""

    def function(x: Any) -> Any:
        return (x.sin() @ x.exp()) * x.prod()

    x = POINT.clone().double().requires_grad_()
    expected = pygrad.func.hessian(function)(x.detach())

    def row(way: Any) -> Any:
        with fw.dual_level():
            y = function(fw.make_dual(x, way))
            (g,) = pygrad.autograd.grad(y, x, create_graph=True)
            return tangent_of(g), tangent_of(y)

    rows, slopes = vmap(row)(pygrad.eye(4, dtype=pygrad.float64))
    np.testing.assert_allclose(array_of(rows), array_of(expected), rtol=1e-12)
    again = [pygrad.autograd.grad(slope, x, retain_graph=True)[0] for slope in slopes]
    np.testing.assert_allclose(array_of(pygrad.stack(again)), array_of(expected), rtol=1e-12)


def test_tangents_of_two_levels_at_one_point() -> None:
    first, second = WAYS[:2], WAYS + 1

    def push(a: Any, b: Any) -> tuple[Any, Any]:
        with fw.dual_level():
            x = fw.make_dual(POINT, a)
            y = POINT.clone()
            y.mul_(x).add_(fw.make_dual(POINT, b).cumsum(0))
            return tangent_of(y), tangent_of(x.prod())

    found = vmap(lambda a: vmap(lambda b: push(a, b))(second))(first)
    for i, j in itertools.product(range(2), range(3)):
        for got, expected in zip(found, push(first[i].clone(), second[j].clone()), strict=True):
            got = got[i, j] if got.dim() > 1 and got.shape[1] == 3 else got[i]
            assert got.tolist() == expected.tolist()


def test_no_tangents_at_one_point() -> None:
    found = push_all(lambda x: (tangent_of(x * 2), tangent_of(x.cumsum(0))), WAYS[:0])
    assert [y.shape for y in found] == [(0, 4), (0, 4)]


@pytest.mark.parametrize("generated", [True, False])
def test_function_gets_batched_tangents(generated: bool) -> None:
    class Scaled(pygrad.autograd.Function):
        generate_vmap_rule = generated

        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_forward(*inputs)

        @staticmethod
        def jvp(ctx: Any, way: Any, _: Any) -> Any:
            x, y = ctx.saved_tensors
            return 2 * x * y * way

        if not generated:

            @staticmethod
            def vmap(info: Any, in_dims: Any, x: Any, y: Any) -> Any:
                return Scaled.apply(x, y), 0

    def push(way: Any, k: Any) -> tuple[Any, Any]:
        with fw.dual_level():
            x = fw.make_dual(POINT, way)
            alone = Scaled.apply(x, POINT)
            assert not is_batchedtensor(fw.unpack_dual(alone).primal)
            return tangent_of(alone), tangent_of(Scaled.apply(x, k))

    alone, beside = vmap(push)(WAYS, WAYS + 1)
    assert alone.tolist() == (2 * POINT * POINT * WAYS).tolist()
    assert beside.tolist() == (2 * POINT * (WAYS + 1) * WAYS).tolist()


def test_a_batched_tangent_prints_all_slices() -> None:
    def body(x: Any) -> Any:
        assert "tangent=BatchedTensor(lvl=1, bdim=0, value=tensor([ 6., 22., 38.]))" in repr(
            x.sum()
        )
        return tangent_of(x)

    push_all(body)
