"""The same training function on a Ray cluster: workers are Ray's actors and ranks of one group.

The ranks exchange messages over sockets of their own, whose addresses Ray tells. The loss of a
worker costs the run the steps since its last checkpoint, and not a bit of the result.

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
