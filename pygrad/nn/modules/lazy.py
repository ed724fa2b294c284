"""Layers that infer input sizes from their first input.

Before, their parameters are uninitialized. The first call, or loading a state dict, sets their
shapes; the call also changes the class to the ordinary one, ``cls_to_become``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...autograd.grad_mode import no_grad
from ...utils.hooks import RemovableHandle
from .._types import DeviceLike, DTypeLike, SizeAny
from ..parameter import UninitializedBuffer, UninitializedParameter, is_lazy
from .batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d, _NormBase
from .conv import Conv1d, Conv2d, Conv3d, _ConvNd, _Convolution
from .conv_transpose import ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, _Transposed
from .instancenorm import InstanceNorm1d, InstanceNorm2d, InstanceNorm3d
from .linear import Linear
from .module import Module

__all__ = [
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyBatchNorm3d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConv3d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyConvTranspose3d",
    "LazyInstanceNorm1d",
    "LazyInstanceNorm2d",
    "LazyInstanceNorm3d",
    "LazyLinear",
    "LazyModuleMixin",
]


class LazyModuleMixin(Module):
    """The base class of modules whose parameters get their shapes at the first call.

    A subclass makes its parameters as ``UninitializedParameter`` and its buffers as
    ``UninitializedBuffer``. It defines ``initialize_parameters``, which is called with the
    arguments of the first call and materializes them. Afterwards ``cls_to_become``, unless None, is
    the module's class.

    Example:
        >>> import pygrad
        >>> from pygrad import nn
        >>> from pygrad.nn.modules.lazy import LazyModuleMixin
        >>> class Scale(LazyModuleMixin, nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.factors = nn.UninitializedParameter()
        ...
        ...     def initialize_parameters(self, x):
        ...         self.factors.materialize(x.shape[-1:])
        ...         nn.init.ones_(self.factors)
        ...
        ...     def forward(self, x):
        ...         return x * self.factors
        >>> scale = Scale()
        >>> scale.has_uninitialized_params()
        True
        >>> tuple(scale(pygrad.ones(2, 3)).shape), scale.has_uninitialized_params()
        ((2, 3), False)
    """

    cls_to_become: type[Any] | None = None
    _load_hook: RemovableHandle
    _initialize_hook: RemovableHandle

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(
            self._infer_parameters, with_kwargs=True
        )

    def _own_tensors(self) -> Iterator[tuple[str, Any]]:
        yield from self._parameters.items()
        yield from self._buffers.items()

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        # An uninitialized tensor cannot be detached, so it is stored itself.
        for name, tensor in self._own_tensors():
            if tensor is not None and name not in self._non_persistent_buffers_set:
                as_it_is = keep_vars or is_lazy(tensor)
                destination[prefix + name] = tensor if as_it_is else tensor.detach()

    def _lazy_load_hook(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Give uninitialized tensors the shapes of the state dict to be loaded."""
        for name, tensor in self._own_tensors():
            given = state_dict.get(prefix + name)
            if given is not None and is_lazy(tensor) and not is_lazy(given):
                with no_grad():
                    tensor.materialize(given.shape)

    def initialize_parameters(self, *args: Any, **kwargs: Any) -> None:
        """Materialize parameters and buffers for the arguments of the first call.

        Raises:
            NotImplementedError: the subclass does not define it.
        """
        raise NotImplementedError(
            f"initialize_parameters is not implemented for {type(self).__name__}"
        )

    def has_uninitialized_params(self) -> bool:
        """Whether a parameter or buffer of the module itself is uninitialized."""
        return any(is_lazy(tensor) for _, tensor in self._own_tensors())

    def _infer_parameters(self, module: Any, args: Any, kwargs: Any = None) -> None:
        """The hook of the first call: initializes, then makes the module an ordinary one."""
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


# ------------------------------------------------------------------ linear


class LazyLinear(LazyModuleMixin, Linear):
    """A :class:`~pygrad.nn.Linear` that takes ``in_features`` from its first input.

    Args:
        out_features: length of the last dimension of the output.
        bias: whether to add a bias.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.LazyLinear(3)
        >>> layer
        LazyLinear(in_features=0, out_features=3, bias=True)
        >>> _ = layer(pygrad.ones(2, 5))
        >>> layer
        Linear(in_features=5, out_features=3, bias=True)
    """

    cls_to_become = Linear

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(0, 0, False)
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_features = out_features
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Redraw weight and bias, if they are initialized."""
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``in_features`` from an input."""
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            _materialize(self.weight, self.out_features, self.in_features)
            _materialize(self.bias, self.out_features)
            with no_grad():
                self.reset_parameters()
        if self.in_features == 0:  # the weight was loaded
            if input.shape[-1] != self.weight.shape[-1]:
                raise AssertionError(
                    f"The in_features inferred from input: {input.shape[-1]} is not equal to "
                    f"in_features from self.weight: {self.weight.shape[-1]}"
                )
            self.in_features = input.shape[-1]


def _materialize(tensor: Any, *shape: int) -> None:
    if tensor is not None:
        tensor.materialize(shape)


# ------------------------------------------------------------------ convolutions


class _LazyConv(LazyModuleMixin, _ConvNd):
    """The base class of lazy convolutions, transposed or not."""

    def _begin(self, out_channels: int, bias: bool, device: Any, dtype: Any) -> None:
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        self.out_channels = out_channels
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Redraw weight and bias, if they are initialized."""
        if not self.has_uninitialized_params() and self.in_channels != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args: Any, **kwargs: Any) -> None:
        """Take ``in_channels`` from an input."""
        if not self.has_uninitialized_params():
            return
        self.in_channels = self._get_in_channels(input)
        if self.in_channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        ends = (self.out_channels, self.in_channels // self.groups)
        if self.transposed:
            ends = (self.in_channels, self.out_channels // self.groups)
        _materialize(self.weight, *ends, *self.kernel_size)
        _materialize(self.bias, self.out_channels)
        self.reset_parameters()

    def _get_in_channels(self, input: Tensor) -> int:
        alone = len(self.kernel_size) + 1
        if input.dim() not in (alone, alone + 1):
            raise RuntimeError(
                f"Expected {alone}D (unbatched) or {alone + 1}D (batched) input to "
                f"{type(self).__name__}, but got input of size: {input.shape}"
            )
        found: int = input.size(input.dim() - alone)
        return found


class _LazyConvForward(_LazyConv, _Convolution):
    def __init__(
        self,
        out_channels: int,
        kernel_size: SizeAny,
        stride: SizeAny = 1,
        padding: str | SizeAny = 0,
        dilation: SizeAny = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self._begin(out_channels, bias, device, dtype)


class _LazyConvTranspose(_LazyConv, _Transposed):
    def __init__(
        self,
        out_channels: int,
        kernel_size: SizeAny,
        stride: SizeAny = 1,
        padding: SizeAny = 0,
        output_padding: SizeAny = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: SizeAny = 1,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(
            0,
            0,
            kernel_size,
            stride,
            padding,
            output_padding,
            groups,
            False,
            dilation,
            padding_mode,
        )
        self._begin(out_channels, bias, device, dtype)


class LazyConv1d(_LazyConvForward, Conv1d):
    """A :class:`~pygrad.nn.Conv1d` that takes ``in_channels`` from its first input.

    Arguments as :class:`~pygrad.nn.Conv1d`, without ``in_channels``.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.LazyConv1d(4, 3)
        >>> tuple(layer(pygrad.zeros(2, 5, 8)).shape), layer.in_channels
        ((2, 4, 6), 5)
    """

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvForward, Conv2d):
    """A :class:`~pygrad.nn.Conv2d` that takes ``in_channels`` from its first input.

    Arguments as :class:`~pygrad.nn.Conv2d`, without ``in_channels``.
    """

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvForward, Conv3d):
    """A :class:`~pygrad.nn.Conv3d` that takes ``in_channels`` from its first input.

    Arguments as :class:`~pygrad.nn.Conv3d`, without ``in_channels``.
    """

    cls_to_become = Conv3d


class LazyConvTranspose1d(_LazyConvTranspose, ConvTranspose1d):
    """A :class:`~pygrad.nn.ConvTranspose1d` that takes ``in_channels`` from its first input.

    Arguments as :class:`~pygrad.nn.ConvTranspose1d`, without ``in_channels``.
    """

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyConvTranspose, ConvTranspose2d):
    """A :class:`~pygrad.nn.ConvTranspose2d` that takes ``in_channels`` from its first input.

    Arguments as :class:`~pygrad.nn.ConvTranspose2d`, without ``in_channels``.
    """

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyConvTranspose, ConvTranspose3d):
    """A :class:`~pygrad.nn.ConvTranspose3d` that takes ``in_channels`` from its first input.

    Arguments as :class:`~pygrad.nn.ConvTranspose3d`, without ``in_channels``.
    """

    cls_to_become = ConvTranspose3d


# ------------------------------------------------------------------ norms


class _LazyNorm(LazyModuleMixin, _NormBase):
    """The base class of lazy normalisations."""

    def __init__(
        self,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
        *,
        bias: bool = True,
    ) -> None:
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=False)
        self.affine = affine
        self.track_running_stats = track_running_stats
        factory: Any = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**factory)
            if bias:
                self.bias = UninitializedParameter(**factory)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(**factory)
            self.running_var = UninitializedBuffer(**factory)
            self.num_batches_tracked = pygrad.tensor(0, dtype=pygrad.long, device=device)

    def reset_parameters(self) -> None:
        """Reset scale, shift and running statistics, if they are initialized."""
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        """Take ``num_features`` from an input."""
        if self.has_uninitialized_params():
            self.num_features = input.shape[1]
            for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
                _materialize(tensor, self.num_features)
            self.reset_parameters()


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """A :class:`~pygrad.nn.BatchNorm1d` that takes ``num_features`` from its first input.

    Arguments as :class:`~pygrad.nn.BatchNorm1d`, without ``num_features``.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.LazyBatchNorm1d()
        >>> tuple(layer(pygrad.zeros(2, 5)).shape), layer.num_features
        ((2, 5), 5)
    """

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """A :class:`~pygrad.nn.BatchNorm2d` that takes ``num_features`` from its first input.

    Arguments as :class:`~pygrad.nn.BatchNorm2d`, without ``num_features``.
    """

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """A :class:`~pygrad.nn.BatchNorm3d` that takes ``num_features`` from its first input.

    Arguments as :class:`~pygrad.nn.BatchNorm3d`, without ``num_features``.
    """

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """A :class:`~pygrad.nn.InstanceNorm1d` that takes ``num_features`` from its first input.

    Arguments as for :class:`~pygrad.nn.InstanceNorm1d`, without ``num_features``; but ``affine``
    and ``track_running_stats`` default to True.
    """

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """A :class:`~pygrad.nn.InstanceNorm2d` that takes ``num_features`` from its first input.

    Arguments as :class:`LazyInstanceNorm1d`.
    """

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """A :class:`~pygrad.nn.InstanceNorm3d` that takes ``num_features`` from its first input.

    Arguments as :class:`LazyInstanceNorm1d`.
    """

    cls_to_become = InstanceNorm3d
