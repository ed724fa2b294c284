"""Joining samples into a batch, and turning the arrays within a sample into tensors.

Containers keep their kind where PyTorch keeps it: mappings and lists are copied and filled, named
tuples are rebuilt, a plain tuple becomes a list.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, cast

from .._package import pygrad
from .._tensor import Tensor

if TYPE_CHECKING:
    import numpy as np


def default_collate(batch: Any) -> Any:
    """Join a list of samples into one batch, with a new first dimension.

    Tensors of (*) become (N, *); arrays, NumPy scalars, floats (float64), ints (int64) and bools
    become tensors; strings and bytes stay a list; mappings, named tuples and sequences are joined
    item by item, a plain tuple giving a list. Raises RuntimeError for sequences of unequal length,
    TypeError for anything else.

    >>> default_collate([(1, True), (3, False)])
    [tensor([1, 3]), tensor([ True, False])]
    >>> default_collate([{"x": "a"}, {"x": "b"}])
    {'x': ['a', 'b']}
    """
    sample = batch[0]
    if isinstance(sample, Tensor):
        return pygrad.stack(list(batch), 0)
    if _is_array(sample):
        if not _is_numeric(sample):
            raise TypeError(_COLLATE_MESSAGE.format(sample.dtype))
        return default_collate([pygrad.as_tensor(array) for array in batch])
    if _is_numpy_number(sample):
        return pygrad.as_tensor(batch)
    if isinstance(sample, float):
        return pygrad.tensor(batch, dtype=pygrad.float64)
    if isinstance(sample, int):
        return pygrad.tensor(batch)
    if isinstance(sample, (str, bytes)):
        return batch
    if isinstance(sample, Mapping):
        columns = {key: default_collate([row[key] for row in batch]) for key in sample}
        return _mapping_like(sample, columns)
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*[default_collate(column) for column in zip(*batch, strict=False)])
    if isinstance(sample, Sequence):
        if {len(row) for row in batch} != {len(sample)}:
            raise RuntimeError("each element in list of batch should be of equal size")
        joined = [default_collate(column) for column in zip(*batch, strict=True)]
        return _sequence_like(sample, joined)
    raise TypeError(_COLLATE_MESSAGE.format(type(sample)))


def default_convert(data: Any) -> Any:
    """Turn the NumPy arrays and scalars within one sample into tensors, all else as it is.

    >>> import numpy as np
    >>> default_convert([np.arange(2), "a"])
    [tensor([0, 1]), 'a']
    """
    if _is_array(data):
        return pygrad.as_tensor(data) if _is_numeric(data) else data
    if _is_numpy_number(data):
        return pygrad.as_tensor(data)
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, Mapping):
        return _mapping_like(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*[default_convert(item) for item in data])
    if isinstance(data, Sequence):
        return _sequence_like(data, [default_convert(item) for item in data])
    return data


_COLLATE_MESSAGE = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_array(value: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    """Whoever has an array has imported NumPy, so this need not, which would take long."""
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _is_numpy_number(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.bool_, numpy.number))


def _is_numeric(array: np.ndarray[Any, Any]) -> bool:
    return re.search("[SaUO]", array.dtype.str) is None


def _mapping_like(like: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """A mapping of `like`'s type with new values; a dict where that type cannot be made so."""
    try:
        if isinstance(like, MutableMapping):
            # A copy keeps what the type holds beside its items, such as a default factory.
            made = copy.copy(like)
            made.update(items)
            return made
        return cast(Any, type(like))(items)
    except TypeError:
        return items


def _sequence_like(like: Sequence[Any], items: list[Any]) -> Any:
    """A sequence of `like`'s type with new items; a list for a tuple, as in PyTorch."""
    if isinstance(like, tuple):
        return items
    try:
        if isinstance(like, MutableSequence):
            made = copy.copy(like)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return cast(Any, type(like))(items)
    except TypeError:
        return items
