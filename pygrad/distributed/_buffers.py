"""The bytes of tensors: what is sent is read from linear memory, what is received is written there.

A tensor whose elements follow each other is sent and received in place. Any other tensor is sent
from a copy, and received into one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package import pygrad
from .._tensor import Tensor


def check(tensors: Iterable[Any], name: str, parameter: str = "tensor") -> None:
    """Raises if one is not a dense tensor.

    Raises:
        TypeError: it is no tensor.
        RuntimeError: it has no memory, or its elements are elsewhere.
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
    """A tensor's elements in a row, out of any graph, to be read: its own memory or a copy."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous().view(-1)


class Target:
    """A tensor that is received.

    Args:
        tensor: which.

    Raises:
        RuntimeError: it cannot be written: elements of it share a place.

    Attributes:
        row: its elements in a row, to be written, and `written` called after that.
    """

    __slots__ = ("_copied", "row", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self._copied = not tensor.is_contiguous() or tensor.is_conj() or tensor.is_neg()
        self.row = flat(tensor)
        if self._copied:
            self._write()  # raises now what it would raise when all ranks have sent

    def _write(self) -> None:
        with pygrad.no_grad():
            self.tensor.detach().copy_(self.row.view(self.tensor.shape))

    def written(self) -> None:
        """Brings the row into the tensor, and says that it was written as an op in place would."""
        if self._copied:
            self._write()
        else:
            pygrad.autograd.graph.increment_version(self.tensor)


def targets(tensors: Iterable[Tensor]) -> list[Target]:
    """A `Target` of each."""
    return [Target(each) for each in tensors]


def bytes_of(row: Tensor) -> Any:
    """The bytes of a tensor of one dimension, as an array over the same memory; None for none."""
    if row.numel() == 0:
        return None
    return row.view(pygrad.uint8).numpy()


def written(those: Iterable[Target]) -> None:
    """`Target.written` of each."""
    for each in those:
        each.written()
