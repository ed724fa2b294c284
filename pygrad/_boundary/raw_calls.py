"""Two ways to call the engine's exports through wasmtime, with one interface.

`RawCalls` uses `wasmtime_func_call_unchecked` by `ctypes.PyDLL`: about a microsecond, where
wasmtime's own `Func.__call__` takes fifty. The signatures it would check were checked once, at
load. It needs names of wasmtime that are not public, so they are probed at import, and
`PublicCalls`, which needs none, is used where a version lacks them or has changed them.
``PYGRAD_PUBLIC_CALL=1`` asks for it.

Both have

    slots, result_slot, double_slot   the parameters of a call, 16 bytes each; the first is also
                                      the result's place
    trap_slot                         not 0 once a call has trapped, and ever after
    host_function(resume)             the function that the engine calls back
    prepare(function, n, lets)        a call of an export with n slots, and its arguments
    scalar(function)                  a call of an export of one number or none
    reason_of_trap()                  wasmtime's message for the trap
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import wasmtime

from .notices import warn

Call = tuple[Callable[..., None], tuple[Any, ...]]
"""A function, and the arguments to call it with."""
_I32: Final = wasmtime.ValType.i32()
_Plain, _Answering = ctypes.CFUNCTYPE(None), ctypes.CFUNCTYPE(ctypes.c_void_p)
_SLOT: Final = 16
_MOST_PARAMETERS: Final = 4


def _host_type() -> wasmtime.FuncType:
    return wasmtime.FuncType([_I32, _I32, _I32], [_I32])


def _plain_is_null() -> bool:
    """Whether C code that takes the result of a callback without one gets NULL. True where libffi
    leaves the kind of the result, 0 for none, in the result register; where libffi fills the
    register from memory, C reads the result of the callback before.
    """
    return _Answering(lambda: 1)() == 1 and ctypes.cast(_Plain(int), _Answering)() is None


class RawCalls:
    """Calls through wasmtime's C interface.

    Raises: AttributeError, TypeError, ValueError, ctypes.ArgumentError: this version of wasmtime
        has not the names that are needed, or has others' contents under them.
    """

    lets_threads_run = True

    def __init__(self, store: wasmtime.Store) -> None:
        from wasmtime import _bindings

        self._bindings = _bindings
        self._slot = (_bindings.wasmtime_val_raw_t * _MOST_PARAMETERS)()
        if ctypes.sizeof(self._slot) != _SLOT * _MOST_PARAMETERS:
            raise TypeError("a parameter has not 16 bytes")
        self.slots = memoryview(self._slot).cast("B")
        self.result_slot = self.slots.cast("q")
        self.double_slot = self.slots.cast("d")
        self._trap = ctypes.POINTER(_bindings.wasm_trap_t)()
        self.trap_slot = memoryview(self._trap).cast("B").cast("q")
        self._context = store._context()
        self._library = wasmtime._ffi.dll._name
        self._callbacks: list[Any] = []
        self._aside = (_bindings.wasmtime_val_raw_t * 1)()
        self._answer = memoryview(self._aside).cast("B").cast("I")
        """The slot of `scalar`, apart from the slots, which may hold a result to be read."""

    def host_function(self, resume: Callable[[], Any]) -> wasmtime.Func:
        # The callback of wasmtime, which expects a trap or NULL. ctypes prints an exception that
        # escapes from a generator, and the engine was told in advance that the callback failed;
        # but a callback with an answer would then return a random address. It takes none of C's
        # four parameters: the caller removes them.
        callback: Any = _Plain(resume)
        if not _plain_is_null():
            # This form fails if Python's recursion limit is reached at the inner call.
            callback = _Answering(ctypes.PYFUNCTYPE(None)(resume))
        bindings, kind = self._bindings, _host_type()
        in_c = ctypes.cast(callback, bindings.wasmtime_func_unchecked_callback_t)
        self._callbacks += callback, in_c
        raw = bindings.wasmtime_func_t()
        no_finalizer = ctypes.cast(0, ctypes.CFUNCTYPE(None, ctypes.c_void_p))
        bindings.wasmtime_func_new_unchecked(
            self._context, kind.ptr(), in_c, None, no_finalizer, ctypes.byref(raw)
        )
        return wasmtime.Func._from_raw(raw)

    def _prepared(
        self, function: wasmtime.Func, n_slots: int, lets_threads_run: bool, at: Any
    ) -> partial[None]:
        """An export's raw call with every pointer prepared."""
        loader = ctypes.CDLL if lets_threads_run else ctypes.PyDLL
        call = loader(self._library).wasmtime_func_call_unchecked
        call.restype = None
        # Without argtypes, the results of `from_param` are passed unconverted: half the time of
        # ctypes objects.
        pointer = ctypes.c_void_p.from_param
        return partial(
            call,
            pointer(ctypes.cast(self._context, ctypes.c_void_p).value),
            pointer(ctypes.addressof(function._func)),
            pointer(ctypes.addressof(at)),
            ctypes.c_size_t.from_param(n_slots),
            pointer(ctypes.addressof(self._trap)),
        )

    def prepare(
        self, function: wasmtime.Func, n_parameters: int, lets_threads_run: bool = False
    ) -> Call:
        # Passing a ready tuple takes less time than `partial` takes to build one.
        call = self._prepared(function, max(n_parameters, 1), lets_threads_run, self._slot)
        return call.func, call.args

    def scalar(self, function: wasmtime.Func) -> Callable[..., int]:
        answer, raw = self._answer, self._prepared(function, 1, False, self._aside)

        def ask(parameter: int = 0) -> int:
            answer[0] = parameter
            raw()
            return answer[0]

        return ask

    def reason_of_trap(self) -> str:
        if ctypes.cast(self._trap, ctypes.c_void_p).value is None:
            return "the engine trapped"
        return str(wasmtime.Trap._from_ptr(self._trap))


