"""Sending of tensors between processes, by value."""

from __future__ import annotations

import weakref
from typing import Any

from ..utils.data._workers import reduce_tensor

__all__ = ["reduce_tensor"]


class StorageWeakRef:
    """A weak reference to a storage. Two are equal if they refer to one storage."""

    def __init__(self, storage: Any) -> None:
        self._held = weakref.ref(storage)
        self.cdata = getattr(storage, "_cdata", id(storage))

    def expired(self) -> bool:
        """Whether the storage is gone."""
        return self._held() is None

    def __hash__(self) -> int:
        return hash(self.cdata)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StorageWeakRef) and self.cdata == other.cdata
