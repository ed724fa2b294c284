"""The engine's binary in a wasmtime store: the one module that knows wasmtime and addresses.

A call goes through `wasmtime_func_call_unchecked` by `ctypes.PyDLL`: about a microsecond, where
wasmtime's own `Func.__call__` takes fifty. The signatures it would check were checked once, at
load. Set ``PYGRAD_PUBLIC_CALL=1`` to use `Func.__call__` instead.

The store must not be entered by two threads at once, from writing the frame to reading the
result. `lock` sees to that. It is made of plain fields, because an exception of a signal's handler
may come between any two lines: see `_Lock`.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import sys
import threading
import time
import traceback
import warnings
from _thread import get_ident
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import wasmtime
from wasmtime import _bindings

from . import _errors

BINARY: Final = Path(__file__).with_name("core.wasm")
ABI: Final = 2
INPLACE: Final = 1
METHOD: Final = 2
PREPARED: Final = 4
PENDING: Final = 1 << 32
DESCRIBED: Final = 1 << 33
VIEW: Final = 1 << 34
SELF: Final = 1 << 35
FAILED: Final = 1 << 36
HEAD: Final = 1 << 62
HOOK: Final = 0  # HOST_HOOK in wasm_core/tape/host.h
CLOCK: Final = 100  # HOST_CLOCK there

# How a value travels: Tag in wasm_core/call/call.h.
(
    MISSING,
    NONE,
    TENSOR,
    INT,
    FLOAT,
    BOOL,
    STR,
    DTYPE,
    INTS,
    FLOATS,
    TENSORS,
    INDEX,
    OTHER,
    BOOLS,
    COMPLEX,
    GENERATOR,
) = range(16)


def _make_engine() -> wasmtime.Engine:
    """An engine with wasmtime's compilation cache where the user's cache folder allows it."""
    config = wasmtime.Config()
    config.cranelift_opt_level = "speed"
    config.wasm_simd = True
    config.max_wasm_stack = 2 << 20  # for callbacks within callbacks: see MOST_NESTED
    config.wasm_relaxed_simd = False
    if os.environ.get("PYGRAD_CACHE", "1") != "0":
        try:
            config.cache = True
        except wasmtime.WasmtimeError:
            pass  # no writable home: compile at every start
    return wasmtime.Engine(config)


def _load_module(engine: wasmtime.Engine) -> wasmtime.Module:
    try:
        return wasmtime.Module.from_file(engine, str(BINARY))
    except (OSError, wasmtime.WasmtimeError) as error:
        raise ImportError(f"pygrad: cannot load its engine {BINARY.name}: {error}") from error


def _plain_clock(event: int) -> int:
    return time.perf_counter_ns()


clock: Callable[[int], int] = _plain_clock
"""Nanoseconds, for the profiler; told which event begins, or -1."""

HostCallback = Callable[[int, int, list[int]], list[int]]
"""(kind, callback id, handles) -> handles; may raise."""

on_host_call: HostCallback | None = None
on_hook: Callable[[int, int], int] | None = None
"""The same for a hook on one gradient, the most frequent: (callback id, handle) -> handle or 0."""
on_dropped: Callable[[int], None] | None = None
_host_error: BaseException | None = None
unusable: str | None = None

_engine = _make_engine()
_store = wasmtime.Store(_engine)
_module = _load_module(_engine)


MOST_NESTED: Final = 192
"""Hooks that may run inside of hooks: the stack of 2 MiB holds twice as many. Custom
functions do not count: they run outside of the engine.
"""


def _hosting() -> Generator[int, Any, None]:
    """Runs a callback for the engine each time it is resumed; the engine's frame says which. An
    exception waits in `_host_error` until the crossing ends, and ends the generator.

    What the engine passed as parameters stands in the frame too, and reading it there takes less
    than ctypes needs for four arguments.

    No function, but a generator, because a function cannot catch what a handler of a signal, say
    of Ctrl-C, raises before its first line; that is where handlers run of signals which came while
    the engine was busy. A generator is resumed where it stopped, within `try`. Outside of it, and
    from putting itself among the idle to waiting, it calls nothing and does not jump back: there
    no handler runs. An exception that escaped all the same would end in `_host_callback`.
    """
    global _host_error
    me = yield 0
    itself, held, waits = (me,), me, True
    try:
        while True:
            held, waits = me, True
            _idle[:0] = itself
            yield 0
            waits = False
            held, lock.held = lock.held, me
            if len(_idle) < FEW_IDLE:
                _make_host()
            kind, ident, n_out = ints[_HOST_KIND], ints[_HOST_ID], 0
            if kind == HOOK:
                result = on_hook(ident, unsigned[_HOST_FIRST])  # type: ignore[misc]
                if result:
                    words[words[_HOST_OUT] >> 3] = result
                    n_out = 1
            elif kind == CLOCK:
                words[words[_HOST_OUT] >> 3] = clock(ident)
            else:
                at = words[_HOST_IN] >> 3
                handles = words[at : at + ints[_HOST_N]].tolist()
                results = on_host_call(kind, ident, handles)  # type: ignore[misc]
                if results:
                    at = words[_HOST_OUT] >> 3
                    for handle in results[: ints[_HOST_CAP]]:
                        words[at] = handle
                        at += 1
                    n_out = len(results)
            ints[_HOST_N_OUT] = n_out
            lock.held = held
    except BaseException as error:
        if waits and error.__class__ is GeneratorExit:
            return  # the generator is closed
        if held is not me:
            lock.held = held
        lock.free = None
        _host_error = error
        ints[_HOST_N_OUT] = -1
        # Not this frame: users' own come first.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next


def _make_host() -> None:
    """Adds a generator to those that wait."""
    made = _hosting()
    next(made)
    made.send(made)


_idle: list[Generator[int, Any, None]] = []
"""Generators that wait for a callback: those of outer ones are busy while inner ones run."""
FEW_IDLE: Final = 4
"""So many wait, in case handlers of signals call the engine, or raise, before there are more."""
for _ in range(FEW_IDLE):
    _make_host()
_resumed: Iterator[int] = map(next, iter(_idle.pop, None))
"""Resumes a generator for each item. Nothing here but the generators is Python code."""


_I32 = wasmtime.ValType.i32()
_resume_host = ctypes.PYFUNCTYPE(None)(functools.partial(next, _resumed, 0))
"""Prints what escapes from a generator, as ctypes does with exceptions in callbacks; the engine was
told in advance that the callback failed.
"""
_host_callback = ctypes.CFUNCTYPE(ctypes.c_void_p)(_resume_host)
"""What wasmtime calls: always answers NULL, no trap, because `_resume_host` cannot raise. After an
exception ctypes would leave a random address there. Of C's four parameters it takes none: the
caller is who clears them away.
"""
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
    wanted = {(i.module, i.name): i.type for i in _module.imports}
    if set(wanted) != {("env", "memory"), ("env", "pg_host")}:
        raise ImportError(
            f"pygrad: the engine imports {sorted(wanted)}, not what this version offers"
        )
    kind = wanted["env", "memory"]
    assert isinstance(kind, wasmtime.MemoryType)
    memory = wasmtime.Memory(_store, kind)
    offered: dict[tuple[str, str], Any] = {
        ("env", "memory"): memory,
        ("env", "pg_host"): _host_function(),
    }
    imports = [offered[i.module, i.name] for i in _module.imports if i.name is not None]
    return wasmtime.Instance(_store, _module, imports), memory


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
# addresses that the engine gave out are read.
base_address: Final = ctypes.addressof(_memory.data_ptr(_store).contents)
_whole = (ctypes.c_char * (1 << 32)).from_address(base_address)
memory: Final = memoryview(_whole).cast("B")
words: Final = memory.cast("q")
ints: Final = memory.cast("i")
unsigned: Final = memory.cast("I")
doubles: Final = memory.cast("d")


def text_at(address: int) -> str:
    """The zero-terminated UTF-8 text at an address."""
    return ctypes.string_at(base_address + address).decode("utf-8", "replace")


# ------------------------------------------------------------------ the way in

_slot = (_bindings.wasmtime_val_raw_t * 4)()
slots: Final = memoryview(_slot).cast("B")
"""Where the parameters of `call2` go, 16 bytes each; the first is also the result's place."""
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
    # Without argtypes, what `from_param` makes is passed as it is: half the time of ctypes objects.
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
"""What `_ask` and `_release` use instead of the slots, which may hold a result to be read."""


