"""Entry into and exit from callbacks of the engine: the running thread, and the error that a
callback leaves.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any, Final

from .._ground import errors
from . import limits
from .constants import CLOCK, HOOK, POLL
from .frame import (
    HOST_CAP,
    HOST_FIRST,
    HOST_ID,
    HOST_IN,
    HOST_KIND,
    HOST_N,
    HOST_N_OUT,
    HOST_OUT,
    MESSAGE,
)
from .host import idle, ints, text_at, unsigned, words
from .ownership import let_pass, lock
from .table import status_names


def _plain_clock(event: int) -> int:
    return time.perf_counter_ns()


clock: Callable[[int], int] = _plain_clock
"""Returns nanoseconds, for the profiler; gets the number of an event that begins, or -1."""

HostCallback = Callable[[int, int, list[int]], list[int]]
"""(kind, callback id, handles) -> handles; may raise."""

on_host_call: HostCallback | None = None
on_hook: Callable[[int, int], int] | None = None
"""The function for a hook on one gradient, the most frequent callback: (callback id, handle) ->
handle or 0.
"""
on_poll: Callable[[], None] = limits.check
"""Runs every few milliseconds within a long call; may raise, which ends the call."""
_host_error: BaseException | None = None


def _host_calls() -> Generator[int, Any, None]:
    """Runs a callback for the engine each time it is resumed; the engine's frame names it. An
    exception waits in `_host_error` until the crossing ends, and ends the generator.

    The engine's parameters are in the frame too; reading them there takes less time than four
    arguments take in ctypes.

    This is a generator and no function, because a function cannot catch an exception that a signal
    handler, for example of Ctrl-C, raises before the function's first line; and there the handlers
    run of signals that came while the engine was busy. A generator is resumed where it stopped,
    within `try`. Outside of the `try`, and between putting itself among the idle and waiting, it
    calls nothing and does not jump back, so no handler runs. An exception that escaped anyway would
    end in `_host_callback`.
    """
    global _host_error
    me = yield 0
    itself, held, waits = (me,), me, True
    try:
        while True:
            held, waits = me, True
            idle[:0] = itself
            yield 0
            waits = False
            held, lock.held = lock.held, me
            if len(idle) < FEW_IDLE:
                _make_host()
            kind, ident, n_out = ints[HOST_KIND], ints[HOST_ID], 0
            if kind == HOOK:
                result = on_hook(ident, unsigned[HOST_FIRST])  # type: ignore[misc]
                if result:
                    words[words[HOST_OUT] >> 3] = result
                    n_out = 1
            elif kind == CLOCK:
                words[words[HOST_OUT] >> 3] = clock(ident)
            elif kind == POLL:
                on_poll()
            else:
                at = words[HOST_IN] >> 3
                handles = words[at : at + ints[HOST_N]].tolist()
                results = on_host_call(kind, ident, handles)  # type: ignore[misc]
                if results:
                    at = words[HOST_OUT] >> 3
                    for handle in results[: ints[HOST_CAP]]:
                        words[at] = handle
                        at += 1
                    n_out = len(results)
            ints[HOST_N_OUT] = n_out
            if lock.waiting:
                let_pass()
            lock.held = held
    except BaseException as error:
        if waits and error.__class__ is GeneratorExit:
            return  # the generator is closed
        if held is not me:
            lock.held = held
        lock.free = None
        _host_error = error
        ints[HOST_N_OUT] = -1
        # Not this frame: users' own come first.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next


FEW_IDLE: Final = 4
"""The number of waiting generators, in case signal handlers call the engine, or raise, before more
are made.
"""


def _make_host() -> None:
    """Adds a generator to the pool of waiting ones."""
    made = _host_calls()
    next(made)
    made.send(made)


for _ in range(FEW_IDLE):
    _make_host()


def failure(code: int) -> BaseException:
    """The exception for a negative result of pg_call; the engine is taken."""
    global _host_error
    name = status_names[-code]
    if name == "host":
        error, _host_error = _host_error, None
        while len(idle) < FEW_IDLE:  # the error ended one generator
            _make_host()
        return error if error is not None else RuntimeError("pygrad: a callback was interrupted")
    return errors.BY_NAME[name](text_at(unsigned[MESSAGE]))
