"""`pygrad.utils.data` beside `torch.utils.data`: batches, draws, warnings and errors."""

from __future__ import annotations

import collections
import importlib
import inspect
import os
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed: make parity installs it")

import torch.utils.data as theirs  # noqa: E402

import pygrad  # noqa: E402
import pygrad.utils.data as ours  # noqa: E402


class Pair(collections.namedtuple("Pair", "a b")):
    """A named tuple, which collating rebuilds."""


def plain(value: Any) -> Any:
    """A value of either library in terms both share."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return str(value.dtype).split(".")[-1], tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return type(value).__name__, {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [plain(item) for item in value]
    return value


def outcome(run: Callable[[], Any]) -> tuple[Any, Any]:
    """What came out, or the exception's type and words, and the warnings on the way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = plain(run())
        except Exception as error:
            result = (type(error).__name__, str(error))
    return result, [(w.category.__name__, str(w.message)) for w in caught]


def images(t: Any) -> Any:
    return t.arange(44.0).reshape(11, 4)


def labels(t: Any) -> Any:
    return t.arange(11)


def ds_map(d: Any, items: list[Any]) -> Any:
    class Listed(d.Dataset):
        def __getitem__(self, index: int) -> Any:
            return items[index]

        def __len__(self) -> int:
            return len(items)

    return Listed()


def stream(d: Any, n: int, length: int | None = None) -> Any:
    class Counting(d.IterableDataset):
        def __iter__(self) -> Any:
            return iter(range(n))

        def __repr__(self) -> str:
            return "Counting"

    if length is not None:
        Counting.__len__ = lambda self: length
    return Counting()


def shuffle_with_generator(t: Any, d: Any) -> Any:
    generator = t.Generator().manual_seed(7)
    data = d.TensorDataset(images(t), labels(t))
    loader = d.DataLoader(data, 4, shuffle=True, drop_last=True, generator=generator)
    return [list(loader), list(loader), t.rand(2, generator=generator)]


