"""Hooks of DistributedDataParallel that send gradients as bytes, with a scale and a zero point for
each part.
"""

from __future__ import annotations

from typing import Any

from .... import nn
from ...._tensor import namespace as pygrad
from ...._tensor.tensor import Tensor
from ....futures import Future
from ... import _exchanges
from ..._grad_bucket import GradBucket
from ..._group import get_world_size
from .debugging_hooks import _completed_future

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]


def _parameters(rows: Tensor) -> Tensor:
    """The scale and the zero point of each row, such that a byte covers its minimum, its maximum
    and zero.
    """
    least = rows.amin(dim=1).clamp(max=0)
    greatest = rows.amax(dim=1).clamp(min=0)
    scale = ((greatest - least) / 255).clamp(min=pygrad.finfo(pygrad.float32).eps)
    zero = (-pygrad.round(least / scale)).clamp(0, 255)
    return pygrad.stack((scale, zero))


def _all_gather(mine: Tensor, group: Any) -> Tensor:
    found = pygrad.empty((get_world_size(group), *mine.shape), dtype=mine.dtype)
    _exchanges.all_gather_into_tensor(found, mine, group=group)
    return found


def _average(rows: Tensor, group: Any) -> Tensor:
    """The mean over ranks of rows that are sent as bytes. Each message is synchronous, so that all
    ranks send theirs in one order.
    """
    parameters = _parameters(rows)
    scale, zero = parameters[0, :, None], parameters[1, :, None]
    coded = (pygrad.round(rows / scale) + zero).clamp(0, 255).to(pygrad.uint8)
    total = pygrad.zeros_like(rows)
    everybody = zip(_all_gather(parameters, group), _all_gather(coded, group), strict=True)
    for (scales, zeros), codes in everybody:
        total += scales[:, None] * (codes.to(rows.dtype) - zeros[:, None])
    return total / get_world_size(group)


def quantization_pertensor_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Averages gradients that are sent as bytes, with one scale for a bucket.

    Args:
        process_group: the ranks; the default group if it is None.
        bucket: the gradients.
    """
    return _completed_future(_average(bucket.buffer()[None], process_group)[0])


def quantization_perchannel_hook(
    process_group: Any, bucket: GradBucket, bucket_size: int = 512
) -> Future[Tensor]:
    """Averages gradients that are sent as bytes, with a scale for every `bucket_size` elements.

    Args:
        process_group: the ranks; the default group if it is None.
        bucket: the gradients.
        bucket_size: the number of elements with one scale.
    """
    buffer = bucket.buffer()
    size = buffer.numel()
    padded = nn.functional.pad(buffer, (0, -size % bucket_size))
    return _completed_future(_average(padded.view(-1, bucket_size), process_group).view(-1)[:size])
