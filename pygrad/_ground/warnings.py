"""Warnings that are given once a process, unless the user asks for every one."""

from __future__ import annotations

import warnings

_always = False
_given: set[str] = set()


def set_always(always: bool) -> None:
    """Whether warnings that come once a process come every time."""
    global _always
    _always = always


def is_warn_always_enabled() -> bool:
    """Whether `set_warn_always` is in force."""
    return _always


def once(what: str) -> bool:
    """Whether to give the warning with this name now."""
    if what in _given and not _always:
        return False
    _given.add(what)
    return True


def warn_of_conversion() -> None:
    """PyTorch's warning about a Python number made of a tensor in a graph, once a process."""
    if once("conversion"):
        warnings.warn(
            "Converting a tensor with requires_grad=True to a scalar may lead to unexpected "
            "behavior.\nConsider using tensor.detach() first.",
            stacklevel=4,
        )
