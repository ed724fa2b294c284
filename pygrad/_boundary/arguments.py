"""Classification of Python values as arguments: a kind, and a tag and a slot of the frame.

The engine decides which arguments are allowed: it gets each value, or for an unknown value the
type's name for an error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._ground.dtypes import Size, device, dtype, layout, memory_format
from . import constants as e
from .frame import DATA, DATA_BYTES
from .host import memory
from .process import of_engines

(
    K_TENSOR,
    K_INT,
    K_FLOAT,
    K_BOOL,
    K_COMPLEX,
    K_NONE,
    K_STR,
    K_LIST,
    K_DTYPE,
    K_NAME,
    K_INDEX,
    K_GENERATOR,
    K_OTHER,
    K_OVERRIDING,
) = range(14)

KINDS: Final[dict[type, int]] = {
    int: K_INT,
    float: K_FLOAT,
    complex: K_COMPLEX,
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
"""The kind of each type; subclasses are added when first seen."""

overrides: Callable[[type], bool] = lambda kind: False  # noqa: E731
"""Whether a type overrides calls; set by `overriding`, which needs this module."""


class Overridden(Exception):
    """An argument overrides the call and must be asked first; nothing has happened yet."""


I64_MIN, I64_MAX = -(1 << 63), (1 << 63) - 1


class Index:
    """An argument of ``__getitem__`` as the engine's words; see ops/index/index.def."""

    __slots__ = ("keep", "words")

    def __init__(self, items: list[int], keep: list[Any]) -> None:
        self.words = items
        self.keep = keep


class GeneratorArgument:
    """The part of a Generator that the engine reads."""

    __slots__ = ()
    _id: int


KINDS.update({Index: K_INDEX, GeneratorArgument: K_GENERATOR})
of_engines[GeneratorArgument] = __name__.partition(".")[0]


def kind_of(value: Any) -> int:
    """The kind of a value whose exact type may be new: the kind of the nearest known base, unless
    the type overrides. Remembered by type.
    """
    kind = type(value)
    if (known := KINDS.get(kind)) is not None:
        return known
    bases = (KINDS.get(base, K_OVERRIDING) for base in kind.__mro__)
    found = next((each for each in bases if each != K_OVERRIDING), K_OTHER)
    if found == K_OTHER and is_numpy_scalar(value):
        found = {"i": K_INT, "u": K_INT, "f": K_FLOAT, "b": K_BOOL, "c": K_COMPLEX}.get(
            value.dtype.kind, K_OTHER
        )
    if found == K_OTHER:
        refuse_foreign(value)
    if overrides(kind):
        found = K_OVERRIDING
    KINDS[kind] = found
    return found


def refuse_foreign(value: Any) -> None:
    """Refuses objects of another engine.

    Raises: TypeError: `value` is a tensor or other object of another engine.
    """
    for base in type(value).__mro__:
        if base in of_engines:
            theirs, mine = of_engines[base], __name__.partition(".")[0]
            if theirs != mine:
                raise TypeError(
                    f"a {type(value).__name__} of {theirs} was given to {mine}: it belongs to "
                    "another engine; copy a tensor by its tolist() or numpy()"
                )


def name_of(kind: type) -> str:
    """The name of a type in errors: with its module if it is written in C."""
    builtin = kind.__flags__ & _MADE_AT_RUN_TIME or kind.__module__ == "builtins"
    return kind.__name__ if builtin else f"{kind.__module__}.{kind.__qualname__}"


_MADE_AT_RUN_TIME = 1 << 9  # Py_TPFLAGS_HEAPTYPE


def is_numpy_scalar(value: Any) -> bool:
    """Whether the value is a NumPy scalar, not an array."""
    return (
        type(value).__module__ == "numpy"
        and hasattr(value, "dtype")
        and not hasattr(value, "__len__")
    )


_as_double = struct.Struct("<d").pack
_as_doubles = struct.Struct("<2d").pack
_as_word = struct.Struct("<q").unpack
WORDS: Final = [struct.Struct(f"<{n}q") for n in range(33)]
"""Packers of n consecutive integers, by n."""


make_block: Callable[[int], tuple[Any, int]] | None = None
"""Allocates bytes of the engine's memory, with their address; set by `blocks`."""


class Blob:
    """Lists and texts of a call on their way to the frame's data area. Data too long for the area
    goes into a block of the engine's memory that lives as long as this object.

    Attributes:
        asks: whether arguments that override are asked: `Overridden` is raised for them.
    """

    __slots__ = ("apart", "asks", "at", "parts")

    def __init__(self, asks: bool = False) -> None:
        self.asks = asks
        self.at = DATA
        self.parts: list[bytes] = []
        self.apart: list[Any] = []

    def add(self, raw: bytes) -> int:
        """Appends bytes; returns their address."""
        at = self.at
        if len(raw) & 7:
            raw += bytes(-len(raw) & 7)
        if at + len(raw) > DATA + DATA_BYTES:
            return self._add_block(raw)
        self.at = at + len(raw)
        self.parts.append(raw)
        return at

    def _add_block(self, raw: bytes) -> int:
        block, at = make_block(len(raw))  # type: ignore[misc]
        memory[at : at + len(raw)] = raw
        self.apart.append(block)
        return at

    def words(self, values: Sequence[int]) -> int:
        """A list of integers as a slot: its address and count."""
        n = len(values)
        try:
            raw = WORDS[n].pack(*values) if n < 33 else struct.pack(f"<{n}q", *values)
        except struct.error:
            raise _does_not_fit(values) from None
        return self.add(raw) | n << 32 | (type(values) is list) << 62

    def text(self, text: str) -> int:
        """A text as a slot."""
        return self.add(text.encode() + b"\0")


