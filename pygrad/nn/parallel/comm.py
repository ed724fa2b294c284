"""Communication between GPUs: all functions raise, since there are none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._tensor.tensor import Tensor

__all__ = [
    "broadcast",
    "broadcast_coalesced",
    "gather",
    "reduce_add",
    "reduce_add_coalesced",
    "scatter",
]


def _check_devices(devices: Sequence[Any] | None) -> None:
    for each in devices or ():
        name = each if isinstance(each, str) else getattr(each, "type", "")
        if name == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {each}")
    raise RuntimeError("Cannot access accelerator device when none is available.")


def scatter(
    tensor: Tensor,
    devices: Sequence[Any] | None = None,
    chunk_sizes: Any = None,
    dim: int = 0,
    streams: Any = None,
    *,
    out: Any = None,
) -> Any:
    """Would split a tensor over GPUs.

    Raises:
        ValueError: a device is the CPU.
        RuntimeError: the device does not exist.
    """
    _check_devices(devices)


def broadcast(tensor: Tensor, devices: Any = None, *, out: Any = None) -> Any:
    """Would copy a tensor to GPUs; raises as `scatter` does."""
    _check_devices(devices)


def broadcast_coalesced(
    tensors: Sequence[Tensor], devices: Sequence[Any], buffer_size: int = 10485760
) -> Any:
    """Would copy tensors to GPUs; raises as `scatter` does."""
    _check_devices(devices)


def reduce_add(inputs: Sequence[Tensor], destination: Any = None) -> Any:
    """Would add tensors of several GPUs.

    Raises:
        AssertionError: always, since the tensors are on the CPU.
    """
    raise AssertionError("reduce_add expects all inputs to be on GPUs, but input 0 is on CPU")


def reduce_add_coalesced(
    inputs: Sequence[Sequence[Tensor]], destination: Any = None, buffer_size: int = 10485760
) -> Any:
    """`reduce_add` for lists of tensors: always raises."""
    return reduce_add([each[0] for each in inputs], destination)


def gather(
    tensors: Sequence[Tensor], dim: int = 0, destination: Any = None, *, out: Any = None
) -> Any:
    """Would join tensors of several GPUs.

    Raises:
        AssertionError: always, since the tensors are on the CPU.
    """
    raise AssertionError("Gather function not implemented for CPU tensors")
