"""Attributes and methods of tensors that read linear memory, each in one frame of Python. They
inline the reads that header.py names, for speed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .._ground.dtypes import BY_CODE, Size, dtype, size_of
from .calls import ROWS, remembered_object, share
from .constants import (
    ABSENT,
    CODE_FLOAT32,
    CODE_FLOAT64,
    CODE_INT64,
    CODE_UINT64,
    CONJ,
    IS_INFERENCE,
    METHOD,
    REQUIRES_GRAD,
)
from .header import floats, release_grad_at
from .host import doubles, ints, layout, memory, unsigned, words
from .ownership import call_with_lock
from .shapes import function

if TYPE_CHECKING:
    from .._tensor.base import TensorBase as Tensor

F = TypeVar("F", bound=Callable[..., Any])

_DTYPE, _NDIM, _FLAGS = layout["dtype"], layout["ndim"], layout["flags"]
_SIZES, _STRIDES, _OFFSET = layout["sizes"], layout["strides"], layout["offset"]
_NUMEL, _OUTPUT_NR = layout["numel"], layout["output_nr"]
_FORM = layout["form"]
_META, _GRAD, _GRAD_FN = layout["meta"], layout["meta_grad"], layout["grad_fn"]
_STORAGE, _BYTES, _DATA = layout["storage"], layout["storage_bytes"], layout["bytes_data"]
_WORD = (1 << 64) - 1

QUICK: Final[dict[str, Any]] = {}
"""The functions that are attributes and methods, by their names in the class Tensor."""
_requires_grad = function(ROWS["requires_grad"], 0, private=True)
_item = function(ROWS["item"], METHOD, private=True)


def _quick(*names: str) -> Callable[[F], F]:
    """A decorator: the class Tensor has the function under these names."""

    def put(function: F) -> F:
        QUICK.update(dict.fromkeys(names, function))
        return function

    return put


@_quick("shape")
def shape(self: Tensor) -> Size:
    """The sizes, a tuple of ints."""
    h = self._h
    at = unsigned[(h + _SIZES) >> 2] >> 3
    return size_of(words[at : at + memory[h + _NDIM]].tolist())


def strides(self: Tensor) -> tuple[int, ...]:
    """The strides, in elements."""
    h = self._h
    at = unsigned[(h + _STRIDES) >> 2] >> 3
    return tuple(words[at : at + memory[h + _NDIM]].tolist())


@_quick("storage_offset")
def storage_offset(self: Tensor) -> int:
    """The place of the first element in the storage, in elements."""
    return words[(self._h + _OFFSET) >> 3]


@_quick("ndim", "dim")
def dim(self: Tensor) -> int:
    """The number of dimensions."""
    return memory[self._h + _NDIM]


@_quick("numel")
def numel(self: Tensor) -> int:
    """The number of elements."""
    return words[(self._h + _NUMEL) >> 3]


@_quick("dtype")
def dtype_of(self: Tensor) -> dtype:
    """The element type."""
    return BY_CODE[memory[self._h + _DTYPE]]  # type: ignore[return-value]


def is_absent(self: Tensor) -> bool:
    """Whether the tensor has no elements in memory, as on the device meta."""
    return memory[self._h + _FORM] & ABSENT != 0


@_quick("is_inference")
def is_inference(self: Tensor) -> bool:
    """Whether the tensor was made under inference mode."""
    return bool(memory[self._h + _FLAGS] & IS_INFERENCE)


@_quick("output_nr")
def output_nr(self: Tensor) -> int:
    """The index of this tensor among the outputs of its grad_fn."""
    return ints[(self._h + _OUTPUT_NR) >> 2]


@_quick("requires_grad")
def requires_grad(self: Tensor) -> bool:
    """Whether gradients flow to or through this tensor."""
    h = self._h
    if unsigned[(h + _GRAD_FN) >> 2] or memory[h + _FLAGS] & REQUIRES_GRAD:
        return True
    return bool(unsigned[(h + _META) >> 2]) and bool(_requires_grad(self))


@_quick("grad")
def grad(self: Tensor) -> Any:
    """The gradient that backward accumulated, or None. Returns the same object each time."""
    meta = unsigned[(self._h + _META) >> 2]
    handle = unsigned[(meta + _GRAD) >> 2] if meta else 0
    try:
        kept = self._g
        if kept is not None and kept._h == handle:
            return kept
    except AttributeError:
        pass
    if not handle:
        self._warn_of_missing_grad()
        self._g = None
        return None
    self._g = grad = remembered_object(share(handle))
    return grad


@_quick("_drop_grad")
def drop_grad(self: Tensor) -> None:
    """Removes the gradient; its handle is released with the next call."""
    self._g = None
    meta = unsigned[(self._h + _META) >> 2]
    if meta:
        at = (meta + _GRAD) >> 2
        if unsigned[at]:
            call_with_lock(release_grad_at, at)


_items_told = False


@_quick("item")
def item(self: Tensor) -> Any:
    """The single element as a Python number."""
    h = self._h
    # neither lazy, batched nor of a special form
    if (
        words[(h + _NUMEL) >> 3] == 1
        and memory[h + _FLAGS] < CONJ
        and not memory[h + _FORM]
        and not _items_told
    ):
        kind = memory[h + _DTYPE]
        data = unsigned[(unsigned[(unsigned[(h + _STORAGE) >> 2] + _BYTES) >> 2] + _DATA) >> 2]
        offset = words[(h + _OFFSET) >> 3]
        if kind == CODE_FLOAT64:
            return doubles[(data >> 3) + offset]
        if kind == CODE_FLOAT32:
            return floats[(data >> 2) + offset]
        if kind == CODE_INT64:
            return words[(data >> 3) + offset]
    found = _item(self)
    return found & _WORD if memory[h + _DTYPE] == CODE_UINT64 else found


def tell_items(told: bool) -> None:
    """Sets whether every read of an element as a number goes through the engine, so that it can ask
    modes.
    """
    global _items_told
    _items_told = told
