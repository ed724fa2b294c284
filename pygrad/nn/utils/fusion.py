"""Fusion of a layer with the batch normalisation after it, for evaluation."""

from __future__ import annotations

import copy
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ..parameter import Parameter

__all__ = [
    "fuse_conv_bn_eval",
    "fuse_conv_bn_weights",
    "fuse_linear_bn_eval",
    "fuse_linear_bn_weights",
]


def _fuse_parameters(
    weight: Tensor, bias: Tensor | None, bn: tuple[Any, ...], dim: int
) -> tuple[Parameter, Parameter]:
    """Weight and bias of both layers together; `dim` is the weight's dimension of outputs."""
    mean, variance, eps, scale, shift = bn
    scale = pygrad.ones_like(mean) if scale is None else scale
    factor = scale * pygrad.rsqrt(variance + eps)
    by_output = [1] * weight.dim()
    by_output[dim] = -1
    bias = pygrad.zeros_like(mean) if bias is None else bias
    fused = (
        weight * factor.reshape(by_output),
        (bias - mean) * factor + (0 if shift is None else shift),
    )
    made = [
        Parameter(new.detach().to(old.dtype), old.requires_grad)
        for new, old in zip(fused, (weight, bias), strict=True)
    ]
    return made[0], made[1]


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution fused with the batch normalisation after it.

    Example:
        >>> import pygrad
        >>> one, weight = pygrad.ones(1), pygrad.ones(1, 1, 1)
        >>> pygrad.nn.utils.fuse_conv_bn_weights(weight, None, one, one, 0.0, 2 * one, None)[1].data
        tensor([-2.])
    """
    return _fuse_parameters(conv_w, conv_b, (bn_rm, bn_rv, bn_eps, bn_w, bn_b), int(transpose))


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a linear layer fused with the batch normalisation after it.

    Example:
        >>> import pygrad
        >>> one, weight = pygrad.ones(1), pygrad.ones(1, 1)
        >>> pygrad.nn.utils.fuse_linear_bn_weights(weight, one, one, one, 0.0, one, one)[1].data
        tensor([1.])
    """
    return _fuse_parameters(linear_w, linear_b, (bn_rm, bn_rv, bn_eps, bn_w, bn_b), 0)


def _fuse_copy(layer: Any, bn: Any, dim: int) -> Any:
    if layer.training or bn.training:
        raise AssertionError("Fusion only for eval!")
    fused = copy.deepcopy(layer)
    statistics = (bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias)
    fused.weight, fused.bias = _fuse_parameters(fused.weight, fused.bias, statistics, dim)
    return fused


def fuse_conv_bn_eval(conv: Any, bn: Any, transpose: bool = False) -> Any:
    """A convolution fused with the batch normalisation after it.

    Args:
        conv: the convolution.
        bn: the normalisation; both must be in evaluation mode.
        transpose: whether the convolution is a transposed one.

    Raises:
        AssertionError: a layer is in training mode.

    Example:
        >>> from pygrad import nn
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2)).eval()
        >>> nn.utils.fuse_conv_bn_eval(*net)
        Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
    """
    return _fuse_copy(conv, bn, int(transpose))


def fuse_linear_bn_eval(linear: Any, bn: Any) -> Any:
    """A linear layer fused with the batch normalisation after it.

    Raises:
        AssertionError: a layer is in training mode, or sizes differ.

    Example:
        >>> from pygrad import nn
        >>> net = nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2)).eval()
        >>> nn.utils.fuse_linear_bn_eval(*net)
        Linear(in_features=1, out_features=2, bias=True)
    """
    assert linear.out_features == bn.num_features or bn.num_features == 1, (
        "To fuse, linear.out_features == bn.num_features or bn.num_features == 1, got "
        f"linear.out_features={linear.out_features} and bn.num_features={bn.num_features}"
    )
    return _fuse_copy(linear, bn, 0)
