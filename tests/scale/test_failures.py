"""What goes wrong between processes is told on every rank, within the timeout, and leaves nothing
running. Each program runs on real processes.

MPICH's mpiexec ends all processes once one of its own children ends by a signal, or without
leaving MPI. A shell between them keeps it from that, so that each rank can say what it saw.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from launch import HEAD, environment, launch, mpiexec

BEFORE = """
import os, signal, sys, threading, time

RANK = int(os.environ["PMI_RANK"])

def attempt(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
        print("no error")
    except Exception as error:
        print(f"{type(error).__name__}: {error}")

def enter(seconds=20):
    dist.init_process_group("mpi", timeout=timedelta(seconds=seconds))
"""


@pytest.fixture(autouse=True)
def _nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No process that a test started outlives it."""
    mark = f"PYGRAD_TEST={uuid.uuid4().hex}"
    monkeypatch.setenv(*mark.split("="))
    yield
    left, end = [""], time.monotonic() + 5
    while left and time.monotonic() < end:
        left = [each for each in filter(str.isdigit, os.listdir("/proc")) if _has(each, mark)]
    assert not left


def _has(process: str, mark: str) -> bool:
    try:
        started_with = Path("/proc", process, "environ").read_bytes()
    except OSError:
        return False
    return int(process) != os.getpid() and mark.encode() in started_with


def said(program: str, ranks: int = 3, **variables: str) -> list[str]:
    """What each rank prints."""
    found = launch(BEFORE + program, ranks, env=variables)
    for rank, each in enumerate(found):
        print(f"rank {rank} ended by {each.code}: {each.out}{each.err}")
    return [each.out for each in found]


def check_all(found: list[str], *texts: str, but: int = -1) -> None:
    """Each rank says all of the texts, but one."""
    for rank, text in enumerate(found):
        for each in texts:
            assert rank == but or each in text, f"rank {rank} does not say {each!r}: {text}"


# ------------------------------------------------------------------ ranks that disagree


@pytest.mark.parametrize("large", [1, 10000])
def test_different_shapes_are_told_on_every_rank(large: int) -> None:
    found = said(f"enter(); attempt(dist.all_reduce, torch.ones({large} * (3 + (RANK == 1))))")
    check_all(found, "DistBackendError", "all_reduce", f"[{3 * large}]", f"[{4 * large}]")


def test_the_same_number_of_elements_is_not_the_same_shape() -> None:
    found = said("enter(); attempt(dist.all_reduce, torch.ones([(2, 3), (3, 2)][RANK]))", 2)
    check_all(found, "DistBackendError", "[2, 3]", "[3, 2]")


def test_who_only_sends_is_told_by_the_next_collective() -> None:
    found = said("""
enter()
def both():
    dist.broadcast(torch.ones(3 + RANK), 0)
    dist.barrier()
attempt(both)
""")
    check_all(found, "DistBackendError", "broadcast", "[3]")


def test_different_dtypes_are_told_on_every_rank() -> None:
    found = said("""
enter()
attempt(dist.all_reduce, torch.ones(4, dtype=torch.float64 if RANK == 2 else torch.float32))
""")
    check_all(found, "DistBackendError", "float32", "float64")


def test_dtypes_of_one_width_differ_too() -> None:
    found = said("""
enter()
attempt(dist.all_reduce, torch.ones(4, dtype=torch.int32 if RANK else torch.float32))
""")
    check_all(found, "DistBackendError", "float32", "int32")


def test_collectives_in_another_order_are_told_on_every_rank() -> None:
    found = said("""
enter()
def both():
    calls = [lambda: dist.all_reduce(torch.ones(3)), lambda: dist.broadcast(torch.ones(3), 0)]
    for call in calls[:: -1 if RANK == 1 else 1]:
        call()
attempt(both)
""")
    check_all(found, "DistBackendError", "all_reduce", "broadcast")


def test_different_operations_are_told_on_every_rank() -> None:
    found = said("""
enter()
attempt(dist.all_reduce, torch.ones(3), dist.ReduceOp.MAX if RANK == 1 else dist.ReduceOp.SUM)
""")
    check_all(found, "DistBackendError", "SUM", "MAX")


def test_different_roots_are_told_on_every_rank() -> None:
    found = said("enter(); attempt(dist.broadcast, torch.ones(3), RANK)", 2)
    check_all(found, "DistBackendError", "broadcast")


def test_after_a_disagreement_the_group_says_why_it_is_of_no_use() -> None:
    found = said(
        """
enter()
attempt(dist.all_reduce, torch.ones(3 + RANK))
attempt(dist.all_reduce, torch.ones(3))
""",
        2,
    )
    for text in found:
        first, second, *_ = text.splitlines()
        assert "DistBackendError" in first
        assert "DistBackendError" in second
        assert "broken" in second


# ------------------------------------------------------------------ tensors


@pytest.mark.parametrize(
    "call",
    [
        "dist.all_reduce, x",
        "dist.broadcast, x, 0",
        "dist.all_gather, [torch.ones(3, 2)] * 2, x",
        "dist.reduce_scatter_tensor, x, torch.ones(6, 2)",
        "dist.send if RANK else dist.recv, x, 1 - RANK",
    ],
)
def test_tensors_need_not_be_contiguous(call: str) -> None:
    found = said(
        f"""
enter()
x = torch.ones(2, 3).t()
attempt({call})
dist.all_reduce(total := torch.ones(1))
print(total.item())
""",
        2,
    )
    check_all(found, "no error\n2.0")


@pytest.mark.parametrize("kind", ["int64", "bool"])
def test_what_all_ranks_refuse_leaves_every_group_as_it_was(kind: str) -> None:
    found = said(
        f"""
enter()
other = dist.new_group()
attempt(dist.all_reduce, torch.ones(3).to(torch.{kind}), dist.ReduceOp.AVG)
for group in None, other:
    dist.all_reduce(total := torch.ones(1), group=group)
    print(total.item())
""",
        2,
    )
    check_all(found, "RuntimeError: result type Float can't be cast to", "2.0\n2.0")


def test_what_one_rank_refuses_is_told_to_those_that_wait_for_it() -> None:
    found = said("""
enter()
x = torch.ones(2, 3, device="meta")
attempt(dist.all_reduce, torch.ones(2, 3)) if RANK != 1 else dist.all_reduce(x)
""")
    check_all(found, "rank 1 gave up: RuntimeError: all_reduce: a tensor of the device meta", but=1)


# ------------------------------------------------------------------ threads and groups


def test_each_thread_has_a_group_of_its_own() -> None:
    found = said(
        """
enter()
groups = [dist.new_group() for _ in range(4)]
right = []
def run(i):
    for length in [100, 5000] * 15:
        dist.all_reduce(x := torch.full((length,), float(i)), group=groups[i])
        right.append(bool((x == 2 * i).all()))
threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
for each in threads: each.start()
for each in threads: each.join()
print(sum(right))
""",
        2,
    )
    assert found == ["120\n", "120\n"]


@pytest.mark.parametrize("length", [3, 30_000])
def test_group_that_is_given_up_leaves_the_others_and_the_job_alone(length: int) -> None:
    """A message that was sent for it, and never received, does not delay the end."""
    program = f"""
enter()
bad, good = dist.new_group(), dist.new_group()
work = dist.all_reduce(x := torch.ones(3), group=good, async_op=True)
attempt(dist.all_reduce, torch.ones({length} + (RANK == 1)), group=bad)
attempt(dist.all_reduce, torch.ones({length}), group=bad)
work.wait()
for group in None, good:
    dist.all_reduce(x, group=group)
print(x.tolist(), flush=True)
"""
    found = said(program)
    check_all(found, "ranks disagree", "the group is broken", "[27.0, 27.0, 27.0]")
    assert without_shell(program) == 0


# ------------------------------------------------------------------ ranks that end


@pytest.mark.parametrize("elements", [10, 3_000_000])
def test_a_rank_that_is_killed_within_an_all_reduce(elements: int) -> None:
    found = said(f"""
enter(30)
if RANK == 1:
    dist.all_reduce(torch.ones({elements}))
    work = dist.all_reduce(torch.ones({elements}), async_op=True)
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones({elements}))
attempt(dist.all_reduce, torch.ones({elements}))
attempt(dist.barrier)
""")
    check_all(found, "DistBackendError", "rank 1 has died", but=1)


def test_a_rank_that_raises_is_heard_with_its_error() -> None:
    found = said("""
enter()
if RANK == 1:
    raise ValueError("no such batch")
attempt(dist.all_reduce, torch.ones(3))
""")
    check_all(found, "DistBackendError", "rank 1 gave up: ValueError: no such batch", but=1)


@pytest.mark.parametrize("how", ["sys.exit(0)", "os._exit(0)", "dist.destroy_process_group()"])
def test_a_rank_that_leaves_early(how: str) -> None:
    found = said(f"""
enter()
if RANK == 1:
    {how}
else:
    attempt(dist.all_reduce, torch.ones(3))
""")
    check_all(found, "DistBackendError", "rank 1 has ", but=1)


def test_a_rank_interrupted_by_the_keyboard() -> None:
    found = said("""
enter()
def interrupt():
    os.kill(os.getpid(), signal.SIGINT)
if RANK == 1:
    threading.Timer(1, interrupt).start()
elif RANK == 2:
    time.sleep(3)
try:
    dist.all_reduce(torch.ones(3))  # rank 2 has the numbers of the others before it begins
    dist.barrier()
except KeyboardInterrupt:
    print("interrupted")
except Exception as error:
    print(f"{type(error).__name__}: {error}")
""")
    assert found[1] == "interrupted\n"
    check_all(found, "DistBackendError", "rank 1 gave up: KeyboardInterrupt", but=1)


def test_a_rank_interrupted_outside_of_a_collective() -> None:
    found = said("""
enter()
if RANK == 1:
    threading.Timer(1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    time.sleep(30)
attempt(dist.all_reduce, torch.ones(3))
""")
    check_all(found, "rank 1 gave up: KeyboardInterrupt", but=1)


# ------------------------------------------------------------------ ranks that do not come


def test_a_rank_that_hangs_is_named_when_the_time_is_over() -> None:
    found = said("""
enter(2)
if RANK == 1:
    time.sleep(5)
attempt(dist.all_reduce, torch.ones(3))
attempt(dist.barrier)
""")
    assert "Timed out waiting 2000ms for rank 1" in found[0] + found[2]
    check_all(found, "DistBackendError", "rank")


def test_what_a_lost_group_said_does_not_come_to_a_later_one() -> None:
    found = said("""
enter(1)
if RANK == 0:
    attempt(dist.barrier)
time.sleep(2)
for _ in range(3):
    dist.destroy_process_group()
    enter()
    x = torch.tensor([RANK + 1.0])
    dist.all_reduce(x)
    print(x.item())
""")
    assert "Timed out waiting 1000ms for rank 1, 2" in found[0]
    assert all(text.split("\n", len(text.splitlines()) - 3)[-1] == "6.0\n" * 3 for text in found)


def test_a_monitored_barrier_names_who_did_not_come() -> None:
    program = """
enter()
if RANK != 1:
    attempt(dist.monitored_barrier, timeout=timedelta(seconds=1), wait_all_ranks={all_ranks})
else:
    time.sleep(2)
"""
    for all_ranks, who in (False, "Rank 1"), (True, "Ranks 1"):
        found = said(program.format(all_ranks=all_ranks))
        assert f"DistBackendError: [Rank 0]: {who} failed to pass monitoredBarrier" in found[0]
        assert "Rank 2 successfully reached monitoredBarrier, but received errors" in found[2]
    assert (
        "[Rank 0]: Ranks 1, 2 failed to pass"
        in said("""
enter()
if RANK == 0:
    attempt(dist.monitored_barrier, timeout=0.5, wait_all_ranks=True)
else:
    time.sleep(1)
""")[0]
    )
    late = said("""
enter()
if RANK == 0:
    time.sleep(2)
else:
    attempt(dist.monitored_barrier, timeout=timedelta(seconds=1))
""")
    texts = [f"Rank {rank} timed out in monitoredBarrier after 1000 ms." for rank in (1, 2)]
    assert any(text in late[1] + late[2] for text in texts)  # the other may hear of it first


def without_shell(program: str, ranks: int = 3) -> int:
    """The exit code of mpiexec, which sees how the processes end."""
    command = mpiexec(ranks, [sys.executable, "-c", HEAD + BEFORE + program])
    return subprocess.run(command, env=environment(), capture_output=True, timeout=60).returncode


@pytest.mark.parametrize(
    "on_rank_1",
    [
        "time.sleep(1e6)",
        "os.kill(os.getpid(), signal.SIGKILL)",
        "raise ValueError",
        "os._exit(3)",
        "os._exit(0)",
        "os.kill(os.getpid(), signal.SIGINT); time.sleep(1e6)",
    ],
)
def test_mpiexec_ends_all_and_says_that_it_went_wrong(on_rank_1: str) -> None:
    assert without_shell(f"""
enter(3)
if RANK == 1:
    {on_rank_1}
dist.all_reduce(torch.ones(3))
""")


def test_rank_that_ends_without_a_word_ends_the_job_though_nobody_waits_for_it() -> None:
    command = mpiexec(
        2,
        [
            sys.executable,
            "-c",
            HEAD
            + BEFORE
            + """
enter()
dist.barrier()
if RANK == 1:
    os._exit(0)
time.sleep(1e6)
""",
        ],
    )
    found = subprocess.run(command, env=environment(), capture_output=True, timeout=60)
    assert found.returncode != 0
    assert b"rank 1 has ended within its group: the job is ended" in found.stderr


def test_a_rank_that_never_comes_is_told_at_the_start() -> None:
    found = said("""
if RANK != 1:
    attempt(enter, 3)
""")
    check_all(found, "DistBackendError: init_process_group", but=1)


def test_a_rank_that_comes_to_mpi_but_to_no_group_is_named_at_the_start() -> None:
    found = said("""
if RANK == 1:
    from mpi4py import MPI
    time.sleep(4)
    os._exit(0)  # mpi4py would wait for the others
else:
    attempt(enter, 3)
""")
    check_all(found, "DistBackendError: init_process_group", "rank 1", but=1)


@pytest.mark.parametrize("given", ["world_size=5, rank=RANK", "world_size=2, rank=1 - RANK"])
def test_another_number_of_ranks_than_there_are(given: str) -> None:
    found = said(f"attempt(dist.init_process_group, 'mpi', {given}); enter(); print('went on')", 2)
    assert "ValueError" in found[0] + found[1]
    check_all(found, "went on")


def test_a_world_of_no_ranks_stands_for_the_one_there_is() -> None:
    found = said(
        """
import warnings
warnings.simplefilter("error")
attempt(dist.init_process_group, "mpi", rank=0, world_size=0)
warnings.simplefilter("ignore")
dist.init_process_group("mpi", rank=0, world_size=0)
print(dist.get_rank(), dist.get_world_size())
""",
        2,
    )
    check_all(found, "UserWarning: For MPI backend, world_size (0) and rank (0) are ignored")
    assert [text.splitlines()[-1] for text in found] == ["0 2", "1 2"]


def test_a_port_in_use_does_not_matter() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        found = said(
            "enter(); dist.all_reduce(x := torch.ones(1)); print(x.item())",
            2,
            MASTER_ADDR="127.0.0.1",
            MASTER_PORT=str(taken.getsockname()[1]),
        )
    check_all(found, "2.0")
