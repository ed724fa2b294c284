"""The Tensor class: a handle of the engine, with PyTorch's attributes, operators and protocols.

Methods that are ops come from the op table (`_table.functions`); this module has the rest of
Python's object protocol. Attributes that describe a tensor are read from the engine's memory
without a call.
"""

from __future__ import annotations

import copyreg
import functools
import logging
import warnings
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType, NoneType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .. import _boundary
from .._boundary import attributes, calls, header, overriding
from .._boundary.addresses import address
from .._boundary.arguments import (
    K_COMPLEX,
    K_OVERRIDING,
    K_TENSOR,
    KINDS,
    Index,
    Overridden,
    kind_of,
    refuse_foreign,
)
from .._boundary.callbacks import adopt_tensor, keep_face, look_at_last
from .._boundary.callbacks import objects as _objects
from .._boundary.calls import invoke
from .._boundary.long_calls import command
from .._boundary.modes import GRAD, LEVELS
from .._boundary.modes import get as get_modes
from .._boundary.shapes import binary, indexer, subscript
from .._dispatch.handlers import disabled_dispatch
from .._ground.dtypes import LAYOUTS, Size, device, dtype, layout, sparse_coo, sparse_csr, strided
from .._ground.package import PACKAGE, function_like
from .._ground.uninterrupted import skip_entry_interrupts
from .._ground.warnings import warn_of_conversion
from .._table import functions
from . import above
from .hooks import register_tensor_hook, replace_tensor_hooks, tensor_hooks
from .index import ELLIPSIS, encode_index

_released = _boundary.released
_ROW = calls.ROWS
_CPU: Final = device("cpu")
_META: Final = device("meta")
_log: Final = logging.getLogger("pygrad.autograd.graph")
_DEBUG: Final = logging.DEBUG
_T = TypeVar("_T")
_C, _M = functions.C, functions.SPACES["method"]


if TYPE_CHECKING:
    from .._table.methods_table import Methods
else:
    Methods = object  # `_install` puts the table's methods on the class itself


