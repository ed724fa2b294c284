"""oneDNN, which pygrad lacks: its switches can be set, and have no effect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
deterministic = False
allow_tf32 = True
fp32_precision = "none"


@contextmanager
def flags(
    enabled: bool = False,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
) -> Iterator[None]:
    """A scope with these settings of the switches.

    Example:
        >>> import pygrad
        >>> with pygrad.backends.mkldnn.flags(enabled=False):
        ...     pygrad.backends.mkldnn.enabled
        False
        >>> pygrad.backends.mkldnn.enabled
        True
    """
    switches = globals()
    wanted = {
        "enabled": enabled,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
    }
    before = {name: switches[name] for name in wanted}
    switches.update(wanted)
    try:
        yield
    finally:
        switches.update(before)


def is_available() -> bool:
    """Always False."""
    return False
