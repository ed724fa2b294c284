"""Rules of the jagged layout for reductions: over dimensions that are not ragged they act on the
values; over the ragged dimension on the padded entries, with a neutral padding."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import bool_, iinfo
from .._table import functions
from .._tensor.tensor import Tensor
from ._class import each_element, packed_tensor, rule
from ._internal.nested_tensor import RULES, NestedTensor
from ._jagged_shapes import close_gaps, jagged_like
from ._padded import jagged_of_padded, jagged_padded

_M, _F = functions.SPACES["method"], functions.SPACES["torch"]


_NEUTRAL = {"sum": 0, "mean": 0, "prod": 1, "any": False, "all": True}


def _padding(op: str, values: Tensor) -> Any:
    """The neutral padding of a reduction: for a maximum the least number, for a minimum the
    largest.
    """
    if op in _NEUTRAL:
        return _NEUTRAL[op]
    largest = op.endswith("min")
    if values.dtype._inexact:
        return float("inf" if largest else "-inf")
    if values.dtype is bool_:
        return largest
    limits = iinfo(values.dtype)
    return limits.max if largest else limits.min


def _reduce(op: str, x: NestedTensor, dim: Any, keepdim: bool, **options: Any) -> Any:
    """A reduction over some dimensions.

    Raises: RuntimeError: these dimensions cannot be reduced together.
    """
    method = _M[op]
    dims = [] if dim is None else sorted({x._dim(d) for d in _to_list(dim)})
    ragged, n = x._parts.ragged, x.dim()
    inner = [d for d in dims if d not in (0, ragged)]
    if not dims or len(dims) == n:
        found = method(packed_tensor(close_gaps(x)), **options)
        return found.reshape((1,) * n) if keepdim and dims else found
    if 0 in dims:
        if ragged not in dims:
            raise RuntimeError(
                f"{op}(): reducing along the batch dimension but not the ragged dimension is not "
                "supported for nested tensors"
            )
        over = [d - 1 for d in dims if d]
        found = method(
            packed_tensor(close_gaps(x)), _restore_dim_form(dim, over), keepdim, **options
        )
        return found.unsqueeze(0) if keepdim else found
    if ragged in dims:
        if inner:
            if op == "mean":
                raise AssertionError(
                    "Cannot reduce on both ragged and non-batch dimensions without also reducing "
                    "on batch"
                )
            raise RuntimeError(
                f"{op}(): reducing along a ragged and non-batch dimension is not supported for "
                "nested tensors"
            )
        return _reduce_ragged(op, x, dim, keepdim, options)
    found = method(
        packed_tensor(x), _restore_dim_form(dim, [d - 1 for d in inner]), keepdim, **options
    )
    moved = ragged if keepdim else ragged - sum(d < ragged for d in inner)
    if isinstance(found, tuple):
        return type(found)([jagged_like(each, x, moved) for each in found])
    return jagged_like(found, x, moved)


def _reduce_ragged(op: str, x: NestedTensor, dim: Any, keepdim: bool, options: Any) -> Any:
    if x._parts.lengths is not None:
        raise RuntimeError(
            f"{op}(): reducing across the ragged dimension is not supported for non-contiguous "
            "nested tensors with holes"
        )
    at, values = x._parts.ragged, packed_tensor(x)
    padded = jagged_padded(x, _padding(op, values), None, op)
    if op != "mean":
        return _M[op](padded, _restore_dim_form(dim, [at]), keepdim, **options)
    total = _M["sum"](padded, [at], keepdim, **options)
    starts = x._parts.offsets
    lengths = starts.diff().reshape(-1, *(1,) * (total.dim() - 1))
    return total / lengths


def _to_list(dim: Any) -> list[int]:
    return list(dim) if isinstance(dim, (list, tuple)) else [dim]


def _restore_dim_form(dim: Any, dims: list[int]) -> Any:
    """Dimensions in the form in which they came: a number, or several."""
    return dims if isinstance(dim, (list, tuple)) or len(dims) != 1 else dims[0]


@rule(RULES, "sum")
def sum_rule(
    input: NestedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The sum over dimensions."""
    return _reduce("sum", input, dim, keepdim, dtype=dtype)


@rule(RULES, "mean")
def mean_rule(
    input: NestedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The mean over dimensions; over the ragged one each entry is divided by its own length."""
    return _reduce("mean", input, dim, keepdim, dtype=dtype)


@rule(RULES, "prod")
def prod_rule(
    input: NestedTensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    """The product over one dimension, or of all elements."""
    return _reduce("prod", input, dim, keepdim, dtype=dtype)


def _plain(op: str) -> None:
    @rule(RULES, op)
    def function(input: NestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
        return _reduce(op, input, dim, keepdim)

    function.__name__ = op


for _op in ("any", "all", "amax", "amin", "argmax", "argmin"):
    _plain(_op)


def _extreme(op: str, of_two: str) -> None:
    @rule(RULES, op)
    def function(input: Any, dim: Any = None, keepdim: bool = False, other: Any = None) -> Any:
        other = dim if isinstance(dim, Tensor) else other
        if other is not None:
            first = input if isinstance(input, NestedTensor) else other
            return each_element(first, of_two, _F[of_two], (input, other), {})
        return _reduce(op, input, dim, keepdim)

    function.__name__ = op


_extreme("max", "maximum")
_extreme("min", "minimum")


# ------------------------------------------------------------------ softmax


@rule(RULES, "softmax")
def softmax(
    input: NestedTensor, dim: int | None = None, *more: Any, dtype: Any = None, **_: Any
) -> Any:
    """The softmax over a dimension, also the ragged one."""
    dtype = next((each for each in more if type(each).__name__ == "dtype"), dtype)
    at = input._dim(-1 if dim is None else dim)
    if at == 0:
        raise RuntimeError(
            "softmax(): not supported when reducing across the batch dimension for NestedTensor"
        )
    if at != input._parts.ragged:
        return jagged_like(_M["softmax"](packed_tensor(input), at - 1, dtype), input)
    if input._parts.lengths is not None:
        raise RuntimeError(
            "softmax(): not supported where lengths is not None and reducing across the ragged "
            "dimension for NestedTensor"
        )
    padded = jagged_padded(input, float("-inf"), None, "softmax")
    total = packed_tensor(input).shape[at - 1]
    return jagged_of_padded(_M["softmax"](padded, at, dtype), input._parts, total, "softmax")


@rule(RULES, "log_softmax")
def log_softmax(
    input: NestedTensor, dim: int | None = None, *more: Any, dtype: Any = None, **_: Any
) -> Any:
    """The logarithm of `softmax`, over a dimension that is not ragged."""
    dtype = next((each for each in more if type(each).__name__ == "dtype"), dtype)
    at = input._dim(-1 if dim is None else dim)
    for wrong, where in ((0, "across the batch"), (input._parts.ragged, "along the ragged")):
        if at == wrong:
            raise RuntimeError(
                f"log_softmax(): not supported when reducing {where} dimension for NestedTensor"
            )
    return jagged_like(_M["log_softmax"](packed_tensor(input), at - 1, dtype), input)
