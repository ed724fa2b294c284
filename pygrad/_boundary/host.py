"""The host: the engine's binary in a wasmtime store, and the interface of a host.

Another host would offer the same: `call`, `call2` and their `_long` forms, which let other threads
run; the parameters' `slots` and the results in them; `trap_slot`; `scalar_export` for exports of
one number or none; memory to read and write, as `memory`, `words`, `ints`, `unsigned` and
`doubles`, which see it grow; `text_at`; `base_address` for views of NumPy's; and when the engine
calls back, it resumes one of `idle`.

How a call goes through wasmtime is decided in raw_calls.py.

The store must not be entered by two threads at once, from writing the frame to reading the
result: ownership.py sees to that.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import wasmtime

from . import process
from .process import module, new_store
from .raw_calls import calls_of

ABI: Final = 3
MOST_NESTED: Final = 192
"""Hooks that may run inside of hooks: the stack of 2 MiB holds twice as many. Custom
functions do not count: they run outside of the engine.
"""
MOST_EFFORT: Final = 1 << 16
"""Calls of more, some ten microseconds and above, let other threads run. To ask for that takes a
crossing in vain, 0.7 us.
"""

unusable: str | None = None
"""Why the engine cannot be used any more."""

_store, _end_of_store = new_store()
_calls = calls_of(_store)

# ------------------------------------------------------------------ calls from the engine

idle: list[Generator[int, Any, None]] = []
"""Generators that wait for a callback; outer ones are busy while inner ones run."""
_resumed: Iterator[int] = map(next, iter(idle.pop, None))
"""Resumes a generator for each item. Nothing here but the generators is Python code."""


_host_function = _calls.host_function(functools.partial(next, _resumed, 0))


def _instantiate() -> tuple[wasmtime.Instance, wasmtime.Memory]:
    wanted = {(i.module, i.name): i.type for i in module.imports}
    if set(wanted) != {("env", "memory"), ("env", "pg_host")}:
        raise ImportError(
            f"pygrad: the engine imports {sorted(wanted)}, not what this version offers"
        )
    kind = wanted["env", "memory"]
    assert isinstance(kind, wasmtime.MemoryType)
    limit = process.memory_limit(__name__.partition(".")[0])
    _store.set_limits(memory_size=limit)
    try:
        memory = wasmtime.Memory(_store, kind)
    except wasmtime.WasmtimeError as error:
        raise MemoryError(
            f"pygrad: cannot reserve {process.reserved >> 20} MiB of address space for the memory "
            f"of an engine (see ulimit -v): {str(error).splitlines()[-1].strip()}"
        ) from None
    offered: dict[tuple[str, str], Any] = {
        ("env", "memory"): memory,
        ("env", "pg_host"): _host_function,
    }
    imports = [offered[i.module, i.name] for i in module.imports if i.name is not None]
    return wasmtime.Instance(_store, module, imports), memory


_instance, _memory = _instantiate()
_exports = _instance.exports(_store)


def _export(name: str, arguments: list[str], result: str) -> wasmtime.Func:
    """The exported function, its signature checked once so that calls need no check."""
    func = _exports.get(name)
    if not isinstance(func, wasmtime.Func):
        raise ImportError(f"pygrad: the engine has no {name}, which this version calls")
    kind = func.type(_store)
    given = [str(p) for p in kind.params], [str(r) for r in kind.results]
    if given != (arguments, [result] if result else []):
        raise ImportError(f"pygrad: {name} has the signature {given}, not the one of this version")
    return func


_public: dict[str, wasmtime.Func] = {
    "pg_call": _export("pg_call", [], "i64"),
    "pg_call2": _export("pg_call2", ["i64"] * 4, "i64"),
    "pg_frame": _export("pg_frame", [], "i32"),
    "pg_describe": _export("pg_describe", ["i32"], "i32"),
    "pg_intern": _export("pg_intern", [], "i32"),
    "pg_layout": _export("pg_layout", ["i32"], "i32"),
    "pg_layout_names": _export("pg_layout_names", [], "i32"),
    "pg_status_name": _export("pg_status_name", ["i32"], "i32"),
    "pg_warning": _export("pg_warning", [], "i32"),
    "pg_live_count": _export("pg_live_count", [], "i64"),
    "pg_release": _export("pg_release", [], ""),
}
_exports["_initialize"](_store)  # type: ignore[operator]

# ------------------------------------------------------------------ memory

# The whole 4 GiB that wasmtime reserves: the base never moves, so these views never go stale. Only
# addresses from the engine are read.
base_address: Final = ctypes.addressof(_memory.data_ptr(_store).contents)
_whole = (ctypes.c_char * (1 << 32)).from_address(base_address)
memory: Final = memoryview(_whole).cast("B")
words: Final = memory.cast("q")
ints: Final = memory.cast("i")
unsigned: Final = memory.cast("I")
doubles: Final = memory.cast("d")


MAPS_FILES: Final = sys.platform == "linux" and sys.maxsize > 1 << 32
"""Whether a file can be put in place of memory, which must not move."""
_FIXED: Final = 0x10
NORESERVE: Final = 0x4000  # both are Linux's numbers for all its processors but MIPS and the like
_FAILED: Final = ctypes.c_void_p(-1).value


@functools.cache
def _system_call() -> Any:
    call = ctypes.CDLL(None, use_errno=True).mmap
    call.restype = ctypes.c_void_p
    call.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_int64]
    return call


def map_over(address: int, n_bytes: int, flags: int, file: int) -> int:
    """Maps a file, or memory for -1, over whole pages; returns 0, or the number of the error."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    found = _system_call()(base_address + address, n_bytes, protection, flags | _FIXED, file, 0)
    return ctypes.get_errno() if found == _FAILED else 0


