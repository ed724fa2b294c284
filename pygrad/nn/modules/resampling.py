"""Layers that change the number of positions: shuffles, resizing, patches."""

from __future__ import annotations

from ..._tensor.tensor import Tensor
from .. import functional as F
from .._types import SizeAny
from .module import Module

__all__ = [
    "ChannelShuffle",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class PixelShuffle(Module):
    """Rearranges channels as space: each position becomes r by r positions.

    Shape: (*, C r^2, H, W) -> (*, C, H r, W r) for r = `upscale_factor`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.PixelShuffle(3)(pygrad.zeros(1, 9, 4, 4)).shape)
        (1, 1, 12, 12)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The inverse of :class:`PixelShuffle`.

    Shape: (*, C, H r, W r) -> (*, C r^2, H, W) for r = `downscale_factor`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.PixelUnshuffle(3)(pygrad.zeros(1, 1, 12, 12)).shape)
        (1, 9, 4, 4)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Distributes the channels to `groups` in turn.

    Shape: (N, C, *), unchanged.

    Example:
        >>> import pygrad
        >>> x = pygrad.arange(4.0).reshape(1, 4, 1)
        >>> pygrad.nn.ChannelShuffle(2)(x).flatten().tolist()
        [0.0, 2.0, 1.0, 3.0]
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"


class Upsample(Module):
    """Resizes the spatial dimensions, by ``nn.functional.interpolate``.

    Args:
        size: the lengths of the output; or
        scale_factor: the factors of the lengths.
        mode: "nearest", "linear", "bilinear", "bicubic" or "trilinear".
        align_corners: whether the first and last positions keep their values.
        recompute_scale_factor: recompute the scale from the rounded lengths.

    Shape: (N, C, *) -> (N, C, *).

    Example:
        >>> import pygrad
        >>> pygrad.nn.Upsample(scale_factor=2)(pygrad.tensor([[[1.0, 2.0]]])).tolist()
        [[[1.0, 1.0, 2.0, 2.0]]]
    """

    def __init__(
        self,
        size: SizeAny | None = None,
        scale_factor: float | tuple[float, ...] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor: float | tuple[float, ...] | None
        if isinstance(scale_factor, tuple):
            self.scale_factor = tuple(float(factor) for factor in scale_factor)
        else:
            self.scale_factor = float(scale_factor) if scale_factor else None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        by_scale = self.scale_factor is not None
        how = f"scale_factor={self.scale_factor!r}" if by_scale else f"size={self.size!r}"
        return f"{how}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """:class:`Upsample` of images with mode "nearest".

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.UpsamplingNearest2d(scale_factor=2)(pygrad.zeros(1, 1, 2, 3)).shape)
        (1, 1, 4, 6)
    """

    def __init__(
        self,
        size: SizeAny | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """:class:`Upsample` of images with mode "bilinear" and aligned corners.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.UpsamplingBilinear2d((4, 6))(pygrad.zeros(1, 1, 2, 3)).shape)
        (1, 1, 4, 6)
    """

    def __init__(
        self,
        size: SizeAny | None = None,
        scale_factor: float | tuple[float, float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class Unfold(Module):
    """Extracts the patches under a sliding window of an image, one patch per column.

    Args:
        kernel_size: the lengths of the window.
        dilation: the distance between elements of the window.
        padding: zeros around the image.
        stride: the step of the window.

    Shape: (N, C, H, W) -> (N, C * elements of the window, places of the window).

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.Unfold(2)(pygrad.zeros(1, 3, 4, 4)).shape)
        (1, 12, 9)
    """

    def __init__(
        self,
        kernel_size: SizeAny,
        dilation: SizeAny = 1,
        padding: SizeAny = 0,
        stride: SizeAny = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Unfold):
    """Adds up patches to an image: the transpose of :class:`Unfold`.

    Args:
        output_size: the lengths of the image; for the others see :class:`Unfold`.

    Shape: (N, C * elements of the window, places of the window) -> (N, C, H, W).

    Example:
        >>> import pygrad
        >>> pygrad.nn.Fold((1, 3), (1, 2))(pygrad.ones(1, 2, 2)).tolist()
        [[[[1.0, 2.0, 1.0]]]]
    """

    def __init__(
        self,
        output_size: SizeAny,
        kernel_size: SizeAny,
        dilation: SizeAny = 1,
        padding: SizeAny = 0,
        stride: SizeAny = 1,
    ) -> None:
        super().__init__(kernel_size, dilation, padding, stride)
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(
            input,
            self.output_size,
            self.kernel_size,
            self.dilation,
            self.padding,
            self.stride,
        )

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}, {super().extra_repr()}"
