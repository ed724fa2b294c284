"""torch.signal.windows, and the older functions of the torch namespace by which they are periodic.

Every function takes PyTorch's keywords `dtype` (float32 or float64), `layout`, `device` and
`requires_grad`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypedDict, Unpack

import pygrad
from pygrad._builtins import builtin
from pygrad._tensor import Tensor

__all__ = [
    "bartlett",
    "blackman",
    "cosine",
    "exponential",
    "gaussian",
    "general_cosine",
    "general_hamming",
    "hamming",
    "hann",
    "kaiser",
    "nuttall",
]


class Options(TypedDict, total=False):
    """How a window is made."""

    dtype: pygrad.dtype | None
    layout: pygrad.layout
    device: pygrad.device | str | int | None
    requires_grad: bool


def _checked(name: str, M: int, options: Options) -> Options:
    """The options with their dtype."""
    dtype = options.get("dtype") or pygrad.get_default_dtype()
    layout = options.get("layout", pygrad.strided)
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not pygrad.strided:
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    if dtype not in (pygrad.float32, pygrad.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype}")
    return {**options, "dtype": dtype}


def _ones(M: int, options: Options) -> Tensor:
    made: Tensor = pygrad.ones(M, **options)
    return made


def _line(M: int, start: float, step: float, options: Options) -> Tensor:
    """M numbers, of which each is `step` from the next."""
    made: Tensor = pygrad.linspace(start * step, (start + M - 1) * step, M, **options)
    return made


def bartlett(M: int, *, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """A triangle: 1 - |2 k / (M - 1) - 1|.

    Args:
        M: how many numbers.
        sym: symmetric; else the first M of a window of M + 1, for periods.

    Raises:
        ValueError: a negative M, a layout or dtype that windows do not have.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.bartlett(4, sym=False)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    options = _checked("bartlett", M, options)
    if M <= 1:
        return _ones(M, options)
    step = 2 / (M - 1 if sym else M)
    line: Tensor = pygrad.linspace(-1, -1 + (M - 1) * step, M, **options)
    return 1 - line.abs()


