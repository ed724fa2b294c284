"""PyTorch's names from before dtypes: `Tensor(...)`, `FloatTensor` and its like, and the functions
that take them.
"""

from __future__ import annotations

import warnings
from typing import Any

from .._boundary import calls
from .._boundary.blocks import empty_for_host
from .._ground.dtypes import ALL, BY_NAME, C_NAMES, Size, dtype, layout, sparse_coo, strided
from .._ground.dtypes import device as as_device
from .._ground.package import PACKAGE
from .._table import functions
from .base import Tensor
from .creation import _default_dtype, _is_sequence, _tensor_from
from .functions import is_storage
from .subclassing import SubclassMethods

_C = functions.C


def _options(kind: dtype) -> str:
    return (
        f"TensorOptions(dtype={C_NAMES[kind]}, device=cpu, layout=Strided, "
        "requires_grad=false (default), pinned_memory=false (default), memory_format=(nullopt))"
    )


def _no_combination(args: tuple[Any, ...], kwargs: dict[str, Any]) -> TypeError:
    given = [type(each).__name__ for each in args]
    given += [
        f"{name}={'torch.dtype' if isinstance(value, dtype) else type(value).__name__}"
        for name, value in kwargs.items()
    ]
    wrong = f"      didn't match because some of the keywords were incorrect: {', '.join(kwargs)}\n"
    return TypeError(
        f"new() received an invalid combination of arguments - got ({', '.join(given)}), but "
        f"expected one of:\n * (*, torch.device device = None)\n{wrong if kwargs else ''}"
        " * (torch.Storage storage)\n * (Tensor other)\n"
        " * (tuple of ints size, *, torch.device device = None)\n"
        " * (object data, *, torch.device device = None)\n"
    )


def _sizes(args: tuple[Any, ...]) -> list[int]:
    """Sizes given as separate arguments, each an int or a one-element tensor."""
    sizes = []
    for i, size in enumerate(args):
        if isinstance(size, bool) or not hasattr(size, "__index__"):
            raise TypeError(
                f"new(): argument 'size' failed to unpack the object at pos {i + 1} with error "
                f'"type must be tuple of ints,but got {type(size).__name__}"'
            )
        sizes.append(size.__index__())
    return sizes


def _check_device(device: Any) -> None:
    if device is not None and as_device(device).type != "cpu":
        raise RuntimeError(
            "legacy constructor expects device type: cpu but device type: "
            f"{as_device(device).type} was passed"
        )


def legacy_sparse(*args: Any, kind: dtype, device: Any = None) -> Tensor:
    """``FloatTensor(indices, values[, size])`` of `torch.sparse`, and ``FloatTensor(2, 3)`` without
    elements.
    """
    _check_device(device)
    if len(args) > 1 and all(isinstance(each, Tensor) for each in args[:2]):
        if len(args) > 3:
            raise TypeError(f"new() takes 3 positional arguments but {len(args)} were given")
        given = None if len(args) < 3 else tuple(args[2])
        made: Tensor = _C["_sparse_coo_tensor"](*args[:2], given, None, False, None, False)
        return made
    if len(args) == 1 and isinstance(args[0], Tensor):
        raise _no_combination(args, {})
    if len(args) == 1 and not isinstance(args[0], Size) and _is_sequence(args[0]):
        raise TypeError(
            "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use "
            "torch.sparse_coo_tensor() or construct a strided tensor and convert it to sparse via "
            "to_sparse."
        )
    size = args[0] if args and isinstance(args[0], Size) else _sizes(args) or (0,)
    empty: Tensor = _C["_sparse_coo_empty"](tuple(size), kind, False)
    return empty