def _does_not_fit(values: Sequence[int]) -> TypeError:
    place = next(k for k, v in enumerate(values, 1) if not I64_MIN <= v <= I64_MAX)
    return TypeError(f'failed to unpack the object at pos {place} with error "{_OVERFLOW}"')


_OVERFLOW = "Overflow when unpacking long long"
_INT_ALONE = {int}


def _encode_list(value: Sequence[Any], blob: Blob) -> tuple[int, int]:
    """A list of one kind of thing. Anything else is OTHER, with names for an error message: the
    list's type and the type of its first odd item; the slot also has that item's place, counted
    from 1.
    """
    types = set(map(type, value))
    if types == _INT_ALONE:
        return e.INTS, blob.words(value)
    get = KINDS.get
    kinds = set(map(get, types))
    if None in kinds or K_OVERRIDING in kinds:
        kinds = {_plain_kind(item, blob) for item in value}
    if kinds <= {K_INT}:
        return e.INTS, blob.words(value)
    if kinds <= {K_TENSOR, K_NONE}:
        handles = [0 if item is None else item._h for item in value]
        return e.TENSORS, blob.words(handles if type(value) is list else tuple(handles))
    if kinds <= {K_INT, K_NONE}:
        return e.INTS, blob.words([I64_MIN if item is None else item for item in value])
    if kinds <= {K_INT, K_FLOAT}:
        n = len(value)
        return e.FLOATS, blob.add(struct.pack(f"<{n}d", *value)) | n << 32 | (
            type(value) is list
        ) << 62
    if kinds <= {K_BOOL}:
        return e.BOOLS, blob.words([int(item) for item in value])
    if kinds <= {K_INT, K_TENSOR, K_BOOL, K_OTHER}:  # for example NumPy's arrays of one int
        try:
            return e.INTS, blob.words([item.__index__() for item in value])
        except (TypeError, AttributeError):
            pass
    usual = K_TENSOR if K_TENSOR in kinds else K_INT
    at = next(k for k, item in enumerate(value) if _plain_kind(item, blob) != usual)
    shown = f"{type(value).__name__}\0{name_of(type(value[at]))}"
    return e.OTHER, blob.text(shown) | (at + 1) << 32 | 1 << 62


_PYTHON_DTYPES: Final = {
    float: e.CODE_FLOAT64,
    int: e.CODE_INT64,
    bool: e.CODE_BOOL,
    complex: e.CODE_COMPLEX128,
}
"""The dtypes of Python's types of numbers."""


def _plain_kind(value: Any, blob: Blob) -> int:
    """The kind of a value, ignoring overrides unless the blob asks.

    Raises:
        Overridden: the value overrides, and the blob asks.
    """
    kind = kind_of(value)
    if kind != K_OVERRIDING:
        return kind
    if blob.asks:
        raise Overridden
    bases = (KINDS.get(base) for base in type(value).__mro__)
    return K_TENSOR if K_TENSOR in bases else K_OTHER


def encode(value: Any, kind: int | None, blob: Blob) -> tuple[int, int]:
    """The tag and slot of one value.

    Raises:
        Overridden: the value must be asked first.
    """
    if kind is None or kind == K_OVERRIDING:
        kind = _plain_kind(value, blob)
    if kind == K_TENSOR:
        return e.TENSOR, value._h
    if kind == K_INT:
        value = int(value)
        if not I64_MIN <= value <= I64_MAX:
            raise ValueError(_OVERFLOW)
        return e.INT, value
    if kind == K_FLOAT:
        return e.FLOAT, _as_word(_as_double(value))[0]
    if kind == K_BOOL:
        return e.BOOL, int(value)
    if kind == K_COMPLEX:
        value = complex(value)
        return e.COMPLEX, blob.add(_as_doubles(value.real, value.imag))
    if kind == K_NONE:
        return e.NONE, 0
    if kind == K_LIST:
        return _encode_list(value, blob)
    if kind == K_STR:
        return e.STR, blob.text(value)
    if kind == K_DTYPE:
        return e.DTYPE, value.code
    if kind == K_NAME:
        return e.STR, blob.text(
            value.name if isinstance(value, (layout, memory_format)) else str(value)
        )
    if kind == K_INDEX:
        return e.INDEX, blob.words(value.words)
    if kind == K_GENERATOR:
        return e.GENERATOR, value._id
    if type(value).__module__ == "numpy" and not getattr(value, "ndim", 1):
        try:
            return e.INT, value.__index__()  # an array of one int
        except (TypeError, AttributeError):
            pass
    if isinstance(value, type) and value in _PYTHON_DTYPES:
        return e.DTYPE, _PYTHON_DTYPES[value]
    return e.OTHER, blob.text(name_of(type(value)))
