"""From Python values to a frame and back: one crossing a call.

`invoke` takes any op and any arguments; `binary` and `unary` make faster functions for the operators.
What an argument may be, which overload it selects and what an error says is the engine's business:
this module only says of each value what it is.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from . import _engine as e
from ._dtypes import BY_CODE, Size, device, dtype, layout, memory_format

if TYPE_CHECKING:
    from ._tensor import Tensor

K_TENSOR, K_INT, K_FLOAT, K_BOOL, K_NONE, K_STR, K_LIST, K_DTYPE, K_NAME, K_INDEX, K_GENERATOR, K_OTHER = range(12)

KINDS: Final[dict[type, int]] = {
    int: K_INT,
    float: K_FLOAT,
    bool: K_BOOL,
    type(None): K_NONE,
    str: K_STR,
    list: K_LIST,
    tuple: K_LIST,
    Size: K_LIST,
    dtype: K_DTYPE,
    device: K_NAME,
    layout: K_NAME,
    memory_format: K_NAME,
}
"""What each type is to the engine; subclasses are added when first seen."""

new_tensor: Callable[[int], Tensor]
_tensor_type: type = object
_new: Callable[[type], Any] = object.__new__
_keywords: dict[str, int] = {}
_I64_MIN, _I64_MAX = -(1 << 63), (1 << 63) - 1


class Index:
    """An argument of ``__getitem__`` as the engine's words; see ops/index.def."""

    __slots__ = ("keep", "words")

    def __init__(self, items: list[int], keep: list[Any]) -> None:
        self.words = items
        self.keep = keep


class GeneratorArgument:
    """What a Generator shows of itself to the engine."""

    __slots__ = ()
    _id: int


KINDS[Index] = K_INDEX


def adopt_tensor(kind: type) -> None:
    """Tells this module the Tensor class, which needs this module first."""
    global _tensor_type
    _tensor_type = kind
    KINDS[kind] = K_TENSOR


def _kind_of(value: Any) -> int:
    """The kind of a value whose exact type is new; remembered."""
    kind = type(value)
    found = K_OTHER
    if isinstance(value, _tensor_type):
        found = K_TENSOR
    elif isinstance(value, GeneratorArgument):
        found = K_GENERATOR
    elif isinstance(value, bool):
        found = K_BOOL
    elif isinstance(value, int):
        found = K_INT
    elif isinstance(value, float):
        found = K_FLOAT
    elif isinstance(value, str):
        found = K_STR
    elif isinstance(value, (tuple, list)):
        found = K_LIST
    elif type(value).__module__ == "numpy" and hasattr(value, "dtype") and not hasattr(value, "__len__"):
        found = {"i": K_INT, "u": K_INT, "f": K_FLOAT, "b": K_BOOL}.get(value.dtype.kind, K_OTHER)
    KINDS[kind] = found
    return found


class _Frame:
    """Where the next list or text of the call being written goes."""

    __slots__ = ("at",)


_area = _Frame()


def _room(n_bytes: int) -> int:
    at = _area.at
    end = at + ((n_bytes + 7) & ~7)
    if end > e.DATA + e.DATA_BYTES:
        raise ValueError(f"pygrad: the lists of one call may hold {e.DATA_BYTES} bytes in all")
    _area.at = end
    return at


def _write_words(values: Sequence[int]) -> int:
    at = _room(8 * len(values))
    for i, value in enumerate(values, at >> 3):
        e.words[i] = value
    return at | len(values) << 32


def _write_text(text: str) -> int:
    raw = text.encode() + b"\0"
    at = _room(len(raw))
    e.memory[at : at + len(raw)] = raw
    return at


