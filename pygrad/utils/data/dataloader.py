"""The loader, which makes batches of samples."""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, cast

from ..._tensor import namespace as pygrad
from ...autograd import profiler
from .._collate import default_collate, default_convert
from ._fetch import Fetcher, get_worker_info
from ._utils.fetch import _BaseDatasetFetcher, _IterableDatasetFetcher, _MapDatasetFetcher
from .dataset import Dataset, IterableDataset
from .sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    _draw_seed,
)

if TYPE_CHECKING:
    from ._workers import Workers

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")
_collate_fn_t = Callable[[list[T]], Any]
_worker_init_fn_t = Callable[[int], None]


class _DatasetKind:
    """The kinds of datasets: indexed, or iterable."""

    Map = 0
    Iterable = 1

    @staticmethod
    def create_fetcher(
        kind: int, dataset: Any, auto_collation: bool, collate_fn: Any, drop_last: bool
    ) -> _BaseDatasetFetcher:
        """Makes the fetcher for a dataset of this kind."""
        made = _IterableDatasetFetcher if kind == _DatasetKind.Iterable else _MapDatasetFetcher
        return made(dataset, auto_collation, collate_fn, drop_last)


class _EndlessSampler(Sampler[None]):
    """The sampler of an iterable dataset: yields None without end."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T_co]):
    """Batches of a dataset, in the order a sampler gives, joined by `collate_fn`.

    A loop over it is one pass; `len` is the number of batches. `batch_size=None` yields single
    samples. With `shuffle` the order is that of PyTorch after the same `manual_seed`.

    With `num_workers`, that many processes load batches ahead, `prefetch_factor` each (default 2),
    for one pass, or with `persistent_workers` for all passes. Their generators are seeded from the
    loader's draw and their number; then `worker_init_fn(number)` runs. `multiprocessing_context`
    selects their start: a context, or "fork", "spawn" or "forkserver"; by default that of
    `multiprocessing`. With "fork" they share the dataset without a copy; otherwise it must be
    picklable, as must `collate_fn`. `in_order=False` yields batches as they become ready. A
    worker's exception is raised here, with its traceback in the text. Tensors are sent by value;
    those with a graph are refused.

    Raises ValueError for options that exclude each other, as PyTorch does, and RuntimeError in a
    pass when a worker dies or exceeds `timeout` seconds. `pin_memory` only issues a warning, since
    there is no GPU.

    >>> from pygrad.utils.data import TensorDataset
    >>> data = TensorDataset(pygrad.arange(5))
    >>> [x.tolist() for (x,) in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    >>> [x.tolist() for (x,) in DataLoader(data, batch_size=2, num_workers=1)]
    [[0, 1], [2, 3], [4]]
    """

    dataset: Dataset[T_co]
    batch_size: int | None
    num_workers: int
    pin_memory: bool
    drop_last: bool
    timeout: float
    sampler: Any
    batch_sampler: Any
    pin_memory_device: str
    prefetch_factor: int | None
    _initialized = False

    def __init__(
        self,
        dataset: Dataset[T_co],
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Sampler[Any] | Iterable[Any] | None = None,
        batch_sampler: Sampler[list[Any]] | Iterable[list[Any]] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: pygrad.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        _check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        if num_workers > 0 and prefetch_factor is None:
            prefetch_factor = 2
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.generator = generator
        self.persistent_workers = persistent_workers

        self._streams = isinstance(dataset, IterableDataset)
        if self._streams:
            _refuse_order(shuffle, sampler, batch_sampler)
        _check_exclusive(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        if sampler is None:
            sampler = self._default_sampler(bool(shuffle))
        if batch_size is not None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_convert if batch_sampler is None else default_collate
        self.collate_fn = collate_fn
        self._IterableDataset_len_called: int | None = None
        self._iterator: _BaseDataLoaderIter | None = None
        self._initialized = True
        _warn_of_too_many(num_workers)

    def _default_sampler(self, shuffle: bool) -> Sampler[Any]:
        if self._streams:
            return _EndlessSampler()
        source = cast(Sized, self.dataset)
        return (
            RandomSampler(source, generator=self.generator)
            if shuffle
            else SequentialSampler(source)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if self._initialized and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self) -> Any:
        """The context that starts workers; None: that of `multiprocessing`."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, value: Any) -> None:
        if value is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with "
                    "multi-process loading (num_workers > 0), but got num_workers=0"
                )
            from ._workers import context_of

            value = context_of(value)
        self._context = value

    def _get_iterator(self) -> _BaseDataLoaderIter:
        kind = _MultiProcessingDataLoaderIter if self.num_workers else _SingleProcessDataLoaderIter
        return kind(self)

    def check_worker_number_rationality(self) -> None:
        """Warns if there are more workers than can run at once."""
        _warn_of_too_many(self.num_workers)

    @property
    def _auto_collation(self) -> bool:
        """Whether samples are collated to batches."""
        return self.batch_sampler is not None

    @property
    def _dataset_kind(self) -> int:
        return _DatasetKind.Iterable if self._streams else _DatasetKind.Map

    @property
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        if not self.persistent_workers or self.num_workers == 0:
            return self._get_iterator()
        if self._iterator is None:
            self._iterator = self._get_iterator()
        else:
            self._iterator._begin(self)
        return self._iterator

    def __len__(self) -> int:
        if not self._streams:
            return len(self._index_sampler)
        length = self._IterableDataset_len_called = len(cast(Sized, self.dataset))
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if prefetch_factor is not None:
        if num_workers == 0:
            raise ValueError(
                "prefetch_factor option could only be specified in multiprocessing."
                "let num_workers > 0 to enable multiprocessing, "
                "otherwise set prefetch_factor to None."
            )
        if prefetch_factor < 0:
            raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _warn_of_too_many(num_workers: int) -> None:
    """Warns if there are more workers than can run at once."""
    affinity = getattr(os, "sched_getaffinity", None)
    n_most = len(affinity(0)) if affinity is not None else os.cpu_count()
    if num_workers == 0 or (n_most is not None and num_workers <= n_most):
        return
    if n_most is None:
        advice = (
            "DataLoader is not able to compute a suggested max number of worker in current system."
        )
    else:
        unsure = "" if affinity is not None else " (`cpuset` is not taken into account)"
        advice = (
            f"Our suggested max number of worker in current system is {n_most}{unsure}, which is "
            "smaller than what this DataLoader is going to create."
        )
    warnings.warn(
        f"This DataLoader will create {num_workers} worker processes in total. {advice} Please be "
        "aware that excessive worker creation might get DataLoader running slow or even freeze, "
        "lower the worker number to avoid potential slowness/freeze if necessary.",
        stacklevel=3,
    )


