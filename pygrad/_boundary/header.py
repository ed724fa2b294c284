"""Reads and writes the headers of tensors, storages and nodes by field name, without calling the
engine. No module outside this package knows the offsets.

A handle is the address of a tensor's header; 0 is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from .._ground.dtypes import BY_CODE
from .constants import BATCHED, CONJ, HOSTED, NEG, SPARSE
from .frame import DUAL_LEVELS
from .host import base_address, doubles, ints, layout, memory, unsigned, words
from .release import released

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .._tensor.tensor import Tensor


floats: Final = memory.cast("f")
_DTYPE, _FLAGS, _FORM = layout["dtype"], layout["flags"], layout["form"]
_OFFSET = layout["offset"]
_META, _GRAD, _BASE = layout["meta"], layout["meta_grad"], layout["meta_base"]
_GRAD_FN = layout["grad_fn"]
_STORAGE, _BYTES = layout["storage"], layout["storage_bytes"]
_EXPORTS, _PINS = layout["storage_exports"], layout["storage_pins"]
_MAPPED = layout["storage_mapped"]
_DATA, _SIZE = layout["bytes_data"], layout["bytes_size"]
_BYTES_FORM = layout["bytes_form"]

# ------------------------------------------------------------------ by handle


def references_to(address: int) -> int:
    """The number of references to a tensor or node."""
    return ints[address >> 2]


def is_batched(h: int) -> bool:
    """Whether vmap has batched the tensor."""
    return memory[h + _FLAGS] >= BATCHED


def is_lazy(h: int) -> bool:
    """Whether the elements are the conjugates or the negatives of the numbers in memory."""
    return memory[h + _FLAGS] & (CONJ | NEG) != 0


def is_sparse(h: int) -> bool:
    """Whether the elements are in other tensors, with their places."""
    return memory[h + _FORM] & SPARSE != 0


def has_form(h: int) -> bool:
    """Whether the memory may differ from the elements: meta, sparse, hosted."""
    return memory[h + _FORM] != 0


def is_hidden(h: int) -> bool:
    """Whether the class has the elements, by ``__torch_dispatch__``, and the memory has none."""
    return memory[h + _FORM] & HOSTED != 0 and ints[(_bytes_at(h) + _BYTES_FORM) >> 2] != 0


def hides(storage: int) -> bool:
    """Whether a storage's memory belongs to a tensor whose elements are hidden."""
    return ints[(bytes_of(storage) + _BYTES_FORM) >> 2] != 0


def _bytes_at(h: int) -> int:
    return bytes_of(storage_of(h))


def grad_fn_of(h: int) -> int:
    """The address of the node that made it, or 0."""
    return unsigned[(h + _GRAD_FN) >> 2]


def meta_of(h: int) -> int:
    """The address of the rarely needed fields: a gradient, a base, hooks; or 0."""
    return unsigned[(h + _META) >> 2]


def grad_of(h: int) -> int:
    """The handle of its gradient, or 0."""
    meta = unsigned[(h + _META) >> 2]
    return unsigned[(meta + _GRAD) >> 2] if meta else 0


def release_grads_of(handles: Iterable[int]) -> None:
    """Takes the gradients of the tensors that have one. The caller holds the engine."""
    for h in handles:
        meta = unsigned[(h + _META) >> 2]
        if meta:
            at = (meta + _GRAD) >> 2
            if unsigned[at]:
                release_grad_at(at)


def release_grad_at(at: int) -> None:
    """Takes the gradient from its place in a tensor's meta, an index of `unsigned`."""
    handle, unsigned[at] = unsigned[at], 0
    if handle:
        released.append(handle)  # no call comes between the two, so no signal handler runs


def base_of(h: int) -> int:
    """The handle of the tensor that it is a view of, or 0."""
    meta = unsigned[(h + _META) >> 2]
    return unsigned[(meta + _BASE) >> 2] if meta else 0


def storage_of(h: int) -> int:
    """The address of its storage."""
    return unsigned[(h + _STORAGE) >> 2]


def dual_levels() -> int:
    """The number of entered levels of forward mode."""
    return ints[DUAL_LEVELS]


# ------------------------------------------------------------------ storages


def bytes_of(storage: int) -> int:
    """The address of the record that locates a storage's bytes."""
    return unsigned[(storage + _BYTES) >> 2]


def exports_of(storage: int) -> int:
    """The number of exports of a storage, and whether it is pinned."""
    return ints[(storage + _EXPORTS) >> 2]


def pins_of(storage: int) -> int:
    """The number of addresses that pin a storage; they count among its exports."""
    return ints[(storage + _PINS) >> 2]


def mapped_of(storage: int) -> int:
    """The number of the file that is a storage's memory, or 0."""
    return ints[(storage + _MAPPED) >> 2]


def data_of(storage: int) -> int:
    """The address of a storage's first byte in this process."""
    return base_address + unsigned[(bytes_of(storage) + _DATA) >> 2]


def size_in_bytes(storage: int) -> int:
    """A storage's size."""
    return words[(bytes_of(storage) + _SIZE) >> 3]


# ------------------------------------------------------------------ elements


def address_of(tensor: Tensor) -> int:
    """The address of the first element in the engine's memory."""
    h = tensor._h
    data = unsigned[(unsigned[(unsigned[(h + _STORAGE) >> 2] + _BYTES) >> 2] + _DATA) >> 2]
    return data + words[(h + _OFFSET) >> 3] * BY_CODE[memory[h + _DTYPE]].itemsize  # type: ignore[union-attr]


def place_of(tensor: Tensor) -> int:
    """The address of the first element in this process."""
    return base_address + address_of(tensor)


def elements_at(at: int, n_bytes: int) -> memoryview:
    """Some bytes of the engine's memory, in place."""
    return memory[at : at + n_bytes]


def write_at(at: int, raw: Any) -> None:
    """Writes bytes into a block that the engine allocated."""
    memory[at : at + len(raw)] = raw


def write_double(at: int, value: float) -> None:
    """Writes a number into a tensor's float64 element."""
    doubles[at >> 3] = value


def write_float(at: int, value: float) -> None:
    """Writes a number into a tensor's float32 element."""
    floats[at >> 2] = value