_public_only: Final = os.environ.get("PYGRAD_PUBLIC_CALL", "0") == "1"


def _asking(name: str) -> Callable[..., int]:
    """An export with one parameter or none, as a function."""
    if _public_only:
        return functools.partial(_public[name], _store)
    raw = _raw_call(ctypes.PyDLL, name, 1, _aside)

    def ask(parameter: int = 0) -> int:
        _answer[0] = parameter
        raw()
        return _answer[0]

    return ask


_next_warning = _asking("pg_warning")
_release, _describe = _asking("pg_release"), _asking("pg_describe")
_ask_layout, _ask_layout_names = _asking("pg_layout"), _asking("pg_layout_names")
_ask_status_name = _asking("pg_status_name")

# ------------------------------------------------------------------ the frame

layout: Final[dict[str, int]] = {}
_frame: int = 0


def _read_layout() -> None:
    global _frame
    if (abi := _ask_layout(0)) != ABI:
        raise ImportError(f"pygrad: the engine speaks version {abi}, this package version {ABI}")
    for k, name in enumerate(text_at(_ask_layout_names()).split()):
        layout[name] = _ask_layout(k)
    _frame = _public["pg_frame"](_store)


_read_layout()
frame: Final = _frame
_HOST_IN: Final = (frame + layout["frame_host_in"]) >> 3
_HOST_OUT: Final = (frame + layout["frame_host_out"]) >> 3
_HOST_KIND: Final = (frame + layout["frame_host_kind"]) >> 2
_HOST_ID, _HOST_N, _HOST_FIRST = _HOST_KIND + 1, _HOST_KIND + 2, _HOST_KIND + 3
_HOST_CAP: Final = (frame + layout["frame_host_cap"]) >> 2
_HOST_N_OUT: Final = (frame + layout["frame_host_n_out"]) >> 2
ints[(frame + layout["frame_most_nested"]) >> 2] = MOST_NESTED