class Tensor(Methods):
    """A multi-dimensional array that records the operations on it.

    Made by `pygrad.tensor`, `pygrad.zeros` and the other creation functions, and by every op.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor([1.0, 2.0], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad
        tensor([2., 4.])
    """

    __slots__ = ("__dict__", "__weakref__", "_b", "_g", "_h")

    _h: int
    _b: Tensor | None
    _g: Tensor | None
    _shown_as = "tensor"  # of the class itself; subclasses are shown by their names
    _is_parameter_class = False

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        made = above.legacy_tensor(*args, **kwargs)
        if cls is Tensor:
            return made
        if args and isinstance(args[0], Tensor):
            _check_not_taken(cls, args[0])
        out = _move_to_class(cls, made)
        out._b = getattr(made, "_b", None)
        return _mark_if_handles_ops(out)  # type: ignore[no-any-return]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The work is done in __new__, as for PyTorch's legacy constructor."""

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

    def __init_subclass__(cls, **options: Any) -> None:
        """Disables ``__torch_function__`` of a class that handles ops below autograd, unless it
        defines both.
        """
        super().__init_subclass__(**options)
        method = getattr(cls.__torch_function__, "__func__", None)
        if (
            method is Tensor.__torch_function__.__func__  # type: ignore[attr-defined]
            and cls.__torch_dispatch__ is not Tensor.__torch_dispatch__
        ):
            cls.__torch_function__ = overriding.disabled  # type: ignore[method-assign]

    @staticmethod
    def _make_subclass(cls: type, data: Tensor, require_grad: bool = False) -> Any:
        """A tensor of another class over the data of `data`: the constructor of Parameter.

        Raises:
            TypeError: no class of tensors, or no tensor.
        """
        if KINDS.get(cls) not in _KINDS_OF_TENSORS:
            _register_class(cls)
        if not isinstance(data, Tensor):
            refuse_foreign(data)
            raise TypeError(
                "_make_subclass(): argument 'data' (position 2) must be Tensor, not "
                f"{type(data).__name__}"
            )
        if cls is not type(data):
            _check_not_taken(cls, data)
        out = _mark_if_handles_ops(_move_to_class(cls, _C["data"](data)))
        return as_leaf(out) if require_grad else out

    def as_subclass(self, cls: type[_T]) -> _T:
        """A view of this tensor with another class and the same history.

        Raises:
            TypeError: no class of tensors.

        Example:
            >>> import pygrad
            >>> class Metres(pygrad.Tensor):
            ...     pass
            >>> pygrad.ones(2).as_subclass(Metres) * 2
            Metres([2., 2.])
        """
        _check_not_taken(cls, self)
        return _mark_if_handles_ops(_as_class(cls, self))  # type: ignore[no-any-return]

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Iterable[type], args: Any = (), kwargs: Any = None
    ) -> Any:
        """Calls a function, and gives this class to the tensors among its results.

        Called for every function of the package that gets a tensor of a subclass; an override calls
        it by ``super()``.

        Args:
            func: the function, as users know it; for an attribute its ``__get__``.
            types: the types of the arguments that have such a method.
            args, kwargs: the arguments of the call.

        Returns:
            NotImplemented if one of the types is not a base of this class. PyTorch's own functions,
            which ask plain tensors of this package too, get the result of pygrad's function of the
            same name, or NotImplemented if there is none.

        Example:
            >>> import pygrad
            >>> class Loud(pygrad.Tensor):
            ...     @classmethod
            ...     def __torch_function__(cls, func, types, args=(), kwargs=None):
            ...         print(func.__name__)
            ...         return super().__torch_function__(func, types, args, kwargs)
            >>> _ = pygrad.ones(2).as_subclass(Loud) + 1
            add
        """
        for kind in types:
            if not issubclass(cls, kind):
                return NotImplemented
        state = overriding.state
        before = state.off
        # a function of PyTorch, which would ask again
        if before and cls is Tensor and Tensor in types:
            func = function_like(func)
            if func is None:
                return NotImplemented
        state.off = max(before, overriding.SUBCLASSES_OFF)
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            state.off = before
        if type(result) is Tensor and cls is not Tensor and func in class_keeping_getters():
            return result
        return _convert_result(result, cls)

    @staticmethod
    def _make_wrapper_subclass(cls: type, size: Any, *args: Any, **options: Any) -> Any:
        """A tensor of a class that answers for its ops itself, by ``__torch_dispatch__``: it has
        sizes, strides and a dtype, and its elements are the class's affair.

        Args:
            cls: a subclass of Tensor. size: its sizes. args, options: strides, storage_offset,
                memory_format, dtype, and the like.

        Raises: TypeError: `cls` is no subclass of Tensor.
        """
        return above.make_wrapper(cls, size, *args, **options)

    __torch_dispatch__ = staticmethod(disabled_dispatch)

    # ------------------------------------------------------------ description

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
        return self.to("cpu") if attributes.is_absent(self) else self

    # ------------------------------------------------------------ autograd

    @property
    def requires_grad(self) -> bool:
        """Whether gradients flow to or through this tensor."""
        return attributes.requires_grad(self)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if not isinstance(value, bool):
            raise RuntimeError("requires_grad must be a bool")
        if value and header.grad_fn_of(self._h):
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        if value and not self.dtype._inexact:
            raise RuntimeError(
                "only Tensors of floating point and complex dtype can require gradients"
            )
        self._mark(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def module_load(self, other: Tensor, assign: bool = False) -> Tensor:
        """The value that `Module.load_state_dict` swaps in for this parameter or buffer, given an
        entry `other`, if ``torch.__future__`` selects swapping. Detached: a different object than
        both.
        """
        return (other if assign else self.copy_(other)).detach()

    def new(self, *args: Any, **kwargs: Any) -> Tensor:
        """A tensor of this one's dtype, from sizes (uninitialised) or data, as the legacy
        constructor `Tensor` makes it.

        Example:
            >>> import pygrad
            >>> pygrad.ones(1, dtype=pygrad.int64).new([1, 2])
            tensor([1, 2])
        """
        return above.legacy_tensor(*args, kind=self.dtype, layout=self.layout, **kwargs)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Starts (or for a leaf ends) recording of operations on this tensor; returns it.

        Raises:
            RuntimeError: not a floating dtype, or False for a tensor that is no leaf.
        """
        _require_grad(self, requires_grad)
        return calls.remember(self) if requires_grad else self

    def _mark(self, requires_grad: bool) -> Tensor:
        """Like `requires_grad_`, for a new tensor within a function mapped by vmap."""
        if not requires_grad:
            return _C["_set_requires_grad"](self, False)  # type: ignore[no-any-return]
        return calls.remember(_C["_set_requires_grad"](self))  # type: ignore[no-any-return]

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward accumulated, or None. Returns the same object each time."""
        return attributes.grad(self)  # type: ignore[no-any-return]

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            self._drop_grad()
            return
        if not isinstance(value, Tensor):
            refuse_foreign(value)
            raise TypeError(
                "assigned grad expected to be a Tensor or None but got grad of type "
                f"{type(value).__name__}"
            )
        _C["_set_grad"](self, value)
        self._g = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    def _grad(self) -> Tensor | None:
        return self.grad if self._has_grad() else None

    @_grad.setter
    def _grad(self, value: Tensor | None) -> None:
        self.grad = value

    @property
    def grad_dtype(self) -> Any:
        """The dtype that ``.grad`` must have, and to which backward casts: this tensor's, unless
        set. None: any. Only for leaves.
        """
        return _C["grad_dtype"](self)

    @grad_dtype.setter
    def grad_dtype(self, value: Any) -> None:
        if value is not None and not isinstance(value, dtype):
            raise RuntimeError(
                f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}"
            )
        _C["_set_grad_dtype"](self, value)

    def _drop_grad(self) -> None:
        """Removes the gradient; its handle is released with the next call."""
        attributes.drop_grad(self)

    def _has_grad(self) -> bool:
        """Whether there is a gradient, without making an object of it."""
        return header.grad_of(self._h) != 0

    def _warn_of_missing_grad(self) -> None:
        if header.grad_fn_of(self._h) and not self.retains_grad:
            warnings.warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its "
                ".grad attribute won't be "
                "populated during autograd.backward(). If you indeed want the .grad field to be "
                "populated for a non-leaf "
                "Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf "
                "Tensor by mistake, make sure "
                "you access the leaf Tensor instead. See github.com/pytorch/pytorch/pull/30531 for "
                "more information.",
                UserWarning,
                stacklevel=3,
            )

    @property
    def grad_fn(self) -> Any:
        """The node that made this tensor in the graph, or None."""
        return above.node_of(self)

    @property
    def _grad_fn(self) -> Any:
        return self.grad_fn

    @_grad_fn.setter
    def _grad_fn(self, value: None) -> None:
        if value is not None:
            raise RuntimeError("_grad_fn can be only set to None")
        _M["detach_"](self)

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    @property
    def volatile(self) -> bool:
        """False, with a warning: the attribute was replaced by `no_grad`. Setting it does
        nothing.
        """
        message = "volatile was removed (Variable.volatile is always False)"
        warnings.warn(message, UserWarning, stacklevel=2)
        return False

    @volatile.setter
    def volatile(self, value: Any) -> None:
        warnings.warn(
            "volatile was removed and now has no effect. Use `with torch.no_grad():` instead.",
            UserWarning,
            stacklevel=2,
        )

    @property
    def name(self) -> None:
        """None: only variables of old PyTorch had names."""

    @property
    def _cdata(self) -> int:
        return self._h

    @property
    def output_nr(self) -> int:
        """The index of this tensor among the outputs of its grad_fn."""
        return attributes.output_nr(self)

    @property
    def _base(self) -> Tensor | None:
        handle = header.base_of(self._h)
        if not handle:
            return None
        kept: Tensor | None = getattr(self, "_b", None)
        while kept is not None:
            if kept._h == handle:
                return kept
            kept = getattr(kept, "_b", None)
        self._b = base = calls.remembered_object(_C["_base"](self))
        return base  # type: ignore[no-any-return]

    def _view_func(
        self,
        new_base: Tensor,
        symint_visitor_fn: Callable[[Any], Any] | None = None,
        tensor_visitor_fn: Callable[[Any], Any] | None = None,
    ) -> Tensor | None:
        """Replays this view on another base; None if this is no view, or the other base has other
        sizes, strides or offset.

        Args:
            new_base: the other base.
            symint_visitor_fn, tensor_visitor_fn: called with each size and offset, or tensor,
                among the arguments of the ops that made this view; the result replaces it.

        Example:
            >>> import pygrad
            >>> x = pygrad.zeros(2, 3)[1]
            >>> x._view_func(pygrad.arange(6).view(2, 3))
            tensor([3, 4, 5])
        """
        return above.view_func(  # type: ignore[no-any-return]
            self, new_base, symint_visitor_fn, tensor_visitor_fn, unsafe=False
        )

    def _view_func_unsafe(
        self,
        new_base: Tensor,
        symint_visitor_fn: Callable[[Any], Any] | None = None,
        tensor_visitor_fn: Callable[[Any], Any] | None = None,
    ) -> Tensor | None:
        """Like `_view_func`, for a base of any geometry."""
        return above.view_func(  # type: ignore[no-any-return]
            self, new_base, symint_visitor_fn, tensor_visitor_fn, unsafe=True
        )

    def _rev_view_func_unsafe(self, new_view: Tensor) -> Tensor | None:
        """Inverse of `_view_func`: a view of `new_view` with the geometry of this view's base."""
        return above.rev_view_func(self, new_view)  # type: ignore[no-any-return]

    @property
    def data(self) -> Tensor:
        """A view of the elements without history, with an own version counter."""
        found = self
        if answers_for_ops(self):  # the class handles ops
            found = self.detach()
            if answers_for_ops(found):
                return found
        return _C["data"](found)  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            refuse_foreign(value)
            raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
        if get_modes() >> (LEVELS + 1):
            where = "under vmap" if header.is_batched(self._h) else "inside functorch"
            raise RuntimeError(f"mutating directly with `.data` {where} transform is not allowed.")
        _C["_set_data"](self, value)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Any = None,
    ) -> None:
        """Adds d(self)/d(leaf) to the ``.grad`` of every leaf of the graph.

        Args:
            gradient: the factor, of this tensor's shape; not needed for one element.
            retain_graph: keep saved tensors for another backward; default `create_graph`.
            create_graph: record the backward itself, for higher derivatives.
            inputs: the only tensors to accumulate into.

        Raises:
            RuntimeError: no history, no scalar, or a graph that was freed.
        """
        if inputs is None and create_graph is False and not _log.isEnabledFor(_DEBUG):
            step: Any = False
            if _objects and type(gradient) is Tensor:
                keep_face(gradient)  # hooks on this tensor receive it
            if retain_graph is None or retain_graph is False:
                if gradient is None:
                    step = _backward(self)
                elif type(gradient) is Tensor:
                    step = _C["_backward_of"](self, False, gradient)
            elif retain_graph is True and (gradient is None or type(gradient) is Tensor):
                step = _C["_backward_of"](self, True, gradient)
            if step is None:
                return
            if step:
                above.walk(step)
                return

        above.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> Any:
        """Calls ``hook(grad)`` whenever this tensor's gradient is complete; a returned tensor
        replaces the gradient.
        """
        return register_tensor_hook(self, hook, post=False)

    @property
    def _backward_hooks(self) -> Any:
        """The hooks of `register_hook`, in a dictionary; None if there are none. Setting a
        dictionary replaces all hooks by its functions, including later entries.
        """
        return tensor_hooks(self)

    @_backward_hooks.setter
    def _backward_hooks(self, hooks: Any) -> None:
        if hooks is not None and not hasattr(hooks, "values"):
            raise TypeError(f"expected a dictionary of hooks, but got {type(hooks).__name__}")
        replace_tensor_hooks(self, hooks)

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> Any:
        """Calls ``hook(tensor)`` after a gradient was accumulated into this leaf."""
        return register_tensor_hook(self, hook, post=True)

    # ------------------------------------------------------------ indexing, iteration

    if TYPE_CHECKING:

        def __getitem__(self, index: Any) -> Tensor: ...

    def __setitem__(self, index: Any, value: Any) -> None:
        if not isinstance(value, (Tensor, int, float, complex)):
            value = self._assignable(value)
        invoke(_SETITEM, _boundary.METHOD, (self, encode_index(index), value), {})

    def _assignable(self, value: Any) -> Tensor:
        """A NumPy array or number as a tensor of this dtype; PyTorch takes nothing else."""
        refuse_foreign(value)
        if not hasattr(value, "__array__"):
            raise TypeError(f"can't assign a {type(value).__name__} to a {self.type()}")
        return above.tensor(value, dtype=self.dtype)

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
        if isinstance(element, (Tensor, int, float, complex)):
            return bool((element == self).any())  # type: ignore[union-attr]
        refuse_foreign(element)
        raise RuntimeError(
            "Tensor.__contains__ only supports Tensor or scalar, but you passed in a "
            f"{type(element)}."
        )

    __hash__ = object.__hash__

    # ------------------------------------------------------------ Python numbers

    def item(self) -> Any:
        """The single element as a Python number."""
        return attributes.item(self)

    def __bool__(self) -> bool:
        n = self.numel()
        if n == 1:
            if header.is_batched(self._h):
                raise RuntimeError(
                    "vmap: It looks like you're attempting to use a Tensor in some data-dependent "
                    "control flow. We don't support that yet, please file an issue at "
                    "https://github.com/pytorch/pytorch/issues ."
                )
            return bool(self.item())
        if n == 0:
            raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
        raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")

    def _scalar(self) -> Any:
        """The single element for Python's conversions; within a graph PyTorch warns of them."""
        if self.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        if self.requires_grad and get_modes() & GRAD:
            warn_of_conversion()
        return self.item()

    def __int__(self) -> int:
        value = int(_real_of(self._scalar(), "int64_t"))
        if self.dtype.is_signed or value >> 63 == 0:
            return value
        raise RuntimeError(_NO_ROOM.format("int64_t"))

    def __float__(self) -> float:
        return float(_real_of(self._scalar(), "double"))

    def __complex__(self) -> complex:
        return complex(self._scalar())

    def __index__(self) -> int:
        value = self.item() if self.numel() == 1 and not self.dtype._inexact else None
        if value is None:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(value)

    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers (a number for a 0-dim tensor)."""
        return above.tolist(self)

    def numpy(self, *, force: bool = False) -> Any:
        """A NumPy array over the same memory: no copy, and it keeps the tensor alive.

        While the array lives, tensors saved for backward are copied at once, so that writing
        through the array never reaches a gradient.

        Raises:
            RuntimeError: the tensor requires grad (unless `force`, or under no_grad).
        """
        return above.to_numpy(self, force)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        array = self.numpy()
        if dtype is not None:
            array = array.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        return above.data_as_tensor(array.astype("uint8") if array.dtype == bool else array)

    def __reversed__(self) -> Any:
        return self.flip(0) if self.dim() else self

    __array_priority__ = 1000

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None, **options: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        return above.to_dlpack(self, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    # ------------------------------------------------------------ text, copies

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        """The text that PyTorch prints; `tensor_contents` replaces the elements."""
        if header.is_batched(self._h) or get_modes() >> (LEVELS + 1):
            return above.show(self)
        plain = type(self).__dict__.get("_shown_as")
        text = str(_C["_repr"](self, plain or type(self).__name__, tensor_contents))
        marked = self._is_parameter_class or getattr(self, "_is_param", False)
        return f"Parameter({text})" if marked and not plain else text

    def __str__(self) -> str:
        return repr(self)

    def __format__(self, spec: str) -> str:
        if self.ndim == 0 and type(self) is Tensor and not self.is_meta:
            return format(self.item(), spec)
        return object.__format__(self, spec)

    def __copy__(self) -> Tensor:
        made: Tensor = self._make_subclass(type(self), self, attributes.requires_grad(self))
        made.__dict__.update(self.__dict__)
        for name, value in slots_of(self).items():
            setattr(made, name, value)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if not overriding.is_armed() and overriding.is_overriding(self):
            return self.__deepcopy__(memo)  # armed now: the method asks
        if id(self) in memo:
            return memo[id(self)]  # type: ignore[no-any-return]
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy "
                "protocol at the moment.  "
                "If you were attempting to deepcopy a module, this may be because of a "
                "torch.nn.utils.weight_norm usage, see "
                "https://github.com/pytorch/pytorch/pull/103001"
            )
        return above.deep_copy(self, memo)

    def __reduce_ex__(self, protocol: Any) -> Any:
        return above.reduce_tensor(self)

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)} - {*Tensor.__slots__[2:]})

    # ------------------------------------------------------------ operators that are not plain
    # methods

    def __neg__(self) -> Tensor:
        return self.neg()

    def __pos__(self) -> Tensor:
        return self.positive()

    def __abs__(self) -> Tensor:
        return self.abs()

    def __invert__(self) -> Tensor:
        if self.dtype._inexact:
            raise TypeError(
                "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
            )
        return self.bitwise_not()

    # For an operand that is neither a tensor nor a number, NotImplemented lets Python ask the
    # operand.

    def __rdiv__(self, other: Any) -> Tensor:
        try:
            scaled: Tensor = self.reciprocal() * other
        except TypeError:
            return NotImplemented
        return scaled

    __rtruediv__ = __rdiv__

    def __rpow__(self, other: Any) -> Tensor:
        return _call_reflected("pow", self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return _call_reflected("floor_divide", self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return _call_reflected("remainder", self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return _call_reflected("matmul", self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return _call_reflected("bitwise_left_shift", self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return _call_reflected("bitwise_right_shift", self, other)

    @property
    def real(self) -> Tensor:
        """The real parts of complex numbers, a view; of others the tensor itself."""
        return functions.SPACES["torch"]["real"](self)  # type: ignore[no-any-return]

    @real.setter
    def real(self, value: Any) -> None:
        self.real[...] = value

    @property
    def imag(self) -> Tensor:
        """The imaginary parts of complex numbers, a view.

        Raises: RuntimeError: the elements are real.
        """
        return functions.SPACES["torch"]["imag"](self)  # type: ignore[no-any-return]

    @imag.setter
    def imag(self, value: Any) -> None:
        self.imag[...] = value

    def new_tensor(
        self,
        data: Any,
        *,
        dtype: Any = None,
        device: Any = None,
        requires_grad: bool = False,
        **_: Any,
    ) -> Tensor:
        """A tensor from Python data with this one's dtype."""
        return above.tensor_from_data(
            data, dtype or self.dtype, device, requires_grad, "tensor.new_tensor"
        )

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The legacy name of the type, such as 'torch.FloatTensor', or a cast to a type."""
        return above.legacy_name(self) if dtype is None else self.to(above.dtype_named(dtype))

    def data_ptr(self) -> int:
        """The address of the first element in this process, 0 without elements: for code outside
        Python, ctypes and the like. Valid as long as the tensor's storage lives and does not grow.

        The engine cannot know whether or when the address is used to write. So from the first call
        on, the storage is treated like one that a NumPy array shows: it is never moved, and a value
        saved for backward is copied at once instead of at the first write (one copy serves as long
        as the bytes are the same). Values saved before keep their bytes. Hence no write through the
        address changes a gradient.

        This ends when the returned number is freed, if it was hashed or compared with another
        address: such a program only wanted to know which tensors share memory. Otherwise it lasts
        forever. Keep the number as long as you write through it, if you compare it too.

        Not detected: the version counter does not count such writes, so "check" mode does not
        raise; and a write to a gradient or to a value that hooks packed changes it.

        Example:
            >>> import ctypes, pygrad
            >>> x = pygrad.arange(3.0, requires_grad=True)
            >>> elements = (ctypes.c_float * 3).from_address(x.data_ptr())
            >>> loss = (x * x).sum()
            >>> elements[0] = 7
            >>> loss.backward()
            >>> x.tolist(), x.grad.tolist()
            ([7.0, 1.0, 2.0], [0.0, 2.0, 4.0])
        """
        if not self.numel() or attributes.is_absent(self):
            return 0
        _C["_pin"](self)
        return address(header.place_of(self), header.storage_of(self._h))

    def untyped_storage(self) -> Any:
        """The memory behind the tensor, as bytes."""
        return above.UntypedStorage.from_tensor(self)

    def storage(self) -> Any:
        """The memory behind the tensor, as numbers."""
        return above.typed_storage(self)

    typed_storage = storage

    def _typed_storage(self) -> Any:
        return above.typed_storage(self, warn=False)

    def storage_type(self) -> Any:
        """The legacy class of its storage."""
        return above.storage_class(self.dtype)

    def set_(self, *args: Any, **kwargs: Any) -> Tensor:
        """Makes this tensor show the memory of another tensor, or of a storage; of none without an
        argument.

        Args:
            source: the tensor or storage; a storage grows to the requested size.
            storage_offset: the place of the first element, in elements.
            size, stride: the geometry; all of a storage by default.

        Raises:
            RuntimeError: another dtype, or a storage that cannot grow.
        """
        given = args[0] if args else kwargs.get("source")
        if not isinstance(given, (Tensor, int, float, complex, NoneType)):
            refuse_foreign(given)
            if above.is_storage(given):
                given = above.elements_of(given, self.dtype, legacy=False)
                if args:
                    args = (given, *args[1:])
                else:
                    kwargs["source"] = given
        result: Any = _M["set_"](self, *args, **kwargs)
        return self if isinstance(result, Tensor) and answers_for_ops(self) else result

    def is_shared(self) -> bool:
        """Whether its memory is a mapped file, which alone is shared by processes."""
        return header.mapped_of(header.storage_of(self._h)) != 0

    def share_memory_(self) -> Tensor:
        """The tensor itself, if its memory is that of a file.

        Raises:
            NotImplementedError: it is not; a copy in another process would not see writes.
        """
        if self.is_shared():
            return self
        raise NotImplementedError("share_memory_: storages cannot be shared by processes")

    def is_nonzero(self) -> bool:
        """Whether the single element is not zero."""
        return bool(self)

    def dim_order(self, *, ambiguity_check: bool | list[Any] = False) -> tuple[int, ...]:
        """The dimensions from the outermost in memory to the innermost.

        Args:
            ambiguity_check: True to raise where there are several such orders; or the memory
                formats of which exactly one must be this tensor's.

        Raises:
            RuntimeError: the order is ambiguous. TypeError: anything else to check.
        """
        return above.dim_order(self, ambiguity_check)

    def lu(self, pivot: bool = True, get_infos: bool = False) -> Any:
        """`pygrad.lu` of this matrix, or of each of a batch."""
        return above.lu(self, pivot, get_infos)

    def apply_(self, function: Callable[[Any], Any]) -> Tensor:
        """Replaces each element by ``function(element)``. Slow, for CPU tensors, as in PyTorch."""
        return above.apply_(self, function)

    def map_(self, other: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replaces each element by ``callable(element, element of other)``; slow."""
        return above.map_(self, [other], "map_", callable)

    def map2_(self, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any]) -> Tensor:
        """Replaces each element by ``callable(element, element of x, element of y)``."""
        return above.map_(self, [x, y], "map2_", callable)


