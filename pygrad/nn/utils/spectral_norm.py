"""Division of weights by their largest singular value, estimated by power iteration."""

from __future__ import annotations

from typing import Any, TypeVar

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from ..modules.conv_transpose import _ConvTransposeNd
from ..modules.module import Module
from ..parameter import Parameter, is_lazy
from .weight_norm import _hook_of

__all__ = ["remove_spectral_norm", "spectral_norm"]

T = TypeVar("T", bound=Module)


class SpectralNorm:
    """The hook that computes the weight."""

    def __init__(
        self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12
    ) -> None:
        self.name = name
        if n_power_iterations <= 0:
            raise ValueError(
                "Expected n_power_iterations to be positive, but got "
                f"n_power_iterations={n_power_iterations}"
            )
        self.n_power_iterations = n_power_iterations
        self.dim = dim
        self.eps = eps

    def matrix(self, weight: Tensor) -> Tensor:
        """The weight as a matrix whose rows are slices along the dimension."""
        rows = weight.movedim(self.dim, 0)
        return rows.reshape(rows.size(0), -1)

    def _normalize(self, vector: Tensor) -> Tensor:
        """The vector divided by its length."""
        return F.normalize(vector, dim=0, eps=self.eps)

    def compute_weight(self, module: Module, do_power_iteration: bool) -> Tensor:
        """The weight divided by its norm, which the two vectors estimate; updates them first."""
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = self.matrix(weight)
        if do_power_iteration:
            with pygrad.no_grad():
                for _ in range(self.n_power_iterations):
                    v.copy_(self._normalize(matrix.t().mv(u)))
                    u.copy_(self._normalize(matrix.mv(v)))
                u, v = u.clone(), v.clone()
        found: Tensor = weight / u.dot(matrix.mv(v))
        return found

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self.name, self.compute_weight(module, module.training))


class SpectralNormStateDictHook:
    """Records in the metadata of a state dict that it has both vectors."""

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(self, module: Module, state_dict: Any, prefix: str, local_metadata: Any) -> None:
        local_metadata.setdefault("spectral_norm", {})[f"{self.fn.name}.version"] = 1


class SpectralNormLoadStateDictPreHook:
    """Adds the missing second vector to a state dict from before PyTorch 1.1: the vector for which
    the first one gives the norm by which the weight was divided.
    """

    def __init__(self, fn: SpectralNorm) -> None:
        self.fn = fn

    def __call__(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        version = local_metadata.get("spectral_norm", {}).get(f"{self.fn.name}.version")
        key = prefix + self.fn.name
        if version is not None or (key not in state_dict and f"{key}_v" in state_dict):
            return
        lacks = [key + end for end in ("_orig", "", "_u") if key + end not in state_dict]
        missing_keys.extend(lacks)
        if lacks:
            return
        with pygrad.no_grad():
            whole, weight, u = (
                state_dict[f"{key}_orig"],
                state_dict.pop(key),
                state_dict[f"{key}_u"],
            )
            matrix = self.fn.matrix(whole)
            v = matrix.t().mm(matrix).pinverse().mv(matrix.t().mv(u))
            norm = (whole / weight).mean()
            state_dict[f"{key}_v"] = v * (norm / u.dot(matrix.mv(v)))


def spectral_norm(
    module: T,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> T:
    """Divide a weight by its largest singular value, before each call of the layer.

    Args:
        module: the layer, which is modified and returned.
        name: the parameter, which becomes ``weight_orig``.
        n_power_iterations: the number of power iterations per call in training.
        eps: added to lengths before divisions.
        dim: the dimension whose slices are the rows of a matrix; by default 0, for transposed
            convolutions 1.

    Raises:
        RuntimeError: the parameter already has the hook.
        ValueError: no power iterations.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.utils.spectral_norm(pygrad.nn.Linear(2, 3))
        >>> list(layer.state_dict())
        ['bias', 'weight_orig', 'weight_u', 'weight_v']
    """
    if _hook_of(module, SpectralNorm, name)[1] is not None:
        raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
    if dim is None:
        dim = 1 if isinstance(module, _ConvTransposeNd) else 0
    hook = SpectralNorm(name, n_power_iterations, dim, eps)
    weight = module._parameters[name]
    if is_lazy(weight):
        raise ValueError(
            "The module passed to `SpectralNorm` can't have uninitialized parameters. "
            "Make sure to run the dummy forward before applying spectral normalization"
        )
    assert weight is not None
    with pygrad.no_grad():
        height, width = hook.matrix(weight).shape
        u = hook._normalize(weight.new_empty(height).normal_(0, 1))
        v = hook._normalize(weight.new_empty(width).normal_(0, 1))
    del module._parameters[name]
    module.register_parameter(name + "_orig", weight)
    setattr(module, name, weight.data)
    module.register_buffer(name + "_u", u)
    module.register_buffer(name + "_v", v)
    module.register_forward_pre_hook(hook)
    module._register_state_dict_hook(SpectralNormStateDictHook(hook))
    module._register_load_state_dict_pre_hook(SpectralNormLoadStateDictPreHook(hook))
    return module


def remove_spectral_norm(module: T, name: str = "weight") -> T:
    """Make the current weight a parameter again.

    Raises:
        ValueError: the weight has no hook of :func:`spectral_norm`.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.utils.spectral_norm(pygrad.nn.Linear(2, 3))
        >>> list(pygrad.nn.utils.remove_spectral_norm(layer).state_dict())
        ['bias', 'weight']
    """
    key, hook = _hook_of(module, SpectralNorm, name)
    if hook is None:
        raise ValueError(f"spectral_norm of '{name}' not found in {module}")
    with pygrad.no_grad():
        weight = hook.compute_weight(module, False)
    delattr(module, name)
    for suffix in ("_u", "_v"):
        delattr(module, name + suffix)
    delattr(module, name + "_orig")
    module.register_parameter(name, Parameter(weight.detach()))
    del module._forward_pre_hooks[key]
    for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
        for place, each in list(hooks.items()):
            if getattr(getattr(each, "hook", each), "fn", None) is hook:
                del hooks[place]
    return module
