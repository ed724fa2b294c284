"""Reductions over ranks. What arrives is joined in an order that ranks and shapes alone decide.

An operand is cut in as many slices as there are ranks: rank i is sent slice i of all ranks, reduces
it, and gives the result to all. A short operand is sent whole instead, and each rank reduces it
all. Both add in the order of the tree of `_tree`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from .._package import pygrad
from .._tensor import Tensor
from . import _buffers, _reduce_op, _sparse, _tree
from ._call import Call, as_real, check_count, check_like, check_list, check_types, divided, member
from ._group import ProcessGroup, find, find_for
from ._progress import Steps, Waiting, Work
from ._reduce_op import RedOpType, ReduceOp

_SHORT: Final = 4096
"""Bytes that are sent to all ranks rather than cut in slices."""
_ALIGNED: Final = 64
"""Slices begin at a multiple of so many bytes."""


def _reduced(
    call: Call,
    kind: RedOpType,
    rows: Sequence[Sequence[Tensor]],
    leaves: int,
    out: Tensor | None,
) -> Steps[None]:
    """Sends each rank the rows that it is to reduce, and reduces what all have sent here.

    Args:
        call: between whom.
        kind: how.
        rows: by rank: a row for each node of the tree that this rank has. Its own are written over.
        leaves: how many the tree has.
        out: where the result goes; it may be one of the rows. None if nothing is reduced here.
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


def _all_reduced(
    call: Call, kind: RedOpType, parts: Sequence[Tensor], leaves: int, out: Tensor
) -> Steps[None]:
    """The reduction of the parts of all ranks, on all of them."""
    if out.nbytes <= _SHORT or call.size == 1:
        yield from _reduced(call, kind, [parts] * call.size, leaves, out)
        return
    cut = _bounds(out, call.size)
    rows = [[part[piece] for part in parts] for piece in cut]
    mine = parts[0][cut[call.rank]] if parts and parts[0] is out else None
    if mine is not None:
        rows[call.rank][0] = mine
    result = out[cut[call.rank]] if mine is None else mine
    yield from _reduced(call, kind, rows, leaves, result)
    waits = []
    for peer in call.others():
        waits += [call.send(peer, result), call.receive(peer, out[cut[peer]])]
    yield Waiting(waits)


def _around(call: Call, kind: RedOpType, row: Tensor) -> Steps[None]:
    """The reduction of a row around a ring: each slice is added up in another order of ranks."""
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


def _then_written(steps: Steps[Any], targets: Sequence[_buffers.Target]) -> Steps[Any]:
    """The steps, and after them the notice that rows have been written."""
    returned = yield from steps
    _buffers.written(targets)
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
        op: how, a `ReduceOp`.
        group: over which ranks; all if None.
        async_op: return at once; the tensor is reduced when the work that is returned has ended.
        deterministic: add in the order of a fixed tree over the ranks. False: around a ring, where
            each slice is added in an order of its own; no other argument of PyTorch's says that.

    Returns:
        A `Work` if `async_op`; else None.

    Raises:
        ValueError: the op has no meaning for complex numbers.
        RuntimeError: it has none for the dtype: bits of floating-point numbers, averages of
            integers; another op than SUM of sparse tensors; elements of the tensor share a place.
        DistBackendError: a rank is gone, disagrees, or did not come in time.
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
        steps = _all_reduced(call, kind, [row], call.size, row)
    else:
        call = Call(pg, f"all_reduce {kind.name} around a ring", [tensor])
        steps = _around(call, kind, row)
    return call.run(_then_written(steps, [target]), async_op, [tensor])


def sum_leaves(
    out: Tensor,
    partials: Sequence[Tensor],
    leaves: int,
    group: Any = None,
    async_op: bool = False,
    what: str = "micro-batches",
) -> Work | None:
    """The sum over the leaves of a tree of which each rank has a block: the same bits for any
    number of ranks.

    Args:
        out: one dimension; receives the sum. It may be the first of the partials.
        partials: for each node of ``_tree.cover(_tree.block(rank, ranks, leaves), leaves)`` its
            sum, a row like `out`. They are written over.
        leaves: how many the tree has.
        group: over which ranks.
        async_op: see `all_reduce`.
        what: what the leaves are, for errors.
    """
    pg = find(group)
    call = Call(pg, f"sum of {leaves} {what}", [out], "all_reduce")
    steps = _all_reduced(call, RedOpType.SUM, partials, leaves, out)
    return call.run(_then_written(steps, [_buffers.Target(out)]), async_op, [out])


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduces each of several tensors as `all_reduce`; the work's result is all of them."""
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
            yield from _all_reduced(call, kind, [each.row], call.size, each.row)

    return call.run(_then_written(steps(), targets), async_op, tensors)


def reduce(
    tensor: Tensor,
    dst: int | None = None,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Reduces a tensor over all ranks, in place on one of them; the others' stay as they are.

    Args:
        tensor: see `all_reduce`, also for what is not told here.
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
        steps = _then_written(_reduced(call, kind, rows, call.size, row), [target])
    else:
        steps = _reduced(call, kind, rows, call.size, None)
    return call.run(steps, async_op, [tensor])


def _scattered(
    pg: ProcessGroup,
    name: str,
    op: Any,
    output: Tensor,
    rows: Sequence[Tensor],
    inputs: Sequence[Tensor],
    async_op: bool,
) -> Work | None:
    """Reduces the i-th row of all ranks to the output of rank i; the rows are those of inputs."""
    kind = _reduce_op.kind_of(op)
    _reduce_op.check(kind, output, name)
    call = Call(pg, f"{name} {kind.name}", [output], "reduce_scatter", inputs)
    target = _buffers.Target(output)
    with pygrad.no_grad():
        target.row.copy_(rows[call.rank])
    parts = [[target.row if rank == call.rank else row] for rank, row in enumerate(rows)]
    steps = _reduced(call, kind, parts, call.size, target.row)
    return call.run(_then_written(steps, [target]), async_op, [output])


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Reduces a list of tensors over all ranks, of which each rank gets the one of its place.

    Args:
        output: receives it.
        input_list: for each rank one, shaped like its output.
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
    return _scattered(pg, "reduce_scatter", op, output, rows, input_list, async_op)


def reduce_scatter_single(
    output: Tensor,
    input: Tensor,
    op: Any = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """`reduce_scatter` of one tensor, of which the i-th part in order is for rank i.

    Args:
        output: receives it.
        input: as many outputs, joined or stacked along the first dimension.
        op, group, async_op: see `all_reduce`.
    """
    _buffers.check([output], "reduce_scatter_tensor", "output")
    _buffers.check([input], "reduce_scatter_tensor", "input")
    check_types(output, input)
    pg = find_for("reduce_scatter_tensor", group)
    if pg is None:
        return None
    rows = divided(input, _buffers.flat(input), output, pg)
    return _scattered(pg, "reduce_scatter_tensor", op, output, rows, [input], async_op)


reduce_scatter_tensor = reduce_scatter_single
