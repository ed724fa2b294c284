"""The scheduler of collectives. Each collective is a generator that yields the messages it waits
for; all of them advance whenever one is waited for.

MPI moves data only during calls, so a process that computes for long delays the others. `poll`
makes a call between two pieces of work.

A thread that waits advances the collectives of all threads. A thread that polls messages holds the
transports' lock and does not use the engine. A thread that resumes a generator first takes the
engine, so it never waits for a thread that waits for it. Futures are settled with neither held.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final, TypeVar

from .. import _boundary
from .._tensor.tensor import Tensor
from ..autograd.profiler import begin_async
from ..futures import Future
from ._errors import DistBackendError
from ._transport import LEFT, Channel, Poll, lock

T = TypeVar("T")


class Waiting:
    """Messages that a collective waits for, each with its peer's rank."""

    __slots__ = ("_left",)

    def __init__(self, polls: Iterable[tuple[int, Poll]]) -> None:
        self._left = list(polls)

    def is_done(self) -> bool:
        """Whether all messages have completed. Polls each one that has not."""
        if self._left:
            self._left = [each for each in self._left if not each[1]()]
        return not self._left

    def peers(self) -> list[int]:
        """The ranks of the incomplete messages."""
        return sorted({peer for peer, _ in list(self._left)})


Steps = Generator[Waiting, None, T]
"""The generator of a collective: resumed when the yielded messages are complete; returns its
result.
"""

_running: Final[list[Work]] = []
_ended: Final[deque[Work]] = deque()
"""Collectives that have ended and have not yet completed their futures."""
_YIELDS: Final = 2000
_REST: Final = 0.0002
_LOOK: Final = 0.05
_GRACE: Final = 1.0
"""Polls before a waiting process sleeps between polls; seconds of that sleep; seconds between
checks for lost ranks; seconds in which messages of a rank that left may still arrive.
"""


