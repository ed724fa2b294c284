"""Ways of converting modules that PyTorch plans for the future; all are off at first.

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

_overwrite_module_params_on_conversion: bool = False
_swap_module_params_on_conversion: bool = False


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Sets whether converting a module makes new parameters, or gives the old ones new data."""
    global _overwrite_module_params_on_conversion
    _overwrite_module_params_on_conversion = value


def get_overwrite_module_params_on_conversion() -> bool:
    """The value last given to `set_overwrite_module_params_on_conversion`."""
    return _overwrite_module_params_on_conversion


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Sets whether modules are converted, and state dicts loaded, by `torch.utils.swap_tensors`:
    the parameters stay the same objects, even if their class changes.
    """
    global _swap_module_params_on_conversion
    _swap_module_params_on_conversion = value


def get_swap_module_params_on_conversion() -> bool:
    """The value last given to `set_swap_module_params_on_conversion`."""
    return _swap_module_params_on_conversion