_NO_ROOM: Final = "value cannot be converted to type {} without overflow"


def _real_of(value: Any, kind: str) -> Any:
    """A number converted to a real type of C, which cannot hold some complex numbers."""
    if not isinstance(value, complex):
        return value
    if value.imag:
        raise RuntimeError(_NO_ROOM.format(kind))
    return value.real


def _call_reflected(op: str, self: Tensor, other: Any) -> Tensor:
    """The op with `other` first; NotImplemented if it does not take such an operand."""
    if kind_of(other) > (K_COMPLEX if op != "matmul" else K_TENSOR):
        return NotImplemented  # type: ignore[no-any-return]
    return invoke(_ROW[op], 0, (other, self), {})  # type: ignore[no-any-return]


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


_KINDS_OF_TENSORS: Final = (K_TENSOR, K_OVERRIDING)


def _register_class(cls: Any) -> None:
    """Registers a class of tensors.

    Raises:
        TypeError: it is no class of tensors.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not "
            "possible. Make sure your class inherits from Tensor."
        )
    if cls not in KINDS:
        kind_of(object.__new__(cls))


def _move_to_class(cls: type, tensor: Tensor) -> Any:
    """Moves a new tensor's handle to an object of another class."""
    out: Any = object.__new__(cls)
    out._h, tensor._h = tensor._h, 0
    return out