class Work:
    """A started collective.

    Args:
        steps: its generator.
        says: its description, for errors.
        channel: the channel of its messages.
        timeout: the time limit in seconds.
        result: the tensors it fills.
        event: the event of a profile, without the backend's name, and its inputs.

    Raises:
        DistBackendError: an earlier collective of the group failed.
    """

    def __init__(
        self,
        steps: Steps[Any],
        says: str,
        channel: Channel,
        timeout: float,
        result: list[Tensor],
        event: tuple[str, Iterable[Tensor]],
    ) -> None:
        self._steps = steps
        self._says = says
        self._channel = channel
        self._timeout = timeout
        self._result = result
        self._waits: Waiting | None = None
        self._resuming = False
        self._error: BaseException | None = None
        self._done = self._told = False
        self._futures: list[Future[Any]] = []
        self._alone = 0.0
        self._start = time.monotonic()
        self._returned: Any = None
        self.timed_out = False
        if broken := channel.failure_reason():
            raise DistBackendError(f"{says}: the group is broken: {broken}")
        self._end_of_event = begin_async(f"{channel.backend}:{event[0]}", event[1])
        with lock:
            _running.append(self)
        self._advance()

    def _advance(self) -> None:
        """Advances as far as messages allow, unless another thread is doing so."""
        try:
            if self._may_resume():
                _call_with_engine(self._resume)
        except BaseException as error:
            _call_with_engine(self._give_up, error)
            if not isinstance(error, Exception):
                raise
        _tell_futures()

    def _may_resume(self) -> bool:
        with lock:
            if self._done or self._resuming:
                return False
            return self._waits is None or self._waits.is_done()

    def _claim(self) -> bool:
        """Whether this thread resumes the generator; another may have done so since the check."""
        with lock:
            if not self._may_resume():
                return False
            self._resuming = True
            return True

    def _resume(self) -> None:
        while self._claim():
            try:
                self._waits = next(self._steps)
            except StopIteration as end:
                self._returned = end.value
                self._end(None)
            finally:
                self._resuming = False
        if self._done:  # another thread has given it up
            self._steps.close()

    def _give_up(self, error: BaseException) -> None:
        """Ends all collectives of the group with an error, which is sent to the other ranks."""
        self._channel.fail(str(error) or type(error).__name__)
        for work in [w for w in list(_running) if w._channel is self._channel]:
            work._end(error)

    def _end(self, error: BaseException | None) -> None:
        with lock:
            if self._done:
                return
            self._done, self._error = True, error
            _running.remove(self)
            resumed = self._resuming
        if not resumed:
            self._steps.close()
        self._end_of_event()
        _ended.append(self)

    def _tell(self) -> None:
        with lock:
            self._told, futures = True, self._futures
            self._futures = []
        for future in futures:
            self._settle(future)

    def _settle(self, future: Future[Any]) -> None:
        if self._error is None:
            future.set_result(self._result)
        else:
            future.set_exception(self._error)

    def _look(self, now: float) -> None:
        """Gives up if a rank has given up or failed, or if an awaited rank is gone."""
        gone = self._channel.departed_peers()
        lost = {peer: why for peer, why in gone.items() if why != LEFT}
        left = [peer for peer in self.peers() if peer in gone]
        if left and not lost:  # its earlier messages may still arrive
            self._alone = self._alone or now
            if now - self._alone > _GRACE:
                lost = {left[0]: LEFT}
        if lost:
            peer, why = next(iter(lost.items()))
            self._stop(DistBackendError(f"{self._says}: rank {peer} {why}"))

    def _stop(self, error: BaseException) -> None:
        _call_with_engine(self._give_up, error)
        _tell_futures()

    def peers(self) -> list[int]:
        """The world ranks that the collective waits for, or waited for when it failed."""
        return self._waits.peers() if self._waits is not None else []

    def is_completed(self) -> bool:
        """Whether it has ended, with or without an error."""
        poll()
        return self._done

    def is_success(self) -> bool:
        """Whether it has ended without an error."""
        return self._done and self._error is None

    def exception(self) -> BaseException | None:
        """The error, or None."""
        return self._error

    def result(self) -> list[Tensor]:
        """The tensors that the work has filled."""
        return self._result

    def source_rank(self) -> int:
        """The rank from which this receive got its message.

        Raises:
            RuntimeError: the work is not a receive, or has not ended.
        """
        if not isinstance(self._returned, int):
            raise RuntimeError(
                "sourceRank() may only be called on work objects that correspond to "
                "a recv or recv-from-any call."
            )
        return self._returned

    _source_rank = source_rank

    def get_future(self) -> Future[Any]:
        """A future of the tensors that the work fills. A wait or `poll` completes it."""
        future: Future[Any] = _WorkFuture(self)
        with lock:
            told = self._told
            if not told:
                self._futures.append(future)
        if told:
            self._settle(future)
        return future

    def synchronize(self) -> None:
        """Same as `wait`."""
        self.wait()

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until the work has ended; returns True.

        Args:
            timeout: the time limit, instead of the group's.

        Raises:
            DistBackendError: a rank is gone, disagrees or exceeded the time limit.
        """
        seconds = self._timeout if not timeout else timeout.total_seconds()
        start = self._start if not timeout else time.monotonic()
        polls, look = 0, time.monotonic() + _LOOK
        try:
            while not self._done:
                poll()
                polls += 1
                if polls < _YIELDS:
                    os.sched_yield()
                else:
                    time.sleep(_REST)
                now = time.monotonic()
                if now > look and not self._done:
                    look = now + _LOOK
                    self._look(now)
                if now - start > seconds and not self._done:
                    self.timed_out = True
                    self._stop(self._late(seconds))
        except KeyboardInterrupt:
            self._stop(DistBackendError("KeyboardInterrupt"))
            raise
        if self._error is not None:
            raise self._error
        return True

    def _late(self, seconds: float) -> DistBackendError:
        who = ", ".join(map(str, self.peers())) or "any"
        ms = round(1000 * seconds)
        return DistBackendError(f"{self._says}: Timed out waiting {ms}ms for rank {who}")


class _WorkFuture(Future[Any]):
    """A future that advances the work when waited for."""

    def __init__(self, work: Work) -> None:
        super().__init__()
        self._work = work

    def _advance(self) -> None:
        if not self._work._done:
            with suppress(Exception):  # the future has it
                self._work.wait()

    def done(self) -> bool:
        """Whether the result is available."""
        poll()
        return super().done()


def _call_with_engine(run: Callable[..., None], *args: Any) -> None:
    """Calls a function with the engine taken, if there are several threads."""
    if threading.active_count() == 1:
        run(*args)
    else:
        _boundary.call_with_lock(run, *args)


def _tell_futures() -> None:
    while _ended:
        with suppress(IndexError):  # another thread took the last one
            _ended.popleft()._tell()


def poll() -> None:
    """Advances all collectives that have been started."""
    for work in list(_running):
        work._advance()
