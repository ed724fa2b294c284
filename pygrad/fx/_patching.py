"""Names that are replaced while a trace runs, and their former values."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

_MISSING: Final = object()


class _Patch:
    """One name of a dict of globals, or of a class."""

    def __init__(self, place: Any, name: str, before: Any, new: Any) -> None:
        self._place, self._name, self._before, self._new = place, name, before, new

    def patch(self) -> None:
        self._set(self._new)

    def revert(self) -> None:
        self._set(self._before)

    def _set(self, value: Any) -> None:
        in_dict = isinstance(self._place, dict)
        if value is _MISSING:
            self._place.pop(self._name) if in_dict else delattr(self._place, self._name)
        elif in_dict:
            self._place[self._name] = value
        else:
            setattr(self._place, self._name, value)


class _Patcher:
    """The patches of one trace; undone in reverse order, since some names are patched twice."""

    def __init__(self) -> None:
        self.patches_made: list[_Patch] = []
        self.visited: set[int] = set()

    def patch(
        self,
        frame_dict: dict[str, Any],
        name: str,
        new_fn: Callable[..., Any],
        deduplicate: bool = True,
    ) -> None:
        """Let a name among globals mean this function; a builtin's too."""
        before = frame_dict.get(name, _MISSING)
        if before is _MISSING and not hasattr(builtins, name):
            raise KeyError(name)
        self._add(frame_dict, name, before, before, new_fn, deduplicate)

    def patch_method(
        self, cls: type, name: str, new_fn: Callable[..., Any], deduplicate: bool = True
    ) -> None:
        """Let a class have this method."""
        before = vars(cls).get(name, _MISSING)
        self._add(cls, name, getattr(cls, name), before, new_fn, deduplicate)

    def _add(
        self, place: Any, name: str, now: Any, before: Any, new: Any, deduplicate: bool
    ) -> None:
        new.__fx_already_patched = deduplicate
        if getattr(now, "__fx_already_patched", False):
            return
        self.patches_made.append(_Patch(place, name, before, new))
        self.patches_made[-1].patch()

    def visit_once(self, thing: object) -> bool:
        """Whether it is seen for the first time."""
        seen = id(thing) in self.visited
        self.visited.add(id(thing))
        return not seen

    def __enter__(self) -> _Patcher:
        return self

    def __exit__(self, *_: object) -> None:
        self.revert_all_patches()

    def revert_all_patches(self) -> list[_Patch]:
        """Undo all, to do them again."""
        for each in reversed(self.patches_made):
            each.revert()
        return self.patches_made

    def reapply_all_patches(self) -> list[_Patch]:
        """Do all again."""
        for each in self.patches_made:
            each.patch()
        return self.patches_made


_current: list[_Patcher] = []
"""The patchers of the running traces, one within the other."""


@contextmanager
def _new_patcher() -> Iterator[_Patcher]:
    """A patcher whose patches last as long as this context."""
    patcher = _Patcher()
    _current.append(patcher)
    try:
        yield patcher
    finally:
        patcher.revert_all_patches()
        _current.pop()


@contextmanager
def _maybe_revert_all_patches() -> Iterator[None]:
    """Within the scope, names have their values from before the innermost trace."""
    patcher = _current[-1] if _current else None
    if patcher:
        patcher.revert_all_patches()
    try:
        yield
    finally:
        if patcher:
            patcher.reapply_all_patches()
