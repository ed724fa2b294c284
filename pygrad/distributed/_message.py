"""The heads of messages: each describes its message, so that errors can name a mismatch."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from .._tensor.tensor import Tensor
from ._errors import DistBackendError
from ._transport import Accept


def head(name: str, tensors: Sequence[Tensor], where: str = "") -> bytes:
    """The head of a collective's messages: its name, the types and shapes, and where it runs.

    Example:
        >>> import pygrad
        >>> head("broadcast from rank 0", [pygrad.zeros(2, 3)])
        b'broadcast from rank 0 of float32 [2, 3]'
    """
    return _head(name, tuple((t.dtype.name, tuple(t.shape)) for t in tensors), where)


@functools.lru_cache(256)
def _head(name: str, operands: tuple[Any, ...], where: str) -> bytes:
    of = ", ".join(f"{kind} {list(shape)}" for kind, shape in operands[:4])
    if len(operands) > 4:
        of += f" and {len(operands) - 4} more"
    return (name + (f" of {of}" if of else "") + where).encode()


def expect(peer: int, said: bytes, buffer: Any) -> Accept:
    """Makes an `Accept` that requires the head `said` and puts the body into `buffer`.

    Raises:
        DistBackendError: (when a message arrives) its head differs.
    """

    def accept(came: bytes) -> Any:
        if came != said:
            raise DistBackendError(
                f"ranks disagree: here {said.decode()}, on rank {peer} "
                f"{came.decode(errors='replace')}"
            )
        return buffer

    return accept