# ------------------------------------------------------------------ calls

queued_warnings: Final[list[str]] = []
"""What callbacks have to warn of: raised when the crossing ends, with the engine's own."""
kept: Final[list[Any]] = []
"""What the last callback returned: the engine takes its own references when the callback ends."""
released: Final[list[int]] = []
"""Handles whose Python objects died; the next crossing hands them over."""


class _Lock:
    """Who may use the engine: one thread at a time, and that one within its own calls too.

    CPython lets other threads and the handlers of signals run after calls, at jumps back and where
    a function begins. A line that reads and writes these fields and calls nothing is therefore
    whole; and as a handler may raise, no state depends on a second line being reached: `held` says
    by what it is held, so that whoever waits sees when that is no more.

    Attributes:
        free: None while a frame is written or a call runs. Else `key`: the owner's calls need not
            ask; or False: they do.
        key: an object that each new owner makes, so that a thread sees whether it has been the
            owner all the time since it looked.
        held: what keeps other threads out beyond a short call: a frame of `holding`, or the
            generator that runs a callback. None: nothing does.
        user: the thread that holds it, or held it last.
        ident: the thread whose modes are in the engine's frame.
        waiting: threads that wait.
    """

    __slots__ = ("free", "held", "ident", "key", "user", "waiting")

    def __init__(self) -> None:
        self.ident = self.user = get_ident()
        self.free: Any = False
        self.key: Any = object()
        self.held: Any = None
        self.waiting: set[int] = set()

    def __repr__(self) -> str:
        count = int(self.free is None) + (self.held is not None)
        return f"<pygrad engine lock user={self.user} count={count} waiting={len(self.waiting)}>"

    def is_mine(self) -> bool:
        """Whether this thread is inside of the engine: in a callback, say."""
        return self.held is not None and self.user == get_ident()


