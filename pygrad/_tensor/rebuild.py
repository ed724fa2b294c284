"""Reconstruction of tensors from files: the functions that PyTorch's pickles call, and the reduced
form of a tensor. Every argument is checked, since a file may contain anything.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from math import prod
from typing import Any, Final
from weakref import WeakKeyDictionary

from .._boundary import header
from .._ground.dtypes import dtype, uint8
from .._ground.package import submodule
from .._table import functions
from ..nn.parameter import Parameter
from ..sparse._make import sparse_compressed_tensor, sparse_coo_tensor
from ..storage import TypedStorage, UntypedStorage, storage_class
from ..utils.hooks import warn_if_has_hooks
from .base import slots_of
from .float8 import FORMS, decode
from .host_data import _is_batched
from .tensor import Tensor

_F, _C = functions.SPACES["torch"], functions.C

# ------------------------------------------------------------------ rebuilding


def _extent(size: Sequence[int], stride: Sequence[int]) -> int:
    """The number of elements from the first to the last of a tensor, both included."""
    if 0 in size:
        return 0
    return 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=False))


def _tensor_over_storage(storage: Any, kind: dtype, offset: int, size: Any, stride: Any) -> Tensor:
    """A tensor over these elements of a storage; the storage is never resized."""
    untyped = storage.untyped()
    if offset >= 0 and all(n >= 0 for n in (*size, *stride)):  # else `set_` raises
        if (offset + _extent(size, stride)) * kind.itemsize > max(
            untyped.nbytes(), offset * kind.itemsize
        ):
            raise RuntimeError("Trying to resize storage that is not resizable")
    made: Tensor = _F["empty"](0, dtype=kind, device=untyped.device)
    made.set_(untyped, offset, size, stride)
    return made


def _set_lazy_bits(tensor: Tensor, metadata: Any) -> Tensor:
    """Marks the tensor's elements as lazily conjugated or negated, as recorded in the file."""
    if not metadata:
        return tensor
    if metadata.get("conj"):
        tensor = tensor.conj()
    if metadata.get("neg"):
        tensor = tensor._neg_view()
    return _C["data"](tensor)  # type: ignore[no-any-return]


def _with_hooks(tensor: Tensor, hooks: Any) -> Tensor:
    for hook in (hooks or {}).values():  # PyTorch has written none since its release 0.4
        if not callable(hook):
            raise TypeError("a hook cannot be called")
        tensor.register_hook(hook)
    return tensor


def _rebuild_tensor(storage: Any, storage_offset: int, size: Any, stride: Any) -> Tensor:
    return _tensor_over_storage(storage, storage.dtype, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    metadata: Any = None,
) -> Tensor:
    made = _set_lazy_bits(_rebuild_tensor(storage, storage_offset, size, stride), metadata)
    made.requires_grad = requires_grad
    return _with_hooks(made, backward_hooks)


_numbers: Final[WeakKeyDictionary[Any, dict[str, Tensor]]] = WeakKeyDictionary()


def _decode_storage(storage: Any, name: str) -> Tensor:
    """The decoded numbers of a storage of 8-bit floats, kept so that views share them."""
    found = _numbers.setdefault(storage, {})
    if name not in found:
        found[name] = decode(storage.untyped()._view(uint8), name)
    return found[name]


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Any,
    stride: Any,
    requires_grad: bool,
    backward_hooks: Any,
    dtype: dtype,
    metadata: Any = None,
) -> Tensor:
    if dtype.name in FORMS:
        if _unfilled.get() is not None:
            raise NotImplementedError(f"load: {dtype} is not read from files of before 1.6")
        _tensor_over_storage(storage, uint8, storage_offset, size, stride)  # raises for bad sizes
        made = _decode_storage(storage, dtype.name).as_strided(size, stride, storage_offset)
    else:
        made = _tensor_over_storage(storage, dtype, storage_offset, size, stride)
    made = _set_lazy_bits(made, metadata)
    made.requires_grad = requires_grad
    return _with_hooks(made, backward_hooks)


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: Any) -> Parameter:
    return _with_hooks(Parameter(data, requires_grad), backward_hooks)  # type: ignore[return-value]


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: Any, state: Any
) -> Any:
    return _set_obj_state(_rebuild_parameter(data, requires_grad, backward_hooks), state)


_unfilled: ContextVar[list[Callable[[], Tensor]] | None] = ContextVar("unfilled", default=None)
"""Makers of sparse tensors, while storages wait for their bytes."""


@contextmanager
def defer_place_checks() -> Iterator[list[Callable[[], Tensor]]]:
    """A scope in which storages have no bytes yet, so that places in sparse tensors mean nothing.

    Yields a list of functions to call when the bytes are there: each raises if the places are wrong
    for its tensor.
    """
    makers: list[Callable[[], Tensor]] = []
    token = _unfilled.set(makers)
    try:
        yield makers
    finally:
        _unfilled.reset(token)


