"""Datasets, samplers, the loader, and the digits that ship with the package."""

from __future__ import annotations

import gc
import itertools
import multiprocessing
import os
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

import pygrad
from pygrad.datasets import Digits
from pygrad.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    dataloader,
    random_split,
)


class Squares(Dataset):
    """The squares below 10."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, k: int) -> tuple[Any, int]:
        return pygrad.tensor([float(k)]), k * k


def test_loader_collates_batches() -> None:
    batches = list(DataLoader(Squares(), batch_size=4))
    assert [x.shape for x, _ in batches] == [(4, 1), (4, 1), (2, 1)]
    assert batches[1][1].tolist() == [16, 25, 36, 49]


def test_iterator_takes_a_loader_of_another_class() -> None:
    class Own:
        _dataset_kind = dataloader._DatasetKind.Iterable
        _auto_collation = drop_last = pin_memory = False
        _IterableDataset_len_called = generator = None
        num_workers = timeout = 0
        _index_sampler = range(3)
        dataset = property(lambda self: iter("abc"))

        def collate_fn(self, item: Any) -> Any:
            return item

    batches = dataloader._SingleProcessDataLoaderIter(Own())
    assert list(batches) == ["a", "b", "c"]


def test_last_batch_may_be_dropped() -> None:
    loader = DataLoader(Squares(), batch_size=4, drop_last=True)
    assert len(loader) == len(list(loader)) == 2


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"batch_size": 2}, [[0, 1], [2, 3], [4]]),
        ({"batch_size": 2, "drop_last": True}, [[0, 1], [2, 3]]),
        ({"batch_size": 1}, [[0], [1], [2], [3], [4]]),
        ({"batch_size": None}, [0, 1, 2, 3, 4]),
    ],
)
def test_stream_that_iter_starts_again_is_iterated_once(options: Any, wanted: Any) -> None:
    class Restarting(IterableDataset):
        """Its own iterator, as the pipelines of transformers are."""

        def __iter__(self) -> Restarting:
            self.next = 0
            return self

        def __next__(self) -> int:
            if self.next == 5:
                raise StopIteration
            self.next += 1
            return self.next - 1

    loader = DataLoader(Restarting(), collate_fn=lambda batch: batch, **options)
    assert list(itertools.islice(loader, 9)) == wanted
    assert list(itertools.islice(loader, 9)) == wanted


def test_shuffling_follows_the_seed() -> None:
    def order() -> list[int]:
        pygrad.manual_seed(3)
        return [v for _, y in DataLoader(Squares(), batch_size=3, shuffle=True) for v in y.tolist()]

    assert order() == order()
    assert sorted(order()) == [k * k for k in range(10)] != order()


def test_tensor_dataset_and_split() -> None:
    data = TensorDataset(pygrad.arange(10), pygrad.arange(10) * 2)
    first, second = random_split(data, [7, 3])
    assert isinstance(first, Subset)
    assert sorted(x.item() for part in (first, second) for x, _ in part) == list(range(10))


# ------------------------------------------------------------------ workers

needs_fork = pytest.mark.skipif(
    "fork" not in multiprocessing.get_all_start_methods(), reason="no fork here"
)


def fork_loader(dataset: Any, n: int = 2, **options: Any) -> DataLoader[Any]:
    """A loader with workers that need nothing pickled."""
    return DataLoader(dataset, num_workers=n, multiprocessing_context="fork", **options)


def have_ended(workers: list[Any]) -> bool:
    return not any(process.is_alive() for process in workers)


class Each(Dataset):
    """What a function makes of the numbers below 8."""

    def __init__(self, function: Any) -> None:
        self.function = function

    def __len__(self) -> int:
        return 8

    def __getitem__(self, k: int) -> Any:
        return self.function(k)


@needs_fork
def test_workers_give_the_batches_in_order() -> None:
    here = [(x.tolist(), y.tolist()) for x, y in DataLoader(Squares(), batch_size=3)]
    for options in ({}, {"prefetch_factor": 1}, {"persistent_workers": True}):
        loader = fork_loader(Squares(), batch_size=3, **options)
        for _ in range(2):
            assert [(x.tolist(), y.tolist()) for x, y in loader] == here


def test_workers_may_be_spawned() -> None:
    data = TensorDataset(pygrad.arange(5))
    loader = DataLoader(data, batch_size=2, num_workers=1, multiprocessing_context="spawn")
    assert [x.tolist() for (x,) in loader] == [[0, 1], [2, 3], [4]]


@needs_fork
def test_workers_end_with_the_pass_or_the_iterator() -> None:
    loader = fork_loader(Squares())
    for _ in loader:
        children = multiprocessing.active_children()
    assert len(children) == 2
    assert have_ended(children)
    for _ in loader:
        children = multiprocessing.active_children()
        break
    gc.collect()
    assert len(children) == 2
    assert have_ended(children)


@needs_fork
def test_persistent_workers_stay_until_the_loader_goes() -> None:
    loader = fork_loader(Each(lambda k: os.getpid()), batch_size=None, persistent_workers=True)
    first = [next(iter(loader)) for _ in range(3)]  # passes that are not finished
    assert len({*first, *loader, *loader}) == 2
    children = multiprocessing.active_children()
    assert not have_ended(children)
    del loader
    gc.collect()
    assert have_ended(children)


@needs_fork
@pytest.mark.parametrize("end", ["pass", "raise OSError", "os.kill(os.getpid(), 9)"])
def test_no_worker_outlives_the_program(end: str) -> None:
    code = f"""
