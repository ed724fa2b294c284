"""Datasets, samplers and the loader that turns them into batches, as in `torch.utils.data`.

Everything here is bookkeeping over Python lists of indices: numbers are drawn, gathered and stacked
by the engine. The order in which a loader draws from a generator is PyTorch's (first the seed that
workers would get, then the sampler's), so that one `manual_seed` shuffles alike in both.
Batches are loaded in the calling process; there are no worker processes.
"""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, NoReturn, TypeVar, cast

import pygrad
from pygrad._tensor import Tensor
from pygrad.utils._collate import default_collate, default_convert

__all__ = [
    "BatchSampler",
    "ChainDataset",
    "ConcatDataset",
    "DataLoader",
    "Dataset",
    "IterableDataset",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "StackDataset",
    "Subset",
    "SubsetRandomSampler",
    "TensorDataset",
    "WeightedRandomSampler",
    "default_collate",
    "default_convert",
    "get_worker_info",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


# Datasets


class Dataset(Generic[T_co]):
    """A map from an index to a sample. Subclasses give `__getitem__`, and `__len__` where known.

    A subclass may also give `__getitems__(indices) -> list of samples`, which a loader then calls
    once a batch.

    >>> class Squares(Dataset[int]):
    ...     def __len__(self): return 4
    ...     def __getitem__(self, index): return index * index
    >>> [batch.tolist() for batch in DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples: subclasses give `__iter__`. `a + b` is one stream after the other."""

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ChainDataset([self, other])


class TensorDataset(Dataset[tuple[Tensor, ...]]):
    """Tensors of equal first size; sample `i` is the tuple of their `i`-th rows.

    Shape: tensors of (N, *); a sample holds (*) of each.
    Raises AssertionError if the first sizes differ.

    >>> data = TensorDataset(pygrad.arange(6).reshape(3, 2), pygrad.tensor([7, 8, 9]))
    >>> len(data), data[1]
    (3, (tensor([2, 3]), tensor(8)))
    """

    tensors: tuple[Tensor, ...]

    def __init__(self, *tensors: Tensor) -> None:
        if any(tensors[0].size(0) != tensor.size(0) for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: Any) -> tuple[Tensor, ...]:
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self) -> int:
        return int(self.tensors[0].size(0))


class StackDataset(Dataset[Any]):
    """Datasets of equal length side by side: tuple samples of positional ones, dicts of named ones.

    Raises ValueError for none, for both kinds at once, or for lengths that differ.
    """

    datasets: tuple[Any, ...] | dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or"
                "``dict``- (via ``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        parts = args or tuple(kwargs.values())
        self._length = len(parts[0])
        if any(len(part) != self._length for part in parts):
            raise ValueError("Size mismatch between datasets")
        self.datasets = args or kwargs

    def _join(self, columns: list[Any]) -> Any:
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, columns, strict=True))
        return tuple(columns)

    def _parts(self) -> Iterable[Any]:
        return self.datasets.values() if isinstance(self.datasets, dict) else self.datasets

    def __getitem__(self, index: Any) -> Any:
        return self._join([part[index] for part in self._parts()])

    def __getitems__(self, indices: list[Any]) -> list[Any]:
        columns = [_samples(part, indices) for part in self._parts()]
        for column in columns:
            if len(column) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch."
                    f" Expected {len(indices)}, got {len(column)}"
                )
        return [self._join(list(row)) for row in zip(*columns, strict=True)]

    def __len__(self) -> int:
        return self._length


class ConcatDataset(Dataset[T_co]):
    """Datasets one after the other, indexed as one; negative indices count from the end.

    Raises AssertionError for no dataset or an IterableDataset, ValueError for an index before the
    start.
    """

    datasets: list[Dataset[T_co]]
    cumulative_sizes: list[int]

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(dataset, IterableDataset) for dataset in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        sizes = (len(cast(Sized, dataset)) for dataset in self.datasets)
        self.cumulative_sizes = list(itertools.accumulate(sizes))

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx: int) -> T_co:
        if idx < 0:
            if -idx > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            idx += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, idx)
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][idx - start]


