"""The fast ways into the engine, written once: `make stubs` writes shapes.py from the templates
here.

A call costs about a microsecond; each frame of Python would add a tenth. So the common steps of
every fast way (test that the engine is free and this thread's, hand over a released handle, write
the slots, call, make an object of the result) are one text here, with places for the differences.
Each way in shapes.py is plain source, which tracebacks and debuggers show.

A thread that owns the engine and finds it free takes it, in this order: `_mine` is a call, after
which other threads may run; a read or a write of a field is none. All other cases take the slow
way.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).parent.parent.parent / "pygrad" / "_boundary" / "shapes.py"

_CROSS: Final = """\
if {guard}(key := _lock.free) and _mine() and _lock.free is key:
    _lock.free = None
    try:
        {write}
        _slot[2] = _pop() if _released else 0
        if _released:
            _hand_over_rest()
        try:
            _call2(*_call2_places)
            r = _slot[0]{mark}
            if r < _FRESH:
                out = _make()
                out._h = r
                {base}
                return out
        except BaseException:
            _release_unclaimed()
            raise
        {otherwise}
    finally:
        _lock.free = key
return {slow}
"""
"""The crossing itself.

Places:
    guard: further conditions. write: fills the slots except the second, which is for a released
    handle. mark: clears the view bit of the result. base: sets the result's base.
    otherwise: handles any other result. slow: the call for all other cases.
"""

_SLOTS: Final = """\
_slot[0] = {head}
_slot[4] = {first}
{second}
"""


def _fill(text: str, **places: str) -> str:
    """The text with its places filled: each line of a filling gets the place's indentation; a line
    with only an empty place is dropped.
    """

    def fill(line: str) -> str:
        found = re.fullmatch(r"( *)\{(\w+)\}", line)
        if found is None:
            return re.sub(r"\{(\w+)\}", lambda place: places[place[1]], line)
        filling = places[found[2]].rstrip("\n")
        return "\n".join(found[1] + each for each in filling.split("\n")) if filling else ""

    lines = (fill(line) for line in text.rstrip("\n").split("\n"))
    return "\n".join(line for line in lines if line.strip())


def _cross(write: str, slow: str, otherwise: str, **places: str) -> str:
    rest = {"guard": "", "mark": "", "base": "", **places}
    return _fill(_CROSS, write=write, slow=slow, otherwise=otherwise, **rest)


def _slots(head: str, first: str, second: str) -> str:
    return _fill(_SLOTS, head=head, first=first, second=second)


_BINARY: Final = '''\
def _pair(
    row: int, mode: int, numbers: bool = True, *part_of: Any
) -> tuple[Callable[[Any, Any], Any], Callable[[Any, Any], Any]]:
    """`binary`, and what it uses for other things than tensors; `part_of`: the function that they
    are parts of, if it is not that one.
    """
    tensors = _head(row, mode, TENSOR, TENSOR)
    with_int = _head(row, mode, TENSOR, INT)
    with_float = _head(row, mode, TENSOR, FLOAT)

    def call_with_number(self: Any, other: Any) -> Any:
        kind = type(other)
        if kind is not float and (kind is not int or not -_FRESH < other < _FRESH):
            return otherwise(self, other)
        {number}

    def call_binary(self: Any, other: Any) -> Any:
        if type(self) is not _tensor_type and _get_kind(type(self)) != K_TENSOR:
            return otherwise(self, other)
        if type(other) is not _tensor_type and _get_kind(type(other)) != K_TENSOR:
            return call_with_number(self, other)
        {tensor}

    # Each name of this function that the others use costs their calls a nanosecond or two.
    (itself,) = part_of or (call_binary,)
    otherwise = partial(operate, row, mode, itself, numbers)
    if not numbers:
        call_with_number = otherwise
    return call_binary, call_with_number
'''

_FUNCTION: Final = '''\
def function(row: int, mode: int, bound: bool = False, private: bool = False) -> Callable[..., Any]:
    """A function of any arguments for an op. It is quick for one tensor, and for a tensor with
    another, a float or an int. If `bound`, it ignores a first argument before them. If `private`,
    it asks no argument's ``__torch_function__``.
    """
    head = _head(row, mode, TENSOR)
    with_tensor: Callable[[Any, Any], Any]
    call_with_number: Callable[[Any, Any], Any]

    # Few functions ever get a second operand: the first such call makes the functions for it.
    def first(self: Any, other: Any) -> Any:
        nonlocal with_tensor, call_with_number
        with_tensor, call_with_number = _pair(row, mode, True, itself)
        return with_tensor(self, other)

    with_tensor = call_with_number = first

    def call(*args: Any, **kwargs: Any) -> Any:
        {body}

    if not bound:
        itself = None if private else call
        return call

    # The body stands here a second time: a call of `call`, or a slice of args, would take time.
    def call_bound(_: Any, /, *args: Any, **kwargs: Any) -> Any:
        {body}

    itself = None if private else call_bound
    return call_bound
'''

_INDEXED: Final = '''\
def indexer(row: int, otherwise: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """A function (tensor, index) -> view for the op behind ``x[i]``; `otherwise` takes an
    index that is not an int.
    """
    head = _head(row, METHOD, TENSOR, INT)

    def call_indexed(self: Any, index: Any) -> Any:
        if type(index) is not int:
            return otherwise(self, index)
        if type(self) is not _tensor_type and _get_kind(type(self)) != K_TENSOR:
            return otherwise(self, index)
        {body}

    return call_indexed
'''

_SUBSCRIPT: Final = '''\
def subscript(row: int) -> Callable[[Any, Index], Any]:
    """A function (tensor, index) -> view or copy for the op behind ``x[...]``."""
    head = _head(row, METHOD, TENSOR, INDEX)
    at = _DATA

    def call_subscript(self: Any, index: Index) -> Any:
        words = index.words
        n = len(words)
        {body}

    return call_subscript
'''

_MAKER: Final = '''\
def maker(row: int) -> Callable[[Sequence[int], dtype | None], Any]:
    """A function (sizes, dtype or None for the default) -> fresh tensor for an op of these."""
    heads = _head(row, 0, INTS, NONE), _head(row, 0, INTS, DTYPE)

    def make(sizes: Sequence[int], kind: dtype | None) -> Any:
        n = len(sizes)
        {body}

    return make
'''

_NUMBER: Final = """\
if kind is float:
    {with_float}
