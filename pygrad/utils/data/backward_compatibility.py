"""`worker_init_fn`, which older programs import."""

from __future__ import annotations

import warnings

__all__: list[str] = []


def worker_init_fn(worker_id: int) -> None:
    """Does nothing: the loader seeds its workers itself."""
    warnings.warn(
        "Usage of backward_compatibility.worker_init_fn is deprecated as DataLoader automatically "
        "applies sharding in every worker",
        stacklevel=2,
    )
