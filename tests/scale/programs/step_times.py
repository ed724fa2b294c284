"""Prints the milliseconds of training steps and of collectives, for `bench.py`.

python step_times.py pygrad ROUNDS     started by mpiexec
python step_times.py torch ROUNDS      gloo, told by the variables of torch's env://
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parent.parent.parent / "bench"))

from work import classes, linear, wave

SIZES, BATCH, STEPS = (1024, 1024, 1024, 10), 256, 4
"""Of mlp_big, see tests/bench/training.py: the batch is divided among the ranks."""


def stepping(torch: Any, wrap: Callable[[Any], Any], rank: int, ranks: int) -> Callable[[], None]:
    nn = torch.nn
    layers: list[Any] = []
    for i, (n_in, n_out) in enumerate(pairwise(SIZES)):
        layers += [nn.ReLU()] * (i > 0) + [linear(torch, n_in, n_out, i)]
    x = wave(torch, BATCH, SIZES[0]).chunk(ranks)[rank].clone()
    y = classes(torch, BATCH, n=SIZES[-1]).chunk(ranks)[rank].clone()
    net = wrap(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-5)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()

    return step


def collectives(torch: Any, dist: Any, kind: str) -> dict[str, Callable[[], Any]]:
    row = torch.zeros(sum(a * b + b for a, b in pairwise(SIZES)))
    if kind == "torch":
        return {"all_reduce": lambda: dist.all_reduce(row)}
    numpy, mpi = import_module("numpy"), import_module("mpi4py.MPI")
    sent = numpy.zeros(row.numel(), dtype=numpy.float32)
    received = sent.copy()
    return {
        "all_reduce, tree": lambda: dist.all_reduce(row),
        "all_reduce, ring": lambda: dist.all_reduce(row, deterministic=False),
        "MPI's Allreduce": lambda: mpi.COMM_WORLD.Allreduce(sent, received),
    }


def main(kind: str, rounds: int) -> None:
    torch, dist = import_module(kind), import_module(f"{kind}.distributed")
    wrapper = torch.nn.parallel.DistributedDataParallel
    dist.init_process_group("mpi" if kind == "pygrad" else "gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()
    ways: dict[str, Callable[[], Any]] = {}
    wraps: dict[str, Callable[[Any], Any]] = {
        "step, no averaging": lambda net: net,
        "step": wrapper,
    }
    if kind == "pygrad":
        wraps |= {
            "step, ring": lambda net: wrapper(net, deterministic=False),
            "step, views": lambda net: wrapper(net, gradient_as_bucket_view=True),
        }
    for name, wrap in wraps.items():
        ways[name] = stepping(torch, wrap, rank, ranks)
    if ranks > 1:
        ways |= collectives(torch, dist, kind)
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, call in ways.items():
            call()
            dist.barrier()
            start = time.perf_counter()
            for _ in range(STEPS):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / STEPS * 1e3)
    if rank == 0:
        print(json.dumps(best), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
