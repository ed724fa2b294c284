"""Collectives between ranks that are engines of this process, each with threads of its own, over
sockets: groups and threads do not disturb each other, and what is refused breaks nothing.
"""

from __future__ import annotations

import itertools
import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any, Final

import pytest
from collectives import (
    DTYPES,
    EXCHANGES,
    FROM_FIRST,
    OPS,
    REDUCTIONS,
    Make,
    Rank,
    maker_of_dtype,
    values,
)

import pygrad
from pygrad.distributed.ray import _sockets

SECONDS: Final = 20
Run = Callable[["Rank"], Any]


class World:
    """Engines that stand for processes, and a thread for each."""

    def __init__(self, engines: list[Any]) -> None:
        size = len(engines)
        listeners = [_sockets.listen("127.0.0.1") for _ in engines]
        addresses = [listener.getsockname() for listener in listeners]
        secret = secrets.token_bytes(32)
        self._pool = ThreadPoolExecutor(size)
        self.ranks = [Rank(e, e.distributed, rank, size) for rank, e in enumerate(engines)]

        def enter(each: Rank) -> None:
            args = listeners[each.rank], each.rank, addresses, secret, SECONDS
            each.dist._group.start(_sockets.connect(*args), SECONDS)

        self(enter)

    def __call__(self, run: Run) -> list[Any]:
        """Calls a function on each rank; returns its results."""
        return list(self._pool.map(run, self.ranks, timeout=2 * SECONDS))

    def close(self) -> None:
        self(lambda each: each.dist.destroy_process_group())
        self._pool.shutdown()


@pytest.fixture(scope="module")
def engines() -> list[Any]:
    return [pygrad.Engine() for _ in range(3)]


@pytest.fixture
def world(engines: list[Any], request: pytest.FixtureRequest) -> Iterator[World]:
    made = World(engines[: getattr(request, "param", 2)])
    yield made
    made.close()


def goes_on(r: Rank, group: Any) -> bool:
    """Whether the group works."""
    r.dist.all_reduce(x := r.torch.ones(1), group=group)
    return bool(x.item() == r.size)


# ------------------------------------------------------------------ dtypes and ops

JOINS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "SUM": lambda a, b: a + b,
    "AVG": lambda a, b: a + b,
    "PRODUCT": lambda a, b: a * b,
    "MIN": min,
    "MAX": max,
    "BAND": lambda a, b: a & b,
    "BOR": lambda a, b: a | b,
    "BXOR": lambda a, b: a ^ b,
}


def refusal(dtype: str, op: str) -> str:
    """The words of PyTorch's error for an op that has no meaning for a dtype."""
    is_complex, is_float = dtype.startswith("complex"), "float" in dtype
    if is_complex and op not in ("SUM", "AVG"):
        return "on complex tensors"
    if op.startswith("B") and is_float:
        return "with non-integral dtype"
    if op == "AVG" and not (is_complex or is_float):
        return "result type Float can't be cast to the desired output type"
    return ""


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reduction_of_each_dtype_is_right_or_is_refused_and_the_group_goes_on(
    world: World, name: str
) -> None:
    def run(r: Rank) -> list[str]:
        wrong = []
        group = r.dist.new_group()
        for dtype, op in itertools.product(DTYPES, OPS):
            make, text = maker_of_dtype(dtype), refusal(dtype, op)
            wanted = make(r)
            for place in range(3):
                first, second = (values(rank, 3)[place] for rank in range(2))
                if dtype == "bool":
                    first, second = bool(first), bool(second)
                if not text:
                    total = JOINS[op](first, second)
                    wanted[place] = total / 2 if op == "AVG" else total
            try:
                found = REDUCTIONS[name](r, group, make, make, getattr(r.dist.ReduceOp, op))
            except (ValueError, RuntimeError) as error:
                if not text or text not in str(error):
                    wrong.append(f"{dtype} {op}: {type(error).__name__} {error}")
                    if "broken" in str(error):
                        break
            else:
                if text or not all(r.torch.equal(each, wanted) for each in found):
                    wrong.append(f"{dtype} {op}: {found} instead of {text or wanted}")
        return [*wrong, *([] if goes_on(r, group) else ["does not go on"])]

    assert world(run) == [[], []]