lock: Final = _Lock()
_turn: Final = threading.RLock()
mine: Final[Callable[[], bool]] = _turn._is_owned  # type: ignore[attr-defined]
"""Whether this thread owns the engine: the fastest way to ask."""
_turn.acquire()


def _turn_to(ident: int, turn: Any = _turn) -> None:
    """Says whose short calls are quick; 0: nobody's. The engine is held."""
    try:
        turn._release_save()
    except RuntimeError:
        pass  # an exception came between these two
    turn._acquire_restore((1, ident))


on_new_owner: Callable[[], None] = lambda: None  # noqa: E731
"""Called when another thread than before has taken the engine; if interrupted, once more."""
before_use: Final[list[Callable[[], None]]] = []
"""What is to be called before the engine is used again; each takes itself away when it is done."""

_Before = tuple[Any, Any, tuple[bytes, bytes] | None]
"""What `holding` puts back: `held`, `free`, and what this thread was writing, if a finalizer or a
signal's handler has come in the middle of that.
"""
_IN_USE: Final = object()
_FORK: Final = object()
_PATIENCE: Final = 0.1
"""Seconds."""


def holding(run: Callable[..., Any], *args: Any, wait: bool = True) -> Any:
    """Calls a function with the engine taken for this thread, when whoever uses it is done.

    Args:
        wait: False: if another thread uses the engine, return `_IN_USE` at once.
    """
    if not lock.waiting and (key := lock.free) and mine() and lock.free is key:
        lock.free = None
        try:
            return run(*args)
        finally:
            lock.free = key
    before = _take(sys._getframe(), wait)
    if before is None:
        return _IN_USE
    try:
        return run(*args)
    finally:  # nothing is called here, so that no handler of a signal runs
        held, free, saved = before
        if saved is not None:
            slots[:] = saved[0]
            memory[frame:_FRAME_END] = saved[1]
        lock.free = None if free is None else lock.key
        lock.held = held


def _give_back(before: _Before) -> None:
    lock.free = None if before[1] is None else lock.key
    lock.held = before[0]


def _take(token: Any, wait: bool = True) -> _Before | None:
    """Takes the engine for this thread and whatever the token is of; None: another has it."""
    if unusable is not None:
        raise trapped()
    me = get_ident()
    if lock.waiting and lock.user == me and wait:
        _let_others_pass(me)
    waits = 0
    try:
        while True:
            if lock.held is None and lock.free is not None:
                held, free = None, lock.free
                lock.user, lock.held, lock.free = me, token, None
                break
            if lock.user == me:
                if _left_behind(lock.held):
                    continue
                held, free = lock.held, lock.free
                lock.held, lock.free = token, None
                break
            if not wait:
                return None
            waits += 1
            _wait(me, waits)
    finally:
        if waits:
            lock.waiting.discard(me)
    saved = None
    if free is None:
        saved = bytes(slots), bytes(memory[frame:_FRAME_END])
        memory[N_RELEASE] = 0
    if lock.ident != me or not mine():
        _users.add(me)
        lock.key = object()
        on_new_owner()
        _turn_to(me)
    while before_use:
        before_use[-1]()
    return held, free, saved


def _wait(me: int, times: int) -> None:
    lock.waiting.add(me)
    if times > 8:
        _left_behind(lock.held)
    time.sleep(0 if times < 8 else min(1e-3, times * 1e-5))


def _left_behind(token: Any) -> bool:
    """Frees the engine if it is held for nothing that runs: an exception came before the end.

    Returns: whether it was.
    """
    if token is None:
        user = lock.user
        if user in sys._current_frames() or lock.user != user:
            return False
        lock.free = False  # a thread that ended in the middle of a short call
        return True
    if isinstance(token, FrameType):
        if any(_is_on_stack(token, frame) for frame in sys._current_frames().values()):
            return False
        if lock.held is token:
            lock.held, lock.free = None, False
        return True
    if token is _FORK or token.gi_running:
        return False
    if lock.held is token and not token.gi_running:
        lock.held = None
    return True


def _is_on_stack(wanted: FrameType, frame: FrameType | None) -> bool:
    while frame is not None:
        if frame is wanted:
            return True
        frame = frame.f_back
    return False


