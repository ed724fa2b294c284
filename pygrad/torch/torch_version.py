"""The version of PyTorch that pygrad follows, in a form that programs compare."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from .._install.stand_ins import supplement

__all__ = ["TorchVersion"]

_FORM: Final = re.compile(
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|a|b|c|rc)[-_.]?(?P<pre_n>\d*))?"
    r"(?P<post>-(?P<post_a>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post_b>\d*))?"
    r"(?P<dev>[-_.]?dev[-_.]?(?P<dev_n>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)
_PHASES: Final = {"alpha": "a", "beta": "b", "c": "rc", "pre": "rc", "preview": "rc"}
_Key = tuple[Any, ...]


def _key(version: str) -> _Key | None:
    """The sort key of a version by PEP 440; None if it is no such version.

    A development release comes before the version that it precedes; then come pre-releases, the
    release, and post-releases; a local label comes after its absence.
    """
    found = _FORM.fullmatch(version)
    if found is None:
        return None
    release = [int(part) for part in found["release"].split(".")]
    while release and not release[-1]:
        release.pop()
    pre: _Key = ("z",)
    if found["pre"]:
        phase = found["pre"].lower()
        pre = (_PHASES.get(phase, phase), int(found["pre_n"] or 0))
    elif found["dev"] and not found["post"]:
        pre = ("",)
    post = int(found["post_a"] or found["post_b"] or 0) if found["post"] else -1
    dev = (0, int(found["dev_n"] or 0)) if found["dev"] else (1, 0)
    parts = re.split("[-_.]", found["local"].lower()) if found["local"] else []
    local = tuple((1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts)
    return int(found["epoch"] or 0), tuple(release), pre, post, dev, local


def _text(version: Any) -> str:
    """A version of a string, or of its numbers: ``(2, 1)`` is ``"2.1"``."""
    if isinstance(version, str):
        return version
    if isinstance(version, Iterable):
        return ".".join(map(str, version))
    raise ValueError(f"I can't handle {version} of type {type(version).__name__}")


class TorchVersion(str):
    """A string that is compared as a version with strings and tuples of numbers.

    Against what is no version it is compared as a string.

    Example:
        >>> version = TorchVersion("2.13.0+pygrad")
        >>> version >= (2, 4), version < "2.13.1", version > "2.13.0", version == "2.13.0"
        (True, True, True, False)
    """

    def _compare(self, other: Any, how: str) -> Any:
        if other is None or isinstance(other, (int, float)):
            return NotImplemented
        text = _text(other)
        mine, theirs = _key(self), _key(text)
        if mine is None or theirs is None:
            return getattr(str, how)(self, text)
        return getattr(mine, how)(theirs)

    def __lt__(self, other: Any) -> Any:
        return self._compare(other, "__lt__")

    def __le__(self, other: Any) -> Any:
        return self._compare(other, "__le__")

    def __gt__(self, other: Any) -> Any:
        return self._compare(other, "__gt__")

    def __ge__(self, other: Any) -> Any:
        return self._compare(other, "__ge__")

    def __eq__(self, other: Any) -> Any:
        return self._compare(other, "__eq__")

    def __ne__(self, other: Any) -> Any:
        return self._compare(other, "__ne__")

    __hash__ = str.__hash__


__version__ = TorchVersion("2.13.0+pygrad")
supplement(sys.modules[__name__], "torch.torch_version")
