"""Matrices that elimination takes for singular. A pivot that rounding made zero does not count."""

from __future__ import annotations

import pytest

import pygrad
from pygrad import Tensor


def nearly_singular(size: int, seed: int) -> Tensor:
    """A symmetric matrix less one of its eigenvalues, as inverse iteration solves with."""
    generator = pygrad.Generator().manual_seed(seed)
    a = pygrad.randn(size, size, dtype=pygrad.float64, generator=generator)
    a = a + a.T
    return a - pygrad.linalg.eigvalsh(a)[0] * pygrad.eye(size, dtype=pygrad.float64)


@pytest.mark.parametrize("size", [2, 3, 4, 6])
def test_inverse_iteration_is_never_refused(size: int) -> None:
    for seed in range(100):
        a = nearly_singular(size, seed)
        x = pygrad.linalg.solve(a, pygrad.ones(size, dtype=pygrad.float64))
        vector = x / x.norm()
        assert (a @ vector).norm() < 1e-12 * a.norm()
        pygrad.linalg.inv(a)
        assert pygrad.linalg.lu_factor_ex(a).info == 0


@pytest.mark.parametrize("dtype", [pygrad.float32, pygrad.float64, pygrad.complex64], ids=str)
def test_what_is_singular_in_exact_arithmetic_is_refused(dtype: pygrad.dtype) -> None:
    for rows in ([[1, 2], [2, 4]], [[0, 0], [0, 3]], [[1, 1, 2], [1, 2, 3], [2, 3, 5]]):
        a = pygrad.tensor(rows, dtype=dtype)
        assert pygrad.linalg.det(a) == 0
        with pytest.raises(pygrad.linalg.LinAlgError, match="singular"):
            pygrad.linalg.solve(a, a[:, :1])
        with pytest.raises(pygrad.linalg.LinAlgError, match="singular"):
            pygrad.linalg.inv(a)


@pytest.mark.parametrize("left", [True, False])
def test_gradient_of_what_was_solved_is_never_refused(left: bool) -> None:
    """Elimination of the transpose meets a zero for a third of these matrices."""
    generator = pygrad.Generator().manual_seed(0)
    solved = 0
    for _ in range(100):
        factors = pygrad.randint(-3, 4, (2, 3, 2), generator=generator).double()
        a = (factors[0] @ factors[1].T * 0.3).requires_grad_()
        b = pygrad.randn(3, 3, generator=generator, dtype=pygrad.float64).requires_grad_()
        try:
            x = pygrad.linalg.solve(a, b, left=left)
        except pygrad.linalg.LinAlgError:
            continue
        solved += 1
        ga, gb = pygrad.autograd.grad(x, (a, b), pygrad.ones(3, 3, dtype=pygrad.float64))
        assert gb.isfinite().all()
        expected = -gb @ x.T if left else -x.T @ gb
        assert pygrad.allclose(ga, expected.detach(), rtol=1e-10)
    assert solved > 20


def test_matrix_of_a_batch_is_factored_as_it_is_alone() -> None:
    matrices = [nearly_singular(3, seed) for seed in range(40)]
    found = pygrad.linalg.lu_factor_ex(pygrad.stack(matrices))
    for place, a in enumerate(matrices):
        alone = pygrad.linalg.lu_factor_ex(a)
        assert pygrad.equal(found.LU[place], alone.LU)
        assert pygrad.equal(found.pivots[place], alone.pivots)
