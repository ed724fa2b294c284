"""Context managers that also work as decorators, as PyTorch's modes do."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any


def _resume(generator: Any, value: Any, error: BaseException | None) -> Any:
    return generator.send(value) if error is None else generator.throw(error)


def _wrap_generator(ctx_factory: Callable[[], Any], func: Callable[..., Any]) -> Callable[..., Any]:
    """Enters the scope for each step of the generator, not while its consumer runs."""

    @functools.wraps(func)
    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        generator = func(*args, **kwargs)
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                with ctx_factory():
                    got = _resume(generator, value, error)
            except StopIteration as stop:
                return stop.value
            value = error = None
            try:
                value = yield got
            except GeneratorExit:
                with ctx_factory():
                    generator.close()
                raise
            except BaseException as raised:
                error = raised

    return decorate_context


def context_decorator(ctx: Any, func: Callable[..., Any]) -> Callable[..., Any]:
    """Runs `func` inside a context manager: the given one, or a new one from a factory at each
    call.

    Args:
        ctx: a reusable context manager, or a callable that makes one.
        func: a function or generator function; for a generator, each step runs inside.

    Raises:
        AssertionError: `ctx` is both a context manager and callable.
        RuntimeError: `func` is a class.
    """
    if callable(ctx) and hasattr(ctx, "__enter__"):
        raise AssertionError(
            f"Passed in {ctx} is both callable and also a valid context manager (has __enter__), "
            "making it ambiguous which interface to use.  If you intended to pass a context "
            "manager factory, rewrite your call as context_decorator(lambda: ctx()); if you "
            "intended to pass a context manager directly, rewrite your call as "
            "context_decorator(lambda: ctx)"
        )
    if inspect.isclass(func):
        raise RuntimeError(
            "Cannot decorate classes; it is ambiguous whether or not only the constructor or all "
            "methods should have the context manager applied; additionally, decorating a class at "
            "definition-site will prevent use of the identifier as a conventional type.  To "
            "specify which methods to decorate, decorate each of them individually."
        )
    factory = ctx if callable(ctx) else lambda: ctx
    if inspect.isgeneratorfunction(func):
        return _wrap_generator(factory, func)

    @functools.wraps(func)
    def decorate_context(*args: Any, **kwargs: Any) -> Any:
        with factory():
            return func(*args, **kwargs)

    return decorate_context


class _DecoratorContextManager:
    """A context manager whose instances decorate functions."""

    def __call__(self, orig_func: Callable[..., Any]) -> Callable[..., Any]:
        if not inspect.isclass(orig_func):
            return context_decorator(self.clone, orig_func)
        warnings.warn(
            "Decorating classes is deprecated and will be disabled in future versions. You should "
            "only decorate functions or methods. To preserve the current behavior of class "
            "decoration, you can directly decorate the `__init__` method and nothing else.",
            FutureWarning,
            stacklevel=2,
        )
        return context_decorator(self.clone, lambda *args, **kwargs: orig_func(*args, **kwargs))

    def __enter__(self) -> None:
        raise NotImplementedError

    def __exit__(self, exc_type: Any, exc_value: Any, traceback: Any) -> None:
        raise NotImplementedError

    def clone(self) -> Any:
        """A new instance with the same settings, for each call of a decorated function."""
        return type(self)()


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """A context manager that also decorates without parentheses: ``@no_grad``."""

    def __new__(cls, orig_func: Callable[..., Any] | None = None) -> Any:
        return super().__new__(cls) if orig_func is None else cls()(orig_func)