def _check_not_taken(cls: type, tensor: Any) -> None:
    """Raises RuntimeError if the tensor's own class handles its ops by __torch_dispatch__."""
    if header.is_hidden(tensor._h) and answers_for_ops(tensor):
        kind = type(tensor.detach())
        if kind is not Tensor and not issubclass(kind, cls):
            raise RuntimeError(
                f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is "
                f"already associated to a python object of type {kind.__name__} which is not a "
                "subclass of the requested type"
            )


def slots_of(tensor: Any) -> dict[str, Any]:
    """The values of the slots of a tensor's class, without the slots of `Tensor`."""
    names: list[str] = copyreg._slotnames(type(tensor))  # type: ignore[attr-defined]
    own = (name for name in names if name not in Tensor.__slots__)
    return {name: getattr(tensor, name) for name in own if hasattr(tensor, name)}


def answers_for_ops(tensor: Any) -> bool:
    """Whether the tensor's class handles ops, by its ``__torch_dispatch__``."""
    return tensor.__torch_dispatch__ is not Tensor.__torch_dispatch__


def _as_class(cls: type, tensor: Tensor) -> Any:
    """A view of a tensor, of another class; hidden elements stay with the class that has them."""
    _register_class(cls)
    view = _get_items(tensor, _ALL)
    if header.is_hidden(view._h):
        return view
    out = _move_to_class(cls, view)
    out._b = getattr(view, "_b", tensor)
    return out


