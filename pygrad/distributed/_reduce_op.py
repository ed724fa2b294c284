"""The kinds of reductions over ranks, each applied in the order of the tree."""

from __future__ import annotations

import enum
import functools
from typing import Any, Final

from .._ground.dtypes import dtype
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor


class RedOpType(enum.IntEnum):
    """The kinds of reductions."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __repr__(self) -> str:
        return f"<RedOpType.{self.name}: {self.value}>"

    def __str__(self) -> str:
        return f"RedOpType.{self.name}"


class ReduceOp:
    """A kind of reduction, such as ``ReduceOp.SUM``.

    Example:
        >>> ReduceOp.MAX
        <RedOpType.MAX: 4>
        >>> ReduceOp(ReduceOp.MAX) == ReduceOp.MAX
        True
    """

    RedOpType = RedOpType
    SUM = RedOpType.SUM
    AVG = RedOpType.AVG
    PRODUCT = RedOpType.PRODUCT
    MIN = RedOpType.MIN
    MAX = RedOpType.MAX
    BAND = RedOpType.BAND
    BOR = RedOpType.BOR
    BXOR = RedOpType.BXOR
    PREMUL_SUM = RedOpType.PREMUL_SUM

    def __init__(self, op: Any) -> None:
        self.op = op

    def __eq__(self, other: object) -> bool:
        return bool(self.op == (other.op if isinstance(other, ReduceOp) else other))

    def __hash__(self) -> int:
        return hash(self.op)


class _DeprecatedOps:
    """The older names of the kinds: ``reduce_op.SUM``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(ReduceOp, name)


reduce_op: Final = _DeprecatedOps()

_COMPLEX: Final = {RedOpType.SUM, RedOpType.AVG, RedOpType.PREMUL_SUM}


def kind_of(op: Any) -> RedOpType:
    """The `RedOpType` of an op.

    Raises:
        TypeError: it is no op.
        NotImplementedError: PREMUL_SUM.
    """
    kind = getattr(op, "op", op)
    if not isinstance(kind, RedOpType):
        raise TypeError(f"op must be a ReduceOp, got {type(op).__name__}")
    if kind is RedOpType.PREMUL_SUM:
        raise NotImplementedError("ReduceOp.PREMUL_SUM is not supported")
    return kind


def supports_complex(reduceOp: Any) -> bool:
    """Whether an op reduces complex numbers.

    Example:
        >>> supports_complex(ReduceOp.MAX)
        False
    """
    return getattr(reduceOp, "op", reduceOp) in _COMPLEX


def check(kind: RedOpType, tensor: Tensor, name: str) -> None:
    """Raises if an op cannot reduce the tensor. All ranks check before they send.

    Raises:
        ValueError, RuntimeError: an ordering of complex numbers, a bitwise op of floating point
            numbers, or an average of integers.
    """
    if tensor.is_complex() and kind not in _COMPLEX:
        error = ValueError if name == "all_reduce" else RuntimeError
        raise error(f"{name} does not support {kind} on complex tensors")
    if kind.name.startswith("B") and (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"Cannot use ReduceOp.{kind.name} with non-integral dtype")
    _try(kind, tensor.dtype)


@functools.cache
def _try(kind: RedOpType, of: dtype) -> None:
    """Reduces an empty tensor, to raise the same errors as a real reduction."""
    with pygrad.no_grad():
        nothing = pygrad.empty(0, dtype=of)
        finish(kind, join(kind, nothing, nothing, nothing), 1)


def join(kind: RedOpType, left: Tensor, right: Tensor, out: Tensor) -> Tensor:
    """Reduces left and right to `out`, which may be one of them."""
    getattr(pygrad, _JOIN[kind])(left, right, out=out)
    return out


_JOIN: Final[dict[RedOpType, str]] = {
    RedOpType.SUM: "add",
    RedOpType.AVG: "add",
    RedOpType.PRODUCT: "mul",
    RedOpType.MIN: "minimum",
    RedOpType.MAX: "maximum",
    RedOpType.BAND: "bitwise_and",
    RedOpType.BOR: "bitwise_or",
    RedOpType.BXOR: "bitwise_xor",
}


def finish(kind: RedOpType, total: Tensor, count: int) -> None:
    """Divides a sum by the count if the op is AVG."""
    if kind is RedOpType.AVG:
        total.div_(count)