_users: Final = {get_ident()}
"""The threads that have called the engine."""


def used_by_one() -> bool:
    """Whether of the threads that run one alone has called the engine."""
    return len(_users) == 1 or len(_users & sys._current_frames().keys()) < 2


def _let_others_pass(me: int) -> None:
    """Waits until one of those who wait has the engine, if this thread was the last to have it: a
    thread gives up the GIL in calls that take long, and would else be back before they can look.
    Not for ever: a daemon thread may end while it waits.
    """
    end = time.monotonic() + _PATIENCE
    while lock.waiting and lock.user == me and lock.held is None and lock.free is not None:
        if time.monotonic() > end:
            lock.waiting.clear()  # those who do wait will add themselves
        time.sleep(0)


def farewell(ident: int) -> None:
    """Says that a thread has ended, whose ident the next thread may get."""
    if lock.ident == ident:
        lock.ident = 0
        if lock.free is not None:
            lock.free = False


_before_fork_held: Final[list[_Before]] = []


def _before_fork() -> None:
    """Waits for other threads, which a child does not have: its engine must not be in use."""
    if unusable is None:
        before = _take(_FORK)
        assert before is not None
        _before_fork_held.append(before)


def _after_fork() -> None:
    if _before_fork_held:
        _give_back(_before_fork_held.pop())


def _after_fork_in_child() -> None:
    lock.waiting.clear()
    _after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child
    )


if _public_only:
    call = call_long = _public_call("pg_call", 0)
    call2: Callable[..., None] = _public_call("pg_call2", 4)
    call2_long = call2
    call2_places: tuple[Any, ...] = ()
else:
    call, call_long = _raw_call(ctypes.PyDLL, "pg_call", 1), _raw_call(ctypes.CDLL, "pg_call", 1)
    # A tuple handed over as it is takes less time than `partial` does to make one.
    _call2, _call2_long = (
        _raw_call(ctypes.PyDLL, "pg_call2", 4),
        _raw_call(ctypes.CDLL, "pg_call2", 4),
    )
    call2, call2_long, call2_places = _call2.func, _call2_long.func, _call2.args


def trapped() -> _errors.EngineError:
    """The error for a call that the engine did not survive, then and ever after."""
    global unusable
    if unusable is None:
        unusable = "the engine trapped"
        if ctypes.cast(_trap, ctypes.c_void_p).value is not None:
            unusable = str(wasmtime.Trap._from_ptr(_trap))
    _turn_to(0)  # every call asks `_take`, which refuses
    return _errors.EngineError(f"pygrad: the engine is unusable: {unusable}")


RELEASE_AT: Final = frame + layout["frame_release"]
_RELEASE_WORD: Final = RELEASE_AT >> 3
N_RELEASE: Final = frame + 7
FIRST_RELEASE: Final = (frame + 16) >> 3
DATA: Final = frame + layout["frame_data"]
DATA_BYTES: Final = layout["data_bytes"]
_FRAME_END: Final = DATA + DATA_BYTES
KEYWORDS: Final = (frame + layout["frame_keywords"]) >> 2
RESULT: Final = (frame + layout["frame_result"]) >> 3
RESULT_TAG: Final = (frame + layout["frame_result_tag"]) >> 2
MESSAGE: Final = (frame + layout["frame_message"]) >> 2
WORK: Final = (frame + layout["frame_work"]) >> 2
DUAL_LEVELS: Final = (frame + layout["frame_dual_levels"]) >> 2
MAX_RELEASE: Final = layout["max_release"]


def hand_over(first: int) -> int:
    """Writes released handles into the frame; returns their number for its header. The engine is
    taken.

    Args:
        first: how many the caller has written already, 0 or 1.
    """
    if not first and released:
        words[FIRST_RELEASE] = released.pop()
        first = 1
    n = first
    while released and n <= MAX_RELEASE:
        words[_RELEASE_WORD + n - 1] = released.pop()
        n += 1
    return n


def hand_over_rest() -> None:
    """Writes released handles into the frame for `call2`. The engine is taken."""
    memory[N_RELEASE] = hand_over(0)


