"""The engine's lock: one thread at a time, from writing the frame to reading the result.

`lock` is made of plain fields, because an exception of a signal's handler may come between any two
lines: see `_Lock`.

Threads that wait stand in a queue. A thread's short calls are quick while it has the turn: it then
takes the engine without a look at the queue. So whoever has to wait takes the turn away; the next
call of its owner is a slow one, which finds the queue, wakes the first in it and stands behind. A
thread that waits gets the engine after one call of each thread before it. While a callback runs
within a call, its thread keeps the engine.
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

from .. import _errors
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
        free: None while a frame is written or a call runs. Else `key`: the owner's calls need not
            ask; or False: they do.
        key: an object that each new owner makes, so that a thread sees whether it has been the
            owner all the time since it looked.
        held: what keeps other threads out beyond a short call: a frame of `holding`, or the
            generator that runs a callback. None: nothing does.
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
        """Whether this thread is inside of the engine: in a callback, say."""
        return self.held is not None and self.user == get_ident()


class _Waiter:
    """A thread's place in the queue.

    Attributes:
        ident: the thread's; a signal's handler that comes while it waits may wait too.
        alarm: a lock that is released to wake the thread.
        looks: how often it looked and had to go on waiting.
        passed: how often of these the engine was free, for somebody before it.
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
"""Whether this thread owns the engine: the fastest way to ask."""
_turn.acquire()


def _turn_to(ident: int, turn: Any = _turn) -> None:
    """Gives the turn to a thread that has the engine, or, as anybody may, to nobody: 0.

    Another thread, or a signal's handler, that comes between the two calls may give the turn too;
    acquiring what it has left acquired would wait for ever.
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
"""Called when another thread than before has taken the engine; if interrupted, once more."""
before_use: Final[list[Callable[[], None]]] = []
"""What is to be called before the engine is used again; each takes itself away when it is done."""

_Before = tuple[Any, Any, tuple[bytes, bytes] | None]
"""What `holding` puts back: `held`, `free`, and what this thread was writing, if a finalizer or a
signal's handler has come in the middle of that.
"""
_IN_USE: Final = object()
_FORK: Final = object()
_SOON: Final = 5e-5
_LATER: Final = 1e-3
"""Seconds between two looks of a thread that waits, at first and at most, if nobody wakes it."""
_PATIENCE: Final = 100
"""How often a thread looks on while the engine is free for one before it, which may have ended."""


def holding(run: Callable[..., Any], *args: Any, wait: bool = True) -> Any:
    """Calls a function with the engine taken for this thread, when whoever uses it is done.

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
    """Takes the engine for this thread and whatever the token is of; None: another has it."""
    if host.unusable is not None:
        raise trapped()
    me, waiter = get_ident(), None
    try:
        while True:
            if lock.held is None and lock.free is not None:
                if not lock.waiting or lock.waiting[0].ident == me:
                    held, free = None, lock.free
                    lock.user, lock.held, lock.free = me, token, None
                    break
            elif lock.user == me:
                if _left_behind(lock.held):
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
                pass  # somebody lost patience, or this thread was not there yet
    saved = None
    if free is None:
        saved = bytes(slots), bytes(memory[frame:FRAME_END])
        memory[N_RELEASE] = 0
    if lock.ident != me:
        _users[me] = weakref.ref(threading.current_thread())
        lock.key = object()
        on_new_owner()
    if not mine():
        _turn_to(me)
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
        _turn_to(0)
    waiter.looks += 1
    if lock.held is None and lock.free is not None:
        waiter.passed += 1
        if waiter.passed > _PATIENCE:
            waiter.passed = 0
            lock.waiting.clear()  # threads that still wait queue again
        _wake_first()
    elif waiter.looks > 8:
        _left_behind(lock.held)
    waiter.alarm.acquire(timeout=min(_LATER, waiter.looks * _SOON))


def _wake_first() -> None:
    try:
        lock.waiting[0].wake()
    except IndexError:
        pass  # it did not wait any longer


def let_pass() -> None:
    """Takes the turn from its owner, so that the owner's next call finds the queue."""
    _turn_to(0)


def _passing(call: Callable[..., None]) -> Callable[..., None]:
    """A call during which other threads run; waiting threads get the engine next."""

    def call_and_pass(*places: Any) -> None:
        try:
            call(*places)
        finally:
            if lock.waiting:
                let_pass()

    return call_and_pass


call_long, call2_long = _passing(host.call_long), _passing(host.call2_long)


def _left_behind(token: Any) -> bool:
    """Frees the engine if it is held for nothing that runs: an exception came before the end.

    Returns: whether it was.
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
    """Whether of the threads that run one alone has called the engine."""
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
    """Waits for other threads, which a child does not have: its engine must not be in use."""
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


def trapped() -> _errors.EngineError:
    """The error for a call that the engine did not survive, then and ever after."""
    if host.unusable is None:
        host.unusable = host.reason_of_trap()
    _turn_to(0)  # every call asks `_take`, which refuses
    return _errors.EngineError(f"pygrad: the engine is unusable: {host.unusable}")
