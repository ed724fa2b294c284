"""torch.fft, stft and istft: values, gradients, layouts, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both, layout, result_or_error, warnings_of

import pygrad


def reals(t: Any, *shape: int) -> Any:
    values = np.random.default_rng(sum(shape)).normal(size=shape)
    return t.from_numpy(values).requires_grad_()


def complexes(t: Any, *shape: int) -> Any:
    parts = reals(t, *shape, 2).detach()
    return t.view_as_complex(parts).requires_grad_()


def half(t: Any, *shape: int) -> Any:
    """Half of a spectrum of reals: what must be real is."""
    return t.fft.rfft(reals(t, *shape).detach()).requires_grad_()


def weigh(t: Any, y: Any) -> Any:
    """A real number that depends on every part of y, and on each in another way."""
    parts = t.view_as_real(y.resolve_conj()) if y.is_complex() else y
    weights = t.arange(1.0, parts.numel() + 1).double().view(parts.shape)
    return (parts**2 * weights).sum() + (parts * weights.sin()).sum()


def with_gradient(t: Any, call: Callable[[Any], Any], x: Any) -> list[Any]:
    """What the call gives, how it lies and where it is from, and the gradient; or the error."""
    y = result_or_error(lambda: call(x))
    if isinstance(y, str):
        return [y]
    return [y, layout(y), y.grad_fn.name(), t.autograd.grad(weigh(t, y), x)]


def differentiate(t: Any, op: Callable[..., Any], x: Any) -> Any:
    """Values, gradients, and gradients of these."""
    y = op(x)
    (g,) = t.autograd.grad(weigh(t, y), x, create_graph=True)
    return y, y.grad_fn.name(), g, t.autograd.grad(weigh(t, g), x)


ALONG = "fft ifft rfft irfft hfft ihfft".split()
OF_ANY = "fftn ifftn rfftn irfftn hfftn ihfftn".split()
OF_TWO = "fft2 ifft2 rfft2 irfft2 hfft2 ihfft2".split()
REAL_ONLY = {"rfft", "ihfft", "rfftn", "ihfftn", "rfft2", "ihfft2"}
LENGTHS = (1, 2, 3, 4, 5, 7, 8, 11, 12, 16, 17, 30, 67, 101)


def inputs(t: Any, name: str, *shape: int) -> list[Any]:
    return [reals(t, *shape)] + ([] if name in REAL_ONLY else [complexes(t, *shape)])


def each(t: Any, name: str, shape: tuple[int, ...], **options: Any) -> list[Any]:
    return [
        result_or_error(lambda x=x: getattr(t.fft, name)(x, **options))
        for x in inputs(t, name, *shape)
    ]


@pytest.mark.parametrize("name", ALONG)
def test_lengths(name: str) -> None:
    both(lambda t: [each(t, name, (2, n)) for n in LENGTHS], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ALONG)
def test_float32(name: str) -> None:
    def script(t: Any) -> Any:
        f = getattr(t.fft, name)
        return [
            f(x.detach().to(t.complex64 if x.is_complex() else t.float32))
            for n in (8, 64, 67, 100, 1009)
            for x in inputs(t, name, 3, n)
        ]

    both(script, rtol=1e-4, atol=1e-4)


NORMS = (None, "backward", "forward", "ortho")


@pytest.mark.parametrize("name", ALONG)
def test_one_dimension(name: str) -> None:
    def script(t: Any) -> Any:
        return [
            each(t, name, (3, 4, 5), n=n, dim=dim, norm=norm)
            for n in (None, 1, 3, 7)
            for dim in (0, 1, -1)
            for norm in NORMS
        ]

    both(script)


SHAPES: list[dict[str, Any]] = [
    {},
    {"s": (2, 3)},
    {"s": (6, 7)},
    {"s": (-1, 3)},
    {"s": (3, -1)},
    {"s": (4, 2), "dim": (2, 0)},
    {"dim": (0, 1)},
    {"dim": (1, 0)},
    {"dim": (-1, 0)},
    {"dim": 1},
]


@pytest.mark.parametrize("name", [*OF_TWO, *OF_ANY])
def test_several_dimensions(name: str) -> None:
    def script(t: Any) -> Any:
        return [
            each(t, name, (3, 4, 5), norm=norm, **shape)
            for shape in SHAPES
            for norm in (None, "forward", "ortho")
        ] + [each(t, name, (3, 1, 4), s=3), each(t, name, (2, 3, 2, 4))]

    both(script)


@pytest.mark.parametrize("name", ["fftn", "ifftn"])
def test_no_dimension_is_a_copy(name: str) -> None:
    def script(t: Any) -> Any:
        x = complexes(t, 2, 3)
        y = getattr(t.fft, name)(x, dim=())
        return [y, y.data_ptr() == x.data_ptr(), getattr(t.fft, name)(t.tensor(2.0), dim=())]

    both(script)


@pytest.mark.parametrize("name", [*ALONG, *OF_TWO, *OF_ANY])
def test_layouts(name: str) -> None:
    dims: tuple[Any, ...] = (0, 1, 2) if name in ALONG else ((0, 1), (2, 0), (1, 2))

    def script(t: Any) -> Any:
        return [
            layout(getattr(t.fft, name)(y, dim=dim))
            for x in inputs(t, name, 3, 4, 5)
            for y in (x, x.transpose(0, 2), x.permute(1, 2, 0), x[:, ::2])
            for dim in dims
        ]

    both(script)


@pytest.mark.parametrize("name", [*ALONG, *OF_TWO, *OF_ANY])
@pytest.mark.parametrize("n", [4, 5])
def test_gradients(name: str, n: int) -> None:
    def script(t: Any) -> Any:
        f = getattr(t.fft, name)
        shorter = {"n": 3} if name in ALONG else {"s": (3, 3)}
        longer = {"n": 6} if name in ALONG else {"s": (6, 7)}
        return [
            differentiate(t, lambda x, o=options: f(x, norm="ortho", **o), x)
            for x in inputs(t, name, 3, n)
            for options in ({}, shorter, longer)
        ]

    both(script)


@pytest.mark.parametrize("name", [*ALONG, *OF_TWO, *OF_ANY])
def test_tangents(name: str) -> None:
    def script(t: Any) -> Any:
        return [
            t.func.jvp(getattr(t.fft, name), (x.detach(),), (x.detach() * 2 + 1,))
            for x in inputs(t, name, 3, 5)
        ]

    both(script)


@pytest.mark.parametrize("name", [*ALONG, *OF_TWO, *OF_ANY])
def test_batches(name: str) -> None:
    dims: tuple[Any, ...] = (0, -1) if name in ALONG else ((0, 1), (-1, 0))

    def script(t: Any) -> Any:
        f = getattr(t.fft, name)
        more = [] if name in ALONG else [{"s": (3, 2)}, {"s": (2, 2), "dim": (1, 0)}]
        return [
            t.func.vmap(lambda x, o=options: f(x, **o), in_dims=1)(x.detach())
            for x in inputs(t, name, 3, 2, 4)
            for options in [{}, *({"dim": dim} for dim in dims), *more]
        ]

    both(script)


def test_batch_is_transformed_at_once() -> None:
    x = complexes(pygrad, 5, 8).detach()
    with pygrad.profiler.profile() as p:
        pygrad.func.vmap(pygrad.fft.fft)(x)
    assert sum(e.name == "aten::_fft_c2c" for e in p.events()) == 1


OTHERS: dict[str, Callable[[Any], Any]] = {
    "integers": lambda t: [
        f(t.arange(6).view(2, 3)) for f in (t.fft.fft, t.fft.irfft, t.fft.rfftn, t.fft.hfft)
    ],
    "bools": lambda t: t.fft.fft(t.tensor([True, False, True])),
    "conjugated": lambda t: [
        f(complexes(t, 2, 5).conj()) for f in (t.fft.fft, t.fft.ifftn, t.fft.irfft, t.fft.hfftn)
    ],
    "conjugates": lambda t: [
        t.fft.ihfft(reals(t, 5)).is_conj(),
        t.fft.ifft(reals(t, 5)).is_conj(),
        t.fft.ihfftn(reals(t, 3, 5)).is_conj(),
    ],
    "saved": lambda t: [
        (lambda g: [g._saved_dim, g._saved_forward, g._saved_normalization])(
            t.fft.ifft2(complexes(t, 2, 3, 4)).grad_fn
        ),
        (lambda g: [g._saved_dim, g._saved_onesided, g._saved_normalization, g._saved_self])(
            t.fft.fft(reals(t, 3), norm="ortho").grad_fn
        ),
        (lambda g: [g._saved_dim, g._saved_normalization])(
            t.fft.irfftn(half(t, 3, 4), norm="forward").grad_fn
        ),
    ],
    "nodes": lambda t: [
        y.grad_fn.next_functions[0][0].name()
        for y in (
            t.fft.fft(reals(t, 5), 3),
            t.fft.fft(reals(t, 5), 7),
            t.fft.irfft(reals(t, 5)),
            t.fft.hfft(complexes(t, 5)),
            t.fft.ihfft(reals(t, 5)),
            t.fft.hfftn(complexes(t, 3, 5)),
            t.fft.ihfftn(reals(t, 3, 5)),
            t.fft.fftn(reals(t, 3, 5)),
        )
    ],
    "imaginary_parts_that_cannot_be": lambda t: [t.fft.irfft(complexes(t, 4), n) for n in (6, 7)],
    "out": lambda t: [
        (lambda out: [t.fft.fft(reals(t, 3, 4).detach(), out=out) is out, out])(
            t.empty(0, dtype=t.complex128)
        ),
        t.fft.irfft(half(t, 8).detach(), out=t.empty(8)),
        t.fft.fftn(reals(t, 2, 3).detach(), out=t.empty(3, 2, dtype=t.complex128).t()),
        t.fft.ihfftn(reals(t, 2, 3).detach(), out=t.empty(0, dtype=t.complex128)),
    ],
    "out_that_needs_a_gradient": lambda t: [
        result_or_error(
            lambda f=f: f(t.ones(3), out=t.empty(3, dtype=t.complex64, requires_grad=True))
        )
        for f in (t.fft.fft, t.fft.rfft, t.fft.fftn)
    ],
    "out_of_what_needs_a_gradient": lambda t: [
        result_or_error(lambda f=f: f(complexes(t, 3), out=t.empty(0).double()))
        for f in (t.fft.irfft, t.fft.hfft, t.fft.irfftn)
    ],
    "round_trip": lambda t: [
        t.fft.ifft(t.fft.fft(complexes(t, 3, 30))),
        t.fft.irfft(t.fft.rfft(reals(t, 3, 31)), 31),
        t.fft.ifftn(t.fft.fftn(complexes(t, 3, 5, 4))),
    ],
}


@pytest.mark.parametrize("name", OTHERS)
def test_transforms(name: str) -> None:
    both(OTHERS[name])


@pytest.mark.parametrize("default", ["float32", "float64"])
def test_integers_are_transformed_in_the_default_type(default: str) -> None:
    def script(t: Any) -> Any:
        t.set_default_dtype(getattr(t, default))
        try:
            return [f(t.arange(4)) for f in (t.fft.fft, t.fft.irfft, t.fft.ihfft)]
        finally:
            t.set_default_dtype(t.float32)

    both(script, atol=1e-6)


WRONG: dict[str, dict[str, Any]] = {
    "length": {"n": 0},
    "negative_length": {"n": -2},
    "dim": {"dim": 2},
    "negative_dim": {"dim": -3},
    "norm": {"norm": "bad"},
    "empty_norm": {"norm": ""},
    "norm_of_no_text": {"norm": 1},
    "length_of_no_integer": {"n": 2.0},
    "dims": {"dim": (0,)},
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("name", ALONG)
def test_what_is_wrong_with_one_dimension(name: str, wrong: str) -> None:
    def script(t: Any) -> Any:
        f = getattr(t.fft, name)
        return [
            result_or_error(lambda x=x: f(x, **WRONG[wrong]))
            for x in (t.ones(3, 4), complexes(t, 3, 4))
        ]

    both(script)


@pytest.mark.parametrize("name", ALONG)
def test_what_is_wrong_with_an_input(name: str) -> None:
    def script(t: Any) -> Any:
        f = getattr(t.fft, name)
        return [
            result_or_error(lambda call=call: call())
            for call in (
                lambda: f(t.tensor(1.0)),
                lambda: f(t.tensor(1.0), dim=0),
                lambda: f(t.ones(0)),
                lambda: f(t.ones(1)),
                lambda: f(t.ones(2).half()),
                lambda: f(t.ones(2).bfloat16()),
                lambda: f(1),
                lambda: f(),
                lambda: f(t.ones(3), 2, 0, "ortho", 1),
                lambda: f(t.ones(3), out=t.empty(0).long()),
                lambda: f(t.ones(3), out=t.empty(0).double()),
                lambda: f(t.ones(3), out=t.empty(0, dtype=t.complex128)),
            )
        ]

    both(script)


WRONG_SHAPES: dict[str, dict[str, Any]] = {
    "size": {"s": (0, 1)},
    "negative_size": {"s": (-2, 2)},
    "too_many": {"s": (1, 2, 3)},
    "not_as_many": {"s": (2,), "dim": (0, 1)},
    "twice": {"dim": (0, 0)},
    "twice_by_other_names": {"dim": (0, -2)},
    "dim": {"dim": (2, 0)},
    "no_dim": {"dim": ()},
    "no_size": {"s": ()},
    "neither": {"s": (), "dim": ()},
    "norm": {"norm": "bad"},
    "no_dims": {"dim": None},
}


@pytest.mark.parametrize("wrong", WRONG_SHAPES)
@pytest.mark.parametrize("name", [*OF_TWO, *OF_ANY])
def test_what_is_wrong_with_several_dimensions(name: str, wrong: str) -> None:
    def script(t: Any) -> Any:
        f, options = getattr(t.fft, name), WRONG_SHAPES[wrong]
        return [
            result_or_error(lambda x=x: f(x, **options)) for x in (t.ones(3, 4), complexes(t, 3, 4))
        ]

    both(script)


@pytest.mark.parametrize("name", [*OF_TWO, *OF_ANY])
def test_what_is_wrong_with_an_input_of_several_dimensions(name: str) -> None:
    def script(t: Any) -> Any:
        f = getattr(t.fft, name)
        return [
            result_or_error(lambda call=call: call())
            for call in (
                lambda: f(t.tensor(1.0)),
                lambda: f(t.ones(0)),
                lambda: f(t.ones(2, 0)),
                lambda: f(t.ones(2, 1)),
                lambda: f(t.ones(5)),
                lambda: f(t.ones(2, 2).half()),
                lambda: f(t.ones(2, 2), out=t.empty(0).long()),
                lambda: f(t.ones(2, 2), out=t.empty(0).double()),
                lambda: f(complexes(t, 2, 2), out=t.empty(0).long()),
            )
        ]

    both(script, atol=1e-6)


FREQUENCIES: dict[str, Callable[[Any, Any], Any]] = {
    "lengths": lambda t, f: [f(n) for n in range(9)],
    "spacing": lambda t, f: [f(6, d) for d in (0.5, 3, -2.0, 0.0, 1e-50)],
    "float64": lambda t, f: f(7, 0.3, dtype=t.float64),
    "negative_lengths": lambda t, f: [result_or_error(lambda n=n: f(n)) for n in (-1, -2, -4)],
    "integers": lambda t, f: f(4, dtype=t.int64),
    "leaf": lambda t, f: [(y := f(4, requires_grad=True)), y.requires_grad, y.is_leaf],
    "out": lambda t, f: (lambda out: [f(8, 2, out=out) is out, out])(t.empty(0).double()),
    "out_too_short": lambda t, f: f(8, out=t.empty(3)),
    "out_of_integers": lambda t, f: f(8, out=t.empty(8).long()),
    "out_and_dtype": lambda t, f: f(8, out=t.empty(8), dtype=t.float64),
    "no_length": lambda t, f: f(),
    "length_of_no_integer": lambda t, f: f(2.0),
    "no_device": lambda t, f: f(2, device="nowhere"),
}


@pytest.mark.parametrize("name", FREQUENCIES)
@pytest.mark.parametrize("function", ["fftfreq", "rfftfreq"])
def test_frequencies(function: str, name: str) -> None:
    both(lambda t: FREQUENCIES[name](t, getattr(t.fft, function)), rtol=0, atol=0)


SHIFTS: dict[str, Callable[[Any, Any], Any]] = {
    "all": lambda t, f: [f(t.arange(n)) for n in (1, 2, 5)] + [f(t.arange(6).view(2, 3))],
    "dims": lambda t, f: [f(t.arange(12).view(3, 4), dim=d) for d in (0, -1, (1, 0), (0, 0))],
    "empty": lambda t, f: f(t.ones(2, 0, 3)),
    "scalar": lambda t, f: [
        result_or_error(lambda d=d: f(t.tensor(1.0), d)) for d in (None, 0, ())
    ],
    "no_dims": lambda t, f: f(t.ones(2), dim=()),
    "dim_too_far": lambda t, f: f(t.ones(2), dim=(0, 1)),
    "dim_of_no_integer": lambda t, f: f(t.ones(2), dim=1.0),
    "list": lambda t, f: f([1.0, 2.0]),
    "gradient": lambda t, f: (
        lambda x: [(y := f(x, 1)).grad_fn.name(), (y**3).sum().backward(), x.grad]
    )(reals(t, 2, 5)),
    "vmap": lambda t, f: [
        t.func.vmap(lambda x, d=d: f(x, d))(reals(t, 2, 3, 4)) for d in (None, 0, (-1, 0))
    ],
    "tangent": lambda t, f: t.func.jvp(f, (reals(t, 5),), (t.arange(5.0).double(),)),
}


@pytest.mark.parametrize("name", SHIFTS)
@pytest.mark.parametrize("function", ["fftshift", "ifftshift"])
def test_shifts(function: str, name: str) -> None:
    both(lambda t: SHIFTS[name](t, getattr(t.fft, function)), rtol=0, atol=0)


# ------------------------------------------------------------------ stft and istft


def signal(t: Any, *shape: int) -> Any:
    return reals(t, *shape, 20)


def window(t: Any, n: int = 8) -> Any:
    return t.hann_window(n, dtype=t.float64)


STFT: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": window},
    "complex_window": {"window": lambda t: window(t) * 1j},
    "complex_window_onesided": {"window": lambda t: window(t) + 0j, "onesided": True},
    "uncentered": {"center": False},
    "constant": {"pad_mode": "constant"},
    "replicated": {"pad_mode": "replicate"},
    "unknown_mode": {"pad_mode": "bad"},
    "no_mode": {"pad_mode": None},
    "no_mode_uncentered": {"pad_mode": None, "center": False},
    "normalized": {"normalized": True},
    "twosided": {"onesided": False},
    "hops": {"hop_length": 3},
    "no_hops": {"hop_length": 0},
    "negative_hops": {"hop_length": -1},
    "short_window": {"win_length": 5},
    "no_window": {"win_length": 0},
    "long_window": {"win_length": 9},
    "window_of_another_length": {"win_length": 5, "window": window},
    "short_window_given": {"win_length": 5, "window": lambda t: window(t, 5)},
    "window_of_two_dimensions": {"window": lambda t: window(t).expand(2, 8)},
    "integer_window": {"window": lambda t: t.arange(8)},
    "aligned": {"align_to_window": True},
    "aligned_uncentered": {"align_to_window": True, "center": False},
    "aligned_short": {"align_to_window": True, "center": False, "win_length": 5},
    "unaligned": {"align_to_window": False, "center": False},
    "reals": {"return_complex": False, "window": window},
}


def options_in(t: Any, options: dict[str, Any]) -> dict[str, Any]:
    return {k: v(t) if callable(v) else v for k, v in options.items()}


@pytest.mark.parametrize("name", STFT)
def test_stft(name: str) -> None:
    def script(t: Any) -> Any:
        options = {"return_complex": True} | options_in(t, STFT[name])
        results = []
        for x in (signal(t), signal(t, 2), complexes(t, 20)):
            results += with_gradient(t, lambda x: t.stft(x, 8, **options), x)
        return results

    both(script)


WRONG_STFT: dict[str, Callable[[Any], Any]] = {
    "no_length": lambda t: t.stft(signal(t), 0, return_complex=True),
    "negative_length": lambda t: t.stft(signal(t), -1, return_complex=True),
    "too_long": lambda t: t.stft(signal(t), 40, return_complex=True),
    "too_long_uncentered": lambda t: t.stft(signal(t), 21, center=False, return_complex=True),
    "reals_or_not": lambda t: t.stft(signal(t), 8),
    "reals_or_not_of_method": lambda t: signal(t).stft(8),
    "integers": lambda t: t.stft(t.arange(20), 8, return_complex=True),
    "scalar": lambda t: t.stft(t.tensor(1.0), 8, return_complex=True),
    "three_dimensions": lambda t: t.stft(t.ones(2, 2, 20), 8, return_complex=True),
    "three_dimensions_uncentered": lambda t: t.stft(t.ones(2, 2, 20), 8, center=False),
    "hops_of_short_ones": lambda t: [
        result_or_error(lambda n=n: t.stft(signal(t), n, return_complex=True)) for n in (1, 2, 3)
    ],
    "complex": lambda t: t.stft(complexes(t, 20), 8),
    "complex_as_reals": lambda t: t.stft(complexes(t, 20), 8, return_complex=False),
    "complex_onesided": lambda t: t.stft(complexes(t, 20), 8, onesided=True),
    "method": lambda t: signal(t, 2).stft(n_fft=8, window=window(t), return_complex=True),
}


@pytest.mark.parametrize("name", WRONG_STFT)
def test_stft_of_what_may_be_wrong(name: str) -> None:
    both(WRONG_STFT[name])


ISTFT: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"window": window},
    "length": {"window": window, "length": 18},
    "longer": {"window": window, "length": 30},
    "no_length": {"window": window, "length": 0},
    "negative_length": {"window": window, "length": -3},
    "uncentered": {"center": False},
    "uncentered_window": {"center": False, "window": window},
    "uncentered_longer": {"center": False, "length": 40},
    "normalized": {"normalized": True, "window": window},
    "onesided": {"onesided": True},
    "twosided": {"onesided": False},
    "hops": {"hop_length": 3},
    "no_hops": {"hop_length": 0},
    "long_hops": {"hop_length": 9},
    "short_window": {"win_length": 5},
    "no_window": {"win_length": 0},
    "long_window": {"win_length": 9},
    "window_of_another_length": {"win_length": 5, "window": window},
    "window_of_two_dimensions": {"window": lambda t: window(t).expand(2, 8)},
    "window_of_zeros": {"window": lambda t: window(t) * 0},
    "integer_window": {"window": lambda t: t.arange(1, 9)},
    "complex_window": {"window": lambda t: window(t) + 0j},
    "complex": {"return_complex": True},
    "complex_by_complex_window": {"return_complex": True, "window": lambda t: window(t) * 1j},
}


@pytest.mark.parametrize("name", ISTFT)
def test_istft(name: str) -> None:
    def script(t: Any) -> Any:
        options, results = options_in(t, ISTFT[name]), []
        given = {"window": window(t), "return_complex": True}
        for x in (
            t.stft(signal(t).detach(), 8, **given),
            t.stft(signal(t, 2).detach(), 8, **given),
            t.stft(signal(t).detach(), 8, onesided=False, **given),
        ):
            x = x.clone().requires_grad_()
            results += with_gradient(t, lambda x: t.istft(x, 8, **options), x)
        return results

    both(script)


WRONG_ISTFT: dict[str, Callable[[Any], Any]] = {
    "reals": lambda t: t.istft(t.ones(5, 11, 2), 8),
    "one_dimension": lambda t: t.istft(complexes(t, 5), 8),
    "scalar": lambda t: t.istft(t.tensor(1j), 8),
    "four_dimensions": lambda t: t.istft(complexes(t, 1, 1, 5, 11), 8),
    "empty": lambda t: t.istft(t.zeros(5, 0, dtype=t.complex128), 8),
    "another_length": lambda t: t.istft(complexes(t, 5, 11), 6),
    "odd_length": lambda t: t.istft(complexes(t, 5, 11), 9),
    "length_of_zero": lambda t: t.istft(complexes(t, 5, 11), 0),
    "conjugated": lambda t: t.istft(complexes(t, 5, 11).conj(), 8),
    "method": lambda t: complexes(t, 5, 11).istft(8, window=window(t)),
    "no_n_fft": lambda t: t.istft(complexes(t, 5, 11)),
}


@pytest.mark.parametrize("name", WRONG_ISTFT)
def test_istft_of_what_may_be_wrong(name: str) -> None:
    both(WRONG_ISTFT[name])


def test_warnings() -> None:
    """Each comes once a process, unless all are to come always."""

    def script(t: Any) -> Any:
        t.set_warn_always(True)
        try:
            x, w = signal(t), window(t)
            y = t.stft(x, 8, window=w, return_complex=True)
            return [
                warnings_of(lambda: t.stft(x, 8, return_complex=True)),
                warnings_of(lambda: t.stft(x, 8, window=w, return_complex=False)),
                warnings_of(lambda: t.istft(y, 8)),
                warnings_of(lambda: t.istft(y, 8, window=w, length=30)),
            ]
        finally:
            t.set_warn_always(False)

    both(script)