def _check_exclusive(
    batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    """Refuse options that exclude each other."""
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive "
                "with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError(
            "batch_size=None option disables auto-batching and is mutually exclusive with drop_last"
        )


def _refuse_order(shuffle: bool | None, sampler: Any, batch_sampler: Any) -> None:
    """Refuse options that contradict the own order of an iterable dataset."""
    options = {
        "shuffle": shuffle or None,
        "sampler": sampler,
        "batch_sampler": batch_sampler,
    }
    for name, value in options.items():
        if value is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, "
                f"but got {name}={value}"
            )


class _BaseDataLoaderIter(Iterator[Any]):
    """One pass over a loader, or with persistent workers several passes.

    Libraries pass their own loaders, so only attributes of PyTorch's loader are used.
    """

    def __init__(self, loader: DataLoader[Any]) -> None:
        _warn_of_too_many(loader.num_workers)
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=3,
            )
        self._index_sampler = loader._index_sampler
        self._indices = iter(self._index_sampler)
        # PyTorch draws the seed here, with or without workers, before the sampler draws its own.
        base_seed = _draw_seed(loader.generator)
        self._fetcher = Fetcher(
            loader.dataset,
            loader._dataset_kind == _DatasetKind.Iterable,
            loader._auto_collation,
            loader.collate_fn,
            loader.drop_last,
        )
        self._workers: Workers | None = None
        if loader.num_workers > 0:
            from ._workers import Workers

            self._workers = Workers(loader, self._fetcher, base_seed)
            self._begin(loader)
            return
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._fetcher.begin()
        self._count_from_here(loader)

    def _begin(self, loader: DataLoader[Any]) -> None:
        """Begins a pass of the workers. As in PyTorch even the first pass restarts the sampler."""
        assert self._workers is not None
        self._indices = iter(self._index_sampler)
        self._count_from_here(loader)
        self._workers.begin(self._indices)

    def _count_from_here(self, loader: DataLoader[Any]) -> None:
        self._n_yielded = 0
        self._reported = loader._IterableDataset_len_called

    def __next__(self) -> Any:
        if profiler._running is None:
            return self._next()
        kind = "_SingleProcess" if self._workers is None else "_MultiProcessing"
        with profiler.record_function(f"enumerate(DataLoader)#{kind}DataLoaderIter.__next__"):
            return self._next()

    def _next(self) -> Any:
        if self._workers is None:
            data = self._fetcher.fetch(next(self._indices))
        else:
            data = self._workers.next_batch()
        self._n_yielded += 1
        if (
            self._fetcher.streams
            and self._reported is not None
            and self._n_yielded > self._reported
        ):
            self._warn_of_length()
        return data

    def _warn_of_length(self) -> None:
        message = (
            f"Length of IterableDataset {self._fetcher.dataset} was reported to be "
            f"{self._reported}(when accessing len(dataloader)), but {self._n_yielded} samples "
            "have been fetched. "
        )
        if self._workers is not None:
            message += (
                "For multiprocessing data-loading, this could be caused by not properly "
                "configuring the IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for "
                "examples."
            )
        warnings.warn(message, stacklevel=3)

    def __len__(self) -> int:
        return len(self._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("a DataLoader's iterator cannot be pickled")


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """An iterator that loads in the calling process."""


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """An iterator with workers."""


_InfiniteConstantSampler = _EndlessSampler
