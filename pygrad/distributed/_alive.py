"""Tells whether another process of this host is alive, by a lock that it holds until its end.

The lock belongs to the process, not to the open file: neither a forked child nor a dead process
that was not yet waited for holds it.
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
        """Removes the file's name, once all watchers have opened it, so that no file is left."""
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def lower(self, in_order: bool) -> None:
        """Unlocks the file. With `in_order`, first marks a regular end of the process."""
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
