"""vmap: a function of one example, called once for a batch of them.

The engine does the work: inside the function a batched tensor looks like one of its slices, and
each op on it is done for all slices. What stands here takes apart what goes into the function and
puts together what comes out, with PyTorch's messages. The steps have PyTorch's private names and
arguments, and are looked up when they are called: containers of tensors put others in their place.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import accumulate
from typing import Any, Final

from .._boundary.arguments import refuse_foreign
from .._boundary.modes import LEVELS, switch
from .._ground.tree import TreeSpec, map_leaves
from .._ground.tree import flatten as tree_flatten
from .._ground.tree import spread as _broadcast_to_and_flatten
from .._ground.tree import unflatten as tree_unflatten
from .._table import functions
from .._tensor.base import Tensor
from ..random import get_rng_state, set_rng_state

_C = functions.C
RANDOMNESS = ("error", "different", "same")


class _Levels(threading.local):
    """The levels that a thread is in, the outermost first: number, batch size, randomness."""

    def __init__(self) -> None:
        self.stack: list[tuple[int, int, str]] = []
        self.given: dict[int, Sequence[Any]] = {}  # the inputs of each, as leaves
        self.by_hand: list[Any] = []  # contexts of those that no call of vmap entered
        self.plain = False  # custom Functions need no rule
        self.transforms: list[Any] = []  # grad, vjp and their like: see _transforms


levels: Final = _Levels()


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """A function that maps `func` over a dimension of its inputs.

    Args:
        func: takes tensors (and nested tuples, lists and dicts of them), returns tensors.
        in_dims: which dimension of each input to map over, None for an input that is the same for
            all; an int, or a structure like that of the positional arguments. Keyword arguments
            are the same for all.
        out_dims: where the mapped dimension goes in each output.
        randomness: what random ops in `func` do: "error", "different" numbers for each slice, or
            the "same" for all.
        chunk_size: how many slices to compute at once; all by default.

    Raises:
        RuntimeError: an op that cannot be mapped, such as ``.item()``.
        ValueError: `in_dims` or `out_dims` do not fit, or sizes differ.

    Example:
        >>> import pygrad
        >>> pygrad.vmap(pygrad.dot)(pygrad.eye(2), pygrad.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([1., 4.])
    """
    if randomness not in RANDOMNESS:
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got "
            f"{randomness}"
        )
    if chunk_size is not None and not chunk_size > 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        _check_out_dims(func, out_dims)
        batch_size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        call = Mapped(func, dims, spec, out_dims, randomness, kwargs)
        for leaf, dim in zip(leaves, dims, strict=True):
            if dim is not None and hasattr(type(leaf), "_map_entries"):  # a nested tensor
                return leaf._map_entries(call, batch_size, leaves)
        if chunk_size is None:
            return call(batch_size, leaves)
        return call.call_in_chunks(batch_size, leaves, chunk_size)

    return wrapper


@contextmanager
def enter_level(batch_size: int, kind: str) -> Iterator[int]:
    """A level in the engine, of `vmap` with a randomness or of another "transform"."""
    number = _C["_vmap_enter"](batch_size, kind)
    switch(1 << (LEVELS + number), True)
    try:
        yield number
    finally:
        switch(1 << (LEVELS + number), False)
        _C["_vmap_exit"](number)


@contextmanager
def level(batch_size: int, randomness: str) -> Iterator[int]:
    """A level of vmap: entered in the engine, and left whatever happens."""
    with enter_level(batch_size, randomness) as number:
        levels.stack.append((number, batch_size, randomness))
        try:
            yield number
        finally:
            levels.stack.pop()


def _vmap_increment_nesting(batch_size: int, randomness: str) -> int:
    """Enters a level of vmap and returns its number.

    Example:
        >>> import pygrad as torch
        >>> from pygrad._C import _functorch
        >>> level = _functorch._vmap_increment_nesting(2, "error")
        >>> x = _functorch._add_batch_dim(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), 0, level)
        >>> total = _functorch._remove_batch_dim(x.sum(), level, 2, 0)
        >>> _functorch._vmap_decrement_nesting(), total
        (1, tensor([3., 7.]))
    """
    context = level(batch_size, randomness)
    number = context.__enter__()
    levels.by_hand.append(context)
    return number


def _vmap_decrement_nesting() -> int:
    """Leaves the last level that was entered so, and returns the number that it had.

    Raises: RuntimeError: there is none.
    """
    if not levels.by_hand:
        raise RuntimeError("no level of vmap was entered")
    number = levels.stack[-1][0]
    levels.by_hand.pop().__exit__(None, None, None)
    return number


@contextmanager
def refuse_draws() -> Iterator[None]:
    """Random ops are refused, as in a level of vmap, but nothing is mapped."""
    with enter_level(1, "error"):
        yield


class Mapped:
    """A call of a mapped function, its inputs as leaves."""

    def __init__(
        self,
        func: Callable[..., Any],
        dims: list[int | None],
        spec: TreeSpec,
        out_dims: Any,
        randomness: str,
        kwargs: dict[str, Any],
    ) -> None:
        self.func = func
        self.dims = dims
        self.spec = spec
        self.out_dims = out_dims
        self.randomness = randomness
        self.kwargs = kwargs

    def __call__(self, batch_size: int, leaves: Sequence[Any]) -> Any:
        with level(batch_size, self.randomness) as number:
            inputs = _create_batched_inputs(self.dims, leaves, number, self.spec)
            levels.given[number] = leaves
            try:
                outputs = self.func(*inputs, **self.kwargs)
                return _unwrap_batched(outputs, self.out_dims, number, batch_size, self.func)
            finally:
                levels.given.pop(number, None)

    def call_in_chunks(self, batch_size: int, leaves: Sequence[Any], size: int) -> Any:
        """The calls on parts of the batch, their outputs joined."""
        ends = tuple(accumulate(_chunk_sizes(batch_size, size)))
        columns = [
            [leaf] * len(ends) if dim is None else leaf.tensor_split(ends, dim=dim)
            for leaf, dim in zip(leaves, self.dims, strict=True)
        ]
        state = None
        if self.randomness == "same":
            state = get_rng_state()
        parts: list[list[Any]] = []
        spec = None
        starts = (0, *ends)
        for i, end in enumerate(ends):
            if state is not None:
                set_rng_state(state)
            found, spec = tree_flatten(self(end - starts[i], [column[i] for column in columns]))
            parts.append(found)
        assert spec is not None
        dims = _broadcast_to_and_flatten(self.out_dims, spec)
        assert dims is not None
        cat = functions.SPACES["torch"]["cat"]
        joined = [cat(list(p), dim) for p, dim in zip(zip(*parts, strict=True), dims, strict=True)]
        return tree_unflatten(joined, spec)


def _chunk_sizes(total: int, size: int) -> list[int]:
    whole, rest = divmod(total, size)
    return [size] * whole + ([rest] if rest else [])


def _get_name(func: Callable[..., Any]) -> str:
    """The name of a function in messages."""
    if hasattr(func, "__name__"):
        return str(func.__name__)
    if isinstance(func, functools.partial):
        return f"functools.partial({_get_name(func.func)}, ...)"
    return repr(func)


# ------------------------------------------------------------------ inputs


def _check_in_dim(leaf: Any, dim: Any, where: str) -> None:
    if not isinstance(dim, int) and dim is not None:
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but in_dim must be either an integer "
            "dimension or None."
        )
    if dim is None:
        return
    if not isinstance(leaf, Tensor):
        refuse_foreign(leaf)
        raise ValueError(
            f"{where}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We "
            "cannot vmap over non-Tensor arguments, please use None as the respective in_dim"
        )
    if leaf.is_nested and dim % leaf.dim():
        raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, but got dim={dim}")
    n = leaf.dim()
    if not -n <= dim < n:
        raise ValueError(
            f"{where}: Got in_dim={dim} for some input, but that input is a Tensor of "
            f"dimensionality {n} so expected in_dim to satisfy -{n} <= in_dim < {n}."
        )


def _validate_and_get_batch_size(flat_in_dims: Sequence[Any], flat_args: Sequence[Any]) -> int:
    """The size that all have in their mapped dimension.

    Raises: ValueError: they differ, or none has such a dimension.
    """
    pairs = zip(flat_in_dims, flat_args, strict=True)
    sizes = [leaf.size(dim) for dim, leaf in pairs if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return int(sizes[0])


def _process_batched_inputs(
    in_dims: Any, args: tuple[Any, ...], func: Callable[..., Any]
) -> tuple[int, list[int | None], list[Any], TreeSpec]:
    """The size of the batch; the inputs as leaves with their dimensions, and their structure."""
    where = f"vmap({_get_name(func)}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            f"{where}: expected `in_dims` to be int or a (potentially nested) tuple matching the "
            f"structure of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({_get_name(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or "
            "you are trying to vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    given = _broadcast_to_and_flatten(in_dims, spec)
    if given is None:
        raise ValueError(
            f"{where}: in_dims is not compatible with the structure of `inputs`. in_dims has "
            f"structure {tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    dims: list[int | None] = []
    for leaf, dim in zip(leaves, given, strict=True):
        _check_in_dim(leaf, dim, where)
        dims.append(dim if dim is None else dim % leaf.dim())
    return _validate_and_get_batch_size(dims, leaves), dims, leaves, spec


def _add_batch_dim(self: Tensor, batch_dim: int, level: int) -> Tensor:
    """A tensor that is each slice of another along a dimension, at a level."""
    made: Tensor = _C["_vmap_add"](self, batch_dim % self.dim(), level)
    return made


def _create_batched_inputs(
    flat_in_dims: Sequence[int | None], flat_args: Sequence[Any], vmap_level: int, args_spec: Any
) -> Any:
    """The arguments of the function: slices of the mapped inputs, in their structure."""
    batched = [
        leaf if dim is None else _add_batch_dim(leaf, dim, vmap_level)
        for leaf, dim in zip(flat_args, flat_in_dims, strict=True)
    ]
    return tree_unflatten(batched, args_spec)


# ------------------------------------------------------------------ outputs


def _check_out_dims(func: Callable[..., Any], out_dims: Any) -> None:
    def check(dim: Any) -> None:
        if not isinstance(dim, int) and dim is not None:
            raise ValueError(
                f"vmap({_get_name(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, "
                "None or a python collection of ints representing where in the outputs the vmapped "
                "dimension should appear."
            )

    map_leaves(check, out_dims)


def is_batchedtensor(tensor: Any) -> bool:
    """Whether a tensor is a slice at a level of vmap."""
    return isinstance(tensor, Tensor) and bool(_C["_vmap_level"](tensor))


def _remove_batch_dim(tensor: Tensor, level: int, batch_size: int, out_dim: int) -> Tensor:
    """All slices of a tensor at a level, along a dimension."""
    made: Tensor = _C["_vmap_remove"](tensor, level, batch_size, out_dim)
    return made


def _maybe_remove_batch_dim(
    name: str, batched_output: Any, vmap_level: int, batch_size: int, out_dim: int | None
) -> Any:
    """All slices of one output of the function `name`, along `out_dim`; None: it has none.

    Raises: ValueError: the output is no tensor, or batched where it is to have no slices.
    """
    if out_dim is None:
        if is_batchedtensor(batched_output):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type "
            f"{type(batched_output)}. Did you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def _unwrap_batched(
    batched_outputs: Any, out_dims: Any, vmap_level: int, batch_size: int, func: Callable[..., Any]
) -> Any:
    """Makes the batch dimensions of the function's results visible. An input that is returned
    unchanged is the same object.
    """
    leaves, spec = tree_flatten(batched_outputs)
    dims: list[Any] | None
    if isinstance(batched_outputs, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims = list(out_dims)
    else:
        dims = _broadcast_to_and_flatten(out_dims, spec)
    name = _get_name(func)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with "
            f"the structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but "
            f"outputs has structure {spec}."
        )
    made = [
        _maybe_remove_batch_dim(name, leaf, vmap_level, batch_size, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    inputs = levels.given.get(vmap_level, ())
    given = {leaf._h: leaf for leaf in inputs if isinstance(leaf, Tensor)}
    objects = dict(given)
    kept = [objects.setdefault(y._h, y) if isinstance(y, Tensor) else y for y in made]
    for handle, value in objects.items():
        if handle not in given:
            _show_base(value, given, objects)
    return tree_unflatten(kept, spec)


def _show_base(value: Tensor, given: dict[int, Tensor], objects: dict[int, Tensor]) -> None:
    """Makes the base of an output the very tensor that was given or is returned beside it."""
    base = value._base
    if base is None:
        return
    for leaf in given.values():
        if base._h == leaf._h or (leaf._base is not None and leaf._base._h == base._h):
            value._b = leaf
            return
    value._b = objects.get(base._h, base)


def mapped_or_one_by_one(
    push: Callable[..., Any],
    tangents: Sequence[Tensor],
    primals: Sequence[Tensor],
    randomness: str = "error",
) -> Any:
    """Maps `push` over a batch of tangents. That makes batches of the primals too; if the function
    refuses those, say because it branches on them, loops over the tangents.
    """
    mapped = vmap(push, randomness=randomness)
    versions = [x._version for x in primals]
    try:
        return mapped(*tangents)
    except RuntimeError:
        if not tangents or not len(tangents[0]) or versions != [x._version for x in primals]:
            raise
    state = get_rng_state() if randomness == "same" else None
    columns, spec = [], None
    for row in zip(*tangents, strict=True):
        if state is not None:
            set_rng_state(state)
        with refuse_draws() if randomness == "error" else nullcontext():
            column, spec = tree_flatten(push(*row))
        columns.append(column)
    assert spec is not None
    stack = functions.SPACES["torch"]["stack"]
    return tree_unflatten([stack(list(each)) for each in zip(*columns, strict=True)], spec)