@pytest.mark.parametrize("name", EXCHANGES)
def test_exchange_of_each_dtype(world: World, name: str) -> None:
    def run(r: Rank) -> list[str]:
        wrong = []
        for dtype in DTYPES:
            make = maker_of_dtype(dtype)

            def empty(r: Rank, times: int = 1, make: Make = make) -> Any:
                return r.torch.zeros_like(make(r, times))

            if name == "all_gather_object" and "complex" in dtype:
                continue  # values() of these are not asked for
            found = EXCHANGES[name](r, None, make, empty)
            for place, each in enumerate(found):
                sender = 0 if name in FROM_FIRST else place
                if not r.torch.equal(each, make(r._replace(rank=sender))):
                    wrong.append(f"{dtype}: {each} from rank {sender}")
        return wrong

    assert world(run) == [[], []]


# ------------------------------------------------------------------ layouts


def _layout(name: str, r: Rank, x: Any) -> Any:
    """A tensor with the values of x, laid out in another way."""
    torch, n = r.torch, x.numel()
    if name == "every second":
        return torch.zeros(2 * n, dtype=x.dtype)[::2].copy_(x)
    if name == "a column":
        return torch.zeros(n, 3, dtype=x.dtype)[:, 1].copy_(x)
    if name == "conjugated":
        return x.conj().clone().conj()
    if name == "negated":
        return torch.complex(torch.zeros(n, dtype=x.dtype), -x).conj().imag
    if name == "negated in one piece":
        return (-x)._neg_view()
    if name == "with a gradient":
        return x.clone().requires_grad_()
    return x.clone()


LAYOUTS: Final = (
    "every second|a column|conjugated|negated|negated in one piece|with a gradient".split("|")
)


@pytest.mark.parametrize("name", [*REDUCTIONS, *EXCHANGES])
def test_tensors_may_have_any_layout(world: World, name: str) -> None:
    def run(r: Rank) -> list[str]:
        wrong = []
        for layout, odd in itertools.product(LAYOUTS, ("sent", "received")):
            plain = maker_of_dtype("complex64" if layout == "conjugated" else "float32", 5)

            def laid(r: Rank, times: int = 1, *, how: str = layout, make: Make = plain) -> Any:
                return _layout(how, r, make(r, times))

            makers = (laid, plain) if odd == "sent" else (plain, laid)
            if name in REDUCTIONS:
                found = REDUCTIONS[name](r, None, *makers, r.dist.ReduceOp.SUM)
                both = plain(r._replace(rank=0)) + plain(r._replace(rank=1))
                wanted = [both] * len(found)
            else:
                with r.torch.no_grad():  # of objects the test itself copies
                    found = EXCHANGES[name](r, None, *makers)
                first = name in FROM_FIRST
                wanted = [plain(r._replace(rank=0 if first else i)) for i in range(len(found))]
            for x, y in zip(found, wanted, strict=True):
                if not r.torch.equal(x.detach(), y):
                    wrong.append(f"{layout} {odd}: {x} instead of {y}")
        return wrong

    assert world(run) == [[], []]


@pytest.mark.parametrize("name", [*REDUCTIONS, *(k for k in EXCHANGES if k != "all_gather_object")])
def test_what_cannot_be_received_is_refused_and_the_group_goes_on(world: World, name: str) -> None:
    """A tensor whose elements share a place is refused before anything is sent."""

    def run(r: Rank) -> str:
        def make_shared(r: Rank, times: int = 1) -> Any:
            return r.torch.zeros(1).expand(3 * times)

        try:
            if name in REDUCTIONS:
                both = (
                    [make_shared] * 2
                    if "scatter" not in name
                    else [maker_of_dtype("float32"), make_shared]
                )
                REDUCTIONS[name](r, None, *both, r.dist.ReduceOp.SUM)
            elif name in ("send", "recv of any"):
                r.dist.recv(make_shared(r), 1 - r.rank)
            elif name in ("broadcast", "gather"):
                r.dist.broadcast(make_shared(r), 0)
            else:
                EXCHANGES[name](r, None, maker_of_dtype("float32"), make_shared)
        except RuntimeError as error:
            assert goes_on(r, None)
            return str(error)
        return "no error"

    assert all("more than one element of the written-to tensor" in text for text in world(run))


@pytest.mark.parametrize("name", [*REDUCTIONS, *(k for k in EXCHANGES if k != "all_gather_object")])
def test_what_is_received_counts_as_written(world: World, name: str) -> None:
    def run(r: Rank) -> bool:
        made: list[Any] = []

        def make_received(r: Rank, times: int = 1) -> Any:
            made.append(r.torch.zeros(3 * times))
            return made[-1]

        if name in REDUCTIONS:
            makers = (
                (maker_of_dtype("float32"), make_received)
                if "scatter" in name
                else (make_received, make_received)
            )
            REDUCTIONS[name](r, None, *makers, r.dist.ReduceOp.SUM)
            made = [] if name == "reduce" and r.rank else made
        else:
            EXCHANGES[name](r, None, maker_of_dtype("float32"), make_received)
        return all(each._version > 0 for each in made)

    assert world(run) == [True, True]


