"""Hooks of DistributedDataParallel that average gradients, unchanged or in fewer bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._tensor import namespace as pygrad
from ...._tensor.tensor import Tensor
from ....futures import Future
from ... import _reductions
from ..._grad_bucket import GradBucket
from ..._group import get_world_size

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _all_reduce_future(tensor: Tensor, group: Any) -> Future[Tensor]:
    """A future of the sum over ranks."""
    work = _reductions.all_reduce(tensor, group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def _allreduce_fut(process_group: Any, tensor: Tensor) -> Future[Tensor]:
    """A future of the mean over ranks."""
    tensor.div_(get_world_size(process_group))
    return _all_reduce_future(tensor, process_group)


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Averages gradients as DistributedDataParallel does without a hook.

    Args:
        process_group: the ranks; the default group if it is None.
        bucket: the gradients.
    """
    return _allreduce_fut(process_group, bucket.buffer())


def _all_reduce_mean_as(dtype: Any, group: Any, bucket: GradBucket) -> Future[Tensor]:
    """A future of the mean over ranks, computed in another dtype."""
    buffer = bucket.buffer()
    short = buffer.to(dtype).div_(get_world_size(group))
    return _all_reduce_future(short, group).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Averages gradients as float16.

    Args:
        process_group: the ranks; the default group if it is None.
        bucket: the gradients.
    """
    return _all_reduce_mean_as(pygrad.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Averages gradients as bfloat16.

    Args:
        process_group: the ranks; the default group if it is None.
        bucket: the gradients.
    """
    return _all_reduce_mean_as(pygrad.bfloat16, process_group, bucket)


def _run_hook_as(dtype: Any, hook: Hook, state: Any, bucket: GradBucket) -> Future[Tensor]:
    buffer = bucket.buffer()
    bucket.set_buffer(buffer.to(dtype))
    return hook(state, bucket).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Wraps a hook: it gets gradients of float16; the result has the original dtype."""

    def fp16_compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        return _run_hook_as(pygrad.float16, hook, hook_state, bucket)

    return fp16_compress_wrapper_hook


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Wraps a hook: it gets gradients of bfloat16; the result has the original dtype."""

    def bf16_compress_wrapper_hook(hook_state: Any, bucket: GradBucket) -> Future[Tensor]:
        return _run_hook_as(pygrad.bfloat16, hook, hook_state, bucket)

    return bf16_compress_wrapper_hook
