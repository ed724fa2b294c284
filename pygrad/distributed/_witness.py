"""Tells mpiexec that a process ended without a word, whatever it said by its exit status.

MPICH's mpiexec sees that a process has closed its socket, and ends the others at once; of a process
that ended by ``os._exit(0)`` it thinks no evil, and returns 0. So a small process holds the socket
too, to the end of this one. If that comes without a farewell, the others have some seconds to say
what they miss; then it aborts the job.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import Final

_GRACE: Final = 3
"""Seconds."""
_PASSAGE: Final = 1
"""Seconds for the message. At an abort mpiexec drops what it has not yet read."""
_SCRIPT: Final = f"""
read word
[ "$word" = left ] && exit
[ "$word" = failed ] && read end
sleep {_GRACE}
if [ "$word" != failed ]; then
    echo "rank $PMI_RANK has ended within its group: the job is ended" >&2
    sleep {_PASSAGE}
fi
echo "cmd=abort exitcode=1"
"""
"""The shell program of the witness. mpiexec reads its output."""


class Witness:
    """The process that sees how this one ends."""

    def __init__(self) -> None:
        self._pipe = -1

    def start(self) -> None:
        """Starts it. What mpiexec did not start, or another MPI's did, needs none."""
        mpiexec = os.environ.get("PMI_FD", "")
        if not mpiexec.isdecimal():
            return
        ours, self._pipe = os.pipe()
        self._process = subprocess.Popen(["sh", "-c", _SCRIPT], stdin=ours, stdout=int(mpiexec))
        os.close(ours)
        os.register_at_fork(after_in_child=self._close)

    def _close(self) -> None:
        """Lets go of the pipe; what the witness reads ends when nobody has it."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def dismiss(self, in_order: bool) -> None:
        """Says how this process is about to end: the witness goes, or ends the job thereafter."""
        if self._pipe < 0:
            return
        with suppress(OSError):
            os.write(self._pipe, b"left\n" if in_order else b"failed\n")
        if in_order:
            self._close()
            self._process.wait()
        else:
            self._process.returncode = 0  # it outlives this process, and nobody is to wait for it
