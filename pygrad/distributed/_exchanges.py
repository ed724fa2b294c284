"""Collectives that move tensors unchanged: from one rank, to one, and from all to all. Each sends
its messages directly between ranks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import _buffers
from ._call import (
    Call,
    check_count,
    check_like,
    check_list,
    check_types,
    check_where,
    member,
    root_or_first,
    split_row,
)
from ._group import ProcessGroup, find_for
from ._progress import Steps, Waiting, Work

# ------------------------------------------------------------------ from one, and to one


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Copies one rank's tensor to all ranks, in place.

    Args:
        tensor: sent from that rank, overwritten on the others.
        src: its rank in the world; or `group_src`, its rank in the group.
        group, async_op: see `all_reduce`, also for errors.
    """
    _buffers.check([tensor], "broadcast")
    pg = find_for("broadcast", group)
    if pg is None:
        return None
    root = member(pg, src, group_src)
    call = Call(pg, f"broadcast from rank {pg._ranks[root]}", [tensor])
    target = _buffers.Target(tensor)

    def steps() -> Steps[None]:
        if call.rank == root:
            yield Waiting([call.send(peer, target.row) for peer in call.others()])
            yield Waiting([call.receive(peer) for peer in call.others()])  # detects another root
        else:
            yield Waiting([call.receive(root, target.row)])
            target.finish_write()
            yield Waiting([call.send(root)])

    return call.run(steps(), async_op, [tensor])


