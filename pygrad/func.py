"""Transforms of functions: PyTorch's ``torch.func``.

Example:
    >>> import pygrad
    >>> from pygrad.func import grad, vmap
    >>> vmap(grad(pygrad.sin))(pygrad.zeros(3))
    tensor([1., 1., 1.])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from . import _ops
from . import nn as _nn
from ._tensor import Tensor
from ._transforms import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from ._vmap import vmap
from .nn.utils import stateless as _stateless

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def functional_call(
    module: _nn.Module,
    parameter_and_buffer_dicts: Mapping[str, Any] | Sequence[Mapping[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What the module gives when its parameters and buffers are others.

    Args:
        module: what to call.
        parameter_and_buffer_dicts: tensors by name, or several dicts of them.
        args: a tuple of positional arguments, or one argument.
        kwargs: keyword arguments.
        tie_weights: a tensor given for one name stands for all names that share one.
        strict: every name must be there, and no other.

    Raises:
        ValueError: a name in two dicts, or something that is no dict.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.Linear(2, 1, bias=False)
        >>> pygrad.func.functional_call(layer, {"weight": pygrad.ones(1, 2)}, pygrad.ones(2))
        tensor([2.])
    """
    given: dict[str, Any] = {}
    if isinstance(parameter_and_buffer_dicts, Mapping):
        given = dict(parameter_and_buffer_dicts)
    else:
        for each in parameter_and_buffer_dicts:
            if not isinstance(each, Mapping):
                raise ValueError(
                    "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
                )
            if repeated := sorted(given.keys() & each.keys()):
                raise ValueError(
                    f"{repeated} appeared in multiple dictionaries; behavior of functional call is "
                    "ambiguous"
                )
            given |= each
    return _stateless.call_with(module, given, args, kwargs, tie_weights=tie_weights, strict=strict)


def stack_module_state(
    models: Sequence[_nn.Module],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """The parameters, and the buffers, of models of one class, stacked by name, for `vmap`.

    Raises:
        RuntimeError: no models, different classes or different modes.

    Example:
        >>> import pygrad
        >>> layers = [pygrad.nn.Linear(2, 3) for _ in range(4)]
        >>> tuple(pygrad.func.stack_module_state(layers)[0]["weight"].shape)
        (4, 3, 2)
    """
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if any(m.training != models[0].training for m in models):
        raise RuntimeError(
            "stack_module_state: Expected all models to have the same training/eval mode."
        )
    if any(type(m) is not type(models[0]) for m in models):
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    stack = _ops.SPACES["f"]["stack"]
    parameters, buffers = {}, {}
    for name, first in models[0].named_parameters():
        given = [dict(m.named_parameters())[name] for m in models]
        if any(p.requires_grad != first.requires_grad for p in given):
            raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
        column = [p.detach() for p in given]
        parameters[name] = stack(column).requires_grad_(first.requires_grad)
    for name, _ in models[0].named_buffers():
        buffers[name] = stack([dict(m.named_buffers())[name] for m in models])
    return parameters, buffers
