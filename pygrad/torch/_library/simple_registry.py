"""Registered functions of libraries' ops, by name."""

from __future__ import annotations

from types import SimpleNamespace as _Namespace
from typing import Any, Final

from ...library._registry import entry_of


class SimpleLibraryRegistry:
    """The ops of libraries."""

    def find(self, qualname: str) -> Any:
        """The entry of an op: the kernel and the source of its fake function.

        Raises: RuntimeError: there is no such op.
        """
        entry = entry_of(qualname)
        code = getattr(entry.fake, "__code__", None)
        source = f"{code.co_filename}:{code.co_firstlineno}" if code is not None else None
        kernel = None if entry.fake is None else _Namespace(func=entry.fake, source=source)
        fake = _Namespace(kernel=kernel)
        return _Namespace(qualname=qualname, fake_impl=fake, abstract_impl=fake)


singleton: Final = SimpleLibraryRegistry()