def cosine(M: int, *, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """Half a period of the sine; see :func:`bartlett` for the arguments.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.cosine(3)
        tensor([0.5000, 1.0000, 0.5000])
    """
    options = _checked("cosine", M, options)
    if M == 0:
        return _ones(M, options)
    return _line(M, 0.5, math.pi / (M if sym or M == 1 else M + 1), options).sin()


def exponential(
    M: int,
    *,
    center: float | None = None,
    tau: float = 1.0,
    sym: bool = True,
    **options: Unpack[Options],
) -> Tensor:
    """exp(-|k - center| / tau); see :func:`bartlett` for the other arguments.

    Args:
        center: where the 1 is: in the middle by default; only of windows that are not symmetric.
        tau: how far from there the window is 1 / e.

    Raises:
        ValueError: as :func:`bartlett`; a `tau` that is not positive, a centre of a symmetric one.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.exponential(3)
        tensor([0.3679, 1.0000, 0.3679])
    """
    options = _checked("exponential", M, options)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if M == 0:
        return _ones(M, options)
    middle = (M - 1 if sym or M == 1 else M) / 2 if center is None else center
    return (-_line(M, -middle, 1 / tau, options).abs()).exp()


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """exp(-(k - middle)^2 / (2 std^2)); see :func:`bartlett` for the other arguments.

    Args:
        std: the standard deviation.

    Raises:
        ValueError: as :func:`bartlett`; a deviation that is not positive.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.gaussian(3)
        tensor([0.6065, 1.0000, 0.6065])
    """
    options = _checked("gaussian", M, options)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if M == 0:
        return _ones(M, options)
    middle = (M - 1 if sym or M == 1 else M) / 2
    return (-_line(M, -middle, 1 / (std * math.sqrt(2)), options).square()).exp()


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """I0(beta sqrt(1 - (2 k / (M - 1) - 1)^2)) / I0(beta); see :func:`bartlett` for the others.

    Args:
        beta: the shape; 0 is all ones.

    Raises:
        ValueError: as :func:`bartlett`; a negative `beta`.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.kaiser(3, beta=2.0)
        tensor([0.4387, 1.0000, 0.4387])
    """
    options = _checked("kaiser", M, options)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M <= 1:
        return _ones(M, options)
    rounded = pygrad.tensor(beta, dtype=options["dtype"])  # or roots of negative numbers follow
    step = 2.0 * rounded / (M - 1 if sym else M)
    end = pygrad.minimum(rounded, -rounded + (M - 1) * step)
    line = pygrad.linspace(-rounded, end, M, **options)
    window: Tensor = (rounded * rounded - line.square()).sqrt().i0() / rounded.i0()
    return window


def general_cosine(
    M: int, *, a: Iterable[float], sym: bool = True, **options: Unpack[Options]
) -> Tensor:
    """A sum of cosines, a[0] - a[1] cos(x) + a[2] cos(2 x) - ..., over one period.

    Args:
        a: the weights; see :func:`bartlett` for the other arguments.

    Raises:
        ValueError: as :func:`bartlett`; no weights.
        TypeError: weights that are no list.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.general_cosine(3, a=[0.5, 0.5])
        tensor([0., 1., 0.])
    """
    options = _checked("general_cosine", M, options)
    if M <= 1:
        return _ones(M, options)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    signed = [(-1) ** i * weight for i, weight in enumerate(a)]
    if not signed:
        raise ValueError("Coefficients cannot be empty")
    line = _line(M, 0, 2 * math.pi / (M - 1 if sym else M), options)
    grad = options.get("requires_grad", False)
    weights = pygrad.tensor(signed, dtype=options["dtype"], requires_grad=grad)
    multiples = pygrad.arange(len(signed), dtype=options["dtype"])
    window: Tensor = (weights[:, None] * (multiples[:, None] * line).cos()).sum(0)
    return window


def blackman(M: int, *, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """:func:`general_cosine` of weights 0.42, 0.5, 0.08.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.blackman(5)[2]
        tensor(1.0000)
    """
    options = _checked("blackman", M, options)
    return general_cosine(M, a=[0.42, 0.5, 0.08], sym=sym, **options)


def general_hamming(
    M: int, *, alpha: float = 0.54, sym: bool = True, **options: Unpack[Options]
) -> Tensor:
    """:func:`general_cosine` of weights alpha and 1 - alpha.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.general_hamming(3, alpha=0.6)
        tensor([0.2000, 1.0000, 0.2000])
    """
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, **options)


def hamming(M: int, *, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """:func:`general_hamming` of 0.54.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.hamming(3)
        tensor([0.0800, 1.0000, 0.0800])
    """
    return general_hamming(M, sym=sym, **options)


def hann(M: int, *, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """:func:`general_hamming` of 0.5.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.hann(5)
        tensor([0.0000, 0.5000, 1.0000, 0.5000, 0.0000])
    """
    return general_hamming(M, alpha=0.5, sym=sym, **options)


def nuttall(M: int, *, sym: bool = True, **options: Unpack[Options]) -> Tensor:
    """:func:`general_cosine` of Nuttall's four weights.

    Example:
        >>> from pygrad.signal import windows
        >>> windows.nuttall(5)[2]
        tensor(1.0000)
    """
    weights = [0.3635819, 0.4891775, 0.1365995, 0.0106411]
    return general_cosine(M, a=weights, sym=sym, **options)


# ---------------------------------------------------------------- of the torch namespace


def _older(
    name: str, length: int, periodic: bool, window: Callable[..., Tensor], options: Any
) -> Tensor:
    """A window that is made unrecorded, and may then require grad."""
    if length < 0:
        raise RuntimeError(
            f"{name} requires non-negative window_length, got window_length={length}"
        )
    grad = options.pop("requires_grad", False)
    return window(length, sym=not periodic, **options).requires_grad_(grad)


@builtin
def hann_window(window_length: int, periodic: bool = True, **options: Unpack[Options]) -> Tensor:
    """:func:`hann` by its older name, periodic by default.

    Example:
        >>> import pygrad
        >>> pygrad.hann_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _older("hann_window", window_length, periodic, hann, options)


@builtin
def hamming_window(
    window_length: int,
    periodic: bool = True,
    alpha: float = 0.54,
    beta: float = 0.46,
    **options: Unpack[Options],
) -> Tensor:
    """:func:`general_cosine` of weights `alpha` and `beta`, periodic by default.

    Example:
        >>> import pygrad
        >>> pygrad.hamming_window(2)
        tensor([0.0800, 1.0000])
    """

    def window(M: int, **more: Any) -> Tensor:
        return general_cosine(M, a=[alpha, beta], **more)

    return _older("hamming_window", window_length, periodic, window, options)


@builtin
def blackman_window(
    window_length: int, periodic: bool = True, **options: Unpack[Options]
) -> Tensor:
    """:func:`blackman` by its older name, periodic by default.

    Example:
        >>> import pygrad
        >>> pygrad.blackman_window(4)[2]
        tensor(1.0000)
    """
    return _older("blackman_window", window_length, periodic, blackman, options)


@builtin
def bartlett_window(
    window_length: int, periodic: bool = True, **options: Unpack[Options]
) -> Tensor:
    """:func:`bartlett` by its older name, periodic by default.

    Example:
        >>> import pygrad
        >>> pygrad.bartlett_window(4)
        tensor([0.0000, 0.5000, 1.0000, 0.5000])
    """
    return _older("bartlett_window", window_length, periodic, bartlett, options)


@builtin
def kaiser_window(
    window_length: int, periodic: bool = True, beta: float = 12.0, **options: Unpack[Options]
) -> Tensor:
    """:func:`kaiser` by its older name, periodic by default.

    Example:
        >>> import pygrad
        >>> pygrad.kaiser_window(2, True, 2.0)
        tensor([0.4387, 1.0000])
    """

    def window(M: int, **more: Any) -> Tensor:
        return kaiser(M, beta=beta, **more)

    return _older("kaiser_window", window_length, periodic, window, options)
