"""The worker process: joins the group, calls the training function, and reports the outcome."""

from __future__ import annotations

import importlib
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from .. import _group
from .._errors import DistBackendError
from . import _checkpoints, _sockets


@dataclass
class Place:
    """The settings that a worker gets when a run starts or resumes."""

    rank: int
    addresses: list[_sockets.Address]
    secret: bytes
    timeout: timedelta
    folder: Path | None
    newest: Path | None
    """The checkpoint to resume from, the same for all workers."""
    keep: int


@dataclass
class Outcome:
    """The outcome of a worker's call of the training function."""

    value: Any = None
    error: Exception | None = None
    told: str = ""
    """The error's traceback, or why a peer was lost."""
    lost: bool = False
    """A peer was lost: the run can resume from the last checkpoint."""
    follows: bool = False
    """The error only results from another worker's error, which is the one to show."""


_place: Place | None = None


def _current_place() -> Place:
    if _place is None:
        raise RuntimeError(
            "checkpoints are there in functions that pygrad.distributed.ray.run runs"
        )
    return _place


def checkpoint() -> Any:
    """The state from which this worker resumes.

    The state is the last one given to `save` before the run was started or restarted, the same for
    all workers. Call this before the first `save`, which may delete its file.

    Returns:
        The state, or None if the run begins.

    Raises:
        FileNotFoundError: this host does not see the folder of checkpoints, or the file was
            deleted.
    """
    place = _current_place()
    return None if place.newest is None else _checkpoints.read(place.newest)


def save(state: Any) -> None:
    """Saves a state from which the run can resume after the loss of a worker.

    All workers may call it. The state of rank 0 is written; the other ranks return at once. The
    file is on the disk when the call returns on rank 0. If the worker is killed before, the
    previous checkpoint stays the last one.

    Args:
        state: An object that `pygrad.save` accepts and `pygrad.load` reads with ``weights_only``:
            state dicts, tensors, numbers, containers of them.

    Raises:
        ValueError: the run has no folder of checkpoints.
    """
    place = _current_place()
    if place.folder is None:
        raise ValueError("save: give run(...) a folder: checkpoints=...")
    if place.rank == 0:
        _checkpoints.write(place.folder, state, place.keep)


class Worker:
    """One process of a run, made an actor by Ray."""

    def listen(self) -> _sockets.Address:
        """Opens the port for connections of higher ranks; returns its address."""
        host = importlib.import_module("ray").util.get_node_ip_address()
        self._listener: socket.socket = _sockets.listen(host)
        return host, self._listener.getsockname()[1]

    def work(self, place: Place, call: tuple[Callable[..., Any], tuple[Any, ...]]) -> Outcome:
        """Calls the training function as one rank of a group."""
        global _place
        train, arguments = call
        seconds = place.timeout.total_seconds()
        try:
            transport = _sockets.connect(
                self._listener, place.rank, place.addresses, place.secret, seconds
            )
        except ConnectionError as error:
            return Outcome(lost=True, told=str(error))
        _place = place
        try:
            _group.start(transport, seconds)
            value = train(*arguments)
            return Outcome(value if place.rank == 0 else None)
        except BaseException as error:
            gone = transport.departed_peers()
            transport.fail(f"{type(error).__name__}: {error}")
            follows = bool(gone or transport.gave_up) and isinstance(error, DistBackendError)
            return _failure_outcome(place.rank, error, gone, follows)
        finally:
            _place = None
            transport.close()


def _failure_outcome(
    rank: int, error: BaseException, gone: dict[int, str], follows: bool
) -> Outcome:
    if lost := [r for r, reason in gone.items() if reason == _sockets.KILLED]:
        return Outcome(lost=True, told=f"rank {lost[0]} {_sockets.KILLED}")
    told = f"In the worker of rank {rank}:\n" + "".join(traceback.format_exception(error))
    return Outcome(error=_picklable_error(error), told=told, follows=follows)


def _picklable_error(error: BaseException) -> Exception:
    """The error as the driver will unpickle it; a RuntimeError if that fails or is no Exception."""
    cloudpickle = importlib.import_module("ray.cloudpickle")
    try:
        copy = cloudpickle.loads(cloudpickle.dumps(error))
        if isinstance(copy, Exception):
            return copy
    except Exception:
        pass
    return RuntimeError(f"the function ended with {error!r}")
