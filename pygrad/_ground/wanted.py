"""Missing names that a program used: counted if ``PYGRAD_TRACE_MISSING=1``, printed at exit."""

from __future__ import annotations

import atexit
import os
import re
import sys
from collections import Counter
from typing import Any, Final

TRACES: Final = os.environ.get("PYGRAD_TRACE_MISSING", "") not in ("", "0")
_KEYWORD: Final = re.compile(r"(\w+)\(\) got an unexpected keyword argument '(\w+)'")
_counts: Final[Counter[tuple[str, str]]] = Counter()


def used(name: str) -> None:
    """Counts a call of a stand-in for something that pygrad lacks."""
    if TRACES:
        _counts["called", name] += 1


def count_lookup(name: str) -> None:
    """Counts the lookup of a missing name."""
    if TRACES:
        _counts["not found", name] += 1


def count_refusal(error: BaseException) -> None:
    """Counts a failed call of an op, perhaps because of an unknown keyword."""
    found = _KEYWORD.match(str(error))
    if found:
        _counts["no keyword", f"{found[1]}({found[2]}=)"] += 1


def watch(kind: Any, name: str) -> None:
    """Counts lookups of attributes that a class of tensors lacks; its slots may be empty."""
    slots = {slot for each in kind.__mro__ for slot in getattr(each, "__slots__", ())}

    def get(self: Any, short: str) -> Any:
        if not short.startswith("__") and short not in slots:
            count_lookup(f"{name}.{short}")
        text = f"'{type(self).__name__}' object has no attribute '{short}'"
        raise AttributeError(text, name=short, obj=self)

    kind.__getattr__ = get


def report() -> str:
    """The missing names with counts, the most frequent first; "" if there are none."""
    if not _counts:
        return ""
    ranked = sorted(_counts.items(), key=lambda row: (-row[1], row[0]))
    width = max(len(str(count)) for count in _counts.values())
    lines = [f"{count:{width}}  {how:10}  {name}" for (how, name), count in ranked]
    return "\n".join(["pygrad: asked for in vain (PYGRAD_TRACE_MISSING)", *lines])


def _tell() -> None:
    text = report()
    if text:
        print(text, file=sys.stderr)


if TRACES:
    atexit.register(_tell)
