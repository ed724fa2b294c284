"""Runs one training function on a Ray cluster. Workers are Ray actors and ranks of one group.

The ranks exchange messages over their own sockets; Ray distributes the addresses. After the loss of
a worker the run repeats the steps since its last checkpoint; the result is the same bit for bit.

Example::

    import pygrad as torch
    from pygrad.distributed import ray

    def train():
        total = torch.ones(3) * torch.distributed.get_rank()
        torch.distributed.all_reduce(total)
        return total

    total = ray.run(train, workers=2)
"""

from __future__ import annotations

from ._run import WorkerLostError, run
from ._worker import checkpoint, save

__all__ = ["WorkerLostError", "checkpoint", "run", "save"]
