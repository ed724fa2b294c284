"""Functions during which no signal handler runs, for places where its exception would be lost."""

from __future__ import annotations

from opcode import opmap
from types import FunctionType
from typing import Final, TypeVar

_F = TypeVar("_F")
_BEGIN: Final = bytes((opmap["RESUME"], 0))
_AFTER_YIELD_FROM: Final = bytes((opmap["RESUME"], 2))


def skip_entry_interrupts(function: _F) -> _F:
    """Marks a function at whose beginning the interpreter shall neither run handlers of signals nor
    let other threads run. The interpreter may do so after calls too, so the function makes none
    where it matters.

    An exception raised in a finalizer, or in a callback of the garbage collector, is printed and
    dropped: Ctrl-C at the first line of one would stop nothing. CPython marks the beginning of a
    function by the instruction RESUME, whose argument gives the reason; after `yield from` it does
    not check.
    """
    assert isinstance(function, FunctionType)
    code = function.__code__
    instructions = code.co_code
    at = next(
        (k for k in range(0, len(instructions), 2) if instructions[k : k + 2] == _BEGIN), None
    )
    if at is not None:
        changed = instructions[:at] + _AFTER_YIELD_FROM + instructions[at + 2 :]
        function.__code__ = code.replace(co_code=changed)
    return function
