"""Complex tensors: what holds of every op that takes them, and of their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    RANDOM,
    STRIDES_ARE_ITS_ARGUMENT,
    UNINITIALISED,
    array_of,
    assert_same,
    floating,
    leaves_nothing,
    run,
    swept,
)
from samples import Entry
from sampling import Call, X, filled, numbers
from test_gradients import NOT_BY_DIFFERENCES, STEP, contracted

import pygrad
from pygrad._dtypes import ALL as DTYPES

pytestmark = pytest.mark.filterwarnings("ignore")

TELLS_THEM_APART = {
    "is_conj": "asks",
    "view_as_real": "refuses a conjugate that waits",
    "resolve_conj": "gives back what waits for nothing",
    "_is_view": "a computed conjugate is none",
}
"""Ops that see whether a conjugate waits."""

OF_OTHER_MATRICES = {
    **dict.fromkeys(
        ("cholesky", "linalg.cholesky", "linalg.cholesky_ex", "linalg.eigvalsh"),
        "reads one triangle, and has the gradient of a Hermitian matrix",
    ),
    **dict.fromkeys(
        ("linalg.eigh", "linalg.svd", "svd"), "refuses a loss that depends on the phases of vectors"
    ),
    "masked.median": "picks by the real part, and keeps that alone",
}
"""Ops whose gradient is no matter of differences; parity tests compare them with PyTorch."""
NOT_COMPARED = {*NOT_BY_DIFFERENCES, *OF_OTHER_MATRICES}


def takes_values(entry: Entry) -> bool:
    without = UNINITIALISED | RANDOM | STRIDES_ARE_ITS_ARGUMENT | TELLS_THEM_APART.keys()
    return entry.space != "internal" and entry.name not in without


def complex_arrays(sample: Call) -> list[Any]:
    """The sample's arrays, where it says no dtype complex ones."""
    return [
        real
        if what.dtype or what.kind == "parts"
        else real + 1j * numbers(what, "float64", salt + 20)
        for salt, what in enumerate(sample.tensors(), 1)
        for real in [numbers(what, "float64", salt)]
    ]


def made(sample: Call) -> list[Any]:
    return [pygrad.from_numpy(np.asarray(array).copy()) for array in complex_arrays(sample)]


@swept(takes_values)
@leaves_nothing
def test_conjugate_that_waits_is_as_good_as_one_computed(entry: Entry, sample: Call) -> None:
    tensors = made(sample)
    waiting = [t.conj() if t.is_complex() else t for t in tensors]
    computed = [t.conj().resolve_conj() if t.is_complex() else t for t in tensors]
    if not any(t.is_conj() for t in waiting):
        pytest.skip("takes no complex numbers")
    try:
        expected = run(entry, *filled(sample, computed))
    except PROPER_ERRORS as error:
        with pytest.raises(type(error)):
            run(entry, *filled(sample, waiting))
        return
    assert_same(run(entry, *filled(sample, waiting)), expected, rtol=1e-13, atol=1e-14)


