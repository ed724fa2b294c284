"""Notes of a graph about a tensor: its type in few letters, its shape, its place."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from .._ground.dtypes import (
    Size,
    channels_last,
    channels_last_3d,
    contiguous_format,
    dtype,
    memory_format,
)
from .._tensor.tensor import Tensor

_LETTERS: Final = {"float": "f", "bfloat": "bf", "complex": "c", "int": "i", "uint": "u"}


class TensorMetadata(NamedTuple):
    """A tensor without its elements."""

    shape: Size
    dtype: dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: memory_format | None
    is_quantized: bool
    qparams: dict[str, Any]


def metadata_of(result: Tensor, include_contiguity: bool = True) -> TensorMetadata:
    """The notes of a graph about a tensor."""
    laid_out = None
    if include_contiguity:
        for each in (contiguous_format, channels_last, channels_last_3d):
            if result.is_contiguous(memory_format=each):
                laid_out = each
                break
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), laid_out, False, {}
    )


def abbreviate_dtype(kind: dtype) -> str:
    """A dtype in few letters.

    Example:
        >>> import pygrad
        >>> from pygrad.fx._metadata import abbreviate_dtype
        >>> abbreviate_dtype(pygrad.float32), abbreviate_dtype(pygrad.bool)
        ('f32', 'b8')
    """
    name = str(kind).rpartition(".")[2]
    if name == "bool":
        return "b8"
    letters = name.rstrip("0123456789")
    return _LETTERS.get(letters, letters) + name[len(letters) :]


def format_list(numbers: Iterable[Any]) -> str:
    """Numbers between brackets."""
    return "[" + ", ".join(str(each) for each in numbers) + "]"
