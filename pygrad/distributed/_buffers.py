"""The bytes of tensors: messages are sent from linear memory and received into it.

A contiguous tensor is sent and received in place. Any other tensor is sent from a copy, and
received into one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .. import autograd
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor


def check(tensors: Iterable[Any], name: str, parameter: str = "tensor") -> None:
    """Raises unless the argument is a dense tensor.

    Raises:
        TypeError: it is not a tensor.
        RuntimeError: it has no memory, or its elements are not in linear memory.
    """
    for each in tensors:
        if not isinstance(each, Tensor):
            raise TypeError(
                f"Invalid function argument. Expected parameter `{parameter}` of type "
                f"torch.Tensor\n             but got {type(each)} instead."
            )
        if each.is_meta:
            raise RuntimeError(f"{name}: a tensor of the device meta has no elements")
        if each.layout is not pygrad.strided:
            raise RuntimeError(f"{name}: expected a dense tensor, got layout {each.layout}")


def flat(tensor: Tensor) -> Tensor:
    """The elements of a tensor in one dimension, detached: the tensor's own memory or a copy."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)


class Target:
    """The destination of a received tensor.

    Args:
        tensor: the tensor to fill.

    Raises:
        RuntimeError: it cannot be written, because elements share a place.

    Attributes:
        row: its elements in one dimension; the caller fills it and then calls `finish_write`.
    """

    __slots__ = ("_copied", "row", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._copied = not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg()
        self.row = flat(tensor)
        if self._copied:
            self._write()  # fail now rather than after all ranks have sent

    def _write(self) -> None:
        with pygrad.no_grad():
            self.tensor.detach().copy_(self.row.view(self.tensor.shape))

    def finish_write(self) -> None:
        """Copies the row into the tensor if needed, and marks it as written in place."""
        if self._copied:
            self._write()
        else:
            autograd.graph.increment_version(self.tensor)


def targets(tensors: Iterable[Tensor]) -> list[Target]:
    """The `Target` of each tensor."""
    return [Target(each) for each in tensors]


def bytes_of(row: Tensor) -> Any:
    """The bytes of a tensor of one dimension, as an array over the same memory; None if empty."""
    if row.numel() == 0:
        return None
    return row.view(pygrad.uint8).numpy()


def finish_writes(targets: Iterable[Target]) -> None:
    """Calls `Target.finish_write` of each."""
    for each in targets:
        each.finish_write()
