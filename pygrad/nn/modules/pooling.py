"""Layers that pool windows, for example by maximum or mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor.tensor import Tensor
from .. import functional as F
from .._types import Size1, Size2, SizeAny, SizeOrNone
from .module import Module
from .utils import ntuple

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "FractionalMaxPool2d",
    "FractionalMaxPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
    "MaxUnpool1d",
    "MaxUnpool2d",
    "MaxUnpool3d",
]


class _MaxPoolNd(Module):
    def __init__(
        self,
        kernel_size: SizeAny,
        stride: SizeAny | None = None,
        padding: SizeAny = 0,
        dilation: SizeAny = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def extra_repr(self) -> str:
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, "
            f"dilation={self.dilation}, ceil_mode={self.ceil_mode}"
        )

    def _pool(self, op: Any, input: Tensor) -> Any:
        return op(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            self.ceil_mode,
            self.return_indices,
        )


class MaxPool1d(_MaxPoolNd):
    """The maximum of each window of (N, C, L) or (C, L).

    Args:
        kernel_size: length of the window.
        stride: the step of the window, by default its length.
        padding: the number of elements of minus infinity at both ends.
        dilation: the distance between elements of a window.
        return_indices: also return the index of each maximum.
        ceil_mode: round the output length up.

    Shape: (N, C, L) -> (N, C, L_out), with
        L_out = floor((L + 2 * padding - dilation * (kernel_size - 1) - 1) / stride + 1).

    Example:
        >>> import pygrad
        >>> pygrad.nn.MaxPool1d(2)(pygrad.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
        [[3.0, 2.0]]
    """

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.max_pool1d, input)


class MaxPool2d(_MaxPoolNd):
    """The maximum of each window of (N, C, H, W) or (C, H, W).

    Arguments as :class:`MaxPool1d`, each size an int or a pair.

    Shape: (N, C, H, W) -> (N, C, H_out, W_out), each length as in :class:`MaxPool1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.MaxPool2d(3, stride=2)(pygrad.zeros(2, 16, 50, 32)).shape)
        (2, 16, 24, 15)
    """

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.max_pool2d, input)


class MaxPool3d(_MaxPoolNd):
    """The maximum of each window of (N, C, D, H, W) or (C, D, H, W).

    Arguments as :class:`MaxPool1d`, each size an int or three.

    Shape: (N, C, D, H, W) -> (N, C, D_out, H_out, W_out), each length as in :class:`MaxPool1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.MaxPool3d(2)(pygrad.zeros(1, 3, 4, 5, 6)).shape)
        (1, 3, 2, 2, 3)
    """

    def forward(self, input: Tensor) -> Any:
        return self._pool(F.max_pool3d, input)


class _AvgPoolNd(Module):
    kernel_size: SizeAny
    stride: SizeAny
    padding: SizeAny

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool1d(_AvgPoolNd):
    """The mean of each window of (N, C, L) or (C, L).

    Args:
        kernel_size: length of the window.
        stride: the step of the window, by default its length.
        padding: the number of zeros at both ends.
        ceil_mode: round the output length up.
        count_include_pad: whether the mean includes the zeros.

    Shape: (N, C, L) -> (N, C, floor((L + 2 * padding - kernel_size) / stride + 1)).

    Example:
        >>> import pygrad
        >>> pygrad.nn.AvgPool1d(2)(pygrad.tensor([[1.0, 3.0, 2.0, 0.0]])).tolist()
        [[2.0, 1.0]]
    """

    def __init__(
        self,
        kernel_size: Size1,
        stride: Size1 | None = None,
        padding: Size1 = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, 1)
        self.stride = ntuple(kernel_size if stride is None else stride, 1)
        self.padding = ntuple(padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
        )


class _DividedAvgPool(_AvgPoolNd):
    """A mean with a divisor that may differ from the window's size."""

    def __init__(
        self,
        kernel_size: SizeAny,
        stride: SizeAny | None = None,
        padding: SizeAny = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def _pool(self, op: Any, input: Tensor) -> Tensor:
        found: Tensor = op(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )
        return found


class AvgPool2d(_DividedAvgPool):
    """The mean of each window of (N, C, H, W) or (C, H, W).

    Arguments as :class:`AvgPool1d`, each size an int or a pair; ``divisor_override`` replaces the
    window's size as the divisor.

    Shape: (N, C, H, W) -> (N, C, H_out, W_out), each length as in :class:`AvgPool1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.AvgPool2d(2)(pygrad.zeros(1, 3, 8, 6)).shape)
        (1, 3, 4, 3)
    """

    def __init__(
        self,
        kernel_size: Size2,
        stride: Size2 | None = None,
        padding: Size2 = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(
            kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
        )

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool2d, input)


class AvgPool3d(_DividedAvgPool):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W).

    Arguments as :class:`AvgPool2d`, each size an int or three.

    Shape: (N, C, D, H, W) -> (N, C, D_out, H_out, W_out), each length as in :class:`AvgPool1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.AvgPool3d(2)(pygrad.zeros(1, 3, 4, 5, 6)).shape)
        (1, 3, 2, 2, 3)
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.avg_pool3d, input)


class _AdaptiveAvgPoolNd(Module):
    def __init__(self, output_size: SizeOrNone) -> None:
        super().__init__()
        self.output_size = output_size

    def _sizes(self, input: Tensor) -> int | tuple[int, ...]:
        """The lengths of the output; None is replaced by the input's length."""
        sizes = self.output_size
        if sizes is None or isinstance(sizes, int):
            return input.shape[-1] if sizes is None else sizes
        given = input.shape[-len(sizes) :]
        return tuple(old if new is None else new for new, old in zip(sizes, given, strict=True))

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of windows, as many as the output's length. Shape: (N, C, L) -> (N, C, S)."""

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(input, self._sizes(input))


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of windows, as many as the output has places; ``None`` keeps a length.

    Shape: (N, C, H, W) -> (N, C, S_0, S_1) with S = ``output_size``, an int for both.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.AdaptiveAvgPool2d((5, None))(pygrad.zeros(1, 2, 8, 9)).shape)
        (1, 2, 5, 9)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self._sizes(input))


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of windows, as many as the output has places; ``None`` keeps a length.

    Shape: (N, C, D, H, W) -> (N, C, *S) with S = ``output_size``, an int for all three.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.AdaptiveAvgPool3d((5, None, 1))(pygrad.zeros(1, 2, 8, 9, 3)).shape)
        (1, 2, 5, 9, 1)
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(input, self._sizes(input))


class _AdaptiveMaxPoolNd(_AdaptiveAvgPoolNd):
    def __init__(self, output_size: SizeOrNone, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of windows, as many as the output has places; with `return_indices` also the indices.

    Shape: (N, C, L) -> (N, C, S) with S = ``output_size``.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.AdaptiveMaxPool1d(2)(pygrad.zeros(1, 2, 8)).shape)
        (1, 2, 2)
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool1d(input, self._sizes(input), self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of windows, as many as the output has places; with `return_indices` also the indices.

    Shape: (N, C, H, W) -> (N, C, S_0, S_1) with S = ``output_size``.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.AdaptiveMaxPool2d((5, None))(pygrad.zeros(1, 2, 8, 9)).shape)
        (1, 2, 5, 9)
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool2d(input, self._sizes(input), self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of windows, as many as the output has places; with `return_indices` also the indices.

    Shape: (N, C, D, H, W) -> (N, C, *S) with S = ``output_size``.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.AdaptiveMaxPool3d(2)(pygrad.zeros(1, 2, 8, 9, 3)).shape)
        (1, 2, 2, 2, 2)
    """

    def forward(self, input: Tensor) -> Any:
        return F.adaptive_max_pool3d(input, self._sizes(input), self.return_indices)


class _LPPoolNd(Module):
    def __init__(
        self,
        norm_type: float,
        kernel_size: SizeAny,
        stride: SizeAny | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def _pool(self, op: Any, input: Tensor) -> Tensor:
        found: Tensor = op(
            input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode
        )
        return found

    def extra_repr(self) -> str:
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPoolNd):
    """The p-norm of each window of (N, C, L) or (C, L): the p-th root of the sum of p-th powers.

    Args:
        norm_type: p.
        kernel_size: length of the window.
        stride: the step of the window, by default its length.
        ceil_mode: round the output length up.

    Example:
        >>> import pygrad
        >>> pygrad.nn.LPPool1d(2, 2)(pygrad.tensor([[3.0, 4.0]]))
        tensor([[5.]])
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.lp_pool1d, input)


class LPPool2d(_LPPoolNd):
    """The p-norm of each window of (N, C, H, W) or (C, H, W); arguments as :class:`LPPool1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.LPPool2d(2, 2)(pygrad.ones(1, 3, 4, 5)).shape)
        (1, 3, 2, 2)
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.lp_pool2d, input)


