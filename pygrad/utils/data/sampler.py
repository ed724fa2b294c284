"""Samplers: the orders in which a loader asks for samples."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Generic, TypeVar, cast

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor

__all__ = [
    "BatchSampler",
    "RandomSampler",
    "Sampler",
    "SequentialSampler",
    "SubsetRandomSampler",
    "WeightedRandomSampler",
]

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


# Datasets


class Sampler(Generic[T_co]):
    """An order in which to visit a dataset. Subclasses define `__iter__`, and `__len__` if
    known.
    """

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

    `num_samples` may be less or more than the dataset's length. Without `generator`, each pass
    seeds a new one from the default generator. Raises TypeError for a `replacement` that is no
    bool, ValueError for a `num_samples` that is no positive int.
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
        """The number of indices in a pass: `num_samples`, or the dataset's current length."""
        return len(self.data_source) if self._num_samples is None else self._num_samples

    def __iter__(self) -> Iterator[int]:
        n = len(self.data_source)
        generator = self.generator
        if generator is None:
            generator = pygrad.Generator()
            generator.manual_seed(_draw_seed(None))
        if self.replacement:
            # PyTorch draws in blocks of 32, which affects the generator's state afterwards.
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
    """`num_samples` indices drawn with probabilities proportional to `weights`, which need not sum
    to 1.

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
    """The indices of another sampler in lists of `batch_size`. The last list is shorter or dropped.

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


def _is_positive_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _draw_seed(generator: pygrad.Generator | None) -> int:
    """One 63-bit draw, as PyTorch takes it for workers and samplers."""
    return int(pygrad.empty((), dtype=pygrad.int64).random_(generator=generator).item())
