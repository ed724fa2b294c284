"""The text of JavaScript: constants, names, lists in brackets on one line or several."""

from __future__ import annotations

import json
from typing import Any, Final

_WIDTH: Final = 92
_RESERVED: Final = frozenset("case default delete function new switch this var".split())


class Refused(Exception):
    """A form of Python that is not translated."""


def literal(value: Any) -> str:
    """A constant."""
    if isinstance(value, str):
        return quoted(value)
    if value is None or isinstance(value, (bool, int, float, list, tuple)):
        return json.dumps(value)
    raise Refused(f"the constant {value!r}")


def quoted(text: str) -> str:
    """A string, in the quotes that need no escapes."""
    if "'" in text or "\\" in text or not text.isprintable():
        return json.dumps(text)
    return f"'{text}'"


def local(name: str) -> str:
    """A variable's name: some are words of JavaScript."""
    return f"{name}_" if name in _RESERVED else name


def entry(key: str, value: str) -> str:
    """A property of an object."""
    return key if key == value else f"{key}: {value}"


def listed(opening: str, parts: list[str], closing: str) -> list[str]:
    """A list of parts in its brackets, as lines: one if it fits, else one for each part."""
    if not parts:
        return [opening.rstrip() + closing.lstrip()]
    line = f"{opening}{', '.join(parts)}{closing}"
    if len(line) <= _WIDTH and "\n" not in line:
        return [line]
    rows = [row for part in parts for row in indented(f"{part},".split("\n"))]
    return [opening.rstrip(), *rows, closing.lstrip()]


def joined(opening: str, parts: list[str], closing: str) -> str:
    """`listed`, as one text."""
    return "\n".join(listed(opening, parts, closing))


def call(function: str, arguments: list[str]) -> str:
    """A call."""
    return joined(f"{function}(", arguments, ")")


def indented(lines: list[str]) -> list[str]:
    """Lines, moved to the right."""
    return [f"  {line}" if line else line for line in lines]
