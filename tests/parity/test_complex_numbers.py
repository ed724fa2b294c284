"""Complex numbers: gradients, views that are written to, lazy conjugates, tangents, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from oracle import both, result_or_error

import pygrad

Case = Callable[[Any, "Operands"], Any]


class Operands:
    """The same numbers in either library."""

    def __init__(self, library: Any) -> None:
        self.z = library.tensor([1 + 2j, -0.5 + 1j, 2 - 3j], dtype=library.complex128)
        self.w = library.tensor([0.3 - 1j, 1 + 1j, -2 + 0.5j], dtype=library.complex128)
        self.r = library.tensor([0.5, -1.0, 2.0], dtype=library.float64)
        self.k = library.arange(1, 4, dtype=library.float64)


def multiplied_by_its_conjugate_view(torch: Any, o: Operands, z: Any) -> Any:
    y = z * 1
    y.conj().mul_(o.w)
    return y


def written_by_its_parts(torch: Any, o: Operands, z: Any) -> Any:
    y = z * 1
    torch.view_as_real(y).mul_(3.0)
    y.real.add_(o.r)
    y.imag.mul_(o.r)
    return y


def pairs_written_as_complex(torch: Any, o: Operands, r: Any) -> Any:
    y = torch.stack([r, r * 2], -1) * 1
    torch.view_as_complex(y).mul_(o.w)
    return y.sum(-1)


def views_of_what_was_written_to(torch: Any, o: Operands, z: Any) -> Any:
    y = z * 1
    conjugate, imaginary = y.conj(), y.imag
    y.mul_(o.w)
    return conjugate * 1 + imaginary


def pairs_of_what_was_written_to(torch: Any, o: Operands, z: Any) -> Any:
    y = z * 1
    pairs = torch.view_as_real(y)
    y.mul_(o.w)
    return pairs.select(-1, 0) * 2 + pairs.select(-1, 1)


FUNCTIONS: dict[str, tuple[Callable[..., Any], str]] = {
    "conjugate view written": (multiplied_by_its_conjugate_view, "z"),
    "parts written": (written_by_its_parts, "z"),
    "pairs written": (pairs_written_as_complex, "r"),
    "views of a written base": (views_of_what_was_written_to, "z"),
    "pairs of a written base": (pairs_of_what_was_written_to, "z"),
    "real times complex": (lambda t, o, z, r: z * r, "zr"),
    "real over complex": (lambda t, o, r, z: r / z, "rz"),
    "power": (lambda t, o, z, w: z**w, "zw"),
    "power of a real": (lambda t, o, r: r.abs() ** o.w, "r"),
    "power of negative reals": (lambda t, o, r, w: t.pow(r, w), "rw"),
    "power of negative reals by a number": (lambda t, o, r: r ** (0.5 + 1j), "r"),
    "power of a negative number": (lambda t, o, w: t.pow(-2.5, w) + (-1) ** w, "w"),
    "power of whole numbers": (lambda t, o, w: t.pow((o.r * 2).long(), w), "w"),
    "powers by numbers": (
        lambda t, o, z: z ** (2 + 1j) + z**2 + z**-1 + z**0.5 + (1 + 1j) ** z,
        "z",
    ),
    "conjugates": (lambda t, o, z: z.conj() * z * z.conj().conj(), "z"),
    "parts of a conjugate": (lambda t, o, z: z.conj().imag * z.conj().real, "z"),
    "where": (lambda t, o, z, w: t.where(o.r > 0, z, w), "zw"),
    "lerp": (lambda t, o, z, w: t.lerp(z, w, o.w), "zw"),
    "addcmul": (lambda t, o, z, w: t.addcmul(z, w, o.w, value=2 + 1j), "zw"),
    "addcdiv": (lambda t, o, z, w: t.addcdiv(w, z, o.w, value=0.5j), "zw"),
    "angle and sgn": (lambda t, o, z: z.angle() + z.sgn().real, "z"),
    "polar": (lambda t, o, r: t.polar(r.abs(), r), "r"),
    "made of parts": (lambda t, o, r: t.complex(r * r, r.sin()), "r"),
    "functions": (lambda t, o, z: z.exp() * z.sin() + z.tanh() / z.log() + z.sqrt().atan(), "z"),
}


def loss(library: Any, o: Operands, y: Any) -> Any:
    weighed = y * o.k
    return weighed.abs().sum() if y.is_complex() else weighed.sum()


def inputs(o: Operands, names: str) -> list[Any]:
    return [getattr(o, name).clone().requires_grad_() for name in names]


def first_order(library: Any, function: Callable[..., Any], names: str) -> list[Any]:
    o = Operands(library)
    xs = inputs(o, names)
    value = loss(library, o, function(library, o, *xs))
    return [g.detach().resolve_conj().numpy() for g in library.autograd.grad(value, xs)]


def second_order(library: Any, function: Callable[..., Any], names: str) -> list[Any]:
    o = Operands(library)
    xs = inputs(o, names)
    value = loss(library, o, function(library, o, *xs))
    first = library.autograd.grad(value, xs, create_graph=True)
    total = sum((g.abs() ** 2).sum() for g in first)
    if not total.requires_grad:  # the gradient is constant
        return []
    found = library.autograd.grad(total, xs, allow_unused=True)
    return [None if g is None else g.detach().resolve_conj().numpy() for g in found]


def tangents(library: Any, function: Callable[..., Any], names: str) -> list[Any]:
    o, ad = Operands(library), library.autograd.forward_ad
    with ad.dual_level():
        xs = [getattr(o, name) for name in names]
        duals = [ad.make_dual(x, x * 0.5 + (1j if x.is_complex() else 1)) for x in xs]
        y = function(library, o, *duals)
        return [ad.unpack_dual(y).tangent.resolve_conj().resolve_neg().numpy()]


WRONG_IN_TORCH = {
    "power of a real",
    "power of negative reals",
    "power of negative reals by a number",
}
"""PyTorch's tangent of a real number to a complex power loses its imaginary part."""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("of", [first_order, second_order, tangents])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_are_torchs(name: str, of: Callable[..., Any]) -> None:
    if of is tangents and name in WRONG_IN_TORCH:
        pytest.skip("PyTorch's is not the derivative")
    function, names = FUNCTIONS[name]
    mine, theirs = of(pygrad, function, names), of(torch, function, names)
    for a, b in zip(mine, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def lists(value: Any) -> Any:
    """A result as Python's own values."""
    if hasattr(value, "tolist"):
        return str(value.dtype), value.tolist()
    return [lists(item) for item in value] if isinstance(value, (list, tuple)) else value


def filled_conjugate(t: Any, o: Operands) -> Any:
    y = o.z.clone()
    y.conj().fill_(1 + 1j)
    return y


def assign(t: Any, o: Operands) -> Any:
    y = o.z.conj().clone()
    y[0] = 5j
    y.conj()[1] = 1j
    y.real = o.r
    y.imag[2] = 7
    return y


def hook(t: Any, o: Operands) -> Any:
    seen: list[Any] = []
    x = o.z.clone().requires_grad_()
    y = x * o.w
    y.register_hook(lambda g: seen.append((str(g.dtype), g.is_conj())))
    y.abs().sum().backward()
    return seen, x.grad.is_conj()


def lazy(t: Any, o: Operands) -> Any:
    z, r = o.z, o.r
    made = [
        z.conj(),
        z.conj().conj(),
        z.real,
        z.conj() * 1,
        z.conj().clone(),
        z.conj().contiguous(),
    ]
    made += [z.conj()[0], z.conj().to(t.complex64), z.conj().view(3, 1), t.conj(r)]
    negative = [z.conj().imag.is_neg(), z.imag.is_neg(), (z.conj().imag * 1).is_neg()]
    return [y.is_conj() for y in made], negative, t.conj(r) is r


CASES: dict[str, Case] = {
    "lazy": lazy,
    "hooks": hook,
    "fill of a conjugate": filled_conjugate,
    "assignments": assign,
    "equal": lambda t, o: t.equal(o.z.conj(), o.z.conj().resolve_conj()),
    "items": lambda t, o: (o.z.conj()[0].item(), o.z.conj()[0].imag.item(), complex(o.z[0])),
    "text": lambda t, o: (repr(o.z.conj()), str(o.z.conj().imag), f"{o.z[0]}", repr(o.z[:0])),
    "as a float": lambda t, o: float(o.z[0]),
    "as an int": lambda t, o: int(o.z[0]),
    "as a truth": lambda t, o: bool(o.z[0]),
    "as an index": lambda t, o: o.z[0].__index__(),
    "an order": lambda t, o: o.z < o.w,
    "to a real type": lambda t, o: o.z.to(t.float32),
    "promotion by numbers": lambda t, o: [
        t.tensor([1, 2]) + 1j,
        t.tensor([1.0, 2]).half() + 1j,
        t.tensor([1.0, 2]).bfloat16() + 1j,
        t.tensor([True]) * 2j,
        o.r * 1j,
        2j - o.r,
        1j / o.z,
    ],
    "no gradient of a complex number": lambda t, o: (o.z.requires_grad_() * 2)[0].backward(),
    "a real gradient for a complex number": lambda t, o: (o.z.requires_grad_() * 2).backward(o.r),
    "a complex gradient for a real number": lambda t, o: (o.r.requires_grad_() * 2).backward(o.z),
    "imaginary parts of real numbers": lambda t, o: o.r.imag,
    "real numbers as pairs": lambda t, o: t.view_as_real(o.r),
    "conjugates as pairs": lambda t, o: t.view_as_real(o.z.conj()),
    "three as a pair": lambda t, o: t.view_as_complex(o.r),
    "integers as complex": lambda t, o: t.view_as_complex(t.ones(2, 2, dtype=t.int64)),
    "parts of two types": lambda t, o: t.complex(o.r, o.r.float()),
    "complex alpha": lambda t, o: t.add(o.r, o.r, alpha=1j),
    "complex numbers into real ones": lambda t, o: o.r.add_(1j),
    "an array of a conjugate": lambda t, o: o.z.conj().numpy(),
    "an array of a negative": lambda t, o: o.z.conj().imag.numpy(),
    "bytes of a conjugate": lambda t, o: o.z.conj().view(t.float64),
    "bytes of a negative": lambda t, o: o.z.conj().imag.view(t.int64),
    "a float of more than float32": lambda t, o: t.zeros(1, dtype=t.complex64).fill_(1e300),
}


def outcome(library: Any, case: Case) -> Any:
    try:
        return lists(case(library, Operands(library)))
    except Exception as error:
        return type(error).__name__, str(error)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_values_and_refusals_are_torchs(name: str) -> None:
    assert outcome(pygrad, CASES[name]) == outcome(torch, CASES[name])


EXTREMES = (float("inf"), -float("inf"), float("nan"), 1.5)


@pytest.mark.parametrize("options", [{}, {"nan": 5.0}, {"posinf": 9.0, "neginf": 3.0}], ids=str)
@pytest.mark.parametrize("dtype", ["complex64", "complex128", "float16", "bfloat16", "float32"])
def test_nan_to_num_replaces_the_extremes_of_each_part(dtype: str, options: Any) -> None:
    def replace(t: Any) -> Any:
        x = t.tensor(EXTREMES, dtype=t.float64)
        kind = getattr(t, dtype)
        x = t.complex(x, x.flip(0)).to(kind) if kind.is_complex else x.to(kind)
        return t.nan_to_num(x, **options)

    both(replace)


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "float16", "complex64", "complex128", "int64"]
)
def test_lengths_and_angles_of_complex_numbers_go_into_out(dtype: str) -> None:
    def write(t: Any) -> list[Any]:
        z = t.tensor([1 + 2j, -3j])
        out = [t.empty(size, dtype=getattr(t, dtype)) for size in (2, 0)]
        return [
            result_or_error(lambda f=f, o=o: f(z, out=o)) for f in (t.abs, t.angle) for o in out
        ]

    both(write)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_tensor_made_of_numbers_is_no_view(dtype: str) -> None:
    def make(t: Any) -> list[Any]:
        kind = getattr(t, dtype)
        found = [t.tensor(data, dtype=kind) for data in ([], 1j, [1, 2.5, True], [[1j], [-0.0]])]
        return [
            (x, x._is_view(), x._base is None, x.is_contiguous(), x.storage_offset()) for x in found
        ]

    both(make)
