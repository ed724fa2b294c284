"""The package opt_einsum, which `einsum` does without: it contracts from left to right, as
PyTorch's does where that package is not installed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

enabled: bool | None = False
strategy: str | None = None


def is_available() -> bool:
    """Always False."""
    return False


def get_opt_einsum() -> None:
    """None: pygrad does not use the package."""


def set_flags(
    _enabled: bool | None = None, _strategy: str | None = None
) -> tuple[bool | None, str | None]:
    """Sets both switches and returns the former values.

    Raises:
        ValueError: for paths that would have to be calculated.

    >>> set_flags(False)
    (False, None)
    """
    global enabled, strategy
    before = enabled, strategy
    if _enabled:
        raise ValueError(
            "opt_einsum is not available, so setting `enabled` to True will not reap the benefits "
            "of calculating an optimal path for einsum. torch.einsum will fall back to contracting "
            "from left to right. To enable this optimal path calculation, please install "
            "opt-einsum."
        )
    if _strategy is not None:
        raise ValueError(
            f"opt_einsum is not available, so setting `strategy` to {_strategy} will not be "
            "meaningful. torch.einsum will bypass path calculation and simply contract from left "
            "to right. Please install opt_einsum or unset `strategy`."
        )
    enabled, strategy = _enabled, _strategy
    return before


@contextlib.contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[Any]:
    """Sets the switches for the time of a `with` block."""
    before = set_flags(enabled, strategy)
    try:
        yield
    finally:
        set_flags(*before)
