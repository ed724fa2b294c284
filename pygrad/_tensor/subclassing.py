"""Methods of `Tensor` for its subclasses: conversion, ``__torch_function__``, and
``__torch_dispatch__``.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from .._boundary import attributes, calls, header, overriding
from .._boundary.arguments import (
    K_OVERRIDING,
    K_TENSOR,
    KINDS,
    Index,
    kind_of,
    refuse_foreign,
)
from .._boundary.constants import ITEM_ELLIPSIS
from .._boundary.shapes import subscript
from .._dispatch.handlers import disabled_dispatch
from .._ground.dtypes import Size
from .._ground.package import function_like
from .._table import functions
from .base import TensorBase, as_leaf, check_class, move_to_class, slots_of
from .late import late

if TYPE_CHECKING:
    from .tensor import Tensor

_T = TypeVar("_T")
_C = functions.C
_get_items = subscript(calls.ROWS["_getitem"])
_ALL: Final = Index([ITEM_ELLIPSIS], [])


@late
def _wrappers() -> Any:
    from .._dispatch import wrappers

    return wrappers


class SubclassMethods(TensorBase):
    """Methods of `Tensor` that its subclasses override, or that make one of them."""

    __slots__ = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Disables ``__torch_function__`` of a class that handles ops below autograd, unless it
        defines both.
        """
        super().__init_subclass__(**options)
        method = getattr(cls.__torch_function__, "__func__", None)
        if (
            method is SubclassMethods.__torch_function__.__func__  # type: ignore[attr-defined]
            and cls.__torch_dispatch__ is not disabled_dispatch
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
        if not isinstance(data, TensorBase):
            refuse_foreign(data)
            raise TypeError(
                "_make_subclass(): argument 'data' (position 2) must be Tensor, not "
                f"{type(data).__name__}"
            )
        if cls is not type(data):
            _check_not_taken(cls, data)
        out = _mark_if_handles_ops(move_to_class(cls, _C["data"](data)))
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
        return _mark_if_handles_ops(_as_class(cls, self))  # type: ignore[arg-type, no-any-return]

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
        state, plain = overriding.state, calls._tensor_type
        before = state.off
        # a function of PyTorch, which would ask again
        if before and cls is plain and plain in types:
            func = function_like(func)
            if func is None:
                return NotImplemented
        state.off = max(before, overriding.SUBCLASSES_OFF)
        try:
            result = func(*args, **(kwargs or {}))
        finally:
            state.off = before
        if type(result) is plain and cls is not plain and func in class_keeping_getters():
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
        return _wrappers().make_wrapper(cls, size, *args, **options)

    __torch_dispatch__ = staticmethod(disabled_dispatch)

    def __copy__(self) -> Tensor:
        made: Tensor = self._make_subclass(type(self), self, attributes.requires_grad(self))  # type: ignore[arg-type]
        made.__dict__.update(self.__dict__)
        for name, value in slots_of(self).items():
            setattr(made, name, value)
        return made


_KINDS_OF_TENSORS: Final = (K_TENSOR, K_OVERRIDING)


def _register_class(cls: Any) -> None:
    """Registers a class of tensors.

    Raises:
        TypeError: it is no class of tensors.
    """
    check_class(cls)
    if cls not in KINDS:
        kind_of(object.__new__(cls))


def _check_not_taken(cls: type, tensor: Any) -> None:
    """Raises RuntimeError if the tensor's own class handles its ops by __torch_dispatch__."""
    if header.is_hidden(tensor._h) and answers_for_ops(tensor):
        kind = type(tensor.detach())
        if kind is not calls._tensor_type and not issubclass(kind, cls):
            raise RuntimeError(
                f"Creating a new Tensor subclass {cls.__name__} but the raw Tensor object is "
                f"already associated to a python object of type {kind.__name__} which is not a "
                "subclass of the requested type"
            )


def answers_for_ops(tensor: Any) -> bool:
    """Whether the tensor's class handles ops, by its ``__torch_dispatch__``."""
    return tensor.__torch_dispatch__ is not disabled_dispatch


def _as_class(cls: type, tensor: Tensor) -> Any:
    """A view of a tensor, of another class; hidden elements stay with the class that has them."""
    _register_class(cls)
    view = _get_items(tensor, _ALL)
    if header.is_hidden(view._h):
        return view
    out = move_to_class(cls, view)
    out._b = getattr(view, "_b", tensor)
    return out


def _mark_if_handles_ops(tensor: Any) -> Any:
    """Marks a new tensor if its class handles ops."""
    if answers_for_ops(tensor):
        _wrappers().host_tensor(tensor)
    return tensor


@functools.cache
def class_keeping_getters() -> frozenset[Any]:
    """Getters that return an existing tensor: its class stays."""
    kept = (getattr(calls._tensor_type, name) for name in ("_base", "grad", "_grad"))
    return frozenset(each.__get__ for each in kept)


def _convert_result(result: Any, cls: type) -> Any:
    """Gives a class to the result's tensors, including those in lists and tuples. The class does
    not handle ops of tensors that it did not make.
    """
    if isinstance(result, TensorBase):
        return result if isinstance(result, cls) else _as_class(cls, result)  # type: ignore[arg-type]
    if isinstance(result, (tuple, list)) and type(result) is not Size:
        return type(result)([_convert_result(each, cls) for each in result])
    return result
