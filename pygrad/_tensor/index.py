"""Encodes the subscripts of ``x[...]`` as words for the engine (see index.def)."""

from __future__ import annotations

import warnings
from typing import Any

from .._boundary import calls, constants, overriding, user_level
from .._boundary.arguments import (
    K_OVERRIDING,
    K_TENSOR,
    KINDS,
    Index,
    Overridden,
    kind_of,
    refuse_foreign,
)
from .._ground.dtypes import int64
from . import above

_ABSENT, _SMALL = constants.ITEM_ABSENT, 1 << 62
NONE, ELLIPSIS, INT = constants.ITEM_NONE, constants.ITEM_ELLIPSIS, constants.ITEM_INT
SLICE, TENSOR, BOOL = constants.ITEM_SLICE, constants.ITEM_TENSOR, constants.ITEM_BOOL


def _slice_bound(value: Any) -> int:
    if type(value) is int and -_SMALL < value < _SMALL:
        return value
    try:
        return max(_ABSENT + 1, min((1 << 63) - 1, int(value.__index__())))
    except AttributeError:
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None


def _add(item: Any, words: list[int], keep: list[Any]) -> None:
    kind = type(item)
    if kind is int:
        words += (INT, item)
    elif kind is slice:
        words += (
            SLICE,
            _ABSENT if item.start is None else _slice_bound(item.start),
            _ABSENT if item.stop is None else _slice_bound(item.stop),
            _ABSENT if item.step is None else _slice_bound(item.step),
        )
    elif item is None:
        words.append(NONE)
    elif item is Ellipsis:
        words.append(ELLIPSIS)
    elif kind is bool:
        words += (BOOL, int(item))
    elif KINDS.get(kind) == K_TENSOR:
        words += (TENSOR, item._h)
        keep.append(item)
    else:
        _add_other(item, words, keep)


def _add_other(item: Any, words: list[int], keep: list[Any]) -> None:
    refuse_foreign(item)
    if kind_of(item) == K_OVERRIDING and overriding.state.off == overriding.ENABLED:
        raise Overridden
    made: Any
    if isinstance(item, str):
        raise TypeError("new(): invalid data type 'str'")
    if isinstance(item, calls._tensor_type):
        made = item
    elif isinstance(item, (list, tuple, range)):
        made = above.tensor(list(item)) if item else above.tensor([]).to(int64)
    elif hasattr(item, "__array__") and getattr(item, "ndim", False):
        made = above.data_as_tensor(item)
    elif hasattr(item, "__index__"):
        words += (INT, item.__index__())
        return
    else:
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are "
            "valid indices "
            f"(got {type(item).__name__})"
        )
    words += (TENSOR, made._h)
    keep.append(made)


def _stands_for_tuple(index: list[Any]) -> bool:
    """Whether PyTorch treats a list index as a tuple: short, and not only of numbers."""
    return len(index) < 32 and any(
        item is None
        or item is Ellipsis
        or isinstance(item, (list, tuple, range, slice, str, calls._tensor_type))
        or getattr(item, "ndim", 0)
        for item in index
    )


def encode_index(index: Any) -> Index:
    """The engine's form of any index that PyTorch takes; keeps the tensors in it alive."""
    words: list[int] = []
    keep: list[Any] = []
    if type(index) is list and _stands_for_tuple(index):
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
            "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will "
            "be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an "
            "error or a different result",
            stacklevel=user_level(),
        )
        index = tuple(index)
    if type(index) is tuple:
        for item in index:
            _add(item, words, keep)
    else:
        _add(index, words, keep)
    return Index(words, keep)
