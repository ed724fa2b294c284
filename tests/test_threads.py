"""Several threads on one engine: long calls let other threads run, and whoever waits for the engine
gets it after one call of each thread before it.

No test asserts a time. A fair lock shows in counts: how many calls of a worker end while another
thread makes one call.
"""

from __future__ import annotations

import os
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from helpers import UNINITIALISED, leaves
from samples import Entry, entries, samples
from sampling import Dtype, X
from test_python import python

import pygrad
import pygrad as torch
from pygrad._boundary import calls

# ------------------------------------------------------------------ which calls are long

SIDE = 1 << 10


class _Long(BaseException):
    """Raised in place of a call that would let other threads run."""


def _without_running(monkeypatch: Any) -> None:
    def refuse(*_: Any) -> None:
        raise _Long

    monkeypatch.setattr(calls, "_call_long", refuse)
    monkeypatch.setattr(calls, "_call2_long", refuse)


def _large(sample: X) -> Any:
    """A tensor of a million elements in the memory of one."""
    dtype = getattr(torch, sample.dtype or ("float32" if sample.kind != "mask" else "bool"))
    return torch.ones((), dtype=dtype).expand(SIDE, SIDE)


def _is_long(entry: Entry, arguments: Any) -> bool:
    values = [getattr(torch, v.name) if isinstance(v, Dtype) else v for v in arguments.args]
    try:
        entry.function(*values, **arguments.kwargs)
    except _Long:
        return True
    except Exception:
        pass  # the sizes do not fit together
    return False


def _sampled_with_tensors(*efforts: str) -> list[Entry]:
    wanted = {f"effort:{each}" for each in efforts}
    return [
        entry
        for entry in entries()
        if entry.words & wanted and any(sample.tensors() for sample in samples(entry))
    ]


READERS = _sampled_with_tensors(
    "light", "heavy", "slow", "picks", "product", "convolution", "cubic"
)


@pytest.mark.parametrize("entry", READERS, ids=[entry.id for entry in READERS])
def test_op_that_reads_large_tensors_lets_others_run(entry: Entry, monkeypatch: Any) -> None:
    _without_running(monkeypatch)
    large = [sample.map(_large) for sample in samples(entry) if sample.tensors()]
    assert any(_is_long(entry, each) for each in large)


def _array(sample: X) -> Any:
    return torch.ones(sample.shape, dtype=getattr(torch, sample.dtype or "float32"))


OTHERS = [entry for entry in _sampled_with_tensors("none") if entry.name not in UNINITIALISED]


@pytest.mark.parametrize("entry", OTHERS, ids=[entry.id for entry in OTHERS])
def test_op_without_effort_reads_no_elements(entry: Entry) -> None:
    """The results are views, arguments, or no tensors."""
    for sample in samples(entry):
        made = sample.map(_array)
        try:
            results = leaves(entry.function(*made.args, **made.kwargs))
        except Exception:
            continue  # of values that do not fit
        given = {each.untyped_storage()._cdata for each in leaves([*made.args])}
        assert {each.untyped_storage()._cdata for each in results} <= given


MAKERS = {
    "rand": (SIDE, SIDE),
    "zeros": (SIDE, SIDE),
    "full": ((SIDE, SIDE), 1.0),
    "randint": (9, (SIDE, SIDE)),
    "arange": (SIDE * SIDE,),
    "randperm": (SIDE * SIDE,),
    "linspace": (0, 1, SIDE * SIDE),
}


@pytest.mark.parametrize("name", MAKERS)
def test_factory_of_large_tensors_lets_others_run(name: str, monkeypatch: Any) -> None:
    _without_running(monkeypatch)
    with pytest.raises(_Long):
        getattr(torch, name)(*MAKERS[name])


def test_subscripts_are_long_by_their_indices(monkeypatch: Any) -> None:
    table, many = torch.ones(()).expand(SIDE, SIDE), torch.zeros(SIDE * 4, dtype=torch.int64)
    _without_running(monkeypatch)
    assert table[3, 2:5].shape == (3,)
    assert table[many[:2]].shape == (2, SIDE)
    with pytest.raises(_Long):
        table[many]


def test_operands_are_long_by_the_shape_they_broadcast_to(monkeypatch: Any) -> None:
    column, row = torch.ones(SIDE, 1), torch.ones(1, SIDE)
    _without_running(monkeypatch)
    assert (column + 1).shape == (SIDE, 1)
    with pytest.raises(_Long):
        column + row
    with pytest.raises(_Long):
        column.add(row, alpha=2.0)


# ------------------------------------------------------------------ long calls

