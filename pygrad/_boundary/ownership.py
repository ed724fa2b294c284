"""The engine's lock: one thread at a time, from writing the frame to reading the result.

`lock` is made of plain fields, because an exception of a signal's handler may come between any two
lines: see `_Lock`.

Waiting threads form a queue. A thread's short calls are quick while it has the turn: it then takes
the engine without a look at the queue. A thread that has to wait therefore takes the turn away; the
owner's next call is a slow one, which finds the queue, wakes its first thread and joins the end. A
waiting thread gets the engine after one call of each thread before it. While a callback runs within
a call, its thread keeps the engine.
"""

from __future__ import annotations

import sys
import threading
import weakref
from _thread import allocate_lock, get_ident
from collections import deque
from collections.abc import Callable
from types import FrameType
from typing import Any, Final

from .._ground import errors
from . import host, process
from .frame import FRAME_END, N_RELEASE
from .host import frame, memory, slots


class _Lock:
    """Admits one thread at a time to the engine, and that thread again within its own calls.

    CPython lets other threads and the handlers of signals run after calls, at jumps back and where
    a function begins. A line that reads and writes these fields and calls nothing is therefore
    atomic. A handler may raise, so no state depends on a second line: `held` names the object that
    holds the lock, and waiters see when that object no longer does.

    Attributes:
        free: None while a frame is written or a call runs. Else `key`, with which the owner's
            calls are quick; or False, with which they are slow.
        key: an object that each new owner makes, so that a thread sees whether it has been the
            owner all the time since it looked.
        held: the object that keeps other threads out beyond a short call: a frame of
            `call_with_lock`, or the generator that runs a callback; else None.
        user: the thread that holds the lock, or held it last.
        ident: the thread whose modes are in the engine's frame.
        turn: the thread whose short calls are quick, 0 for none; None while that changes.
        waiting: the waiting threads; the first gets the engine next.
    """

    __slots__ = ("free", "held", "ident", "key", "turn", "user", "waiting")

    def __init__(self) -> None:
        self.ident = self.user = get_ident()
        self.turn: int | None = self.ident
        self.free: Any = False
        self.key: Any = object()
        self.held: Any = None
        self.waiting: deque[_Waiter] = deque()

    def __repr__(self) -> str:
        count = int(self.free is None) + (self.held is not None)
        return f"<pygrad engine lock user={self.user} count={count} waiting={len(self.waiting)}>"

    def is_mine(self) -> bool:
        """Whether this thread is inside the engine, for example in a callback."""
        return self.held is not None and self.user == get_ident()


class _Waiter:
    """A thread's place in the queue.

    Attributes:
        ident: the thread's ident; a signal handler of a waiting thread may wait too.
        alarm: a lock that is released to wake the thread.
        looks: the number of looks after which it went on waiting.
        passed: the number of these at which the engine was free, for a thread before it.
    """

    __slots__ = ("alarm", "ident", "looks", "passed")

    def __init__(self, ident: int) -> None:
        self.ident = ident
        self.alarm = allocate_lock()
        self.alarm.acquire()
        self.looks = self.passed = 0

    def wake(self) -> None:
        if self.alarm.locked():
            try:
                self.alarm.release()
            except RuntimeError:
                pass  # it has just been woken


lock: Final = _Lock()
_turn: Final = threading.RLock()
mine: Final[Callable[[], bool]] = _turn._is_owned  # type: ignore[attr-defined]
"""Whether this thread owns the engine: the fastest test."""
_turn.acquire()


def _give_turn(ident: int, turn: Any = _turn) -> None:
    """Gives the turn to a thread that has the engine; or, as any thread may, to nobody: 0.

    Another thread, or a signal handler, that runs between the two calls may give the turn too;
    acquiring a lock that it has left acquired would wait forever.
    """
    lock.turn = None
    try:
        turn._release_save()
    except RuntimeError:
        pass  # an exception came between the two
    if lock.turn is None:
        lock.turn = ident
        turn._acquire_restore((1, ident))


on_new_owner: Callable[[], None] = lambda: None  # noqa: E731
"""Called when a different thread has taken the engine; called again if interrupted."""
before_use: Final[list[Callable[[], None]]] = []
"""Functions to call before the engine is used again; each removes itself when it is done."""

_Before = tuple[Any, Any, tuple[bytes, bytes] | None]
"""The state that `call_with_lock` restores: `held`, `free`, and the frame that this thread was
writing if a finalizer or a signal handler interrupted it.
"""
_IN_USE: Final = object()
_FORK: Final = object()
_SOON: Final = 5e-5
_LATER: Final = 1e-3
"""Seconds between two looks of a waiting thread that nobody wakes, at first and at most."""
_PATIENCE: Final = 100
"""The number of looks for which a thread tolerates a free engine with another thread before it in
the queue, which may have ended.
"""


def call_with_lock(run: Callable[..., Any], *args: Any, wait: bool = True) -> Any:
    """Calls a function with the engine taken for this thread, once the present user is done.

    Args:
        wait: False: if another thread uses the engine, return `_IN_USE` at once.
    """
    if not lock.waiting and (key := lock.free) and mine() and lock.free is key:
        lock.free = None
        try:
            return run(*args)
        finally:
            lock.free = key
    before = _take(sys._getframe(), wait)
    if before is None:
        return _IN_USE
    try:
        return run(*args)
    finally:  # nothing is called before all is put back, so that no handler of a signal runs
        held, free, saved = before
        if saved is not None:
            slots[:] = saved[0]
            memory[frame:FRAME_END] = saved[1]
        lock.free = None if free is None else lock.key
        lock.held = held
        if lock.waiting:
            _wake_first()


