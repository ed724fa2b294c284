"""Collectives. Each sends its messages straight from rank to rank; what arrives is joined in an
order that ranks and shapes alone decide.

A reduction cuts its operand in as many slices as there are ranks: rank i is sent slice i of all
ranks, reduces it, and gives the result to all. A short operand is sent whole instead, and each rank
reduces it all. Both add in the order of the tree of `_tree`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any, Final

from .._package import pygrad
from .._tensor import Tensor
from . import _buffers, _message, _reduce_op, _tree
from ._group import ProcessGroup, find, find_for
from ._progress import Steps, Waiting, Work
from ._reduce_op import RedOpType, ReduceOp

_SHORT: Final = 4096
"""Bytes that are sent to all ranks rather than cut in slices."""
_ALIGNED: Final = 64
"""Slices begin at a multiple of so many bytes."""


class _Call:
    """A collective under way: its group, the tag of its messages, and what they say."""

    def __init__(self, group: ProcessGroup, name: str, tensors: Sequence[Tensor] = ()) -> None:
        self.group = group
        self.head = _message.head(name, tensors, group._where)
        self.tag = group._next_tag()
        self.rank, self.size = group.rank(), group.size()
        self._transport = group._transport

    def others(self) -> Iterator[int]:
        """The other ranks, the next one first, so that not all begin with the same."""
        return ((self.rank + i) % self.size for i in range(1, self.size))

    def send(self, peer: int, row: Tensor | None = None) -> tuple[int, Callable[[], bool]]:
        """A message to a rank of the group, with the elements of a row."""
        body = None if row is None else _buffers.bytes_of(row)
        there = self.group._ranks[peer]
        return there, self._transport.send(there, self.tag, self.head, body)

    def receive(self, peer: int, row: Tensor | None = None) -> tuple[int, Callable[[], bool]]:
        """A message of a rank of the group, to be written to a row."""
        body = None if row is None else _buffers.bytes_of(row)
        there = self.group._ranks[peer]
        accept = _message.expect(there, self.head, body)
        return there, self._transport.receive(there, self.tag, accept)

    def run(self, steps: Steps[Any], async_op: bool, result: Sequence[Tensor] = ()) -> Work | None:
        """Starts it, and waits for it unless it is asynchronous."""
        work = Work(steps, self.head.decode(), self._transport, self.group._seconds, list(result))
        if async_op:
            return work
        work.wait()
        return None


def _member(group: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """The rank in the group of which one of two ways tells."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        if not 0 <= group_rank < group.size():
            raise ValueError(f"Group rank {group_rank} is not part of group {group}")
        return group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if global_rank not in group._ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group._ranks.index(global_rank)


