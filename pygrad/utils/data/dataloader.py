"""The loader, which turns samples into batches."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Sized
from typing import Any, Generic, NoReturn, TypeVar, cast

import pygrad
from pygrad._tensor import Tensor
from pygrad.utils._collate import default_collate, default_convert
from pygrad.utils.data.dataset import Dataset, IterableDataset, Subset, TensorDataset, _samples
from pygrad.utils.data.sampler import (
    BatchSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    _draw_seed,
)

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


# Datasets


class _EndlessSampler(Sampler[None]):
    """What drives a loader over an iterable dataset: it says when, not which."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


# Loading


def _gather(dataset: Any, indices: list[Any]) -> list[Tensor] | None:
    """The collated batch of a TensorDataset or subsets of one, in one indexing op a tensor.

    None where that could differ from collating samples: an overridden method, an index that is no
    plain int, a tensor whose gradient is recorded.
    """
    if not all(type(index) is int for index in indices):
        return None
    while type(dataset) is Subset:
        indices = [dataset.indices[index] for index in indices]
        dataset = dataset.dataset
    if (
        not isinstance(dataset, TensorDataset)
        or type(dataset).__getitem__ is not TensorDataset.__getitem__
        or hasattr(dataset, "__getitems__")
        or any(tensor.requires_grad for tensor in dataset.tensors)
    ):
        return None
    rows = pygrad.tensor(indices)
    return [tensor[rows].contiguous() for tensor in dataset.tensors]


def get_worker_info() -> None:
    """None, as in the main process of PyTorch: there are no worker processes."""


_FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")


class DataLoader(Generic[T_co]):
    """Batches of a dataset, in the order a sampler gives, joined by `collate_fn`.

    A loop over it is one pass; `len` is the number of batches. `batch_size=None` yields single
    samples. With `shuffle` the order is that of PyTorch after the same `manual_seed`.

    Raises ValueError for options that exclude each other, as PyTorch does, and
    NotImplementedError for `num_workers` above 0. `worker_init_fn` and `in_order` concern workers
    only. `pin_memory` warns that there is nothing to pin for.

    >>> data = TensorDataset(pygrad.arange(5))
    >>> [x.tolist() for (x,) in DataLoader(data, batch_size=2)]
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
        _check_workers(
            num_workers, timeout, prefetch_factor, persistent_workers, multiprocessing_context
        )
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
        self._reported_length: int | None = None
        self._initialized = True

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
    def _index_sampler(self) -> Any:
        return self.sampler if self.batch_sampler is None else self.batch_sampler

    def __iter__(self) -> Iterator[Any]:
        return _LoaderIterator(self)

    def __len__(self) -> int:
        if not self._streams:
            return len(self._index_sampler)
        length = self._reported_length = len(cast(Sized, self.dataset))
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)


def _check_workers(
    num_workers: int,
    timeout: float,
    prefetch_factor: int | None,
    persistent_workers: bool,
    multiprocessing_context: Any,
) -> None:
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; "
            "use num_workers=0 to disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers > 0:
        raise NotImplementedError(
            f"DataLoader: num_workers={num_workers} is not supported; use num_workers=0"
        )
    if prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, "
            "otherwise set prefetch_factor to None."
        )
    if persistent_workers:
        raise ValueError("persistent_workers option needs num_workers > 0")
    if multiprocessing_context is not None:
        raise ValueError(
            "multiprocessing_context can only be used with "
            "multi-process loading (num_workers > 0), but got num_workers=0"
        )


def _check_exclusive(
    batch_size: int | None, shuffle: bool | None, sampler: Any, batch_sampler: Any, drop_last: bool
) -> None:
    """Refuse options that decide the same twice."""
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
    """An iterable dataset has its own order: refuse every option that would ask for another."""
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


class _LoaderIterator(Iterator[Any]):
    """One pass over a loader."""

    def __init__(self, loader: DataLoader[Any]) -> None:
        if loader.pin_memory:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=3,
            )
        self._loader = loader
        self._collate = loader.collate_fn
        self._batched = loader.batch_sampler is not None
        self._indices = iter(loader._index_sampler)
        # Nobody uses this seed, but PyTorch draws it here, before the sampler draws its own.
        self._base_seed = _draw_seed(loader.generator)
        if loader.timeout != 0:
            raise AssertionError("_SingleProcessDataLoaderIter requires timeout == 0")
        self._stream = iter(cast("Iterable[Any]", loader.dataset)) if loader._streams else None
        self._n_yielded = 0

    def __next__(self) -> Any:
        index = next(self._indices)
        data = self._map(index) if self._stream is None else self._take(self._stream, index)
        self._n_yielded += 1
        reported = self._loader._reported_length
        if self._stream is not None and reported is not None and self._n_yielded > reported:
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {reported}"
                f"(when accessing len(dataloader)), but {self._n_yielded} samples "
                "have been fetched. ",
                stacklevel=2,
            )
        return data

    def _map(self, index: Any) -> Any:
        dataset = self._loader.dataset
        if not self._batched:
            return self._collate(dataset[index])
        if self._collate is default_collate:
            batch = _gather(dataset, index)
            if batch is not None:
                return batch
        return self._collate(_samples(dataset, index))

    def _take(self, stream: Iterator[Any], index: Any) -> Any:
        if not self._batched:
            return self._collate(next(stream))
        batch = list(itertools.islice(stream, len(index)))
        if len(batch) < len(index):
            # Not asked again: a stream may have more to give after it said that it was over.
            self._indices = iter(())
            if not batch or self._loader.drop_last:
                raise StopIteration
        return self._collate(batch)

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("a DataLoader's iterator cannot be pickled")
