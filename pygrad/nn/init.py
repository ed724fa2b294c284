"""Initialisers: fill a tensor in place with the numbers that PyTorch draws for the same seed.

All run without gradient and return their tensor argument. Python computes only bounds and standard
deviations from shapes; every element comes from an op of the engine.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from .. import linalg
from .._boundary.overriding import overridable
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..random import Generator

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

FanMode: TypeAlias = Literal["fan_in", "fan_out"]

_CONSTANT_GAINS: dict[str, float] = {
    "linear": 1,
    "conv1d": 1,
    "conv2d": 1,
    "conv3d": 1,
    "conv_transpose1d": 1,
    "conv_transpose2d": 1,
    "conv_transpose3d": 1,
    "sigmoid": 1,
    "tanh": 5.0 / 3,
    "relu": math.sqrt(2.0),
    "selu": 3.0 / 4,
}


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that preserves variance through a nonlinearity.

    Args:
        nonlinearity: a layer or activation, as in ``torch.nn.functional``.
        param: the slope of ``leaky_relu``, 0.01 if not given.

    Raises:
        ValueError: the name is unknown, or the slope is no number.

    Example:
        >>> calculate_gain("tanh") == 5 / 3
        True
    """
    if nonlinearity in _CONSTANT_GAINS:
        return _CONSTANT_GAINS[nonlinearity]
    if nonlinearity != "leaky_relu":
        raise ValueError(f"Unsupported nonlinearity {nonlinearity}")
    if param is None:
        param = 0.01
    elif isinstance(param, bool) or not isinstance(param, (int, float)):
        raise ValueError(f"negative_slope {param} not a valid number")
    return math.sqrt(2.0 / (1 + param**2))