def _check_list(tensors: Any, parameter: str) -> None:
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{parameter}` of type "
            f"List[torch.Tensor]\n             but got {type(tensors)} instead."
        )


def _same_type(*tensors: Tensor) -> None:
    for each in tensors[1:]:
        if each.dtype is not tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes"
                f"Found {tensors[0].dtype} and  {each.dtype}"
            )


# ------------------------------------------------------------------ reductions


def _reduced(
    call: _Call,
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
    call: _Call, kind: RedOpType, parts: Sequence[Tensor], leaves: int, out: Tensor
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


def _around(call: _Call, kind: RedOpType, row: Tensor) -> Steps[None]:
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


def _then_written(steps: Steps[Any], tensors: Sequence[Tensor]) -> Steps[Any]:
    """The steps, and after them the notice that tensors have been written."""
    returned = yield from steps
    _buffers.written(tensors)
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
        tensor: contiguous; of the same shape and dtype on all ranks.
        op: how, a `ReduceOp`.
        group: over which ranks; all if None.
        async_op: return at once; the tensor is reduced when the work that is returned has ended.
        deterministic: add in the order of a fixed tree over the ranks. False: around a ring, where
            each slice is added in an order of its own; no other argument of PyTorch's says that.

    Returns:
        A `Work` if `async_op`; else None.

    Raises:
        ValueError: the tensor is not contiguous, or the op has no meaning for complex numbers.
        DistBackendError: a rank is gone, disagrees, or did not come in time.
    """
    _buffers.check([tensor], "all_reduce")
    pg, kind = find_for("all_reduce", group), _reduce_op.kind_of(op)
    if pg is None:
        return None
    _reduce_op.check(kind, tensor, "all_reduce")
    row = _buffers.flat(tensor)
    if deterministic:
        call = _Call(pg, f"all_reduce {kind.name}", [tensor])
        steps = _all_reduced(call, kind, [row], call.size, row)
    else:
        call = _Call(pg, f"all_reduce {kind.name} around a ring", [tensor])
        steps = _around(call, kind, row)
    return call.run(_then_written(steps, [tensor]), async_op, [tensor])


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
    call = _Call(pg, f"sum of {leaves} {what}", [out])
    steps = _all_reduced(call, RedOpType.SUM, partials, leaves, out)
    return call.run(_then_written(steps, [out]), async_op, [out])


def all_reduce_coalesced(
    tensors: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """Reduces each of several tensors as `all_reduce`; the work's result is all of them."""
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    _check_list(tensors, "tensors")
    _buffers.check(tensors, "all_reduce_coalesced")
    _same_type(*tensors)
    pg, kind = find_for("all_reduce_coalesced", group), _reduce_op.kind_of(op)
    if pg is None:
        return None
    for each in tensors:
        _reduce_op.check(kind, each, "all_reduce")
    call = _Call(pg, f"all_reduce_coalesced {kind.name}", tensors)
    rows = [_buffers.flat(each) for each in tensors]

    def steps() -> Steps[None]:
        for row in rows:
            yield from _all_reduced(call, kind, [row], call.size, row)

    return call.run(_then_written(steps(), tensors), async_op, tensors)


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
    root = _member(pg, dst, group_dst)
    _reduce_op.check(kind, tensor, "reduce")
    call = _Call(pg, f"reduce {kind.name} to rank {pg._ranks[root]}", [tensor])
    row = _buffers.flat(tensor)
    rows = [[row] if peer in (root, call.rank) else [] for peer in range(call.size)]
    if call.rank == root:
        steps = _then_written(_reduced(call, kind, rows, call.size, row), [tensor])
    else:
        steps = _reduced(call, kind, rows, call.size, None)
    return call.run(steps, async_op, [tensor])


def _scattered(
    pg: ProcessGroup, name: str, op: Any, output: Tensor, inputs: Sequence[Tensor], async_op: bool
) -> Work | None:
    """Reduces the i-th input of all ranks to the output of rank i."""
    kind = _reduce_op.kind_of(op)
    _reduce_op.check(kind, output, name)
    call = _Call(pg, f"{name} {kind.name}", [output])
    row = _buffers.flat(output)
    rows = [[_buffers.flat(each)] for each in inputs]
    with pygrad.no_grad():
        row.copy_(rows[call.rank][0])
    rows[call.rank] = [row]
    steps = _reduced(call, kind, rows, call.size, row)
    return call.run(_then_written(steps, [output]), async_op, [output])


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
    _check_list(input_list, "input_list")
    _buffers.check(input_list, "reduce_scatter", "input_list")
    _same_type(output, *input_list)
    pg = find_for("reduce_scatter", group)
    if pg is None:
        return None
    _check_count(input_list, pg, "input_list")
    _check_like(input_list[pg.rank()], output)
    return _scattered(pg, "reduce_scatter", op, output, input_list, async_op)


def _check_count(tensors: Sequence[Tensor], group: ProcessGroup, parameter: str) -> None:
    if len(tensors) != group.size():
        raise ValueError(
            f"{parameter} has {len(tensors)} tensors, one for each of {group.size()} ranks is "
            "expected"
        )


def _check_like(one: Tensor, other: Tensor) -> None:
    if one.numel() != other.numel():
        raise ValueError(f"shapes {list(one.shape)} and {list(other.shape)} differ in size")


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
    _same_type(output, input)
    pg = find_for("reduce_scatter_tensor", group)
    if pg is None:
        return None
    parts = _divided(input, output, pg)
    return _scattered(pg, "reduce_scatter_tensor", op, output, parts, async_op)


reduce_scatter_tensor = reduce_scatter_single


def _divided(whole: Tensor, part: Tensor, group: ProcessGroup) -> list[Tensor]:
    """One tensor as many of the size of another, in order."""
    if whole.numel() != part.numel() * group.size():
        raise ValueError(
            f"a tensor of {whole.numel()} elements is not {group.size()} of {part.numel()}"
        )
    row = _buffers.flat(whole)
    size = part.numel()
    return [row[i * size : (i + 1) * size] for i in range(group.size())]


# ------------------------------------------------------------------ from one, and to one


def broadcast(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_src: int | None = None,
) -> Work | None:
    """Gives all ranks one rank's tensor, in place.

    Args:
        tensor: what is sent on that rank, and written over on the others.
        src: its rank in the world; or `group_src`, its rank in the group.
        group, async_op: see `all_reduce`, also for what is raised.
    """
    _buffers.check([tensor], "broadcast")
    pg = find_for("broadcast", group)
    if pg is None:
        return None
    root = _member(pg, src, group_src)
    call = _Call(pg, f"broadcast from rank {pg._ranks[root]}", [tensor])
    row = _buffers.flat(tensor)

    def steps() -> Steps[None]:
        if call.rank == root:
            yield Waiting([call.send(peer, row) for peer in call.others()])
            yield Waiting([call.receive(peer) for peer in call.others()])  # another root shows
        else:
            yield Waiting([call.receive(root, row)])
            _buffers.written([tensor])
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
    """Gives each rank one of one rank's tensors.

    Args:
        tensor: receives it.
        scatter_list: on that rank: for each rank one. None on the others.
        src: its rank in the world, 0 if neither is given; or `group_src`, its rank in the group.
        group, async_op: see `all_reduce`, also for what is raised.
    """
    _buffers.check([tensor], "scatter")
    given = list(scatter_list) if scatter_list else []
    _check_list(given, "scatter_list")
    _same_type(tensor, *given)
    pg = find_for("scatter", group)
    if pg is None:
        return None
    root = _member(pg, 0 if src is None and group_src is None else src, group_src)
    if pg.rank() == root:
        if scatter_list is None:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        _buffers.check(given, "scatter", "scatter_list")
        _check_count(given, pg, "scatter_list")
        for each in given:
            _check_like(each, tensor)
    elif given:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    call = _Call(pg, f"scatter from rank {pg._ranks[root]}", [tensor])
    row, rows = _buffers.flat(tensor), [_buffers.flat(each) for each in given]

    def steps() -> Steps[None]:
        if call.rank == root:
            yield Waiting([call.send(peer, rows[peer]) for peer in call.others()])
            with pygrad.no_grad():
                row.copy_(rows[root])
        else:
            yield Waiting([call.receive(root, row)])
        _buffers.written([tensor])

    return call.run(steps(), async_op, [tensor])


def gather(
    tensor: Tensor,
    gather_list: Sequence[Tensor] | None = None,
    dst: int | None = None,
    group: Any = None,
    async_op: bool = False,
    group_dst: int | None = None,
) -> Work | None:
    """Gives one rank the tensors of all.

    Args:
        tensor: what is sent.
        gather_list: on that rank: for each rank a tensor that receives it. None on the others.
        dst: its rank in the world, 0 if neither is given; or `group_dst`, its rank in the group.
        group, async_op: see `all_reduce`, also for what is raised.
    """
    _buffers.check([tensor], "gather")
    given = list(gather_list) if gather_list else []
    _check_list(given, "gather_list")
    _same_type(tensor, *given)
    pg = find_for("gather", group)
    if pg is None:
        return None
    root = _member(pg, 0 if dst is None and group_dst is None else dst, group_dst)
    if pg.rank() == root:
        if not given:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        _buffers.check(given, "gather", "gather_list")
        _check_count(given, pg, "gather_list")
        for each in given:
            _check_like(each, tensor)
    elif given:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    call = _Call(pg, f"gather to rank {pg._ranks[root]}", [tensor])
    row, rows = _buffers.flat(tensor), [_buffers.flat(each) for each in given]

    def steps() -> Steps[None]:
        if call.rank == root:
            yield Waiting([call.receive(peer, rows[peer]) for peer in call.others()])
            with pygrad.no_grad():
                rows[root].copy_(row)
            _buffers.written(given)
        else:
            yield Waiting([call.send(root, row)])

    return call.run(steps(), async_op, given)


# ------------------------------------------------------------------ from all to all


def _exchange(
    call: _Call, sent: Sequence[Tensor], received: Sequence[Tensor], written: Sequence[Tensor]
) -> Steps[None]:
    """Sends each rank a row, and receives one of each."""
    with pygrad.no_grad():
        received[call.rank].copy_(sent[call.rank])
    waits = []
    for peer in call.others():
        waits += [call.receive(peer, received[peer]), call.send(peer, sent[peer])]
    yield Waiting(waits)
    _buffers.written(written)


def all_gather(
    tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gives all ranks the tensors of all.

    Args:
        tensor_list: for each rank a tensor that receives its own.
        tensor: what is sent.
        group, async_op: see `all_reduce`, also for what is raised.
    """
    _check_list(tensor_list, "tensor_list")
    _buffers.check([tensor], "all_gather")
    _buffers.check(tensor_list, "all_gather", "tensor_list")
    _same_type(tensor, *tensor_list)
    pg = find_for("all_gather", group)
    if pg is None:
        return None
    _check_count(tensor_list, pg, "tensor_list")
    for each in tensor_list:
        _check_like(each, tensor)
    call = _Call(pg, "all_gather", [tensor])
    rows = [_buffers.flat(each) for each in tensor_list]
    steps = _exchange(call, [_buffers.flat(tensor)] * call.size, rows, tensor_list)
    return call.run(steps, async_op, tensor_list)


def all_gather_single(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_gather` to one tensor.

    Args:
        output_tensor: as many inputs, joined or stacked along the first dimension.
        input_tensor: what is sent.
        group, async_op: see `all_reduce`.
    """
    _buffers.check([input_tensor], "all_gather_into_tensor", "input_tensor")
    _buffers.check([output_tensor], "all_gather_into_tensor", "output_tensor")
    _same_type(output_tensor, input_tensor)
    pg = find_for("all_gather_into_tensor", group)
    if pg is None:
        return None
    call = _Call(pg, "all_gather_into_tensor", [input_tensor])
    rows = _divided(output_tensor, input_tensor, pg)
    steps = _exchange(call, [_buffers.flat(input_tensor)] * call.size, rows, [output_tensor])
    return call.run(steps, async_op, [output_tensor])


all_gather_into_tensor = all_gather_single


def all_gather_coalesced(
    output_tensor_lists: Sequence[Sequence[Tensor]],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Any:
    """`all_gather` of several tensors: the i-th list receives what each rank has.

    Args:
        output_tensor_lists: for each rank a list of tensors, like the list that is sent.
        input_tensor_list: what is sent.
        group, async_op: see `all_reduce`.
    """
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    _check_list(input_tensor_list, "input_tensor_list")
    pg = find_for("all_gather_coalesced", group)
    if pg is None:
        return None
    for each in output_tensor_lists:
        _check_list(each, "output_tensor_lists")
    works = [
        all_gather([row[i] for row in output_tensor_lists], tensor, group, True)
        for i, tensor in enumerate(input_tensor_list)
    ]
    if async_op:
        return pygrad.futures.collect_all([work.get_future() for work in works if work])
    for work in works:
        assert work is not None
        work.wait()
    return None


def all_to_all(
    output_tensor_list: Sequence[Tensor],
    input_tensor_list: Sequence[Tensor],
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Gives each rank one tensor of each rank; their sizes may differ.

    Args:
        output_tensor_list: for each rank a tensor that receives what it sends here.
        input_tensor_list: for each rank what it is sent.
        group, async_op: see `all_reduce`, also for what is raised.
    """
    _check_list(output_tensor_list, "output_tensor_list")
    _check_list(input_tensor_list, "input_tensor_list")
    _buffers.check(output_tensor_list, "all_to_all", "output_tensor_list")
    _buffers.check(input_tensor_list, "all_to_all", "input_tensor_list")
    _same_type(*output_tensor_list, *input_tensor_list)
    pg = find_for("all_to_all", group)
    if pg is None:
        return None
    _check_count(output_tensor_list, pg, "output_tensor_list")
    _check_count(input_tensor_list, pg, "input_tensor_list")
    call = _Call(pg, f"all_to_all of {input_tensor_list[0].dtype}")
    sent = [_buffers.flat(each) for each in input_tensor_list]
    received = [_buffers.flat(each) for each in output_tensor_list]
    _check_like(sent[call.rank], received[call.rank])
    steps = _exchange(call, sent, received, output_tensor_list)
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
        output: receives them, in order of ranks.
        input: what is sent, in order of ranks.
        output_split_sizes: how long the part of each rank is; None: all alike.
        input_split_sizes: the same for the input.
        group, async_op: see `all_reduce`, also for what is raised.
    """
    _buffers.check([output], "all_to_all_single", "output")
    _buffers.check([input], "all_to_all_single", "input")
    _same_type(output, input)
    pg = find_for("all_to_all_single", group)
    if pg is None:
        return None
    received = _split(output, output_split_sizes, pg)
    sent = _split(input, input_split_sizes, pg)
    call = _Call(pg, f"all_to_all_single of {input.dtype}")
    _check_like(sent[call.rank], received[call.rank])
    return call.run(_exchange(call, sent, received, [output]), async_op, [output])


def _split(tensor: Tensor, sizes: Sequence[int] | None, group: ProcessGroup) -> list[Tensor]:
    """The parts of a tensor along its first dimension, as rows."""
    length = tensor.shape[0]
    if not sizes:
        if length % group.size():
            raise ValueError("Tensor's dim 0 does not divide equally across group size")
        sizes = [length // group.size()] * group.size()
    if len(sizes) != group.size():
        raise ValueError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise ValueError("Split sizes doesn't match total dim 0 size")
    return [_buffers.flat(part) for part in tensor.detach().split(list(sizes))]


def barrier(
    group: Any = None,
    async_op: bool = False,
    device_ids: Any = None,
    timeout: timedelta | None = None,
) -> Work | None:
    """Waits until all ranks have come.

    Args:
        group, async_op: see `all_reduce`, also for what is raised.
        device_ids: not supported.
        timeout: no longer than this, instead of the group's.
    """
    if device_ids is not None:
        raise NotImplementedError("barrier: device_ids is not supported: there are no devices")
    pg = find_for("barrier", group)
    if pg is None:
        return None
    call = _Call(pg, "barrier")

    def steps() -> Steps[None]:
        yield Waiting(
            each for peer in call.others() for each in (call.send(peer), call.receive(peer))
        )

    work = call.run(steps(), True)
    assert work is not None
    if timeout is not None:
        work._timeout = timeout.total_seconds()
    if async_op:
        return work
    work.wait()
    return None


def monitored_barrier(
    group: Any = None, timeout: timedelta | None = None, wait_all_ranks: bool = False
) -> None:
    """`barrier`: its error names the ranks that did not come.

    Args:
        group: over which ranks.
        timeout: no longer than this, instead of the group's.
        wait_all_ranks: of no effect: all that are missing are named.
    """
    barrier(group, timeout=timeout)
