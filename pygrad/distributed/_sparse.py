"""The sum of sparse tensors over ranks: each rank receives the tensors of all, and adds them in the
order of the tree.
"""

from __future__ import annotations

import math
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import _buffers, _reduce_op, _tree
from ._call import Call
from ._exchanges import exchange
from ._group import find_for
from ._progress import Steps, Work
from ._reduce_op import RedOpType


def all_reduce(tensor: Tensor, op: Any, group: Any, async_op: bool) -> Work | None:
    """`all_reduce` of a sparse tensor.

    Raises:
        RuntimeError: another op than SUM.
    """
    pg = find_for("all_reduce", group)
    if _reduce_op.kind_of(op) is not RedOpType.SUM:
        raise RuntimeError(
            "unsupported reduction operation (allreduce of sparse tensors only works with "
            "ReduceOp.SUM)"
        )
    if pg is None:
        return None
    call = Call(pg, "all_reduce SUM of sparse tensors", [tensor], "sparse_all_reduce")
    return call.run(_sum_sparse(call, tensor), async_op, [tensor])


def _sum_sparse(call: Call, tensor: Tensor) -> Steps[None]:
    with pygrad.no_grad():
        mine = tensor.detach().coalesce()
        indices, values = mine.indices().contiguous(), mine.values().contiguous()
    counts = yield from _gather_rows(call, pygrad.tensor([values.shape[0]]), [1] * call.size)
    sizes = [int(count) for count in counts]
    width = indices.shape[0]
    places = yield from _gather_rows(call, indices, [width * size for size in sizes])
    each = math.prod(values.shape[1:])
    numbers = yield from _gather_rows(call, values, [each * size for size in sizes])
    parts = {}
    for rank, size in enumerate(sizes):
        (node,) = _tree.cover(_tree.block(rank, call.size, call.size), call.size)
        parts[node] = pygrad.sparse_coo_tensor(
            places[rank].view(width, size),
            numbers[rank].view(size, *values.shape[1:]),
            tensor.shape,
            is_coalesced=True,
        )
    with pygrad.no_grad():
        total = _tree.combine(parts, call.size, lambda left, right: left + right)
        tensor.copy_(total.coalesce())


def _gather_rows(call: Call, tensor: Tensor, sizes: list[int]) -> Steps[list[Tensor]]:
    """Collects the elements of each rank's tensor; `sizes` are the numbers of elements."""
    rows = [tensor.new_empty(size) for size in sizes]
    yield from exchange(call, [_buffers.flat(tensor)] * call.size, rows)
    return rows
