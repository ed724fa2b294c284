"""Causal masks of attention, as tensors that record their variant."""

from __future__ import annotations

import enum
import warnings
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The alignment of a causal mask's triangle."""

    UPPER_LEFT = 1
    LOWER_RIGHT = 2


class CausalBias(Tensor):
    """A causal mask of bools, (queries, keys), for the argument ``attn_mask``. A position sees
    itself and the positions before it.

    Args:
        variant: whether the first query sees only the first key, or the last query the last key.
        seq_len_q, seq_len_kv: the numbers of queries and keys.

    Raises:
        AssertionError: `variant` is not a `CausalVariant`.

    Example:
        >>> from pygrad.nn.attention.bias import causal_lower_right
        >>> causal_lower_right(2, 3).tolist()
        [[True, True, False], [True, True, True]]
    """

    variant: CausalVariant
    seq_len_q: int
    seq_len_kv: int

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> CausalBias:
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        offset = seq_len_kv - seq_len_q if variant == CausalVariant.LOWER_RIGHT else 0
        mask = pygrad.ones(seq_len_q, seq_len_kv, dtype=pygrad.bool).tril(offset)
        made: CausalBias = Tensor._make_subclass(cls, mask)
        made.variant, made.seq_len_q, made.seq_len_kv = variant, seq_len_q, seq_len_kv
        return made

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int) -> None:
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > "
                "seq_len_kv!",
                stacklevel=2,
            )

    def _materialize(self, device: Any = None) -> Tensor:
        """The mask as a plain tensor."""
        return pygrad.ones(self.seq_len_q, self.seq_len_kv, dtype=pygrad.bool) & self


def causal_upper_left(*size: int) -> CausalBias:
    """The mask in which the first query sees only the first key.

    Raises:
        AssertionError: not exactly two sizes.
    """
    return CausalBias(CausalVariant.UPPER_LEFT, *_two(size, "causal_upper_left"))


def causal_lower_right(*size: int) -> CausalBias:
    """The mask in which the last query sees all keys.

    Raises:
        AssertionError: not exactly two sizes.
    """
    return CausalBias(CausalVariant.LOWER_RIGHT, *_two(size, "causal_lower_right"))


def _two(size: tuple[int, ...], name: str) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size[0], size[1]
