"""Helpers that libraries import: lists of tensors as one vector, devices by number, properties of
classes, rebuilding tensors from files.
"""

from __future__ import annotations

import os
import sys
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, ParamSpec

from .._ground.dtypes import device as _Device
from .._ground.dtypes import dtype as _Dtype
from .._table import functions
from .._tensor.rebuild import _get_obj_state as _get_obj_state
from .._tensor.rebuild import (
    _rebuild_device_tensor_from_cpu_tensor as _rebuild_device_tensor_from_cpu_tensor,
)
from .._tensor.rebuild import _rebuild_device_tensor_from_numpy as _rebuild_device_tensor_from_numpy
from .._tensor.rebuild import _rebuild_meta_tensor_no_storage as _rebuild_meta_tensor_no_storage
from .._tensor.rebuild import _rebuild_nested_tensor as _rebuild_nested_tensor
from .._tensor.rebuild import _rebuild_parameter as _rebuild_parameter
from .._tensor.rebuild import _rebuild_parameter_with_state as _rebuild_parameter_with_state
from .._tensor.rebuild import _rebuild_qtensor as _rebuild_qtensor
from .._tensor.rebuild import _rebuild_sparse_tensor as _rebuild_sparse_tensor
from .._tensor.rebuild import _rebuild_tensor as _rebuild_tensor
from .._tensor.rebuild import _rebuild_tensor_v2 as _rebuild_tensor_v2
from .._tensor.rebuild import _rebuild_tensor_v3 as _rebuild_tensor_v3
from .._tensor.rebuild import _rebuild_wrapper_subclass as _rebuild_wrapper_subclass
from .._tensor.rebuild import _rebuild_xla_tensor as _rebuild_xla_tensor
from .._tensor.rebuild import _set_obj_state as _set_obj_state
from .._tensor.rebuild import get_tensor_metadata as get_tensor_metadata
from .._tensor.tensor import Tensor

__all__: list[str] = []

P = ParamSpec("P")
_f = functions.SPACES["torch"]

# ------------------------------------------------------------------ lists of tensors


def _flatten_dense_tensors(tensors: Iterable[Tensor]) -> Tensor:
    """All elements of tensors of one dtype, in a row.

    Example:
        >>> import pygrad
        >>> pygrad._utils._flatten_dense_tensors([pygrad.ones(2, 1), pygrad.zeros(1)])
        tensor([1., 1., 0.])
    """
    return _f["cat"]([each.contiguous().view(-1) for each in tensors])  # type: ignore[no-any-return]


def _unflatten_dense_tensors(flat: Tensor, tensors: Iterable[Tensor]) -> tuple[Tensor, ...]:
    """Views of a row, shaped as these tensors one after the other."""
    found = []
    start = 0
    for each in tensors:
        found.append(flat.narrow(0, start, each.numel()).view_as(each))
        start += each.numel()
    return tuple(found)


def _take_tensors(tensors: Iterable[Tensor], size_limit: int) -> Iterator[list[Tensor]]:
    """Splits tensors by type into lists whose bytes do not exceed the limit, unless a single tensor
    does.
    """
    waiting: defaultdict[str, tuple[list[Tensor], int]] = defaultdict(lambda: ([], 0))
    for each in tensors:
        kind = each.type()
        size = each.numel() * each.element_size()
        held, total = waiting[kind]
        if total + size > size_limit and total > 0:
            yield held
            held, total = [], 0
        waiting[kind] = [*held, each], total + size
    for held, _ in waiting.values():
        if held:
            yield held


def _reorder_tensors_as(tensors: Iterable[Tensor], ordered_tensors: Iterable[Tensor]) -> Any:
    """The tensors in the order in which their types come in the others."""
    by_type: defaultdict[str, list[Tensor]] = defaultdict(list)
    for each in tensors:
        by_type[each.type()].append(each)
    given = {kind: iter(each) for kind, each in by_type.items()}
    return tuple(next(given[each.type()]) for each in ordered_tensors)


def _element_size(dtype: _Dtype) -> int:
    """The bytes of an element.

    Example:
        >>> import pygrad
        >>> pygrad._utils._element_size(pygrad.float16)
        2
    """
    if not isinstance(dtype, _Dtype):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _handle_complex(tensor: Any) -> Any:
    """A complex tensor as pairs of real numbers; others unchanged."""
    complex_one = isinstance(tensor, Tensor) and tensor.is_complex()
    return _f["view_as_real"](tensor) if complex_one else tensor


# ------------------------------------------------------------------ devices


