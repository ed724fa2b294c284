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

from typing import TYPE_CHECKING, Any

from .._ground.package import submodule
from . import functional, init, modules, parameter, utils
from .modules import *  # noqa: F403
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

if TYPE_CHECKING:
    from . import parallel
    from .parallel import DataParallel
else:

    def __getattr__(name):
        """Imports modules at first use."""
        if name in ("attention", "common_types", "grad", "parallel"):
            return submodule(f"nn.{name}")
        if name == "DataParallel":
            return submodule("nn.parallel").DataParallel
        raise AttributeError(f"module 'pygrad.nn' has no attribute '{name}'")


def factory_kwargs(kwargs: dict[str, Any] | None) -> dict[str, Any]:
    """Extracts the keyword arguments with which a layer makes its tensors.

    Raises:
        TypeError: an unknown argument, or one given twice.

    Example:
        >>> import pygrad
        >>> pygrad.nn.factory_kwargs({"device": "cpu", "factory_kwargs": {"dtype": None}})
        {'dtype': None, 'device': 'cpu'}
    """
    if kwargs is None:
        return {}
    simple = {"device", "dtype", "memory_format"}
    expected = simple | {"factory_kwargs"}
    if not kwargs.keys() <= expected:
        raise TypeError(f"unexpected kwargs {kwargs.keys() - expected}")
    found = dict(kwargs.get("factory_kwargs", {}))
    for key in simple & kwargs.keys():
        if key in found:
            raise TypeError(f"{key} specified twice, in **kwargs and in factory_kwargs")
        found[key] = kwargs[key]
    return found
