"""Names of types for annotations.

Example:
    >>> import pygrad as torch
    >>> isinstance(1.5, torch.types.Number)
    True
"""

from __future__ import annotations

import builtins
import os
from typing import Any, TypeAlias

from .._ground.dtypes import Size, device, dtype, layout
from .._ground.package import submodule
from .._tensor.tensor import Tensor

__all__ = ["Device", "FileLike", "Number", "Size", "Tensor", "device", "dtype"]

Number: TypeAlias = int | float | bool
Device: TypeAlias = device | str | int | None
FileLike: TypeAlias = Any
"""A name of a file, or an object that reads and writes like one."""
IntLikeType: TypeAlias = int
FloatLikeType: TypeAlias = float
BoolLikeType: TypeAlias = bool
PySymType: TypeAlias = int | float | bool
py_sym_types: tuple[type, ...] = ()
_TensorOrTensors: TypeAlias = Tensor | tuple[Tensor, ...]
_TensorOrTensorsOrGradEdge: TypeAlias = Any
_TensorOrOptionalTensors: TypeAlias = Tensor | None
_dtype: TypeAlias = dtype
_device: TypeAlias = device
_layout: TypeAlias = layout
_size: TypeAlias = Size | list[int] | tuple[int, ...]
_symsize: TypeAlias = _size
_dispatchkey: TypeAlias = str
_int, _float, _bool = builtins.int, builtins.float, builtins.bool
_str, _bytes, _complex = builtins.str, builtins.bytes, builtins.complex
_PathLike: TypeAlias = str | os.PathLike[str]


def __getattr__(name: str) -> Any:
    if name == "Storage":  # loads the module on first use
        return submodule("storage").UntypedStorage
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
