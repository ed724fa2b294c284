"""The predecessor of `func`: the same transforms, and modules as functions of their parameters.

Example:
    >>> import pygrad, warnings
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> from pygrad.functorch import make_functional
    >>> function, params = make_functional(pygrad.nn.Linear(2, 1))
    >>> tuple(function(params, pygrad.ones(3, 2)).shape)
    (3, 1)
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

from ..._table import functions as _functions
from ..._tensor.tensor import Tensor
from ..._transforms.vmap import vmap
from ...func import (
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from ...fx.experimental.proxy_tensor import make_fx
from ...nn.modules.module import Module
from ...nn.utils.stateless import _functional_call

__all__ = [
    "FunctionalModule",
    "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "make_functional",
    "make_functional_with_buffers",
    "make_fx",
    "vjp",
    "vmap",
]


def _warn_deprecated(name: str, instead: str) -> None:
    warnings.warn(
        f"We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future "
        f"version of PyTorch >= 2.3. Please use `{instead}` instead; see the PyTorch 2.0 release "
        "notes and/or the `torch.func` migration guide for more details "
        "https://pytorch.org/docs/main/func.migrating.html",
        FutureWarning,
        stacklevel=3,
    )


class FunctionalModuleWithBuffers(Module):
    """A module as a function of its parameters, its buffers and the input."""

    def __init__(
        self, stateless_model: Module, names: Sequence[str], buffers: Sequence[str]
    ) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(names)
        self.buffer_names = tuple(buffers)

    def forward(
        self, params: Sequence[Any], buffers: Sequence[Any], *args: Any, **kwargs: Any
    ) -> Any:
        names = (*self.param_names, *self.buffer_names)
        given = dict(zip(names, (*params, *buffers), strict=True))
        return _functional_call(self.stateless_model, given, args, kwargs)


class FunctionalModule(Module):
    """A module as a function of its parameters and the input."""

    def __init__(self, stateless_model: Module, names: Sequence[str]) -> None:
        super().__init__()
        self.stateless_model = stateless_model
        self.param_names = tuple(names)

    def forward(self, params: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(self.param_names, params, strict=True))
        return _functional_call(self.stateless_model, given, args, kwargs)


def _extract_parameters(
    model: Module, detached: bool
) -> tuple[Module, list[str], tuple[Tensor, ...]]:
    inner = copy.deepcopy(model)
    named = dict(inner.named_parameters())
    params: tuple[Tensor, ...] = tuple(named.values())
    if detached:
        params = tuple(each.detach() for each in params)
    return inner, list(named), params


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[Any, Any]:
    """A copy of the module as a function, and its parameters, its first argument.

    Args:
        model: without buffers.
        disable_autograd_tracking: whether the parameters need no gradients.

    Raises:
        RuntimeError: the module has buffers.
    """
    _warn_deprecated("make_functional", "torch.func.functional_call")
    if list(model.buffers()):
        raise RuntimeError(
            "make_functional(model): `model` has buffers. Please use "
            "make_functional_with_buffers(model) instead."
        )
    inner, names, params = _extract_parameters(model, disable_autograd_tracking)
    return FunctionalModule(inner, names), params


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[Any, Any, Any]:
    """A copy of the module as a function, its parameters and its buffers, its first arguments.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore", FutureWarning)
        >>> from pygrad.functorch import make_functional_with_buffers
        >>> function, params, buffers = make_functional_with_buffers(pygrad.nn.BatchNorm1d(2))
        >>> len(params), len(buffers), tuple(function(params, buffers, pygrad.ones(3, 2)).shape)
        (2, 3, (3, 2))
    """
    _warn_deprecated("make_functional_with_buffers", "torch.func.functional_call")
    inner, names, params = _extract_parameters(model, disable_autograd_tracking)
    buffers = dict(inner.named_buffers())
    return FunctionalModuleWithBuffers(inner, names, list(buffers)), params, tuple(buffers.values())


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Any, Any, Any]:
    """Modules of one class as one function, with parameters and buffers stacked for `vmap`.

    Raises:
        RuntimeError: no modules, in different modes or of different classes.
    """
    _warn_deprecated("combine_state_for_ensemble", "torch.func.stack_module_state")
    if not models:
        raise RuntimeError("combine_state_for_ensemble: Expected at least one model, got 0.")
    if not (all(m.training for m in models) or not any(m.training for m in models)):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError(
            "combine_state_for_ensemble: Expected all models to be of the same class."
        )
    with warnings.catch_warnings(action="ignore"):
        made = [make_functional_with_buffers(m) for m in models]

    def stack_part(part: int) -> tuple[Tensor, ...]:
        columns = zip(*(row[part] for row in made), strict=True)
        return tuple(_functions.SPACES["torch"]["stack"](list(each)).detach() for each in columns)

    return made[0][0], tuple(each.requires_grad_() for each in stack_part(1)), stack_part(2)
