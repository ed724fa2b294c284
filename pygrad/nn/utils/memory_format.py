"""Conversion of convolution weights to a memory format."""

from __future__ import annotations

from typing import Any, TypeVar

from ..modules.conv import Conv2d, Conv3d
from ..modules.conv_transpose import ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]

_M = TypeVar("_M", bound=Any)


def convert_conv2d_weight_memory_format(module: _M, memory_format: Any) -> _M:
    """Converts the weights of 2d convolutions to a memory format; returns the module.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.Conv2d(2, 3, 2)
        >>> change = pygrad.nn.utils.convert_conv2d_weight_memory_format
        >>> change(layer, pygrad.channels_last).weight.stride()
        (8, 1, 4, 2)
    """
    return _convert_weights(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: _M, memory_format: Any) -> _M:
    """Converts the weights of 3d convolutions to a memory format; returns the module."""
    return _convert_weights(module, memory_format, (Conv3d, ConvTranspose3d))


def _convert_weights(module: _M, memory_format: Any, kinds: tuple[type, ...]) -> _M:
    for each in module.modules():
        if isinstance(each, kinds):
            layer: Any = each
            layer.weight.data = layer.weight.detach().clone(memory_format=memory_format)
    return module