ROWS = torch.arange(2000 * 40.0).reshape(2000, 40)
WAYS: dict[str, Callable[[], Any]] = {
    "operator": lambda: ROWS + 1,
    "method": lambda: ROWS.exp(),
    "keywords": lambda: torch.add(ROWS, ROWS, alpha=2),
    "dimension": lambda: ROWS.sum(dim=1),
    "out=": lambda: torch.add(ROWS, 1, out=torch.empty(0)),
    "in place": lambda: ROWS.clone().mul_(2),
    "several results": lambda: ROWS.sort(dim=1),
    "recorded": lambda: ROWS.clone().requires_grad_() * 2,
}


@pytest.mark.parametrize("way", WAYS)
def test_long_call_gives_what_a_short_one_does(way: str, monkeypatch: Any) -> None:
    made = []
    for name in ("_call_long", "_call2_long"):
        real = getattr(calls, name)
        monkeypatch.setattr(calls, name, lambda *a, real=real: (made.append(1), real(*a)))
    found = WAYS[way]()
    assert made
    most = torch._boundary.host.layout["frame_most_effort"] + torch._boundary.frame
    words, before = torch._boundary.ints, torch._boundary.ints[most >> 2]
    words[most >> 2] = 0
    try:
        made.clear()
        expected = WAYS[way]()
    finally:
        words[most >> 2] = before
    assert not made
    for one, other in zip(leaves(found), leaves(expected), strict=True):
        assert torch.equal(one, other)
        assert one.requires_grad == other.requires_grad


def test_long_call_in_place_gives_the_very_object() -> None:
    x = torch.zeros(SIDE, SIDE // 4)
    assert x.add_(1) is x
    assert x.mul_(torch.ones(())) is x
    assert torch.add(x, x, out=x) is x


def test_failed_long_call_leaves_everything_as_it_was() -> None:
    x, before = torch.ones(SIDE, SIDE), pygrad.pg_live_count()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="size of tensor a"):
            x + torch.ones(SIDE - 1, SIDE - 1)
        with pytest.raises(RuntimeError, match="must match"):
            torch.add(x, torch.ones(SIDE - 1, SIDE - 1), alpha=2)
    assert pygrad.pg_live_count() == before
    assert (x + 1).sum().item() == 2 * SIDE * SIDE


def test_other_threads_run_during_a_long_call() -> None:
    """A thread that never calls the engine counts meanwhile."""
    a, ticks, ended = torch.rand(900, 900), [0], threading.Event()

    def tick() -> None:
        while not ended.is_set():
            ticks[0] += 1
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    gained = []
    try:
        for _ in range(5):
            before = ticks[0]
            a @ a
            gained.append(ticks[0] - before)
    finally:
        ended.set()
        thread.join()
    assert statistics.median(gained) > 100


def test_two_engines_compute_at_once() -> None:
    """A hook of one thread runs while the other multiplies, in one call each."""
    other = pygrad.Engine()
    inside, seen, ended = threading.Event(), [], threading.Event()
    a, x = other.rand(900, 900), torch.ones(2, requires_grad=True)

    def multiply() -> None:
        while not ended.is_set():
            inside.set()
            a @ a
            inside.clear()

    thread = threading.Thread(target=multiply)
    thread.start()
    try:
        for _ in range(200):
            inside.wait(30)
            y = x * 2
            y.register_hook(lambda g: seen.append(inside.is_set()))
            y.sum().backward()
    finally:
        ended.set()
        thread.join()
    assert any(seen)


# ------------------------------------------------------------------ fairness


def _sleeping_backward() -> None:
    y = torch.ones(3, requires_grad=True) * 2
    y.register_hook(lambda g: time.sleep(0.002))
    y.sum().backward()


class _Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 2


def _custom_functions() -> None:
    y = torch.ones(50000, requires_grad=True)
    for _ in range(4):
        y = _Twice.apply(y)
    y.sum().backward()


def _workers() -> dict[str, Callable[[], Any]]:
    a, image, many = torch.rand(300, 300), torch.rand(4, 8, 40, 40), torch.rand(200000)
    filters, at = torch.rand(16, 8, 3, 3), torch.randint(0, 200000, (100000,))
    weight = torch.rand(300, 300, requires_grad=True)
    model = torch.nn.Linear(300, 300)
    optimizer = torch.optim.Adam(model.parameters())

    def train() -> None:
        optimizer.zero_grad()
        model(a).square().mean().backward()
        optimizer.step()

    return {
        "products": lambda: a @ a,
        "convolutions": lambda: torch.nn.functional.conv2d(image, filters, padding=1),
        "sorts": lambda: many.sort(),
        "copies": lambda: many.clone(),
        "writes": lambda: many.add_(1.0),
        "sums": lambda: many.sum(),
        "random numbers": lambda: torch.randn(200000),
        "indices": lambda: many[at],
        "decompositions": lambda: torch.linalg.svd(a[:60, :60]),
        "backwards": lambda: (a @ weight).sum().backward(),
        "sleeping hooks": _sleeping_backward,
        "custom functions": _custom_functions,
        "trainings": train,
    }


def _run_beside(work: Callable[[], Any], n_threads: int, run: Callable[[list[int]], None]) -> None:
    """Runs a function beside threads that work without a pause; it sees how often they did."""
    counts, ended = [0] * n_threads, threading.Event()

    def repeat(k: int) -> None:
        while not ended.is_set():
            work()
            counts[k] += 1

    threads = [threading.Thread(target=repeat, args=(k,)) for k in range(n_threads)]
    for thread in threads:
        thread.start()
    try:
        run(counts)
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("kind", _workers())
def test_small_call_waits_for_one_call_of_a_worker(kind: str) -> None:
    waited = []

    def calls_beside(counts: list[int]) -> None:
        while not counts[0]:
            time.sleep(0)
        for k in range(40):
            before = counts[0]
            assert (torch.ones(2) + k).tolist() == [k + 1.0] * 2
            waited.append(counts[0] - before)
            time.sleep(0.0002)

    _run_beside(_workers()[kind], 1, calls_beside)
    assert statistics.median(waited) <= 2


def test_each_of_many_threads_has_its_turn() -> None:
    a = torch.rand(100, 100)

    def wait_for_all(counts: list[int]) -> None:
        while not min(counts):
            time.sleep(0.001)
        begun = counts[:]
        while True:
            gained = [now - before for now, before in zip(counts, begun, strict=True)]
            if min(gained) >= 8:
                break
            time.sleep(0.001)
        assert max(gained) < 4 * min(gained)

    _run_beside(lambda: a @ a, 32, wait_for_all)


WORKER = """
import os, threading, pygrad
a, count = pygrad.rand(300, 300), [0]

def work():
    while True:
        a @ a
        count[0] += 1

threading.Thread(target=work, daemon=True).start()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_waits_for_one_call_of_a_worker() -> None:
    code = """
import statistics
waited = []
for _ in range(9):
    before, child = count[0], os.fork()
    if child == 0:
        os._exit(0 if (pygrad.ones(2) + 1).tolist() == [2.0, 2.0] else 1)
    waited.append(count[0] - before)
    assert os.waitpid(child, 0)[1] == 0
print(statistics.median(waited) <= 2, flush=True)
os._exit(0)
"""
    assert python(WORKER + code) == "True"


def test_loader_with_workers_beside_a_busy_thread() -> None:
    code = """
from pygrad.utils.data import DataLoader, TensorDataset
data = TensorDataset(pygrad.arange(100.0))
loader = DataLoader(data, batch_size=10, num_workers=2)
print(sum(batch[0].sum().item() for batch in loader), flush=True)
os._exit(0)
"""
    assert python(WORKER + code) == "4950.0"


def test_program_ends_beside_a_thread_in_a_long_call() -> None:
    code = """
import atexit, threading, pygrad
a = pygrad.rand(700, 700)

def work():
    while True:
        a @ a

class Last:
    def __del__(self):
        print((pygrad.ones(2) * 3).tolist())

kept = Last()
atexit.register(lambda: print((pygrad.ones(2) + 1).tolist()))
threading.Thread(target=work, daemon=True).start()
(pygrad.ones(2) + 1).tolist()
del kept
"""
    assert python(code) == "[3.0, 3.0]\n[2.0, 2.0]"


def test_memory_stays_for_a_thread_that_the_end_of_the_program_overtakes() -> None:
    """The interpreter lets go of modules while the thread is in its call, and ends later."""
    code = """
import sys, threading, time, pygrad
a = pygrad.rand(1500, 1500)

def work():
    while True:
        a @ a

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(0.3)

sys.kept = Last()
threading.Thread(target=work, daemon=True).start()
(pygrad.ones(2) + 1).tolist()
"""
    assert python(code) == ""


def test_handler_of_a_signal_may_call_while_its_thread_waits() -> None:
    code = """
import signal, threading, pygrad
a, seen, ended = pygrad.rand(400, 400), [], threading.Event()

def work():
    while not ended.is_set():
        a @ a

signal.signal(signal.SIGALRM, lambda *_: seen.append((pygrad.ones(2) + 1).sum().item()))
thread = threading.Thread(target=work)
thread.start()
signal.setitimer(signal.ITIMER_REAL, 0.002, 0.002)
for k in range(100):
    assert (pygrad.ones(2) * k).sum().item() == 2 * k
signal.setitimer(signal.ITIMER_REAL, 0)
ended.set()
thread.join()
print({*seen})
"""
    assert python(code) == "{4.0}"
