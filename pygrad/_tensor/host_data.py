"""Export of elements to Python: lists, NumPy views that share memory, copies, pickles."""

from __future__ import annotations

import array
import copyreg
import itertools
import math
import operator
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from .._boundary import calls, header
from .._boundary.arguments import refuse_foreign
from .._boundary.blocks import empty_for_host
from .._boundary.header import address_of
from .._ground.dtypes import (
    BY_NAME,
    LAYOUTS,
    bfloat16,
    complex32,
    complex128,
    dtype,
    float64,
    memory_format,
    sparse_bsr,
    sparse_coo,
    sparse_csr,
)
from .._table import functions
from .base import Tensor, TensorBase, slots_of
from .creation import _as_complex, _from_nested, data_as_tensor
from .lent import Exported, lent, owner_of

_C = functions.C


def _is_batched(tensor: Tensor) -> bool:
    """Whether vmap has batched the tensor: then its memory holds all slices."""
    return header.is_batched(tensor._h)


def _refuse_batched(tensor: Tensor) -> None:
    if _is_batched(tensor):
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")


def _bytes(tensor: Tensor) -> Any:
    """The bytes of a contiguous tensor, in place."""
    return header.elements_at(address_of(tensor), tensor.nbytes)


def _numbers(tensor: Tensor) -> list[Any]:
    """The elements of a contiguous tensor as Python's numbers."""
    kind = tensor.dtype
    if kind._format:
        flat: list[Any] = _bytes(tensor).cast(kind._format).tolist()
    elif kind.is_complex:
        wide = tensor.detach().to(complex128)
        parts = iter(_bytes(wide).cast("d").tolist())
        flat = list(map(complex, parts, parts))
    else:
        wide = tensor.detach().to(float64)
        flat = _bytes(wide).cast("d").tolist()
    return flat