@pytest.mark.parametrize("dense", [(), (2,)])
def test_sparse_tensors_are_added_and_coalesced(world: World, dense: tuple[int, ...]) -> None:
    def run(r: Rank) -> tuple[bool, Any, Any]:
        places = r.torch.tensor([[1, 1, 3]] if r.rank else [[0, 3]])
        values = r.torch.ones(places.shape[1], *dense) * (r.rank + 1)
        x = r.torch.sparse_coo_tensor(places, values, (4, *dense))
        r.dist.all_reduce(x)
        return x.is_coalesced(), x.indices().tolist(), x.to_dense().view(4, -1)[:, -1].tolist()

    assert world(run) == [(True, [[0, 1, 3]], [1.0, 4.0, 0.0, 3.0])] * 2


def test_a_future_may_be_asked_for_after_the_end(world: World) -> None:
    def run(r: Rank) -> bool:
        work = r.dist.all_reduce(x := r.torch.ones(2), async_op=True)
        work.wait()
        future = work.get_future()
        return bool(future.done() and future.value()[0] is x)

    assert world(run) == [True, True]


def test_a_profile_has_each_collective_with_its_time(world: World) -> None:
    def run(r: Rank) -> list[tuple[str, bool]]:
        with r.torch.profiler.profile() as profile:
            r.dist.all_reduce(r.torch.ones(2))
            r.dist.broadcast(r.torch.ones(2), 0)
        found = [e for e in profile.events() if e.name.startswith("ray:")]
        return [(e.name, e.time_range.elapsed_us() > 0) for e in found]

    assert world(run) == [[("ray:all_reduce", True), ("ray:broadcast", True)]] * 2


@pytest.mark.parametrize("root", [1, 2])
@pytest.mark.parametrize("in_world", [True, False])
@pytest.mark.parametrize("world", [3], indirect=True)
def test_the_root_is_named_by_its_rank_in_the_world_or_in_the_group(
    world: World, in_world: bool, root: int
) -> None:
    """The group has the world's ranks 1 and 2, and numbers them 0 and 1."""

    def run(r: Rank) -> Any:
        group = r.dist.new_group([1, 2])
        if r.rank == 0:
            return []
        here, number = r.rank == root, r.torch.full((1,), float(r.rank))

        def name_side(side: str) -> dict[str, int]:
            return {side: root} if in_world else {f"group_{side}": root - 1}

        r.dist.broadcast(sent := number.clone(), group=group, **name_side("src"))
        both = [number * 10, number * 100] if here else None
        r.dist.scatter(part := number.clone(), both, group=group, **name_side("src"))
        rows = [number.clone(), number.clone()] if here else None
        r.dist.gather(number, rows, group=group, **name_side("dst"))
        r.dist.reduce(total := number.clone(), group=group, **name_side("dst"))
        return [x.item() for x in (sent, part, *(rows or ()), total)]

    found = world(run)
    for rank in (1, 2):
        part, mine = root * (10 if rank == 1 else 100), rank == root
        assert found[rank] == [root, part, *[1.0, 2.0] * mine, 3.0 if mine else float(rank)]


# ------------------------------------------------------------------ threads and groups


def in_threads(count: int, run: Callable[[int], Any]) -> list[Any]:
    """Calls a function in several threads; returns its results."""
    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count), timeout=2 * SECONDS))


def every_collective(r: Rank, group: Any, mark: int) -> int:
    """The number of right results of collectives; each thread sends numbers of its own."""

    def make(r: Rank, times: int = 1) -> Any:
        return r.torch.full((40 * times,), float(100 * mark + r.rank))

    right = 0
    for collective in REDUCTIONS.values():
        total = sum(100.0 * mark + rank for rank in range(r.size))
        found = collective(r, group, make, make, r.dist.ReduceOp.SUM)
        right += all(bool((each == total).all()) for each in found)
    for name, collective in EXCHANGES.items():
        found = collective(r, group, make, make)
        senders = [0 if name in FROM_FIRST else place for place in range(len(found))]
        right += all(
            bool((each == 100.0 * mark + sender).all())
            for each, sender in zip(found, senders, strict=True)
        )
    r.dist.barrier(group)
    r.dist.monitored_barrier(group)
    return right


