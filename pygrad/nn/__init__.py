"""Neural network layers, losses, initialisers: PyTorch's ``torch.nn``.

Example:
    >>> import pygrad
    >>> from pygrad import nn
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> loss = nn.CrossEntropyLoss()(net(pygrad.zeros(3, 4)), pygrad.tensor([0, 1, 0]))
    >>> loss.backward()
    >>> tuple(net[0].weight.grad.shape)
    (8, 4)
"""

from __future__ import annotations

from . import functional, init, modules, parallel, parameter, utils
from .modules import *  # noqa: F403
from .parallel import DataParallel
from .parameter import (
    Buffer,
    Parameter,
    UninitializedBuffer,
    UninitializedParameter,
)

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
]
__all__ += modules.__all__
