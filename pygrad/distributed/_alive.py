"""Tells whether another process of this host is alive, by a lock that it holds until it ends.

The lock is of the process, not of the file that it opened: a child that is forked does not hold it,
and a process that is dead and not yet waited for does not either.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from contextlib import suppress
from typing import Final

_LEFT: Final = b"left"


class Flag:
    """A file that this process locks."""

    def __init__(self) -> None:
        self._file, self.path = tempfile.mkstemp(prefix="pygrad-alive-")
        fcntl.lockf(self._file, fcntl.LOCK_EX)

    def hide(self) -> None:
        """Removes the file's name, once all who watch it have opened it; nothing stays behind."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def lower(self, in_order: bool) -> None:
        """Unlocks it; in order if this process leaves as it should."""
        if in_order:
            os.write(self._file, _LEFT)
        os.close(self._file)


class Watch:
    """The flag of another process."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR)

    def fate(self) -> str:
        """The state of the process: "alive", "left" or "died"."""
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return "alive"
        fcntl.lockf(self._file, fcntl.LOCK_UN)
        return "left" if os.pread(self._file, len(_LEFT), 0) == _LEFT else "died"
