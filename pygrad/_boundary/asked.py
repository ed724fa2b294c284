"""Decodes a question of the engine about one op; see wasm_core/ops/dispatch.c."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final

from .._ground.dtypes import BY_CODE
from . import attributes, callbacks, calls, constants, host, modes
from .arguments import Index

_words, _doubles, _memory = host.words, host.doubles, host.memory
_FLAGS, _WRAPPED = host.layout["flags"], host.layout["flag_wrapped"]
_known_refs: Final = calls.known_refs
MODE: Final = host.layout["mode_dispatch"]
"""The bit of a thread's modes that has the engine ask for every op."""
ASKED: Final = host.layout["host_dispatch"]
LATER, TENSOR, TENSORS, NUMBER, NOTHING, FIRST = range(6)
"""First words of an answer: none (yet), a tensor, several, a number, None; several with the first
as the result.
"""
INPLACE, AT_LAST, OUT, RECORDED = 1, 2, 4, 8
"""Bits of a question: an op in place, asked for the second time, with ``out=``; recorded."""
_C_INT, C_ENUM, _C_WORDS, _C_PLACES = 32, 33, 34, 35


class Missing:
    """The type of `MISSING`."""


class Unknown:
    """The type of `UNKNOWN`."""


MISSING: Final = Missing()
"""An argument that was left out."""
UNKNOWN: Final = Unknown()
"""An argument that only C can represent."""


class Enum(int):
    """A member of an enumeration of C's."""


def tensor_of(handle: int) -> Any:
    """The tensor of a handle: the existing object, if there is one."""
    return calls.remembered_object(calls.share(handle))


def _number(handle: int) -> Any:
    """The value of a number of the host, that C has as a tensor."""
    was = modes.switch(MODE, False)
    try:
        return attributes.item(tensor_of(handle))
    finally:
        modes.put(was)


def _tensor(handle: int) -> Any:
    if not handle:
        return None
    return _number(handle) if _memory[handle + _FLAGS] & _WRAPPED else tensor_of(handle)


def _float(word: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", word))[0])


def _many(tag: int, n: int, at: int) -> Any:
    if n < 0:
        return None
    at >>= 3
    if tag == constants.FLOATS:
        return _doubles[at : at + n].tolist()
    found = _words[at : at + n].tolist()
    if tag == constants.TENSORS:
        return [_tensor(handle) for handle in found]
    return [bool(word) for word in found] if tag == constants.BOOLS else found


def _value(tag: int, n: int, word: int) -> Any:
    """Decodes one argument."""
    if tag == constants.TENSOR:
        return _tensor(word)
    if tag in (constants.INT, _C_INT):
        return word
    if tag == C_ENUM:
        return Enum(word)
    if tag == constants.FLOAT:
        return _float(word)
    if tag == constants.BOOL:
        return word != 0
    if tag == constants.NONE:
        return None
    if tag == constants.STR:
        return host.text_at(word) if word else None
    if tag == constants.DTYPE:
        return BY_CODE[word]
    if tag in (constants.INTS, constants.FLOATS, constants.TENSORS, constants.BOOLS):
        return _many(tag, n, word)
    if tag == constants.COMPLEX:
        return complex(_doubles[word >> 3], _doubles[(word >> 3) + 1])
    if tag == constants.INDEX:
        return Index(_words[word >> 3 : (word >> 3) + n].tolist(), [])
    return MISSING if tag == constants.MISSING else UNKNOWN


def values_of(words: Sequence[int]) -> list[Any]:
    """All arguments. Sizes that C passes behind their count become one list."""
    found: list[Any] = []
    before = count = -1
    for at in range(4, len(words), 3):
        tag, n, word = words[at : at + 3]
        if tag == constants.TENSOR and word:
            ref = None if _memory[word + _FLAGS] & _WRAPPED else _known_refs.get(word)
            object_ = None if ref is None else ref()
            same = object_ is not None and object_._h == word
            found.append(object_ if same else _tensor(word))
        elif tag == _C_WORDS:  # behind their count, or behind other words
            count = found.pop() if before == _C_INT else count if before == _C_WORDS else -1
            at_word = word >> 3
            if count < 0 and word:  # one number, which may be absent
                found.append(_words[at_word])
            else:
                known = count == 0 or word
                found.append(_words[at_word : at_word + count].tolist() if known else MISSING)
        elif tag != _C_PLACES:
            found.append(_value(tag, n, word))
        before = tag
    return found


def name_of(words: Sequence[int]) -> str:
    """The name of the op."""
    return host.text_at(words[1])


def parameters_last(words: Sequence[int]) -> bool:
    """Whether the last argument is the parameters of an element-wise op."""
    return len(words) > 4 and words[-3] == constants.FLOATS


def has_places(words: Sequence[int]) -> bool:
    """Whether C passed places for several results."""
    return _C_PLACES in words[4::3]


def wants_grad(words: Sequence[int], place: int) -> bool:
    """Whether the argument there, `requires_grad`, is true."""
    return words[4 + 3 * place] == constants.BOOL and bool(words[6 + 3 * place])


def handles_of(values: Sequence[Any]) -> list[int]:
    """The handles of results; keeps each result's object alive. None is 0."""
    found = []
    for each in values:
        if each is not None:
            callbacks._keep.append(each)
            callbacks.keep_face(each)
        found.append(0 if each is None else each._h)
    return found


def number_words(value: float) -> list[int]:
    """A number as an answer."""
    if isinstance(value, bool):
        return [NUMBER, constants.BOOL, int(value)]
    if isinstance(value, int):
        return [NUMBER, constants.INT, value]
    return [NUMBER, constants.FLOAT, struct.unpack("<q", struct.pack("<d", value))[0]]
