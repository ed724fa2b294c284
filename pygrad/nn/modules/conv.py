"""Convolution layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .._types import DeviceLike, DTypeLike, Size1, Size2, SizeAny
from ..parameter import Parameter
from .linear import init_weight_and_bias
from .module import Module
from .utils import _reverse_repeat_tuple, ntuple

__all__ = ["Conv1d", "Conv2d", "Conv3d"]

_PADDING_NAMES = {"same", "valid"}
_PADDING_MODES = {"zeros", "reflect", "replicate", "circular"}


class _ConvNd(Module):
    """The base class of convolutions with any number of dimensions: sizes, weight, bias, printing.

    Layers of other libraries derive from it: sizes are tuples, and every argument is required.
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: str | tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        _check_channels(in_channels, out_channels, groups)
        _check_padding(padding, padding_mode, stride)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _widths(padding, kernel_size, dilation)
        ends = (out_channels, in_channels // groups)
        if transposed:
            ends = (in_channels, out_channels // groups)
        shape = (*ends, *kernel_size)
        self.weight = Parameter(pygrad.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(pygrad.empty(out_channels, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw weight and bias."""
        init_weight_and_bias(self.weight, self.bias)

    def extra_repr(self) -> str:
        parts = [
            f"{self.in_channels}, {self.out_channels}",
            f"kernel_size={self.kernel_size}",
            f"stride={self.stride}",
        ]
        if self.padding != (0,) * len(self.padding):
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * len(self.dilation):
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * len(self.output_padding):
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


def _check_channels(in_channels: int, out_channels: int, groups: int) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")


def _check_padding(
    padding: str | tuple[int, ...], padding_mode: str, stride: tuple[int, ...]
) -> None:
    if isinstance(padding, str):
        if padding not in _PADDING_NAMES:
            raise ValueError(
                f"Invalid padding string {padding!r}, should be one of {_PADDING_NAMES}"
            )
        if padding == "same" and any(step != 1 for step in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _PADDING_MODES:
        raise ValueError(
            f"padding_mode must be one of {_PADDING_MODES}, but got padding_mode='{padding_mode}'"
        )


def _widths(
    padding: str | tuple[int, ...], kernel_size: tuple[int, ...], dilation: tuple[int, ...]
) -> Sequence[int]:
    """The padding in the form of ``F.pad``: (before, after) for each dimension, last one first."""
    if not isinstance(padding, str):
        return _reverse_repeat_tuple(padding, 2)
    if padding == "valid":
        return [0, 0] * len(kernel_size)
    totals = [d * (k - 1) for d, k in zip(dilation, kernel_size, strict=False)]
    widths: list[int] = []
    for total in totals:
        widths = [total // 2, total - total // 2, *widths]
    return widths


class _Convolution(_ConvNd):
    """The base class for a fixed number of dimensions, where a size may be one number."""

    _n_dims: ClassVar[int]

    def __init__(
        self,
        in_channels: int,
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
        n = self._n_dims
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            padding if isinstance(padding, str) else ntuple(padding, n),
            ntuple(dilation, n),
            False,
            (0,) * n,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The convolution with the given weight and bias."""
        padding = self.padding
        if self.padding_mode != "zeros":
            widths = self._reversed_padding_repeated_twice
            input = F.pad(input, widths, mode=self.padding_mode)
            padding = (0,) * self._n_dims
        op = (F.conv1d, F.conv2d, F.conv3d)[self._n_dims - 1]
        return op(input, weight, bias, self.stride, padding, self.dilation, self.groups)


class Conv1d(_Convolution):
    """Cross-correlation of (N, C_in, L) with C_out kernels of length k.

    Args:
        in_channels: C_in.
        out_channels: C_out.
        kernel_size: k.
        stride: the step of the window.
        padding: the number of zeros at both ends, or "same", or "valid" for none.
        dilation: the distance between elements of a kernel.
        groups: the number of separate convolutions into which the channels are divided.
        bias: whether to add a constant to each output channel.
        padding_mode: "zeros", "reflect", "replicate" or "circular".

    Shape: (N, C_in, L) or (C_in, L) -> (N, C_out, L_out) or (C_out, L_out), with
        L_out = floor((L + 2 * padding - dilation * (k - 1) - 1) / stride + 1).

    Raises:
        ValueError: channels are not divisible by ``groups``, or a padding is unknown.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.Conv1d(16, 33, 3, stride=2)(pygrad.zeros(20, 16, 50)).shape)
        (20, 33, 24)
    """

    _n_dims = 1

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size1,
        stride: Size1 = 1,
        padding: str | Size1 = 0,
        dilation: Size1 = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv2d(_Convolution):
    """Cross-correlation of (N, C_in, H, W) with C_out kernels of size (k_h, k_w).

    Arguments as :class:`Conv1d`, each size an int or a pair.

    Shape: (N, C_in, H, W) or (C_in, H, W) -> (N, C_out, H_out, W_out) or (C_out, H_out, W_out),
        each length as in :class:`Conv1d`.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.Conv2d(3, 8, (3, 5), stride=(2, 1), padding=(4, 2))
        >>> tuple(layer(pygrad.zeros(2, 3, 10, 10)).shape)
        (2, 8, 8, 10)
    """

    _n_dims = 2

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Size2,
        stride: Size2 = 1,
        padding: str | Size2 = 0,
        dilation: Size2 = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )


class Conv3d(_Convolution):
    """Cross-correlation of (N, C_in, D, H, W) with C_out kernels of size (k_d, k_h, k_w).

    Arguments as :class:`Conv1d`, each size an int or three.

    Shape: (N, C_in, D, H, W) or without N -> (N, C_out, D_out, H_out, W_out), each length as in
        :class:`Conv1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.Conv3d(2, 4, (3, 1, 2))(pygrad.zeros(1, 2, 5, 4, 4)).shape)
        (1, 4, 3, 4, 3)
    """

    _n_dims = 3