def _rebuild_sparse_tensor(layout: Any, data: Any) -> Tensor:
    name = str(layout)
    if name == "torch.sparse_coo":
        indices, values, size, *coalesced = data
        known = {"is_coalesced": coalesced[0]} if coalesced else {}
        make = partial(sparse_coo_tensor, indices, values, size, **known)
    elif name.startswith("torch.sparse_"):
        make = partial(sparse_compressed_tensor, *data, layout=layout)
    else:
        raise NotImplementedError(f"rebuilding sparse tensor for layout {layout}")
    make = partial(make, check_invariants=True)
    makers = _unfilled.get()
    if makers is not None:
        _take_first_places(name, *data)
        makers.append(make)
    made: Tensor = make()
    return made


def _take_first_places(name: str, first: Tensor, second: Tensor, *rest: Any) -> None:
    """Fills a sparse tensor's indices with valid ones: its first places, row by row."""
    if name == "torch.sparse_coo":
        sizes = tuple(rest[0])[: first.size(0)]
        places = _F["arange"](first.size(1)).remainder(max(1, prod(sizes)))
        first.copy_(_F["stack"](_F["unravel_index"](places, sizes)) if sizes else first)
        return
    values, sizes = rest
    batch = first.dim() - 1
    rows, columns = first.size(-1) - 1, sizes[batch + 1]
    if name in ("torch.sparse_bsr", "torch.sparse_bsc"):
        columns //= max(1, values.size(batch + 2))
    if name in ("torch.sparse_csc", "torch.sparse_bsc"):
        columns = sizes[batch]
        if name == "torch.sparse_bsc":
            columns //= max(1, values.size(batch + 1))
    count = second.size(-1)
    first.copy_(_F["arange"](rows + 1).mul(columns).clamp(max=count))
    second.copy_(_F["arange"](count).remainder(max(1, columns)))


def _rebuild_device_tensor_from_cpu_tensor(
    data: Tensor, dtype: dtype, device: Any, requires_grad: bool
) -> Tensor:
    made: Tensor = data.to(dtype=dtype, device=device)
    made.requires_grad = requires_grad
    return made


def _rebuild_device_tensor_from_numpy(
    data: Any, dtype: dtype, device: Any, requires_grad: bool
) -> Tensor:
    made: Tensor = _F["tensor"](data).to(dtype=dtype, device=device)
    made.requires_grad = requires_grad
    return made


_rebuild_xla_tensor = _rebuild_device_tensor_from_numpy  # its name in files of older releases