def scatter(
    tensor: Tensor,
    scatter_list: Sequence[Tensor] | None = None,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Distributes one rank's tensors, one to each rank.

    Args:
        tensor: receives this rank's tensor.
        scatter_list: on the source rank, a tensor for each rank; None on the others.
        src: its rank in the world, 0 if neither is given; or `group_src`, its rank in the group.
        group, async_op: see `all_reduce`, also for errors.
    """
    _buffers.check([tensor], "scatter")
    given = list(scatter_list) if scatter_list else []
    check_list(given, "scatter_list")
    check_types(tensor, *given)
    pg = find_for("scatter", group)
    if pg is None:
        return None
    root = root_or_first(pg, src, group_src)
    here = pg.rank() == root
    check_where(here, scatter_list is None, given, "scatter_list", "source")
    if here:
        _check_rows(given, tensor, pg, "scatter")
    call = Call(pg, f"scatter from rank {pg._ranks[root]}", [tensor], inputs=given)
    target, rows = _buffers.Target(tensor), [_buffers.flat(each) for each in given]

    def steps() -> Steps[None]:
        if call.rank == root:
            yield Waiting([call.send(peer, rows[peer]) for peer in call.others()])
            with pygrad.no_grad():
                target.row.copy_(rows[root])
        else:
            yield Waiting([call.receive(root, target.row)])
        target.finish_write()

    return call.run(steps(), async_op, [tensor])


def _check_rows(given: list[Tensor], tensor: Tensor, group: ProcessGroup, name: str) -> None:
    """Raises unless there is one tensor like `tensor` for each rank."""
    _buffers.check(given, name, f"{name}_list")
    check_count(given, group, f"{name}_list")
    for each in given:
        check_like(each, tensor)


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Collects the tensors of all ranks on one rank.

    Args:
        tensor: the tensor to send.
        gather_list: on the destination rank, a tensor for each rank's; None on the others.
        dst: its rank in the world, 0 if neither is given; or `group_dst`, its rank in the group.
        group, async_op: see `all_reduce`, also for errors.
    """
    _buffers.check([tensor], "gather")
    given = list(gather_list) if gather_list else []
    check_list(given, "gather_list")
    check_types(tensor, *given)
    pg = find_for("gather", group)
    if pg is None:
        return None
    root = root_or_first(pg, dst, group_dst)
    here = pg.rank() == root
    check_where(here, not given, given, "gather_list", "destination")
    if here:
        _check_rows(given, tensor, pg, "gather")
    call = Call(pg, f"gather to rank {pg._ranks[root]}", [tensor])
    row, targets = _buffers.flat(tensor), _buffers.targets(given)

    def steps() -> Steps[None]:
        if call.rank == root:
            yield Waiting([call.receive(peer, targets[peer].row) for peer in call.others()])
            with pygrad.no_grad():
                targets[root].row.copy_(row)
            _buffers.finish_writes(targets)
        else:
            yield Waiting([call.send(root, row)])

    return call.run(steps(), async_op, given)


# ------------------------------------------------------------------ from all to all


def exchange(
    call: Call,
    sent: Sequence[Tensor],
    received: Sequence[Tensor],
    targets: Sequence[_buffers.Target] = (),
) -> Steps[None]:
    """Exchanges one row with each rank, then marks the targets as written."""
    with pygrad.no_grad():
        received[call.rank].copy_(sent[call.rank])
    waits = []
    for peer in call.others():
        waits += [call.receive(peer, received[peer]), call.send(peer, sent[peer])]
    yield Waiting(waits)
    _buffers.finish_writes(targets)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Collects the tensors of all ranks on all ranks.

    Args:
        tensor_list: for each rank, the tensor that receives that rank's.
        tensor: the tensor to send.
        group, async_op: see `all_reduce`, also for errors.
    """
    check_list(tensor_list, "tensor_list")
    _buffers.check([tensor], "all_gather")
    _buffers.check(tensor_list, "all_gather", "tensor_list")
    check_types(tensor, *tensor_list)
    pg = find_for("all_gather", group)
    if pg is None:
        return None
    check_count(tensor_list, pg, "tensor_list")
    for each in tensor_list:
        check_like(each, tensor)
    call = Call(pg, "all_gather", [tensor])
    targets = _buffers.targets(tensor_list)
    rows = [each.row for each in targets]
    steps = exchange(call, [_buffers.flat(tensor)] * call.size, rows, targets)
    return call.run(steps, async_op, tensor_list)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather` to one tensor.

    Args:
        output_tensor: the result: the inputs joined or stacked along the first dimension.
        input_tensor: the tensor to send.
        group, async_op: see `all_reduce`.
    """
    _buffers.check([input_tensor], "all_gather_into_tensor", "input_tensor")
    _buffers.check([output_tensor], "all_gather_into_tensor", "output_tensor")
    check_types(output_tensor, input_tensor)
    pg = find_for("all_gather_into_tensor", group)
    if pg is None:
        return None
    call = Call(pg, "all_gather_into_tensor", [input_tensor], "all_gather")
    target = _buffers.Target(output_tensor)
    rows = split_row(output_tensor, target.row, input_tensor, pg)
    steps = exchange(call, [_buffers.flat(input_tensor)] * call.size, rows, [target])
    return call.run(steps, async_op, [output_tensor])


all_gather_into_tensor = all_gather_single


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """`all_gather` of several tensors: the i-th list receives the tensors of rank i.

    Args:
        output_tensor_lists: for each rank, a list of tensors like the list that is sent.
        input_tensor_list: the tensors to send.
        group, async_op: see `all_reduce`.
    """
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for each in output_tensor_lists:
        check_list(each, "output_tensor_lists")
        _buffers.check(each, "all_gather_coalesced", "output_tensor_lists")
    check_list(input_tensor_list, "input_tensor_list")
    _buffers.check(input_tensor_list, "all_gather_coalesced", "input_tensor_list")
    pg = find_for("all_gather_coalesced", group)
    if pg is None:
        return None
    check_count(output_tensor_lists, pg, "output_tensor_lists")
    for column in zip(input_tensor_list, *output_tensor_lists, strict=True):
        check_types(*column)
        for each in column[1:]:
            check_like(each, column[0])
    call = Call(pg, "all_gather_coalesced", input_tensor_list, "all_gather")
    columns = [
        [_buffers.Target(each[place]) for each in output_tensor_lists]
        for place in range(len(input_tensor_list))
    ]
    sent = [_buffers.flat(tensor) for tensor in input_tensor_list]

    def steps() -> Steps[None]:
        for row, column in zip(sent, columns, strict=True):
            received = [each.row for each in column]
            yield from exchange(call, [row] * call.size, received, column)

    work = call.run(steps(), async_op, [tensor for each in output_tensor_lists for tensor in each])
    return None if work is None else work.get_future()


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Sends one tensor to each rank and receives one from each; sizes may differ.

    Args:
        output_tensor_list: for each rank, the tensor that receives its message.
        input_tensor_list: for each rank, the tensor to send.
        group, async_op: see `all_reduce`, also for errors.
    """
    check_list(output_tensor_list, "output_tensor_list")
    check_list(input_tensor_list, "input_tensor_list")
    _buffers.check(output_tensor_list, "all_to_all", "output_tensor_list")
    _buffers.check(input_tensor_list, "all_to_all", "input_tensor_list")
    check_types(*output_tensor_list, *input_tensor_list)
    pg = find_for("all_to_all", group)
    if pg is None:
        return None
    check_count(output_tensor_list, pg, "output_tensor_list")
    check_count(input_tensor_list, pg, "input_tensor_list")
    call = Call(pg, f"all_to_all of {input_tensor_list[0].dtype}", inputs=input_tensor_list)
    sent = [_buffers.flat(each) for each in input_tensor_list]
    targets = _buffers.targets(output_tensor_list)
    received = [each.row for each in targets]
    check_like(sent[call.rank], received[call.rank])
    steps = exchange(call, sent, received, targets)
    return call.run(steps, async_op, output_tensor_list)


def all_to_all_single(
    output: Tensor,
    input: Tensor,
    output_split_sizes: Sequence[int] | None = None,
    input_split_sizes: Sequence[int] | None = None,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`all_to_all` of the parts of one tensor along its first dimension.

    Args:
        output: receives the parts, in order of ranks.
        input: the parts to send, in order of ranks.
        output_split_sizes: the length of each rank's part; None: equal lengths.
        input_split_sizes: likewise, for the input.
        group, async_op: see `all_reduce`, also for errors.
    """
    _buffers.check([output], "all_to_all_single", "output")
    _buffers.check([input], "all_to_all_single", "input")
    check_types(output, input)
    pg = find_for("all_to_all_single", group)
    if pg is None:
        return None
    target = _buffers.Target(output)
    received = _split(output, target.row, output_split_sizes, pg)
    sent = _split(input, _buffers.flat(input), input_split_sizes, pg)
    call = Call(pg, f"all_to_all_single of {input.dtype}", (), "all_to_all", [input])
    check_like(sent[call.rank], received[call.rank])
    return call.run(exchange(call, sent, received, [target]), async_op, [output])


def _split(
    tensor: Tensor, row: Tensor, sizes: Sequence[int] | None, group: ProcessGroup
) -> list[Tensor]:
    """The parts of a tensor along its first dimension, as slices of its row."""
    length = tensor.shape[0]
    if not sizes:
        if length % group.size():
            raise ValueError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // group.size()] * group.size()
    if len(sizes) != group.size():
        raise ValueError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise ValueError("Split sizes doesn't match total dim 0 size")
    width = math.prod(tensor.shape[1:])
    return list(row.split([width * size for size in sizes]))
