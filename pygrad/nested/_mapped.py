"""vmap over nested tensors: calls the function for each entry; the results are nested."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from .._ground.tree import flatten, spread, unflatten
from .._tensor.tensor import Tensor
from .._transforms import vmap as maps
from ..random import get_rng_state, set_rng_state
from ._class import Nested
from ._common import both
from ._strided import nested_of_entries


def _column(leaf: Any, dim: int | None, size: int) -> Sequence[Any]:
    """An input for each call."""
    if dim is None:
        return [leaf] * size
    return leaf.unbind(dim)  # type: ignore[no-any-return]


@contextmanager
def _set_random_state(randomness: str, state: Any) -> Iterator[None]:
    """Sets the random numbers of a call: none allowed, its own, or the same for all calls."""
    if randomness == "error":
        with maps.refuse_draws():
            yield
        return
    if randomness == "same":
        set_rng_state(state)
    yield


def _join_outputs(name: str, values: Sequence[Any], dim: Any) -> Any:
    """An output of all calls.

    Raises: RuntimeError, ValueError: it is no tensor, or its entries are to go elsewhere.
    """
    if dim is None:
        return values[0]
    if not all(isinstance(each, Tensor) for each in values):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(values[0])}. "
            "Did you mean to set out_dims= to None for output?"
        )
    if any(isinstance(each, Nested) for each in values):
        raise RuntimeError("a function that is mapped over nested tensors returned one")
    if dim:
        raise RuntimeError(f"Nested tensors can only be vmapped over dim=0, but got dim={dim}")
    return nested_of_entries(values)


@both("vmap")
def map_entries(call: maps.Mapped, size: int, leaves: Sequence[Any]) -> Any:
    """Calls the mapped function for each entry.

    Raises: RuntimeError: within another level of vmap.
    """
    if maps.levels.stack:
        raise RuntimeError("Only one level of vmap is supported when vmapping over nested tensors")
    columns = [_column(*each, size) for each in zip(leaves, call.dims, strict=True)]
    state = get_rng_state() if call.randomness == "same" else None
    found: list[list[Any]] = []
    spec: Any = None
    for i in range(size):
        with _set_random_state(call.randomness, state):
            inputs = unflatten([column[i] for column in columns], call.spec)
            outputs, spec = flatten(call.func(*inputs, **call.kwargs))
            found.append(outputs)
    dims = spread(call.out_dims, spec)
    name = maps._get_name(call.func)
    if dims is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={call.out_dims}): out_dims is not compatible with the "
            f"structure of `outputs`. out_dims has structure {flatten(call.out_dims)[1]} but "
            f"outputs has structure {spec}."
        )
    made = [_join_outputs(name, v, d) for v, d in zip(zip(*found, strict=True), dims, strict=True)]
    return unflatten(made, spec)