def _get_available_device_type() -> str | None:
    """The kind of accelerator that there is: None."""
    return None


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int | None:
    """The number of a GPU.

    Args:
        device: a number, a device or its name.
        optional: whether None is the present one.
        allow_cpu: whether the CPU is -1.

    Raises:
        ValueError: the CPU, where it is not allowed, or nothing.

    Example:
        >>> import pygrad
        >>> pygrad._utils._get_device_index("cuda:1"), pygrad._utils._get_device_index(3)
        (1, 3)
    """
    if isinstance(device, str):
        device = _Device(device)
    number = None
    if isinstance(device, _Device):
        if not allow_cpu and device.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {device}")
        number = -1 if device.type == "cpu" else device.index
    if isinstance(device, int):
        number = device
    if number is None:
        if optional:
            return None
        raise ValueError(
            f"Expected a torch.device with a specified index or an integer, but got:{device}"
        )
    return number


def _get_current_device_index() -> None:
    """The number of the present GPU: None, as there is no GPU."""


get_current_device_index = _get_current_device_index


def _get_all_device_indices() -> None:
    """The numbers of all GPUs: None, as there is no GPU."""


def cpu_count() -> int:
    """How many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


# ------------------------------------------------------------------ classes


class _ClassPropertyDescriptor:
    """A property of a class."""

    def __init__(self, fget: Any, fset: Any = None) -> None:
        self.fget = fget

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self.fget.__get__(instance, type(instance) if owner is None else owner)()


def classproperty(func: Any) -> _ClassPropertyDescriptor:
    """A decorator: a method without arguments that is a property of the class.

    Example:
        >>> import pygrad
        >>> class Named:
        ...     @pygrad._utils.classproperty
        ...     def name(cls):
        ...         return cls.__name__
        >>> Named.name
        'Named'
    """
    if not isinstance(func, (classmethod, staticmethod)):
        func = classmethod(func)
    return _ClassPropertyDescriptor(func)


def _dummy_type(name: str) -> type:
    """A class in place of one that is not built in; it cannot be instantiated."""

    def refuse(cls: Any, *args: Any, **kwargs: Any) -> Any:
        where = cls if isinstance(cls, type) else type(cls)
        raise RuntimeError(f"Tried to instantiate dummy base class {where.__name__}")

    return type(name, (object,), {"__init__": refuse, "__new__": refuse})


def is_compiling() -> bool:
    """Whether a compiler runs the program: none does."""
    return False


class CallbackRegistry(Generic[P]):
    """Functions that are called together.

    Example:
        >>> import pygrad
        >>> registry = pygrad._utils.CallbackRegistry("greetings")
        >>> registry.add_callback(print)
        >>> registry.fire_callbacks("hello")
        hello
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.callback_list: list[Callable[P, None]] = []

    def add_callback(self, cb: Callable[P, None]) -> None:
        """Adds a function."""
        self.callback_list.append(cb)

    def fire_callbacks(self, *args: P.args, **kwargs: P.kwargs) -> None:
        """Calls all callbacks; an exception of one is reported and dropped."""
        for callback in self.callback_list:
            try:
                callback(*args, **kwargs)
            except Exception as error:
                sys.stderr.write(f"Exception in callback for {self.name}: {error}\n")


# ------------------------------------------------------------------ errors of other processes


class KeyErrorMessage(str):
    """A text that KeyError shows unquoted, with its lines."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception of another thread or process, with its traceback as a text.

    Example:
        >>> import pygrad
        >>> try:
        ...     raise ValueError("no")
        ... except ValueError:
        ...     caught = pygrad._utils.ExceptionWrapper(where="in worker 1")
        >>> caught.reraise()
        Traceback (most recent call last):
        ValueError: Caught ValueError in worker 1.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background") -> None:
        kind, value, trace = sys.exc_info() if exc_info is None else exc_info
        self.exc_type = kind
        self.exc_msg = "".join(traceback.format_exception(kind, value, trace))
        self.where = where

    def reraise(self) -> None:
        """Raises an exception of the same type with the full traceback in its text."""
        kind: Any = self.exc_type
        text = f"Caught {kind.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if kind is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(kind, "message", None):
            raise kind(message=text)
        try:
            error = kind(text)
        except Exception:  # the type needs other arguments
            raise RuntimeError(text) from None
        raise error


def render_call(fn: Callable[..., Any], args: Any, kwargs: Any) -> str:
    """The text of a call, with arguments by their repr."""
    name = getattr(fn, "__qualname__", None) or str(fn)
    parts = [*map(repr, args), *(f"{key}={value!r}" for key, value in kwargs.items())]
    return f"torch.{name}({', '.join(parts)})"


def _import_dotted_name(name: str) -> Any:
    """The object of a module by its full name."""
    import importlib

    first, *rest = name.split(".")
    found: Any = importlib.import_module(first)
    for part in rest:
        found = getattr(found, part)
    return found