def _mark_if_handles_ops(tensor: Any) -> Any:
    """Marks a new tensor if its class handles ops."""
    if answers_for_ops(tensor):
        above.host_tensor(tensor)
    return tensor


@functools.cache
def class_keeping_getters() -> frozenset[Any]:
    """Getters that return an existing tensor: its class stays."""
    kept = (vars(Tensor)[name] for name in ("_base", "grad", "_grad"))
    return frozenset(each.__get__ for each in kept)


def _convert_result(result: Any, cls: type) -> Any:
    """Gives a class to the result's tensors, including those in lists and tuples. The class does
    not handle ops of tensors that it did not make.
    """
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else _as_class(cls, result)
    if isinstance(result, (tuple, list)) and type(result) is not Size:
        return type(result)([_convert_result(each, cls) for each in result])
    return result


calls.adopt_tensor(Tensor)
calls.holders.append(globals())
adopt_tensor(Tensor)

_OPERATORS: Final = {
    "add": "__add__ __radd__",
    "sub": "__sub__",
    "rsub": "__rsub__",
    "mul": "__mul__ __rmul__",
    "div": "__truediv__ __div__",
    "floor_divide": "__floordiv__",
    "remainder": "__mod__",
    "pow": "__pow__",
    "matmul": "__matmul__",
    "eq": "__eq__",
    "ne": "__ne__",
    "lt": "__lt__",
    "le": "__le__",
    "gt": "__gt__",
    "ge": "__ge__",
    "bitwise_and": "__and__ __rand__",
    "bitwise_or": "__or__ __ror__",
    "bitwise_xor": "__xor__ __rxor__",
    "bitwise_left_shift": "__lshift__",
    "bitwise_right_shift": "__rshift__",
}
_INPLACE_OPERATORS: Final = {
    "add": "__iadd__",
    "sub": "__isub__",
    "mul": "__imul__",
    "div": "__itruediv__ __idiv__",
    "floor_divide": "__ifloordiv__",
    "remainder": "__imod__",
    "pow": "__ipow__",
    "bitwise_and": "__iand__",
    "bitwise_or": "__ior__",
    "bitwise_xor": "__ixor__",
    "bitwise_left_shift": "__ilshift__",
    "bitwise_right_shift": "__irshift__",
}
_NAMED: Final = frozenset(
    "add sub mul div remainder matmul ne lt le gt ge "
    "__rand__ __ror__ __rxor__ __ifloordiv__".split()
)
"""Ops whose operators ``__torch_function__`` sees as the method of their name, ``x + y`` as `add`;
other operators appear under their own names.
"""


