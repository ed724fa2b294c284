"""Layers that pad with a constant, or with reflected, repeated or circular elements."""

from __future__ import annotations

from typing import ClassVar

from ..._tensor.tensor import Tensor
from .. import functional as F
from .module import Module
from .utils import ntuple

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """`padding` is a number for all sides, or pairs (before, after) from the last dimension on."""

    _n_dims: ClassVar[int]
    _mode: ClassVar[str]

    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__()
        self.padding = ntuple(padding, 2 * self._n_dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: int | tuple[int, ...], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding: int | tuple[int, ...]) -> None:
        super().__init__(padding, 0.0)

    def extra_repr(self) -> str:
        return str(self.padding)


class ConstantPad1d(_ConstantPad):
    """Pads the last dimension with a number.

    Args:
        padding: an int for all sides, or 2 of them: before and after, the last dimension first.
        value: the constant.

    Shape: (N, C, L) or (C, L); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> pygrad.nn.ConstantPad1d(1, 7.0)(pygrad.tensor([[1.0, 2.0, 3.0]])).tolist()
        [[7.0, 1.0, 2.0, 3.0, 7.0]]
    """

    _n_dims = 1


class ConstantPad2d(_ConstantPad):
    """Pads the last 2 dimensions with a number.

    Args:
        padding: an int for all sides, or 4 of them: before and after, the last dimension first.
        value: the constant.

    Shape: (N, C, H, W) or (C, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ConstantPad2d(1, 7.0)(pygrad.zeros(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _n_dims = 2


class ConstantPad3d(_ConstantPad):
    """Pads the last 3 dimensions with a number.

    Args:
        padding: an int for all sides, or 6 of them: before and after, the last dimension first.
        value: the constant.

    Shape: (N, C, D, H, W) or (C, D, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ConstantPad3d(1, 7.0)(pygrad.zeros(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _n_dims = 3


class ZeroPad1d(_ZeroPad):
    """Pads the last dimension with zeros.

    Args:
        padding: an int for all sides, or 2 of them: before and after, the last dimension first.

    Shape: (N, C, L) or (C, L); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> pygrad.nn.ZeroPad1d(1)(pygrad.tensor([[1.0, 2.0, 3.0]])).tolist()
        [[0.0, 1.0, 2.0, 3.0, 0.0]]
    """

    _n_dims = 1


class ZeroPad2d(_ZeroPad):
    """Pads the last 2 dimensions with zeros.

    Args:
        padding: an int for all sides, or 4 of them: before and after, the last dimension first.

    Shape: (N, C, H, W) or (C, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ZeroPad2d(1)(pygrad.zeros(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _n_dims = 2


class ZeroPad3d(_ZeroPad):
    """Pads the last 3 dimensions with zeros.

    Args:
        padding: an int for all sides, or 6 of them: before and after, the last dimension first.

    Shape: (N, C, D, H, W) or (C, D, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ZeroPad3d(1)(pygrad.zeros(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _n_dims = 3


class ReflectionPad1d(_Pad):
    """Pads the last dimension by reflection at the edge.

    Args:
        padding: an int for all sides, or 2 of them: before and after, the last dimension first.

    Shape: (N, C, L) or (C, L); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> pygrad.nn.ReflectionPad1d(1)(pygrad.tensor([[1.0, 2.0, 3.0]])).tolist()
        [[2.0, 1.0, 2.0, 3.0, 2.0]]
    """

    _n_dims = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Pads the last 2 dimensions by reflection at the edge.

    Args:
        padding: an int for all sides, or 4 of them: before and after, the last dimension first.

    Shape: (N, C, H, W) or (C, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ReflectionPad2d(1)(pygrad.zeros(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _n_dims = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Pads the last 3 dimensions by reflection at the edge.

    Args:
        padding: an int for all sides, or 6 of them: before and after, the last dimension first.

    Shape: (N, C, D, H, W) or (C, D, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ReflectionPad3d(1)(pygrad.zeros(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _n_dims = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Pads the last dimension with the element at the edge.

    Args:
        padding: an int for all sides, or 2 of them: before and after, the last dimension first.

    Shape: (N, C, L) or (C, L); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> pygrad.nn.ReplicationPad1d(1)(pygrad.tensor([[1.0, 2.0, 3.0]])).tolist()
        [[1.0, 1.0, 2.0, 3.0, 3.0]]
    """

    _n_dims = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Pads the last 2 dimensions with the element at the edge.

    Args:
        padding: an int for all sides, or 4 of them: before and after, the last dimension first.

    Shape: (N, C, H, W) or (C, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ReplicationPad2d(1)(pygrad.zeros(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _n_dims = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """Pads the last 3 dimensions with the element at the edge.

    Args:
        padding: an int for all sides, or 6 of them: before and after, the last dimension first.

    Shape: (N, C, D, H, W) or (C, D, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.ReplicationPad3d(1)(pygrad.zeros(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _n_dims = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """Pads the last dimension with elements from the opposite end.

    Args:
        padding: an int for all sides, or 2 of them: before and after, the last dimension first.

    Shape: (N, C, L) or (C, L); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> pygrad.nn.CircularPad1d(1)(pygrad.tensor([[1.0, 2.0, 3.0]])).tolist()
        [[3.0, 1.0, 2.0, 3.0, 1.0]]
    """

    _n_dims = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """Pads the last 2 dimensions with elements from the opposite end.

    Args:
        padding: an int for all sides, or 4 of them: before and after, the last dimension first.

    Shape: (N, C, H, W) or (C, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.CircularPad2d(1)(pygrad.zeros(1, 2, 2)).shape)
        (1, 4, 4)
    """

    _n_dims = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """Pads the last 3 dimensions with elements from the opposite end.

    Args:
        padding: an int for all sides, or 6 of them: before and after, the last dimension first.

    Shape: (N, C, D, H, W) or (C, D, H, W); each length grows by both sides.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.CircularPad3d(1)(pygrad.zeros(1, 2, 2, 2)).shape)
        (1, 4, 4, 4)
    """

    _n_dims = 3
    _mode = "circular"
