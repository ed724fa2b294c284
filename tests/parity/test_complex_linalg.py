"""torch.linalg of complex matrices, and eigenvalues of matrices that are not symmetric.

Results whose phases are anybody's choice are compared by what does not depend on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both, result_or_error

import pygrad


def draw(t: Any, *shape: int, real: bool = False, kind: str = "complex128") -> Any:
    random = np.random.default_rng(sum(shape) + len(shape))
    parts = random.normal(size=shape), random.normal(size=shape)
    values = t.from_numpy(parts[0]) if real else t.complex(*map(t.from_numpy, parts))
    return values.to(getattr(t, "float64" if real else kind)).requires_grad_()


def positive(t: Any, n: int) -> Any:
    a = draw(t, n, n).detach()
    return (a @ a.mH + t.eye(n, dtype=a.dtype)).requires_grad_()


def loss(t: Any, values: Any, seed: int) -> Any:
    """A sum with weights, complex for complex numbers: each number counts for itself."""
    total = 0
    for place, value in enumerate(values):
        random = np.random.default_rng(seed + place)
        re, im = (t.from_numpy(np.asarray(random.normal(size=tuple(value.shape)))) for _ in "12")
        if value.is_complex():
            total = total + (value * t.complex(re, im)).real.sum()
        else:
            total = total + (value * re).sum()
    return total


def derive(t: Any, op: Callable[..., Any], *inputs: Any) -> Any:
    """The results of op, the gradients of a loss of them, and those of a loss of the gradients."""
    output = op(*inputs)
    output = [*output] if isinstance(output, (tuple, list)) else [output]
    inexact = [each for each in output if each.requires_grad]
    first = t.autograd.grad(loss(t, inexact, 1), inputs, create_graph=True)
    second = t.autograd.grad(loss(t, first, 5), inputs, allow_unused=True)
    return [each.detach() for each in (*output, *first)], [g for g in second if g is not None]


def svd_parts(t: Any, a: Any, full: bool = False) -> Any:
    u, s, vh = t.linalg.svd(a, full_matrices=full)
    k = s.shape[-1]
    u, vh = u[..., :k], vh[..., :k, :]
    return s, u @ vh, u.abs(), vh.abs()


def eigh_parts(t: Any, a: Any, side: str = "L") -> Any:
    values, v = t.linalg.eigh(a, UPLO=side)
    return values, v.abs(), v[..., :1] @ v[..., :1].mH


def eig_parts(t: Any, a: Any) -> Any:
    values, v = t.linalg.eig(a)
    return values, v.abs(), v @ (values.unsqueeze(-1) ** 2 * t.linalg.inv(v))


def solved_by_lu(t: Any, a: Any, b: Any, left: bool, adjoint: bool) -> Any:
    lu, pivots = t.linalg.lu_factor(a)
    return t.linalg.lu_solve(lu, pivots, b, left=left, adjoint=adjoint)


Script = Callable[[Any], Any]

DERIVED: dict[str, Script] = {
    "inv": lambda t: derive(t, t.linalg.inv, draw(t, 2, 3, 3)),
    "inv_ex": lambda t: derive(t, lambda a: t.linalg.inv_ex(a)[0], draw(t, 3, 3)),
    "det": lambda t: derive(t, t.linalg.det, draw(t, 2, 4, 4)),
    "slogdet": lambda t: derive(t, t.linalg.slogdet, draw(t, 2, 3, 3)),
    "logdet": lambda t: derive(t, t.logdet, draw(t, 3, 3)),
    "solve": lambda t: derive(t, t.linalg.solve, draw(t, 3, 3), draw(t, 3, 2)),
    "solve_vectors": lambda t: derive(t, t.linalg.solve, draw(t, 2, 3, 3), draw(t, 2, 3)),
    "solve_right": lambda t: derive(
        t, lambda a, b: t.linalg.solve(a, b, left=False), draw(t, 3, 3), draw(t, 2, 3)
    ),
    **{
        f"solve_triangular_{upper}_{left}": lambda t, upper=upper, left=left: derive(
            t,
            lambda a, b: t.linalg.solve_triangular(a, b, upper=upper, left=left),
            draw(t, 3, 3),
            draw(t, 3, 3),
        )
        for upper in (False, True)
        for left in (False, True)
    },
    **{
        f"lu_solve_{left}_{adjoint}": lambda t, left=left, adjoint=adjoint: derive(
            t, lambda a, b: solved_by_lu(t, a, b, left, adjoint), draw(t, 3, 3), draw(t, 3, 3)
        )
        for left in (False, True)
        for adjoint in (False, True)
    },
    **{
        f"lu_{rows}_{columns}": lambda t, rows=rows, columns=columns: derive(
            t, lambda a: t.linalg.lu(a)[1:], draw(t, rows, columns)
        )
        for rows, columns in ((3, 3), (4, 2), (2, 4))
    },
    **{
        f"qr_{rows}_{columns}": lambda t, rows=rows, columns=columns: derive(
            t, t.linalg.qr, draw(t, rows, columns)
        )
        for rows, columns in ((3, 3), (4, 2), (2, 4))
    },
    **{
        f"cholesky_{upper}": lambda t, upper=upper: derive(
            t, lambda a: t.linalg.cholesky(a, upper=upper), positive(t, 3)
        )
        for upper in (False, True)
    },
    **{
        f"cholesky_solve_{upper}": lambda t, upper=upper: derive(
            t, lambda b, a: t.cholesky_solve(b, a, upper), draw(t, 3, 2), draw(t, 3, 3)
        )
        for upper in (False, True)
    },
    "cholesky_inverse": lambda t: derive(
        t, lambda a: t.cholesky_inverse(t.linalg.cholesky(a)), positive(t, 3)
    ),
    **{
        f"svd_{full}_{rows}_{columns}": lambda t, full=full, rows=rows, columns=columns: derive(
            t, lambda a: svd_parts(t, a, full), draw(t, rows, columns)
        )
        for full in (False, True)
        for rows, columns in ((3, 3), (4, 2), (2, 4))
    },
    "svdvals": lambda t: derive(t, t.linalg.svdvals, draw(t, 2, 4, 3)),
    **{
        f"eigh_{side}": lambda t, side=side: derive(
            t, lambda a: eigh_parts(t, a, side), draw(t, 2, 4, 4)
        )
        for side in "LU"
    },
    "eigvalsh": lambda t: derive(t, t.linalg.eigvalsh, draw(t, 4, 4)),
    "pinv": lambda t: derive(t, t.linalg.pinv, draw(t, 4, 2)),
    "pinv_hermitian": lambda t: derive(
        t, lambda a: t.linalg.pinv(a, hermitian=True), positive(t, 3)
    ),
    "lstsq": lambda t: derive(
        t, lambda a, b: t.linalg.lstsq(a, b).solution, draw(t, 4, 2), draw(t, 4, 3)
    ),
    "matrix_power": lambda t: derive(t, lambda a: t.linalg.matrix_power(a, -2), draw(t, 3, 3)),
    "matrix_exp": lambda t: derive(t, t.linalg.matrix_exp, draw(t, 2, 3, 3)),
    "householder_product": lambda t: derive(
        t, t.linalg.householder_product, draw(t, 4, 3), draw(t, 2)
    ),
    **{
        f"matrix_norm_{order}": lambda t, order=order: derive(
            t, lambda a: t.linalg.matrix_norm(a, order), draw(t, 3, 4)
        )
        for order in ("fro", "nuc", 1, -1, 2, -2, math.inf)
    },
    "cond": lambda t: derive(t, t.linalg.cond, draw(t, 3, 3)),
    "tensorinv": lambda t: derive(t, t.linalg.tensorinv, draw(t, 2, 3, 6)),
    "tensorsolve": lambda t: derive(t, t.linalg.tensorsolve, draw(t, 2, 3, 6), draw(t, 2, 3)),
    "multi_dot": lambda t: derive(
        t,
        lambda *all_: t.linalg.multi_dot(all_),
        draw(t, 2, 3),
        draw(t, 3, 4),
        draw(t, 4, 2),
    ),
    **{
        f"eigvals_{real}_{n}": lambda t, real=real, n=n: derive(
            t, t.linalg.eigvals, draw(t, 2, n, n, real=real)
        )
        for real in (False, True)
        for n in (1, 3, 6)
    },
    **{
        f"eig_{real}_{n}": lambda t, real=real, n=n: derive(
            t, lambda a: eig_parts(t, a), draw(t, 2, n, n, real=real)
        )
        for real in (False, True)
        for n in (1, 3, 6)
    },
}


@pytest.mark.parametrize("name", DERIVED)
def test_values_gradients_and_second_gradients_agree(name: str) -> None:
    both(DERIVED[name], rtol=1e-5, atol=1e-7)


def single(t: Any, name: str) -> Any:
    a = draw(t, 3, 3, kind="complex64")
    return derive(t, getattr(t.linalg, name), a)[0]


@pytest.mark.parametrize("name", ["inv", "det", "slogdet", "svdvals", "eigvalsh", "eigvals"])
def test_complex64_has_results_of_its_own_precision(name: str) -> None:
    both(lambda t: single(t, name), rtol=2e-4, atol=2e-4)


def spectrum(t: Any, rows: list[list[float]]) -> Any:
    values, v = t.linalg.eig(t.tensor(rows, dtype=t.float64))
    a = t.tensor(rows, dtype=t.complex128)
    return values, (a @ v - v * values).abs(), t.linalg.vector_norm(v, dim=0)


MATRICES: dict[str, list[list[float]]] = {
    "zeros": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    "diagonal": [[3, 0, 0], [0, 1, 0], [0, 0, 2]],
    "upper triangular": [[3, 1, 2], [0, 1, 5], [0, 0, 2]],
    "lower triangular": [[3, 0, 0], [1, 1, 0], [4, 5, 2]],
    "turning": [[0, -1, 0], [1, 0, 0], [0, 0, 1]],
    "permuting": [[0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0]],
    "far from balanced": [[1, 1e8, 0], [1e-8, 2, 1e4], [0, 1e-4, 3]],
    "companion": [[6, -11, 6], [1, 0, 0], [0, 1, 0]],
}


@pytest.mark.parametrize("name", MATRICES)
def test_eigenvalues_stand_in_the_same_order(name: str) -> None:
    both(lambda t: spectrum(t, MATRICES[name])[0], rtol=1e-9, atol=1e-12)
    _, off, lengths = spectrum(pygrad, MATRICES[name])
    assert off.max() <= 1e-13 * max(abs(x) for row in MATRICES[name] for x in row)
    np.testing.assert_allclose(lengths.numpy(), 1, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e300, 1e-300])
def test_eigenvalues_are_found_at_the_ends_of_the_range(scale: float) -> None:
    a = pygrad.tensor([[1, 2, 0], [3, 4, 1], [0, 5, 6]], dtype=pygrad.float64)
    there, here = pygrad.linalg.eigvals(a * scale), pygrad.linalg.eigvals(a)
    np.testing.assert_allclose((there / scale).numpy(), here.numpy(), rtol=1e-12)


@pytest.mark.parametrize("real", [False, True])
def test_many_eigenvalues_settle(real: bool) -> None:
    a = draw(pygrad, 60, 60, real=real).detach()
    values, v = pygrad.linalg.eig(a)
    off = a.to(pygrad.complex128) @ v - v * values
    assert off.abs().max() < 1e-11
    assert pygrad.allclose(values.sum(), a.diagonal().sum().to(values.dtype), atol=1e-10)
    if real:  # pairs are conjugates to the last bit, real values have real vectors
        alone = values.imag == 0
        assert (v.imag[:, alone] == 0).all()
        found = {complex(each) for each in values.tolist()}
        assert found == {each.conjugate() for each in found}


def error_of(t: Any, call: Callable[[], Any]) -> str:
    return str(result_or_error(call)).replace("_LinAlgError", "LinAlgError")


REFUSED: dict[str, Script] = {
    "eig": lambda t: t.linalg.eig(draw(t, 3, 3))[1].sum().abs().backward(),
    "eig of a real matrix": lambda t: (
        t.linalg.eig(draw(t, 3, 3, real=True))[1].sum().abs().backward()
    ),
    "eigh": lambda t: t.linalg.eigh(draw(t, 3, 3))[1].sum().abs().backward(),
    "svd, U": lambda t: t.linalg.svd(draw(t, 3, 3))[0].sum().abs().backward(),
    "svd, V": lambda t: t.linalg.svd(draw(t, 3, 3))[2].sum().abs().backward(),
    "qr": lambda t: t.linalg.qr(draw(t, 4, 3), "complete")[0].abs().sum().backward(),
    "integers": lambda t: t.linalg.eig(t.ones(2, 2, dtype=t.int64)),
    "booleans": lambda t: t.linalg.eigvals(t.ones(2, 2, dtype=t.bool)),
    "half": lambda t: t.linalg.eig(t.ones(2, 2, dtype=t.float16)),
    "half, inv": lambda t: t.linalg.inv(t.ones(2, 2, dtype=t.float16)),
    "half, det": lambda t: t.linalg.det(t.ones(2, 2, dtype=t.float16)),
    "half, svd": lambda t: t.linalg.svd(t.ones(2, 2, dtype=t.float16)),
    "half, qr": lambda t: t.linalg.qr(t.ones(2, 2, dtype=t.float16)),
    "half, cholesky": lambda t: t.linalg.cholesky(t.ones(2, 2, dtype=t.float16)),
    "vector": lambda t: t.linalg.eig(t.ones(2)),
    "rows": lambda t: t.linalg.eig(t.ones(2, 3)),
    "rows, values": lambda t: t.linalg.eigvals(t.ones(2, 3)),
    "not finite": lambda t: t.linalg.eig(t.full((2, 2), math.nan)),
    "singular": lambda t: t.linalg.inv(t.zeros(2, 2, dtype=t.complex128)),
    "not positive": lambda t: t.linalg.cholesky(-t.eye(2, dtype=t.complex64)),
    "dtypes": lambda t: t.linalg.solve(t.eye(2, dtype=t.complex64), t.eye(2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_have_the_same_words(name: str) -> None:
    both(lambda t: error_of(t, lambda: REFUSED[name](t)))


def test_nothing_has_eigenvalues_of_the_complex_type() -> None:
    shapes = ((0, 0), (2, 0, 0), (0, 2, 2))
    both(lambda t: [[*t.linalg.eig(t.ones(*shape))] for shape in shapes])


def test_real_results_of_complex_matrices_are_real() -> None:
    def types(t: Any) -> list[str]:
        a = draw(t, 3, 3, kind="complex64")
        all_ = (
            *t.linalg.eigh(a),
            *t.linalg.svd(a),
            *t.linalg.slogdet(a),
            *t.linalg.lstsq(a, a, driver="gelsd"),
            t.linalg.cond(a),
            t.linalg.matrix_rank(a),
            *t.linalg.eig(a),
            *t.linalg.eig(a.real),
        )
        return [str(each.dtype).rpartition(".")[2] for each in all_]

    both(types)


# ------------------------------------------------------------------ two programs


def test_eigenvalues_as_a_function_differentiated_twice() -> None:
    """A 3 x 3 matrix of one parameter, whose eigenvalues are real before and a pair behind."""

    def script(t: Any) -> Any:
        found = []
        for at in (0.2, 0.9, 2.0):
            x = t.tensor(at, dtype=t.float64, requires_grad=True)
            zero, one = t.zeros_like(x), t.ones_like(x)
            rows = [one, x, zero, -x, 2 * one, x.sin(), x**2, zero, 3 * one]
            values = t.linalg.eigvals(t.stack(rows).reshape(3, 3))
            total = (values.abs() ** 3).sum() + (values**2).imag.abs().sum()
            (first,) = t.autograd.grad(total, x, create_graph=True)
            (second,) = t.autograd.grad(first, x, create_graph=True)
            (third,) = t.autograd.grad(second, x)
            found += [values.detach(), first.detach(), second.detach(), third]
        return found

    both(script, rtol=1e-7, atol=1e-8)


def test_quantum_circuit_is_fitted_through_complex_matrices() -> None:
    """Two qubits: turns about Y and Z, an entangling gate, and the energy of a Hamiltonian."""

    def script(t: Any) -> Any:
        one = t.eye(2, dtype=t.complex128)
        x = t.tensor([[0, 1], [1, 0]], dtype=t.complex128)
        y = t.tensor([[0, -1j], [1j, 0]], dtype=t.complex128)
        z = t.tensor([[1, 0], [0, -1]], dtype=t.complex128)
        entangle = t.tensor(
            [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0]], dtype=t.complex128
        )
        energy = t.kron(z, z) + 0.5 * t.kron(x, one) + 0.25 * t.kron(one, y)
        start = t.tensor([1, 0, 0, 0], dtype=t.complex128)

        def turn(about: Any, angle: Any) -> Any:
            return t.linalg.matrix_exp(-0.5j * angle * about)

        def expectation(angles: Any) -> Any:
            gates = t.kron(turn(y, angles[0]), turn(y, angles[1]))
            state = entangle @ gates @ start
            state = t.kron(turn(z, angles[2]), turn(x, angles[3])) @ state
            return t.vdot(state, energy @ state).real

        angles = t.tensor([0.1, 0.2, 0.3, 0.4], dtype=t.float64, requires_grad=True)
        found = []
        for _ in range(20):
            value = expectation(angles)
            (gradient,) = t.autograd.grad(value, angles)
            found += [value.detach(), gradient]
            angles = (angles - 0.4 * gradient).detach().requires_grad_()
        found.append(t.autograd.functional.hessian(expectation, angles))
        found.append(t.linalg.eigvalsh(energy))
        return found

    both(script, rtol=1e-7, atol=1e-9)
