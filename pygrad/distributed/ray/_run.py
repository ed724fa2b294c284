"""The driver's side of a run: starts and watches workers, and restarts them after a loss."""

from __future__ import annotations

import importlib
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from . import _checkpoints
from ._worker import Outcome, Place, Worker

_log = logging.getLogger(__name__)
_GRACE = 10.0
"""Seconds until a report that there is no room; for workers to end; and for the original error to
arrive after one that only results from it.
"""


class WorkerLostError(RuntimeError):
    """A worker was lost, and no restarts are left."""


class _LostError(Exception):
    """A worker was lost in this attempt."""


def run(
    train: Callable[..., Any],
    *,
    workers: int = 2,
    arguments: Sequence[Any] = (),
    checkpoints: str | os.PathLike[str] | None = None,
    restarts: int = 3,
    keep: int = 2,
    resources: Mapping[str, float] | None = None,
    timeout: timedelta = timedelta(minutes=30),
) -> Any:
    """Runs a training function in several processes of a Ray cluster, as ranks of one group.

    In the function ``torch.distributed`` is initialized. Without a cluster Ray starts one on this
    host. If a worker is lost, because it was killed or its host failed, all workers are restarted,
    and `checkpoint` returns the last state given to `save`. An error of the function ends the run.

    Args:
        train: The function, called as ``train(*arguments)`` in every worker.
        workers: The number of processes.
        arguments: The arguments of the function; pickled.
        checkpoints: A folder that all hosts see, or None. The run resumes from its newest
            checkpoint.
        restarts: The number of restarts before the loss of a worker is an error.
        keep: The number of newest checkpoints to keep in the folder.
        resources: The needs of each worker, by Ray's names; one CPU by default.
        timeout: The time limit of a start, or of a collective.

    Returns:
        The result of the function on rank 0.

    Raises:
        WorkerLostError: a worker was lost and `restarts` is used up.
        TimeoutError: the cluster has no room for so many workers, or did not start them.
        Exception: an error of the function, with the traceback of the worker as a note.

    Example::

        def train(epochs):
            model = torch.nn.Linear(4, 1)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
            start = 0
            if (state := ray.checkpoint()) is not None:
                model.load_state_dict(state["model"])
                start = state["epoch"]
            for epoch in range(start, epochs):
                ...
                ray.save({"model": model.state_dict(), "epoch": epoch + 1})
            return model.state_dict()

        weights = ray.run(train, workers=2, arguments=[10], checkpoints="checkpoints")
    """
    if workers < 1 or restarts < 0 or keep < 1:
        raise ValueError("run: workers and keep are 1 or more, restarts 0 or more")
    ray = _ray()
    folder = None if checkpoints is None else Path(checkpoints).absolute()
    for attempt in range(restarts + 1):
        newest = _newest(folder)
        place = Place(0, [], secrets.token_bytes(32), timeout, folder, newest, keep)
        try:
            with _start_workers(ray, workers, dict(resources or {"CPU": 1}), timeout) as actors:
                return _result(ray, actors, place, train, arguments)
        except _LostError as lost:
            reason = str(lost)
        if attempt < restarts:
            _log.warning("restart %d of %d: %s", attempt + 1, restarts, reason)
    last = _newest(folder)
    raise WorkerLostError(
        f"run: {reason}. It has been restarted {restarts} times, as often as it may be; the last "
        f"checkpoint is {last or 'none'}"
    )


def _ray() -> Any:
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise RuntimeError(f"run needs Ray: pip install 'pygrad-wasm[ray]' ({error})") from None


def _newest(folder: Path | None) -> Path | None:
    if folder is None:
        return None
    _checkpoints.tidy(folder)
    return _checkpoints.newest(folder)


@contextmanager
def _start_workers(
    ray: Any, workers: int, resources: dict[str, float], timeout: timedelta
) -> Iterator[list[Any]]:
    """Starts the workers as actors, all or none; ends them at the end of the block."""
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    group = ray.util.placement_group([resources] * workers)
    actors: list[Any] = []
    try:
        _wait_for_room(ray, group, workers, resources, timeout)
        named = {"num_cpus": "CPU", "num_gpus": "GPU", "memory": "memory"}
        needs: dict[str, Any] = {option: resources.get(name, 0) for option, name in named.items()}
        needs["resources"] = {n: v for n, v in resources.items() if n not in named.values()}
        for index in range(workers):
            place = strategies.PlacementGroupSchedulingStrategy(group, index)
            made = ray.remote(Worker).options(scheduling_strategy=place, **needs)
            actors.append(made.remote())
        yield actors
    finally:
        ends = [actor.__ray_terminate__.remote() for actor in actors]
        for actor in actors:
            ray.kill(actor)
        if ends:  # no worker of this attempt may write a checkpoint during the next one
            ray.wait(ends, num_returns=len(ends), timeout=_GRACE)
        ray.util.remove_placement_group(group)


def _wait_for_room(
    ray: Any, group: Any, workers: int, resources: dict[str, float], timeout: timedelta
) -> None:
    seconds = timeout.total_seconds()
    if group.wait(min(seconds, _GRACE)):
        return
    lacks = f"room for {workers} workers of {resources}; it has {ray.available_resources()} to give"
    _log.warning("the cluster has no %s", lacks)
    if not group.wait(max(seconds - _GRACE, 0)):
        raise TimeoutError(f"run: in {timeout} the cluster had no {lacks}")


def _addresses(ray: Any, actors: list[Any], timeout: timedelta) -> list[Any]:
    """The address on which each worker listens."""
    asked = [actor.listen.remote() for actor in actors]
    with _losses(ray):
        try:
            return list(ray.get(asked, timeout=timeout.total_seconds()))
        except ray.exceptions.GetTimeoutError:
            raise TimeoutError(f"run: in {timeout} not all workers have started") from None


def _result(
    ray: Any, actors: list[Any], place: Place, train: Callable[..., Any], arguments: Sequence[Any]
) -> Any:
    """Runs the function on all workers; returns rank 0's value once all have succeeded."""
    addresses = _addresses(ray, actors, place.timeout)
    shared = ray.put((train, tuple(arguments)))
    running = {}
    for rank, actor in enumerate(actors):
        told = replace(place, rank=rank, addresses=addresses)
        running[actor.work.remote(told, shared)] = rank
    followed: Outcome | None = None
    value = None
    while running:
        done, _ = ray.wait(list(running), timeout=_GRACE if followed else None)
        if not done:
            break
        rank = running.pop(done[0])
        with _losses(ray, rank):
            outcome = ray.get(done[0])
        if outcome.lost:
            raise _LostError(outcome.told)
        if outcome.error is not None and not outcome.follows:
            raise _worker_error(outcome)
        if outcome.error is not None:
            followed = followed or outcome
        if rank == 0:
            value = outcome.value
    if followed is not None:
        raise _worker_error(followed)
    return value


@contextmanager
def _losses(ray: Any, rank: int | None = None) -> Iterator[None]:
    """Turns Ray's errors about lost workers into `_LostError`."""
    errors = ray.exceptions
    try:
        yield
    except (errors.RayActorError, errors.OutOfMemoryError, errors.ObjectLostError) as error:
        who = "a worker" if rank is None else f"rank {rank}"
        why, _, _ = " ".join(str(error).split()).partition(" Some common causes")
        raise _LostError(f"{who} was lost: {why.rstrip('.')}") from None


def _worker_error(outcome: Outcome) -> Exception:
    """The error of a worker, in the form that the driver raises."""
    assert outcome.error is not None
    outcome.error.add_note(outcome.told)
    return outcome.error
