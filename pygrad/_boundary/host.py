"""The host: the engine's binary in a wasmtime store, and the interface of a host.

Another host would offer the same: `call`, `call2` and their `_long` forms, which let other threads
run; the parameters' `slots` and the results in them; `trap_slot`; `scalar_export` for exports of
one number or none; memory to read and write, as `memory`, `words`, `ints`, `unsigned` and
`doubles`, which see it grow; `text_at`; `base_address` for views of NumPy's; and when the engine
calls back, it resumes one of `idle`.

A call goes through `wasmtime_func_call_unchecked` by `ctypes.PyDLL`: about a microsecond, where
wasmtime's own `Func.__call__` takes fifty. The signatures it would check were checked once, at
load. Set ``PYGRAD_PUBLIC_CALL=1`` to use `Func.__call__` instead.

The store must not be entered by two threads at once, from writing the frame to reading the
result: ownership.py sees to that.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any, Final

import wasmtime
from wasmtime import _bindings

from . import process
from .process import module, new_store

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

# ------------------------------------------------------------------ calls from the engine

idle: list[Generator[int, Any, None]] = []
"""Generators that wait for a callback; outer ones are busy while inner ones run."""
_resumed: Iterator[int] = map(next, iter(idle.pop, None))
"""Resumes a generator for each item. Nothing here but the generators is Python code."""


_I32 = wasmtime.ValType.i32()
_Plain, _Answering = ctypes.CFUNCTYPE(None), ctypes.CFUNCTYPE(ctypes.c_void_p)


def _plain_is_null() -> bool:
    """Whether C code that takes the result of a callback without one gets NULL. True where libffi
    leaves the kind of the result, 0 for none, in the result register; where libffi fills the
    register from memory, C reads the result of the callback before.
    """
    return _Answering(lambda: 1)() == 1 and ctypes.cast(_Plain(int), _Answering)() is None


_resume_host = functools.partial(next, _resumed, 0)
_host_callback = _Plain(_resume_host)
"""The callback of wasmtime, which expects a trap or NULL. ctypes prints an exception that escapes
from a generator, and the engine was told in advance that the callback failed; but a callback with
an answer would then return a random address. It takes none of C's four parameters: the caller
removes them.
"""
if not _plain_is_null():
    # This form fails if Python's recursion limit is reached at the inner call.
    _host_callback = _Answering(ctypes.PYFUNCTYPE(None)(_resume_host))
_host_unchecked_c = ctypes.cast(_host_callback, _bindings.wasmtime_func_unchecked_callback_t)


def _host_function() -> wasmtime.Func:
    kind = wasmtime.FuncType([_I32, _I32, _I32], [_I32])
    raw = _bindings.wasmtime_func_t()
    no_finalizer = ctypes.cast(0, ctypes.CFUNCTYPE(None, ctypes.c_void_p))
    _bindings.wasmtime_func_new_unchecked(
        _store._context(), kind.ptr(), _host_unchecked_c, None, no_finalizer, ctypes.byref(raw)
    )
    return wasmtime.Func._from_raw(raw)


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
        ("env", "pg_host"): _host_function(),
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

_slot = (_bindings.wasmtime_val_raw_t * 4)()
slots: Final = memoryview(_slot).cast("B")
"""The parameters of `call2`, 16 bytes each; the first is also the result's place."""
result_slot: Final = slots.cast("q")
double_slot: Final = slots.cast("d")
_trap = ctypes.POINTER(_bindings.wasm_trap_t)()
trap_slot: Final = memoryview(_trap).cast("B").cast("q")
"""Not 0 once a call has trapped, and ever after: wasmtime returns no error for a trap."""
_context = _store._context()
_library = wasmtime._ffi.dll._name


def _raw_call(
    loader: Callable[[str], ctypes.CDLL], name: str, n_slots: int, at: Any = _slot
) -> functools.partial[None]:
    """An export's raw call with every pointer prepared."""
    function = loader(_library).wasmtime_func_call_unchecked
    function.restype = None
    # Without argtypes, the results of `from_param` are passed unconverted: half the time of ctypes
    # objects.
    pointer = ctypes.c_void_p.from_param
    return functools.partial(
        function,
        pointer(ctypes.cast(_context, ctypes.c_void_p).value),
        pointer(ctypes.addressof(_public[name]._func)),
        pointer(ctypes.addressof(at)),
        ctypes.c_size_t.from_param(n_slots),
        pointer(ctypes.addressof(_trap)),
    )


def _public_call(name: str, n_parameters: int) -> Callable[[], None]:
    """An export's checked call, over the same slots."""
    function = _public[name]

    def call() -> None:
        global unusable
        try:
            result_slot[0] = function(_store, *result_slot[: 2 * n_parameters : 2].tolist())
        except wasmtime.Trap as trap:
            unusable = str(trap)
            trap_slot[0] = 1

    return call


_aside = (_bindings.wasmtime_val_raw_t * 1)()
_answer: Final = memoryview(_aside).cast("B").cast("I")
"""The slot of `scalar_export`, apart from the slots, which may hold a result to be read."""


_public_only: Final = os.environ.get("PYGRAD_PUBLIC_CALL", "0") == "1"


def scalar_export(name: str) -> Callable[..., int]:
    """An export with one parameter or none, as a function."""
    if _public_only:
        return functools.partial(_public[name], _store)
    raw = _raw_call(ctypes.PyDLL, name, 1, _aside)

    def ask(parameter: int = 0) -> int:
        _answer[0] = parameter
        raw()
        return _answer[0]

    return ask


count_live: Final = functools.partial(_public["pg_live_count"], _store)
intern_name: Final = functools.partial(_public["pg_intern"], _store)


def pages() -> int:
    """Pages of 64 KiB that the engine's memory has grown to."""
    return _memory.size(_store)


def reason_of_trap() -> str:
    """The message of wasmtime for the trap that ended a call."""
    if ctypes.cast(_trap, ctypes.c_void_p).value is None:
        return "the engine trapped"
    return str(wasmtime.Trap._from_ptr(_trap))


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
ints[(frame + layout["frame_most_effort"]) >> 2] = 0 if _public_only else MOST_EFFORT

if _public_only:
    call = call_long = _public_call("pg_call", 0)
    call2: Callable[..., None] = _public_call("pg_call2", 4)
    call2_long = call2
    call2_places: tuple[Any, ...] = ()
else:
    call, call_long = _raw_call(ctypes.PyDLL, "pg_call", 1), _raw_call(ctypes.CDLL, "pg_call", 1)
    # Passing a ready tuple takes less time than `partial` takes to build one.
    _call2, _call2_long = (
        _raw_call(ctypes.PyDLL, "pg_call2", 4),
        _raw_call(ctypes.CDLL, "pg_call2", 4),
    )
    call2, call2_long, call2_places = _call2.func, _call2_long.func, _call2.args
