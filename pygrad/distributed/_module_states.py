"""Synchronization of parameters and buffers over ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import _exchanges, _objects
from ._flat import Flat
from ._group import get_rank, get_world_size

MOST_AT_ONCE = 250 * 1024 * 1024
"""Bytes of a message that holds several tensors."""


def verify_shapes(parameters: Sequence[Tensor], group: Any) -> None:
    """Compares the numbers, shapes and dtypes of parameters of all ranks.

    Raises:
        RuntimeError: on every rank, if they differ.
    """
    mine = [(list(each.shape), str(each.dtype)) for each in parameters]
    rank = get_rank(group)
    everybody: list[Any] = [None] * get_world_size(group)
    _objects.all_gather_object(everybody, mine, group=group)
    for other, theirs in enumerate(everybody):
        if len(theirs) != len(everybody[0]):
            raise RuntimeError(
                f"DDP expects same model across all ranks, but Rank 0 has {len(everybody[0])} "
                f"params, while rank {other} has inconsistent {len(theirs)} params."
            )
    # Each rank first reports itself, then the others.
    for other in (rank, *range(len(everybody))):
        for place, (found, wanted) in enumerate(zip(everybody[other], everybody[0], strict=True)):
            if found != wanted:
                where = "this process" if other == rank else f"process {other}"
                what = "sizes" if found[0] != wanted[0] else "dtype"
                raise RuntimeError(
                    f"[{rank}]: params[{place}] in {where} with {what} {found[what == 'dtype']} "
                    f"appears not to match {what} of the same param in process 0."
                )


def group_by_dtype(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Groups tensors by dtype, in the order in which each dtype first occurs."""
    groups: dict[Any, list[Tensor]] = {}
    for each in tensors:
        groups.setdefault(each.dtype, []).append(each)
    yield from groups.values()


def _messages(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    for group in group_by_dtype(tensors):
        message: list[Tensor] = []
        size = 0
        for each in group:
            if message and size + each.nbytes > MOST_AT_ONCE:
                yield message
                message, size = [], 0
            message.append(each)
            size += each.nbytes
        yield message


def broadcast_all(tensors: Sequence[Tensor], group: Any, source: int = 0) -> None:
    """Copies one rank's tensors to all ranks of the group."""
    if get_world_size(group) == 1:
        return
    with pygrad.no_grad():
        for message in _messages([each.detach() for each in tensors if each.numel()]):
            if len(message) == 1 and message[0].is_contiguous():
                _exchanges.broadcast(message[0], group=group, group_src=source)
                continue
            flat = Flat(message)
            mine = get_rank(group) == source
            if mine:
                flat.gather(message)
            _exchanges.broadcast(flat.tensor, group=group, group_src=source)
            if not mine:
                flat.scatter(message)