@overridable
def uniform_(
    tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with samples of the uniform distribution on [a, b).

    Example:
        >>> import pygrad
        >>> w = uniform_(pygrad.empty(3, 5))
        >>> bool((w >= 0).all() and (w < 1).all())
        True
    """
    return _no_grad_uniform_(tensor, a, b, generator)


@overridable
def normal_(
    tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Fill with samples of the normal distribution of that mean and standard deviation."""
    return _no_grad_normal_(tensor, mean, std, generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with samples of a normal distribution truncated to [a, b].

    Example:
        >>> import pygrad
        >>> w = trunc_normal_(pygrad.empty(100), std=3.0)
        >>> bool((w.abs() <= 2).all())
        True
    """
    return _no_grad_trunc_normal_(tensor, mean, std, a, b, generator)


def _no_grad_uniform_(
    tensor: Tensor, a: float, b: float, generator: Generator | None = None
) -> Tensor:
    with pygrad.no_grad():
        return tensor.uniform_(a, b, **_optional(generator))


def _no_grad_normal_(
    tensor: Tensor, mean: float, std: float, generator: Generator | None = None
) -> Tensor:
    with pygrad.no_grad():
        return tensor.normal_(mean, std, **_optional(generator))


def _no_grad_fill_(tensor: Tensor, val: float) -> Tensor:
    with pygrad.no_grad():
        return tensor.fill_(val)


def _no_grad_zero_(tensor: Tensor) -> Tensor:
    with pygrad.no_grad():
        return tensor.zero_()


def _no_grad_trunc_normal_(
    tensor: Tensor,
    mean: float,
    std: float,
    a: float,
    b: float,
    generator: Generator | None = None,
) -> Tensor:
    if mean < a - 2 * std or mean > b + 2 * std:
        warnings.warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of "
            "values may be incorrect.",
            stacklevel=3,
        )
    kept = _normal_cdf((b - mean) / std) - _normal_cdf((a - mean) / std)
    with pygrad.no_grad():
        if kept > 0.3:
            _redraw_outliers(tensor, mean, std, a, b, _optional(generator))
        else:
            _reject_from_uniform(tensor, mean, std, a, b, _optional(generator))
    return tensor


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redraw_outliers(
    tensor: Tensor, mean: float, std: float, a: float, b: float, options: dict[str, Any]
) -> None:
    """Draw a whole tensor; repeat while any element needs a new value."""
    # Bounds in the tensor's own precision: a value that rounds to a bound is inside.
    low, high = tensor.new_tensor(a).item(), tensor.new_tensor(b).item()
    drawn = tensor.normal_(mean, std, **options)
    outside = (drawn < low) | (drawn > high)
    while outside.any():
        fresh = pygrad.empty_like(drawn).normal_(mean, std, **options)
        drawn = pygrad.where(outside, fresh, drawn)
        outside = (drawn < low) | (drawn > high)
    if drawn is not tensor:
        tensor.copy_(drawn)


def _reject_from_uniform(
    tensor: Tensor, mean: float, std: float, a: float, b: float, options: dict[str, Any]
) -> None:
    """Rejection sampling from a uniform proposal, for intervals with little of the mass.

    A candidate x is kept with probability exp(-((x - mean) / std)^2 / 2 - log_peak), where
    log_peak is the greatest value of that exponent on [a, b].
    """
    log_peak = -0.5 * ((max(a, min(mean, b)) - mean) / std) ** 2
    candidates = pygrad.empty_like(tensor)
    chances = pygrad.empty_like(tensor)

    def draw_rejections() -> Tensor:
        candidates.sub_(mean).div_(std).pow_(2).mul_(-0.5).sub_(log_peak)
        return chances.uniform_(**options).log_().gt(candidates)

    drawn = tensor.uniform_(a, b, **options)
    candidates.copy_(tensor)
    pending = draw_rejections()
    while pending.any():
        candidates.uniform_(a, b, **options)
        drawn = pygrad.where(pending, candidates, drawn)
        pending = pygrad.where(pending, draw_rejections(), pending)
    if drawn is not tensor:
        tensor.copy_(drawn)


@overridable
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with one value."""
    return _no_grad_fill_(tensor, val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones."""
    return _no_grad_fill_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros."""
    return _no_grad_zero_(tensor)


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity; ``ValueError`` for other tensors.

    Example:
        >>> import pygrad
        >>> eye_(pygrad.empty(2, 3)).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with pygrad.no_grad():
        tensor.zero_()
        tensor.diagonal().fill_(1)
    return tensor


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it preserves as many channels as possible.

    Args:
        tensor: of shape (C_out, C_in / groups, *kernel), with one to three kernel dimensions.
        groups: the groups of the convolution.

    Raises:
        ValueError: the number of dimensions is wrong, or C_out not divisible by ``groups``.
    """
    if tensor.dim() not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    n_out, n_in, *kernel = tensor.shape
    if n_out % groups != 0:
        raise ValueError("dim 0 must be divisible by groups")
    per_group = n_out // groups
    center = tuple(size // 2 for size in kernel)
    with pygrad.no_grad():
        tensor.zero_()
        for group in range(groups):
            for channel in range(min(per_group, n_in)):
                tensor[(group * per_group + channel, channel, *center)] = 1
    return tensor


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    """The number of inputs of an output element, and of outputs of an input element.

    Raises:
        ValueError: the tensor has fewer than two dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        )
    n_out, n_in, *kernel = tensor.shape
    receptive_field = math.prod(kernel)
    return n_in * receptive_field, n_out * receptive_field


def _calculate_correct_fan(tensor: Tensor, mode: str) -> int:
    modes = ["fan_in", "fan_out"]
    if mode.lower() not in modes:
        raise ValueError(f"Mode {mode.lower()} not supported, please use one of {modes}")
    return _calculate_fan_in_and_fan_out(tensor)[modes.index(mode.lower())]


def xavier_uniform_(
    tensor: Tensor, gain: float = 1.0, generator: Generator | None = None
) -> Tensor:
    """Glorot's initialisation: uniform on (-a, a), a = gain * sqrt(6 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * (gain * math.sqrt(2.0 / float(fan_in + fan_out)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Glorot's initialisation: normal, std = gain * sqrt(2 / (fan_in + fan_out))."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / float(fan_in + fan_out)), generator)


@overridable
def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: FanMode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """He's initialisation: uniform on (-b, b), b = gain * sqrt(3 / fan).

    Args:
        tensor: at least two dimensions, (fan_out, fan_in, *kernel).
        a: the slope of ``leaky_relu``, which determines its gain.
        mode: keep the variance of the forward pass ("fan_in") or of the gradients ("fan_out").
        nonlinearity: the function after the layer, see :func:`calculate_gain`.

    Example:
        >>> import pygrad
        >>> _ = pygrad.manual_seed(0)
        >>> tuple(kaiming_uniform_(pygrad.empty(3, 5), nonlinearity="relu").shape)
        (3, 5)
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    if std is None:
        return tensor
    bound = math.sqrt(3.0) * std
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: FanMode = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """He's initialisation: normal, std = gain / sqrt(fan); see :func:`kaiming_uniform_`."""
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0, std, generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    """He's standard deviation; ``None``, with a warning, for a tensor without elements."""
    if 0 in tuple(tensor.shape):
        warnings.warn("Initializing zero-element tensors is a no-op", stacklevel=3)
        return None
    fan = _calculate_correct_fan(tensor, mode)
    return calculate_gain(nonlinearity, a) / math.sqrt(fan)


def orthogonal_(tensor: Tensor, gain: float = 1, generator: Generator | None = None) -> Tensor:
    """Fill with an orthogonal matrix, with the tensor viewed as (first dimension, all others).

    Raises:
        ValueError: the tensor has fewer than two dimensions.
    """
    if tensor.dim() < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if tensor.numel() == 0:
        return tensor
    rows = tensor.size(0)
    cols = tensor.numel() // rows
    with pygrad.no_grad():
        flat = tensor.new_empty((rows, cols)).normal_(0, 1, **_optional(generator))
        q, r = linalg.qr(flat.t() if rows < cols else flat)
        # The signs of r's diagonal are arbitrary; making them positive determines q.
        q = q * r.diagonal().sign()
        tensor.copy_((q.t() if rows < cols else q).reshape(tensor.shape))
        tensor.mul_(gain)
    return tensor


def sparse_(
    tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None
) -> Tensor:
    """Fill a matrix with normal samples, and set the fraction ``sparsity`` of each column to
    zero.
    """
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, cols = tensor.shape
    n_zeros = math.ceil(sparsity * rows)
    with pygrad.no_grad():
        tensor.normal_(0, std, **_optional(generator))
        for column in range(cols):
            tensor[pygrad.randperm(rows)[:n_zeros], column] = 0
    return tensor


def _optional(generator: Generator | None) -> dict[str, Any]:
    return {} if generator is None else {"generator": generator}


def _make_deprecate(meth: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function under its old name without the underscore, with PyTorch's warning."""
    new_name = meth.__name__
    old_name = new_name[:-1]

    def deprecated_init(*args: Any, **kwargs: Any) -> Tensor:
        warnings.warn(
            f"`nn.init.{old_name}` is now deprecated in favor of `nn.init.{new_name}`.",
            FutureWarning,
            stacklevel=2,
        )
        return meth(*args, **kwargs)

    deprecated_init.__name__ = deprecated_init.__qualname__ = old_name
    deprecated_init.__doc__ = f"Deprecated name of :func:`{new_name}`."
    return deprecated_init


uniform = _make_deprecate(uniform_)
normal = _make_deprecate(normal_)
constant = _make_deprecate(constant_)
eye = _make_deprecate(eye_)
dirac = _make_deprecate(dirac_)
xavier_uniform = _make_deprecate(xavier_uniform_)
xavier_normal = _make_deprecate(xavier_normal_)
kaiming_uniform = _make_deprecate(kaiming_uniform_)
kaiming_normal = _make_deprecate(kaiming_normal_)
orthogonal = _make_deprecate(orthogonal_)
sparse = _make_deprecate(sparse_)