def text_at(address: int) -> str:
    """The zero-terminated UTF-8 text at an address."""
    try:
        return ctypes.string_at(base_address + address).decode("utf-8", "replace")
    except ctypes.ArgumentError:  # numbers are right; it is how ctypes shows the error within
        raise RecursionError("maximum recursion depth exceeded") from None


# ------------------------------------------------------------------ the way in

slots: Final = _calls.slots
result_slot: Final = _calls.result_slot
double_slot: Final = _calls.double_slot
trap_slot: Final = _calls.trap_slot
reason_of_trap: Final = _calls.reason_of_trap


def scalar_export(name: str) -> Callable[..., int]:
    """An export with one parameter or none, as a function."""
    return _calls.scalar(_public[name])


count_live: Final = functools.partial(_public["pg_live_count"], _store)
intern_name: Final = functools.partial(_public["pg_intern"], _store)


def pages() -> int:
    """Pages of 64 KiB that the engine's memory has grown to."""
    return _memory.size(_store)


# ------------------------------------------------------------------ the frame

layout: Final[dict[str, int]] = {}
_frame: int = 0


def _read_layout() -> None:
    global _frame
    ask_layout = scalar_export("pg_layout")
    if (abi := ask_layout(0)) != ABI:
        raise ImportError(f"pygrad: the engine speaks version {abi}, this package version {ABI}")
    for k, name in enumerate(text_at(scalar_export("pg_layout_names")()).split()):
        layout[name] = ask_layout(k)
    _frame = _public["pg_frame"](_store)


_read_layout()
frame: Final = _frame
ints[(frame + layout["frame_most_nested"]) >> 2] = MOST_NESTED
ints[(frame + layout["frame_most_effort"]) >> 2] = MOST_EFFORT if _calls.lets_threads_run else 0


def _plain_call(lets_threads_run: bool) -> Callable[[], None]:
    function, arguments = _calls.prepare(_public["pg_call"], 0, lets_threads_run)
    return functools.partial(function, *arguments)


call, call_long = _plain_call(False), _plain_call(True)
call2, call2_places = _calls.prepare(_public["pg_call2"], 4)
call2_long, _ = _calls.prepare(_public["pg_call2"], 4, lets_threads_run=True)
