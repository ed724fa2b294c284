"""What DistributedDataParallel does on two or three ranks: each function is one case, named by the
argument, and fails by an assertion on the rank that finds it.
"""

from __future__ import annotations

import os
import signal
from typing import Any

from cases import run_case

import pygrad as torch
import pygrad.distributed as dist
from pygrad import nn
from pygrad.nn.parallel import DistributedDataParallel

ONES = torch.ones(1, 2)


class Branches(nn.Module):
    """Layers of which each call uses those it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(3))

    def forward(self, x: Any, *used: int) -> Any:
        for number in used:
            x = self.layers[number](x)
        return x


def assert_raises(call: Any, *parts: str) -> None:
    try:
        call()
    except Exception as error:
        assert all(part in str(error) for part in parts), error
    else:
        raise AssertionError("no error")


def biases(module: Any) -> list[Any]:
    return [
        None if p.grad is None else p.grad.tolist()
        for name, p in module.named_parameters()
        if name.endswith("bias")
    ]


def close(found: Any, wanted: float) -> bool:
    return bool(torch.tensor(found).allclose(torch.tensor(wanted)))


# ------------------------------------------------------------ cases


def starts_with_rank_0(rank: int, size: int) -> None:
    torch.manual_seed(rank)
    module = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    module[1].running_mean.fill_(rank)
    module[0].weight.data = module[0].weight.data.t()  # not contiguous
    DistributedDataParallel(module)
    torch.manual_seed(0)
    assert module[0].weight.tolist() == nn.Linear(2, 2).weight.t().tolist()
    assert module[1].running_mean.tolist() == [0.0, 0.0]


def mean_of_gradients(rank: int, size: int) -> None:
    for options in (
        {},
        {"gradient_as_bucket_view": True},
        {"deterministic": False},
        {"bucket_cap_mb": 1e-6},
        {"static_graph": True},
        {"bucket_cap_mb_list": [1e-6, 1]},
        {"micro_batches": size},
    ):
        ddp = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2)), **options)
        for step in range(3):
            ddp.zero_grad()
            (ddp(ONES).sum() * (rank + step)).backward()
            mean = sum(range(size)) / size + step
            assert ddp.module[1].bias.grad.allclose(torch.tensor([mean, mean])), options


def accumulates_without_sync(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(nn.Linear(2, 2))
    with ddp.no_sync():
        (ddp(ONES).sum() * rank).backward()
    assert ddp.module.bias.grad.tolist() == [float(rank)] * 2
    ddp(ONES).sum().backward()
    assert ddp.module.bias.grad.tolist() == [1 + sum(range(size)) / size] * 2


def unused_differ_by_rank(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(Branches(), find_unused_parameters=True, bucket_cap_mb=1e-6)
    for _ in range(2):
        ddp.zero_grad()
        ddp(ONES, *([0] if rank == 0 else [1])).sum().backward()
        first, second, third = biases(ddp)
        assert close(first, 1 / size)
        assert close(second, (size - 1) / size)
        assert third is None


def rank_may_use_nothing(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(Branches(), find_unused_parameters=True)
    ddp(ONES, *([0] if rank == 0 else [])).sum().backward()
    assert close(biases(ddp)[0], 1 / size)
    assert biases(ddp)[1:] == [None, None]
    ddp.zero_grad()
    ddp(ONES).sum().backward()
    assert biases(ddp) == [None] * 3


def unused_is_an_error(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(Branches())
    ddp(ONES, 0).sum().backward()
    assert_raises(
        lambda: ddp(ONES, 0), "Expected to have finished reduction", f"for rank {rank}: 2 3 4 5"
    )


def static_graph_with_unused(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(Branches(), static_graph=True)
    for _ in range(3):
        ddp.zero_grad()
        (ddp(ONES, 0).sum() * rank).backward()
        assert biases(ddp) == [[sum(range(size)) / size] * 2, None, None]


def buffers_are_those_of_rank_0(rank: int, size: int) -> None:
    norm = nn.BatchNorm1d(2, momentum=1.0)
    ddp = DistributedDataParallel(norm)
    x = torch.tensor([[0.0, 0.0], [2.0, 2.0]]) + rank
    ddp(x).sum().backward()
    assert norm.running_mean.tolist() == [rank + 1.0] * 2
    norm.eval()
    ddp(x).sum().backward()
    assert norm.running_mean.tolist() == [1.0] * 2


def buffers_of_micro_batches_are_the_mean(rank: int, size: int) -> None:
    norm = nn.BatchNorm1d(2, momentum=1.0)
    ddp = DistributedDataParallel(norm, micro_batches=4)
    for step in (1, 2):
        for i in ddp.micro_batches_of_rank():
            ddp(torch.tensor([[0.0, 0.0], [2.0, 2.0]]) + i).sum().backward()
        assert norm.running_mean.tolist() == [2.5] * 2
        assert norm.num_batches_tracked.item() == 4 * step


def fewer_micro_batches_than_ranks(rank: int, size: int) -> None:
    norm = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2))
    for options in ({}, {"find_unused_parameters": True}, {"deterministic": False}):
        ddp = DistributedDataParallel(norm, micro_batches=1, **options)
        ddp.zero_grad()
        ddp.module[1].bias.grad = torch.ones(2)
        for _ in ddp.micro_batches_of_rank():
            assert rank == 0
            ddp(torch.ones(3, 2)).sum().backward()
        assert norm[1].bias.grad.tolist() == [4.0] * 2


def comm_hook_reduces(rank: int, size: int) -> None:
    def hook(group, bucket):  # type: ignore[no-untyped-def]
        work = dist.all_reduce(bucket.buffer(), group=group, async_op=True)
        return work.get_future().then(lambda future: future.value()[0] * 10)

    ddp = DistributedDataParallel(nn.Linear(2, 2))
    ddp.register_comm_hook(None, hook)
    (ddp(ONES).sum() * rank).backward()
    assert ddp.module.bias.grad.tolist() == [10.0 * sum(range(size))] * 2


def group_of_some_ranks(rank: int, size: int) -> None:
    group = dist.new_group([1, 2])
    if rank == 0:
        return
    torch.manual_seed(rank)
    ddp = DistributedDataParallel(nn.Linear(2, 2), process_group=group)
    torch.manual_seed(1)
    assert ddp.module.weight.tolist() == nn.Linear(2, 2).weight.tolist()
    (ddp(ONES).sum() * rank).backward()
    assert ddp.module.bias.grad.tolist() == [1.5] * 2


def sampler_asks_the_group(rank: int, size: int) -> None:
    sampler = torch.utils.data.DistributedSampler(range(2 * size), shuffle=False)
    assert list(sampler) == [rank, rank + size]


def modules_differ(rank: int, size: int) -> None:
    more = nn.Linear(2, 2 + (rank == 1))
    text = "appears not to match sizes of the same param in process 0"
    assert_raises(lambda: DistributedDataParallel(more), f"[{rank}]: params[0] in", "[3, 2]", text)
    deeper = nn.Sequential(*(nn.Linear(2, 2) for _ in range(1 + (rank == 1))))
    text = "Rank 0 has 2 params, while rank 1 has inconsistent 4 params"
    assert_raises(lambda: DistributedDataParallel(deeper), text)
    other = nn.Linear(2, 2, dtype=torch.float64 if rank == 1 else torch.float32)
    assert_raises(
        lambda: DistributedDataParallel(other), "appears not to match dtype of the same param"
    )


def ranks_join_with_fewer_batches(rank: int, size: int) -> None:
    """Rank r has 2 + r batches, of which the mean gradient is over those who are left, or all."""
    for options in (
        {},
        {"find_unused_parameters": True},
        {"static_graph": True},
        {"find_unused_parameters": True, "skip_all_reduce_unused_params": True},
        {"bucket_cap_mb": 1e-6, "gradient_as_bucket_view": True},
        {"deterministic": False},
    ):
        for by_all in (True, False):
            ddp = DistributedDataParallel(nn.Sequential(nn.Linear(2, 2)), **options)
            bias = ddp.module[0].bias
            with ddp.join(divide_by_initial_world_size=by_all):
                for batch in range(2 + rank):
                    ddp.zero_grad()
                    (ddp(ONES).sum() * (rank + 1)).backward()
                    left = [each + 1 for each in range(size) if 2 + each > batch]
                    mean = sum(left) / (size if by_all else len(left))
                    assert close(bias.grad.tolist(), mean), (options, by_all, batch)
            if not ddp.gradient_as_bucket_view:  # what the others did after it left no trace
                assert close(bias.grad.tolist(), mean), (options, by_all)


def ranks_that_join_take_the_model_of_the_last(rank: int, size: int) -> None:
    norm = nn.BatchNorm1d(2, momentum=1.0)
    ddp = DistributedDataParallel(nn.Sequential(norm, nn.Linear(2, 2)))
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    with ddp.join():
        for batch in range(3 * rank):  # rank 0 has none
            optimizer.zero_grad()
            ddp(torch.tensor([[0.0, 1.0], [2.0, 3.0]]) + batch).sum().backward()
            optimizer.step()
    assert ddp._authoritative_rank == size - 1
    states: list[Any] = [None] * size
    dist.all_gather_object(states, {n: t.tolist() for n, t in ddp.state_dict().items()})
    assert states[0] == states[-1]
    assert norm.running_mean.tolist() == [float(3 * size - 3), float(3 * size - 2)]


def join_knows_no_sync(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(nn.Linear(2, 2))
    with ddp.join():
        for batch in range(2 + 2 * rank):
            if batch % 2 == 0:
                ddp.zero_grad()
                with ddp.no_sync():
                    ddp(ONES).sum().backward()
            else:
                ddp(ONES).sum().backward()
    if rank == size - 1:
        assert ddp.module.bias.grad.tolist() == [2 / size] * 2


def join_may_throw(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(nn.Linear(2, 2))

    def train() -> None:
        with ddp.join(throw_on_early_termination=True):
            for _ in range(1 + rank):
                ddp(ONES).sum().backward()

    text = "Detected at least one rank that exhausted inputs. Throwing across all ranks."
    assert_raises(train, text if rank else "Rank 0 exhausted all inputs.")


def error_within_join_is_the_user_s(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(nn.Linear(2, 2))

    def train() -> None:
        with ddp.join():
            raise ValueError("of the user")

    assert_raises(train, "of the user")


def unused_buckets_are_skipped(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(
        Branches(),
        find_unused_parameters=True,
        skip_all_reduce_unused_params=True,
        bucket_cap_mb=1e-6,
    )
    for used in (0, 1):
        ddp.zero_grad()
        ddp(ONES, *([used] if rank == 0 else [])).sum().backward()
        assert close(biases(ddp)[used], 1 / size)
        assert biases(ddp)[1 - used] is None
        assert ddp._get_ddp_logging_data()["num_buckets_reduced"] == 2
        uses = ddp.reducer._get_local_used_map().tolist()
        assert uses == [int(number // 2 == used) for number in range(6)]


def buckets_are_those_that_rank_0_saw(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(Branches(), bucket_cap_mb=1e-6)
    for step in range(3):
        ddp.zero_grad()
        order = [0, 1, 2] if rank == 0 else [2, 1, 0]
        (ddp(ONES, *order).sum() * 0).backward()
        assert biases(ddp) == [[0.0] * 2] * 3
        first = {number // 2 for bucket in ddp.reducer.buckets[:2] for number in bucket.numbers}
        assert first == {2}, step
    assert ddp._get_ddp_logging_data()["has_rebuilt_buckets"] == 1


def hooks_of_buffers(rank: int, size: int) -> None:
    def hook(waits: bool, named: dict[str, Any]) -> Any:
        work = dist.all_reduce(named["running_mean"], async_op=True)
        return work.wait() and None if waits else [work.get_future()]

    together = float(sum(range(1, size + 1)))
    for place in torch.nn.parallel.distributed._BufferCommHookLocation:
        norm = nn.BatchNorm1d(2, eps=0)
        ddp = DistributedDataParallel(norm.eval())
        norm.running_mean.fill_(rank + 1)
        is_before = place.name == "PRE_FORWARD"
        ddp._register_buffer_comm_hook(is_before, hook, place)
        found = ddp(torch.zeros(2, 2))
        found.sum().backward()
        assert norm.running_mean.tolist() == [together] * 2
        seen = together if is_before else rank + 1
        assert found.tolist() == [[-seen] * 2] * 2, place


def hooks_give_the_mean(rank: int, size: int) -> None:
    from pygrad.distributed.algorithms.ddp_comm_hooks import (
        DDPCommHookType,
        default,
        register_ddp_comm_hook,
    )

    torch.manual_seed(rank)
    x = torch.randn(8, 16)
    module = nn.Sequential(nn.Linear(16, 40), nn.ReLU(), nn.Linear(40, 16))
    plain = DistributedDataParallel(module)
    plain(x).sum().backward()
    wanted = [p.grad.clone() for p in module.parameters()]

    def check(ddp: Any, exact: bool) -> None:
        ddp.zero_grad()
        ddp(x).sum().backward()
        ddp._remove_autograd_hooks()
        for found, each in zip(module.parameters(), wanted, strict=True):
            near = found.grad.allclose(each, rtol=0.02, atol=0.05)
            assert torch.equal(found.grad, each) if exact else near

    plain._remove_autograd_hooks()
    for kind in DDPCommHookType:
        if kind is not DDPCommHookType.NOOP:
            ddp = DistributedDataParallel(module)
            register_ddp_comm_hook(kind, ddp)
            check(ddp, kind is DDPCommHookType.ALLREDUCE and size == 2)
    for built_in in dist.BuiltinCommHookType:
        ddp = DistributedDataParallel(module)
        ddp._register_builtin_comm_hook(built_in)
        assert ddp._get_ddp_logging_data()["comm_hook"] == str(built_in)
        check(ddp, built_in is dist.BuiltinCommHookType.ALLREDUCE and size == 2)
    for wrap in (default.fp16_compress_wrapper, default.bf16_compress_wrapper):
        ddp = DistributedDataParallel(module)
        ddp.register_comm_hook(None, wrap(default.allreduce_hook))
        check(ddp, False)


def power_sgd_is_the_same_on_all_ranks(rank: int, size: int) -> None:
    from pygrad.distributed.algorithms.ddp_comm_hooks import powerSGD_hook as power

    for hook in (power.powerSGD_hook, power.batched_powerSGD_hook):
        for columns in (1, 3):
            torch.manual_seed(0)
            ddp = DistributedDataParallel(nn.Sequential(nn.Linear(30, 30), nn.Linear(30, 30)))
            state = power.PowerSGDState(None, columns, 2)
            ddp.register_comm_hook(state, hook)
            x = torch.randn(size, 4, 30)[rank]
            for _ in range(4):
                ddp.zero_grad()
                ddp(x).square().sum().backward()
                every: list[Any] = [None] * size
                dist.all_gather_object(every, [p.grad.tolist() for p in ddp.parameters()])
                assert all(each == every[0] for each in every)
            assert state.iter == 4
            assert state.compression_stats()[0] > 2


def rank_dies_in_backward(rank: int, size: int) -> None:
    ddp = DistributedDataParallel(nn.Linear(2, 2))
    loss = ddp(ONES).sum()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    loss.backward()


if __name__ == "__main__":
    run_case(globals())
