"""Parallel calls of modules, each in a thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ..._ground.package import submodule
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ..modules.module import Module

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj: Any) -> Tensor | None:
    """The first tensor in a container, or None."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, dict):
        obj = obj.items()
    if isinstance(obj, (list, tuple)) or hasattr(obj, "mapping"):
        for each in map(get_a_var, obj):
            if each is not None:
                return each
    return None


def parallel_apply(
    modules: Sequence[Module],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Calls each module with its inputs; several modules run in a thread each.

    Args:
        modules: the modules.
        inputs: the arguments of each module, a tuple or one argument.
        kwargs_tup: the keyword arguments of each module.
        devices: ignored.

    Raises:
        AssertionError: lists of different lengths.
        Any error of a module.

    Example:
        >>> import pygrad
        >>> relu = pygrad.nn.ReLU()
        >>> pygrad.nn.parallel.parallel_apply([relu, relu], [pygrad.ones(1), -pygrad.ones(1)])
        [tensor([1.]), tensor([0.])]
    """
    named = kwargs_tup or [{}] * len(modules)
    for what, each in (("inputs", inputs), ("kwargs_tup", named), ("devices", devices)):
        if each is not None and len(each) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {what} "
                f"{len(each)}"
            )
    amp = submodule("amp._state")
    modes = pygrad.is_grad_enabled(), amp.is_autocast_enabled()
    results: list[Any] = [None] * len(modules)

    def run(place: int) -> None:
        given = inputs[place]
        args = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        recorded, cast = modes
        try:
            with pygrad.set_grad_enabled(recorded), submodule("amp").autocast("cpu", enabled=cast):
                results[place] = modules[place](*args, **named[place])
        except BaseException as error:
            results[place] = error

    if len(modules) > 1:
        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    else:
        for place in range(len(modules)):
            run(place)
    for each in results:
        if isinstance(each, BaseException):
            raise each
    return results
