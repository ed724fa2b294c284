"""Calling a module with other parameters and buffers than its own."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pygrad.nn.modules.module import Module

__all__ = ["functional_call"]


def _places(module: Module) -> dict[str, tuple[dict[str, Any], str]]:
    """The dict and key where each parameter and buffer stands, by its full name."""
    found = {}
    for prefix, owner in module.named_modules(remove_duplicate=False):
        for table in (owner._parameters, owner._buffers):
            for name, value in table.items():
                if value is not None:
                    found[f"{prefix}.{name}" if prefix else name] = (table, name)
    return found


def _tied(places: dict[str, tuple[dict[str, Any], str]], given: dict[str, Any]) -> dict[str, Any]:
    """What is given, for the other names of the same tensors too."""
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


@contextmanager
def _replaced(module: Module, given: dict[str, Any], tie: bool, strict: bool) -> Iterator[None]:
    places = _places(module)
    if tie:
        given = _tied(places, given)
    if strict:
        _check(module, places, given)
    kept = [(table, key, table[key]) for table, key in places.values()]
    for name, value in given.items():
        if name in places:
            table, key = places[name]
            table[key] = value
    try:
        yield
    finally:
        for table, key, value in kept:
            table[key] = value


def call_with(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """What the module gives when its parameters and buffers are others, which it gives back.

    Args:
        module: what to call.
        parameters_and_buffers: tensors by the names that ``named_parameters`` gives; those that
            are not named stay the module's own.
        args: a tuple of positional arguments, or one argument.
        kwargs: keyword arguments.
        tie_weights: a tensor given for one name stands for all names that share one.
        strict: every name must be there, and no other.

    Raises:
        RuntimeError: names that do not fit, if ``strict``.
        ValueError: different tensors for names that are tied.
    """
    given = dict(parameters_and_buffers)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(module, given, tie_weights, strict):
        return module(*arguments, **(kwargs or {}))


def functional_call(
    module: Module,
    parameters_and_buffers: Mapping[str, Any],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """:func:`pygrad.func.functional_call` by its old name, which PyTorch deprecates.

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
