"""gradcheck and gradgradcheck of complex inputs and outputs beside PyTorch's: verdicts, messages
with their numbers, warnings, and how often the function is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from oracle import Scripts
from verdicts import compare, module, result_of, scale_gradient

import pygrad

SCRIPTS = Scripts()
script = SCRIPTS.add

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "analytic": lambda t, z, w: z * w.exp(),
    "not analytic": lambda t, z, w: z.abs() * w.conj(),
    "real of complex": lambda t, z, w: (z * w).abs().sum(),
    "both kinds": lambda t, z, w: (z.real * w.imag, z * w, z.angle()),
    "a constant too": lambda t, z, w: (z * 2, w.detach() * 0, t.ones(2, dtype=t.int64)),
    "a view": lambda t, z, w: (z.conj(), t.view_as_real(w)),
    "one input unused": lambda t, z, w: z * z,
    "a matrix": lambda t, z, w: z.view(2, 1) @ w.view(1, 2),
    "wrong": lambda t, z, w: scale_gradient(z * w, 3),
    "wrong by a turn": lambda t, z, w: scale_gradient(z * w, 1j),
    "wrong in the imaginary part": lambda t, z, w: t.complex(
        z.real * w.real, scale_gradient(z.imag * w.imag, 2)
    ),
    "wrong in the real part": lambda t, z, w: t.complex(
        scale_gradient(z.real * 2, 5), z.imag * w.imag
    ),
    "wrong second output": lambda t, z, w: (z.abs(), scale_gradient(z * w, 2)),
    "hides its gradient": lambda t, z, w: z.detach() * 2,
}
OPTIONS: dict[str, dict[str, Any]] = {
    "backward": {},
    "no tolerance of nothing": {"check_undefined_grad": False, "masked": True},
    "forward too": {"check_forward_ad": True, "check_grad_dtypes": True},
    "forward only": {"check_forward_ad": True, "check_backward_ad": False},
    "batched": {"check_batched_grad": True},
    "batched forward": {"check_forward_ad": True, "check_batched_forward_grad": True},
}
KINDS = {
    "complex": ("complex128", "complex128"),
    "real and complex": ("float64", "complex128"),
    "complex and real": ("complex128", "float64"),
}


def leaf(t: Any, *values: complex, dtype: str = "complex128", grad: bool = True) -> Any:
    kept = values if dtype.startswith("complex") else [complex(v).real for v in values]
    return t.tensor(kept, dtype=getattr(t, dtype), requires_grad=grad)


def leaves(t: Any, kinds: tuple[str, str]) -> tuple[Any, Any]:
    return leaf(t, 0.5 + 0.25j, 1.5 - 1j, dtype=kinds[0]), leaf(t, 1 - 2j, 3 + 1j, dtype=kinds[1])


def count_call(t: Any, name: str, calls: Any, z: Any, w: Any) -> Any:
    next(calls)
    return FUNCTIONS[name](t, z + 0j, w + 0j)


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_complex_numbers_are_checked(name: str, option: str, fast: bool) -> None:
    if option == "batched forward" and name in ("not analytic", "a view"):
        pytest.skip("PyTorch fails an assertion of its own where conjugates are batched")
    if fast and option == "forward only" and name == "hides its gradient":
        pytest.skip("PyTorch fails as it makes the message")

    def run(t: Any) -> Any:
        found: list[Any] = []
        options = {"fast_mode": fast, **OPTIONS[option]}
        for kinds in KINDS.values():
            points, calls = leaves(t, kinds), itertools.count()
            function = partial(count_call, t, name, calls)
            verdict = result_of(partial(t.autograd.gradcheck, function, points, **options))
            found.append(verdict)
            if verdict[0] is True:  # what runs again for a message is each library's own
                found.append(next(calls))
            found.append([p.detach() for p in points])
        return found

    compare(run)


@pytest.mark.parametrize("fast", [False, True], ids=["slow", "fast"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"gen_non_contig_grad_outputs": True},
        {"check_fwd_over_rev": True},
        {"check_fwd_over_rev": True, "check_rev_over_rev": False, "check_undefined_grad": False},
        {"check_batched_grad": True},
    ],
    ids=lambda options: "+".join(options) or "plain",
)
@pytest.mark.parametrize(
    "name", ["analytic", "not analytic", "real of complex", "both kinds", "a matrix"]
)
def test_gradients_of_complex_numbers_are_checked(
    name: str, options: dict[str, bool], fast: bool
) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(3)
        check = t.autograd.gradgradcheck
        function = partial(count_call, t, name, itertools.count())
        return [
            result_of(partial(check, function, leaves(t, kinds), fast_mode=fast, **options))
            for kinds in KINDS.values()
        ]

    compare(run)


@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_forward_mode_finds_what_has_no_tangent_in_fast_mode(kind: str) -> None:
    def check(function: Callable[..., Any]) -> bool:
        return pygrad.autograd.gradcheck(
            function,
            leaf(pygrad, 1 + 1j, 2j, dtype=kind),
            check_forward_ad=True,
            check_backward_ad=False,
            fast_mode=True,
        )

    with pytest.raises(RuntimeError, match="computed with forward mode mismatch for output 1"):
        check(lambda z: (z * 2, z.detach() * 2))
    with pytest.raises(RuntimeError, match="computed with forward mode mismatch for output 0"):
        check(lambda z: z.detach() * 2)
    assert check(lambda z: (z * 2, z.detach() * 0))
    with pygrad.no_grad():
        assert check(lambda z: z * 2)


@script
def wrong_second_derivative(t: Any) -> Any:
    def function(z: Any) -> Any:
        y = z.exp()
        y.register_hook(lambda g: None if g is None else g * z.detach())
        return y * 1

    z = leaf(t, 1 + 1j, 1 - 1j)
    return [
        result_of(lambda g=g, fast=fast: t.autograd.gradgradcheck(function, z, g, fast_mode=fast))
        for g in (leaf(t, 2 + 0j, 3j), leaf(t, 2 + 0j, 3j, grad=False))
        for fast in (False, True)
    ]


@script
def random_gradients_are_complex(t: Any) -> Any:
    t.manual_seed(3)
    found = [
        result_of(
            lambda spread=spread: t.autograd.gradgradcheck(
                lambda z: scale_gradient(z.exp(), z.detach()),
                leaf(t, 2 + 1j, 1 + 0j),
                gen_non_contig_grad_outputs=spread,
            )
        )
        for spread in (False, True)
    ]
    return found, t.rand(2)


@script
def without_an_exception(t: Any) -> Any:
    return [
        t.autograd.gradcheck(
            FUNCTIONS["wrong by a turn"].__get__(t),
            leaves(t, kinds),
            raise_exception=False,
            fast_mode=fast,
        )
        for kinds in KINDS.values()
        for fast in (False, True)
    ]


@script
def single_precision(t: Any) -> Any:
    z = leaf(t, 1 + 2j, dtype="complex64")
    return [
        result_of(lambda: t.autograd.gradcheck(lambda z: z * 2, z, eps=1e-2, atol=1e-2)),
        result_of(lambda: t.autograd.gradcheck(lambda z: z.abs() ** 2, z, raise_exception=False)),
        result_of(
            lambda: t.autograd.gradcheck(
                lambda z: z * z, z, eps=1e-2, atol=1e-1, check_forward_ad=True, fast_mode=True
            )
        ),
    ]


@script
def conjugates_that_are_lazy(t: Any) -> Any:
    z = leaf(t, 1 + 2j, 3 - 1j)
    check = t.autograd.gradcheck
    return [
        result_of(lambda f=f, x=x, fast=fast: check(f, x, fast_mode=fast, check_forward_ad=True))
        for f in (lambda z: z * z, lambda z: z.imag, lambda z: scale_gradient(z * z, 2))
        for x in (
            z.conj(),
            z.conj().detach().requires_grad_(),
            z[::2],
            z.imag.conj(),
            z.conj().imag,
        )
        for fast in (False, True)
        if f(z).dtype.is_complex or x.dtype.is_complex
    ]


@script
def results_whose_type_depends_on_the_values(t: Any) -> Any:
    z, x = leaf(t, 1 + 1j), leaf(t, 1, dtype="float64")
    check = t.autograd.gradcheck
    return [
        result_of(lambda f=f, p=p, fast=fast: check(f, p, fast_mode=fast, check_forward_ad=True))
        for f in (
            lambda z: z * 1 if z.real > 1 else z.real * 1,
            lambda z: z.real * 1 if z.real == 1 else z * 1j,
            lambda z: z[z.real > 1],
        )
        for p in (z, x)
        for fast in (False, True)
    ]


@script
def a_function_that_captures_its_input(t: Any) -> Any:
    z = leaf(t, 1 + 2j, 3 - 1j)
    return t.autograd.gradcheck(lambda _: z * z, z)


@script
def inputs_that_no_gradient_is_wanted_of(t: Any) -> Any:
    w = leaf(t, 1 + 2j, 3 - 1j, grad=False)
    return [
        result_of(
            lambda points=points, k=k, fast=fast: t.autograd.gradcheck(
                lambda a, b: scale_gradient(a * b, k), points, check_forward_ad=True, fast_mode=fast
            )
        )
        for points in ((w, leaf(t, 1j, 2j)), (w, leaf(t, 1, 2, dtype="float64")))
        for k in (1, 2)
        for fast in (False, True)
    ]


def with_tangent(t: Any, jvp: Callable[..., Any]) -> Any:
    members = {
        "forward": staticmethod(lambda ctx, z: z * 2),
        "backward": staticmethod(lambda ctx, g: g * 2),
        "jvp": staticmethod(jvp),
    }
    return type("Twice", (t.autograd.Function,), members).apply


@script
def wrong_tangents(t: Any) -> Any:
    return [
        result_of(
            lambda f=f, x=x, fast=fast: t.autograd.gradcheck(
                f, x, check_forward_ad=True, fast_mode=fast, check_grad_dtypes=True
            )
        )
        for f in (
            with_tangent(t, lambda ctx, a: a * 2),
            with_tangent(t, lambda ctx, a: a * 3),
            with_tangent(
                t, lambda ctx, a: t.complex(a.real * 2, a.imag * 7) if a.is_complex() else a
            ),
        )
        for x in (leaf(t, 1 + 1j, 2j), leaf(t, 1, 2, dtype="float64"))
        for fast in (False, True)
    ]


@script
def the_old_entry_points(t: Any) -> Any:
    z, x = leaf(t, 1 + 2j, 3 - 1j), leaf(t, 1, 2, dtype="float64")
    old = module(t)
    one = old.get_numerical_jacobian_wrt_specific_input
    return [
        result_of(lambda: old.get_numerical_jacobian(lambda zs: zs[0].abs(), (z,))),
        result_of(lambda: old.get_numerical_jacobian(lambda zs: zs[0] * 2, (z,))),
        result_of(lambda: old.get_analytical_jacobian((z,), z.abs())),
        result_of(lambda: old.get_analytical_jacobian((z,), z * 2)),
        result_of(lambda: one(lambda z: z.abs(), 0, (z,), (z.abs(),), 1e-3)),
        result_of(lambda: one(lambda z: z * 2, 0, (z,), (z,), 1e-3)),
        result_of(lambda: one(lambda x: x * 2j, 0, (x,), (x * 2j,), 1e-3)),
        result_of(lambda: one(lambda x: x * 2j, 0, (x,), (x * 2j,), 1e-3, is_forward_ad=True)),
    ]


@pytest.mark.parametrize("name", SCRIPTS)
def test_script(name: str) -> None:
    compare(SCRIPTS[name])
