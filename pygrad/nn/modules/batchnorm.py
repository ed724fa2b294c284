"""Layers that normalise each channel over the batch, and keep running statistics."""

from __future__ import annotations

from typing import Any, ClassVar

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .. import init
from .._types import DeviceLike, DTypeLike
from ..parameter import Parameter
from .module import Module

__all__ = ["BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"]


class _NormBase(Module):
    """Scale, shift and running statistics of ``num_features`` channels, each of which is
    optional.
    """

    _version = 2

    weight: Parameter | None
    bias: Parameter | None
    running_mean: Tensor | None
    running_var: Tensor | None
    num_batches_tracked: Tensor | None

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory: Any = {"device": device, "dtype": dtype}
        scale = Parameter(pygrad.empty(num_features, **factory)) if affine else None
        shift = Parameter(pygrad.empty(num_features, **factory)) if affine and bias else None
        self.register_parameter("weight", scale)
        self.register_parameter("bias", shift)
        tracked = track_running_stats
        mean = pygrad.zeros(num_features, **factory) if tracked else None
        var = pygrad.ones(num_features, **factory) if tracked else None
        count = pygrad.tensor(0, dtype=pygrad.long, device=device) if tracked else None
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", count)
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Reset the running statistics: mean 0, variance 1, no batches."""
        if self.running_mean is not None:
            self.running_mean.zero_()
        if self.running_var is not None:
            self.running_var.fill_(1)
        if self.num_batches_tracked is not None:
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Reset scale to one, shift to zero, and the running statistics."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, bias={self.bias is not None}, "
            f"track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        # Version 1 had no num_batches_tracked; the current count replaces it.
        version = local_metadata.get("version")
        if (version is None or version < 2) and self.track_running_stats:
            count = self.num_batches_tracked
            missing = pygrad.tensor(0, dtype=pygrad.long) if count is None else count
            state_dict.setdefault(prefix + "num_batches_tracked", missing)
        super()._load_from_state_dict(
            state_dict,
            prefix,
            local_metadata,
            strict,
            missing_keys,
            unexpected_keys,
            error_msgs,
        )


class _BatchNorm(_NormBase):
    """The forward pass; subclasses check the number of dimensions."""

    _ranks: ClassVar[tuple[int, ...]] = ()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._ranks:
            expected = " or ".join(f"{rank}D" for rank in self._ranks)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                factor = 1.0 / float(self.num_batches_tracked)
        use_running = not self.training or self.track_running_stats
        mean = self.running_mean if use_running else None
        var = self.running_var if use_running else None
        by_batch = self.training or (self.running_mean is None and self.running_var is None)
        return F.batch_norm(input, mean, var, self.weight, self.bias, by_batch, factor, self.eps)


class BatchNorm1d(_BatchNorm):
    """Batch normalisation over (N, C) or (N, C, L).

    Args:
        num_features: C.
        eps: added to the variance.
        momentum: the weight of a new batch in the running statistics; ``None`` averages all.
        affine: whether there is a scale, and a shift if ``bias``.
        track_running_stats: keep running statistics, and use them in evaluation mode.

    Shape: unchanged.

    Raises:
        ValueError: (at the call) the input has another number of dimensions.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.BatchNorm1d(1)
        >>> [round(x, 3) for x in layer(pygrad.tensor([[1.0], [3.0]])).flatten().tolist()]
        [-1.0, 1.0]
        >>> layer.num_batches_tracked.item()
        1
    """

    _ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation over (N, C, H, W). Arguments as :class:`BatchNorm1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.BatchNorm2d(3)(pygrad.zeros(2, 3, 4, 5)).shape)
        (2, 3, 4, 5)
    """

    _ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation over (N, C, D, H, W). Arguments as :class:`BatchNorm1d`."""

    _ranks = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation with statistics over all processes. With pygrad's single process it is
    batch normalisation for any number of dimensions.

    Args:
        num_features: C of inputs (N, C, ...).
        eps, momentum, affine, track_running_stats: see `BatchNorm1d`.
        process_group: the processes that share statistics; ignored.

    Raises:
        ValueError: (at the call) an input of one dimension, or without channels.

    Example:
        >>> import pygrad
        >>> net = pygrad.nn.Sequential(pygrad.nn.BatchNorm1d(2))
        >>> pygrad.nn.SyncBatchNorm.convert_sync_batchnorm(net)[0]
        SyncBatchNorm(2, eps=1e-05, momentum=0.1, affine=True, bias=True, track_running_stats=True)
    """

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        process_group: Any = None,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias
        )
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        self._check_non_zero_input_channels(input)

    def _check_non_zero_input_channels(self, input: Tensor) -> None:
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group: Any = None) -> Module:
        """Converts the module, or every batch norm in it, to this class. Parameters and buffers
        stay the same objects.
        """
        changed = module
        if isinstance(module, _BatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
                bias=module.bias is not None,
            )
            if module.affine:
                made.weight, made.bias = module.weight, module.bias
            made.running_mean, made.running_var = module.running_mean, module.running_var
            made.num_batches_tracked = module.num_batches_tracked
            made.training = module.training
            changed = made
        for name, child in module.named_children():
            changed.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return changed
