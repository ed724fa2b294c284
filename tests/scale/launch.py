"""Programs started as several processes, with what each of them said.

A shell stands between mpiexec and each process, which prints to files of its own. MPICH's mpiexec
ends all processes when one ends out of order; here it does not, and the signal that it sends them
instead is ignored, so that the others can say what they see.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent.parent
_LET_LIVE = ["-disable-auto-cleanup"]
HEAD = "import pygrad as torch, pygrad.distributed as dist\nfrom datetime import timedelta\n"


class Rank(NamedTuple):
    """What a process printed, what it said of errors, and how it ended (128 and the signal)."""

    out: str
    err: str
    code: int


def environment(more: Mapping[str, str] = {}) -> dict[str, str]:
    """One thread a process, and the tree under test."""
    return {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **more}


def mpiexec(ranks: int, command: Sequence[str], options: Sequence[str] = ()) -> list[str]:
    """The command line that starts so many processes, by the MPI of this environment."""
    return [str(Path(sys.executable).parent / "mpiexec"), *options, "-n", str(ranks), *command]


def launch(
    program: str | Sequence[str],
    ranks: int,
    timeout: float = 60,
    env: Mapping[str, str] = {},
    meanwhile: Callable[[subprocess.Popen[bytes], Path], None] | None = None,
) -> list[Rank]:
    """Runs a program as so many processes, and waits for them.

    Args:
        program: its text, which follows `HEAD`; or the arguments of Python.
        ranks: how many.
        timeout: seconds after which all are killed, which fails the test.
        env: more variables.
        meanwhile: called once they are started, with mpiexec's process and the folder of their
            files, ``out.RANK`` and ``err.RANK``.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if isinstance(program, str):
            (folder / "program.py").write_text(HEAD + program)
            program = [str(folder / "program.py")]
        python = shlex.join([sys.executable, "-u", *program])
        files = ">out.$PMI_RANK 2>err.$PMI_RANK"
        shell = f"trap '' USR1; {python} {files}; echo $? >code.$PMI_RANK; exit 0"
        process = subprocess.Popen(
            mpiexec(ranks, ["sh", "-c", shell], _LET_LIVE),
            cwd=folder,
            env=environment(env),
            start_new_session=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        try:
            if meanwhile is not None:
                meanwhile(process, folder)
            said, _ = process.communicate(timeout=timeout)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            for rank in range(ranks):
                print(f"rank {rank}:", _read(folder / f"err.{rank}"))
            raise
        missing = [rank for rank in range(ranks) if not (folder / f"code.{rank}").exists()]
        assert not missing, f"ranks {missing} did not end by themselves: {said.decode()}"
        return [
            Rank(
                _read(folder / f"out.{rank}"),
                _read(folder / f"err.{rank}"),
                int(_read(folder / f"code.{rank}")),
            )
            for rank in range(ranks)
        ]


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def outputs(program: str | Sequence[str], ranks: int, timeout: float = 60) -> list[str]:
    """What each process printed; all must end well."""
    found = launch(program, ranks, timeout)
    assert [each.code for each in found] == [0] * ranks, "\n".join(each.err for each in found)
    return [each.out for each in found]
