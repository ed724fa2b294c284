"""Collation of samples into batches, and conversion of the arrays within a sample.

As in PyTorch, mappings and lists are copied and filled, named tuples are rebuilt, and a plain tuple
becomes a list.
"""

from __future__ import annotations

import copy
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard, cast

from .._tensor import namespace as pygrad
from .._tensor.creation import data_as_tensor
from .._tensor.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

CollateMap: TypeAlias = dict[Any, Callable[..., Any]]


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
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Joins a list of samples like `default_collate`, but with the functions of a map for samples
    that are no containers.

    Args:
        batch: the samples.
        collate_fn_map: the function for samples of a type, called with the batch and this map as
            `collate_fn_map`. An exact match of the type comes first, then base classes in the order
            of the map.

    Raises:
        TypeError: the map has no function for samples that are no containers.
        RuntimeError: sequences of unequal length.

    >>> collate([{"x": 1}, {"x": 2}], collate_fn_map={int: lambda batch, **_: sum(batch)})
    {'x': 3}
    """
    sample = batch[0]
    function = _function_for(sample, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def collate_items(items: Any) -> Any:
        return collate(items, collate_fn_map=collate_fn_map)

    if isinstance(sample, Mapping):
        columns = {key: collate_items([row[key] for row in batch]) for key in sample}
        return _mapping_like(sample, columns)
    if isinstance(sample, tuple) and hasattr(sample, "_fields"):
        return type(sample)(*[collate_items(column) for column in zip(*batch, strict=False)])
    if isinstance(sample, Sequence):
        if {len(row) for row in batch} != {len(sample)}:
            raise RuntimeError("each element in list of batch should be of equal size")
        return _sequence_like(
            sample, [collate_items(column) for column in zip(*batch, strict=True)]
        )
    raise TypeError(default_collate_err_msg_format.format(type(sample)))


def _function_for(sample: Any, table: CollateMap) -> Callable[..., Any] | None:
    found = table.get(type(sample))
    if found is not None:
        return found
    if table is default_collate_fn_map:
        if _is_array(sample):
            return collate_numpy_array_fn
        if _is_numpy_number(sample):
            return collate_numpy_scalar_fn
    for kind, function in table.items():
        if isinstance(sample, kind):
            return function
    return None


def collate_tensor_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Tensors, stacked."""
    return pygrad.stack(list(batch), 0)


def collate_numpy_array_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Arrays of numbers, made tensors and joined."""
    if not _is_numeric(batch[0]):
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return collate([data_as_tensor(array) for array in batch], collate_fn_map=collate_fn_map)


def collate_numpy_scalar_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Scalars of NumPy's as one tensor."""
    return pygrad.as_tensor(batch)


def collate_float_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Floats as one tensor of float64."""
    return pygrad.tensor(batch, dtype=pygrad.float64)


def collate_int_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Tensor:
    """Ints, or bools, as one tensor."""
    return pygrad.tensor(batch)


def collate_str_fn(batch: Any, *, collate_fn_map: CollateMap | None = None) -> Any:
    """Strings, unchanged."""
    return batch


default_collate_fn_map: CollateMap = {
    Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}
"""The functions of `default_collate` by type of samples; programs may add types. NumPy's types are
handled without an entry, so that NumPy need not be imported.
"""


def default_convert(data: Any) -> Any:
    """Convert the NumPy arrays and scalars within one sample to tensors; leave the rest unchanged.

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


default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)


def _is_array(value: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    """Whether the value is a NumPy array. Does not import NumPy, which takes long: an array
    exists only if the program has imported it.
    """
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, numpy.ndarray)


def _is_numpy_number(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.bool_, numpy.number))


def _is_numeric(array: np.ndarray[Any, Any]) -> bool:
    return re.search("[SaUO]", array.dtype.str) is None


def _mapping_like(like: Mapping[Any, Any], items: dict[Any, Any]) -> Any:
    """A mapping of `like`'s type with new values; a dict if that type cannot be constructed."""
    try:
        if isinstance(like, MutableMapping):
            # A copy keeps further state of the type, such as a default factory.
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