CASES: dict[str, Callable[[Any, Any], Any]] = {
    "seq": lambda t, d: list(d.DataLoader(d.TensorDataset(images(t), labels(t)), batch_size=4)),
    "shuffle": lambda t, d: [
        list(d.DataLoader(d.TensorDataset(images(t), labels(t)), batch_size=4, shuffle=True))
        for _ in range(3)
    ],
    "shuffle_gen": shuffle_with_generator,
    "shuffle_list": lambda t, d: list(d.DataLoader(list(range(9)), batch_size=2, shuffle=True)),
    "bsnone": lambda t, d: list(
        d.DataLoader(d.TensorDataset(images(t), labels(t)), batch_size=None, shuffle=True)
    ),
    "bsnone_np": lambda t, d: list(
        d.DataLoader(
            ds_map(
                d,
                [
                    {
                        "a": np.arange(3),
                        "b": ("x", np.float32(2)),
                        "c": Pair(np.arange(2), b"q"),
                        "d": [np.array(["s"])],
                    }
                ],
            ),
            batch_size=None,
        )
    ),
    "sub": lambda t, d: list(
        d.DataLoader(
            d.Subset(d.Subset(d.TensorDataset(images(t), labels(t)), [9, -1, 2, 3]), [1, 0, 3]),
            batch_size=2,
        )
    ),
    "split": lambda t, d: [
        list(part) for part in d.random_split(d.TensorDataset(images(t), labels(t)), [5, 6])
    ],
    "splitf": lambda t, d: [
        part.indices
        for part in d.random_split(range(10), [0.55, 0.35, 0.1], t.Generator().manual_seed(1))
    ],
    "splitf_none": lambda t, d: [
        part.indices for part in d.random_split(range(10), [0.5, 0.5], None)
    ],
    "split0": lambda t, d: [part.indices for part in d.random_split(range(2), [0.1, 0.1, 0.8])],
    "splitbad": lambda t, d: d.random_split(range(10), [3, 3]),
    "splitbad2": lambda t, d: d.random_split(range(10), [1.5, -0.5]),
    "rs_rep": lambda t, d: list(d.RandomSampler(range(7), replacement=True, num_samples=70)),
    "rs_rep_gen": lambda t, d: list(
        d.RandomSampler(range(7), replacement=True, num_samples=32, generator=t.default_generator)
    ),
    "rs_more": lambda t, d: list(d.RandomSampler(range(7), num_samples=17)),
    "rs_few": lambda t, d: list(d.RandomSampler(range(7), num_samples=3)),
    "rs_bad": lambda t, d: d.RandomSampler(range(7), replacement=1),
    "rs_bad2": lambda t, d: d.RandomSampler(range(7), num_samples=0),
    "rs_empty": lambda t, d: d.RandomSampler([]),
    "srs": lambda t, d: list(d.SubsetRandomSampler([4, 5, 9])),
    "wrs": lambda t, d: list(d.WeightedRandomSampler([0.1, 0.5, 3.0], 9)),
    "wrs2": lambda t, d: list(d.WeightedRandomSampler([0.1, 0.5, 3.0], 3, replacement=False)),
    "wrs_bad": lambda t, d: d.WeightedRandomSampler([0.1, 0.5, 3.0], True),
    "wrs_bad2": lambda t, d: d.WeightedRandomSampler([[0.1, 0.5, 3.0]], 3),
    "wrs_bad3": lambda t, d: d.WeightedRandomSampler([0.1, 0.5, 3.0], 3, 1),
    "bs": lambda t, d: (
        [list(d.BatchSampler(range(10), 3, last)) for last in (True, False)]
        + [len(d.BatchSampler(range(10), 3, last)) for last in (True, False)]
    ),
    "bs_bad": lambda t, d: d.BatchSampler(range(3), 0, False),
    "bs_bad2": lambda t, d: d.BatchSampler(range(3), True, False),
    "bs_bad3": lambda t, d: d.BatchSampler(range(3), 1, 0),
    "dl_bs0": lambda t, d: d.DataLoader(range(3), batch_size=0),
    "dl_ex1": lambda t, d: d.DataLoader(range(3), shuffle=True, sampler=[0]),
    "dl_ex2": lambda t, d: d.DataLoader(range(3), batch_sampler=[[0]], batch_size=2),
    "dl_ex3": lambda t, d: d.DataLoader(range(3), batch_size=None, drop_last=True),
    "dl_w": lambda t, d: d.DataLoader(range(3), num_workers=-1),
    "dl_t": lambda t, d: d.DataLoader(range(3), timeout=-1),
    "dl_t2": lambda t, d: list(d.DataLoader(range(3), timeout=1)),
    "dl_p": lambda t, d: d.DataLoader(range(3), prefetch_factor=2),
    "dl_pw": lambda t, d: d.DataLoader(range(3), persistent_workers=True),
    "dl_mc": lambda t, d: d.DataLoader(range(3), multiprocessing_context="fork"),
    "dl_pin": lambda t, d: list(d.DataLoader(range(3), pin_memory=True)),
    "dl_set": lambda t, d: setattr(d.DataLoader(range(3)), "batch_size", 3),
    "dl_bsamp": lambda t, d: [
        list(loader) + [len(loader), loader.batch_size, loader.drop_last]
        for loader in [
            d.DataLoader(d.TensorDataset(images(t), labels(t)), batch_sampler=[[0, 3], [5]])
        ]
    ],
    "dl_samp": lambda t, d: [
        list(loader) + [len(loader)]
        for loader in [
            d.DataLoader(d.TensorDataset(images(t), labels(t)), sampler=[0, 3, -1], batch_size=2)
        ]
    ],
    "dl_samp_tensor": lambda t, d: list(
        d.DataLoader(d.TensorDataset(images(t), labels(t)), sampler=t.tensor([2, 1]), batch_size=2)
    ),
    "dl_oob": lambda t, d: list(
        d.DataLoader(d.TensorDataset(images(t), labels(t)), sampler=[0, 30], batch_size=2)
    ),
    "dl_keys": lambda t, d: list(d.DataLoader({"a": 1, "b": 2}, sampler=["a", "b"], batch_size=2)),
    "dl_it": lambda t, d: [
        list(d.DataLoader(stream(d, 7), batch_size=3, drop_last=last)) for last in (False, True)
    ],
    "dl_it_none": lambda t, d: list(d.DataLoader(stream(d, 3), batch_size=None)),
    "dl_it_len": lambda t, d: [
        (len(loader), list(loader)) for loader in [d.DataLoader(stream(d, 7, 3), batch_size=1)]
    ],
    "dl_it_len2": lambda t, d: [
        len(d.DataLoader(stream(d, 7, 7), batch_size=size, drop_last=last))
        for size, last in ((2, True), (2, False), (None, False))
    ],
    "dl_it_nolen": lambda t, d: len(d.DataLoader(stream(d, 7))),
    "dl_it_sh": lambda t, d: d.DataLoader(stream(d, 7), shuffle=True),
    "dl_it_sh2": lambda t, d: list(d.DataLoader(stream(d, 2), shuffle=False)),
    "dl_it_s": lambda t, d: d.DataLoader(stream(d, 7), sampler=[1]),
    "dl_it_bs": lambda t, d: d.DataLoader(stream(d, 7), batch_sampler=[[1]]),
    "chain": lambda t, d: list(d.DataLoader(stream(d, 3) + stream(d, 2), batch_size=2)),
    "chainlen": lambda t, d: len(d.ChainDataset([stream(d, 3, 3), stream(d, 2, 2)])),
    "chainbad": lambda t, d: list(d.ChainDataset([d.TensorDataset(images(t))])),
    "concat": lambda t, d: list(
        d.DataLoader(
            d.TensorDataset(images(t), labels(t)) + d.TensorDataset(images(t), -labels(t)),
            batch_size=5,
            shuffle=True,
        )
    ),
    "concat_neg": lambda t, d: [
        c[i] for c in [d.ConcatDataset([[1, 2], [3]])] for i in (-1, -3, 0, 2)
    ],
    "concat_neg2": lambda t, d: d.ConcatDataset([[1, 2], [3]])[-4],
    "concat_oob": lambda t, d: d.ConcatDataset([[1, 2], [3]])[3],
    "concat_bad": lambda t, d: d.ConcatDataset([]),
    "concat_bad2": lambda t, d: d.ConcatDataset([stream(d, 2)]),
    "stack": lambda t, d: list(
        d.DataLoader(
            d.StackDataset(d.TensorDataset(images(t), labels(t)), list(range(11))), batch_size=4
        )
    ),
    "stackd": lambda t, d: list(
        d.DataLoader(d.StackDataset(a=d.Subset(list("abcd"), [1, 2]), b=[1.0, 2.0]), batch_size=2)
    ),
    "stack_bad": lambda t, d: d.StackDataset([1], [1, 2]),
    "stack_bad2": lambda t, d: d.StackDataset(),
    "stack_bad3": lambda t, d: d.StackDataset([1], b=[1]),
    "td_bad": lambda t, d: d.TensorDataset(images(t), labels(t)[:3]),
    "abstract": lambda t, d: d.Dataset()[0],
    "abstract2": lambda t, d: list(d.Sampler()),
    "grad": lambda t, d: [
        b[0].requires_grad
        for b in d.DataLoader(d.TensorDataset(images(t).clone().requires_grad_()), batch_size=8)
    ],
    "perm": lambda t, d: [
        b[0].is_contiguous()
        for b in d.DataLoader(d.TensorDataset(t.randn(5, 3, 4).permute(0, 2, 1)), batch_size=2)
    ],
}
SAMPLES = [
    [1, 2],
    [True, False],
    [1.5, 2],
    ["a", "b"],
    [b"a"],
    [np.arange(3)] * 2,
    [np.float32(1), np.float32(2)],
    [np.bool_(1)],
    [np.array("a")],
    [{"a": 1, "b": [1, 2]}] * 2,
    [collections.OrderedDict(a=1)] * 2,
    [Pair(1, 2), Pair(3, 4)],
    [[1, 2], [3]],
    [[1, 2], [3, 4]],
    [(1, "a"), (2, "b")],
    [range(3), range(3)],
    [object()],
    [None],
    [{1}],
    [np.float64(1.0)],
    [collections.defaultdict(int, a=1)] * 2,
]
for i, b in enumerate(SAMPLES):
    CASES[f"collate{i}"] = lambda t, d, b=b: d.default_collate(b)
    CASES[f"convert{i}"] = lambda t, d, b=b: d.default_convert(b)
