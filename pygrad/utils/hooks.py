"""Handles of hooks, and warnings for hooks that are not saved with their tensors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._tensor.hooks import RemovableHandle as RemovableHandle


def unserializable_hook(f: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a hook that need not be saved with its tensor, to avoid the warning.

    Example:
        >>> from pygrad.utils.hooks import unserializable_hook
        >>> @unserializable_hook
        ... def hook(grad):
        ...     return grad * 2
    """
    f.__torch_unserializable__ = True  # type: ignore[attr-defined]
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warns about each unmarked hook in the tensor's ``_backward_hooks``.

    Example:
        >>> import pygrad
        >>> pygrad.utils.hooks.warn_if_has_hooks(pygrad.ones(1))
    """
    for hook in (getattr(tensor, "_backward_hooks", None) or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warnings.warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, "
                "you can decorate the function with @torch.utils.hooks.unserializable_hook to "
                "suppress this warning",
                stacklevel=2,
            )


if not TYPE_CHECKING:

    def __getattr__(name):
        """Imports `BackwardHook` at first use, because its module needs this one."""
        if name == "BackwardHook":
            from ..nn._hooks import BackwardHook

            return BackwardHook
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