class ChainDataset(IterableDataset[T_co]):
    """Streams one after the other. Raises AssertionError when it meets a map-style dataset."""

    def __init__(self, datasets: Iterable[Dataset[T_co]]) -> None:
        self.datasets = datasets

    def _streams(self) -> Iterator[IterableDataset[T_co]]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield dataset

    def __iter__(self) -> Iterator[T_co]:
        return itertools.chain.from_iterable(self._streams())

    def __len__(self) -> int:
        return sum(len(cast(Sized, stream)) for stream in self._streams())


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`, in that order.

    A subclass that overrides `__getitem__` must override `__getitems__` too, else making one raises
    NotImplementedError: a loader would go past the override.

    >>> list(DataLoader(Subset(range(10), [7, 1, 4]), batch_size=3))
    [tensor([7, 1, 4])]
    """

    dataset: Dataset[T_co]
    indices: Sequence[int]

    def __init__(self, dataset: Dataset[T_co], indices: Sequence[int]) -> None:
        self.dataset = dataset
        self.indices = indices
        kind = type(self)
        if kind.__getitem__ is not Subset.__getitem__ and kind.__getitems__ is Subset.__getitems__:
            raise NotImplementedError(
                f"{kind.__name__} overrides __getitem__ but not __getitems__. "
                "When subclassing Subset and overriding __getitem__, you must also override "
                "__getitems__ to ensure DataLoader works correctly with your custom logic. "
                "A simple implementation:\n\n"
                "def __getitems__(self, indices):\n"
                "    return [self.__getitem__(idx) for idx in indices]"
            )

    def __getitem__(self, idx: Any) -> T_co:
        if isinstance(idx, list):
            return self.dataset[[self.indices[i] for i in idx]]
        return self.dataset[self.indices[idx]]

    def __getitems__(self, indices: list[int]) -> list[T_co]:
        return _samples(self.dataset, [self.indices[i] for i in indices])

    def __len__(self) -> int:
        return len(self.indices)


def random_split(
    dataset: Dataset[T],
    lengths: Sequence[int | float],
    generator: pygrad.Generator | None = None,
) -> list[Subset[T]]:
    """Cut a dataset at random into subsets of the given lengths, or of fractions that sum to 1.

    Fractions are rounded down, and what is left over is dealt out one each from the first on.
    Without `generator` the default one shuffles. Raises ValueError for a fraction outside 0..1 and
    for lengths that do not sum to the dataset's; warns about an empty part.

    >>> parts = random_split(range(10), [0.75, 0.25], pygrad.Generator().manual_seed(0))
    >>> [len(part) for part in parts]
    [8, 2]
    """
    total = len(cast(Sized, dataset))
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        lengths = _split_lengths(total, lengths)
    if sum(lengths) != total:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    counts = cast("Sequence[int]", lengths)
    order = pygrad.randperm(total, generator=generator).tolist()
    ends = itertools.accumulate(counts)
    return [
        Subset(dataset, order[end - count : end]) for end, count in zip(ends, counts, strict=True)
    ]


def _split_lengths(total: int, fractions: Sequence[float]) -> list[int]:
    for i, fraction in enumerate(fractions):
        if fraction < 0 or fraction > 1:
            raise ValueError(f"Fraction at index {i} is not between 0 and 1")
    counts = [math.floor(total * fraction) for fraction in fractions]
    for i in range(total - sum(counts)):
        counts[i % len(counts)] += 1
    for i, count in enumerate(counts):
        if count == 0:
            warnings.warn(
                f"Length of split at index {i} is 0. This might result in an empty dataset.",
                stacklevel=3,
            )
    return counts


# Samplers


class Sampler(Generic[T_co]):
    """An order in which to visit a dataset. Subclasses give `__iter__`, and `__len__` if known."""

    def __iter__(self) -> Iterator[T_co]:
        raise NotImplementedError


class SequentialSampler(Sampler[int]):
    """0, 1, 2, ... in that order.

    >>> list(SequentialSampler("abc"))
    [0, 1, 2]
    """

    data_source: Sized

    def __init__(self, data_source: Sized) -> None:
        self.data_source = data_source

    def __iter__(self) -> Iterator[int]:
        return iter(range(len(self.data_source)))

    def __len__(self) -> int:
        return len(self.data_source)


class RandomSampler(Sampler[int]):
    """Indices at random: a permutation, or independent draws with `replacement`.

    `num_samples` asks for fewer or more than the dataset holds. Without `generator`, each pass
    seeds one of its own from the default generator. Raises TypeError for a `replacement` that is
    no bool, ValueError for a `num_samples` that is no positive int.
    """

    data_source: Sized
    replacement: bool

    def __init__(
        self,
        data_source: Sized,
        replacement: bool = False,
        num_samples: int | None = None,
        generator: pygrad.Generator | None = None,
    ) -> None:
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(replacement, bool):
            raise TypeError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, "
                f"but got num_samples={self.num_samples}"
            )

    @property
    def num_samples(self) -> int:
        """How many indices a pass yields: what was asked for, else the dataset's present length."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = pygrad.Generator()
            generator.manual_seed(_draw_seed(None))
        if self.replacement:
            # PyTorch draws in blocks of 32, which shows where the generator stands afterwards.
            for start in range(0, self.num_samples, 32):
                count = min(32, self.num_samples - start)
                draws = pygrad.randint(n, (count,), dtype=pygrad.int64, generator=generator)
                yield from draws.tolist()
        else:
            for _ in range(self.num_samples // n):
                yield from pygrad.randperm(n, generator=generator).tolist()
            rest = pygrad.randperm(n, generator=generator).tolist()
            yield from rest[: self.num_samples % n]

    def __len__(self) -> int:
        return self.num_samples


class SubsetRandomSampler(Sampler[int]):
    """The given indices in random order, each once."""

    indices: Sequence[int]

    def __init__(self, indices: Sequence[int], generator: pygrad.Generator | None = None) -> None:
        self.indices = indices
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        for i in pygrad.randperm(len(self.indices), generator=self.generator).tolist():
            yield self.indices[i]

    def __len__(self) -> int:
        return len(self.indices)


class WeightedRandomSampler(Sampler[int]):
    """`num_samples` indices drawn with chances proportional to `weights`, which need not sum to 1.

    Raises ValueError for weights that are not one-dimensional, a `num_samples` that is no positive
    int, and a `replacement` that is no bool.
    """

    weights: Tensor
    num_samples: int
    replacement: bool

    def __init__(
        self,
        weights: Sequence[float] | Tensor,
        num_samples: int,
        replacement: bool = True,
        generator: pygrad.Generator | None = None,
    ) -> None:
        if not _is_positive_int(num_samples):
            raise ValueError(
                f"num_samples should be a positive integer value, but got num_samples={num_samples}"
            )
        if not isinstance(replacement, bool):
            raise ValueError(
                f"replacement should be a boolean value, but got replacement={replacement}"
            )
        self.weights = pygrad.as_tensor(weights, dtype=pygrad.float64)
        if self.weights.dim() != 1:
            raise ValueError(
                "weights should be a 1d sequence but given "
                f"weights have shape {tuple(self.weights.shape)}"
            )
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator

    def __iter__(self) -> Iterator[int]:
        draws = pygrad.multinomial(
            self.weights, self.num_samples, self.replacement, generator=self.generator
        )
        yield from draws.tolist()

    def __len__(self) -> int:
        return self.num_samples


class BatchSampler(Sampler[list[int]]):
    """The indices of another sampler in lists of `batch_size`, the last one shorter or dropped.

    Raises ValueError for a `batch_size` that is no positive int and a `drop_last` that is no bool.

    >>> list(BatchSampler(SequentialSampler(range(5)), batch_size=2, drop_last=False))
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self, sampler: Sampler[int] | Iterable[int], batch_size: int, drop_last: bool
    ) -> None:
        if not _is_positive_int(batch_size):
            raise ValueError(
                f"batch_size should be a positive integer value, but got batch_size={batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(f"drop_last should be a boolean value, but got drop_last={drop_last}")
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        least = self.batch_size if self.drop_last else 1
        while len(batch := list(itertools.islice(indices, self.batch_size))) >= least:
            yield batch

    def __len__(self) -> int:
        count = len(cast(Sized, self.sampler))
        return count // self.batch_size if self.drop_last else -(-count // self.batch_size)


class _EndlessSampler(Sampler[None]):
    """What drives a loader over an iterable dataset: it says when, not which."""

    def __iter__(self) -> Iterator[None]:
        return itertools.repeat(None)


def _is_positive_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _draw_seed(generator: pygrad.Generator | None) -> int:
    """One 63-bit draw, as PyTorch takes it for workers and samplers."""
    return int(pygrad.empty((), dtype=pygrad.int64).random_(generator=generator).item())


# Loading


def _samples(dataset: Any, indices: list[Any]) -> list[Any]:
    """The samples at `indices`, by the dataset's own batched form where it has one."""
    batched = getattr(dataset, "__getitems__", None)
    if callable(batched):
        return cast("list[Any]", batched(indices))
    return [dataset[index] for index in indices]


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
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive "
                    "with batch_size, shuffle, sampler, and drop_last"
                )
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching "
                "and is mutually exclusive with drop_last"
            )
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