def _write_list(value: Sequence[Any], k: int) -> int:
    """A list of one kind of thing; anything else is OTHER, with a name for the error message."""
    get = KINDS.get
    kinds = {get(type(item)) for item in value}
    if None in kinds:
        kinds = {_kind_of(item) for item in value}
    if kinds <= {K_INT}:
        e.words[k] = _write_words(value)
        return e.INTS
    if K_TENSOR in kinds and kinds <= {K_TENSOR, K_NONE}:
        e.words[k] = _write_words([0 if item is None else item._h for item in value])
        return e.TENSORS
    if kinds <= {K_NONE}:
        e.words[k] = _write_words([0] * len(value))
        return e.TENSORS
    if kinds <= {K_INT, K_FLOAT}:
        at = _room(8 * len(value))
        struct.pack_into(f"<{len(value)}d", e.memory, at, *value)
        e.words[k] = at | len(value) << 32
        return e.FLOATS
    if kinds <= {K_BOOL}:
        e.words[k] = _write_words([int(item) for item in value])
        return e.BOOLS
    if kinds <= {K_INT, K_TENSOR, K_BOOL}:
        try:
            e.words[k] = _write_words([item.__index__() for item in value])
            return e.INTS
        except TypeError:
            pass
    shown = next((type(item).__name__ for item in value if get(type(item)) in (None, K_OTHER, K_STR)), "object")
    e.words[k] = _write_text(f"{type(value).__name__} of {shown}")
    return e.OTHER


def _encode(value: Any, k: int) -> int:
    """Writes one value into slot k; returns its tag. For all but the commonest kinds."""
    kind = KINDS.get(type(value))
    if kind is None:
        kind = _kind_of(value)
    if kind == K_TENSOR:
        e.words[k] = value._h
        return e.TENSOR
    if kind == K_INT:
        value = int(value)
        if not _I64_MIN <= value <= _I64_MAX:
            raise OverflowError("Overflow when unpacking long long")
        e.words[k] = value
        return e.INT
    if kind == K_FLOAT:
        e.doubles[k] = float(value)
        return e.FLOAT
    if kind == K_BOOL:
        e.words[k] = bool(value)
        return e.BOOL
    if kind == K_NONE:
        return e.NONE
    if kind == K_LIST:
        return _write_list(value, k)
    if kind == K_STR:
        e.words[k] = _write_text(value)
        return e.STR
    if kind == K_DTYPE:
        e.words[k] = value.code
        return e.DTYPE
    if kind == K_NAME:
        e.words[k] = _write_text(value.name if isinstance(value, (layout, memory_format)) else str(value))
        return e.STR
    if kind == K_INDEX:
        e.words[k] = _write_words(value.words)
        return e.INDEX
    if kind == K_GENERATOR:
        e.words[k] = value._id
        return e.GENERATOR
    if value is float or value is int or value is bool:
        e.words[k] = {float: 6, int: 4, bool: 11}[value] if value is not float else default_dtype_code()
        return e.DTYPE
    e.words[k] = _write_text(type(value).__qualname__)
    return e.OTHER


def default_dtype_code() -> int:
    """The code of the default floating dtype."""
    return int(invoke(ROWS["get_default_dtype"], 0, (), {}).code)


ROWS: Final[dict[str, int]] = {}
"""The first row of each op name."""

LONG: Final[set[int]] = set()
"""Rows that may take long: other threads run meanwhile."""

NAMED_RESULTS: Final[dict[int, Callable[[Sequence[Any]], Any]]] = {}
"""Row -> maker of the named tuple that its schema promises."""