CASES["collate_tensors"] = lambda t, d: d.default_collate([t.ones(2), t.zeros(2)])
CASES["collate_unequal"] = lambda t, d: d.default_collate([t.ones(2), t.zeros(3)])


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    seen = []
    for t, d in ((torch, theirs), (pygrad, ours)):
        t.manual_seed(3)
        result = outcome(lambda t=t, d=d: CASES[name](t, d))
        seen.append((result, t.rand(2).tolist()))
    assert seen[1] == seen[0]


def shard(d: Any, n: int) -> Any:
    """An iterable dataset of which each worker gives its share."""

    class Shard(d.IterableDataset):
        def __iter__(self) -> Any:
            info = d.get_worker_info()
            yield from range(info.id, n, info.num_workers)

        def __len__(self) -> int:
            return n // 2

        def __str__(self) -> str:
            return "shard"

    return Shard()


def make_dataset(t: Any, d: Any) -> Any:
    """A dataset of what every generator draws, and the worker's number."""

    class Drawn(d.Dataset):
        def __len__(self) -> int:
            return 7

        def __getitem__(self, k: int) -> Any:
            info = d.get_worker_info()
            assert info.dataset is self
            own = [info.id, info.num_workers, info.seed, info.rng is None, info.worker_method]
            return [k, t.rand(2), random.random(), float(np.random.rand()), *own]

    return Drawn()


