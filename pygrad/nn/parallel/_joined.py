"""The collectives in which a rank without further batches takes part."""

from __future__ import annotations

from typing import Any

from ... import distributed as dist
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...distributed.algorithms.join import JoinHook


def greatest(mine: int, group: Any) -> int:
    """The maximum of a number over the ranks."""
    number = pygrad.tensor([mine])
    dist.all_reduce(number, dist.ReduceOp.MAX, group=group)
    return int(number.item())


class _DDPJoinHook(JoinHook):
    """Runs the collectives of forward and backward with zeros. At the end it takes over the model
    of a rank that ended last.

    Args:
        ddp: a DistributedDataParallel.
        divide_by_initial_world_size: whether gradients are divided by the number of all ranks, or
            by the number of ranks with batches.
    """

    def __init__(self, ddp: Any, divide_by_initial_world_size: bool) -> None:
        self.ddp = ddp
        self._gradients: list[tuple[Tensor, Tensor | None]] = []
        ddp._divide_by_initial_world_size = divide_by_initial_world_size

    def main_hook(self) -> None:
        """Takes part in one iteration of the others."""
        averaged = self.ddp._is_averaged_anywhere(False)
        if self.ddp.will_sync_module_buffers():
            self.ddp._sync_buffers(is_joined=True)
        self.ddp.require_forward_param_sync = averaged
        if averaged:
            self._set_gradients_aside()
            self.ddp.reducer.stand_in()

    def _set_gradients_aside(self) -> None:
        """At the first call, sets this rank's gradients aside, so that nothing is written to
        them.
        """
        if self._gradients or self.ddp.gradient_as_bucket_view:
            return
        for parameter in self.ddp.reducer.parameters:
            self._gradients.append((parameter, parameter.grad))
            parameter.grad = None

    def post_hook(self, is_last_joiner: bool) -> None:
        """Copies the parameters (and the buffers if they are synchronized) of a rank that ended
        last to all ranks. Restores gradients, unless they are views of the buckets.
        """
        ddp = self.ddp
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        rank = dist.get_rank(ddp.process_group)
        ddp._authoritative_rank = greatest(rank if is_last_joiner else -1, ddp.process_group)
        ddp._broadcast_states(with_buffers=ddp.forward_sync_buffers, source=ddp._authoritative_rank)
