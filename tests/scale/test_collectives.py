"""Collectives between processes: what each rank has afterwards."""

from __future__ import annotations

import pytest
from launch import launch, outputs

START = 'dist.init_process_group("mpi", timeout=timedelta(seconds=20))\n'
ENDS = "\ndist.destroy_process_group()\n"
NAMES = "rank, size = dist.get_rank(), dist.get_world_size()\n"


def run(body: str, ranks: int) -> list[str]:
    return outputs(START + NAMES + body + ENDS, ranks)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_sums_of_every_type_and_length(ranks: int) -> None:
    run(
        """
for length in (0, 1, 2, 17, 5000, 100_001):
    for kind in (torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.complex64,
                 torch.complex128, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        for deterministic in (True, False):
            t = torch.full((length,), rank + 1).to(kind)
            dist.all_reduce(t, deterministic=deterministic)
            want = torch.full((length,), size * (size + 1) // 2).to(kind)
            assert torch.equal(t, want), (kind, length)
""",
        ranks,
    )


@pytest.mark.parametrize("ranks", [2, 3])
def test_other_ways_to_reduce(ranks: int) -> None:
    run(
        """
Op = dist.ReduceOp
values = [rank + 1.0 for rank in range(size)]
for op, want in ((Op.PRODUCT, torch.tensor(values).prod()), (Op.MIN, 1.0), (Op.MAX, float(size)),
                 (Op.AVG, sum(values) / size)):
    for length in (3, 5000):
        t = torch.full((length,), rank + 1.0)
        dist.all_reduce(t, op)
        assert torch.equal(t, torch.full((length,), float(want))), op
bits = torch.tensor([1 << rank, 7])
all_bits = (1 << size) - 1
for op, want in ((Op.BAND, [0, 7]), (Op.BOR, [all_bits, 7]), (Op.BXOR, [all_bits, 7 * (size % 2)])):
    t = bits.clone()
    dist.all_reduce(t, op)
    assert t.tolist() == want, (op, t)
t = torch.full((4,), rank + 1.0)
dist.reduce(t, dst=size - 1)
assert rank < size - 1 or t.tolist() == [sum(values)] * 4
""",
        ranks,
    )


def test_a_sum_is_added_in_the_order_of_the_tree() -> None:
    """1e8 and -1e8 cancel before the small numbers are lost, in the tree's order alone."""
    found = outputs(
        START
        + NAMES
        + """
values = [1e8, -1e8, 1.0, 1.0]
for length in (1, 5000):
    t = torch.full((length,), values[rank])
    dist.all_reduce(t)
    print(t[-1].item())
"""
        + ENDS,
        4,
    )
    assert found == ["2.0\n2.0\n"] * 4


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_from_one_to_all_and_from_all_to_one(ranks: int) -> None:
    run(
        """
for length in (3, 50_000):
    mine = torch.arange(length) + 1000 * rank
    for src in range(size):
        t = mine.clone()
        dist.broadcast(t, src)
        assert torch.equal(t, torch.arange(length) + 1000 * src)
        got = torch.empty_like(mine)
        dist.scatter(got, [mine * i for i in range(size)] if rank == src else None, src)
        assert torch.equal(got, (torch.arange(length) + 1000 * src) * rank)
        into = [torch.empty_like(mine) for _ in range(size)] if rank == src else None
        dist.gather(mine, into, src)
        if rank == src:
            assert all(torch.equal(t, torch.arange(length) + 1000 * i) for i, t in enumerate(into))
""",
        ranks,
    )


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_from_all_to_all(ranks: int) -> None:
    run(
        """
for length in (2, 20_000):
    mine = torch.arange(length, dtype=torch.float64) + rank
    want = [torch.arange(length, dtype=torch.float64) + i for i in range(size)]
    got = [torch.empty_like(mine) for _ in range(size)]
    dist.all_gather(got, mine)
    assert all(map(torch.equal, got, want))
    whole = torch.empty(size * length, dtype=torch.float64)
    dist.all_gather_into_tensor(whole, mine)
    assert torch.equal(whole, torch.cat(want))
    total = torch.empty(length, dtype=torch.float64)
    dist.reduce_scatter(total, [mine * i for i in range(size)])
    assert torch.equal(total, sum(want) * rank)
    dist.reduce_scatter_tensor(total, torch.cat([mine * i for i in range(size)]))
    assert torch.equal(total, sum(want) * rank)
    got = [torch.empty(length + i, dtype=torch.float64) for i in range(size)]
    sent = [torch.full((length + rank,), float(i + 10 * rank)).double() for i in range(size)]
    dist.all_to_all(got, sent)
    assert all((t == rank + 10 * i).all() for i, t in enumerate(got))
out = torch.empty(size * 2)
dist.all_to_all_single(out, torch.arange(2.0 * size) + 100 * rank)
assert out.tolist() == [100.0 * i + 2 * rank + j for i in range(size) for j in range(2)]
dist.barrier()
""",
        ranks,
    )


