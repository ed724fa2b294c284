"""The collectives as methods of a group, under the names that hooks of gradients use."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from .._ground.package import submodule
from .._tensor.tensor import Tensor

if TYPE_CHECKING:
    from ._progress import Work

Tensors = Tensor | Sequence[Tensor]


def _one(given: Any) -> Any:
    """The tensor, or the only element of a list.

    Raises:
        ValueError: an empty list, or one of several tensors.
    """
    if isinstance(given, Tensor):
        return given
    if len(given) != 1:
        raise ValueError(f"expected one tensor, or a list of one, got {len(given)}")
    return given[0]


def _refuse(name: str, timeout: timedelta | None) -> None:
    if timeout is not None:
        raise NotImplementedError(
            f"ProcessGroup.{name}: timeout is not supported; give it to Work.wait"
        )


def _op_of(op: Any) -> Any:
    return submodule("distributed").ReduceOp.SUM if op is None else op


def _require_work(work: Work | None) -> Work:
    assert work is not None  # None is for ranks outside of the group, which have no group
    return work


class Calls:
    """Each method starts a collective of the group and returns its `Work`. Ranks are ranks in the
    group.

    A tensor may replace PyTorch's list of one tensor. `op` is a `ReduceOp`, SUM if it is None.

    Raises:
        NotImplementedError: a timeout of the call; use that of `Work.wait`.
        The errors of the function of the same purpose: `all_reduce` and so on.
    """

    def allreduce(self, tensors: Tensors, op: Any = None, timeout: timedelta | None = None) -> Work:
        """`all_reduce`."""
        _refuse("allreduce", timeout)
        return _require_work(
            submodule("distributed").all_reduce(_one(tensors), _op_of(op), self, True)
        )

    def allreduce_coalesced(self, tensors: Sequence[Tensor]) -> Work:
        """`all_reduce_coalesced`, a sum."""
        op = _op_of(None)
        return _require_work(
            submodule("distributed").all_reduce_coalesced(list(tensors), op, self, True)
        )

    def broadcast(self, tensors: Tensors, root: int = 0, timeout: timedelta | None = None) -> Work:
        """`broadcast` of the root's tensor."""
        _refuse("broadcast", timeout)
        tensor = _one(tensors)
        return _require_work(
            submodule("distributed").broadcast(tensor, group=self, async_op=True, group_src=root)
        )

    def reduce(
        self,
        tensors: Tensors,
        root: int = 0,
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """`reduce` to the root."""
        _refuse("reduce", timeout)
        tensor, kind = _one(tensors), _op_of(op)
        return _require_work(
            submodule("distributed").reduce(
                tensor, op=kind, group=self, async_op=True, group_dst=root
            )
        )

    def allgather(
        self,
        output_tensors: Sequence[Any],
        input_tensors: Tensors,
        timeout: timedelta | None = None,
    ) -> Work:
        """`all_gather`."""
        _refuse("allgather", timeout)
        outputs = output_tensors if isinstance(input_tensors, Tensor) else _one(output_tensors)
        tensor = _one(input_tensors)
        return _require_work(submodule("distributed").all_gather(outputs, tensor, self, True))

    def _allgather_base(self, output: Tensor, input: Tensor) -> Work:
        return _require_work(
            submodule("distributed").all_gather_into_tensor(output, input, self, True)
        )

    def gather(
        self,
        output_tensors: Sequence[Any],
        input_tensors: Tensors,
        root: int = 0,
        timeout: timedelta | None = None,
    ) -> Work:
        """`gather` at the root."""
        _refuse("gather", timeout)
        nested = bool(output_tensors) and not isinstance(output_tensors[0], Tensor)
        outputs = _one(output_tensors) if nested else output_tensors
        tensor = _one(input_tensors)
        return _require_work(
            submodule("distributed").gather(
                tensor, outputs or None, group=self, async_op=True, group_dst=root
            )
        )

    def scatter(
        self,
        output_tensors: Tensors,
        input_tensors: Sequence[Any],
        root: int = 0,
        timeout: timedelta | None = None,
    ) -> Work:
        """`scatter` of the root's tensors."""
        _refuse("scatter", timeout)
        nested = bool(input_tensors) and not isinstance(input_tensors[0], Tensor)
        inputs = _one(input_tensors) if nested else input_tensors
        tensor = _one(output_tensors)
        return _require_work(
            submodule("distributed").scatter(
                tensor, inputs or None, group=self, async_op=True, group_src=root
            )
        )

    def reduce_scatter(
        self,
        output_tensors: Tensors,
        input_tensors: Sequence[Any],
        op: Any = None,
        timeout: timedelta | None = None,
    ) -> Work:
        """`reduce_scatter`."""
        _refuse("reduce_scatter", timeout)
        inputs = input_tensors if isinstance(output_tensors, Tensor) else _one(input_tensors)
        tensor, kind = _one(output_tensors), _op_of(op)
        return _require_work(
            submodule("distributed").reduce_scatter(tensor, inputs, kind, self, True)
        )

    def _reduce_scatter_base(self, output: Tensor, input: Tensor) -> Work:
        op = _op_of(None)
        return _require_work(
            submodule("distributed").reduce_scatter_tensor(output, input, op, self, True)
        )

    def alltoall(self, output_tensors: Sequence[Tensor], input_tensors: Sequence[Tensor]) -> Work:
        """`all_to_all`."""
        outputs, inputs = list(output_tensors), list(input_tensors)
        return _require_work(submodule("distributed").all_to_all(outputs, inputs, self, True))

    def alltoall_base(
        self,
        output: Tensor,
        input: Tensor,
        output_split_sizes: Sequence[int],
        input_split_sizes: Sequence[int],
        timeout: timedelta | None = None,
    ) -> Work:
        """`all_to_all_single`; without sizes the parts have equal length."""
        _refuse("alltoall_base", timeout)
        return _require_work(
            submodule("distributed").all_to_all_single(
                output, input, output_split_sizes, input_split_sizes, self, True
            )
        )

    def send(self, tensors: Tensors, dstRank: int, tag: int) -> Work:
        """`isend`."""
        tensor = _one(tensors)
        return _require_work(
            submodule("distributed").isend(tensor, group=self, tag=tag, group_dst=dstRank)
        )

    def recv(self, tensors: Tensors, srcRank: int, tag: int) -> Work:
        """`irecv`."""
        tensor = _one(tensors)
        return _require_work(
            submodule("distributed").irecv(tensor, group=self, tag=tag, group_src=srcRank)
        )

    def recv_anysource(self, tensors: Tensors, tag: int) -> Work:
        """`irecv` from the first rank that sends."""
        return _require_work(submodule("distributed").irecv(_one(tensors), group=self, tag=tag))

    def barrier(self, timeout: timedelta | None = None) -> Work:
        """`barrier`."""
        return _require_work(submodule("distributed").barrier(self, True, timeout=timeout))

    def monitored_barrier(
        self, timeout: timedelta | None = None, wait_all_ranks: bool = False
    ) -> None:
        """`monitored_barrier`."""
        submodule("distributed").monitored_barrier(self, timeout, wait_all_ranks)