def _give_back(before: _Before) -> None:
    lock.free = None if before[1] is None else lock.key
    lock.held = before[0]


def _take(token: Any, wait: bool = True) -> _Before | None:
    """Takes the engine for this thread under a token; None: another thread has it."""
    if host.unusable is not None:
        raise trap_error()
    me, waiter = get_ident(), None
    try:
        while True:
            if lock.held is None and lock.free is not None:
                if not lock.waiting or lock.waiting[0].ident == me:
                    held, free = None, lock.free
                    lock.user, lock.held, lock.free = me, token, None
                    break
            elif lock.user == me:
                if _free_if_abandoned(lock.held):
                    continue
                held, free = lock.held, lock.free
                lock.held, lock.free = token, None
                break
            if not wait:
                return None
            if waiter is None:
                waiter = _Waiter(me)
            _wait(waiter)
    finally:
        if waiter is not None:
            try:
                lock.waiting.remove(waiter)
            except ValueError:
                pass  # the queue was cleared, or this thread was not in it yet
    saved = None
    if free is None:
        saved = bytes(slots), bytes(memory[frame:FRAME_END])
        memory[N_RELEASE] = 0
    if lock.ident != me:
        _users[me] = weakref.ref(threading.current_thread())
        lock.key = object()
        on_new_owner()
    if not mine():
        _give_turn(me)
    while before_use:
        before_use[-1]()
    return held, free, saved


def _wait(waiter: _Waiter) -> None:
    """Waits for the engine, until woken or for a short time, at the end of the queue if not yet in
    it.
    """
    if waiter not in lock.waiting:
        lock.waiting.append(waiter)
    if lock.turn:
        _give_turn(0)
    waiter.looks += 1
    if lock.held is None and lock.free is not None:
        waiter.passed += 1
        if waiter.passed > _PATIENCE:
            waiter.passed = 0
            lock.waiting.clear()  # threads that still wait queue again
        _wake_first()
    elif waiter.looks > 8:
        _free_if_abandoned(lock.held)
    waiter.alarm.acquire(timeout=min(_LATER, waiter.looks * _SOON))


def _wake_first() -> None:
    try:
        lock.waiting[0].wake()
    except IndexError:
        pass  # it did not wait any longer


def let_pass() -> None:
    """Takes the turn from its owner, so that the owner's next call finds the queue."""
    _give_turn(0)


def _yielding_call(call: Callable[..., None]) -> Callable[..., None]:
    """A call during which other threads run; waiting threads get the engine next."""

    def call_and_pass(*places: Any) -> None:
        try:
            call(*places)
        finally:
            if lock.waiting:
                let_pass()

    return call_and_pass


call_long, call2_long = _yielding_call(host.call_long), _yielding_call(host.call2_long)


def _free_if_abandoned(token: Any) -> bool:
    """Frees the engine if nothing running holds it any more: an exception prevented the release.

    Returns: whether the engine was freed.
    """
    if token is None:
        user = lock.user
        if user in sys._current_frames() or lock.user != user:
            return False
        lock.free = False  # a thread that ended in the middle of a short call
        return True
    if isinstance(token, FrameType):
        if any(_is_on_stack(token, frame) for frame in sys._current_frames().values()):
            return False
        if lock.held is token:
            lock.held, lock.free = None, False
        return True
    if token is _FORK or token.gi_running:
        return False
    if lock.held is token and not token.gi_running:
        lock.held = None
    return True


def _is_on_stack(wanted: FrameType, frame: FrameType | None) -> bool:
    while frame is not None:
        if frame is wanted:
            return True
        frame = frame.f_back
    return False


_users: Final = {get_ident(): weakref.ref(threading.current_thread())}
"""The threads that have called the engine, by their numbers, which others get when they end."""


def used_by_one() -> bool:
    """Whether only one of the running threads has called the engine."""
    if len(_users) == 1:
        return True
    frames = sys._current_frames()
    return sum(ident in frames and _is_user(ident) for ident in list(_users)) < 2


def _is_user(ident: int) -> bool:
    thread = _users[ident]()
    return ident == lock.ident or (thread is not None and thread.is_alive())


def farewell(ident: int, lock: _Lock = lock) -> None:
    """Notes that a thread has ended; the next thread may get its ident."""
    if lock.ident == ident:
        lock.ident = 0
        if lock.free is not None:
            lock.free = False


_before_fork_held: Final[list[_Before]] = []


def _before_fork() -> None:
    """Waits until no thread uses the engine: the child process does not have the other threads."""
    if host.unusable is None:
        before = _take(_FORK)
        assert before is not None
        _before_fork_held.append(before)


def _after_fork() -> None:
    if _before_fork_held:
        _give_back(_before_fork_held.pop())


def _after_fork_in_child() -> None:
    lock.waiting.clear()
    _after_fork()


process.hear(process.before_fork, _before_fork)
process.hear(process.after_fork, _after_fork)
process.hear(process.after_fork_in_child, _after_fork_in_child)


def trap_error() -> errors.EngineError:
    """The error for the call that broke the engine, and for all later calls."""
    if host.unusable is None:
        host.unusable = host.reason_of_trap()
    _give_turn(0)  # makes every call go through `_take`, which refuses
    return errors.EngineError(f"pygrad: the engine is unusable: {host.unusable}")
