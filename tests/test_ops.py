"""The op table as a sweep: every op, on every layout, shape and dtype, without a trap and without
a leak.

Values are compared with PyTorch in parity/test_ops.py; here an op is compared with itself: another
layout, in place, out=.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    RANDOM,
    STRIDES_ARE_ITS_ARGUMENT,
    UNINITIALISED,
    arrays,
    assert_same,
    leaves,
    leaves_nothing,
    no_breakdown,
    run,
    sweep_entries,
)
from samples import DOMAIN, EXEMPT, ROWS, Entry, entries, samples
from sampling import DTYPES, Array, Call, X, build

import pygrad
from pygrad._table import functions

pytestmark = pytest.mark.filterwarnings("ignore")


@sweep_entries()
def test_op_has_samples_or_a_reason_for_none(entry: Entry) -> None:
    assert bool(samples(entry)) != (entry.id in EXEMPT)


def test_rows_name_ops_of_the_table() -> None:
    known = {entry.id for entry in entries()} | {entry.name for entry in entries()}
    assert set(ROWS) | set(EXEMPT) | set(DOMAIN) <= known


def test_row_of_masked_follows_the_row_of_its_name() -> None:
    """The engine looks an op up by its name: the first row counts."""
    places = {"masked": {}, "other": {}}
    for at, op in enumerate(functions.TABLE):
        places["masked" if "masked" in op.words else "other"].setdefault(op.name, at)
    both = places["masked"].keys() & places["other"].keys()
    assert both
    assert all(places["other"][name] < places["masked"][name] for name in both)


def test_ops_have_distinct_names_within_a_namespace() -> None:
    ids = [entry.id for entry in entries()]
    assert sorted(ids) == sorted(set(ids))


@sweep_entries()
@leaves_nothing
def test_op_leaves_inputs_and_engine_as_they_were(entry: Entry, sample: Call) -> None:
    args, kwargs = build(sample)
    before = arrays([args, kwargs])
    versions = [t._version for t in leaves([args, kwargs])]
    run(entry, args, kwargs)
    if "batch_norm" in entry.name or "instance_norm" in entry.name:
        return  # running statistics are there to be written to
    for now, then in zip(arrays([args, kwargs]), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert [t._version for t in leaves([args, kwargs])] == versions


@sweep_entries()
def test_op_gives_the_same_twice(entry: Entry, sample: Call) -> None:
    if entry.name in UNINITIALISED:
        pytest.skip("uninitialised")
    assert_same(run(entry, *build(sample)), run(entry, *build(sample)))


# ------------------------------------------------------------------ layouts


def make_transposed(array: Array) -> Any:
    if array.ndim < 2:
        return make_strided(array)
    return pygrad.from_numpy(np.ascontiguousarray(array.swapaxes(0, -1))).transpose(0, -1)


def make_strided(array: Array) -> Any:
    """Every other element of a larger tensor, from an offset on."""
    if array.ndim == 0:
        return pygrad.from_numpy(np.stack([array, array]))[1]
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    wide[..., 1::2] = array
    return pygrad.from_numpy(wide)[..., 1::2]


def make_expanded(array: Array) -> Any:
    """The first row, repeated with a stride of zero."""
    if array.ndim == 0 or array.shape[0] == 0:
        return pygrad.from_numpy(array.copy())
    return pygrad.from_numpy(array[:1].copy()).expand(array.shape)


LOGARITHMS = {"slogdet", "logdet", "linalg.slogdet"}
"""Logarithms of determinants: equal rows give 0 or rounding's rest, by layout, as in PyTorch."""


@sweep_entries(lambda entry: entry.name not in STRIDES_ARE_ITS_ARGUMENT | UNINITIALISED | RANDOM)
@pytest.mark.parametrize("layout", [make_transposed, make_strided, make_expanded])
@leaves_nothing
def test_op_does_not_depend_on_layout(entry: Entry, sample: Call, layout: Any) -> None:
    if layout is make_expanded and entry.name in LOGARITHMS:
        pytest.skip("a matrix of equal rows is singular")

    def contiguous(array: Array) -> Any:
        return layout(array).clone(memory_format=pygrad.contiguous_format)

    try:
        expected = run(entry, *build(sample, make=contiguous))
    except PROPER_ERRORS as error:
        with pytest.raises(type(error)):
            run(entry, *build(sample, make=layout))
    else:
        got = run(entry, *build(sample, make=layout))
        assert_same(got, expected, rtol=1e-12, atol=1e-14)


ORDERED_OTHERWISE = {"pow", "where", "rrelu"}
"""By a condition, a base that is a number, or noise; parity/test_ops.py compares their strides."""


def is_element_wise(entry: Entry) -> bool:
    return "direct" in entry.words and not entry.mutates and entry.name not in ORDERED_OTHERWISE


@sweep_entries(is_element_wise)
def test_element_wise_op_keeps_the_order_of_dimensions(entry: Entry, sample: Call) -> None:
    """Of operands of one shape that lie in memory alike, dense and with dimensions turned round."""
    args, kwargs = build(sample, make=make_transposed)
    tensors = leaves([args, kwargs])
    if any(t.shape != tensors[0].shape or t.ndim < 2 for t in tensors) or 1 in tensors[0].shape:
        pytest.skip("operands of several shapes, or with one order alone")
    try:
        result = run(entry, args, kwargs)
    except PROPER_ERRORS:
        return
    for tensor in leaves(result):
        assert tensor.stride() == tensors[0].stride()