def _refuse(name: str) -> Callable[..., None]:
    """A setter or deleter that raises PyTorch's error for a read-only attribute."""

    def refuse(self: Tensor, value: Any = None) -> None:
        raise AttributeError(f"attribute '{name}' of 'torch._C.TensorBase' objects is not writable")

    return refuse


def _yes(self: Tensor) -> bool:
    return True


def _no(self: Tensor) -> bool:
    return False


def _twin(function: Any, name: str) -> FunctionType:
    """A copy of a function as a separate method, in front of which a gate may be put."""
    own = FunctionType(function.__code__, function.__globals__, name)
    own.__doc__, own.__annotations__ = function.__doc__, function.__annotations__
    own.__qualname__, own.__module__ = f"Tensor.{name}", __name__
    return own


def _install() -> None:
    """Puts the table's methods and the operators on the class, and replaces methods that call the
    engine by ones that read its memory. Other methods of the class stay.
    """
    for name, quick in attributes.QUICK.items():
        found = Tensor.__dict__[name]
        if isinstance(found, property):
            setattr(Tensor, name, property(quick, found.fset, found.fdel, found.__doc__))
        else:
            setattr(Tensor, name, _twin(quick, name))
    Tensor.ndimension, Tensor.nelement = (
        _twin(Tensor.dim, "ndimension"),
        _twin(Tensor.numel, "nelement"),
    )
    overriding.NAMES[Tensor.nelement] = "numel"
    for name, found in list(vars(Tensor).items()):
        if type(found) is bool:
            found = property(_yes if found else _no)
            setattr(Tensor, name, found)
        if isinstance(found, property) and found.fdel is None:
            refuse = _refuse(name)
            setattr(
                Tensor,
                name,
                property(found.fget, found.fset or refuse, refuse, doc=found.__doc__),
            )
    for name, method in _M.items():
        if name not in Tensor.__dict__:
            setattr(Tensor, name, method)
    for name, get in functions.SPACES["property"].items():
        if name not in Tensor.__dict__:
            refuse = _refuse(name)
            setattr(Tensor, name, property(get, refuse, refuse, doc=get.__doc__))
    for table, mode in (
        (_OPERATORS, _boundary.METHOD),
        (_INPLACE_OPERATORS, _boundary.METHOD | _boundary.INPLACE),
    ):
        for op, names in table.items():
            if op not in _ROW:
                continue
            for name in names.split():
                function = binary(_ROW[op], mode, op != "matmul")
                function.__name__, function.__qualname__ = name, f"Tensor.{name}"
                function.__module__ = __name__
                setattr(Tensor, name, function)
                if op in _NAMED or name in _NAMED:
                    overriding.NAMES[function] = op + "_" * (mode != _boundary.METHOD)


