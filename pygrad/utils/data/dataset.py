"""Datasets: indexed ones, iterable ones, and combinations."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any, Generic, TypeVar, cast

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor

__all__ = [
    "ChainDataset",
    "ConcatDataset",
    "Dataset",
    "IterableDataset",
    "StackDataset",
    "Subset",
    "TensorDataset",
    "random_split",
]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


# Datasets


class Dataset(Generic[T_co]):
    """A map from an index to a sample. Subclasses define `__getitem__`, and `__len__` if known.

    A subclass may also define `__getitems__(indices) -> list of samples`, which a loader then calls
    once per batch.

    >>> class Squares(Dataset[int]):
    ...     def __len__(self): return 4
    ...     def __getitem__(self, index): return index * index
    >>> from pygrad.utils.data import DataLoader
    >>> [batch.tolist() for batch in DataLoader(Squares(), batch_size=2)]
    [[0, 1], [4, 9]]
    """

    def __getitem__(self, index: Any) -> T_co:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset[Any]) -> Dataset[Any]:
        return ConcatDataset([self, other])


class IterableDataset(Dataset[T_co], Iterable[T_co]):
    """A stream of samples. Subclasses define `__iter__`. `a + b` yields the samples of a, then of
    b.
    """

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
    """Datasets of equal length side by side: samples are tuples for positional ones, dicts for
    named ones.

    Raises ValueError for no datasets, for both kinds at once, or for lengths that differ.
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
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Any]) -> list[int]:
        """The cumulative numbers of samples up to the end of each dataset."""
        return list(itertools.accumulate([len(dataset) for dataset in sequence]))

    @property
    def cummulative_sizes(self) -> list[int]:
        """`cumulative_sizes` by an older name."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes

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
    """Streams one after the other. Raises AssertionError for a map-style dataset."""

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
        sizes = [len(cast(Sized, stream)) for stream in self._streams()]
        return sum(sizes)


class Subset(Dataset[T_co]):
    """The samples of `dataset` at `indices`, in that order.

    A subclass that overrides `__getitem__` must also override `__getitems__`, which a loader
    prefers; else the constructor raises NotImplementedError.

    >>> from pygrad.utils.data import DataLoader
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
    """Split a dataset at random into subsets of the given lengths, or of fractions that sum to 1.

    Fractions are rounded down, and the remainder is distributed one by one from the first subset
    on. Without `generator` the default one shuffles. Raises ValueError for a fraction outside 0..1
    and for lengths that do not sum to the dataset's; warns about an empty subset.

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


def _samples(dataset: Any, indices: list[Any]) -> list[Any]:
    """The samples at `indices`, by the dataset's `__getitems__` if it has one."""
    batched = getattr(dataset, "__getitems__", None)
    if callable(batched):
        return cast("list[Any]", batched(indices))
    return [dataset[index] for index in indices]
