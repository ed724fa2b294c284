"""Whether the indices of sparse tensors are checked when they are made."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._table import functions

_C = functions.C


class check_sparse_tensor_invariants:
    """Checks every sparse tensor made within the scope: a context manager, a decorator, or a switch
    by `enable` and `disable`.

    Invariants on which operations rely (indices within the sizes, compressed indices that never
    decrease) are always checked here; this adds a check of tensors claimed to be coalesced.

    Example:
        >>> import pygrad
        >>> with pygrad.sparse.check_sparse_tensor_invariants():
        ...     pygrad.sparse.check_sparse_tensor_invariants.is_enabled()
        True
    """

    def __init__(self, enable: bool = True) -> None:
        self.state = enable
        self.saved_state: bool | None = None

    @staticmethod
    def is_enabled() -> bool:
        """Whether they are checked."""
        return bool(_C["_sparse_invariants"]())

    @staticmethod
    def enable() -> None:
        """Checks them from now on."""
        _C["_sparse_invariants"](True)

    @staticmethod
    def disable() -> None:
        """Stops checking them."""
        _C["_sparse_invariants"](False)

    def __enter__(self) -> None:
        if self.saved_state is not None:
            raise RuntimeError(
                "This context manager instance is already activated. Use a different context "
                "manager instance for context nesting."
            )
        self.saved_state = self.is_enabled()
        _C["_sparse_invariants"](self.state)

    def __exit__(self, *_: object) -> None:
        _C["_sparse_invariants"](bool(self.saved_state))
        self.saved_state = None

    def __call__(self, mth: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(mth)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            with type(self)(self.state):
                return mth(*args, **kwargs)

        return wrapper
