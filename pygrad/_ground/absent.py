"""Functions of absent devices: each returns a fixed answer or raises one error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import wanted

Function = Callable[..., Any]


def _name_function(function: Function, name: str, module: str, doc: str) -> tuple[str, Function]:
    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = module, doc
    return name, function


def answers(module: str, table: dict[str, Any]) -> dict[str, Function]:
    """A function for each name that returns a fixed value; a type as the value is called.

    Example:
        >>> answers("pygrad.cuda", {"device_count": 0})["device_count"]()
        0
    """

    def one(name: str, value: Any) -> tuple[str, Function]:
        made: Callable[[], Any] = value if isinstance(value, type) else lambda: value

        def function(*_: Any, **__: Any) -> Any:
            return made()

        return _name_function(function, name, module, f"Always {made()!r}.")

    return dict(one(name, value) for name, value in table.items())


def refusals(module: str, names: str, error: type[Exception], message: str) -> dict[str, Function]:
    """A function for each name that raises; {} in the message stands for the name.

    A name with a capital letter becomes a class, which cannot be instantiated.

    Example:
        >>> refusals("pygrad.cuda", "init", AssertionError, "no CUDA")["init"]()
        Traceback (most recent call last):
        AssertionError: no CUDA
    """

    def one(name: str) -> tuple[str, Function]:
        text = message.replace("{}", name)
        place = module.partition(".")[2].removeprefix("torch.")
        full = f"torch.{place}.{name}"

        def function(*_: Any, **__: Any) -> Any:
            wanted.used(full)
            raise error(text)

        doc = f"Raises {error.__name__}: {text}"
        if name[0].isupper():
            return name, type(name, (), {"__module__": module, "__doc__": doc, "__new__": function})
        return _name_function(function, name, module, doc)

    return dict(map(one, names.split()))
