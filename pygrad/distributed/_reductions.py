"""Reductions over ranks. The order of additions depends on ranks and shapes alone.

An operand is cut into one slice for each rank. Rank i receives slice i of all ranks, reduces it,
and sends the result to all. A short operand is sent whole instead, and each rank reduces all of it.
Both add in the order of the tree of `_tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import _buffers, _reduce_op, _sparse, _tree
from ._call import (
    Call,
    as_real,
    check_count,
    check_like,
    check_list,
    check_types,
    member,
    split_row,
)
from ._group import ProcessGroup, find, find_for
from ._progress import Steps, Waiting, Work
from ._reduce_op import RedOpType, ReduceOp

_SHORT: Final = 4096
"""The size in bytes up to which operands are sent whole rather than in slices."""
_ALIGNED: Final = 64
"""The alignment of slices in bytes."""


def _reduce_to_owners(
    call: Call,
    kind: RedOpType,
    rows: Sequence[Sequence[Tensor]],
    leaves: int,
    out: Tensor | None,
) -> Steps[None]:
    """Sends to each rank the rows that it reduces, and reduces this rank's rows of all ranks.

    Args:
        call: the collective.
        kind: the kind of reduction.
        rows: for each rank, a row for each tree node of this rank. This rank's rows are
            overwritten.
        leaves: the number of leaves of the tree.
        out: the destination, which may be one of the rows; None if this rank reduces nothing.
    """
    nodes = [_tree.cover(_tree.block(rank, call.size, leaves), leaves) for rank in range(call.size)]
    parts = dict(zip(nodes[call.rank], rows[call.rank], strict=True))
    waits = []
    for peer in call.others():
        if out is not None:
            for node in nodes[peer]:
                parts[node] = pygrad.empty_like(out)
                waits.append(call.receive(peer, parts[node]))
        waits += [call.send(peer, row) for row in rows[peer]]
    yield Waiting(waits)

    def join(left: Tensor, right: Tensor) -> Tensor:
        return _reduce_op.join(kind, left, right, right if right is out else left)

    if out is not None:
        with pygrad.no_grad():
            total = _tree.combine(parts, leaves, join)
            _reduce_op.finish(kind, total, leaves)
            if total is not out:
                out.copy_(total)


def _bounds(row: Tensor, ranks: int) -> list[slice]:
    """The slice of a row that each rank reduces."""
    step = max(1, _ALIGNED // row.element_size())
    each = -(-row.numel() // (ranks * step)) * step
    return [slice(rank * each, (rank + 1) * each) for rank in range(ranks)]


def _all_reduce_parts(
    call: Call, kind: RedOpType, parts: Sequence[Tensor], leaves: int, out: Tensor
) -> Steps[None]:
    """Reduces the parts of all ranks, with the result on all ranks."""
    if out.nbytes <= _SHORT or call.size == 1:
        yield from _reduce_to_owners(call, kind, [parts] * call.size, leaves, out)
        return
    cut = _bounds(out, call.size)
    rows = [[part[piece] for part in parts] for piece in cut]
    mine = parts[0][cut[call.rank]] if parts and parts[0] is out else None
    if mine is not None:
        rows[call.rank][0] = mine
    result = out[cut[call.rank]] if mine is None else mine
    yield from _reduce_to_owners(call, kind, rows, leaves, result)
    waits = []
    for peer in call.others():
        waits += [call.send(peer, result), call.receive(peer, out[cut[peer]])]
    yield Waiting(waits)


def _ring_all_reduce(call: Call, kind: RedOpType, row: Tensor) -> Steps[None]:
    """Reduces a row around a ring. Each slice is added up in a different order of ranks."""
    cut = _bounds(row, call.size)
    ahead, behind = (call.rank + 1) % call.size, (call.rank - 1) % call.size
    for step in range(call.size - 1):
        target = row[cut[(call.rank - step - 1) % call.size]]
        came = pygrad.empty_like(target)
        sent = row[cut[(call.rank - step) % call.size]]
        yield Waiting([call.send(ahead, sent), call.receive(behind, came)])
        with pygrad.no_grad():
            _reduce_op.join(kind, target, came, target)
    with pygrad.no_grad():
        _reduce_op.finish(kind, row[cut[ahead]], call.size)
    for step in range(call.size - 1):
        sent = row[cut[(call.rank + 1 - step) % call.size]]
        target = row[cut[(call.rank - step) % call.size]]
        yield Waiting([call.send(ahead, sent), call.receive(behind, target)])


def _finish_writes_after(steps: Steps[Any], targets: Sequence[_buffers.Target]) -> Steps[Any]:
    """Runs the steps, then marks the targets as written."""
    returned = yield from steps
    _buffers.finish_writes(targets)
    return returned


def all_reduce(
    tensor: Tensor,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    *,
    deterministic: bool = True,
) -> Work | None:
    """Reduces a tensor over all ranks, in place.

    Args:
        tensor: dense, or sparse (COO); of the same shape and dtype on all ranks. A sparse
            one is coalesced after it.
        op: a `ReduceOp`.
        group: the process group; the default group if None.
        async_op: return at once; the tensor is reduced when the returned work has ended.
        deterministic: add in the order of a fixed tree over the ranks. False: around a ring, where
            each slice is added in its own order. PyTorch has no such argument.

    Returns:
        A `Work` if `async_op`; else None.

    Raises:
        ValueError: the op is not defined for complex numbers.
        RuntimeError: the op is not defined for the dtype: bitwise ops of floating-point numbers,
            averages of integers; another op than SUM for sparse tensors; elements of the tensor
            share a place.
        DistBackendError: a rank is gone, disagrees, or exceeded the time limit.
    """
    if isinstance(tensor, Tensor) and tensor.layout is pygrad.sparse_coo:
        return _sparse.all_reduce(tensor, op, group, async_op)
    _buffers.check([tensor], "all_reduce")
    pg, kind = find_for("all_reduce", group), _reduce_op.kind_of(op)
    if pg is None:
        return None
    _reduce_op.check(kind, tensor, "all_reduce")
    target = _buffers.Target(tensor)
    row = target.row
    if deterministic:
        call = Call(pg, f"all_reduce {kind.name}", [tensor])
        steps = _all_reduce_parts(call, kind, [row], call.size, row)
    else:
        call = Call(pg, f"all_reduce {kind.name} around a ring", [tensor])
        steps = _ring_all_reduce(call, kind, row)
    return call.run(_finish_writes_after(steps, [target]), async_op, [tensor])


def sum_leaves(
    out: Tensor,
    partials: Sequence[Tensor],
    leaves: int,
    group: Any = None,
    async_op: bool = False,
    what: str = "micro-batches",
) -> Work | None:
    """The sum over the leaves of a tree, of which each rank has a block. The bits are the same for
    any number of ranks.

    Args:
        out: one dimension; receives the sum. It may be the first of the partials.
        partials: for each node of ``_tree.cover(_tree.block(rank, ranks, leaves), leaves)``, its
            sum, a row like `out`. They are overwritten.
        leaves: the number of leaves of the tree.
        group: the process group.
        async_op: see `all_reduce`.
        what: the name of the leaves, for errors.
    """
    pg = find(group)
    call = Call(pg, f"sum of {leaves} {what}", [out], "all_reduce")
    steps = _all_reduce_parts(call, RedOpType.SUM, partials, leaves, out)
    return call.run(_finish_writes_after(steps, [_buffers.Target(out)]), async_op, [out])


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduces each of several tensors like `all_reduce`; the work's result has all of them."""
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    check_list(tensors, "tensors")
    _buffers.check(tensors, "all_reduce_coalesced")
    check_types(*map(as_real, tensors))
    pg, kind = find_for("all_reduce_coalesced", group), _reduce_op.kind_of(op)
    if pg is None:
        return None
    for each in tensors:
        _reduce_op.check(kind, each, "all_reduce")
    call = Call(pg, f"all_reduce_coalesced {kind.name}", tensors, "all_reduce")
    targets = _buffers.targets(tensors)

    def steps() -> Steps[None]:
        for each in targets:
            yield from _all_reduce_parts(call, kind, [each.row], call.size, each.row)

    return call.run(_finish_writes_after(steps(), targets), async_op, tensors)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces a tensor over all ranks, in place on one of them; the other ranks' tensors stay
    unchanged.

    Args:
        tensor: see `all_reduce`, also for the other arguments and errors.
        dst: the rank in the world that gets the result; or `group_dst`, its rank in the group.
    """
    _buffers.check([tensor], "reduce")
    pg, kind = find_for("reduce", group), _reduce_op.kind_of(op)
    if pg is None:
        return None
    root = member(pg, dst, group_dst)
    _reduce_op.check(kind, tensor, "reduce")
    call = Call(pg, f"reduce {kind.name} to rank {pg._ranks[root]}", [tensor])
    target = _buffers.Target(tensor)
    row = target.row
    rows = [[row] if peer in (root, call.rank) else [] for peer in range(call.size)]
    if call.rank == root:
        steps = _finish_writes_after(_reduce_to_owners(call, kind, rows, call.size, row), [target])
    else:
        steps = _reduce_to_owners(call, kind, rows, call.size, None)
    return call.run(steps, async_op, [tensor])


def _reduce_scatter_rows(
    pg: ProcessGroup,
    name: str,
    op: Any,
    output: Tensor,
    rows: Sequence[Tensor],
    inputs: Sequence[Tensor],
    async_op: bool,
) -> Work | None:
    """Reduces the i-th row of all ranks to the output of rank i. The rows are those of the
    inputs.
    """
    kind = _reduce_op.kind_of(op)
    _reduce_op.check(kind, output, name)
    call = Call(pg, f"{name} {kind.name}", [output], "reduce_scatter", inputs)
    target = _buffers.Target(output)
    with pygrad.no_grad():
        target.row.copy_(rows[call.rank])
    parts = [[target.row if rank == call.rank else row] for rank, row in enumerate(rows)]
    steps = _reduce_to_owners(call, kind, parts, call.size, target.row)
    return call.run(_finish_writes_after(steps, [target]), async_op, [output])


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces lists of tensors over all ranks; rank i gets the result of the i-th tensors.

    Args:
        output: receives the result.
        input_list: a tensor for each rank, with the shape of that rank's output.
        op, group, async_op: see `all_reduce`.
    """
    _buffers.check([output], "reduce_scatter", "output")
    check_list(input_list, "input_list")
    _buffers.check(input_list, "reduce_scatter", "input_list")
    check_types(output, *input_list)
    pg = find_for("reduce_scatter", group)
    if pg is None:
        return None
    check_count(input_list, pg, "input_list")
    check_like(input_list[pg.rank()], output)
    rows = [_buffers.flat(each) for each in input_list]
    return _reduce_scatter_rows(pg, "reduce_scatter", op, output, rows, input_list, async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`reduce_scatter` of one tensor, whose i-th part is for rank i.

    Args:
        output: receives the result.
        input: one part for each rank, joined or stacked along the first dimension.
        op, group, async_op: see `all_reduce`.
    """
    _buffers.check([output], "reduce_scatter_tensor", "output")
    _buffers.check([input], "reduce_scatter_tensor", "input")
    check_types(output, input)
    pg = find_for("reduce_scatter_tensor", group)
    if pg is None:
        return None
    rows = split_row(input, _buffers.flat(input), output, pg)
    return _reduce_scatter_rows(pg, "reduce_scatter_tensor", op, output, rows, [input], async_op)


reduce_scatter_tensor = reduce_scatter_single
