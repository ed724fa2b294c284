"""Parses the arguments of ``to``, for modules and for classes that wrap a module."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import complex128, float64
from .._ground.dtypes import device as device_class
from .._ground.dtypes import dtype as dtype_class
from .._table.builtins import builtin
from .tensor import Tensor

_TO_FORMS = (
    "(torch.device device = None, torch.dtype dtype = None, bool non_blocking = False, "
    "bool copy = False, *, torch.memory_format memory_format = None)",
    "(torch.dtype dtype, bool non_blocking = False, bool copy = False, "
    "*, torch.memory_format memory_format = None)",
    "(Tensor tensor, bool non_blocking = False, bool copy = False, "
    "*, torch.memory_format memory_format = None)",
)
_PYTHON_DTYPES: dict[Any, dtype_class] = {float: float64, complex: complex128}


def _wrong_call_of_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    got = ", ".join(type(arg).__name__ for arg in args)
    named = "".join(f"{name}={type(value).__name__}, " for name, value in kwargs.items())
    forms = "".join(f"\n * {form}" for form in _TO_FORMS)
    separator = ", " if got and named else ""
    named = named if not got else named[:-2]
    return (
        f"to() received an invalid combination of arguments - got ({got}{separator}{named}), "
        f"but expected one of:{forms}\n"
    )


@builtin
def parse_to(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, non_blocking and memory format that a call of ``to`` means."""
    first = "device"
    if "tensor" in kwargs or (args and isinstance(args[0], Tensor)):
        first = "tensor"
    elif args and (isinstance(args[0], dtype_class) or args[0] in _PYTHON_DTYPES):
        first = "dtype"
    names = (first, *(("dtype",) if first == "device" else ()), "non_blocking", "copy")
    given: dict[str, Any] = dict(zip(names, args, strict=False))
    wrong = (kwargs.keys() - {*names, "memory_format"}) | (kwargs.keys() & given.keys())
    if len(args) > 4:
        raise TypeError(f"to() takes from 0 to 4 positional arguments but {len(args)} were given")
    if wrong or len(args) > len(names):
        raise TypeError(_wrong_call_of_to(args, kwargs))
    given.update(kwargs)
    if "copy" in given:
        raise RuntimeError(".to() does not accept copy argument")
    non_blocking = bool(given.get("non_blocking", False))
    memory_format = given.get("memory_format")
    tensor = given.get("tensor")
    if tensor is not None:
        return tensor.device, tensor.dtype, non_blocking, memory_format
    device, dtype = given.get("device"), given.get("dtype")
    if dtype in _PYTHON_DTYPES:
        dtype = _PYTHON_DTYPES[dtype]
    if dtype is not None and not isinstance(dtype, dtype_class):
        raise TypeError(_wrong_call_of_to(args, kwargs))
    if isinstance(device, (str, int)):
        device = device_class(device)
    return device, dtype, non_blocking, memory_format