@swept(lambda entry: takes_values(entry) and "inplace" in entry.words)
@leaves_nothing
def test_conjugate_that_waits_is_written_to(entry: Entry, sample: Call) -> None:
    write = getattr(pygrad.Tensor, entry.name + "_", None)
    tensors = made(sample)
    if write is None or not tensors or not tensors[0].is_complex():
        pytest.skip("no such method for these arguments")
    if not isinstance(sample.args[0], X) or sample.args[0].kind == "parts":
        pytest.skip("no such method for these arguments")
    alone = tensors[0].conj().resolve_conj()
    args, kwargs = filled(sample, [alone, *tensors[1:]])
    try:
        write(*args, **kwargs)
    except PROPER_ERRORS as error:
        args, kwargs = filled(sample, [tensors[0].conj(), *tensors[1:]])
        with pytest.raises(type(error)):
            write(*args, **kwargs)
        return
    base = tensors[0].clone()
    args, kwargs = filled(sample, [base.conj(), *tensors[1:]])
    write(*args, **kwargs)
    np.testing.assert_allclose(array_of(args[0]), array_of(alone), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(array_of(base), array_of(alone).conj(), rtol=1e-13, atol=1e-14)


@swept(lambda entry: takes_values(entry) and not {entry.id, entry.name} & NOT_COMPARED)
@leaves_nothing
def test_gradient_by_complex_numbers(entry: Entry, sample: Call) -> None:
    """dL/d(re) + i dL/d(im), of a real loss, by differences along each part."""
    arrays = complex_arrays(sample)

    def loss(tensors: list[Any]) -> Any:
        found = [t for t in floating(run(entry, *filled(sample, tensors))) if t.requires_grad]
        return contracted(found, 1) if found else None

    def value(moved: list[Any]) -> float:
        tensors = [pygrad.from_numpy(np.asarray(a).copy()) for a in moved]
        for tensor, what in zip(tensors, sample.tensors(), strict=True):
            tensor.requires_grad_(tensor.is_complex() and not what.constant)
        total = loss(tensors)
        return float(total.item())

    tensors = [pygrad.from_numpy(np.asarray(a).copy()) for a in arrays]
    for tensor, what in zip(tensors, sample.tensors(), strict=True):
        tensor.requires_grad_(tensor.is_complex() and not what.constant)
    wanted = [k for k, t in enumerate(tensors) if t.requires_grad]
    try:
        total = loss(tensors)
    except PROPER_ERRORS:
        pytest.skip("takes no complex numbers")
    if total is None or not wanted:
        pytest.skip("nothing is differentiable")
    got = pygrad.autograd.grad(total, [tensors[k] for k in wanted], materialize_grads=True)
    rng = np.random.default_rng(7)
    for k, gradient in zip(wanted, got, strict=True):
        way = rng.uniform(-1, 1, arrays[k].shape) + 1j * rng.uniform(-1, 1, arrays[k].shape)
        above, below = list(arrays), list(arrays)
        above[k], below[k] = arrays[k] + STEP * way, arrays[k] - STEP * way
        slope = (value(above) - value(below)) / (2 * STEP)
        mine = float((array_of(gradient).conj() * way).real.sum())
        np.testing.assert_allclose(mine, slope, rtol=1e-4, atol=1e-5, err_msg=f"input {k}")


def test_gradient_is_added_to_a_conjugate_that_waits() -> None:
    x = pygrad.ones(2, dtype=pygrad.complex128, requires_grad=True)
    x.grad = pygrad.full((2,), 1 + 2j, dtype=pygrad.complex128).conj()
    (x * 1j).real.sum().backward()
    assert x.grad.tolist() == [1 - 3j, 1 - 3j]


def test_first_lazy_tensor_of_an_engine_may_be_made_within_an_op() -> None:
    engine = pygrad.Engine()
    x = engine.tensor([[1 + 1j, 2], [3, 4j]], requires_grad=True)
    engine.norm(x, "nuc").backward()
    assert x.grad.isfinite().all()


@pytest.mark.parametrize("kind", [kind for kind in DTYPES if kind.is_floating_point], ids=str)
def test_complex_numbers_of_the_host_have_the_type_that_the_default_is_promoted_to(
    kind: pygrad.dtype,
) -> None:
    before = pygrad.get_default_dtype()
    pygrad.set_default_dtype(kind)
    try:
        found = {
            pygrad.tensor(1j).dtype,
            pygrad.tensor([1j, 2.0, 3]).dtype,
            (pygrad.ones(2, dtype=pygrad.int64) * 1j).dtype,
            (pygrad.ones(2) * 1j).dtype,
            pygrad.promote_types(kind, pygrad.complex32),
        }
    finally:
        pygrad.set_default_dtype(before)
    assert found == {kind.to_complex()}
