"""Rules of the jagged layout for products, normalisations and lookups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._ground.package import submodule
from .._table import functions
from .._tensor.tensor import Tensor
from ._class import packed_tensor, rule
from ._internal.nested_tensor import RULES, NestedTensor
from ._jagged_shapes import jagged_like

_F, _NN = functions.SPACES["torch"], functions.SPACES["nn"]


@rule(RULES, "linear")
def linear(input: Any, weight: Any, bias: Any = None) -> Any:
    """The product with a matrix that is not nested."""
    if not isinstance(input, NestedTensor) or input._parts.ragged == input.dim() - 1:
        raise ValueError("NestedTensor linear: expected input to be a jagged layout NestedTensor")
    return jagged_like(_NN["linear"](packed_tensor(input), weight, bias), input)


@rule(RULES, "matmul __matmul__ bmm")
def matmul(input: Any, other: Any = None, *, mat2: Any = None, out: Any = None) -> Any:
    """A product of matrices: of each entry with one matrix or with its own; along the ragged
    dimension it is summed over, and the result is not nested.
    """
    other = mat2 if other is None else other
    if out is not None:
        raise NotImplementedError("aten.matmul: out= is not implemented for nested tensors")
    found = None
    if isinstance(input, NestedTensor):
        found = (
            _matmul_jagged(input, other)
            if isinstance(other, NestedTensor)
            else _matmul_dense(input, other)
        )
    elif isinstance(other, NestedTensor):
        found = _matmul_from_left(input, other)
    if found is None:
        shapes = getattr(input, "_size", None) or input.shape, other.shape
        raise RuntimeError(
            f"matmul(): not supported between inputs of shapes {shapes[0]} and {shapes[1]}"
        )
    return found


def _matmul_dense(a: NestedTensor, b: Tensor) -> Any:
    """The product with a matrix, or with one for each entry."""
    ragged, n = a._parts.ragged, a.dim()
    if b.dim() == 2 and ragged != n - 1:
        return jagged_like(_F["matmul"](packed_tensor(a), b), a)
    if b.dim() != n or b.shape[0] != a._parts.batch or ragged == n - 1:
        return None
    made = [x @ y for x, y in zip(a._entries("matmul"), b.unbind(0), strict=True)]
    return _join_entries(made, a)


def _join_entries(made: Sequence[Tensor], like: NestedTensor) -> Any:
    at = like._parts.ragged - 1
    if like._parts.lengths is not None:
        raise RuntimeError("matmul(): not supported for nested tensors with holes")
    return jagged_like(_F["cat"](list(made), at), like)


def _matmul_from_left(a: Tensor, b: NestedTensor) -> Any:
    """The product of a matrix, or one for each entry, and entries whose last dimension is
    ragged.
    """
    n = b.dim()
    if b._parts.ragged != n - 1:
        return None
    if a.dim() == 2:
        return jagged_like(_F["matmul"](a, packed_tensor(b)), b)
    if a.dim() != n or a.shape[0] != b._parts.batch:
        return None
    made = [x @ y for x, y in zip(a.unbind(0), b._entries("matmul"), strict=True)]
    return _join_entries(made, b)


def _matmul_jagged(a: NestedTensor, b: NestedTensor) -> Any:
    n = a.dim()
    if b.dim() != n or a._parts.size != b._parts.size:
        return None
    if a._parts.ragged == n - 1 and b._parts.ragged == n - 2:
        pairs = zip(a._entries("matmul"), b._entries("matmul"), strict=True)
        return _F["stack"]([x @ y for x, y in pairs])
    if a._parts.ragged == b._parts.ragged < n - 2:
        return jagged_like(_F["matmul"](packed_tensor(a), packed_tensor(b)), a)
    return None


# ------------------------------------------------------------------ normalisations


def _packed_for_norm(op: str, input: NestedTensor, shape: Sequence[int]) -> Tensor:
    first = input.dim() - len(shape)
    if first <= input._parts.ragged:
        raise RuntimeError(f"{op}(): normalizing over ragged dim not supported for nested tensors")
    return packed_tensor(input)


@rule(RULES, "layer_norm")
def layer_norm(
    input: NestedTensor,
    normalized_shape: Sequence[int],
    weight: Any = None,
    bias: Any = None,
    eps: float = 1e-5,
    *_: Any,
    **__: Any,
) -> Any:
    """The layer norm over dimensions behind the ragged one."""
    values = _packed_for_norm("layer_norm", input, normalized_shape)
    return jagged_like(_NN["layer_norm"](values, normalized_shape, weight, bias, eps), input)


@rule(RULES, "rms_norm")
def rms_norm(
    input: NestedTensor, normalized_shape: Sequence[int], weight: Any = None, eps: Any = None
) -> Any:
    """The norm by root mean squares over dimensions behind the ragged one."""
    values = _packed_for_norm("rms_norm", input, normalized_shape)
    return jagged_like(_NN["rms_norm"](values, normalized_shape, weight, eps), input)


# ------------------------------------------------------------------ lookups


@rule(RULES, "embedding")
def embedding(input: Any, weight: Any, *args: Any, **options: Any) -> Any:
    """The rows that a tensor of numbers names; `torch.embedding` has the weight first."""
    if isinstance(weight, NestedTensor):
        return jagged_like(_F["embedding"](input, packed_tensor(weight), *args, **options), weight)
    rows = submodule("nn.functional").embedding(packed_tensor(input), weight, *args, **options)
    return jagged_like(rows, input)


@rule(RULES, "embedding_bag")
def embedding_bag(input: Any, weight: Any, offsets: Any = None, *args: Any, **options: Any) -> Any:
    """Reduces the rows of `weight` that each entry's numbers name."""
    if not isinstance(input, NestedTensor) or input.dim() != 2 or input._parts.lengths is not None:
        raise RuntimeError("embedding_bag(): expects a nested tensor of two dimensions, no holes")
    weights = options.get("per_sample_weights")
    if weights is not None:
        if not isinstance(weights, NestedTensor) or not weights._parts.same(input._parts):
            raise ValueError(
                f"embedding_bag: If per_sample_weights ({weights.shape}) is not None, then it must "
                f"have the same shape as the input ({input.shape})"
            )
        options["per_sample_weights"] = packed_tensor(weights)
    options.pop("include_last_offset", None)
    begins = input._parts.offsets[:-1]
    input._parts.spans(len(packed_tensor(input)), "embedding_bag")
    bag = submodule("nn.functional").embedding_bag
    return bag(packed_tensor(input), weight, begins, *args, **options)


@rule(RULES, "one_hot")
def one_hot(input: NestedTensor, num_classes: int = -1) -> Any:
    """One-hot vectors of the numbers, along a new last dimension."""
    return jagged_like(_NN["one_hot"](packed_tensor(input), num_classes), input)


@rule(RULES, "conv1d")
def conv1d(input: Any, *_: Any, **__: Any) -> Any:
    """Raises ValueError, as in PyTorch: the entries of a convolution's input are not ragged."""
    raise ValueError(
        "NestedTensor convolution_default(input: jt, weight: t, bias: t?, stride: any, padding: "
        "any, dilation: any, transposed: any, output_padding: any, groups: any): expected input to "
        "be a contiguous jagged layout NestedTensor"
    )
