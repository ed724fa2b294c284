"""Subscripts: ``x[...]`` as words for the engine (see index.def), and the methods for them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from .. import _boundary
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
from .._boundary.calls import invoke
from .._boundary.shapes import indexer, subscript
from .._ground.dtypes import int64
from .base import TensorBase
from .creation import data_as_tensor, tensor

if TYPE_CHECKING:
    from .tensor import Tensor

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
        made = tensor(list(item)) if item else tensor([]).to(int64)
    elif hasattr(item, "__array__") and getattr(item, "ndim", False):
        made = data_as_tensor(item)
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


# ------------------------------------------------------------------ methods


class IndexMethods(TensorBase):
    """Methods of `Tensor` between brackets, and those of a sequence."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Tensor: ...

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, (TensorBase, int, float, complex)):
            value = self._assignable(value)
        invoke(_SETITEM, _boundary.METHOD, (self, encode_index(index), value), {})

    def _assignable(self, value: Any) -> Tensor:
        """A NumPy array or number as a tensor of this dtype; PyTorch takes nothing else."""
        refuse_foreign(value)
        if not hasattr(value, "__array__"):
            raise TypeError(f"can't assign a {type(value).__name__} to a {self.type()}")  # type: ignore[attr-defined]
        return tensor(value, dtype=self.dtype)

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Tensor does not support deleting items")

    def __len__(self) -> int:
        if self.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Tensor]:
        if self.dim() == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (TensorBase, int, float, complex)):
            return bool((element == self).any())  # type: ignore[union-attr]
        refuse_foreign(element)
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )

    def __reversed__(self) -> Any:
        return self.flip(0) if self.dim() else self


_GETITEM, _SETITEM = calls.ROWS["_getitem"], calls.ROWS["_setitem"]
_get_items = subscript(_GETITEM)
_state: Final = overriding.state


def _get_any(self: Tensor, index: Any) -> Any:
    """``x[index]`` for an index other than an int, or a tensor of another class."""
    if overriding.modes_anywhere and overriding.has_modes():
        pass
    elif type(self) is calls._tensor_type or _state.off or kind_of(self) == K_TENSOR:
        try:
            return _get_items(self, encode_index(index))
        except Overridden:
            pass
    args = (self, *index) if type(index) is tuple else (self, index)
    found = overriding.overloaded_args(args)
    return overriding.call(IndexMethods.__getitem__, (self, index), {}, found)


IndexMethods.__getitem__ = indexer(_GETITEM, _get_any)  # type: ignore[method-assign]
IndexMethods.__getitem__.__name__ = "__getitem__"
calls.holders.append(globals())
