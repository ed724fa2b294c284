"""Annotations of values with types, for a trace."""

from __future__ import annotations

from typing import Any

from .proxy import Proxy


def annotate(val: Any, type: Any) -> Any:
    """Record the type of a proxy's value; any other value is returned unchanged.

    Raises:
        RuntimeError: it has a type already.
    """
    if isinstance(val, Proxy):
        if val.node.type:
            raise RuntimeError(
                f"Tried to annotate a value that already had a type on it! Existing type is "
                f"{val.node.type} and new type is {type}. This could happen if you tried to "
                "annotate a function parameter value (in which case you should use the type slot "
                "on the function signature) or you called annotate on the same value twice"
            )
        val.node.type = type
    return val


__all__ = ["annotate"]