else:
    {with_int}
"""
_WRITE_SIZES: Final = """\
WORDS[n].pack_into(_memory, _DATA, *sizes)
_slot[4] = _DATA | n << 32
if kind is None:
    _slot[0], _slot[6] = heads[0], 0
else:
    _slot[0], _slot[6] = heads[1], kind.code
"""
_CHOOSE: Final = """\
n = len(args)
if kwargs or not 0 < n < 3 or _get_kind(type(args[0])) != K_TENSOR:
    return invoke(row, mode, args, kwargs, itself)
if n == 2:
    kind = type(args[1])
    if kind is float or kind is int:
        return call_with_number(*args)
    if kind is _tensor_type:
        return with_tensor(*args)
    return invoke(row, mode, args, kwargs, itself)
"""
_HEAD: Final = '''\
"""The fast ways into the engine. Made by `make stubs` from fast_ways.py. Do not edit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from .._ground.dtypes import dtype
from .arguments import K_TENSOR, KINDS, WORDS, Index
from .calls import _head, _other, _release_unclaimed, holders, invoke, operate
from .constants import DTYPE, FLOAT, INDEX, INT, INTS, METHOD, NONE, SELF, TENSOR, VIEW
from .frame import DATA
from .host import call2, call2_places, double_slot, memory, result_slot
from .ownership import lock, mine
from .release import hand_over_rest, released

# Globals of this module are the fastest to load.
_lock, _mine, _memory, _DATA, _SELF, _VIEW = lock, mine, memory, DATA, SELF, VIEW
_released, _pop, _hand_over_rest, _get_kind = released, released.pop, hand_over_rest, KINDS.get
_call2, _call2_places = call2, call2_places
_slot, _double_slot = result_slot, double_slot
_FRESH = (1 << 30) - 1  # below it a result needs no second look, and comparing is fastest
_tensor_type: Any = object
_make: Any = object
"""A Tensor without a handle."""
holders.append(globals())


def binary(row: int, mode: int = METHOD, numbers: bool = True) -> Callable[[Any, Any], Any]:
    """A function (tensor, tensor or number) -> tensor for an operator, with as little Python as it
    takes; `numbers`: whether it takes them.
    """
    return _pair(row, mode, numbers)[0]
'''


def source() -> str:
    """The text of shapes.py."""
    either = {
        "with_float": _slots("with_float", "self._h", "_double_slot[6] = other"),
        "with_int": _slots("with_int", "self._h", "_slot[6] = other"),
    }
    number = _cross(
        _fill(_NUMBER, **either),
        "otherwise(self, other)",
        "return self if r == _SELF else _other(r, with_int, (self, other))",
    )
    tensor = _cross(
        _slots("tensors", "self._h", "_slot[6] = other._h"),
        "otherwise(self, other)",
        "return _other(r, tensors, (self, other))",
    )
    one = _cross(
        _slots("head", "args[0]._h", "_slot[6] = 0"),
        "invoke(row, mode, args, kwargs, itself)",
        "return _other(r, row, args)",
    )
    view = {"mark": " ^ _VIEW", "base": "out._b = self"}
    at_int = _cross(
        _slots("head", "self._h", "_slot[6] = index"),
        "otherwise(self, index)",
        "return _other(r ^ _VIEW, head, (self, index))",
        guard="-_FRESH < index < _FRESH and ",
        **view,
    )
    at_words = _cross(
        "WORDS[n].pack_into(_memory, at, *words)\n"
        + _slots("head", "self._h", "_slot[6] = at | n << 32"),
        "invoke(row, METHOD, (self, index), {})",
        "return _other(r ^ _VIEW, row, (self,))",
        guard="n <= 32 and ",
        **view,
    )
    made = _cross(
        _WRITE_SIZES,
        "invoke(row, 0, (tuple(sizes), kind), {})",
        "return _other(r, row, (None,))",
        guard="n <= 32 and ",
    )
    parts = (
        _HEAD,
        _whole(_BINARY, number=number, tensor=tensor),
        _whole(_FUNCTION, body=_CHOOSE + one),
        _whole(_INDEXED, body=at_int),
        _whole(_SUBSCRIPT, body=at_words),
        _whole(_MAKER, body=made),
    )
    return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)


def _whole(text: str, **places: str) -> str:
    """A function with its places filled; blank lines stay."""

    def fill(found: re.Match[str]) -> str:
        return "\n".join(
            found[1] + line if line else "" for line in places[found[2]].rstrip("\n").split("\n")
        )

    return re.sub(r"^( *)\{(\w+)\}$", fill, text, flags=re.MULTILINE)


def write() -> None:
    """Writes shapes.py."""
    FILE.write_text(source(), encoding="utf-8")
