"""Tensors whose class handles their ops, and has their elements."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from .._boundary import callbacks, calls
from .._ground.dtypes import contiguous_format, strided
from .._ground.dtypes import device as _device
from .._ground.dtypes import layout as _layout
from .._table import functions
from .._tensor.base import check_class, move_to_class
from .handlers import answers, disabled_dispatch, without_modes

_C = functions.C


def host_tensor(tensor: Any, hidden: bool = False) -> Any:
    """Makes the tensor's class handle its ops and returns the tensor. If `hidden`, only the class
    has the elements.
    """
    _C["_hosted"](tensor, hidden)
    callbacks.keep_face(tensor)
    return tensor


def _extent(sizes: Sequence[int], strides: Sequence[int], offset: int) -> int:
    """The number of elements of a storage up to the last one of a tensor with this geometry."""
    if 0 in sizes:
        return offset
    return offset + 1 + sum((n - 1) * step for n, step in zip(sizes, strides, strict=True))


def make_wrapper(
    cls: Any,
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: Any = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    _extra_dispatch_keys: Any = None,
    storage_size: int | None = None,
) -> Any:
    """See `Tensor._make_wrapper_subclass`."""
    check_class(cls)
    if cls.__torch_dispatch__ is disabled_dispatch:
        raise TypeError(f"{cls.__name__} must define __torch_dispatch__")
    if storage_offset is not None and strides is None:
        raise RuntimeError("setting storage offset without stride not supported")
    if layout is not None and not isinstance(layout, _layout):
        raise TypeError(
            "_make_wrapper_subclass(): argument 'layout' must be torch.layout, not "
            f"{type(layout).__name__}"
        )
    if device is not None and _device(device).type not in ("cpu", "meta"):
        raise NotImplementedError(f"_make_wrapper_subclass: device={device!r} is not supported")
    if strides is not None and len(size) != len(strides):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
            f"({len(strides)})"
        )
    if layout not in (None, strided):
        raise NotImplementedError(f"_make_wrapper_subclass: layout={layout} is not supported")
    if pin_memory:
        raise RuntimeError("pinned memory needs an accelerator, and there is none")
    seen = calls.intercept(None)  # no call of the program's
    try:
        with without_modes():
            empty = partial(functions.SPACES["torch"]["empty"], dtype=dtype, device=device)
            if strides is None:
                made = empty([int(n) for n in size])
                if memory_format is not None and memory_format is not contiguous_format:
                    made = made.contiguous(memory_format=memory_format)
            else:
                place = [int(n) for n in size], [int(n) for n in strides]
                made = empty(0)
                made.resize_(_extent(*place, int(storage_offset or 0)))
                made.as_strided_(*place, int(storage_offset or 0))
            made.zero_()
            _C["_set_version"](made, 0)
    finally:
        calls.intercept(seen)
    out = move_to_class(cls, made)
    if answers(cls):
        host_tensor(out, True)
    return out._mark(True) if requires_grad else calls.remember(out)
