"""cuDNN, which is not here: its switches can be set, and have nothing to switch.

Results are the same bits on every run and machine, whatever `deterministic` says.
"""

from __future__ import annotations

enabled = True
benchmark = False
deterministic = False
allow_tf32 = True


def is_available() -> bool:
    """Always False."""
    return False


def version() -> None:
    """There is none."""
