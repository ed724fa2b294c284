"""Whether another process of this host is alive, told by a lock that it holds until it ends.

The lock is of the process, not of the file that it opened: a child that is forked does not hold it,
and a process that is dead and not yet waited for does not either.
"""

from __future__ import annotations

import fcntl
import os
import tempfile


class Flag:
    """A locked file, raised until it is lowered or this process ends."""

    def __init__(self) -> None:
        self._file, self.path = tempfile.mkstemp(prefix="pygrad-alive-")
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def lower(self) -> None:
        """Says that this process leaves; a second time does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            _remove(self.path)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


def is_raised(path: str) -> bool:
    """Whether the process that raised a flag is alive.

    Example:
        >>> is_raised("/nowhere")
        False
    """
    try:
        file = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        return False
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        _remove(path)  # its process was killed
        return False
    finally:
        os.close(file)
