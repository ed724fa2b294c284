"""PyTorch's errors of communication between processes."""

from __future__ import annotations


class DistError(RuntimeError):
    """The base class of errors of communication between processes."""


class DistBackendError(DistError):
    """A process died, hangs, gave up, or called another operation than the others."""


class DistNetworkError(DistError):
    """A network failed. Nothing here raises it; programs catch it."""


class DistStoreError(DistError):
    """A store failed. Nothing here raises it; programs catch it."""


class QueueEmptyError(DistStoreError):
    """A queue of a store is empty. Nothing here raises it; programs catch it."""