class PublicCalls:
    """Calls through wasmtime's public classes, which keep Python's lock."""

    lets_threads_run = False

    def __init__(self, store: wasmtime.Store) -> None:
        self._store = store
        self.slots = memoryview(bytearray(_SLOT * _MOST_PARAMETERS))
        self.result_slot = self.slots.cast("q")
        self.double_slot = self.slots.cast("d")
        self.trap_slot = memoryview(bytearray(8)).cast("q")
        self._reason = "the engine trapped"

    def host_function(self, resume: Callable[[], Any]) -> wasmtime.Func:
        def call_host(*_: int) -> int:
            resume()
            return 0

        return wasmtime.Func(self._store, _host_type(), call_host)

    def prepare(
        self, function: wasmtime.Func, n_parameters: int, lets_threads_run: bool = False
    ) -> Call:
        def call() -> None:
            try:
                parameters = self.result_slot[: 2 * n_parameters : 2].tolist()
                self.result_slot[0] = function(self._store, *parameters)
            except wasmtime.Trap as trap:
                self._reason = str(trap)
                self.trap_slot[0] = 1

        return call, ()

    def scalar(self, function: wasmtime.Func) -> Callable[..., int]:
        return partial(function, self._store)

    def reason_of_trap(self) -> str:
        return self._reason


def _probed(store: wasmtime.Store) -> RawCalls:
    """Raw calls, after one that calls back.

    Raises: as `RawCalls`.
    """
    calls, heard = RawCalls(store), list[None]()
    call, arguments = calls.prepare(calls.host_function(lambda: heard.append(None)), 3)
    call(*arguments)
    if len(heard) != 1 or calls.trap_slot[0]:
        raise TypeError("a callback was not called once")
    return calls


def calls_of(store: wasmtime.Store) -> RawCalls | PublicCalls:
    """The fastest calls that this version of wasmtime has, with a warning if they are slow."""
    if os.environ.get("PYGRAD_PUBLIC_CALL", "0") == "1":
        return PublicCalls(store)
    try:
        return _probed(store)
    except (AttributeError, TypeError, ValueError, ImportError, ctypes.ArgumentError) as error:
        warn(
            f"pygrad does not know this version of wasmtime ({error}): a call takes some 50 us "
            "more, and a long one lets no other thread run"
        )
        return PublicCalls(store)
