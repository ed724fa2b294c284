"""Switches of how modules are converted, in PyTorch `torch.__future__`; all are off at first.

Example:
    >>> import pygrad as torch
    >>> net = torch.nn.Linear(2, 1)
    >>> weight = net.weight
    >>> torch.__future__.set_overwrite_module_params_on_conversion(True)
    >>> net.double().weight is weight, weight.dtype
    (False, torch.float32)
    >>> torch.__future__.set_overwrite_module_params_on_conversion(False)
"""

from __future__ import annotations

_overwrites: bool = False
_swaps: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether converting a module makes new parameters, or gives the old ones new data."""
    global _overwrites
    _overwrites = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The value last given to `set_overwrite_module_params_on_conversion`."""
    return _overwrites


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether modules are converted, and state dicts loaded, by `torch.utils.swap_tensors`:
    the parameters stay the same objects, even if their class changes.
    """
    global _swaps
    _swaps = value


def get_swap_module_params_on_conversion() -> bool:
    """The value last given to `set_swap_module_params_on_conversion`."""
    return _swaps
