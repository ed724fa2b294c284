"""Complex tensors: gradients of every op that takes them, and lazy conjugates and negatives."""

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
    floating,
    leaves_nothing,
    run,
    sweep_entries,
)
from samples import Entry
from sampling import Call, fill_sample, numbers
from test_gradients import NOT_BY_DIFFERENCES, STEP, contract

import pygrad
import pygrad as torch
from pygrad._ground.dtypes import ALL as DTYPES

pytestmark = pytest.mark.filterwarnings("ignore")

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
    without = UNINITIALISED | RANDOM | STRIDES_ARE_ITS_ARGUMENT
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


def make(sample: Call) -> list[Any]:
    return [pygrad.from_numpy(np.asarray(array).copy()) for array in complex_arrays(sample)]


@sweep_entries(lambda entry: takes_values(entry) and not {entry.id, entry.name} & NOT_COMPARED)
@leaves_nothing
def test_gradient_by_complex_numbers(entry: Entry, sample: Call) -> None:
    """dL/d(re) + i dL/d(im), of a real loss, by differences along each part."""
    arrays = complex_arrays(sample)

    def loss(tensors: list[Any]) -> Any:
        found = [t for t in floating(run(entry, *fill_sample(sample, tensors))) if t.requires_grad]
        return contract(found, 1) if found else None

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


@pytest.mark.parametrize("index", [[0, 2], [True, False, True], torch.tensor([0, 2])], ids=str)
def test_assignment_by_an_index_goes_through_a_view_that_waits(index: Any) -> None:
    base = torch.zeros(3, dtype=torch.complex128)
    base.conj()[index] = 2 + 1j
    assert base.tolist() == [2 - 1j, 0, 2 - 1j]
    base.conj().imag[index] += 5.0
    assert base.tolist() == [2 - 6j, 0, 2 - 6j]
    square = torch.zeros(2, 2, dtype=torch.complex128)
    square.mH[[0, 1], [1, 0]] = 1j
    assert square.tolist() == [[0, -1j], [-1j, 0]]


def test_gradient_of_what_was_written_to_a_conjugate_that_waits() -> None:
    x = torch.ones(3, dtype=torch.complex128, requires_grad=True)
    value = torch.tensor([3j], requires_grad=True)
    y = (x * 2).conj()
    y[torch.tensor([0])] = value.to(torch.complex128)
    y.abs().sum().backward()
    assert x.grad.tolist() == [0, 2, 2]
    assert value.grad.tolist() == [1j]


@pytest.mark.parametrize(
    "same",
    [
        lambda c: c.to(c.dtype),
        lambda c: c.type_as(c),
        lambda c: c.sum_to_size(c.shape),
        lambda c: c.cdouble() if c.is_complex() else c.double(),
        lambda c: c.contiguous(),
        lambda c: c.cpu(),
        lambda c: c.type(c.dtype),
    ],
)
def test_what_changes_nothing_gives_back_the_tensor_that_waits(same: Any) -> None:
    for view in (torch.Tensor.conj, lambda z: z.conj().imag):
        base = torch.zeros(2, dtype=torch.complex128)
        waits = view(base)
        if same(waits) is not waits:  # a view of every second number is not contiguous
            assert not waits.is_contiguous()
            continue
        same(waits).fill_(3)
        assert waits.tolist() == [3, 3]


@pytest.mark.parametrize("write", ["zero_", "fill_", "normal_", "add_"])
def test_expanded_view_that_waits_is_not_written_to(write: str) -> None:
    waits = torch.ones(3, 1, dtype=torch.complex128).conj().expand(3, 4)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        getattr(waits, write)(*([1] if write in ("fill_", "add_") else []))
    assert waits.tolist() == [[1] * 4] * 3


def test_statistics_and_rows_that_wait_are_written_to() -> None:
    """batch_norm writes the statistics; PyTorch's loses them."""
    F = torch.nn.functional
    weight = torch.tensor([[1 - 2j, 3 - 1j]])
    F.embedding(torch.tensor([0]), weight.conj().imag, max_norm=0.1)
    assert weight.imag.norm().item() == pytest.approx(0.1)
    F.embedding_bag(torch.tensor([[0]]), weight.conj().imag, max_norm=0.05)
    assert weight.imag.norm().item() == pytest.approx(0.05)
    for norm in (F.batch_norm, F.instance_norm):
        both = torch.zeros(2, 3, dtype=torch.complex64)
        mean, var = both.conj().imag
        norm(torch.arange(24.0).view(2, 3, 4), mean, var + 1, None, None, True)
        plain = torch.zeros(3)
        norm(torch.arange(24.0).view(2, 3, 4), plain, torch.ones(3), None, None, True)
        assert torch.equal(mean, plain)
        assert plain.ne(0).all()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: torch.special.legendre_polynomial_p(x, 1),
        lambda x: torch.special.chebyshev_polynomial_t(x, 2),
        lambda x: torch.special.shifted_chebyshev_polynomial_t(x, 1),
        lambda x: torch.special.hermite_polynomial_h(x, 1),
        lambda x: torch.special.laguerre_polynomial_l(x, 1),
        lambda x: torch.special.modified_bessel_k0(x.abs().neg()._neg_view()),
        lambda x: 0.3 % x,
    ],
)
def test_negative_that_waits_is_as_good_as_one_computed(function: Any) -> None:
    x = torch.tensor([1 + 0.5j, 2 - 0.25j], dtype=torch.complex128).conj().imag
    assert x.is_neg()
    assert function(x).tolist() == function(x.resolve_neg()).tolist()


@pytest.mark.parametrize("view", [torch.conj, lambda z: z.conj().imag])
def test_values_of_sparse_tensors_are_computed(view: Any) -> None:
    values = view(torch.tensor([1 + 1j, 2 + 2j], dtype=torch.complex128))
    s = torch.sparse_coo_tensor(torch._neg_view(torch.tensor([[0, -1], [-1, 0]])), values, (2, 2))
    assert not s._values().is_conj()
    assert not s._values().is_neg()
    d = s.to_dense()
    assert [d[0, 1].item(), d[1, 0].item()] == values.tolist()
    assert torch.equal((s * 2).to_dense(), d * 2)
    assert torch.equal((s / 2).to_dense(), d / 2)
    assert torch.equal((s - s * 0.5).to_dense(), d * 0.5)
    assert torch.equal(torch.add(torch.zeros_like(d), s, alpha=2), d * 2)
    assert torch.equal(
        (s * view(torch.full((2, 2), 1j + 1))).to_dense(), d * view(torch.full((2, 2), 1j + 1))
    )


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


@pytest.mark.parametrize(
    "name",
    "modified_bessel_i0 modified_bessel_i1 modified_bessel_k0 modified_bessel_k1 bessel_j0 airy_ai"
    " scaled_modified_bessel_k0 scaled_modified_bessel_k1 spherical_bessel_j0".split(),
)
def test_bessel_functions_have_no_complex_kernel(name: str) -> None:
    function = getattr(pygrad.special, name)
    for shape in [(2,), (0,), ()]:
        z = pygrad.ones(shape, dtype=pygrad.complex64)
        with pytest.raises(NotImplementedError, match=f'"{name}_cpu" not implemented for .Complex'):
            function(z)
