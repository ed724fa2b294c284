"""Gradients of convolutions, as separate functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import autograd
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import functional as F

__all__: list[str] = []


def _convolution_gradient(
    op: Callable[..., Tensor], at: int, given: list[Any], grad: Tensor, *how: Any
) -> Any:
    """The gradient of a convolution by one of its two arguments. It is linear in that argument, so
    the argument's value does not matter.
    """
    recorded = pygrad.is_grad_enabled()
    with pygrad.enable_grad():
        place = pygrad.zeros(tuple(given[at]), dtype=grad.dtype, requires_grad=True)
        operands = [place if i == at else each for i, each in enumerate(given)]
        result = op(*operands, None, *how)
        return autograd.grad(result, place, grad, create_graph=recorded)[0]


def _make(dims: int) -> tuple[Callable[..., Any], Callable[..., Any]]:
    op = (F.conv1d, F.conv2d, F.conv3d)[dims - 1]

    def input_gradient(
        input_size: Any,
        weight: Tensor,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        found: Tensor = _convolution_gradient(
            op, 0, [input_size, weight], grad_output, stride, padding, dilation, groups
        )
        return found

    def weight_gradient(
        input: Tensor,
        weight_size: Any,
        grad_output: Tensor,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        found: Tensor = _convolution_gradient(
            op, 1, [input, weight_size], grad_output, stride, padding, dilation, groups
        )
        return found

    for function, what in ((input_gradient, "input"), (weight_gradient, "weight")):
        function.__name__ = function.__qualname__ = f"conv{dims}d_{what}"
        function.__doc__ = f"The gradient of a {dims}d convolution by its {what}, of that size."
    return input_gradient, weight_gradient


conv1d_input, conv1d_weight = _make(1)
conv2d_input, conv2d_weight = _make(2)
conv3d_input, conv3d_weight = _make(3)
