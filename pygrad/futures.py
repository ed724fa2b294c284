"""torch.futures: results that are set later, and callbacks on them.

Example:
    >>> import pygrad as torch
    >>> future = torch.futures.Future()
    >>> doubled = future.then(lambda done: done.value() * 2)
    >>> future.set_result(3)
    >>> doubled.wait()
    6
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]

T = TypeVar("T")
S = TypeVar("S")


class Future(Generic[T]):
    """A result that one part of a program sets and others wait for.

    Args:
        devices: no effect: results of the CPU need no waiting for a device.

    Example:
        >>> import pygrad
        >>> future = pygrad.futures.Future()
        >>> future.done()
        False
        >>> future.set_result("done")
        >>> future.value()
        'done'
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._changed = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future[T]], Any]] = []
        self._follows: list[Future[Any]] = []

    def done(self) -> bool:
        """Whether there is a result, or an error."""
        return self._done

    def wait(self) -> T:
        """Waits for the result and returns it.

        Raises:
            The error that was set instead.
        """
        if not self._done:
            self._advance()
        with self._changed:
            self._changed.wait_for(lambda: self._done)
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[no-any-return]

    def value(self) -> T:
        """The result, which must be set.

        Raises:
            RuntimeError: it is not.
            The error that was set instead.
        """
        if not self._done:
            raise RuntimeError("Future has not been completed")
        return self.wait()

    def then(self, callback: Callable[[Future[T]], S]) -> Future[S]:
        """A future of the callback's result for this one, called when it is done: at once, if it
        is. An exception of the callback becomes the new future's RuntimeError.
        """
        following: Future[S] = Future()
        following._follows.append(self)

        def run(future: Future[T]) -> None:
            try:
                following.set_result(callback(future))
            except Exception as error:
                text = f"{type(error).__name__}: {error}"
                following.set_exception(
                    RuntimeError(f"Got the following error when running the callback: {text}")
                )

        self._call_when_done(run)
        return following

    def add_done_callback(self, callback: Callable[[Future[T]], None]) -> None:
        """Calls the function with this future when it is done: at once, if it is. Its exception is
        reported and dropped.
        """

        def run(future: Future[T]) -> None:
            try:
                callback(future)
            except Exception as error:
                print(f"[ERROR] Got the following error when running the callback: {error}")

        self._call_when_done(run)

    def _advance(self) -> None:
        """Does the work that must be done in this thread before there can be a result."""
        for each in self._follows:
            each._advance()

    def _call_when_done(self, run: Callable[[Future[T]], Any]) -> None:
        with self._changed:
            if not self._done:
                self._callbacks.append(run)
                return
        run(self)

    def set_result(self, result: T) -> None:
        """Sets the result, and calls the waiting callbacks.

        Raises:
            RuntimeError: it is set already.
        """
        self._finish(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error instead of a result.

        Raises:
            AssertionError: it is no exception.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._finish(None, result)

    def _finish(self, value: Any, error: BaseException | None) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError(
                    "Attempting to mark a completed Future as complete again. Note that a Future "
                    "can only be marked completed once."
                )
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._follows = []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future[Any]]) -> Future[list[Future[Any]]]:
    """A future that is done when all of these are; its result is their list.

    Example:
        >>> import pygrad
        >>> both = [pygrad.futures.Future(), pygrad.futures.Future()]
        >>> all_of_them = pygrad.futures.collect_all(both)
        >>> for number, each in enumerate(both):
        ...     each.set_result(number)
        >>> [each.value() for each in all_of_them.wait()]
        [0, 1]
    """
    together: Future[list[Future[Any]]] = Future()
    together._follows += futures
    lock = threading.Lock()
    left = len(futures)
    if not left:
        together.set_result(futures)

    def one_done(_: Future[Any]) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            together.set_result(futures)

    for future in futures:
        future._call_when_done(one_done)
    return together


def wait_all(futures: list[Future[Any]]) -> list[Any]:
    """Waits for all results and returns them; raises the first error."""
    return [future.wait() for future in collect_all(futures).wait()]