class LPPool3d(_LPPoolNd):
    """The p-norm of each window of (N, C, D, H, W) or (C, D, H, W); arguments as :class:`LPPool1d`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.LPPool3d(2, 2)(pygrad.ones(1, 3, 4, 5, 6)).shape)
        (1, 3, 2, 2, 3)
    """

    def forward(self, input: Tensor) -> Tensor:
        return self._pool(F.lp_pool3d, input)


class _MaxUnpoolNd(Module):
    _rank: int

    def __init__(
        self, kernel_size: SizeAny, stride: SizeAny | None = None, padding: SizeAny = 0
    ) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._rank)
        self.stride = ntuple(kernel_size if stride is None else stride, self._rank)
        self.padding = ntuple(padding, self._rank)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"

    def forward(
        self, input: Tensor, indices: Tensor, output_size: Sequence[int] | None = None
    ) -> Tensor:
        """Puts the input's elements at the given indices, with zeros elsewhere."""
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self._rank - 1]
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpoolNd):
    """Inverse of :class:`MaxPool1d`: puts the maxima back at their indices, with zeros between.

    Args:
        kernel_size: the window of the pooling.
        stride: the step of the pooling, by default `kernel_size`.
        padding: the padding of the pooling.

    Shape: (N, C, L) or (C, L), and as many indices
        -> (N, C, (L - 1) * stride - 2 * padding + kernel_size), or the `output_size` given.

    Example:
        >>> import pygrad
        >>> pool = pygrad.nn.MaxPool1d(2, return_indices=True)
        >>> pygrad.nn.MaxUnpool1d(2)(*pool(pygrad.tensor([[1.0, 3.0, 2.0, 0.0]])))
        tensor([[0., 3., 2., 0.]])
    """

    _rank = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """Inverse of :class:`MaxPool2d`: puts the maxima back at their indices, with zeros between.

    Arguments as :class:`MaxUnpool1d`, each size an int or a pair.

    Shape: (N, C, H, W) or (C, H, W), and as many indices -> (N, C, H_out, W_out), each length as
        in :class:`MaxUnpool1d`.

    Example:
        >>> import pygrad
        >>> pool = pygrad.nn.MaxPool2d(2, return_indices=True)
        >>> pygrad.nn.MaxUnpool2d(2)(*pool(pygrad.ones(1, 1, 4, 6))).shape
        torch.Size([1, 1, 4, 6])
    """

    _rank = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """Inverse of :class:`MaxPool3d`: puts the maxima back at their indices, with zeros between.

    Arguments as :class:`MaxUnpool1d`, each size an int or three.

    Shape: (N, C, D, H, W) or (C, D, H, W), and as many indices -> (N, C, D_out, H_out, W_out), each
        length as in :class:`MaxUnpool1d`.

    Example:
        >>> import pygrad
        >>> pool = pygrad.nn.MaxPool3d(2, return_indices=True)
        >>> pygrad.nn.MaxUnpool3d(2)(*pool(pygrad.ones(1, 1, 2, 4, 6))).shape
        torch.Size([1, 1, 2, 4, 6])
    """

    _rank = 3