def _is_dense(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether the elements are in order without gaps."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if stride != step and size != 1:
            return False
        step *= size
    return True


def tolist(tensor: Tensor) -> Any:
    """Nested lists of Python numbers."""
    shape = tensor.shape
    if not shape:
        return tensor.item()
    if 0 in shape:
        return _empty_lists(shape, 0)
    _refuse_batched(tensor)
    if header.is_hidden(tensor._h):
        raise RuntimeError(
            f".tolist() is not supported for tensor subclasses, got {type(tensor).__name__}"
        )
    if (
        not _is_dense(shape, tensor.stride())
        or header.is_lazy(tensor._h)
        or header.has_form(tensor._h)
    ):
        tensor = _C["_elements"](tensor)
    flat = _numbers(tensor)
    for size in reversed(shape[1:]):
        flat = [flat[i : i + size] for i in range(0, len(flat), size)]
    return flat


def _empty_lists(shape: Any, level: int) -> list[Any]:
    if level == len(shape) - 1:
        return []
    return [_empty_lists(shape, level + 1) for _ in range(shape[level])]


def to_numpy(tensor: Tensor, force: bool) -> Any:
    """An array over the tensor's own memory."""
    import numpy as np

    _refuse_batched(tensor)
    if header.is_hidden(tensor._h):
        raise RuntimeError(".numpy() is not supported for tensor subclasses.")
    if header.is_sparse(tensor._h):
        name = "Sparse" if tensor.layout is sparse_coo else tensor.layout.name.title()
        raise TypeError(
            f"can't convert {name.replace('_', '')} layout tensor to numpy. Use Tensor.to_dense() "
            "first."
        )
    if tensor.is_meta:
        raise TypeError(
            "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor "
            "to host memory first."
        )
    if tensor.requires_grad:
        if not force and functions.SPACES["torch"]["is_grad_enabled"]():
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        tensor = tensor.detach()
    if header.is_lazy(tensor._h):
        tensor = _resolve_lazy(tensor, force)
    if tensor.dtype in (bfloat16, complex32):
        name = "BFloat16" if tensor.dtype is bfloat16 else "ComplexHalf"
        raise TypeError(f"Got unsupported ScalarType {name}")
    return np.asarray(Exported(tensor))


def _resolve_lazy(tensor: Tensor, force: bool) -> Tensor:
    """Computes a lazy tensor.

    Raises: RuntimeError: `force` is False.
    """
    for bit, method in (("conjugate", "conj"), ("negative", "neg")):
        if getattr(tensor, f"is_{method}")() and not force:
            raise RuntimeError(
                f"Can't call numpy() on Tensor that has {bit} bit set. Use "
                f"tensor.resolve_{method}().numpy() instead."
            )
    return tensor.resolve_conj().resolve_neg()


def to_dlpack(tensor: Tensor, **options: Any) -> Any:
    """A capsule of the tensor's own memory, by way of NumPy."""
    array = to_numpy(tensor, force=False)
    owner = owner_of(array)
    if owner is not None:
        lent[array.__array_interface__["data"][0]] = owner
    return array.__dlpack__(**options)


def to_bytes(tensor: Tensor) -> bytes:
    """The elements in logical order, NaNs canonical: equal on every host."""
    return bytes(_bytes(_C["_elements"](tensor)))


# ------------------------------------------------------------------ copies and pickles


def _rebuild(
    kind: type,
    raw: bytes,
    shape: tuple[int, ...],
    name: str,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    made, at = empty_for_host(shape, BY_NAME[name])
    header.write_at(at, raw)
    if kind is not calls._tensor_type:
        made = kind._make_subclass(kind, made)  # type: ignore[attr-defined]
    made._mark(requires_grad)
    return _with_attributes(made, attributes)


def _rebuild_strided(
    kind: type,
    raw: bytes,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    lazy: tuple[bool, bool],
    name: str,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    """A tensor that is not contiguous, or is still to be conjugated or negated."""
    dtype_of = BY_NAME[name]
    flat, at = empty_for_host((len(raw) // dtype_of.itemsize,), dtype_of)
    header.write_at(at, raw)
    made = flat.as_strided(shape, strides)
    for pending, method in zip(lazy, ("conj", "_neg_view"), strict=True):
        made = getattr(made, method)() if pending else made
    made = _C["data"](made)
    if kind is not calls._tensor_type:
        made = kind._make_subclass(kind, made)  # type: ignore[attr-defined]
    made._mark(requires_grad)
    return _with_attributes(made, attributes)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """The strides of a tensor of this shape whose elements are in order."""
    sizes = [max(n, 1) for n in shape]
    return tuple(math.prod(sizes[k + 1 :]) for k in range(len(sizes)))


def _span(tensor: Tensor) -> Tensor:
    """The elements from the first to the last of a tensor's, as they lie in its storage."""
    plain = tensor.detach()
    plain = plain._neg_view() if plain.is_neg() else plain
    plain = plain.conj() if plain.is_conj() else plain
    steps = zip(plain.shape, plain.stride(), strict=True)
    extent = 1 + sum((n - 1) * step for n, step in steps) if plain.numel() else 0
    return plain.as_strided((extent,), (1,), plain.storage_offset())


def _with_attributes(tensor: Any, attributes: dict[str, Any]) -> Any:
    """Sets the attributes of a new tensor, including slots."""
    slots = set(copyreg._slotnames(type(tensor)))  # type: ignore[attr-defined]
    for name in slots.intersection(attributes):
        setattr(tensor, name, attributes.pop(name))
    tensor.__dict__.update(attributes)
    return tensor


def _rebuild_wrapper(
    kind: Any,
    name: str,
    requires_grad: bool,
    shape: Any,
    strides: Any,
    offset: int,
    attributes: dict[str, Any],
) -> Any:
    """Rebuilds a tensor whose class keeps the elements in the tensor's attributes."""
    made = kind._make_wrapper_subclass(
        kind,
        shape,
        strides=strides,
        storage_offset=offset,
        dtype=BY_NAME[name],
        requires_grad=requires_grad,
    )
    return _with_attributes(made, attributes)


class _Reduction(threading.local):
    """How this thread pickles tensors."""

    form: Callable[[Tensor], Any] | None = None
    """Set while `save` writes PyTorch's files, which store storages separately and share them."""


reduction: Final = _Reduction()


def sparse_parts(tensor: Tensor) -> tuple[Tensor, ...]:
    """The parts of a sparse tensor: its indices, and last its values."""
    if tensor.layout is sparse_coo:
        return tensor._indices(), tensor._values()
    if tensor.layout in (sparse_csr, sparse_bsr):
        return tensor.crow_indices(), tensor.col_indices(), tensor._values()
    return tensor.ccol_indices(), tensor.row_indices(), tensor._values()


def rebuild_sparse(
    name: str,
    parts: tuple[Tensor, ...],
    shape: tuple[int, ...],
    coalesced: bool,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    """A sparse tensor of its parts."""
    if name == "sparse_coo":
        made = _C["_sparse_coo_tensor"](*parts, shape, None, requires_grad, None, coalesced)
    else:
        made = _C["_sparse_compressed_tensor"](*parts, shape, LAYOUTS[name], None, requires_grad)
    return _with_attributes(made, attributes)


def _rebuild_meta(
    kind: Any,
    shape: Any,
    strides: Any,
    name: str,
    requires_grad: bool,
    attributes: dict[str, Any],
) -> Any:
    made = functions.SPACES["torch"]["empty_strided"](
        shape, strides, dtype=BY_NAME[name], device="meta"
    )
    if kind is not calls._tensor_type:
        made = kind._make_subclass(kind, made)
    made._mark(requires_grad)
    made.__dict__.update(attributes)
    return made


def reduce_tensor(tensor: Tensor) -> Any:
    """Pickles by value: elements, geometry, dtype, requires_grad and attributes; without elements,
    by the geometry.
    """
    if reduction.form is not None:
        return reduction.form(tensor)
    attributes = {**tensor.__dict__, **slots_of(tensor)}
    if header.is_hidden(tensor._h):
        place = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
        kind = type(tensor), tensor.dtype.name, tensor.requires_grad
        return _rebuild_wrapper, (*kind, *place, attributes)
    if header.is_sparse(tensor._h):
        return rebuild_sparse, (
            tensor.layout.name,
            sparse_parts(tensor),
            tuple(tensor.shape),
            tensor.layout is sparse_coo and tensor.is_coalesced(),
            tensor.requires_grad,
            attributes,
        )
    if tensor.is_meta:
        geometry = tuple(tensor.shape), tensor.stride(), tensor.dtype.name
        return _rebuild_meta, (type(tensor), *geometry, tensor.requires_grad, attributes)
    last = tensor.dtype.name, tensor.requires_grad, attributes
    shape = tuple(tensor.shape)
    usual = tensor.stride() == contiguous_strides(shape) and not header.is_lazy(tensor._h)
    if usual or _is_batched(tensor):
        return _rebuild, (type(tensor), to_bytes(tensor), shape, *last)
    lazy = tensor.is_conj(), tensor.is_neg()
    elements = to_bytes(_span(tensor))
    return _rebuild_strided, (type(tensor), elements, shape, tensor.stride(), lazy, *last)


# ------------------------------------------------------------------ the rest


def apply_(tensor: Tensor, function: Callable[[Any], Any]) -> Tensor:
    """Replaces every element x by function(x)."""
    if tensor.requires_grad:
        raise RuntimeError(
            "Can't call apply_() on Variable that requires grad. Use var.detach().apply_() instead."
        )
    return _replace_elements(tensor, function, [_flat(tensor)])


def map_(tensor: Tensor, others: Sequence[Tensor], name: str, function: Any) -> Tensor:
    """Replaces every element by the function's result for it and the elements at the same place in
    `others`, which are expanded.
    """
    for other, word in zip(others, ("argument 'x'", "argument 'y'"), strict=False):
        if not isinstance(other, Tensor):
            refuse_foreign(other)
            word = word.split()[-1] if len(others) > 1 else "'other'"
            at, got = 1 + (word == "'y'"), type(other).__name__
            raise TypeError(f"{name}(): argument {word} (position {at}) must be Tensor, not {got}")
        if other.dtype is not tensor.dtype:
            word = word if len(others) > 1 else "'other'"
            raise TypeError(f"{name}: expected {tensor.type()} for {word} (got {other.type()})")
    if any(each.requires_grad for each in (tensor, *others)):
        raise RuntimeError(
            f"Can't call {name}() on Variable that requires grad. "
            f"Use var.detach().{name}() instead."
        )
    columns = [_flat(tensor), *(_flat(other.expand(tensor.shape)) for other in others)]
    return _replace_elements(tensor, function, columns)


def _flat(tensor: Tensor) -> list[Any]:
    """All elements in order."""
    _refuse_batched(tensor)
    return _numbers(_C["_elements"](tensor)) if tensor.numel() else []


def _replace_elements(
    tensor: Tensor, function: Callable[..., Any], columns: Sequence[Any]
) -> Tensor:
    """Writes to each place of the tensor the function's result for that place's values in
    `columns`. Elements written before an error stay, as in PyTorch.
    """
    shape = tensor.shape
    made: list[Any] = []
    convert = _element_of(tensor.dtype)
    try:
        # No `map`: it treats a function's StopIteration as the end of the elements.
        for values in zip(*columns, strict=True):
            made.append(convert(function(*values)))
    finally:
        if made:
            _write_first(tensor, made, shape)
    return tensor


def _write_first(tensor: Tensor, made: list[Any], shape: Sequence[int]) -> None:
    """Replaces the first elements of a tensor, which may be all."""
    n, count = len(made), math.prod(shape)
    values = _from_nested(made + [0] * (count - n), tensor.dtype).view(shape)
    if n < count:
        first = functions.SPACES["torch"]["arange"](count).view(shape) < n
        values = values.where(first, tensor)
    tensor.copy_(values)


def _element_of(kind: dtype) -> Callable[[Any], Any]:
    """Converts a function's result to an element: integer dtypes drop the fraction of a float."""
    if kind.is_complex:
        return _as_complex
    if kind.is_floating_point:
        return _as_float
    if kind.name == "bool":
        return lambda value: bool(value if isinstance(value, float) else operator.index(value))
    high = (1 << (8 * kind.itemsize - kind.is_signed)) - 1
    low = -high - kind.is_signed  # uint8 too accepts negative numbers, which wrap
    too_large = f"value cannot be converted to type {kind.name} without overflow"

    def element(value: Any) -> int:
        if isinstance(value, float):
            if not math.isfinite(value):
                raise RuntimeError(too_large)
            value = int(value)
        else:
            value = operator.index(value)
            if not -(1 << 63) <= value < 1 << 63:
                raise ValueError("Overflow when unpacking long long")
        if not low <= value <= high:
            raise RuntimeError(too_large)
        return int(value) if kind.is_signed else value & high

    return element


def _as_float(value: Any) -> float:
    """A number that floats hold, as `array.array` takes it."""
    return float(array.array("d", [value])[0])


def dim_order(tensor: Tensor, ambiguity_check: bool | list[Any]) -> tuple[int, ...]:
    """The dimensions from the outermost in memory to the innermost; see `Tensor.dim_order`."""
    formats: Any = [] if isinstance(ambiguity_check, bool) else ambiguity_check
    if not isinstance(formats, list) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    sizes, strides = tensor.shape, tensor.stride()
    several = 1 in sizes or any(a == b for a, b in itertools.pairwise(strides))
    fits = sum(bool(tensor.is_contiguous(memory_format=each)) for each in formats)
    if ambiguity_check is not False and several and fits != 1:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given "
            "memory formats."
        )
    order: list[int] = []  # from the innermost; a dimension of stride 0 stays where it was
    for dim in reversed(range(tensor.ndim)):
        at = place = len(order)
        while at:
            at -= 1
            other = order[at]
            if 0 in (strides[dim], strides[other]):
                continue
            if (strides[dim], sizes[dim]) >= (strides[other], sizes[other]):
                break
            place = at
        order.insert(place, dim)
    return tuple(reversed(order))


# ------------------------------------------------------------------ methods


class HostMethods(TensorBase):
    """Methods of `Tensor` that give its elements to Python, or take them from there."""

    __slots__ = ()

    __array_priority__ = 1000

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers (a number for a 0-dim tensor)."""
        return tolist(self)  # type: ignore[arg-type]

    def numpy(self, *, force: bool = False) -> Any:
        """A NumPy array over the same memory: no copy, and it keeps the tensor alive.

        While the array lives, tensors saved for backward are copied at once, so that writing
        through the array never reaches a gradient.

        Raises:
            RuntimeError: the tensor requires grad (unless `force`, or under no_grad).
        """
        return to_numpy(self, force)  # type: ignore[arg-type]

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return data_as_tensor(array.astype("uint8") if array.dtype == bool else array)

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, **options: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        return to_dlpack(self, **options)  # type: ignore[arg-type]

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return reduce_tensor(self)  # type: ignore[arg-type]

    def dim_order(self, *, ambiguity_check: bool | list[Any] = False) -> tuple[int, ...]:
        """The dimensions from the outermost in memory to the innermost.

        Args:
            ambiguity_check: True to raise where there are several such orders; or the memory
                formats of which exactly one must be this tensor's.

        Raises:
            RuntimeError: the order is ambiguous. TypeError: anything else to check.
        """
        return dim_order(self, ambiguity_check)  # type: ignore[arg-type]

    def apply_(self, function: Callable[[Any], Any]) -> Tensor:
        """Replaces each element by ``function(element)``. Slow, for CPU tensors, as in PyTorch."""
        return apply_(self, function)  # type: ignore[arg-type]

    def map_(self, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replaces each element by ``callable(element, element of other)``; slow."""
        return map_(self, [other], "map_", callable)  # type: ignore[arg-type]

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Replaces each element by ``callable(element, element of x, element of y)``."""
        return map_(self, [x, y], "map2_", callable)  # type: ignore[arg-type]