EACH: Final = len(REDUCTIONS) + len(EXCHANGES)


@pytest.mark.parametrize(("world", "threads"), [(2, 2), (3, 2), (2, 8)], indirect=["world"])
def test_each_thread_has_a_group_of_its_own(world: World, threads: int) -> None:
    def run(r: Rank) -> int:
        groups = [r.dist.new_group() for _ in range(threads)]
        return sum(in_threads(threads, lambda i: every_collective(r, groups[i], i + 1)))

    assert world(run) == [threads * EACH] * len(world.ranks)


def test_one_thread_waits_for_what_others_started(world: World) -> None:
    """Futures of a thread complete too, and their callbacks may use the engine."""

    def run(r: Rank) -> tuple[int, list[float]]:
        groups = [r.dist.new_group() for _ in range(4)]
        tensors = [r.torch.full((2000,), float(i)) for i in range(40)]
        told: list[float] = []

        def start(i: int) -> list[Any]:
            mine = tensors[i::4]
            works = [r.dist.all_reduce(each, group=groups[i], async_op=True) for each in mine]
            for work in works:
                work.get_future().add_done_callback(lambda f: told.append(f.value()[0].sum()))
            return works

        works = [work for each in in_threads(4, start) for work in each]
        in_threads(3, lambda i: [work.wait() for work in works[i::3]])
        right = sum(bool((each == 2 * i).all()) for i, each in enumerate(tensors))
        while len(told) < 40:  # another thread may be about to tell the last
            pass
        return right, sorted(float(each) for each in told)

    assert world(run) == [(40, [4000.0 * i for i in range(40)])] * 2


def test_hooks_of_a_backward_wait_while_other_threads_wait(world: World) -> None:
    """The backward has the engine, and needs what another thread was about to resume."""

    def run(r: Rank) -> int:
        groups = [r.dist.new_group() for _ in range(4)]

        def train(i: int) -> int:
            right = 0
            for step in range(10):
                x = r.torch.full((2000,), float(r.rank + step), requires_grad=True)
                y = x.clone()

                def hook(g: Any) -> Any:
                    r.dist.all_reduce(g := g.clone(), group=groups[i])
                    return g

                y.register_hook(hook)
                (y * y).sum().backward()
                right += bool((x.grad == 2 * (2 * step + 1)).all())
            return right

        def reduce(i: int) -> int:
            right = 0
            for step in range(40):
                r.dist.all_reduce(x := r.torch.full((2000,), float(step)), group=groups[i])
                right += bool((x == 2 * step).all())
            return right

        return sum(in_threads(4, lambda i: (reduce if i else train)(i)))

    assert world(run) == [130, 130]


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize("length", [3, 30_000])
@pytest.mark.parametrize("world", [3], indirect=True)
def test_group_that_is_given_up_leaves_the_others_alone(world: World, length: int) -> None:
    """A group of the same ranks goes on, with a collective under way, and so do other threads."""

    def run(r: Rank) -> tuple[str, str, int, bool]:
        bad, good, busy = (r.dist.new_group() for _ in range(3))
        work = r.dist.all_reduce(x := r.torch.ones(length), group=good, async_op=True)
        said = []

        def break_it() -> None:
            for _ in range(2):
                try:
                    r.dist.all_reduce(r.torch.ones(length + (r.rank == 1)), group=bad)
                except r.dist.DistBackendError as error:
                    said.append(str(error))

        thread = threading.Thread(target=break_it)
        thread.start()
        right = every_collective(r, busy, 1)
        thread.join()
        work.wait()
        assert bool((x == 3).all())
        first, second = said
        return first, second, right, goes_on(r, None) and goes_on(r, good)

    for first, second, right, on in world(run):
        assert "ranks disagree" in first
        assert "the group is broken" in second
        assert (right, on) == (EACH, True)


def test_group_of_the_same_ranks_can_be_made_again(world: World) -> None:
    for local in False, True:

        def run(r: Rank, local: bool = local) -> bool:
            for _ in range(3):
                group = r.dist.new_group([0, 1], use_local_synchronization=local)
                with pytest.raises(r.dist.DistBackendError, match="disagree"):
                    r.dist.all_reduce(r.torch.ones(3 + r.rank), group=group)
                r.dist.destroy_process_group(group)
            again = r.dist.new_group([0, 1], use_local_synchronization=local)
            return goes_on(r, again) and goes_on(r, None)

        assert world(run) == [True, True]


