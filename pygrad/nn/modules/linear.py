"""Layers that multiply by a weight matrix."""

from __future__ import annotations

import math
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .. import init
from .._types import DeviceLike, DTypeLike
from ..parameter import Parameter
from .module import Module

__all__ = ["Bilinear", "Identity", "Linear"]


class Identity(Module):
    """Returns its input; accepts and ignores any constructor arguments.

    Shape: any, unchanged.

    Example:
        >>> import pygrad
        >>> pygrad.nn.Identity(54, unused=True)(pygrad.ones(2)).tolist()
        [1.0, 1.0]
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x W^T + b, with W drawn by Kaiming's uniform initialisation.

    Args:
        in_features: length of the last dimension of the input.
        out_features: length of the last dimension of the output.
        bias: whether to add a bias b.

    Shape: (*, in_features) -> (*, out_features).

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.Linear(20, 30)
        >>> tuple(layer(pygrad.zeros(128, 20)).shape)
        (128, 30)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(
            pygrad.empty((out_features, in_features), device=device, dtype=dtype)
        )
        if bias:
            self.bias = Parameter(pygrad.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw weight and bias."""
        init_weight_and_bias(self.weight, self.bias)

    def forward(self, input: Tensor) -> Tensor:
        # Directly from the table: finding two attributes through __getattr__ takes as long as the
        # engine's call. If a weight was replaced by a plain tensor, it is an ordinary attribute.
        own: Any = self._parameters
        if "weight" in own and "bias" in own:
            return F.linear(input, own["weight"], own["bias"])
        return F.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"bias={self.bias is not None}"
        )


def init_weight_and_bias(weight: Tensor, bias: Tensor | None) -> None:
    """PyTorch's default for linear and convolution layers: uniform on +-1/sqrt(fan_in)."""
    init.kaiming_uniform_(weight, a=math.sqrt(5))
    if bias is not None:
        fan_in, _ = init._calculate_fan_in_and_fan_out(weight)
        bound = 1 / math.sqrt(fan_in) if fan_in > 0 else 0
        init.uniform_(bias, -bound, bound)


class NonDynamicallyQuantizableLinear(Linear):
    """A Linear with the name that PyTorch prints for the one in `MultiheadAttention`."""


class Bilinear(Module):
    """y_k = x1^T W_k x2 + b_k.

    Args:
        in1_features: length of the last dimension of the first input.
        in2_features: length of the last dimension of the second input.
        out_features: length of the last dimension of the output.
        bias: whether to add a bias b.

    Shape: (*, in1_features), (*, in2_features) -> (*, out_features).

    Raises:
        ValueError: ``in1_features`` is not positive.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.Bilinear(2, 3, 4)
        >>> tuple(layer(pygrad.zeros(5, 2), pygrad.zeros(5, 3)).shape)
        (5, 4)
    """

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        shape = (out_features, in1_features, in2_features)
        self.weight = Parameter(pygrad.empty(shape, device=device, dtype=dtype))
        if bias:
            self.bias = Parameter(pygrad.empty(out_features, device=device, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw weight and bias, uniform on +-1/sqrt(in1_features)."""
        if self.in1_features <= 0:
            raise ValueError(
                f"in1_features must be > 0, but got (in1_features={self.in1_features})"
            )
        bound = 1 / math.sqrt(self.in1_features)
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )
