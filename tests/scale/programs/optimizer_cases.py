"""Optimizers and averagers over several ranks: each function is one case, named by the argument,
and fails by an assertion on the rank that finds it.
"""

from __future__ import annotations

import hashlib
from typing import Any

from cases import run_case

import pygrad as torch
import pygrad.distributed as dist
from pygrad import nn
from pygrad.distributed.algorithms.ddp_comm_hooks import post_localSGD_hook as local_sgd
from pygrad.distributed.algorithms.join import Join
from pygrad.distributed.algorithms.model_averaging import (
    averagers,
    hierarchical_model_averager,
)
from pygrad.distributed.optim import PostLocalSGDOptimizer, ZeroRedundancyOptimizer
from pygrad.nn.parallel import DistributedDataParallel

ONES = torch.ones(1, 3)


def network() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), nn.Linear(5, 4), nn.Linear(4, 2))


def digest(module: nn.Module) -> str:
    return hashlib.sha256(repr([p.tolist() for p in module.parameters()]).encode()).hexdigest()


def groups_of(module: nn.Module) -> list[dict[str, Any]]:
    every = list(module.parameters())
    return [{"params": every[::2]}, {"params": every[1::2], "weight_decay": 0.1}]


def train(module: nn.Module, optimizer: Any, steps: int) -> None:
    for step in range(steps):
        optimizer.zero_grad()
        module(ONES * (step + 1)).square().sum().backward()
        optimizer.step()


# ------------------------------------------------------------ cases


def zero_has_the_bits_of_the_optimizer_alone(rank: int, size: int) -> None:
    for kind, options in (
        (torch.optim.SGD, {"lr": 0.01, "momentum": 0.9}),
        (torch.optim.AdamW, {"lr": 0.01}),
    ):
        for as_views in (False, True):
            alone, shared = network(), network()
            one = kind(groups_of(alone), **options)
            zero = ZeroRedundancyOptimizer(
                groups_of(shared), kind, parameters_as_bucket_view=as_views, **options
            )
            train(alone, one, 3)
            train(shared, zero, 3)
            assert digest(alone) == digest(shared), (kind, as_views)
            owned = {id(p) for group in zero.optim.param_groups for p in group["params"]}
            assert {id(p) for p in zero.optim.state} == owned
            assert len(owned) < len(list(shared.parameters()))


def zero_divides_by_size(rank: int, size: int) -> None:
    sizes = [7, 5, 4, 3, 2]
    params = [nn.Parameter(torch.zeros(each)) for each in sizes]
    zero = ZeroRedundancyOptimizer(params, torch.optim.SGD, lr=1.0)
    parts = [[p.numel() for group in part for p in group["params"]] for part in zero._shares]
    assert parts == {2: [[7, 3], [5, 4, 2]], 3: [[7], [5, 2], [4, 3]]}[size]


def zero_may_have_more_ranks_than_parameters(rank: int, size: int) -> None:
    layer = nn.Linear(2, 2, bias=False)
    zero = ZeroRedundancyOptimizer(layer.parameters(), torch.optim.SGD, lr=1.0)
    layer.weight.data.zero_()
    layer(torch.ones(1, 2)).sum().backward()
    zero.step()
    assert layer.weight.tolist() == [[-1.0, -1.0]] * 2


def zero_saves_a_state_that_the_optimizer_alone_loads(rank: int, size: int) -> None:
    alone, shared = network(), network()
    one = torch.optim.Adam(groups_of(alone), lr=0.01)
    zero = ZeroRedundancyOptimizer(groups_of(shared), torch.optim.Adam, lr=0.01)
    train(alone, one, 2)
    train(shared, zero, 2)
    try:
        zero.state_dict()
    except RuntimeError as error:
        assert f"consolidate_state_dict(to={rank})" in str(error)
    else:
        raise AssertionError("no error")
    last = size - 1
    zero.consolidate_state_dict(to=last)
    states = [zero.state_dict() if rank == last else None]
    dist.broadcast_object_list(states, src=last)
    assert repr(states[0]["state"]) == repr(one.state_dict()["state"])

    again, reloaded = network(), network()
    for module in (again, reloaded):
        module.load_state_dict(alone.state_dict())
    other = torch.optim.Adam(groups_of(again), lr=1.0)
    other.load_state_dict(states[0])
    zero = ZeroRedundancyOptimizer(groups_of(reloaded), torch.optim.Adam, lr=1.0)
    zero.load_state_dict(states[0])
    assert zero.optim.param_groups[0]["lr"] == 0.01
    for module, optimizer in ((alone, one), (again, other), (reloaded, zero)):
        train(module, optimizer, 2)
    assert digest(alone) == digest(again) == digest(reloaded)


