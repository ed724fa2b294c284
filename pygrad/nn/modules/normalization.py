"""Layers that normalise each sample by its own statistics, alike in both modes."""

from __future__ import annotations

import numbers
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .. import init
from .._types import DeviceLike, DTypeLike, ShapeLike
from ..parameter import Parameter
from .module import Module

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class _AffineNorm(Module):
    """A scale of ones and a shift of zeros, both optional."""

    weight: Parameter | None
    bias: Parameter | None

    def _make_affine(self, shape: ShapeLike, scale: bool, shift: bool, factory: Any) -> None:
        weight = Parameter(pygrad.empty(shape, **factory)) if scale else None
        bias = Parameter(pygrad.empty(shape, **factory)) if shift else None
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)

    def reset_parameters(self) -> None:
        """Reset scale to one and shift to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_AffineNorm):
    """Normalises the last dimensions to mean 0 and variance 1, then scales and shifts.

    Args:
        normalized_shape: the last dimensions of the input; an int means one dimension.
        eps: added to the variance.
        elementwise_affine: whether there is a scale, and a shift if ``bias``.

    Shape: (*, *normalized_shape), unchanged.

    Example:
        >>> import pygrad
        >>> [round(x, 3) for x in pygrad.nn.LayerNorm(2)(pygrad.tensor([1.0, 3.0])).tolist()]
        [-1.0, 1.0]
    """

    def __init__(
        self,
        normalized_shape: ShapeLike,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        factory = {"device": device, "dtype": dtype}
        shift = elementwise_affine and bias
        self._make_affine(self.normalized_shape, elementwise_affine, shift, factory)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class GroupNorm(_AffineNorm):
    """Normalises the channels of (N, C, *) in ``num_groups`` groups, then scales each channel.

    Args:
        num_groups: the number of groups; divides ``num_channels``.
        num_channels: C.
        eps: added to the variance.
        affine: whether there is a scale, and a shift if ``bias``.

    Shape: (N, C, *), unchanged.

    Raises:
        ValueError: ``num_groups`` does not divide ``num_channels``.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.GroupNorm(3, 6)(pygrad.zeros(2, 6, 4)).shape)
        (2, 6, 4)
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(
                f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        factory = {"device": device, "dtype": dtype}
        self._make_affine(num_channels, affine, affine and bias, factory)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides the last dimensions by their root mean square, then scales.

    Args:
        normalized_shape: the last dimensions of the input; an int means one dimension.
        eps: added to the mean square; the dtype's machine epsilon if ``None``.
        elementwise_affine: whether there is a scale.

    Shape: (*, *normalized_shape), unchanged.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.RMSNorm([2, 3])(pygrad.ones(4, 2, 3)).shape)
        (4, 2, 3)
    """

    weight: Parameter | None

    def __init__(
        self,
        normalized_shape: ShapeLike,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _as_shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        if elementwise_affine:
            scale = pygrad.empty(self.normalized_shape, device=device, dtype=dtype)
            self.weight = Parameter(scale)
        else:
            self.register_parameter("weight", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Reset the scale to one."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


def _as_shape(shape: ShapeLike) -> tuple[int, ...]:
    if isinstance(shape, (int, numbers.Integral)):
        return (int(shape),)
    return tuple(shape)


class LocalResponseNorm(Module):
    """x / (k + alpha * mean of the squares of `size` neighboring channels)^beta.

    Args:
        size: the number of channels.
        alpha: the factor of the mean.
        beta: the exponent.
        k: the additive constant.

    Shape: (N, C, *), unchanged.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.LocalResponseNorm(2, alpha=2.0, beta=1.0)
        >>> layer(pygrad.ones(1, 1, 1)).item()
        0.5
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
