"""Construction of modules without initialisation."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar

from ..._tensor import namespace as pygrad
from ..modules.module import Module

__all__ = ["skip_init"]

T = TypeVar("T", bound=Module)


def skip_init(module_cls: type[T], *args: Any, **kwargs: Any) -> T:
    """Makes a module with arbitrary values of parameters and buffers, without drawing random
    numbers.

    Args:
        module_cls: the class, which takes a ``device``.
        args, kwargs: the arguments of its constructor.

    Raises:
        RuntimeError: ``module_cls`` is no module class, or takes no ``device``.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.utils.skip_init(pygrad.nn.Linear, 3, 4)
        >>> tuple(layer.weight.shape)
        (4, 3)
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    # The module is made on a real device, so the random state is restored afterwards.
    state = pygrad.get_rng_state()
    try:
        return module_cls(*args, device=device, **kwargs).to_empty(device=device)
    finally:
        pygrad.set_rng_state(state)
