"""The base class of tensors: a handle of the engine, and the attributes that describe it.

Modules below `tensor.py` need no more than this class. Attributes are read from the engine's memory
without a call. Methods that are ops come from the op table (`_table.functions`).
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

from .. import _boundary
from .._boundary import attributes, calls, header
from .._boundary.callbacks import look_at_last
from .._ground.dtypes import LAYOUTS, Size, device, dtype, layout, sparse_coo, sparse_csr, strided
from .._ground.uninterrupted import skip_entry_interrupts
from .._table import functions

if TYPE_CHECKING:
    from .._table.methods_table import Methods
    from .tensor import Tensor as Tensor
else:
    Methods = object  # the table's methods are put on the class itself

_released = _boundary.released
_CPU: Final = device("cpu")
_META: Final = device("meta")
_C, _M = functions.C, functions.SPACES["method"]


class TensorBase(Methods):
    """A handle of the engine. `Tensor` is its only subclass that has objects."""

    __slots__ = ("__dict__", "__weakref__", "_b", "_g", "_h")

    _h: int
    _b: Tensor | None
    _g: Tensor | None

    @skip_entry_interrupts
    def __del__(
        self,
        released: list[int] = _released,
        watched: set[int] = _boundary.watched,
    ) -> None:
        try:
            h = self._h
        except AttributeError:
            return  # never got a handle
        self._h = 0  # first, because the garbage collector may run while this object dies
        if watched:
            look_at_last(self, h)
        else:
            released.append(h)  # a list's append: the one call after which no signal is checked

    __hash__ = object.__hash__

    # ------------------------------------------------------------ geometry

    @property
    def shape(self) -> Size:
        """The sizes, a tuple of ints."""
        return attributes.shape(self)

    def size(self, dim: int | None = None) -> Any:
        """All sizes, or the size of one dimension."""
        shape = self.shape
        if dim is None:
            return shape
        try:
            return shape[dim]
        except (IndexError, TypeError):
            return _M["size"](self, dim)  # raises

    def stride(self, dim: int | None = None) -> Any:
        """The strides in elements, all or of one dimension."""
        return attributes.strides(self) if dim is None else _M["stride"](self, dim)

    def storage_offset(self) -> int:
        """The place of the first element in the storage, in elements."""
        return attributes.storage_offset(self)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return attributes.dim(self)

    def dim(self) -> int:
        """The number of dimensions."""
        return attributes.dim(self)

    def numel(self) -> int:
        """The number of elements."""
        return attributes.numel(self)

    ndimension, nelement = dim, numel

    # ------------------------------------------------------------ kind of elements, place

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return attributes.dtype_of(self)

    @property
    def device(self) -> device:
        """The CPU, or meta for a tensor without elements."""
        return _META if attributes.is_absent(self) else _CPU

    @property
    def layout(self) -> layout:
        """`pygrad.strided`, or a sparse layout."""
        return LAYOUTS[_C["layout"](self)] if header.is_sparse(self._h) else strided

    @property
    def is_sparse(self) -> bool:
        """Whether it is a sparse tensor of the layout COO."""
        return header.is_sparse(self._h) and self.layout is sparse_coo

    @property
    def is_sparse_csr(self) -> bool:
        """Whether it is a sparse tensor of the layout CSR."""
        return header.is_sparse(self._h) and self.layout is sparse_csr

    @property
    def itemsize(self) -> int:
        """Bytes an element takes."""
        return self.dtype.itemsize

    def element_size(self) -> int:
        """Bytes an element takes."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes all elements take."""
        return self.numel() * self.dtype.itemsize

    def is_floating_point(self) -> bool:
        """Whether the dtype is floating."""
        return self.dtype.is_floating_point

    is_cuda = is_quantized = is_mps = is_nested = is_xpu = False

    @property
    def is_meta(self) -> bool:
        """Whether it is on the device meta: it has a shape and strides but no elements."""
        return attributes.is_absent(self)

    @property
    def is_cpu(self) -> bool:
        """Whether its elements are in memory."""
        return not attributes.is_absent(self)

    names = property(lambda self: (None,) * self.ndim)

    def is_inference(self) -> bool:
        """Whether the tensor was made under inference mode."""
        return attributes.is_inference(self)

    def cuda(self, device: Any = None, *_: Any, **__: Any) -> Tensor:
        """Raises AssertionError, as PyTorch built without CUDA does."""
        return self.to("cuda" if device is None else device)

    def xpu(self, *_: Any, **__: Any) -> Tensor:
        """Raises AssertionError, as PyTorch built without XPU does."""
        return self.to("xpu")

    def is_pinned(self) -> bool:
        """False: there is no accelerator that could pin memory."""
        return False

    def pin_memory(self) -> Tensor:
        """Raises RuntimeError, as PyTorch without an accelerator does."""
        raise RuntimeError("Cannot access accelerator device when none is available.")

    def cpu(self, memory_format: Any = None) -> Tensor:
        """The tensor itself; NotImplementedError for one without elements."""
        return self.to("cpu") if attributes.is_absent(self) else self  # type: ignore[return-value]

    @property
    def _cdata(self) -> int:
        return self._h

    # ------------------------------------------------------------ elements, gradients

    def item(self) -> Any:
        """The single element as a Python number."""
        return attributes.item(self)

    if TYPE_CHECKING:

        @property
        def requires_grad(self) -> bool: ...
        def _warn_of_missing_grad(self) -> None: ...

    def _mark(self, requires_grad: bool) -> Tensor:
        """Like `requires_grad_`, for a new tensor within a function mapped by vmap."""
        if not requires_grad:
            return _C["_set_requires_grad"](self, False)  # type: ignore[no-any-return]
        return calls.remember(_C["_set_requires_grad"](self))  # type: ignore[no-any-return]

    def _has_grad(self) -> bool:
        """Whether there is a gradient, without making an object of it."""
        return header.grad_of(self._h) != 0