def test_messages_between_two_ranks() -> None:
    run(
        """
if rank == 0:
    sent = {7: torch.full((3,), 7.0), 8: torch.full((100_000,), 8.0)}
    works = [dist.isend(t, 1, tag=tag) for tag, t in sent.items()]
    for work in works:
        work.wait()
    dist.send(torch.ones(5), 1)
else:
    long, short = torch.empty(100_000), torch.empty(3)
    later = dist.irecv(long, 0, tag=8)
    dist.recv(short, 0, tag=7)
    later.wait()
    assert (short == 7).all() and (long == 8).all()
    any_ = torch.empty(5)
    assert dist.recv(any_) == 0 and (any_ == 1).all()
ops = [dist.P2POp(dist.isend, torch.full((2,), float(rank)), 1 - rank),
       dist.P2POp(dist.irecv, got := torch.empty(2), 1 - rank)]
for work in dist.batch_isend_irecv(ops):
    work.wait()
assert (got == 1 - rank).all()
""",
        2,
    )


def test_many_messages_with_one_tag_come_in_order() -> None:
    run(
        """
sizes = [1, 60_000, 2, 70_000, 3]
if rank == 0:
    works = [dist.isend(torch.full((n,), float(i)), 1) for i, n in enumerate(sizes)]
else:
    into = [torch.empty(n) for n in sizes]
    works = [dist.irecv(t, 0) for t in into]
for work in reversed(works):
    work.wait()
if rank == 1:
    assert all((t == i).all() for i, t in enumerate(into))
""",
        2,
    )


def test_collectives_at_once_and_their_works() -> None:
    run(
        """
tensors = [torch.full((n,), rank + 1.0) for n in (3, 50_000, 1)]
works = [dist.all_reduce(t, async_op=True) for t in tensors]
future = works[1].get_future()
assert future.wait()[0] is tensors[1]
for work in reversed(works):
    assert work.wait() and work.is_completed() and work.is_success() and work.exception() is None
assert all((t == 3).all() for t in tensors)
""",
        2,
    )


def test_groups_of_some_ranks() -> None:
    run(
        """
ends = dist.new_group([2, 0])
if rank == 1:
    assert ends == dist.GroupMember.NON_GROUP_MEMBER
else:
    assert dist.get_process_group_ranks(ends) == [0, 2]
t = torch.tensor([float(rank)])
if rank == 1:
    import warnings
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        dist.all_reduce(t, group=ends)
    assert "does not belong to the given group" in str(seen[0].message)
    assert dist.get_rank(ends) == -1
else:
    dist.all_reduce(t, group=ends)
    assert t.item() == 2
    assert dist.get_rank(ends) == rank // 2 and dist.get_global_rank(ends, 1) == 2
    dist.broadcast(t, group_src=1, group=ends)
mine, all_ = dist.new_subgroups(1)
dist.all_reduce(t, group=mine)
dist.destroy_process_group(mine)
try:
    dist.all_reduce(t, group=mine)
except ValueError as error:
    assert str(error) == "Invalid process group specified"
""",
        3,
    )


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_objects(ranks: int) -> None:
    run(
        """
got = [None] * size
dist.all_gather_object(got, {"rank": rank})
assert got == [{"rank": i} for i in range(size)]
got = [None] * size if rank == 0 else None
dist.gather_object("x" * rank, got)
assert rank or got == ["x" * i for i in range(size)]
many = ["a", (1, 2)] if rank == 0 else [None, None]
dist.broadcast_object_list(many)
assert many == ["a", (1, 2)]
one = [None]
dist.scatter_object_list(one, list(range(size)) if rank == 0 else None)
assert one == [rank]
if size > 1 and rank < 2:
    if rank == 0:
        dist.send_object_list(["b", 5], 1)
    else:
        many = [None, None]
        assert dist.recv_object_list(many) == 0 and many == ["b", 5]
""",
        ranks,
    )


