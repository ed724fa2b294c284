"""Trains a perceptron on handwritten digits, on as many processes as there are, and prints the hash
of what comes out: batch norm and dropout too are the same for any number of processes.
"""

from __future__ import annotations

import sys

from digest import digest

import pygrad as torch
import pygrad.distributed as dist
from pygrad import nn
from pygrad.datasets import Digits
from pygrad.nn.parallel import DistributedDataParallel

STEPS, MICRO_BATCHES, SIZE = 30, 6, 16


def main() -> None:
    dist.init_process_group("mpi")
    torch.manual_seed(dist.get_rank())  # all start with what rank 0 has
    model = nn.Sequential(
        *(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3)),
        nn.Linear(128, 10),
    )
    ddp = DistributedDataParallel(model, micro_batches=MICRO_BATCHES, bucket_cap_mb=0.02)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=2e-3)
    data = Digits(train=True)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1))
    for step in range(STEPS):
        batch = order.roll(-step * MICRO_BATCHES * SIZE)[: MICRO_BATCHES * SIZE].chunk(
            MICRO_BATCHES
        )
        optimizer.zero_grad()
        for i in ddp.micro_batches_of_rank():
            torch.manual_seed(step * MICRO_BATCHES + i)
            scores = ddp(data.data[batch[i]])
            nn.functional.cross_entropy(scores, data.targets[batch[i]]).backward()
        optimizer.step()
    test = Digits(train=False)
    right = (ddp.eval()(test.data).argmax(1) == test.targets).float().mean().item()
    sys.stdout.write(
        f"rank {dist.get_rank()} accuracy {right:.3f} sha256 {digest(model, optimizer)}\n"
    )
    dist.destroy_process_group()


main()
