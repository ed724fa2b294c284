"""Calls of a module with replaced parameters and buffers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from typing import Any, Final

from ..._tensor.tensor import Tensor
from ..modules.module import Module

__all__ = ["functional_call"]


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """The dict and the key of each parameter and buffer, by full name."""
    found = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for name, value in table.items():
                if value is not None:
                    found[f"{prefix}.{name}" if prefix else name] = (table, name)
    return found


def _tied(places: dict[str, tuple[dict[str, Any], str]], given: dict[str, Any]) -> dict[str, Any]:
    """Extends `given` to the other names of tied tensors."""
    groups: dict[int, list[str]] = {}
    for name, (table, key) in places.items():
        groups.setdefault(id(table[key]), []).append(name)
    filled = dict(given)
    for names in groups.values():
        known = [name for name in names if name in given]
        if len({id(given[name]) for name in known}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(known)}, which are tied. "
                "Consider using tie_weights=False"
            )
        filled.update({name: given[known[0]] for name in names if known})
    return filled


def _check(module: Module, places: Any, given: dict[str, Any]) -> None:
    unexpected, missing = given.keys() - places.keys(), places.keys() - given.keys()
    lines = []
    for keys, what in ((unexpected, "Unexpected"), (missing, "Missing")):
        if keys:
            lines.append(f"{what} key(s): {', '.join(map(repr, sorted(keys)))}.")
    if lines:
        name = type(module).__name__
        raise RuntimeError(f"Error(s) in reparametrizing for {name}:\n\t" + "\n\t".join(lines))


_MISSING: Final = object()


def _owner(module: Module, path: str) -> tuple[Module, str]:
    """The owner of a full name, and the last part of the name."""
    *names, last = path.split(".")
    for name in names:
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        module = getattr(module, name)
        if not isinstance(module, Module):
            raise TypeError(f"submodule `{name}`: {module} is not an instance of torch.nn.Module")
    return module, last


def _swap(owner: Module, name: str, value: Any) -> Any:
    """Replaces a parameter, buffer or attribute by a tensor, None or nothing; returns the former
    value.
    """
    if value is not None and value is not _MISSING and not isinstance(value, Tensor):
        raise TypeError(f"{value} is not an instance of torch.Tensor")
    before: Any
    tables: tuple[dict[str, Any], ...] = (owner._parameters, owner._buffers)
    for table in tables:
        if name in table:
            before = table[name]
            if value is _MISSING:
                del table[name]
            else:
                table[name] = value
            return before
    before = getattr(owner, name, _MISSING)
    if before is not _MISSING and not isinstance(before, Tensor):
        raise TypeError(f"attribute `{name}`: {before} is not an instance of torch.Tensor")
    if value is not _MISSING:
        setattr(owner, name, value)
    elif before is not _MISSING:
        delattr(owner, name)
    return before


@contextmanager
def _replace_tensors(
    module: Module, given: dict[str, Any], tie: bool, strict: bool, found: dict[str, Any]
) -> Iterator[None]:
    """Replaces tensors of the module within a block; `found` gets their values at its end."""
    if tie:
        given = _tied(_places(module), given)
    if strict:
        _check(module, _places(module), given)
    kept: list[tuple[str, Module, str, Any]] = []
    try:
        for path, value in given.items():
            owner, name = _owner(module, path)
            kept.append((path, owner, name, _swap(owner, name, value)))
        yield
    finally:
        for path, owner, name, before in reversed(kept):
            found[path] = _swap(owner, name, before)


def call_with(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Calls the module with its parameters and buffers temporarily replaced.

    Args:
        module: the module.
        parameters_and_buffers: the replacements, by the names of ``named_parameters``; all other
            tensors stay. If the module assigns one of the named attributes, the dictionary has the
            new tensor afterwards.
        args: a tuple of positional arguments, or one argument.
        kwargs: keyword arguments.
        tie_weights: a replacement applies to all names of a tied tensor.
        strict: the names must be exactly those of the module.

    Raises:
        RuntimeError: missing or unexpected names, if ``strict``.
        ValueError: different tensors for tied names.
    """
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    now: dict[str, Any] = {}
    try:
        with _replace_tensors(module, dict(parameters_and_buffers), tie_weights, strict, now):
            return module(*arguments, **(kwargs or {}))
    finally:
        if isinstance(parameters_and_buffers, MutableMapping):
            for name in parameters_and_buffers.keys() & now.keys():
                parameters_and_buffers[name] = now[name]


@contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict[str, Tensor],
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
) -> Iterator[None]:
    """A block in which parameters and buffers of the module are replaced. The dict gets the tensors
    that the module assigns in it.
    """
    now: dict[str, Any] = {}
    try:
        with _replace_tensors(module, dict(parameters_and_buffers), tie_weights, strict, now):
            yield
    finally:
        for name in parameters_and_buffers.keys() & now.keys():
            parameters_and_buffers[name] = now[name]


_functional_call = call_with
"""PyTorch's name of the function."""


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """The old name of :func:`pygrad.func.functional_call`, which PyTorch deprecates.

    Example:
        >>> import pygrad, warnings
        >>> layer = pygrad.nn.Linear(2, 1, bias=False)
        >>> warnings.simplefilter("ignore", FutureWarning)
        >>> given = {"weight": pygrad.ones(1, 2)}
        >>> pygrad.nn.utils.stateless.functional_call(layer, given, pygrad.ones(2))
        tensor([2.])
    """
    warnings.warn(
        "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be "
        "removed in a future version of PyTorch. Please use `torch.func.functional_call` instead "
        "which is a drop-in replacement.",
        FutureWarning,
        stacklevel=2,
    )
    return call_with(
        module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict
    )
