"""Layers that normalise each channel of each sample over its positions."""

from __future__ import annotations

import warnings
from typing import ClassVar

from ..._tensor.tensor import Tensor
from .. import functional as F
from .._types import DeviceLike, DTypeLike
from .batchnorm import _NormBase

__all__ = ["InstanceNorm1d", "InstanceNorm2d", "InstanceNorm3d"]


class _InstanceNorm(_NormBase):
    """The forward pass; subclasses define the number of dimensions of positions."""

    _n_dims: ClassVar[int]

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )

    def _check_input_dim(self, input: Tensor) -> None:
        alone = self._n_dims + 1
        if input.dim() not in (alone, alone + 1):
            raise ValueError(f"expected {alone}D or {alone + 1}D input (got {input.dim()}D input)")

    def _get_no_batch_dim(self) -> int:
        """The number of dimensions of a sample."""
        return self._n_dims + 1

    def _handle_no_batch_input(self, input: Tensor) -> Tensor:
        return self._apply_instance_norm(input.unsqueeze(0)).squeeze(0)

    def _apply_instance_norm(self, input: Tensor) -> Tensor:
        return F.instance_norm(
            input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        dim = input.dim() - self._get_no_batch_dim()
        if input.size(dim) != self.num_features:
            if self.affine:
                raise ValueError(
                    f"expected input's size at dim={dim} to match num_features "
                    f"({self.num_features}), but got: {input.size(dim)}."
                )
            warnings.warn(
                f"input's size at dim={dim} does not match num_features. You can silence this "
                "warning by not passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        return self._apply_instance_norm(input) if dim else self._handle_no_batch_input(input)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of (N, C, L) or (C, L).

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the weight of a new batch in the running statistics.
        affine: whether there is a scale, and a shift if ``bias``.
        track_running_stats: keep running statistics, and use them in evaluation mode.

    Shape: unchanged.

    Raises:
        ValueError: (at the call) another number of dimensions, or of channels if ``affine``.

    Example:
        >>> import pygrad
        >>> y = pygrad.nn.InstanceNorm1d(1)(pygrad.tensor([[1.0, 3.0]]))
        >>> [round(x, 2) for x in y[0].tolist()]
        [-1.0, 1.0]
    """

    _n_dims = 1


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of (N, C, H, W) or (C, H, W). Arguments as :class:`InstanceNorm1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.InstanceNorm2d(3)(pygrad.rand(2, 3, 4, 5)).shape)
        (2, 3, 4, 5)
    """

    _n_dims = 2


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of (N, C, D, H, W) or (C, D, H, W). See :class:`InstanceNorm1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.InstanceNorm3d(3)(pygrad.rand(3, 2, 4, 5)).shape)
        (3, 2, 4, 5)
    """

    _n_dims = 3