def test_group_that_timed_out_leaves_the_others_alone(world: World) -> None:
    def run(r: Rank) -> bool:
        group = r.dist.new_group(timeout=timedelta(seconds=0.2))
        if r.rank == 0:
            with pytest.raises(r.dist.DistBackendError, match="Timed out waiting 200ms for rank 1"):
                r.dist.barrier(group)
        r.dist.barrier()
        if r.rank == 1:
            r.dist.barrier(group)  # what rank 0 sent for it is there
        with pytest.raises(r.dist.DistBackendError, match="Timed out"):
            r.dist.barrier(group)
        return goes_on(r, None)

    assert world(run) == [True, True]


WRONG: Final[dict[str, Callable[[Rank, Any], Any]]] = {
    "all_reduce, no tensor": lambda r, g: r.dist.all_reduce(3, group=g),
    "all_reduce, no op": lambda r, g: r.dist.all_reduce(r.torch.ones(1), "SUM", g),
    "all_reduce, premultiplied": lambda r, g: r.dist.all_reduce(
        r.torch.ones(1), r.dist.ReduceOp.PREMUL_SUM, g
    ),
    "all_reduce, sparse MAX": lambda r, g: r.dist.all_reduce(
        r.torch.eye(2).to_sparse(), r.dist.ReduceOp.MAX, g
    ),
    "all_reduce, meta": lambda r, g: r.dist.all_reduce(r.torch.ones(1, device="meta"), group=g),
    "reduce, no such rank": lambda r, g: r.dist.reduce(r.torch.ones(1), 7, group=g),
    "broadcast, sparse": lambda r, g: r.dist.broadcast(r.torch.eye(2).to_sparse(), 0, g),
    "all_gather, too few": lambda r, g: r.dist.all_gather([r.torch.ones(1)], r.torch.ones(1), g),
    "all_gather, other sizes": lambda r, g: r.dist.all_gather(
        [r.torch.ones(1), r.torch.ones(2)], r.torch.ones(1), g
    ),
    "all_gather, other dtypes": lambda r, g: r.dist.all_gather(
        [r.torch.ones(1)] * 2, r.torch.ones(1).double(), g
    ),
    "all_gather_into_tensor, size": lambda r, g: r.dist.all_gather_into_tensor(
        r.torch.ones(3), r.torch.ones(1), g
    ),
    "gather, lists everywhere": lambda r, g: r.dist.gather(
        r.torch.ones(1), [r.torch.ones(1)] * (2 if r.rank else 3), 0, g
    ),
    "scatter, too many": lambda r, g: r.dist.scatter(
        r.torch.ones(1), [r.torch.ones(1)] * (1 if r.rank else 3), 0, g
    ),
    "all_to_all, own sizes differ": lambda r, g: r.dist.all_to_all(
        [r.torch.ones(2)] * 2, [r.torch.ones(1)] * 2, g
    ),
    "all_to_all_single, sizes": lambda r, g: r.dist.all_to_all_single(
        r.torch.ones(3), r.torch.ones(3), [1, 1], [2, 1], g
    ),
    "reduce_scatter, too few": lambda r, g: r.dist.reduce_scatter(
        r.torch.ones(1), [r.torch.ones(1)], group=g
    ),
    "reduce_scatter_tensor, size": lambda r, g: r.dist.reduce_scatter_tensor(
        r.torch.ones(1), r.torch.ones(3), group=g
    ),
    "send to itself": lambda r, g: r.dist.send(r.torch.ones(1), r.rank, g),
    "recv, tag": lambda r, g: r.dist.recv(r.torch.ones(1), 1 - r.rank, g, tag=-1),
    "all_gather_object, cannot be pickled": lambda r, g: r.dist.all_gather_object(
        [None, None], lambda: 0, g
    ),
    "barrier, devices": lambda r, g: r.dist.barrier(g, device_ids=[0]),
}


def test_arguments_that_are_refused_break_nothing(world: World) -> None:
    def run(r: Rank) -> list[str]:
        group, wrong = r.dist.new_group(), []
        for name, call in WRONG.items():
            try:
                call(r, group)
                wrong.append(f"{name}: no error")
            except r.dist.DistBackendError as error:
                wrong.append(f"{name}: {error}")
            except Exception:
                pass
            if not (goes_on(r, group) and goes_on(r, None)):
                wrong.append(f"{name}: does not go on")
        return wrong

    assert world(run) == [[], []]
