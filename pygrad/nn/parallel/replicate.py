"""Copies of a module for several devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..modules.module import Module
from . import comm

__all__ = ["replicate"]


def replicate(network: Module, devices: Sequence[Any], detach: bool = False) -> list[Module]:
    """Copies a module to each device.

    Raises:
        AssertionError, ValueError: the module has parameters, and there are no such devices.

    Example:
        >>> import pygrad
        >>> len(pygrad.nn.parallel.replicate(pygrad.nn.ReLU(), [0, 1]))
        2
    """
    tensors = [*network.parameters(), *network.buffers()]
    if tensors:
        if not any(str(each).startswith("cpu") for each in devices):
            raise AssertionError("Broadcast function not implemented for CPU tensors")
        comm.broadcast_coalesced(tensors, devices)
    modules = list(network.modules())
    places = {module: place for place, module in enumerate(modules)}
    copies: list[list[Any]] = [[m._replicate_for_data_parallel() for m in modules] for _ in devices]
    for row in copies:
        for module, copy in zip(modules, row, strict=True):
            for name, child in module._modules.items():
                copy._modules[name] = None if child is None else row[places[child]]
    return [row[0] for row in copies]