def _rebuild_meta_tensor_no_storage(
    dtype: dtype, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    made: Tensor = _F["empty_strided"](
        size, stride, dtype=dtype, device="meta", requires_grad=requires_grad
    )
    return made


def _rebuild_wrapper_subclass(
    cls: Any,
    dtype: dtype,
    size: Any,
    stride: Any,
    storage_offset: int,
    layout: Any,
    device: Any,
    requires_grad: bool,
) -> Any:
    return Tensor._make_wrapper_subclass(
        cls,
        size,
        strides=stride,
        storage_offset=storage_offset,
        dtype=dtype,
        layout=layout,
        device=device,
        requires_grad=requires_grad,
    )


def _rebuild_qtensor(
    storage: Any,
    storage_offset: Any,
    size: Any,
    stride: Any,
    quantizer_params: Any,
    requires_grad: Any,
    backward_hooks: Any,
) -> Tensor:
    raise NotImplementedError("quantized tensors are not supported: dequantize() before saving")


def _rebuild_nested_tensor(
    buffer: Tensor, sizes: Any, strides: Any, storage_offsets: Any
) -> Tensor:
    made: Tensor = submodule("nested._make")._nested_view_from_buffer(
        buffer, sizes, strides, storage_offsets
    )
    return made


def _rebuild_njt(constructor_kwargs: Any) -> Any:
    return submodule("nested._internal.nested_tensor")._rebuild_njt(constructor_kwargs)


class _DimRange(tuple[Any, ...]):
    """PyTorch's note of a dimension's range for its compiler; unused here."""

    def __new__(cls, *_: Any) -> _DimRange:
        return tuple.__new__(cls)

    def __setstate__(self, _: Any) -> None:
        pass


def _rebuild_from_type_v2(func: Any, new_type: type, args: Any, state: Any) -> Any:
    return _as_type(func(*args), new_type, state)


def _as_type(made: Any, kind: type, state: Any) -> Any:
    """Gives a new tensor its own class and attributes."""
    if made.is_nested:
        return made  # its attributes are its parts
    if type(made) is not kind:
        made = kind._make_subclass(kind, made, made.requires_grad)  # type: ignore[attr-defined]
    if getattr(kind, "__setstate__", None) is not getattr(Tensor, "__setstate__", None):
        made.__setstate__(state)
        return made
    return _set_obj_state(made, state)


# ------------------------------------------------------------------ attributes of an object


def _get_obj_state(obj: Any) -> Any:
    """The attributes of an object: its dict, or a pair of dict and slots."""
    own = getattr(type(obj), "__getstate__", None)
    if own not in (None, object.__getstate__):
        return obj.__getstate__()
    slots = slots_of(obj)
    return (obj.__dict__, slots) if slots else obj.__dict__


def _set_obj_state(obj: Any, state: Any) -> Any:
    """Gives an object its attributes, but none that `Tensor` itself has.

    Raises:
        RuntimeError: no dict, and no pair of two. ValueError: the name of a slot that is not the
            user's.
    """
    if isinstance(state, tuple):
        if len(state) != 2:
            raise RuntimeError(f"Invalid serialized state: {state}")
        attributes, slots = state
    else:
        attributes, slots = state, None
    if attributes:
        obj.__dict__.update(attributes.items())  # and nothing else that has pairs
    for name, value in (slots or {}).items():
        if isinstance(obj, Tensor) and hasattr(Tensor, name):
            raise ValueError(f"{name!r} is no attribute that a state may set")
        setattr(obj, name, value)
    return obj


# ------------------------------------------------------------------ on the way to a file


def get_tensor_metadata(tensor: Tensor) -> dict[str, bool]:
    """The pending lazy operations of a tensor: of 'conj' and 'neg'."""
    found = {"conj": tensor.is_conj(), "neg": tensor.is_neg()}
    return {name: True for name, holds in found.items() if holds}


def storage_for_file(storage: UntypedStorage, kind: dtype) -> Any:
    """A storage in the form of PyTorch's files: typed, if PyTorch has a storage class for the
    type.
    """
    if storage_class(kind) is None:
        return storage
    return TypedStorage(wrap_storage=storage, dtype=kind, _internal=True)


def _plain(tensor: Tensor) -> Any:
    """The function and arguments that rebuild a tensor, without its attributes."""
    warn_if_has_hooks(tensor)
    if header.is_hidden(tensor._h):
        place = tuple(tensor.size()), tensor.stride(), tensor.storage_offset()
        kind = type(tensor), tensor.dtype
        last = tensor.layout, tensor.device, tensor.requires_grad
        return _rebuild_wrapper_subclass, (*kind, *place, *last)
    if tensor.is_meta:
        geometry = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad
        return _rebuild_meta_tensor_no_storage, geometry
    if str(tensor.layout) != "torch.strided":
        return _rebuild_sparse_tensor, (tensor.layout, _sparse_parts(tensor))
    if _is_batched(tensor):
        raise NotImplementedError("Cannot access storage of BatchedTensorImpl")
    storage = storage_for_file(UntypedStorage.from_tensor(tensor), tensor.dtype)
    args: tuple[Any, ...] = (
        storage,
        tensor.storage_offset(),
        tuple(tensor.size()),
        tensor.stride(),
        tensor.requires_grad,
        OrderedDict(),
    )
    rebuild: Any = _rebuild_tensor_v2
    if isinstance(storage, UntypedStorage):
        rebuild, args = _rebuild_tensor_v3, (*args, tensor.dtype)
    metadata = get_tensor_metadata(tensor)
    return rebuild, ((*args, metadata) if metadata else args)


def _sparse_parts(tensor: Any) -> tuple[Any, ...]:
    name = str(tensor.layout)
    if name == "torch.sparse_coo":
        return tensor._indices(), tensor._values(), tensor.size(), tensor.is_coalesced()
    by_row = name in ("torch.sparse_csr", "torch.sparse_bsr")
    first = tensor.crow_indices() if by_row else tensor.ccol_indices()
    second = tensor.col_indices() if by_row else tensor.row_indices()
    return first, second, tensor.values(), tensor.size()


def reduce_for_file(tensor: Tensor) -> Any:
    """The function and arguments that rebuild a tensor, in the form of PyTorch's files: by its
    storage, which is pickled with it and shared with all other users.
    """
    state = _get_obj_state(tensor)
    if issubclass(type(tensor), Parameter):  # tensors only marked as parameters have another class
        hooks: Any = OrderedDict()
        given = tensor.data, tensor.requires_grad, hooks
        if state:
            return _rebuild_parameter_with_state, (*given, state)
        return _rebuild_parameter, given
    function, args = _plain(tensor)
    if type(tensor) is Tensor and not state:
        return function, args
    return _rebuild_from_type_v2, (function, type(tensor), args, state)


def bytes_as(storage: UntypedStorage, kind: dtype) -> Tensor:
    """The elements of a storage as a tensor whose bytes will be written; as uint8 if the storage
    does not hold whole elements.
    """
    return storage._view(kind if storage.nbytes() % kind.itemsize == 0 else uint8)
