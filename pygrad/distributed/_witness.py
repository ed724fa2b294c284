"""Tells mpiexec that a process ended without leaving its group, whatever its exit status.

MPICH's mpiexec sees when a process closes its socket, and ends the others at once. But it takes
``os._exit(0)`` for a regular end, and returns 0. So a small process, the witness, also holds the
socket and waits for the end of this process. If it ends without a farewell, the others have some
seconds to report the missing rank; then the witness aborts the job.
"""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import Final

_GRACE: Final = 3
"""Seconds that the others have to report their errors."""
_PASSAGE: Final = 1
"""Seconds for the message to be read. At an abort mpiexec drops unread output."""
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
"""The shell program of the witness, whose output mpiexec reads."""


class Witness:
    """The process that observes the end of this one."""

    def __init__(self) -> None:
        self._pipe = -1

    def start(self) -> None:
        """Starts the witness, if this process was started by MPICH's mpiexec."""
        mpiexec = os.environ.get("PMI_FD", "")
        if not mpiexec.isdecimal():
            return
        ours, self._pipe = os.pipe()
        self._process = subprocess.Popen(["sh", "-c", _SCRIPT], stdin=ours, stdout=int(mpiexec))
        os.close(ours)
        os.register_at_fork(after_in_child=self._close)

    def _close(self) -> None:
        """Closes the pipe. The witness reads its end once no process holds the pipe."""
        if self._pipe >= 0:
            os.close(self._pipe)
            self._pipe = -1

    def dismiss(self, in_order: bool) -> None:
        """Announces how this process ends. The witness then exits, or aborts the job afterwards."""
        if self._pipe < 0:
            return
        with suppress(OSError):
            os.write(self._pipe, b"left\n" if in_order else b"failed\n")
        if in_order:
            self._close()
            self._process.wait()
        else:
            self._process.returncode = 0  # it outlives this process; no one waits for it
