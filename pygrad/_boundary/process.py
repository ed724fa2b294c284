"""State of the process that all engines share: wasmtime's configuration, the compiled binary, and
the interpreter's hooks for forks, garbage collections and exit.
"""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import CodeType
from typing import Any, Final

import wasmtime

from . import compiled

BINARY: Final = Path(__file__).parent.with_name("core.wasm")


_MIB: Final = 1 << 20
_WHOLE: Final = 4096 * _MIB
_BESIDE: Final = 512 * _MIB
"""The address space that the interpreter, the compiler and the guards around a memory take."""


_LEAST: Final = 288 * _MIB
"""Below it, the compiler may end the process."""


def _address_space_left() -> int:
    """The bytes of address space that the process may still take: see ``ulimit -v``."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return sys.maxsize
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        return sys.maxsize
    return limit - taken


def _reserve() -> int:
    """The address space to reserve for the memory of each engine: 4 GiB, so that the memory never
    moves and accesses need no check; a half or a quarter of what is left if that is not to be had.

    Raises: ImportError: too little is left for an engine.
    """
    left = _address_space_left()
    if left >= _WHOLE + _BESIDE:
        return _WHOLE
    if left < _LEAST:
        raise ImportError(
            f"pygrad needs {_LEAST // _MIB} MiB of address space, and the process may take "
            f"{left // _MIB} MiB more: see ulimit -v"
        )
    share = 2 if left > 2 * _BESIDE else 4
    return left // share // (64 * _MIB) * 64 * _MIB


reserved: Final = _reserve()
"""The most bytes that the memory of an engine can grow to."""


def _set(config: wasmtime.Config, name: str, value: int) -> None:
    """Sets an option of the compiler, also where wasmtime's Python class does not know it yet."""
    if hasattr(wasmtime.Config, name):
        setattr(config, name, value)
    else:
        getattr(wasmtime._bindings, f"wasmtime_config_{name}_set")(config.ptr(), value)


def _make_engine() -> wasmtime.Engine:
    """The compiler, whose code gives the same bits on every machine."""
    config = wasmtime.Config()
    config.cranelift_opt_level = "speed"
    config.wasm_simd = True
    config.wasm_relaxed_simd = False
    _set(config, "max_wasm_stack", 2 << 20)  # for callbacks within callbacks: see MOST_NESTED
    if reserved < _WHOLE:
        _set(config, "memory_reservation", reserved)
        _set(config, "memory_reservation_for_growth", 0)
        _set(config, "memory_guard_size", 0)
        _set(config, "memory_may_move", False)
    return wasmtime.Engine(config)


def _load_module() -> tuple[wasmtime.Module, Path | None]:
    try:
        return compiled.load(
            compiler, BINARY, reserved, lambda: wasmtime.Module.from_file(compiler, str(BINARY))
        )
    except (OSError, wasmtime.WasmtimeError) as error:
        raise ImportError(f"pygrad: cannot load its engine {BINARY.name}: {error}") from error


compiler: Final = _make_engine()
module, compiled_file = _load_module()
"""The compiled binary, and the file that it was loaded from or is kept in."""
of_engines: Final[weakref.WeakKeyDictionary[type, str]] = weakref.WeakKeyDictionary()
"""The classes of objects that belong to an engine, for all engines, with the engine's package
name.
"""
memory_limits: Final[dict[str, int]] = {}
"""The most bytes of memory of an engine, by its package's name, where its maker set them."""


def memory_limit(package: str) -> int:
    """The most bytes that the memory of an engine may take.

    Raises: ValueError: for a limit that no engine fits into, or that is no number.
    """
    text = os.environ.get("PYGRAD_MAX_MEMORY", str(_WHOLE))
    if not (text.isascii() and text.strip().isdigit()):
        raise ValueError(f"PYGRAD_MAX_MEMORY is to be a number of bytes, not {text!r}")
    given = memory_limits.get(package) or int(text)
    if given < 32 * _MIB:
        raise ValueError(
            f"pygrad: an engine needs at least {32 * _MIB} bytes of memory, not {given}"
        )
    return given


_stores: Final[dict[int, tuple[weakref.ref[CodeType], wasmtime.Store]]] = {}


def _close(end: weakref.ref[CodeType]) -> None:
    _stores.pop(id(end))[1].close()


def new_store() -> tuple[wasmtime.Store, CodeType]:
    """A store, and an object that the store's engine keeps as long as it needs the store's memory.

    The object is the code of a function: the garbage collector does not track code, so the object
    is freed after the finalizers of all garbage around it, which may read the memory.
    """
    store = wasmtime.Store(compiler)
    code = _close.__code__.replace()
    end = weakref.ref(code, _close)
    _stores[id(end)] = end, store
    return store, code


def _leave_stores() -> None:
    """Leaves the stores to the process: a daemon thread may be in a long call at its end."""
    for _, store in _stores.values():
        if hasattr(store, "_consume"):  # not public; else wasmtime frees them
            store._consume()
    _stores.clear()


atexit.register(_leave_stores)  # the first, so it runs last

# ------------------------------------------------------------------ events for engines

before_fork: Final[list[Any]] = []
after_fork: Final[list[Any]] = []
after_fork_in_child: Final[list[Any]] = []
at_exit: Final[list[Any]] = []


def hear(listeners: list[Any], function: Callable[..., Any]) -> None:
    """Adds a function to a list of listeners, one of the lists above or `gc.callbacks`, for as long
    as the function lives.
    """

    def forget(gone: Any) -> None:
        listeners[:] = [each for each in listeners if each is not gone]

    listeners.append(weakref.proxy(function, forget))


def _call_each(listeners: list[Any]) -> Callable[[], None]:
    def call_each() -> None:
        for function in listeners[:]:
            function()

    return call_each


atexit.register(_call_each(at_exit))
if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_call_each(before_fork),
        after_in_parent=_call_each(after_fork),
        after_in_child=_call_each(after_fork_in_child),
    )