import os
from pygrad.utils.data import DataLoader
batches = iter(DataLoader(range(99), num_workers=2, multiprocessing_context="fork"))
print(next(batches).item(), flush=True)
{end}
"""
    # It has the output to its end only when no process is left that could write to it.
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert run.stdout == "0\n", run.stderr


@needs_fork
@pytest.mark.parametrize(
    ("end", "words"),
    [(lambda: os._exit(3), "exit code 3"), (lambda: os.kill(os.getpid(), 9), "signal: Killed")],
)
def test_worker_that_dies(end: Any, words: str) -> None:
    batches = iter(fork_loader(Each(lambda k: end() if k == 0 else k), batch_size=None))
    with pytest.raises(
        RuntimeError, match=r"worker \(pid\(s\) \d+\) exited unexpectedly"
    ) as caught:
        next(batches)
    assert words in str(caught.value.__cause__)
    assert next(batches) == 1


@needs_fork
def test_worker_that_takes_too_long() -> None:
    batches = iter(fork_loader(Each(lambda k: time.sleep(k)), 1, batch_size=None, timeout=0.4))
    next(batches)
    with pytest.raises(RuntimeError, match="timed out after 0.4 seconds"):
        next(batches)


def test_prefetching_nothing_is_refused() -> None:
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(DataLoader(Squares(), num_workers=1, prefetch_factor=0))


@needs_fork
def test_out_of_order_takes_what_is_ready() -> None:
    data = Each(lambda k: time.sleep(0.5 * (k == 0)) or k)
    loader = fork_loader(data, batch_size=None, in_order=False)
    seen = list(loader)
    assert sorted(seen) == list(range(8))
    assert seen[0] == 1
    assert list(fork_loader(data, batch_size=None)) == list(range(8))


@needs_fork
def test_large_batches_and_indices_pass_the_pipes() -> None:
    class Rows(Dataset):
        def __getitem__(self, k: int) -> Any:
            return pygrad.full((200,), float(k % 7))

    loader = fork_loader(
        Rows(), 1, batch_sampler=[list(range(k, k + 20_000)) for k in (10**9, 10**9)]
    )
    (first, second) = loader
    assert first.shape == (20_000, 200)
    assert bool((first == second).all())


@needs_fork
def test_graphs_do_not_leave_a_worker() -> None:
    leaf = pygrad.ones(2, requires_grad=True)
    (first, *_) = fork_loader(Each(lambda k: leaf), 1, batch_size=None)
    assert first.requires_grad
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        next(iter(fork_loader(Each(lambda k: leaf * k), 1, batch_size=None)))


@needs_fork
def test_exception_of_a_type_without_a_name() -> None:
    class OddError(Exception):
        pass

    def fail(k: int) -> None:
        raise OddError("so")

    with pytest.raises(RuntimeError, match=r"Caught OddError in DataLoader worker process 0"):
        next(iter(fork_loader(Each(fail))))


# ------------------------------------------------------------------ the digits


def test_digits_are_the_ones_of_uci() -> None:
    train, test = Digits(train=True), Digits(train=False)
    assert len(train) + len(test) == 1797
    image, label = train[0]
    assert image.numel() == 64
    assert 0 <= int(label) <= 9
    labels = np.concatenate([train.targets.numpy(), test.targets.numpy()])
    assert np.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
