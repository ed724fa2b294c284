"""Collectives of Python objects, sent as pickles. All processes must trust each other."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

from .._ground.dtypes import int64, uint8
from .._tensor import namespace as pygrad
from .._tensor.creation import from_buffer
from .._tensor.tensor import Tensor
from . import _exchanges, _point_to_point
from ._call import check_where, root_or_first
from ._group import ProcessGroup, find_for


def _object_to_tensor(obj: Any) -> Tensor:
    raw = pickle.dumps(obj, protocol=4)
    return from_buffer(raw, (len(raw),), uint8)


def _tensor_to_object(tensor: Tensor) -> Any:
    return pickle.loads(tensor.numpy().tobytes())


def _sizes_of_all(packed: Tensor, pg: ProcessGroup) -> list[int]:
    sizes = pygrad.empty(pg.size(), dtype=int64)
    mine = pygrad.tensor([packed.numel()], dtype=int64)
    _exchanges.all_gather_into_tensor(sizes, mine, pg)
    found: list[int] = sizes.tolist()
    return found


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Collects the objects of all ranks on all ranks.

    Args:
        object_list: a list with a place for each rank; is overwritten.
        obj: the object to send, which can be pickled.
        group: the process group.

    Raises:
        Errors of pickling, and of `all_gather`.
    """
    pg = find_for("all_gather_object", group)
    if pg is None:
        return
    packed = _object_to_tensor(obj)
    sizes = _sizes_of_all(packed, pg)
    rows = [pygrad.empty(size, dtype=uint8) for size in sizes]
    _exchanges.all_to_all(rows, [packed] * pg.size(), pg)
    for place, row in enumerate(rows):
        object_list[place] = _tensor_to_object(row)


def gather_object(
    obj: Any,
    object_gather_list: list[Any] | None = None,
    dst: int | None = None,
    group: Any = None,
    group_dst: int | None = None,
) -> None:
    """Collects the objects of all ranks on one rank.

    Args:
        obj: the object to send.
        object_gather_list: on that rank, a list with a place for each rank; None on the others.
        dst, group, group_dst: see `gather`.

    Raises:
        AssertionError, ValueError: no list on that rank, or one on another rank.
    """
    pg = find_for("gather_object", group)
    if pg is None:
        return
    root = root_or_first(pg, dst, group_dst)
    here = pg.rank() == root
    check_where(here, not object_gather_list, object_gather_list, "gather_list", "destination")
    packed = _object_to_tensor(obj)
    empty = pygrad.empty(0, dtype=uint8)
    sizes = _sizes_of_all(packed, pg)
    rows = [pygrad.empty(size, dtype=uint8) if here else empty for size in sizes]
    sent = [packed if rank == root else empty for rank in range(pg.size())]
    if here:
        rows[root] = packed.clone()
    _exchanges.all_to_all(rows, sent, pg)
    if object_gather_list is not None:
        for place, row in enumerate(rows):
            object_gather_list[place] = _tensor_to_object(row)


def broadcast_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
) -> None:
    """Copies one rank's objects to all ranks.

    Args:
        object_list: on that rank the objects; on the others a list of equal length, overwritten.
        src: 0 if neither is given.
        group, group_src: see `broadcast`.
        device: ignored, since all tensors are on the CPU.
    """
    pg = find_for("broadcast_object_list", group)
    if pg is None:
        return
    root = root_or_first(pg, src, group_src)
    here = pg.rank() == root
    packed = [_object_to_tensor(each) for each in object_list] if here else []
    sizes = pygrad.tensor([each.numel() for each in packed] or [0] * len(object_list), dtype=int64)
    _exchanges.broadcast(sizes, group=pg, group_src=root)
    if not here:
        packed = [pygrad.empty(size, dtype=uint8) for size in sizes.tolist()]
    for place, each in enumerate(packed):
        _exchanges.broadcast(each, group=pg, group_src=root)
        if not here:
            object_list[place] = _tensor_to_object(each)


def scatter_object_list(
    scatter_object_output_list: list[Any],
    scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None,
    group: Any = None,
    group_src: int | None = None,
) -> None:
    """Distributes one rank's objects, one to each rank.

    Args:
        scatter_object_output_list: its first element is overwritten.
        scatter_object_input_list: on that rank, an object for each rank; ignored on the others.
        src: 0 if neither is given.
        group, group_src: see `scatter`.

    Raises:
        ValueError: no output list, or no input list on that rank.
    """
    pg = find_for("scatter_object_list", group)
    if pg is None:
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError(
            "Expected argument scatter_object_output_list to be a list of size at least 1."
        )
    root = root_or_first(pg, src, group_src)
    here = pg.rank() == root
    if here and scatter_object_input_list is None:
        raise ValueError("source rank must provide non-None scatter_object_input_list")
    packed = [_object_to_tensor(each) for each in scatter_object_input_list or ()] if here else []
    size = pygrad.empty(1, dtype=int64)
    sizes = [pygrad.tensor([each.numel()], dtype=int64) for each in packed]
    _exchanges.scatter(size, sizes or None, group=pg, group_src=root)
    empty = pygrad.empty(0, dtype=uint8)
    rows = [empty] * pg.size()
    rows[root] = pygrad.empty(int(size), dtype=uint8)
    _exchanges.all_to_all(rows, packed if here else [empty] * pg.size(), pg)
    scatter_object_output_list[0] = _tensor_to_object(rows[root])


def send_object_list(
    object_list: list[Any],
    dst: int | None = None,
    group: Any = None,
    device: Any = None,
    group_dst: int | None = None,
    use_batch: bool = False,
) -> None:
    """Sends objects to a rank, which receives them by `recv_object_list`.

    Args:
        object_list: the objects to send.
        dst, group, group_dst: see `send`.
        device: ignored, as is `use_batch`.
    """
    pg = find_for("send_object_list", group)
    if pg is None:
        return
    packed = [_object_to_tensor(each) for each in object_list]
    sizes = pygrad.tensor([each.numel() for each in packed], dtype=int64)
    for each in (sizes, *packed):
        _point_to_point.send(each, dst, pg, group_dst=group_dst)


def recv_object_list(
    object_list: list[Any],
    src: int | None = None,
    group: Any = None,
    device: Any = None,
    group_src: int | None = None,
    use_batch: bool = False,
) -> int:
    """Receives the objects of `send_object_list`; returns the sender's rank, -1 outside of the
    group.

    Args:
        object_list: a list as long as the sender's; is overwritten.
        src, group, group_src: see `recv`.
        device: ignored, as is `use_batch`.
    """
    pg = find_for("recv_object_list", group)
    if pg is None:
        return -1
    sizes = pygrad.empty(len(object_list), dtype=int64)
    rank = _point_to_point.recv(sizes, src, pg, group_src=group_src)
    for place, size in enumerate(sizes.tolist()):
        row = pygrad.empty(size, dtype=uint8)
        _point_to_point.recv(row, rank, pg)
        object_list[place] = _tensor_to_object(row)
    return rank
