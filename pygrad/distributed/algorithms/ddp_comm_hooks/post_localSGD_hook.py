"""A hook of DistributedDataParallel that averages gradients over all ranks at first, and later over
small groups, while a model averager averages over all ranks.
"""

from __future__ import annotations

import logging
from typing import Any

from ...._tensor.tensor import Tensor
from ....futures import Future
from ..._grad_bucket import GradBucket
from ..._group import new_subgroups
from . import debugging_hooks
from . import default_hooks as default

__all__ = ["PostLocalSGDState", "post_localSGD_hook"]

logger = logging.getLogger(__name__)


class PostLocalSGDState:
    """The state of `post_localSGD_hook`.

    Args:
        process_group: all ranks; the default group if it is None.
        subgroup: the ranks of later averages; `new_subgroups` makes them if it is None.
        start_localSGD_iter: the number of first steps, which average over all ranks.
        post_local_gradient_allreduce: whether later steps average over the subgroup, or not at all.
    """

    __slots__ = [
        "iter",
        "post_local_gradient_allreduce",
        "process_group",
        "start_localSGD_iter",
        "subgroup",
    ]

    def __init__(
        self,
        process_group: Any,
        subgroup: Any,
        start_localSGD_iter: int,
        post_local_gradient_allreduce: bool = True,
    ) -> None:
        logger.info("Local SGD will be started after %s iterations", start_localSGD_iter)
        self.process_group, self.subgroup = process_group, subgroup
        self.start_localSGD_iter = start_localSGD_iter
        self.post_local_gradient_allreduce = post_local_gradient_allreduce
        self.iter = 0

    def maybe_increase_iter(self, bucket: GradBucket) -> None:
        """Counts steps by their last bucket."""
        if bucket.is_last():
            self.iter += 1
        if self.iter == self.start_localSGD_iter:
            logger.info("Start to apply local SGD after %s iterations.", self.iter)


def post_localSGD_hook(state: PostLocalSGDState, bucket: GradBucket) -> Future[Tensor]:
    """Averages gradients over all ranks in the first steps, then over the subgroup or not at all.

    Args:
        state: the state of the hook.
        bucket: the gradients.
    """
    if state.iter < state.start_localSGD_iter:
        state.maybe_increase_iter(bucket)
        return default._allreduce_fut(state.process_group, bucket.buffer())
    if not state.post_local_gradient_allreduce:
        return debugging_hooks.noop_hook(None, bucket)
    if state.subgroup is None:
        state.subgroup, _ = new_subgroups()
    return default._allreduce_fut(state.subgroup, bucket.buffer())