# ------------------------------------------------------------------ shapes


def emptied(what: X) -> X:
    return replace(what, shape=(0, *what.shape[1:])) if what.shape else what


def scalar(what: X) -> X:
    return replace(what, shape=(), kind="real" if what.kind == "permutation" else what.kind)


def single(what: X) -> X:
    return replace(what, shape=(1,) * len(what.shape))


def doubled(what: X) -> X:
    """More dimensions than the op may want."""
    return replace(what, shape=(2, *what.shape))


def five_dims(what: X) -> X:
    return replace(what, shape=(*(1,) * (7 - len(what.shape)), *what.shape))


@sweep_entries()
@pytest.mark.parametrize("change", [emptied, scalar, single, doubled, five_dims])
@leaves_nothing
def test_op_takes_or_refuses_other_shapes(entry: Entry, sample: Call, change: Any) -> None:
    with no_breakdown():
        arrays(run(entry, *build(sample.map(change))))


@sweep_entries(
    lambda entry: "Tensor self" in entry.schemas[0] and entry.space in ("torch", "method")
)
@leaves_nothing
def test_op_refuses_inputs_that_do_not_fit_together(entry: Entry, sample: Call) -> None:
    """Every tensor with an odd shape of its own: an error or a result, never a trap."""
    shapes = iter([(5, 7), (11,), (13, 2), (3, 3, 3)] * 3)
    with no_breakdown():
        run(
            entry,
            *build(sample.map(lambda what: replace(what, shape=next(shapes), kind="index"))),
        )


# ------------------------------------------------------------------ dtypes


@sweep_entries()
@pytest.mark.parametrize("dtype", DTYPES)
@leaves_nothing
def test_op_takes_or_refuses_dtype(entry: Entry, sample: Call, dtype: str) -> None:
    args, kwargs = build(sample, dtype)
    try:
        arrays(run(entry, args, kwargs))
    except pygrad.EngineError:
        raise
    except PROPER_ERRORS as error:
        assert str(error), "an error without a message"


# ------------------------------------------------------------------ in place, out=


@sweep_entries(lambda entry: "inplace" in entry.words)
def test_inplace_equals_functional(entry: Entry, sample: Call) -> None:
    args, kwargs = build(sample)
    inplace = getattr(pygrad.Tensor, entry.name + "_", None)
    if inplace is None or not isinstance(args[0], pygrad.Tensor):
        pytest.skip("no such method for these arguments")
    expected = run(entry, args, kwargs)
    target = args[0].clone()
    pygrad.manual_seed(0)
    if expected.shape != target.shape or not pygrad.can_cast(expected.dtype, target.dtype):
        with pytest.raises(RuntimeError):
            inplace(target, *args[1:], **kwargs)
        assert_same(target, args[0])
        return
    version = target._version
    assert inplace(target, *args[1:], **kwargs) is target
    assert_same(target, expected.to(target.dtype))
    assert target._version == version + 1


@sweep_entries(lambda entry: "out" in entry.words)
@leaves_nothing
def test_out_equals_functional(entry: Entry, sample: Call) -> None:
    args, kwargs = build(sample)
    expected = run(entry, args, kwargs)
    if plain_tuple := isinstance(expected, tuple):
        targets: Any = tuple(pygrad.empty(0, dtype=t.dtype) for t in expected)
    else:
        targets = pygrad.empty(0, dtype=expected.dtype)
    if (entry.name in ("nonzero", "where") and plain_tuple) or (
        entry.name in ("bernoulli", "floor_divide")
        and isinstance(args[0], float) | isinstance(args[-1], float)
    ):
        pytest.skip("an overload without out=")
    pygrad.manual_seed(0)
    got = entry.function(*args, **kwargs, out=targets)
    for mine, target in zip(leaves(got), leaves(targets), strict=True):
        assert mine is target
    if entry.name not in UNINITIALISED:
        assert_same(list(leaves(got)), list(leaves(expected)))


@pytest.mark.filterwarnings("ignore:.*degrees of freedom:UserWarning")
@pytest.mark.parametrize("correction", [-2, -0.5, 0, 1])
@pytest.mark.parametrize("name", ["var", "std", "var_mean", "std_mean"])
def test_nothing_has_no_spread(name: str, correction: float) -> None:
    for dtype in (pygrad.float32, pygrad.float64, pygrad.complex64):
        for found in leaves(
            getattr(pygrad, name)(pygrad.ones(0, 3, dtype=dtype), 0, correction=correction)
        ):
            assert found.isnan().all().item()


def test_no_dimensions_do_not_decide_the_type_of_a_cosine() -> None:
    one, rows = pygrad.tensor(2.0, dtype=pygrad.float64), pygrad.ones(2, 3, dtype=pygrad.bfloat16)
    cosine = pygrad.nn.functional.cosine_similarity
    assert cosine(rows, one).dtype is cosine(one, rows).dtype is pygrad.float64


def test_areas_over_nothing() -> None:
    nothing, x = pygrad.ones(0, dtype=pygrad.int32), pygrad.ones(0)
    assert pygrad.trapezoid(nothing).dtype is pygrad.int32
    assert pygrad.trapezoid(nothing, pygrad.ones(1)).dtype is pygrad.int32
    running = pygrad.cumulative_trapezoid(pygrad.ones(2, 0), x)
    assert running.shape == (2, 0)
    assert pygrad.cumulative_trapezoid(nothing, x).dtype is pygrad.float32
