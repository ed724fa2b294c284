"""A hook of DistributedDataParallel that does nothing."""

from __future__ import annotations

from typing import Any

from ...._tensor.tensor import Tensor
from ....futures import Future
from ..._grad_bucket import GradBucket

__all__ = ["noop_hook"]


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """Leaves each rank its own gradients, to measure the cost of communication."""
    return _completed_future(bucket.buffer())


def _completed_future(result: Tensor) -> Future[Tensor]:
    future: Future[Tensor] = Future()
    future.set_result(result)
    return future
