"""Generated functions: compiled so that tracebacks and `inspect` find their source."""

from __future__ import annotations

import linecache
import os
import re
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from .._tensor import namespace as pygrad
from ._namespace import _custom_builtins

MARK: Final = "<eval_with_key>"


class _EvalCacheLoader:
    """Keeps sources, as a loader that `linecache` asks."""

    def __init__(self) -> None:
        self.eval_cache: dict[str, str] = {}
        self.next_id = 0

    def cache(
        self, src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
    ) -> str:
        """Keep a source, and return its file name."""
        key = f"{MARK}.{self.next_id}"
        self.next_id += 1
        if co_fields and "co_filename" in co_fields:
            place = "{co_filename}:{co_firstlineno} in {co_name}".format(**co_fields)
            key += f" from {place}"
        self.eval_cache[key] = src
        linecache.lazycache(key, {**globals, "__file__": key, "__name__": key, "__loader__": self})
        return key

    def get_source(self, module_name: str) -> str | None:
        """The source with that name, for `linecache`."""
        return self.eval_cache.get(module_name)


_loader: Final = _EvalCacheLoader()


def _exec_with_source(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> None:
    key = _loader.cache(src, globals, co_fields)
    exec(compile(src, key, "exec", dont_inherit=True), globals)


def _method_from_src(
    method_name: str,
    src: str,
    globals: dict[str, Any],
    co_fields: dict[str, Any] | None = None,
) -> Any:
    found = dict(globals)
    _exec_with_source(src, found, co_fields)
    return found.pop(method_name)


def _forward_from_src(
    src: str, globals: dict[str, Any], co_fields: dict[str, Any] | None = None
) -> Any:
    return _method_from_src("forward", src, globals, co_fields)


_ROOT: Final = pygrad.__name__
_TORCH: Final = (
    "import pygrad.torch as torch" if _ROOT == "pygrad" else f"torch = __import__({_ROOT!r})"
)
_BELOW_TORCH: Final = (
    (re.compile(r"from torch import (\w+)"), r"\1 = torch.\1"),
    (re.compile(r"import torch\.([\w.]+) as (\w+)"), r"\2 = torch.\1"),
)


def import_line(name: str, obj: Any) -> str:
    """The line of Python that makes a global of generated code known in another process, where
    ``torch`` is the dialect.
    """
    if name in _custom_builtins:
        line = _custom_builtins[name].import_str
        for pattern, replacement in _BELOW_TORCH:
            line = pattern.sub(replacement, line)
        return line
    if isinstance(obj, str):  # an annotation that was never evaluated
        return f"{name} = {obj!r}"
    module = getattr(obj, "__module__", None)
    path = getattr(obj, "__qualname__", None) or obj.__name__
    return f"from {module} import {path} as {name}"


def import_block(globals: dict[str, Any]) -> str:
    """The sorted import lines of the globals."""
    lines = {import_line(name, obj) for name, obj in globals.items()} - {"import torch"}
    return "\n".join([_TORCH, *sorted(lines)])


_PACKAGE: Final = Path(__file__).parent.parent
_OF_OPS: Final = (str(_PACKAGE / "_boundary") + os.sep, str(_PACKAGE / "_tensor" / "tensor.py"))
"""The files of ops' functions."""


class _WrappedCall:
    """The call of a generated module, which shows the line of its code where that fails."""

    def __init__(self, cls: Any, cls_call: Callable[..., Any] | None) -> None:
        self.cls = cls
        self.cls_call = cls_call

    @staticmethod
    def _generate_error_message(frame_summary: traceback.FrameSummary) -> str:
        at, line = frame_summary.lineno or 0, frame_summary.line or ""
        lines = linecache.getlines(frame_summary.filename)
        return "\n".join(
            [
                traceback.format_exc(),
                f"Call using an FX-traced Module, line {at} of the traced Module's generated "
                "forward function:",
                "".join(lines[at - 2 : at]),
                "~" * len(line) + "~~~ <--- HERE",
                "\n".join(lines[at : at + 2]),
            ]
        )

    def __call__(self, obj: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            if self.cls_call is not None:
                return self.cls_call(obj, *args, **kwargs)
            return cast(Any, super(self.cls, obj)).__call__(*args, **kwargs)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            while frames[-1].filename.startswith(_OF_OPS):  # which in PyTorch have no frames
                frames.pop()
            if "eval_with_key" in frames[-1].filename:
                print(self._generate_error_message(frames[-1]), file=sys.stderr)
                raise error.with_traceback(None) from error.__cause__
            raise