def drain() -> None:
    """Releases every handle whose object is gone, without waiting for the next call."""
    if lock.free is not None:
        kept.clear()
    holding(_release_all)


def _release_all() -> None:
    while released:
        memory[N_RELEASE] = hand_over(0)
        _release()
        if not released:
            _forget_dropped()


def drain_if_idle() -> bool:
    """`drain`, unless the engine is in use: nothing is waited for.

    Returns: whether it did.
    """
    if trap_slot[0] or lock.free is None:
        return False
    if lock.held is None:  # else a callback may be about to return what is kept
        kept.clear()
    return holding(_release_all, wait=False) is not _IN_USE


watched: Final[set[int]] = set()
"""Numbers of objects that nodes hold: while there are some, whoever may have held the last
reference to a node calls `drain_if_idle`, so that these objects go when they would in PyTorch. And
of what is noted on tensors of the engine, for which those who have one look when they go.
"""
atexit.register(watched.clear)  # then nobody looks into memory that may be gone


def live_count() -> int:
    """Live tensors and nodes of the engine."""
    drain()
    return int(holding(_public["pg_live_count"], _store))


_N_WARNINGS: Final = (frame + layout["frame_n_warnings"]) >> 2
_N_DROPPED: Final = (frame + layout["frame_n_dropped"]) >> 2
_DROPPED: Final = (frame + layout["frame_dropped"]) >> 2


def _forget_dropped() -> None:
    """Lets go of what the engine needs no more of ours. The engine is taken."""
    while n := ints[_N_DROPPED]:
        at = unsigned[_DROPPED] >> 2
        idents = ints[at : at + n].tolist()
        ints[_N_DROPPED] = 0
        for ident in idents:
            on_dropped(ident)  # type: ignore[misc]


def _take_warnings() -> list[str]:
    """What is to be warned of. The engine is taken."""
    texts = queued_warnings[:]
    queued_warnings.clear()
    _forget_dropped()
    while address := _next_warning():
        texts.append(text_at(address))
    return texts


_FOLDER: Final = os.path.dirname(__file__) + os.sep


def user_level() -> int:
    """The `stacklevel` with which the caller's warning points out of this package."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_FOLDER):
        frame, level = frame.f_back, level + 1
    return level


def collect_pending(beside_an_error: bool = False) -> None:
    """Warnings to raise and callbacks to forget that the engine has queued.

    Args:
        beside_an_error: print what a filter makes an error of: another error is to be raised.
    """
    if lock.free is None and lock.user == get_ident():
        _forget_dropped()
        texts = _take_warnings() if ints[_N_WARNINGS] or queued_warnings else []
    else:
        texts = holding(_take_warnings)
    for text in texts:
        try:
            warnings.warn(text, UserWarning, stacklevel=user_level())
        except UserWarning:
            if not beside_an_error:
                raise
            traceback.print_exc()


def failure(code: int) -> BaseException:
    """The exception for a negative result of pg_call; the engine is taken."""
    global _host_error
    name = status_names[-code]
    if name == "host":
        error, _host_error = _host_error, None
        while len(_idle) < FEW_IDLE:  # that error ended one
            _make_host()
        return error if error is not None else RuntimeError("pygrad: a callback was interrupted")
    return _errors.BY_NAME[name](text_at(unsigned[MESSAGE]))


def intern(name: str) -> int:
    """The engine's id for a keyword; those of the table are shorter than the part that it reads."""
    return int(holding(_intern, name[:256].encode() + b"\0"))


def _intern(raw: bytes) -> int:
    memory[DATA : DATA + len(raw)] = raw
    return int(_public["pg_intern"](_store))


def describe() -> list[tuple[frozenset[str], str]]:
    """The op table: (words, schema) of each row; the words are those of wasm_core/call/row.h."""
    rows: list[tuple[frozenset[str], str]] = []
    while address := _describe(len(rows)):
        words, _, schema = text_at(address).partition(" ")
        rows.append((frozenset(words.split("|")), schema))
    return rows


status_names: Final[list[str]] = []
while _address := _ask_status_name(len(status_names) or 1):
    if not status_names:
        status_names.append("OK")
    status_names.append(text_at(_address))