def legacy_tensor(
    *args: Any,
    kind: dtype | None = None,
    device: Any = None,
    layout: layout = strided,
    **kwargs: Any,
) -> Tensor:
    """``Tensor(2, 3)`` (sizes, uninitialised), ``Tensor([1.0, 2.0])`` (data) and ``Tensor(other)``
    (an alias), as PyTorch still has them.

    Args:
        kind: the dtype; if None, another tensor's or the default one.
        layout: COO for the tensors of `legacy_sparse`.

    Raises:
        TypeError: other arguments, or a tensor of another dtype.
    """
    if len(kwargs) == 1 and not args and next(iter(kwargs)) in ("size", "data", "other"):
        (value,) = kwargs.values()
        args, kwargs = (Size(value) if "size" in kwargs else value,), {}
    if kwargs:
        raise _no_combination(args, kwargs)
    wanted = kind or _default_dtype()
    if layout is sparse_coo:
        return legacy_sparse(*args, kind=wanted, device=device)
    _check_device(device)
    first: Any = args[0] if args else ()
    if len(args) == 1 and isinstance(first, Tensor):
        if kind is not None and first.dtype is not kind:
            raise TypeError(f"expected {_options(kind)} (got {_options(first.dtype)})")
        # asks no class, as __getitem__ would
        return SubclassMethods.as_subclass(first, calls._tensor_type)  # type: ignore[no-any-return]
    is_number = hasattr(first, "__index__") and not isinstance(first, bool)
    is_array = bool(getattr(first, "ndim", 0))
    if is_number and not is_array:
        return empty_for_host(_sizes(args), wanted)[0]
    if len(args) > 1:
        raise _no_combination(args, {})
    if not args or isinstance(first, Size):
        return empty_for_host(first if args else (0,), wanted)[0]
    if is_storage(first):
        from ..storage import elements_of

        return elements_of(first, wanted, legacy=True)
    if isinstance(first, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(first).__name__}'")
    if _is_sequence(first) or is_array:
        return _tensor_from(first, wanted, copy=True)
    raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")


class tensortype(type):
    """The class of ``FloatTensor`` and its like: calling one makes a tensor of its dtype, and
    ``isinstance`` tests for that dtype.
    """

    dtype: dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return legacy_tensor(*args, kind=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype


def _type(name: str) -> tensortype:
    kind = BY_NAME[name]
    return tensortype(
        f"{kind.legacy}Tensor",
        (),
        {
            "__doc__": f"A {name} tensor of these sizes (uninitialised) or data; "
            "PyTorch's legacy constructor.",
            "__module__": PACKAGE,
            "dtype": kind,
            "layout": strided,
            "is_sparse": False,
        },
    )


FloatTensor = _type("float32")
DoubleTensor = _type("float64")
HalfTensor = _type("float16")
BFloat16Tensor = _type("bfloat16")
LongTensor = _type("int64")
IntTensor = _type("int32")
ShortTensor = _type("int16")
CharTensor = _type("int8")
ByteTensor = _type("uint8")
BoolTensor = _type("bool")


def legacy_name(tensor: Tensor) -> str:
    """The type's name in PyTorch's old style."""
    space = "torch.sparse" if tensor.layout is sparse_coo else "torch"
    return f"{space}.{tensor.dtype.legacy}Tensor"


def dtype_named(kind: Any) -> dtype:
    """The dtype of a dtype, a legacy type or its name, such as 'torch.FloatTensor'.

    Raises:
        ValueError: no such name. TypeError: anything else.
    """
    if isinstance(kind, dtype):
        return kind
    if isinstance(kind, tensortype):
        return kind.dtype
    if kind is calls._tensor_type or kind == "torch.Tensor":
        return _default_dtype()
    if isinstance(kind, str):
        for found in ALL:
            if kind in (f"torch.{found.legacy}Tensor", f"torch.sparse.{found.legacy}Tensor"):
                return found
        raise ValueError(f"invalid type: '{kind}'")
    raise TypeError("dtype must be a type, str, or dtype object")


def set_default_tensor_type(t: Any, /) -> None:
    """Sets the dtype of new tensors of Python floats to that of a legacy type, given by class or
    name.

    Deprecated in favour of `set_default_dtype`.

    Raises:
        ValueError: no such name. TypeError: not a floating type.

    Example:
        >>> import pygrad, warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     pygrad.set_default_tensor_type(pygrad.FloatTensor)
    """
    if not isinstance(t, (str, tensortype)) and t is not calls._tensor_type:
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
    functions.C["_set_default_dtype"](kind)