class _FractionalMaxPool(Module):
    """The base class of fractional max pooling in two and three dimensions."""

    _dims: int
    _random_samples: Tensor | None

    def __init__(
        self,
        kernel_size: SizeAny,
        output_size: SizeAny | None = None,
        output_ratio: float | tuple[float, ...] | None = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size = ntuple(kernel_size, self._dims)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        if output_size is None and output_ratio is None:
            raise ValueError(
                f"{type(self).__name__} requires specifying either an output size, or a pooling "
                "ratio"
            )
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.output_size = None if output_size is None else ntuple(output_size, self._dims)
        self.output_ratio = None if output_ratio is None else ntuple(output_ratio, self._dims)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        """The maxima, and their indices if `return_indices` is set."""
        pool = F.fractional_max_pool2d if self._dims == 2 else F.fractional_max_pool3d
        return pool(
            input,
            self.kernel_size,
            self.output_size,
            self.output_ratio,
            self.return_indices,
            _random_samples=self._random_samples,
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """Fractional max pooling: the maxima of windows with random steps (Graham, 2014).

    Args:
        kernel_size: the size of the windows, an int or a pair.
        output_size: the number of windows along each dimension; or
        output_ratio: the ratio of that number to the input's length, between 0 and 1.
        return_indices: also return the indices of the maxima.

    Shape: (N, C, H, W) or (C, H, W) -> (N, C, H_out, W_out) or (C, H_out, W_out).

    Raises:
        ValueError: both a size and a ratio, or neither; a ratio out of range.

    Example:
        >>> import pygrad
        >>> pygrad.nn.FractionalMaxPool2d(2, output_ratio=0.5)(pygrad.ones(1, 6, 8)).shape
        torch.Size([1, 3, 4])
    """

    _dims = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Fractional max pooling of volumes, see :class:`FractionalMaxPool2d`.

    Args:
        kernel_size: the size of the windows, an int or a triple.
        output_size: the number of windows along each dimension; or
        output_ratio: the ratio of that number to the input's length, between 0 and 1.
        return_indices: also return the indices of the maxima.

    Shape: (N, C, T, H, W) or (C, T, H, W) -> the same with other lengths.

    Raises:
        ValueError: both a size and a ratio, or neither; a ratio out of range.

    Example:
        >>> import pygrad
        >>> pygrad.nn.FractionalMaxPool3d(2, output_size=(2, 3, 4))(pygrad.ones(1, 4, 6, 8)).shape
        torch.Size([1, 2, 3, 4])
    """

    _dims = 3
