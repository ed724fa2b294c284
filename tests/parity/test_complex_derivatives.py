"""Derivatives of complex functions and by complex inputs beside PyTorch's: `backward`, `grad`,
`torch.autograd.functional` and `torch.func`, what they give and what they refuse.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from oracle import torch
from verdicts import agree, result_of

import pygrad

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "analytic": lambda t, z: z * z.exp(),
    "not analytic": lambda t, z: z.abs() * z.conj(),
    "to the other kind": lambda t, z: (z * z).real if z.is_complex() else z * 2j,
    "a real number": lambda t, z: (z * z.conj()).real.sum() if z.is_complex() else (z * z).sum(),
    "a complex number": lambda t, z: (z * z).sum() * t.tensor(1 + 0j),
    "of an element": lambda t, z: z[0] * z[0] * t.tensor(1j),
    "a distance": lambda t, z: (z[0] * z[1]).abs(),
    "a constant": lambda t, z: t.ones(2, dtype=t.complex128),
    "two": lambda t, z: (z * 2, (z * 1j).abs().sum()),
    "whole numbers": lambda t, z: t.ones(2, dtype=t.int64),
}
KINDS = ("complex128", "float64", "complex64")
PRODUCTS = ("vjp", "jvp", "vhp", "hvp")


def vector(t: Any, *values: complex, dtype: str = "complex128") -> Any:
    kept = values if dtype.startswith("complex") else [complex(v).real for v in values]
    return t.tensor(kept, dtype=getattr(t, dtype))


def vectors(t: Any) -> list[Any]:
    return [
        None,
        vector(t, 1 - 1j, 2j),
        vector(t, 1, 2, dtype="float64"),
        vector(t, 1, 2j, dtype="complex64"),
        vector(t, 1, 2, dtype="float32"),
        t.tensor(1j, dtype=t.complex128),
        t.tensor(1.0),
        t.tensor([1, 2]),
    ]


def outcome(run: Callable[[], Any]) -> list[Any]:
    """What came of it, without PyTorch's warnings of its own graphs."""
    value, warnings = result_of(run)
    return [value, [text for text in warnings if "get_attr" not in text]]


def compare(run: Callable[[Any, Any], list[Any]], name: str, kind: str) -> None:
    def run_here(t: Any) -> list[Any]:
        return run(t, partial(FUNCTIONS[name], t))

    for mine, theirs in zip(run_here(pygrad), run_here(torch), strict=True):
        if "INTERNAL ASSERT" not in str(theirs):  # of PyTorch, where conjugates are batched
            agree(mine, theirs)


each = pytest.mark.parametrize("name", FUNCTIONS)
each_kind = pytest.mark.parametrize("kind", KINDS)


@each_kind
@each
def test_gradients_start_from_what_fits(name: str, kind: str) -> None:
    def run(t: Any, f: Callable[..., Any]) -> list[Any]:
        found = []
        for v in vectors(t):
            z = vector(t, 1 + 2j, 3 - 1j, dtype=kind).requires_grad_()
            found.append(outcome(partial(lambda z, v: (f(z).backward(v), z.grad), z, v)))
            found.append(outcome(partial(lambda z, v: t.autograd.grad(f(z), z, v), z, v)))
            found.append(outcome(partial(lambda z, v: t.autograd.grad((f(z), z), z, (v,)), z, v)))
        z = vector(t, 1 + 2j, 3 - 1j, dtype=kind).requires_grad_()
        for rows in (t.ones(2, 2, dtype=t.complex128), t.ones(2, 2, dtype=t.float64)):
            found.append(
                outcome(lambda rows=rows: t.autograd.grad(f(z), z, rows, is_grads_batched=True))
            )
        return found

    compare(run, name, kind)


@each_kind
@each
def test_functional_gives_and_refuses_the_same(name: str, kind: str) -> None:
    def run(t: Any, f: Callable[..., Any]) -> list[Any]:
        module, z = t.autograd.functional, vector(t, 1 + 2j, 3 - 1j, dtype=kind)
        forward = {"vectorize": True, "strategy": "forward-mode"}
        outer = {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}
        options: list[dict[str, Any]] = [{}, {"vectorize": True}, {"strict": True}]
        found = [
            *(outcome(partial(module.jacobian, f, z, **o)) for o in [*options, forward]),
            outcome(lambda: module.jacobian(f, z, create_graph=True)),
            *(outcome(partial(module.hessian, f, z, **o)) for o in [*options, outer]),
        ]
        for product in PRODUCTS:
            for v in vectors(t):
                found.append(outcome(partial(getattr(module, product), f, z, v)))
            found.append(
                outcome(partial(getattr(module, product), f, z, vectors(t)[1], strict=True))
            )
        return found

    compare(run, name, kind)


@each_kind
@each
def test_transforms_give_and_refuse_the_same(name: str, kind: str) -> None:
    def run(t: Any, f: Callable[..., Any]) -> list[Any]:
        z = vector(t, 1 + 2j, 3 - 1j, dtype=kind)
        found = [
            outcome(lambda transform=transform: getattr(t.func, transform)(f)(z))
            for transform in ("jacrev", "jacfwd", "hessian", "grad", "grad_and_value")
        ]
        found += [
            outcome(lambda: t.func.jacrev(f, chunk_size=1)(z)),
            outcome(lambda: t.func.jacrev(lambda a, b: f(b), argnums=1)({"a": z.real}, z)),
            outcome(lambda: t.func.jacfwd(lambda a, b: f(a), argnums=0)(z.abs(), {"b": z})),
        ]
        tangents = [v for v in vectors(t)[1:5] if v.dtype in (z.dtype, z.real.dtype)]
        for v in tangents:
            found.append(outcome(partial(lambda v: t.func.vjp(f, z)[1](v), v)))
            found.append(outcome(partial(lambda v: t.func.jvp(f, (z,), (v,)), v)))
            found.append(outcome(partial(lambda v: t.func.linearize(f, z)[1](v), v)))
        return found

    compare(run, name, kind)