def zero_takes_options_and_groups_later(rank: int, size: int) -> None:
    alone, shared = network(), network()
    makers = (
        (alone, torch.optim.SGD(list(alone[0].parameters()), lr=0.1)),
        (shared, ZeroRedundancyOptimizer(shared[0].parameters(), torch.optim.SGD, lr=0.1)),
    )
    for module, optimizer in makers:
        scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1)
        train(module, optimizer, 1)
        scheduler.step()
        optimizer.add_param_group({"params": list(module[2].parameters()), "lr": 0.5})
        train(module, optimizer, 1)
        scheduler.step()
    assert digest(alone) == digest(shared)


def zero_joins_with_uneven_batches(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(network())
    zero = ZeroRedundancyOptimizer(ddp.parameters(), torch.optim.Adam, lr=0.01)
    with Join([ddp, zero]):
        train(ddp, zero, 2 + rank)
    every: list[Any] = [None] * size
    dist.all_gather_object(every, digest(ddp))
    assert every == [every[0]] * size
    # The same by hand: a rank without a batch adds zero to the mean.
    alone = network()
    one = torch.optim.Adam(alone.parameters(), lr=0.01)
    for step in range(1 + size):
        one.zero_grad()
        alone(ONES * (step + 1)).square().sum().backward()
        for each in alone.parameters():
            each.grad *= sum(2 + other > step for other in range(size)) / size
        one.step()
    for found, each in zip(ddp.parameters(), alone.parameters(), strict=True):
        assert found.allclose(each, atol=1e-5)


def averager_averages_in_every_so_many_steps(rank: int, size: int) -> None:
    parameter = nn.Parameter(torch.zeros(2))
    still = nn.Parameter(torch.full((2,), float(rank)))
    parameter.grad = torch.zeros(2)
    averager = averagers.PeriodicModelAverager(period=2, warmup_steps=1)
    mean = sum(range(size)) / size
    for step in range(4):
        with torch.no_grad():
            parameter.fill_(rank)
        averager.average_parameters([parameter, still])
        assert parameter.tolist() == [mean if step in (1, 3) else float(rank)] * 2
    assert still.tolist() == [float(rank)] * 2  # it has no gradient


def hierarchical_averager_uses_the_longest_period(rank: int, size: int) -> None:
    averager = hierarchical_model_averager.HierarchicalModelAverager({1: 1, 2: size})
    parameter = nn.Parameter(torch.zeros(2))
    parameter.grad = torch.zeros(2)
    for step in range(4):
        with torch.no_grad():
            parameter.fill_(rank)
        averager.average_parameters([{"params": [parameter]}])
        mean = sum(range(size)) / size
        assert parameter.tolist() == [float(rank) if step % 2 else mean] * 2


def post_local_sgd_averages_parameters_in_the_end(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(network())
    group, _ = dist.new_subgroups(1)
    state = local_sgd.PostLocalSGDState(None, group, start_localSGD_iter=2)
    ddp.register_comm_hook(state, local_sgd.post_localSGD_hook)
    averager = averagers.PeriodicModelAverager(period=3, warmup_steps=2)
    optimizer = PostLocalSGDOptimizer(torch.optim.SGD(ddp.parameters(), lr=0.01), averager)
    same = []
    for _ in range(6):
        optimizer.zero_grad()
        ddp(ONES * (rank + 1)).square().sum().backward()
        optimizer.step()
        every: list[Any] = [None] * size
        dist.all_gather_object(every, digest(ddp))
        same.append(every == [every[0]] * size)
    assert same == [True, True, True, False, False, True]

    saved = optimizer.state_dict()
    assert saved["step"] == 6
    averager.step = 0
    optimizer.load_state_dict(saved)
    assert averager.step == 6


if __name__ == "__main__":
    run_case(globals())
