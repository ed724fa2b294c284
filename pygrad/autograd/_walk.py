"""The host's part of a backward: it runs custom functions where the engine stops for them.

A backward that reaches a custom node returns the next step: the engine's task, the node's address,
whether to record, and one gradient for each output. The function runs with nothing of the engine on
the stack; its results go to the engine with the next crossing. So backwards inside backwards nest
as deep as Python does, and Python's own depth starts anew in a fresh thread every few levels.
"""

from __future__ import annotations

import contextvars
import functools
import threading
from collections.abc import Callable
from typing import Any

from .. import _boundary
from .._boundary import callbacks, calls, long_calls
from .._boundary.modes import GRAD, get, here, here_now, put, switch
from .._table import functions
from . import graph

_C, _lock = functions.C, _boundary.lock
resume = long_calls.resumption(calls.ROWS["_backward_resume"])
LEVELS = 16
"""Backwards that nest on one thread."""


class _Level(threading.local):
    depth = 0


_level = _Level()


def walk(step: Any) -> Any:
    """Runs a backward to its end, from the engine's first answer to its last."""
    while type(step) is list:
        task = step[0]
        try:
            # No other thread while this one is in the engine: that thread would wait for it.
            if _level.depth < LEVELS or _boundary.lock.is_mine():
                given, handles, odd = _run(step)
            else:
                given, handles, odd = in_fresh_thread(functools.partial(_run, step))
        except BaseException:
            _C["_backward_abort"](task)
            _boundary.collect_pending(beside_an_error=True)
            raise
        if odd:
            step = _C["_backward_resume"](task, handles, odd)
            continue
        calls.retain(handles)  # for the next crossing, which takes the references over
        del given  # so that leaves may take gradients that nobody else refers to
        step = resume(-task, handles)
    return step


def in_fresh_thread(function: Callable[[], Any]) -> Any:
    """Runs a function on a stack of its own, in this thread's context; returns its result."""
    context, modes = contextvars.copy_context(), get()
    outcome: list[tuple[Any, BaseException | None]] = []

    def run() -> None:
        put(modes)
        try:
            outcome.append((context.run(function), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=run, name="pygrad-backward")
    thread.start()
    thread.join()
    result, error = outcome[0]
    if error is not None:
        raise error
    return result


def _run(step: list[int]) -> Any:
    """The results of the node's function, encoded for the engine."""
    grads = callbacks.lend(step[3:])
    node: Any = graph._nodes[step[1]]()
    level = _level
    depth = level.depth
    ident, word, was = here()
    try:
        switch(GRAD, step[2])
        level.depth = depth + 1
        given = node.apply(*grads)
    finally:  # without a call: see `here`
        level.depth = depth
        if _lock.ident == ident:
            here_now[0] = was
        else:
            word[0] = was
    results = given if isinstance(given, tuple) else (given,)
    del given
    callbacks.take_back(grads, results, _boundary.released.append)
    return results, *callbacks.encode(results)


def _run_nested(ident: int, handles: list[int], _: int) -> list[int]:
    """Runs a custom function inside another node, when the engine calls for it."""
    grads = callbacks.lend(handles)
    given = callbacks.get_object(ident).apply(*grads)
    results = given if isinstance(given, tuple) else (given,)
    del given
    callbacks.take_back(grads, results)
    return callbacks.answer(results)


callbacks.runners[_boundary.FUNCTION] = _run_nested
