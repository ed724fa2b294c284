"""cuDNN, which pygrad lacks: its switches can be set, and have no effect.

Results are bitwise equal on every run and machine, whatever `deterministic` is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
benchmark = False
benchmark_limit: int | None = None
deterministic = False
allow_tf32 = True
fp32_precision = "none"
depthwise_kernel = "auto"


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
    fp32_precision: str = "none",
    depthwise_kernel: str = "auto",
) -> Iterator[None]:
    """A scope with these settings of the switches.

    Example:
        >>> import pygrad
        >>> with pygrad.backends.cudnn.flags(depthwise_kernel="custom"):
        ...     pygrad.backends.cudnn.depthwise_kernel
        'custom'
        >>> pygrad.backends.cudnn.depthwise_kernel
        'auto'
    """
    switches = globals()
    wanted = {
        "enabled": enabled,
        "benchmark": benchmark,
        "benchmark_limit": benchmark_limit,
        "deterministic": deterministic,
        "allow_tf32": allow_tf32,
        "fp32_precision": fp32_precision,
        "depthwise_kernel": depthwise_kernel,
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


def version() -> None:
    """None: there is no cuDNN."""