def failing(d: Any, error: Callable[[], Exception]) -> Any:
    class Failing(d.Dataset):
        def __len__(self) -> int:
            return 4

        def __getitem__(self, k: int) -> Any:
            if k == 1:
                raise error()
            return k

    return Failing()


class EagerOrder:
    """A sampler that draws as soon as it is asked for an iterator."""

    def __init__(self, t: Any) -> None:
        self.t = t

    def __iter__(self) -> Any:
        return iter(self.t.randperm(6).tolist())


class TwoArgumentsError(Exception):
    def __init__(self, a: int, b: int) -> None:
        super().__init__(a, b)


def two_passes(loader: Any) -> Any:
    return [list(loader), list(loader)]


def stepwise(loader: Any, n: int) -> Any:
    """What each of n steps gave; of an exception only its words before the worker's traceback."""
    batches, seen = iter(loader), []
    for _ in range(n):
        try:
            seen.append(next(batches))
        except Exception as error:
            seen.append([type(error).__name__, str(error).partition("\n")[0]])
            seen.append(str(error).rstrip().rpartition("\n")[2])
    return seen


def many(d: Any, dataset: Any, n: int = 2, **options: Any) -> Any:
    """A loader with workers that need nothing pickled."""
    return d.DataLoader(dataset, num_workers=n, multiprocessing_context="fork", **options)


