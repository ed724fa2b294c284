"""The bytes of tensors where they are: what is sent is read from linear memory, what is received is
written there.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .._package import pygrad
from .._tensor import Tensor


def check(tensors: Iterable[Any], name: str, parameter: str = "tensor") -> None:
    """Raises if one is not a dense tensor whose elements follow each other.

    Raises:
        TypeError: it is no tensor.
        ValueError: it is not contiguous.
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
        if not each.is_contiguous():
            raise ValueError("Tensors must be contiguous")


def flat(tensor: Tensor) -> Tensor:
    """A contiguous tensor's elements in a row: the same memory, out of any graph."""
    return tensor.detach().resolve_conj().resolve_neg().view(-1)


def bytes_of(row: Tensor) -> Any:
    """The bytes of a tensor of one dimension, as an array over the same memory; None for none."""
    if row.numel() == 0:
        return None
    return row.view(pygrad.uint8).numpy()


def written(tensors: Iterable[Tensor]) -> None:
    """Says that bytes were written from outside, as an op in place would."""
    pygrad.autograd.graph.increment_version(list(tensors))
