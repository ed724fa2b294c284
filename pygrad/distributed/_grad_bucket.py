"""The argument of communication hooks of DistributedDataParallel, and the built-in hooks."""

from __future__ import annotations

import enum
from collections.abc import Sequence

from .._tensor.tensor import Tensor


class GradBucket:
    """The gradients of some parameters, as one flat tensor."""

    __slots__ = ("_buffer", "_gradients", "_index", "_is_last", "_parameters")

    def __init__(
        self,
        index: int,
        buffer: Tensor,
        gradients: Sequence[Tensor],
        parameters: Sequence[Tensor],
        is_last: bool,
    ) -> None:
        self._index = index
        self._buffer = buffer
        self._gradients = list(gradients)
        self._parameters = list(parameters)
        self._is_last = is_last

    def index(self) -> int:
        """The index of the bucket in the order of reduction."""
        return self._index

    def buffer(self) -> Tensor:
        """All gradients, one after another, in one dimension."""
        return self._buffer

    def gradients(self) -> list[Tensor]:
        """The gradient of each parameter: views of the buffer."""
        return self._gradients

    def parameters(self) -> list[Tensor]:
        """The parameters, in the order of their gradients."""
        return self._parameters

    def is_last(self) -> bool:
        """Whether this is the last bucket of the backward."""
        return self._is_last

    def set_buffer(self, buffer: Tensor) -> None:
        """Replaces the buffer by another tensor."""
        self._buffer = buffer


class BuiltinCommHookType(enum.Enum):
    """The hooks of `DistributedDataParallel._register_builtin_comm_hook`."""

    ALLREDUCE = 1
    FP16_COMPRESS = 2