def test_what_is_received_counts_as_a_write() -> None:
    run(
        """
t = torch.full((4,), rank + 1.0)
weight = torch.ones(4, requires_grad=True)
loss = (weight * t).sum()
before = t._version
dist.all_reduce(t)
assert t._version > before
loss.backward()
assert (weight.grad == rank + 1).all()  # what was saved is from before
""",
        2,
    )


def test_a_group_is_left_and_entered_again_and_keeps_no_file_open() -> None:
    run(
        """
import os
opened = len(os.listdir("/proc/self/fd"))
for again in range(30):
    t = torch.ones(2)
    dist.all_reduce(t)
    assert t.tolist() == [2.0, 2.0]
    dist.destroy_process_group()
    assert not dist.is_initialized()
    dist.init_process_group("mpi", timeout=timedelta(seconds=20))
assert len(os.listdir("/proc/self/fd")) == opened
""",
        2,
    )


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ("dist.all_reduce(torch.ones(1).expand(2))", "RuntimeError: unsupported operation: more"),
        (
            "dist.all_reduce(torch.ones(2).int(), dist.ReduceOp.AVG)",
            "RuntimeError: result type Float can't be cast to the desired output type Int",
        ),
        ("dist.all_reduce(3)", "TypeError: Invalid function argument"),
        ("dist.broadcast(torch.ones(1), 5)", "ValueError: Global rank 5 is not part of group"),
        ("dist.broadcast(torch.ones(1))", "ValueError: Must specify global_rank or group_rank"),
        ("dist.send(torch.ones(1), rank)", "ValueError: Invalid destination rank"),
        (
            "dist.all_gather([torch.ones(1)], torch.ones(1))",
            "ValueError: tensor_list has 1 tensors",
        ),
        ("dist.init_process_group('mpi')", "ValueError: trying to initialize the default process"),
        (
            "dist.all_reduce(torch.ones(1) * 1j, dist.ReduceOp.MAX)",
            "ValueError: all_reduce does not support RedOpType.MAX on complex tensors",
        ),
        ("dist.new_group([0, 5])", "ValueError: Rank 5 is out of range"),
    ],
)
def test_wrong_arguments_are_refused_before_anything_is_sent(call: str, error: str) -> None:
    found = launch(
        START
        + NAMES
        + f"""
try:
    {call}
except Exception as e:
    print(type(e).__name__ + ": " + str(e))
t = torch.ones(1)
dist.all_reduce(t)  # all is as before
assert t.item() == 2
"""
        + ENDS,
        2,
    )
    for each in found:
        assert each.code == 0, each.err
        assert each.out.startswith(error)


def test_collectives_are_events_of_a_profile() -> None:
    run(
        """
import time
with torch.autograd.profiler.profile(record_shapes=True) as prof:
    t = torch.ones(2, 3)
    dist.all_reduce(t)
    if rank == 1:
        time.sleep(0.2)
    work = dist.all_reduce_coalesced([t, torch.ones(4)], async_op=True)
    u = t * 2
    work.wait()
    dist.all_gather([torch.empty(2), torch.empty(2)], torch.ones(2))
    dist.all_reduce(torch.ones(2, dtype=torch.complex64))
    if rank == 0:
        dist.send(t, 1)
    else:
        dist.recv(t)
    dist.barrier()
late = dist.all_reduce(t, async_op=True)
events = [e for e in prof.function_events if e.name.startswith("mpi:")]
assert [(e.name, e.input_shapes) for e in events] == [
    ("mpi:all_reduce", [[2, 3]]),
    ("mpi:all_reduce", [[2, 3], [4]]),
    ("mpi:all_gather", [[2]]),
    ("mpi:all_reduce", [[2, 2]]),
    ("mpi:send" if rank == 0 else "mpi:recvAnySource", [[2, 3]]),
    ("mpi:barrier", []),
]
assert all(e.is_async and not e.cpu_children for e in events)
around = next(e for e in prof.function_events if e.name == "aten::mul")
assert events[1].time_range.start < around.time_range.start
assert rank == 1 or around.time_range.end < events[1].time_range.end  # rank 0 had to wait
assert not around.is_async
late.wait()
""",
        2,
    )


