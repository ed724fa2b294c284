"""Whether another process of this host is alive, told by a lock that it holds until it ends.

The lock is of the process, not of the file that it opened: a child that is forked does not hold it,
and a process that is dead and not yet waited for does not either.
"""

from __future__ import annotations

import fcntl
import os
import tempfile


class Flag:
    """A locked file, removed when this process leaves, and unlocked when it ends otherwise."""

    def __init__(self) -> None:
        self._file, self.path = tempfile.mkstemp(prefix="pygrad-alive-")
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def lower(self) -> None:
        """Says that this process leaves."""
        remove(self.path)
        os.close(self._file)


def remove(path: str) -> None:
    """Removes a flag, if it is there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def fate(path: str) -> str:
    """What became of the process that raised a flag: "alive", "left" or "died".

    Example:
        >>> fate("/nowhere")
        'left'
    """
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return "left"
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return "alive"
    else:
        return "died" if os.path.exists(path) else "left"
    finally:
        os.close(file)
