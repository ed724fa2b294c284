"""Rules of the strided layout for ops that compute: entry by entry."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._boundary.overriding import DisableTorchFunctionSubclass
from .._table import functions
from .._tensor.tensor import Tensor
from ..autograd.function import Function
from ._class import not_there, packed_tensor, rule
from ._strided import (
    RULES,
    Strided,
    StridedNestedTensor,
    each,
    entries_of,
    nested_over_buffer,
    refuse_otherwise,
    to_consecutive,
)

_F, _NN, _M = functions.SPACES["torch"], functions.SPACES["nn"], functions.SPACES["method"]


# ------------------------------------------------------------------ sums


class SumOfLast(Function):
    """The sum of each entry over its last dimension, which as in PyTorch saves its input."""

    @staticmethod
    def forward(ctx: Any, buffer: Tensor, parts: Strided) -> Tensor:
        ctx.save_for_backward(buffer)
        ctx.parts = parts
        entries = entries_of(buffer, parts)
        return _F["cat"]([entry.sum(-1).reshape(-1) for entry in entries])  # type: ignore[no-any-return]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (buffer,) = ctx.saved_tensors
        sizes = ctx.parts.sizes
        rows = grad.split([_rows(size) for size in sizes])
        wide = [
            row.reshape(*size[:-1], 1).expand(size).reshape(-1)
            for row, size in zip(rows, sizes, strict=True)
        ]
        return _F["cat"](wide).to(buffer.dtype), None


def _rows(size: Sequence[int]) -> int:
    return math.prod(size[:-1])


@rule(RULES, "sum")
def sum_rule(input: Any, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
    """The sum of all elements, or of each entry over the last dimension, which stays as 1."""
    if dim is None:
        return _M["sum"](packed_tensor(to_consecutive(input)), dtype=dtype)
    dims = list(dim) if isinstance(dim, (list, tuple)) else [dim]
    if len(dims) != 1:
        raise RuntimeError("NestedTensor only allows reduction of a single dimension for now.")
    at = input._dim(dims[0])
    if at != input.dim() - 1:
        raise RuntimeError(
            "NestedTensor can only be reduced across the last dimension for now got dimension "
            f"{at} instead."
        )
    if not keepdim:
        raise RuntimeError("NestedTensor always requires keepdim=True for now.")
    refuse_otherwise(
        input, "NestedTensor does not support reductions when the input is noncontiguous for now."
    )
    if dtype is not None:
        return sum_rule(input.to(dtype), dim, keepdim)
    sizes = [(*size[:-1], 1) for size in input._parts.sizes]
    buffer = SumOfLast.apply(packed_tensor(input), input._parts)
    return nested_over_buffer(buffer, Strided.in_order(sizes, input._parts.rank))


@rule(RULES, "max min")
def larger(input: Any, other: Any = None, *_: Any, **__: Any) -> Any:
    """Raises NotImplementedError: only `maximum` of two tensors is supported."""
    raise not_there("max.dim", input)


@rule(RULES, "copy_")
def copy_(input: Any, src: Any, non_blocking: bool = False) -> Any:
    """Writes the entries of another tensor of the same sizes to this one."""
    if not isinstance(src, StridedNestedTensor) or not isinstance(input, StridedNestedTensor):
        raise RuntimeError("get_nested_tensor_impl requires a NestedTensor.")
    if not src._parts.same(input._parts):
        raise RuntimeError(
            "copy_ only supports tensors that are the same size for Nested implementations"
        )
    refuse_otherwise(input, "NestedTensor must be contiguous to get buffer.")
    with DisableTorchFunctionSubclass():
        Tensor.copy_(input, packed_tensor(to_consecutive(src)))
    return input


@rule(RULES, "fill_")
def fill_(input: Any, value: Any) -> Any:
    """Writes a number to all elements."""
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.dim()} dimensions."
        )
    refuse_otherwise(input, "NestedTensor must be contiguous to get buffer.")
    with DisableTorchFunctionSubclass():
        Tensor.fill_(input, value)
    return input


@rule(RULES, "all")
def all_of(input: StridedNestedTensor, dim: Any = None, keepdim: bool = False) -> Any:
    """Whether all elements are true, or all along a dimension of each entry."""
    if dim is None:
        return packed_tensor(to_consecutive(input)).all()
    at = input._dim(dim)
    if at == 0:
        raise not_there("all.dim", input)
    return each(lambda entry: entry.all(at - 1, keepdim), input)


# ------------------------------------------------------------------ softmax, norms, lookups


@rule(RULES, "softmax")
def softmax(
    input: StridedNestedTensor, dim: int | None = None, *more: Any, dtype: Any = None, **_: Any
) -> Any:
    """The softmax of each entry over a dimension."""
    dtype = next((each for each in more if type(each).__name__ == "dtype"), dtype)
    if not input._parts.sizes:
        return input.clone()
    at = input._dim(-1 if dim is None else dim)
    if at == 0:
        raise RuntimeError("Cannot apply softmax across nested dimension 0")
    return each(lambda entry: _M["softmax"](entry, at - 1, dtype), input)


@rule(RULES, "layer_norm")
def layer_norm(
    input: StridedNestedTensor,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *_: Any,
    **__: Any,
) -> Any:
    """The layer norm of each entry over its last dimensions, which are not ragged."""
    if weight is None or bias is None:
        raise ValueError("NestedTensor layer_norm requires weight and bias")
    shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not shape:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one "
            "element, but got normalized_shape = []"
        )
    refuse_otherwise(
        input, "Expected nested_tensor_impl_is_contiguous(nt_input) to be true, but got false."
    )
    rank = input._parts.rank
    found = [input._parts.regular(d) for d in range(max(rank - len(shape), 0), rank)]
    if len(shape) > rank or None in found:
        raise RuntimeError(
            "normalized_shape extends into irregular dimensions for the nested tensor"
        )
    for i, (n, has) in enumerate(zip(shape, found, strict=True)):
        if n != has:
            raise RuntimeError(
                f"The shape at dimension {i}of normalized_shape doesn't match the input"
            )
    return each(lambda entry: _NN["layer_norm"](entry, shape, weight, bias, eps), input)


@rule(RULES, "linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """The product with a matrix that is not nested, of all rows at once."""
    if not isinstance(input, StridedNestedTensor):
        raise RuntimeError("Expected self to be nested, but got a non-nested self")
    if isinstance(weight, StridedNestedTensor):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    refuse_otherwise(input, "for now linear only supports contiguous nested tensor")
    if input.dim() != 3 or weight.dim() != 2:
        raise RuntimeError(
            "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
            f"{input.dim()}. Dense tensor dim: {weight.dim()}"
        )
    last = input._parts.regular(input._parts.rank - 1)
    if last is None:
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead "
            f"last dimension equals: {'  '.join(str(size[-1]) for size in input._parts.sizes)}"
        )
    if last != weight.shape[-1]:
        raise RuntimeError(
            "Shape mismatch for NestedTensor Linear: Expected input's "
            f"(a nested tensor) 'last_dim' to equal 'weight.size(1), but got: last_dim = {last}, "
            f"and weight.size(1) = {weight.shape[-1]}"
        )
    whole = to_consecutive(input)
    rows = _NN["linear"](packed_tensor(whole).view(-1, last), weight, bias)
    sizes = [(*size[:-1], rows.shape[1]) for size in input._parts.sizes]
    return nested_over_buffer(rows.reshape(-1), Strided.in_order(sizes, input._parts.rank))


@rule(RULES, "embedding")
def embedding(input: Any, weight: Any, *args: Any, **options: Any) -> Any:
    """The rows that entries of numbers name; `torch.embedding` has the weight first."""
    if isinstance(weight, StridedNestedTensor):
        return each(lambda entry: _F["embedding"](input, entry, *args, **options), weight)
    return each(lambda entry: _NN["embedding"](entry, weight, *args, **options), input)


# ------------------------------------------------------------------ products


def _both_nested(op: str, a: Any, b: Any) -> None:
    kinds = [isinstance(x, StridedNestedTensor) for x in (a, b)]
    if not all(kinds):
        names = ["nested" if kind else "non-nested" for kind in kinds]
        raise RuntimeError(
            f"Expected both to be nested, but got a {names[0]} self and {names[1]} other"
        )


def _product(op: str, a: Any, b: Any) -> Any:
    if len(a._parts.sizes) != len(b._parts.sizes):
        which = "batch2" if op == "bmm" else "2nd input"
        raise RuntimeError(
            f"{'' if op == 'bmm' else 'matmul: '}Expected size for the 1st dimension of {which} "
            f"tensor to be: {len(a._parts.sizes)} but got: {len(b._parts.sizes)}."
        )
    for i, (left, right) in enumerate(zip(a._parts.sizes, b._parts.sizes, strict=True)):
        if left[:-2] != right[:-2]:
            raise RuntimeError(
                "matmul: For nested tensors, batch dimensions must have the same sizes, no "
                f"broadcasting is currently performed. Got batch shapes for self {left[:-2]} and "
                f"batch shapes for other {right[:-2]} at index {i} respectively"
            )
        if left[-1] != right[-2] and op == "matmul":
            sizes = [[size[at] for size in x._parts.sizes] for x, at in ((a, -1), (b, -2))]
            raise RuntimeError(
                "matmul: Nested tensors cannot be matrix multiplied, last dimension of self has "
                f"sizes {sizes[0]} second last dimension of mat2 has sizes {sizes[1]}"
            )
        if left[-1] != right[-2]:
            raise RuntimeError(
                f"{i}-th nested matrices in batch cannot be multiplied "
                f"({left[-2]}x{left[-1]} and {right[-2]}x{right[-1]})"
            )
    return each(lambda x, y: x @ y, a, b)


@rule(RULES, "matmul __matmul__")
def matmul(input: Any, other: Any, *, out: Any = None) -> Any:
    """The product of each entry with its own matrix, both nested."""
    if out is not None:
        raise NotImplementedError("aten.matmul: out= is not implemented for nested tensors")
    _both_nested("matmul", input, other)
    for which, x in (("1st", input), ("2nd", other)):
        if x.dim() < 3:
            raise RuntimeError(
                "matmul: For nested tensors, only inputs with >= 3 dims are currently supported. "
                f"{which} input has rank: {x.dim()}"
            )
    if input.dim() != other.dim():
        raise RuntimeError("matmul: both inputs must have the same rank")
    return _product("matmul", input, other)


@rule(RULES, "bmm")
def bmm(input: Any, mat2: Any, *, out: Any = None) -> Any:
    """The product of each entry with its own matrix."""
    if out is not None:
        raise NotImplementedError("aten.bmm: out= is not implemented for nested tensors")
    for x, which in ((input, "batch1"), (mat2, "batch2")):
        if x.dim() != 3:
            raise RuntimeError(f"{which} must be a 3D tensor")
    a, b = (x if isinstance(x, StridedNestedTensor) else nested_of_rows(x) for x in (input, mat2))
    return _product("bmm", a, b)


def nested_of_rows(dense: Tensor) -> Any:
    """A tensor as a nested tensor of its rows."""
    parts = Strided.in_order([tuple(dense.shape[1:])] * dense.shape[0], dense.dim() - 1)
    return nested_over_buffer(dense.reshape(-1), parts)
