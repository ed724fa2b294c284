"""The steps of transforms by PyTorch's names, for libraries that use them or put others in their
place.

`pygrad.func` looks `_wrap_tensor_for_grad` up when a transform is called: containers of tensors
put one there that keeps their class.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from .. import _ops, _transforms
from .._tensor import Tensor
from .._tree import flatten, map_leaves
from ..autograd import grad as _gradients
from .vmap import levels

_F = _ops.SPACES["torch"]
argnums_t: TypeAlias = "int | tuple[int, ...]"


def _wrap_tensor_for_grad(maybe_tensor: Any, level: int) -> Any:
    """Makes the alias of a tensor by which the transform of a level differentiates; returns any
    other object unchanged.
    """
    if isinstance(maybe_tensor, Tensor):
        for frame in reversed(levels.transforms):
            if frame.number == level:
                return frame.wrapped(maybe_tensor)
    return maybe_tensor


def _by_name(tensor: Tensor, frame: Any) -> Tensor:
    """Looks `_wrap_tensor_for_grad` up by its name at each call: libraries replace it."""
    found: Tensor = _wrap_tensor_for_grad(tensor, frame.number)
    return found


_transforms.wrapped = _by_name


def _wrap_all_tensors(tensor_pytree: Any, level: int) -> Any:
    """Applies `_wrap_tensor_for_grad` to each leaf of a tree."""
    return map_leaves(lambda leaf: _wrap_tensor_for_grad(leaf, level), tensor_pytree)


def _as_tuple(val: Any) -> tuple[Any, ...]:
    return val if isinstance(val, tuple) else (val,)


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


# ------------------------------------------------------------------ arguments by number


def _validate_and_wrap_argnum(argnum: Any, num_args: int) -> int:
    """A place among arguments, counted from the first."""
    if not isinstance(argnum, int):
        raise RuntimeError(f"argnum must be int, got: {type(argnum)}")
    if not -num_args <= argnum < num_args:
        raise RuntimeError(f"Got argnum={argnum}, but only {num_args} positional inputs")
    return argnum % num_args


def _validate_and_wrap_argnums(argnums: argnums_t, num_args: int) -> argnums_t:
    if isinstance(argnums, int):
        return _validate_and_wrap_argnum(argnums, num_args)
    return tuple(_validate_and_wrap_argnum(each, num_args) for each in argnums)


def _check_unique_non_empty(argnums: argnums_t) -> None:
    if isinstance(argnums, tuple):
        if not argnums:
            raise RuntimeError("argnums must be non-empty")
        if len(set(argnums)) != len(argnums):
            raise RuntimeError(f"argnums elements must be unique, got {argnums}")


def _check_kind(argnums: Any) -> None:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")


def _slice_argnums(args: tuple[Any, ...], argnums: argnums_t, as_tuple: bool = True) -> Any:
    """The arguments at these places; of one number, a tuple of one or that argument.

    Example:
        >>> _slice_argnums(("a", "b"), -1), _slice_argnums(("a", "b"), 0, as_tuple=False)
        (('b',), 'a')
    """
    _check_kind(argnums)
    places = _validate_and_wrap_argnums(argnums, len(args))
    _check_unique_non_empty(places)
    if isinstance(places, tuple):
        return tuple(args[place] for place in places)
    return (args[places],) if as_tuple else args[places]


def _replace_args(
    old_args: tuple[Any, ...], new_args: tuple[Any, ...], argnums: argnums_t
) -> tuple[Any, ...]:
    """Arguments with others at these places.

    Example:
        >>> _replace_args(("a", "b"), ("c",), 1)
        ('a', 'c')
    """
    _check_kind(argnums)
    if isinstance(argnums, int) and len(new_args) != 1:
        raise RuntimeError(f"new_args should be of size 1, was of size {len(new_args)}")
    places = _as_tuple(argnums)
    if len(new_args) != len(places):
        raise RuntimeError(
            f"new_args should have the same size as argnums. Argnums size {len(places)}, new_args "
            f"size {len(new_args)}"
        )
    found = dict(zip(places, new_args, strict=True))
    return tuple(found.get(place, old) for place, old in enumerate(old_args))


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
    """The standard basis of all tensors together, so many vectors at once: one batch for each
    tensor.
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


def error_if_complex(func_name: str, args: Any, is_input: bool) -> None:
    """Raises RuntimeError if a tensor of a tree is complex."""
    for place, leaf in enumerate(flatten(args)[0]):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            what = "inputs" if is_input else "outputs"
            raise RuntimeError(
                f"{func_name}: Expected all {what} to be real but received complex tensor at "
                f"flattened input idx: {place}"
            )


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
