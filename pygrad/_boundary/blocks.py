"""Tensors whose elements Python writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from .._ground.dtypes import dtype, uint8
from . import arguments
from .calls import ROWS
from .header import address_of
from .shapes import maker

if TYPE_CHECKING:
    from .._tensor.tensor import Tensor


_empty = maker(ROWS["_empty"])


def empty_for_host(shape: Sequence[int], kind: dtype | None) -> tuple[Tensor, int]:
    """An uninitialised contiguous tensor, of the default dtype if None, and the address of its
    elements.
    """
    out = _empty(shape, kind)
    return out, address_of(out)


def _make_block(nbytes: int) -> tuple[Tensor, int]:
    return empty_for_host((nbytes,), uint8)


arguments.make_block = _make_block
