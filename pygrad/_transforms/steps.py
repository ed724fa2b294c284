"""The steps of transforms by PyTorch's names, for libraries that use them or put others in their
place.

A transform looks `_wrap_tensor_for_grad` up when it is called: containers of tensors put one there
that keeps their class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._ground.tree import flatten, map_leaves
from .._table import functions
from .._tensor.base import Tensor
from ..autograd import grad as _gradients
from .arguments import _as_tuple as _as_tuple
from .arguments import _check_unique_non_empty as _check_unique_non_empty
from .arguments import _replace_args as _replace_args
from .arguments import _slice_argnums as _slice_argnums
from .arguments import _validate_and_wrap_argnum as _validate_and_wrap_argnum
from .arguments import _validate_and_wrap_argnums as _validate_and_wrap_argnums
from .arguments import argnums_t as argnums_t
from .vmap import levels

_F = functions.SPACES["torch"]


def _wrap_tensor_for_grad(maybe_tensor: Any, level: int) -> Any:
    """Makes the alias of a tensor by which the transform of a level differentiates; returns any
    other object unchanged.
    """
    if isinstance(maybe_tensor, Tensor):
        for frame in reversed(levels.transforms):
            if frame.number == level:
                return frame.alias_input(maybe_tensor)
    return maybe_tensor


def _wrap_all_tensors(tensor_pytree: Any, level: int) -> Any:
    """Applies `_wrap_tensor_for_grad` to each leaf of a tree."""
    return map_leaves(lambda leaf: _wrap_tensor_for_grad(leaf, level), tensor_pytree)


def _is_differentiable(maybe_tensor: Any) -> bool:
    return isinstance(maybe_tensor, Tensor) and bool(maybe_tensor.requires_grad)


def _any_differentiable(tensor_or_tuple_of_tensors: Any) -> bool:
    return any(map(_is_differentiable, flatten(tensor_or_tuple_of_tensors)[0]))


def _safe_zero_index(x: tuple[Any, ...]) -> Any:
    """The only item.

    Raises:
        AssertionError: there are none, or several.
    """
    if len(x) != 1:
        raise AssertionError(f"expected tuple of length 1, got length {len(x)}")
    return x[0]


# ------------------------------------------------------------------ products and bases


def _autograd_grad(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    grad_outputs: Sequence[Tensor] | None = None,
    retain_graph: bool = False,
    create_graph: bool = True,
) -> tuple[Tensor, ...]:
    """Gradients of the outputs that have any, zeros where nothing depends."""
    given: Sequence[Any] = [None] * len(outputs) if grad_outputs is None else grad_outputs
    pairs = [(y, g) for y, g in zip(outputs, given, strict=False) if y.requires_grad]
    if not pairs:
        return tuple(_F["zeros_like"](each) for each in inputs)
    found = _gradients(
        [y for y, _ in pairs],
        inputs,
        None if grad_outputs is None else [g for _, g in pairs],
        retain_graph=retain_graph,
        create_graph=create_graph,
        allow_unused=True,
    )
    return tuple(
        _F["zeros_like"](each) if g is None else g for g, each in zip(found, inputs, strict=True)
    )


def _chunked_standard_basis_for_(
    tensors: Sequence[Tensor], tensor_numels: Sequence[int], chunk_size: int | None = None
) -> Iterator[tuple[Tensor, ...]]:
    """The standard basis of the concatenated tensors in chunks of `chunk_size` vectors: yields one
    batch for each tensor.
    """
    if len(tensors) != len(tensor_numels):
        raise AssertionError(
            f"len(tensors)={len(tensors)} != len(tensor_numels)={len(tensor_numels)}"
        )
    if not tensors:
        raise AssertionError("tensors must have at least one element")
    if chunk_size is not None and chunk_size <= 0:
        raise AssertionError(f"chunk_size must be > 0 or None, got {chunk_size}")
    total = sum(tensor_numels)
    step = min(chunk_size or total, total) or 1
    for first in range(0, total, step):
        count, start, batches = min(step, total - first), first, []
        for tensor, numel in zip(tensors, tensor_numels, strict=True):
            batch = tensor.new_zeros(count, numel)
            batch.diagonal(start).fill_(1)
            batches.append(batch.view(count, *tensor.shape))
            start -= numel
        yield tuple(batches)


def _construct_standard_basis_for(
    tensors: Sequence[Tensor], tensor_numels: Sequence[int]
) -> tuple[Tensor, ...] | None:
    """The whole basis at once.

    Example:
        >>> import pygrad
        >>> _construct_standard_basis_for([pygrad.zeros(()), pygrad.zeros(1)], [1, 1])
        (tensor([1., 0.]), tensor([[0.],
                [1.]]))
    """
    return next(_chunked_standard_basis_for_(tensors, tensor_numels), None)


# ------------------------------------------------------------------ checks


def check_real(name: str, what: str, values: Any) -> None:
    for place, leaf in enumerate(flatten(values)[0]):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"input idx: {place}"
            )


def error_if_complex(func_name: str, args: Any, is_input: bool) -> None:
    """Raises RuntimeError if a tensor of a tree is complex."""
    check_real(func_name, "inputs" if is_input else "outputs", args)


def safe_unflatten(tensor: Tensor, dim: int, shape: Any) -> Tensor:
    """A dimension as several, or as none.

    Raises:
        AssertionError: as none, and its size is not 1.
    """
    if len(shape) > 0:
        return tensor.unflatten(dim, shape)
    if tensor.shape[dim] != 1:
        raise AssertionError(f"expected tensor.shape[{dim}] to be 1, got {tensor.shape[dim]}")
    return tensor.squeeze(dim)