def test_groups_have_collectives_as_methods() -> None:
    run(
        """
pg = dist.group.WORLD
all_ = sum(range(1, size + 1))
def row(value=rank + 1.0):
    return torch.full((2,), float(value))
def check(work, tensor, want):
    assert work.wait() and tensor.tolist() == [want] * 2, (tensor, want)
t = row(); check(pg.allreduce(t), t, all_)
t = row(); check(pg.allreduce([t], dist.ReduceOp.MAX), t, size)
t = row(); check(pg.allreduce_coalesced([t]), t, all_)
t = row(); check(pg.broadcast([t], 1), t, 2)
t = row(); check(pg.reduce(t, 0), t, all_ if rank == 0 else rank + 1)
rows = [row() for _ in range(size)]
for given in ([rows], [row()]), (rows, row()):
    check(pg.allgather(*given), rows[1], 2)
joined = torch.empty(2 * size); pg._allgather_base(joined, row()).wait()
assert joined[2:4].tolist() == [2, 2]
got = [row(0) for _ in range(size)] if rank == 0 else []
pg.gather(got, row(), 0).wait()
assert rank or got[1].tolist() == [2, 2]
t = row(); check(pg.scatter(t, [row(i) for i in range(size)] if rank == 0 else [], 0), t, rank)
t = row(); check(pg.reduce_scatter([t], [[row() for _ in range(size)]]), t, all_)
t = row(); check(pg._reduce_scatter_base(t, torch.cat([row()] * size)), t, all_)
rows = [row(0) for _ in range(size)]
check(pg.alltoall(rows, [row()] * size), rows[1], 2)
joined = torch.empty(2 * size)
pg.alltoall_base(joined, torch.cat([row()] * size), [], []).wait()
assert joined[2:4].tolist() == [2, 2]
if rank == 0:
    pg.send([row()], 1, 7).wait()
elif rank == 1:
    t = row(0); check(pg.recv([t], 0, 7), t, 1)
    t = row(0); work = pg.recv_anysource([t], 8); check(work, t, 3)
    assert work._source_rank() == 2
else:
    pg.send(row(), 1, 8).wait()
pg.barrier().wait()
pg.monitored_barrier(timedelta(seconds=10))
for wrong, kind in ((lambda: pg.allreduce([t, t]), ValueError),
                    (lambda: pg.allreduce(t, timeout=timedelta(1)), NotImplementedError)):
    try:
        wrong()
    except kind:
        continue
    raise AssertionError
""",
        3,
    )


def test_sums_of_sparse_tensors() -> None:
    run(
        """
def made(rank):
    places = [[0, rank], [rank, 0]] if rank else torch.empty(2, 0, dtype=torch.int64)
    values = torch.full((2 if rank else 0, 2), rank / 3)
    return torch.sparse_coo_tensor(places, values, (size, size, 2))
t = made(rank)
work = dist.all_reduce(t, async_op=True)
work.wait()
assert t.is_coalesced() and t._nnz() == 2 * size - 2
want = made(0).to_dense()
for other in range(1, size):
    want += made(other).to_dense()
assert torch.equal(t.to_dense(), want)
for op, kind in ((dist.ReduceOp.MAX, RuntimeError), ("sum", TypeError)):
    try:
        dist.all_reduce(t, op)
    except kind:
        continue
    raise AssertionError
""",
        3,
    )
