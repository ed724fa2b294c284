"""Transforms of functions: PyTorch's ``torch.func``.

Example:
    >>> import pygrad
    >>> from pygrad.func import grad, vmap
    >>> vmap(grad(pygrad.sin))(pygrad.zeros(3))
    tensor([1., 1., 1.])
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from . import nn as _nn
from ._boundary import header
from ._ground.tree import flatten, map_leaves
from ._table import functions as _functions
from ._tensor.tensor import Tensor
from ._transforms.derivatives import (
    debug_unwrap,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from ._transforms.rearrange import rearrange
from ._transforms.vmap import vmap
from .nn.utils import stateless as _stateless

__all__ = [
    "debug_unwrap",
    "functional_call",
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "rearrange",
    "replace_all_batch_norm_modules_",
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
    """Calls the module with other parameters and buffers.

    Args:
        module: the module to call.
        parameter_and_buffer_dicts: tensors by name, or several dicts of them.
        args: a tuple of positional arguments, or one argument.
        kwargs: keyword arguments.
        tie_weights: a tensor given for one name serves all names that share its parameter.
        strict: every name must be there, and no other.

    Raises:
        ValueError: a name in two dicts, or something that is no dict.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.Linear(2, 1, bias=False)
        >>> pygrad.func.functional_call(layer, {"weight": pygrad.ones(1, 2)}, pygrad.ones(2))
        tensor([2.])
    """
    given: Any = {}
    if isinstance(parameter_and_buffer_dicts, Mapping):
        given = parameter_and_buffer_dicts
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
    stack = _functions.SPACES["torch"]["stack"]
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


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """A function whose results share no memory with arguments that it wrote to.

    The function runs unchanged and its writes to arguments take effect; but results that would
    share memory with an argument written to are copied.

    Args:
        func: any.
        remove: "mutations", or "mutations_and_views": copies of all that are views of arguments.

    Raises:
        RuntimeError: another `remove`.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2)
        >>> y = pygrad.func.functionalize(lambda x: x.view(2, 1).add_(1))(x)
        >>> x.zero_(), y.T
        (tensor([0., 0.]), tensor([[2., 2.]]))
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. "
            "Valid options are:\n     remove='mutations': all inplace and out= operators will be "
            "removed from the program, and replaced with their out-of-place equivalents.\n     "
            "remove='mutations_and_views': In addition to the above, all aliasing operators "
            "{view} will be replaced with their non-aliasing counterparts, {view}_copy.\n"
        )

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        given = [leaf for leaf in flatten((args, kwargs))[0] if isinstance(leaf, Tensor)]
        before = [tensor._version for tensor in given]
        result = func(*args, **kwargs)
        written = [t for t, version in zip(given, before, strict=True) if t._version != version]

        def unshare(value: Any) -> Any:
            if not isinstance(value, Tensor):
                return value
            viewed = remove != "mutations" and all(value is not t for t in given)
            shared = any(_storage(value) == _storage(t) for t in (given if viewed else written))
            return value.clone() if shared else value

        return map_leaves(unshare, result)

    return wrapper


def _storage(tensor: Tensor) -> int:
    return header.storage_of(tensor._h)


def replace_all_batch_norm_modules_(root: _nn.Module) -> _nn.Module:
    """The module, its batch norms changed to normalise by the batch alone: without running
    statistics, which mapped functions could not write to.

    Example:
        >>> import pygrad
        >>> layer = pygrad.func.replace_all_batch_norm_modules_(pygrad.nn.BatchNorm1d(2))
        >>> layer.track_running_stats, list(layer.buffers())
        (False, [])
    """
    for module in root.modules():
        if isinstance(module, _nn.modules.batchnorm._BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