WORKERS: dict[str, Callable[[Any, Any], Any]] = {
    "map": lambda t, d: two_passes(
        many(d, d.TensorDataset(images(t), labels(t)), batch_size=3, shuffle=True)
    ),
    "draws": lambda t, d: two_passes(many(d, make_dataset(t, d), batch_size=None)),
    "draws_persistent": lambda t, d: two_passes(
        many(d, make_dataset(t, d), batch_size=2, shuffle=True, persistent_workers=True)
    ),
    "draws_generator": lambda t, d: list(
        many(d, make_dataset(t, d), generator=t.Generator().manual_seed(5), shuffle=True)
    ),
    "eager_sampler": lambda t, d: two_passes(
        many(d, range(6), sampler=EagerOrder(t), batch_size=None)
    ),
    "custom_collate": lambda t, d: list(many(d, range(5), batch_size=2, collate_fn=sum)),
    "tensor_sampler": lambda t, d: list(many(d, range(5), sampler=t.tensor([3, 1]))),
    "iterable": lambda t, d: list(many(d, shard(d, 9), batch_size=2)),
    "iterable_drop": lambda t, d: list(many(d, shard(d, 9), batch_size=2, drop_last=True)),
    "iterable_single": lambda t, d: list(many(d, shard(d, 5), 1, batch_size=None)),
    "iterable_persistent": lambda t, d: two_passes(many(d, shard(d, 5), persistent_workers=True)),
    "iterable_length": lambda t, d: [
        (len(loader), str(len(list(loader)))) for loader in [many(d, shard(d, 6), batch_size=None)]
    ],
    "init": lambda t, d: list(
        many(d, make_dataset(t, d), worker_init_fn=lambda k: t.manual_seed(k), batch_size=None)
    ),
    "init_fails": lambda t, d: stepwise(many(d, range(4), worker_init_fn=lambda k: 1 // 0), 1),
    "key": lambda t, d: stepwise(many(d, failing(d, lambda: KeyError("so")), batch_size=None), 5),
    "index": lambda t, d: stepwise(many(d, failing(d, lambda: IndexError(2)), batch_size=None), 5),
    "arguments": lambda t, d: stepwise(
        many(d, failing(d, lambda: TwoArgumentsError(1, 2)), batch_size=None), 5
    ),
    "stop": lambda t, d: list(many(d, failing(d, lambda: StopIteration(1)), batch_size=None)),
    "empty": lambda t, d: list(many(d, [])),
    "fields": lambda t, d: [
        (w.prefetch_factor, w.multiprocessing_context.get_start_method(), w.in_order, len(w))
        for w in [many(d, range(3), batch_size=2)]
    ],
    "iterator": lambda t, d: [len(i) for i in [iter(many(d, range(3), batch_size=2))]],
    "pin": lambda t, d: list(many(d, range(3), pin_memory=True)),
    "bad_context": lambda t, d: d.DataLoader(
        range(3), num_workers=1, multiprocessing_context="thread"
    ),
    "bad_context2": lambda t, d: d.DataLoader(range(3), num_workers=1, multiprocessing_context=3),
    "bad_prefetch": lambda t, d: d.DataLoader(range(3), num_workers=1, prefetch_factor=-1),
    "bad_timeout": lambda t, d: d.DataLoader(range(3), num_workers=1, timeout=-1),
    "too_many": lambda t, d: d.DataLoader(range(3), num_workers=9999).num_workers,
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("name", WORKERS)
def test_workers(name: str) -> None:
    seen = []
    for t, d in ((torch, theirs), (pygrad, ours)):
        t.manual_seed(3)
        result = outcome(lambda t=t, d=d: WORKERS[name](t, d))
        seen.append((result, t.rand(2).tolist()))
    assert seen[1] == seen[0]


@pytest.mark.parametrize(
    "name", sorted(set(ours.__all__) - {"Dataset", "IterableDataset", "Sampler"})
)
def test_signature(name: str) -> None:
    def parameters(function: Any) -> list[Any]:
        return [
            # A generator that is not given means the default one in both.
            (p.name, p.kind, None if p.name == "generator" else p.default)
            for p in inspect.signature(function).parameters.values()
        ]

    assert parameters(getattr(ours, name)) == parameters(getattr(theirs, name))


@pytest.mark.parametrize("workers", [0, 1])
def test_iterator_of_another_loader(workers: int) -> None:
    """fastai has a loader of its own, and gives it to the iterators of PyTorch."""

    def batches(d: Any) -> list[Any]:
        module = importlib.import_module(f"{d.__name__}.dataloader")

        class Loader:
            _dataset_kind, _index_sampler = module._DatasetKind.Iterable, range(9)
            _auto_collation, drop_last, in_order = False, False, True
            _IterableDataset_len_called = None
            num_workers, timeout, prefetch_factor, persistent_workers = workers, 0, 2, False
            pin_memory, pin_memory_device, generator = False, "", None
            multiprocessing_context = worker_init_fn = None

            def __init__(self) -> None:
                self.dataset, self.sampler = [3, 4, 5], None

            def _get_shared_seed(self) -> None: ...

            def collate_fn(self, sample: int) -> int:
                return 10 * sample

        kind = "_MultiProcessing" if workers else "_SingleProcess"
        return list(getattr(module, f"{kind}DataLoaderIter")(Loader()))

    assert batches(ours) == batches(theirs) == [30, 40, 50]
