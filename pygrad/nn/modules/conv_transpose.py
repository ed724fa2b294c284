"""Transposed convolutions: the gradients of convolutions by their inputs, as layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from ..._tensor.tensor import Tensor
from .. import functional as F
from .._types import DeviceLike, DTypeLike, SizeAny
from .conv import _ConvNd
from .utils import ntuple

__all__ = ["ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]


class _ConvTransposeNd(_ConvNd):
    """The base class of transposed convolutions, which also have an output padding.

    Layers of other libraries derive from it: sizes are tuples, and every argument is required.
    """

    padding: tuple[int, ...]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...],
        dilation: tuple[int, ...],
        transposed: bool,
        output_padding: tuple[int, ...],
        groups: int,
        bias: bool,
        padding_mode: str,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            transposed,
            output_padding,
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _output_padding(
        self,
        input: Tensor,
        output_size: list[int] | None,
        stride: Sequence[int],
        padding: Sequence[int],
        kernel_size: Sequence[int],
        num_spatial_dims: int,
        dilation: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """The output padding for the given output size; the layer's own without a size."""
        if output_size is None:
            return ntuple(self.output_padding, num_spatial_dims)
        n = num_spatial_dims
        first = input.dim() - n
        wanted = output_size[first:] if len(output_size) == first + n else output_size
        if len(wanted) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or "
                f"{first + n} elements (got {len(wanted)})"
            )
        steps = (1,) * n if dilation is None else dilation
        lengths = input.shape[first:]
        least = [
            (size - 1) * s - 2 * p + d * (k - 1) + 1
            for size, s, p, d, k in zip(lengths, stride, padding, steps, kernel_size, strict=True)
        ]
        most = [size + s - 1 for size, s in zip(least, stride, strict=True)]
        if any(not a <= b <= c for a, b, c in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {least} to "
                f"{most} (for an input of torch.Size({list(input.shape[2:])}))"
            )
        return tuple(b - a for a, b in zip(least, wanted, strict=True))


class _Transposed(_ConvTransposeNd):
    """The base class for a fixed number of dimensions, where a size may be one number."""

    _n_dims: ClassVar[int]

    def __init__(
        self,
        in_channels: int,
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
        n = self._n_dims
        super().__init__(
            in_channels,
            out_channels,
            ntuple(kernel_size, n),
            ntuple(stride, n),
            ntuple(padding, n),
            ntuple(dilation, n),
            True,
            ntuple(output_padding, n),
            groups,
            bias,
            padding_mode,
            device,
            dtype,
        )

    def _transpose(
        self, op: Callable[..., Tensor], input: Tensor, output_size: Sequence[int] | None
    ) -> Tensor:
        more = self._output_padding(
            input,
            None if output_size is None else [*output_size],
            self.stride,
            self.padding,
            self.kernel_size,
            self._n_dims,
            self.dilation,
        )
        return op(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            more,
            self.groups,
            self.dilation,
        )


class ConvTranspose1d(_Transposed):
    """Transposed convolution of (N, C_in, L) or (C_in, L).

    Args:
        in_channels: C_in.
        out_channels: C_out.
        kernel_size: k.
        stride: the distance between the outputs of two neighboring positions.
        padding: the number of elements cut off at both ends, less than dilation * (k - 1).
        output_padding: the number of elements added at the end.
        groups: the number of separate convolutions into which the channels are divided.
        bias: whether to add a constant to each output channel.
        dilation: the distance between elements of a kernel.
        padding_mode: only "zeros".

    Shape: (N, C_in, L) -> (N, C_out, L_out), with
        L_out = (L - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.

    Raises:
        ValueError: an argument is out of range; (at the call) an impossible output size.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.ConvTranspose1d(4, 2, 3, stride=2)
        >>> tuple(layer(pygrad.zeros(1, 4, 5)).shape)
        (1, 2, 11)
        >>> tuple(layer(pygrad.zeros(1, 4, 5), output_size=[12]).shape)
        (1, 2, 12)
    """

    _n_dims = 1

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._transpose(F.conv_transpose1d, input, output_size)


class ConvTranspose2d(_Transposed):
    """Transposed convolution of (N, C_in, H, W) or (C_in, H, W).

    Arguments as :class:`ConvTranspose1d`, each size an int or a pair.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.ConvTranspose2d(4, 2, 4, stride=2, padding=1)
        >>> tuple(layer(pygrad.zeros(1, 4, 5, 6)).shape)
        (1, 2, 10, 12)
    """

    _n_dims = 2

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._transpose(F.conv_transpose2d, input, output_size)


class ConvTranspose3d(_Transposed):
    """Transposed convolution of (N, C_in, D, H, W) or (C_in, D, H, W).

    Arguments as :class:`ConvTranspose1d`, each size an int or three.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.ConvTranspose3d(4, 2, 2, stride=2)
        >>> tuple(layer(pygrad.zeros(1, 4, 1, 2, 3)).shape)
        (1, 2, 2, 4, 6)
    """

    _n_dims = 3

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        return self._transpose(F.conv_transpose3d, input, output_size)
