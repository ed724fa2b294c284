"""`Type` and `Resize`, as Functions."""

from __future__ import annotations

import math
import warnings
from typing import Any

from ..._tensor.tensor import Tensor
from ..function import Function

__all__: list[str] = []


class Type(Function):
    """A tensor in another dtype; ``x.to(dtype)`` does it."""

    @staticmethod
    def forward(ctx: Any, i: Tensor, dest_type: Any) -> Any:
        warnings.warn(
            "`torch.autograd._functions.Type` is deprecated as of PyTorch 2.1, please use "
            "`torch.tensor.to(dtype=dtype)` instead.",
            FutureWarning,
            stacklevel=3,
        )
        ctx.own = i.dtype
        return i.type(dest_type)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.to(ctx.own), None


class Resize(Function):
    """A tensor in other sizes, of as many elements; ``x.reshape(sizes)`` does it.

    Example:
        >>> import pygrad
        >>> from pygrad.autograd._functions import Resize
        >>> tuple(Resize.apply(pygrad.ones(2, 3), (3, 2)).shape)
        (3, 2)
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor, sizes: Any) -> Any:
        number = math.prod(sizes)
        if tensor.numel() != number:
            raise RuntimeError(
                f"requested resize to {'x'.join(map(str, sizes))} ({number} elements in total), "
                f"but the given tensor has a size of {'x'.join(map(str, tensor.size()))} "
                f"({tensor.numel()} elements). autograd's resize can only change the shape of a "
                "given tensor, while preserving the number of elements. "
            )
        ctx.sizes = tensor.size()
        return tensor.contiguous().view(*sizes)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output.contiguous().view(ctx.sizes), None
