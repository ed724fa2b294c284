"""Weights as length times direction, recomputed before each call of a layer."""

from __future__ import annotations

import warnings
from typing import Any, TypeVar

from ..._tensor.tensor import Tensor
from ..modules.module import Module
from ..parameter import Parameter, is_lazy

__all__ = ["remove_weight_norm", "weight_norm"]

T = TypeVar("T", bound=Module)


def _lengths(v: Tensor, dim: int | None) -> Tensor:
    """The norm of each slice along a dimension, which is kept; the total norm for None."""
    if dim is None:
        return v.norm()
    sizes = [1] * v.dim()
    sizes[dim] = v.size(dim)
    rows = v.transpose(0, dim).reshape(v.size(dim), -1)
    found: Tensor = rows.norm(dim=1).view(sizes)
    return found


class WeightNorm:
    """The hook that computes the weight."""

    def __init__(self, name: str, dim: int | None) -> None:
        self.name = name
        self.dim = dim

    def compute_weight(self, module: Module) -> Tensor:
        """g * v / norm of v."""
        g, v = getattr(module, self.name + "_g"), getattr(module, self.name + "_v")
        found: Tensor = v * (g / _lengths(v, self.dim))
        return found

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module))


def _hook_of(module: Module, kind: type, name: str) -> tuple[Any, Any]:
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, kind) and getattr(hook, "name", None) == name:
            return key, hook
    return None, None


def weight_norm(module: T, name: str = "weight", dim: int | None = 0) -> T:
    """Replace a weight by its direction ``weight_v`` and its lengths ``weight_g``.

    Args:
        module: the layer, which is modified and returned.
        name: the parameter.
        dim: one length for each slice along this dimension; None: one for all.

    Raises:
        RuntimeError: the parameter already has the hook.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore", FutureWarning)
        >>> layer = pygrad.nn.utils.weight_norm(pygrad.nn.Linear(2, 3))
        >>> [name for name, _ in layer.named_parameters()]
        ['bias', 'weight_g', 'weight_v']
    """
    warnings.warn(
        "`torch.nn.utils.weight_norm` is deprecated in favor of "
        "`torch.nn.utils.parametrizations.weight_norm`.",
        FutureWarning,
        stacklevel=2,
    )
    if _hook_of(module, WeightNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two weight_norm hooks on the same parameter {name}")
    dim = None if dim is not None and dim == -1 else dim
    hook = WeightNorm(name, dim)
    weight = getattr(module, name)
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `WeightNorm` can't have uninitialized parameters. "
            "Make sure to run the dummy forward before applying weight normalization"
        )
    del module._parameters[name]
    module.register_parameter(name + "_g", Parameter(_lengths(weight, dim).data))
    module.register_parameter(name + "_v", Parameter(weight.data))
    setattr(module, name, hook.compute_weight(module))
    module.register_forward_pre_hook(hook)
    return module


def remove_weight_norm(module: T, name: str = "weight") -> T:
    """Make the weight a parameter again.

    Raises:
        ValueError: the weight has no hook of :func:`weight_norm`.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore", FutureWarning)
        >>> layer = pygrad.nn.utils.weight_norm(pygrad.nn.Linear(2, 3))
        >>> [name for name, _ in pygrad.nn.utils.remove_weight_norm(layer).named_parameters()]
        ['bias', 'weight']
    """
    key, hook = _hook_of(module, WeightNorm, name)
    if hook is None:
        raise ValueError(f"weight_norm of '{name}' not found in {module}")
    weight = hook.compute_weight(module)
    delattr(module, name)
    del module._parameters[name + "_g"], module._parameters[name + "_v"]
    setattr(module, name, Parameter(weight.data))
    del module._forward_pre_hooks[key]
    return module