_install()
_require_grad = _M["requires_grad_"]
_GETITEM = _ROW["_getitem"]
_SETITEM = _ROW["_setitem"]
_get_items = subscript(_GETITEM)
_ALL: Final = Index([ELLIPSIS], [])


def _get_any(self: Tensor, index: Any) -> Any:
    """``x[index]`` for an index other than an int, or a tensor of another class."""
    if overriding.modes_anywhere and overriding.has_modes():
        pass
    elif type(self) is Tensor or _state.off or kind_of(self) == K_TENSOR:
        try:
            return _get_items(self, encode_index(index))
        except Overridden:
            pass
    args = (self, *index) if type(index) is tuple else (self, index)
    found = overriding.overloaded_args(args)
    return overriding.call(Tensor.__getitem__, (self, index), {}, found)


_state: Final = overriding.state
Tensor.__getitem__ = indexer(_GETITEM, _get_any)  # type: ignore[method-assign]
Tensor.__getitem__.__name__ = "__getitem__"
Tensor.__getitem__.__qualname__ = "Tensor.__getitem__"
Tensor.__getitem__.__module__ = __name__
_backward = command(_ROW["_backward_of"])


_ASKED_BY_NONE: Final = frozenset(
    "__class_getitem__ __copy__ __del__ __delattr__ __getattribute__ __hash__ __init__ "
    "__init_subclass__ __iter__ __new__ __setattr__ __setstate__ __subclasshook__ "
    "__delitem__ __array_wrap__ as_subclass".split()
)
_NAMED_BY_OTHERS: Final = frozenset("__neg__ __pos__ __abs__ __str__".split())
"""Methods that overriding types see as another method, which they call."""
_ASKED_PRIVATE: Final = frozenset("_base _grad _grad_fn _cdata _version _typed_storage".split())


def is_asked(name: str) -> bool:
    """Whether subclasses override a method or attribute written in Python: a name of PyTorch if
    they do there.
    """
    private = name.startswith("_") and not name.endswith("__")
    return name in _ASKED_PRIVATE if private else name not in _ASKED_BY_NONE


def _module_of(function: Any) -> str:
    return str(getattr(function, "__globals__", {}).get("__name__"))


def _put_gates() -> None:
    """Lets methods written in Python ask overriding types, as the table's methods do. Methods that
    a program has set on the class do not ask.
    """
    inside, of_table = f"{PACKAGE}.", f"{PACKAGE}._boundary.shapes"
    done = set()
    for name, found in list(vars(Tensor).items()):
        if not is_asked(name) or name in _NAMED_BY_OTHERS:
            continue
        if isinstance(found, property):
            if _module_of(found.fget).startswith(inside):
                overriding.put_gates_on(Tensor, name, found)
        elif isinstance(found, FunctionType):
            module = _module_of(found)
            if module.startswith(inside) and module != of_table and found not in done:
                overriding.put_gate(found)
                done.add(found)


overriding.run_when_armed(_put_gates)
