"""PyTorch's names from before dtypes: `Tensor(...)`, `FloatTensor` and its like, and what takes
them.
"""

from __future__ import annotations

import warnings
from typing import Any, Final

from . import _ops
from ._creation import _default_dtype, _is_sequence, _tensor_from, empty_for_host
from ._dtypes import BY_NAME, Size, dtype
from ._functions import is_storage
from ._tensor import Tensor


def legacy_tensor(*args: Any, kind: dtype | None = None, **kwargs: Any) -> Tensor:
    """``Tensor(2, 3)`` (sizes, uninitialised) and ``Tensor([1.0, 2.0])`` (data), as PyTorch still
    has them.
    """
    kind = kind or _default_dtype()
    if kwargs:
        raise TypeError(f"new() received unexpected keyword arguments {sorted(kwargs)}")
    if args and all(isinstance(a, int) for a in args):
        return empty_for_host(args, kind)[0]
    if not args:
        return empty_for_host((0,), kind)[0]
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].to(kind).detach()
    if len(args) == 1 and isinstance(args[0], Size):
        return empty_for_host(args[0], kind)[0]
    if len(args) == 1 and is_storage(args[0]):
        from .storage import elements_of

        return elements_of(args[0], kind, legacy=True)
    if len(args) == 1 and (_is_sequence(args[0]) or hasattr(args[0], "__array__")):
        return _tensor_from(args[0], kind, copy=True)
    raise TypeError(f"new(): data must be a sequence (got {type(args[0]).__name__})")


class tensortype(type):
    """The class of ``FloatTensor`` and its like: calling one makes a tensor of its dtype, and
    ``isinstance`` asks for that dtype.
    """

    dtype: dtype

    def __call__(cls, *args: Any) -> Tensor:
        return legacy_tensor(*args, kind=cls.dtype)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype


def _type(name: str, kind: str) -> tensortype:
    made = tensortype(
        name,
        (),
        {
            "__doc__": f"A {kind} tensor of these sizes (uninitialised) or data; "
            "PyTorch's legacy constructor.",
            "__module__": __package__,
            "dtype": BY_NAME[kind],
        },
    )
    _types[BY_NAME[kind]] = made
    return made


_types: Final[dict[dtype, tensortype]] = {}
FloatTensor = _type("FloatTensor", "float32")
DoubleTensor = _type("DoubleTensor", "float64")
LongTensor = _type("LongTensor", "int64")
IntTensor = _type("IntTensor", "int32")
ShortTensor = _type("ShortTensor", "int16")
CharTensor = _type("CharTensor", "int8")
ByteTensor = _type("ByteTensor", "uint8")
BoolTensor = _type("BoolTensor", "bool")


def legacy_name(tensor: Tensor) -> str:
    """The type's name in PyTorch's old style."""
    return f"torch.{_types[tensor.dtype].__name__}"


def dtype_named(kind: Any) -> dtype:
    """The dtype that a dtype, a legacy type or its name, such as 'torch.FloatTensor', stands for.

    Raises:
        ValueError: no such name. TypeError: anything else.
    """
    if isinstance(kind, dtype):
        return kind
    if isinstance(kind, tensortype):
        return kind.dtype
    if kind is Tensor or kind == "torch.Tensor":
        return _default_dtype()
    if isinstance(kind, str):
        for made in _types.values():
            if kind == f"torch.{made.__name__}":
                return made.dtype
        raise ValueError(f"invalid type: '{kind}'")
    raise TypeError("dtype must be a type, str, or dtype object")


def set_default_tensor_type(t: Any, /) -> None:
    """Makes the dtype of a legacy type, or of its name, that of new tensors of Python floats.

    Deprecated in favour of `set_default_dtype`.

    Raises:
        ValueError: no such name. TypeError: not a floating type.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     pygrad.set_default_tensor_type(pygrad.FloatTensor)
    """
    if not isinstance(t, (str, tensortype)) and t is not Tensor:
        raise TypeError(
            "invalid type object: only floating-point types are supported as the default type"
        )
    kind = dtype_named(t)
    warnings.warn(
        "torch.set_default_tensor_type() is deprecated as of PyTorch 2.1, please use "
        "torch.set_default_dtype() and torch.set_default_device() as alternatives.",
        stacklevel=2,
    )
    if not kind.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    _ops.C["_set_default_dtype"](kind)
