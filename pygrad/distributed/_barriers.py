"""Barriers: collectives without tensors, which end when all ranks have arrived."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from ._call import Call
from ._errors import DistBackendError
from ._group import find_for, seconds_or
from ._progress import Steps, Waiting, Work
from ._transport import Poll


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | float | None = None,
) -> Work | None:
    """Waits until all ranks have arrived.

    Args:
        group, async_op: see `all_reduce`, also for errors.
        device_ids: not supported.
        timeout: the time limit instead of the group's, also in seconds.
    """
    if device_ids is not None:
        raise NotImplementedError("barrier: device_ids is not supported: there are no devices")
    pg = find_for("barrier", group)
    if pg is None:
        return None
    call = Call(pg, "barrier")

    def steps() -> Steps[None]:
        yield Waiting(
            each for peer in call.others() for each in (call.send(peer), call.receive(peer))
        )

    work = call.start(steps(), (), seconds_or(timeout, pg._seconds))
    if async_op:
        return work
    work.wait()
    return None


def monitored_barrier(
    group: Any = None, timeout: timedelta | float | None = None, wait_all_ranks: bool = False
) -> None:
    """Waits until all ranks have arrived; the group's first rank names the missing ones.

    Args:
        group: the process group.
        timeout: the time limit instead of the group's, also in seconds.
        wait_all_ranks: name all missing ranks. False: only the first of them.

    Raises:
        DistBackendError: a rank did not arrive in time, or is gone.
    """
    pg = find_for("monitored_barrier", group)
    if pg is None:
        return
    seconds = seconds_or(timeout, pg._seconds)
    call = Call(pg, "monitored_barrier", event="barrier")
    heard: list[int] = []
    work = call.start(
        _other_rank_steps(call, heard) if call.rank else _first_rank_steps(call), (), seconds
    )
    try:
        work.wait()
    except DistBackendError as error:
        missing = [str(pg._ranks.index(peer)) for peer in work.peers()]
        ms = round(1000 * seconds)
        if call.rank == 0 and missing and seconds > 0:
            who = f"Ranks {', '.join(missing)}" if wait_all_ranks else f"Rank {missing[0]}"
            text = f"[Rank 0]: {who} failed to pass monitoredBarrier in {ms} ms"
        elif heard:
            text = (
                f"Rank {call.rank} successfully reached monitoredBarrier, but received errors "
                "while waiting for send/recv from rank 0. Please check rank 0 logs for faulty rank."
            )
        elif work.timed_out:
            text = f"Rank {call.rank} timed out in monitoredBarrier after {ms} ms."
        else:
            raise
        raise DistBackendError(f"{text}\n Original exception: \n{error}") from None


def _first_rank_steps(call: Call) -> Steps[None]:
    """Receives from each rank and answers at once; at the end tells all ranks that all have
    arrived.
    """
    answers = []

    def await_peer(peer: int) -> tuple[int, Poll]:
        there, came = call.receive(peer)

        def poll() -> bool:
            if not came():
                return False
            answers.append(call.send(peer))
            return True

        return there, poll

    yield Waiting([await_peer(peer) for peer in range(1, call.size)])
    yield Waiting(answers)
    yield Waiting([call.send(peer) for peer in range(1, call.size)])


def _other_rank_steps(call: Call, heard: list[int]) -> Steps[None]:
    """Tells the first rank, records its answer, and waits for the others."""
    yield Waiting([call.send(0), call.receive(0)])
    heard.append(0)
    yield Waiting([call.receive(0)])
