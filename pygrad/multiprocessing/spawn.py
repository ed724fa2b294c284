"""Processes that run one function and are joined together."""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import signal
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

__all__ = [
    "ENV_VAR_PARALLEL_START",
    "ProcessContext",
    "ProcessException",
    "ProcessExitedException",
    "ProcessRaisedException",
    "SpawnContext",
    "spawn",
    "start_processes",
]

ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """A process failed.

    Attributes:
        error_index: the number of the process.
        error_pid: the id of the process.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int) -> None:
        super().__init__(msg)
        self.msg = msg
        self.error_index = error_index
        self.pid = error_pid

    @property
    def error_pid(self) -> int:
        return self.pid

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """A process ended by an exception. The message has its traceback."""


class ProcessExitedException(ProcessException):
    """A process ended by a signal, or with an exit code.

    Attributes:
        exit_code: the exit code of the process.
        signal_name: the name of the signal; None without one.
    """

    def __init__(
        self,
        msg: str,
        error_index: int,
        error_pid: int,
        exit_code: int,
        signal_name: str | None = None,
    ) -> None:
        super().__init__(msg, error_index, error_pid)
        self.exit_code = exit_code
        self.signal_name = signal_name

    def __reduce__(self) -> Any:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _wrap(fn: Callable[..., Any], i: int, args: tuple[Any, ...], error_file: Any) -> None:
    """Runs the function in a child process; sends the traceback of an error to the parent."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the process that started this one was interrupted as well
    except Exception:
        error_file.send(traceback.format_exc())
        sys.exit(1)


class ProcessContext:
    """A set of processes that were started together."""

    def __init__(self, processes: list[Any], error_files: list[Any]) -> None:
        self.processes = processes
        self._errors = error_files
        self.sentinels = {process.sentinel: i for i, process in enumerate(processes)}

    def pids(self) -> list[int]:
        """The ids of the processes."""
        return [int(process.pid) for process in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits for a process to end. If one failed, the others are ended.

        Args:
            timeout: seconds to wait for a process.
            grace_period: seconds that the others have before they are ended by force.

        Returns:
            Whether all processes have ended.

        Raises:
            ProcessRaisedException: a process raised.
            ProcessExitedException: a process ended in another way before its function returned.
        """
        if not self.sentinels:
            return True
        ready = multiprocessing.connection.wait(list(self.sentinels), timeout=timeout)
        wrong = None
        for sentinel in ready:
            number = self.sentinels.pop(sentinel)
            process = self.processes[number]
            process.join()
            if process.exitcode != 0:
                wrong = number
                break
        if wrong is None:
            return not self.sentinels
        self._end_others(grace_period)
        raise self._error(wrong)

    def _end_others(self, grace_period: float | None) -> None:
        until = time.monotonic() + (grace_period or 0)
        for process in self.processes:
            if grace_period and process.is_alive():
                process.join(max(0, until - time.monotonic()))
            if process.is_alive():
                process.terminate()
        until = time.monotonic() + 30
        for process in self.processes:
            process.join(max(0, until - time.monotonic()))
            if process.is_alive():
                process.kill()
                process.join()

    def _error(self, number: int) -> ProcessException:
        process = self.processes[number]
        if self._errors[number].poll():
            try:
                text = self._errors[number].recv()
            except EOFError:
                pass
            else:
                message = f"\n\n-- Process {number} terminated with the following error:\n{text}"
                return ProcessRaisedException(message, number, process.pid)
        code = process.exitcode
        if code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = f"<Unknown signal {-code}>"
            message = f"process {number} terminated with signal {name}"
            return ProcessExitedException(message, number, process.pid, code, name)
        message = f"process {number} terminated with exit code {code}"
        return ProcessExitedException(message, number, process.pid, code)


SpawnContext = ProcessContext


def start_processes(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Starts processes that call ``fn(number, *args)``.

    Args:
        fn: the function; with "spawn" it must be at the top of a module.
        args: its arguments after the number.
        nprocs: the number of processes.
        join: whether to wait for all processes.
        daemon: whether the processes end with this one.
        start_method: "spawn", "fork" or "forkserver".

    Returns:
        None, or a `ProcessContext` if not joined.

    Raises:
        ProcessException: see `ProcessContext.join`.
    """
    context: Any = multiprocessing.get_context(start_method)
    processes, errors = [], []
    for number in range(nprocs):
        reader, writer = context.Pipe(duplex=False)
        process = context.Process(target=_wrap, args=(fn, number, args, writer), daemon=daemon)
        process.start()
        writer.close()
        processes.append(process)
        errors.append(reader)
    started = ProcessContext(processes, errors)
    if not join:
        return started
    while not started.join():
        pass
    return None


def spawn(
    fn: Callable[..., Any],
    args: tuple[Any, ...] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """`start_processes` with the start method "spawn".

    Example:
        >>> import pygrad
        >>> pygrad.multiprocessing.spawn(print, nprocs=0)
    """
    if start_method != "spawn":
        import warnings

        warnings.warn(
            "This method only supports start_method=spawn (got: "
            f"{start_method}).\nTo use a different start_method use:\n\t\t"
            " torch.multiprocessing.start_processes(...)",
            FutureWarning,
            stacklevel=2,
        )
    return start_processes(fn, args, nprocs, join, daemon, start_method="spawn")