def drop_grads(tensors: Iterable[Tensor]) -> None:
    """Like `_drop_grad` for many tensors, taking the engine once."""
    tensors = list(tensors)
    try:
        _boundary.call_with_lock(_take_grads, tensors)
    except ValueError:  # one is uninitialized and has no gradient
        drop_grads([tensor for tensor in tensors if tensor._has_grad()])


def _take_grads(tensors: list[Tensor]) -> None:
    for tensor in tensors:
        tensor._g = None
    header.release_grads_of([tensor._h for tensor in tensors])


def as_leaf(tensor: Any) -> Any:
    """Marks a new tensor as one that requires grad."""
    if not attributes.dtype_of(tensor)._inexact:
        raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
    return tensor._mark(True)


def check_class(cls: Any) -> None:
    """Raises TypeError unless `cls` is a class of tensors."""
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, TensorBase):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )


def move_to_class(cls: type, tensor: Any) -> Any:
    """Moves a new tensor's handle to an object of another class."""
    out: Any = object.__new__(cls)
    out._h, tensor._h = tensor._h, 0
    return out


def check_deepcopied(tensor: Any) -> None:
    """Raises RuntimeError for a tensor that deepcopy refuses: the result of recorded ops."""
    if not tensor.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
            "protocol at the moment.  If you were attempting to deepcopy a module, this may be "
            "because of a torch.nn.utils.weight_norm usage, see "
            "https://github.com/pytorch/pytorch/pull/103001"
        )


def slots_of(tensor: Any) -> dict[str, Any]:
    """The values of the slots of a tensor's class, without the slots of `TensorBase`."""
    names: list[str] = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined]
    own = (name for name in names if name not in TensorBase.__slots__)
    return {name: getattr(tensor, name) for name in own if hasattr(tensor, name)}


for _name, _method in _M.items():
    if _name not in vars(TensorBase):
        setattr(TensorBase, _name, _method)


if not TYPE_CHECKING:
    Tensor = TensorBase
"""The class of tensors, for modules below it: annotations, `isinstance` and `issubclass`."""