def invoke(row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Calls the op that starts at `row` in the table.

    Raises: whatever the engine says, with PyTorch's type and message.
    """
    e.acquire()
    try:
        words, get, encode = e.words, KINDS.get, _encode
        _area.at = e.DATA
        k, shift, tags = e.SLOTS, 0, 0
        n_args = len(args) + len(kwargs)
        if n_args > 16:
            args, kwargs = _gather_varargs(args), kwargs
            n_args = len(args) + len(kwargs)
        for value in args:
            if get(type(value)) == 0:
                words[k] = value._h
                tags |= 2 << shift
            else:
                tags |= encode(value, k) << shift
            k += 1
            shift += 4
        n_keywords = 0
        for name, value in kwargs.items():
            at = _keywords.get(name)
            if at is None:
                at = _keywords[name] = _intern(name)
            e.ints[e.KEYWORDS + n_keywords] = at
            n_keywords += 1
            tags |= encode(value, k) << shift
            k += 1
            shift += 4
        n = e.hand_over(0) if e.released else 0
        e.pack_header(e.memory, e.frame, row, len(args), n_keywords, mode, n, tags)
        if (e.call_long if row in LONG else _call)() is not None:
            raise e.trapped()
        r = _result[0]
        if 0 < r < 4294967296:
            if args and get(type(args[0])) == 0:
                first = args[0]
                if r == first._h:
                    e.released.append(r)
                    return first
                out = _new(_tensor_type)
                out._h = r
                meta = e.unsigned[(r + _META) >> 2]
                if meta and e.unsigned[(meta + _BASE) >> 2] == first._h:
                    out._b = first
                return out if not kwargs else _out_or(out, kwargs)
            out = _new(_tensor_type)
            out._h = r
            return out if not kwargs else _out_or(out, kwargs)
        return _finish(r, row, args, kwargs)
    finally:
        e.unlock()


_META = e.layout["meta"]
_BASE = e.layout["meta_base"]


def _intern(name: str) -> int:
    saved = bytes(e.memory[e.DATA : e.DATA + len(name) + 1])  # a list of this call may stand there
    at = e.intern(name)
    e.memory[e.DATA : e.DATA + len(saved)] = saved
    return at


def _gather_varargs(args: Sequence[Any]) -> Sequence[Any]:
    """x.view(1, 2, ..., 20): more sizes than slots, as one tuple."""
    n = sum(not isinstance(a, int) for a in args[:2])
    return (*args[:n], tuple(args[n:]))


def _out_or(result: Tensor, kwargs: dict[str, Any]) -> Tensor:
    """The caller's own object if the result is what was passed as out=."""
    out = kwargs.get("out")
    return out if out is not None and getattr(out, "_h", 0) == result._h else result


def wrap(handle: int) -> Tensor:
    """A Tensor that owns the reference the engine gave with a handle."""
    out = _new(_tensor_type)
    out._h = handle
    return out  # type: ignore[no-any-return]


def _finish(r: int, row: int, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """Results that are not one plain tensor, failures, and what waits for the host."""
    if r < 0:
        error = e.failure(r)
        raise error from None
    pending = r >= e.PENDING
    r &= e.PENDING - 1
    result: Any
    if r:
        if args and getattr(args[0], "_h", 0) == r:
            e.released.append(r)
            result = args[0]
        else:
            result = _out_or(wrap(r), kwargs)
    else:
        result = _read_result(row, kwargs)
    if pending:
        e.collect_pending()
    return result


def _read_result(row: int, kwargs: dict[str, Any]) -> Any:
    tag, n = e.ints[e.RESULT_TAG], e.ints[e.RESULT_TAG + 1]
    value = e.words[e.RESULT]
    if tag == e.NONE:
        return None
    if tag == e.INT:
        return value
    if tag == e.FLOAT:
        return e.doubles[e.RESULT]
    if tag == e.BOOL:
        return value != 0
    if tag == e.DTYPE:
        return BY_CODE[value]
    if tag == e.STR:
        return e.text_at(value)
    handles = e.words[value >> 3 : (value >> 3) + n].tolist()
    if tag == e.INTS:
        return handles
    outs = kwargs.get("out")
    known = {t._h: t for t in outs} if isinstance(outs, (tuple, list)) else {}
    items = []
    for handle in handles:
        if handle in known:
            e.released.append(handle)
            items.append(known[handle])
        else:
            items.append(wrap(handle) if handle else None)
    named = NAMED_RESULTS.get(row)
    return named(items) if named else tuple(items)


# ------------------------------------------------------------------ fast operators

_pack_ints = struct.Struct("<QQqqq").pack_into
_pack_double = struct.Struct("<QQqqd").pack_into
_pack_one = struct.Struct("<QQqq").pack_into
_TT = e.TENSOR | e.TENSOR << 4
_TI = e.TENSOR | e.INT << 4
_TF = e.TENSOR | e.FLOAT << 4
_TB = e.TENSOR | e.BOOL << 4
_ONE_RELEASED = 1 << 56
# Globals of this module are the fastest to load; attributes of another cost a little more.
_acquire, _unlock, _call, _result = e.acquire, e.unlock, e.call, e.result_slot
_released, _pop, _get_kind = e.released, e.released.pop, KINDS.get
_memory, _frame = e.memory, e.frame


def _header(row: int, positional: int, mode: int) -> int:
    """The first eight bytes of a frame; the number of released handles is added in the top byte."""
    return row | positional << 32 | mode << 48


def binary(row: int, mode: int = e.METHOD) -> Callable[[Any, Any], Any]:
    """A function (tensor, tensor or number) -> tensor for an op, with as little Python as it takes."""
    header = _header(row, 2, mode)

    def call_binary(self: Any, other: Any) -> Any:
        kind = _get_kind(type(other))
        if kind is None or kind > 3:
            if kind is None and _kind_of(other) < 4:
                return invoke(row, mode, (self, other), {})
            return NotImplemented
        _acquire()
        try:
            if _released:
                dead = _pop()
                head = header + (_ONE_RELEASED * e.hand_over(1) if _released else _ONE_RELEASED)
            else:
                dead, head = 0, header
            if kind == 0:
                _pack_ints(_memory, _frame, head, _TT, dead, self._h, other._h)
            elif kind == 2:
                _pack_double(_memory, _frame, head, _TF, dead, self._h, other)
            else:
                if not _I64_MIN <= other <= _I64_MAX:
                    _released.append(dead)
                    raise OverflowError("Overflow when unpacking long long")
                _pack_ints(_memory, _frame, head, _TI if kind == 1 else _TB, dead, self._h, other)
            if _call() is not None:
                raise e.trapped()
            r = _result[0]
            if 0 < r < 4294967296 and r != self._h:
                out = _new(_tensor_type)
                out._h = r
                return out
            return _finish(r, row, (self, other), {})
        finally:
            _unlock()

    return call_binary


def unary(row: int, mode: int = e.METHOD) -> Callable[[Any], Any]:
    """A function tensor -> tensor for an op."""
    header = _header(row, 1, mode)

    def call_unary(self: Any) -> Any:
        _acquire()
        try:
            if _released:
                dead = _pop()
                head = header + (_ONE_RELEASED * e.hand_over(1) if _released else _ONE_RELEASED)
            else:
                dead, head = 0, header
            _pack_one(_memory, _frame, head, e.TENSOR, dead, self._h)
            if _call() is not None:
                raise e.trapped()
            r = _result[0]
            if 0 < r < 4294967296 and r != self._h:
                out = _new(_tensor_type)
                out._h = r
                return out
            return _finish(r, row, (self,), {})
        finally:
            _unlock()

    return call_unary


def command(row: int, *flags: bool) -> Callable[[Any], None]:
    """A function of a tensor that returns nothing: an op with its boolean arguments filled in."""
    header = _header(row, 1 + len(flags), 0)
    tags = e.TENSOR | sum(e.BOOL << (4 * (i + 1)) for i in range(len(flags)))
    fixed = tuple(map(int, flags))
    pack = struct.Struct(f"<QQqq{len(flags)}q").pack_into
    call = e.call_long if row in LONG else e.call

    def run_command(self: Any) -> None:
        _acquire()
        try:
            if _released:
                dead = _pop()
                head = header + (_ONE_RELEASED * e.hand_over(1) if _released else _ONE_RELEASED)
            else:
                dead, head = 0, header
            pack(_memory, _frame, head, tags, dead, self._h, *fixed)
            if call() is not None:
                raise e.trapped()
            r = _result[0]
            if r:
                _finish(r, row, (self,), {})
        finally:
            _unlock()

    return run_command
