"""Every op at extreme numbers: whatever loop a shape and a layout choose, an element's bits are the
same; and what float32 gives is what float64 does.

A vector loop has a guard for what is far, or a shorter way for a block in which nothing is. Both
depend on the data, so ordinary numbers prove nothing about them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import RANDOM, UNINITIALISED, leaves, sweep_entries
from samples import Entry, entries, samples
from sampling import Array, build

import pygrad
from pygrad import Tensor

pytestmark = pytest.mark.filterwarnings("ignore")

SIZES = [0.0, 1e-45, 1e-38, 1e-20, 1e-6, 0.03, 0.5, 0.9, 1.0, 1.5, 2.0, 4.0, 9.0, 20.0, 50.0, 80.0]
SIZES += [87.0, 88.8, 89.0, 100.0, 110.0, 1e3, 1e4, 1e6, 2.0**27, 5e8, 1e10, 1e20, 1e30, 3.4e38]
SIZES += [math.inf, math.nan]
EXTREMES = np.array([sign * v for v in SIZES for sign in (1, -1)], np.float32)
BLOCK = 256
"""Elements that a loop looks at together."""


def extremes(n: int, salt: int = 0) -> Array:
    """n extreme numbers in an order of their own."""
    rng = np.random.default_rng(salt)
    return np.concatenate([rng.permutation(EXTREMES) for _ in range(n // len(EXTREMES) + 1)])[:n]


def same_bits(a: Array, b: Array) -> bool:
    """NaN is NaN, whatever its payload; zeros have signs."""
    both = np.isnan(a) & np.isnan(b) if a.dtype.kind in "fc" else np.zeros(a.shape, bool)
    bits = f"u{a.dtype.itemsize}"
    if a.dtype.kind == "c":
        return bool(np.array_equal(a, b, equal_nan=True))
    return a.shape == b.shape and bool((both | (a.view(bits) == b.view(bits))).all())


# ------------------------------------------------------------------ layouts, of every op


def make_strided(array: Array) -> Any:
    wide = np.zeros((*array.shape, 2), array.dtype)
    wide[..., 0] = array
    return pygrad.from_numpy(wide)[..., 0]


def make_turned(array: Array) -> Any:
    return pygrad.from_numpy(array.T.copy()).t() if array.ndim == 2 else make_strided(array)


def late(array: Array) -> Any:
    """A tensor of an array at an address that is no multiple of a vector."""
    flat = np.concatenate([np.zeros(1, array.dtype), array.ravel()])
    return pygrad.from_numpy(flat)[1:].view(array.shape)


LAYOUTS: dict[str, Callable[[Array], Any]] = {
    "strided": make_strided,
    "turned": make_turned,
    "late": late,
}


def outcome(entry: Entry, args: Any, kwargs: Any) -> list[Array] | str:
    """Results and gradients, or what error there was."""
    given = [t for t in leaves([args, kwargs]) if isinstance(t, Tensor)]
    if entry.mutates:
        args[0] = args[0].clone()
    else:
        for t in given:
            if t.is_floating_point():
                t.requires_grad_()
    try:
        results = [t for t in leaves(entry.function(*args, **kwargs)) if isinstance(t, Tensor)]
        smooth = [t for t in results if t.requires_grad]
        wanted = [t for t in given if t.requires_grad]
        if smooth and wanted:
            ones = [pygrad.ones_like(t) for t in smooth]
            grads = pygrad.autograd.grad(smooth, wanted, ones, allow_unused=True)
            results += [g for g in grads if g is not None]
    except pygrad.EngineError:
        raise
    except Exception as error:
        return type(error).__name__
    return [
        t.detach().resolve_conj().resolve_neg().contiguous().numpy()
        for t in results
        if not t.is_sparse
    ]


def laid(entry: Entry, sample: Any, layout: Callable[[Array], Any] | None) -> list[Array] | str:
    salts = itertools.count()

    def make(array: Array) -> Any:
        if array.dtype == np.float32:
            array = extremes(array.size, next(salts)).reshape(array.shape)
        return pygrad.from_numpy(array.copy()) if layout is None else layout(array)

    return outcome(entry, *build(sample, "float32", make))


MEMORY = {"as_strided", "as_strided_copy", "as_strided_scatter", "set"}
"""Ops about memory itself."""
BY_LAYOUT = {"fft2", "ifft2", "fftn", "ifftn"}
"""Ops that transform dimensions in an order that follows the strides."""
NO_ARRAY = {"bfloat16", "chalf", "randperm", "rand", "randn", "randint"}


def has_values(entry: Entry) -> bool:
    name = entry.name.rstrip("_")
    left_out = RANDOM | UNINITIALISED | MEMORY | BY_LAYOUT | NO_ARRAY
    return bool(samples(entry)) and not {entry.name, name} & left_out


@sweep_entries(has_values)
def test_layouts_give_the_same_bits(entry: Entry) -> None:
    for sample in samples(entry):
        expected = laid(entry, sample, None)
        for name, layout in LAYOUTS.items():
            found = laid(entry, sample, layout)
            if isinstance(expected, str) or isinstance(found, str):
                continue
            for a, b in zip(expected, found, strict=True):
                assert same_bits(a, b), (name, sample, a, b)


# ------------------------------------------------------------------ blocks, of element-wise ops

N = 2 * BLOCK + 37


def operands(entry: Entry, arrays: Callable[[int], Array], dtype: str = "float32") -> Any:
    """The results and gradients of an op for vectors in place of the tensors of its first sample;
    None if the sample has other than plain numbers.
    """
    sample = samples(entry)[0]
    if not sample.tensors() or any(t.dtype or t.kind == "parts" for t in sample.tensors()):
        return None
    salts = itertools.count()
    make = lambda _: pygrad.from_numpy(arrays(next(salts)).astype(dtype))  # noqa: E731
    return outcome(entry, *build(sample, dtype, make))


def benign(salt: int) -> Array:
    return np.random.default_rng(salt).uniform(0.1, 0.9, N).astype(np.float32)


def mix(salt: int) -> Array:
    """A block of ordinary numbers, a block with one extreme, and a block of extremes alone."""
    x = benign(salt)
    x[BLOCK + 11] = extremes(1, salt)[0]
    x[: BLOCK // 2] *= -1
    x[BLOCK + 40 :] = extremes(N - BLOCK - 40, salt)
    return x


def is_permuted(entry: Entry, x: Callable[[int], Array]) -> bool:
    """Whether results go with their elements: through all places, and each alone."""
    turn = np.random.default_rng(5).permutation(N)
    plain, turned = operands(entry, x), operands(entry, lambda salt: x(salt)[turn])
    if plain is None or isinstance(plain, str) or isinstance(turned, str):
        return False
    if not plain or any(y.shape != (N,) for y in [*plain, *turned]):
        return False
    for at in (0, BLOCK + 11, N - 1):
        one = operands(entry, lambda salt, at=at: x(salt)[at : at + 1])
        if isinstance(one, str) or not all(map(same_bits, one, [y[at : at + 1] for y in plain])):
            return False
    return all(same_bits(y[turn], z) for y, z in zip(plain, turned, strict=True))


def is_elementwise(entry: Entry) -> bool:
    return has_values(entry) and is_permuted(entry, benign)


ELEMENTWISE = [entry for entry in entries() if is_elementwise(entry)]


def test_element_wise_ops_are_many() -> None:
    assert len(ELEMENTWISE) > 150


@pytest.mark.parametrize("entry", ELEMENTWISE, ids=lambda entry: entry.id)
def test_elements_do_not_see_each_other(entry: Entry) -> None:
    assert is_permuted(entry, mix)


NOT_ROUNDED = dict.fromkeys(
    "addcmul addcdiv logit mvlgamma multigammaln ndtr tanhshrink norm_except_dim"
    " chebyshev_polynomial_t chebyshev_polynomial_u chebyshev_polynomial_v chebyshev_polynomial_w"
    " shifted_chebyshev_polynomial_t shifted_chebyshev_polynomial_u shifted_chebyshev_polynomial_v"
    " shifted_chebyshev_polynomial_w hermite_polynomial_h hermite_polynomial_he"
    " laguerre_polynomial_l legendre_polynomial_p binary_cross_entropy_with_logits"
    " hinge_embedding_loss tanh_backward sigmoid_backward gelu_backward".split(),
    "a sum of terms, rounded each, that may cancel",
)
NOT_ROUNDED |= dict.fromkeys(
    "nextafter nan_to_num".split(), "the neighbour or the bound of its own type"
)
NOT_ROUNDED |= dict.fromkeys("hardswish kl_div".split(), "a product overflows on the way")
NOT_ROUNDED |= dict.fromkeys(
    "log_sigmoid_backward elu_backward softplus_backward".split(),
    "a factor is smaller than the type's least number",
)
NOT_ROUNDED |= {"gelu": "the vectors give 0 at -inf, the formula NaN"}
"""Element-wise ops whose float32 is not that of float64, and why."""


@pytest.mark.parametrize(
    "entry",
    [entry for entry in ELEMENTWISE if entry.name.rstrip("_") not in NOT_ROUNDED],
    ids=lambda entry: entry.id,
)
def test_float32_is_float64_rounded(entry: Entry) -> None:
    """float32 gives a number close to float64's if float32 has it, else the same."""
    single, double = operands(entry, mix), operands(entry, mix, "float64")
    assert not isinstance(single, str)
    assert not isinstance(double, str)
    y, exact = single[0], double[0].astype(single[0].dtype)
    if y.dtype.kind != "f":
        assert np.array_equal(y, exact, equal_nan=y.dtype.kind == "c")
        return
    np.testing.assert_allclose(y, exact, rtol=1e-5, atol=2e-38)
