"""Trains as digits_mlp.py does, on a Ray cluster, and prints the same hash: for any number of
workers, and also if one is killed.

    python digits_mlp_on_ray.py WORKERS FOLDER [RANK STEP]

FOLDER is where checkpoints go. The worker RANK is killed at STEP, once.
"""

from __future__ import annotations

import os
import signal
import sys

from digest import digest

import pygrad as torch
import pygrad.distributed as dist
from pygrad import nn
from pygrad.datasets import Digits
from pygrad.distributed import ray
from pygrad.nn.parallel import DistributedDataParallel

STEPS, MICRO_BATCHES, SIZE = 30, 6, 16


def train(lost: list[int]) -> str:
    torch.manual_seed(dist.get_rank())  # all start with what rank 0 has
    model = nn.Sequential(
        *(nn.Linear(64, 128), nn.BatchNorm1d(128), nn.ReLU(), nn.Dropout(0.3)),
        nn.Linear(128, 10),
    )
    ddp = DistributedDataParallel(model, micro_batches=MICRO_BATCHES, bucket_cap_mb=0.02)
    optimizer = torch.optim.Adam(ddp.parameters(), lr=2e-3)
    start = 0
    if (state := ray.checkpoint()) is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
    data = Digits(train=True)
    order = torch.randperm(len(data), generator=torch.Generator().manual_seed(1))
    for step in range(start, STEPS):
        if [dist.get_rank(), step] == lost and start == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        batch = order.roll(-step * MICRO_BATCHES * SIZE)[: MICRO_BATCHES * SIZE].chunk(
            MICRO_BATCHES
        )
        optimizer.zero_grad()
        for i in ddp.micro_batches_of_rank():
            torch.manual_seed(step * MICRO_BATCHES + i)
            scores = ddp(data.data[batch[i]])
            nn.functional.cross_entropy(scores, data.targets[batch[i]]).backward()
        optimizer.step()
        if step % 5 == 4:
            told = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            ray.save({**told, "step": step + 1})
    test = Digits(train=False)
    right = (ddp.eval()(test.data).argmax(1) == test.targets).float().mean().item()
    return f"accuracy {right:.3f} sha256 {digest(model, optimizer)}\n"


def main() -> None:
    workers, folder, *lost = sys.argv[1:]
    said = ray.run(
        train,
        workers=int(workers),
        arguments=[[int(each) for each in lost]],
        checkpoints=folder,
        resources={"CPU": 0.25},  # they share the cores, if there are few
    )
    sys.stdout.write(said)


main()
