"""Fetches the batch of some indices, in the loader's process or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from ..._package import pygrad
from ..._tensor import Tensor
from .._collate import default_collate
from .dataset import Subset, TensorDataset, _samples


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Which worker this process is.

    Attributes:
        id: its number, from 0 to `num_workers - 1`.
        num_workers: how many there are.
        seed: what the default generator and Python's `random` were seeded with.
        dataset: the dataset of this process, a copy of the loader's.
        rng: None: the generators are those of the process.
        worker_method: how it runs, "multiprocessing".
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None
    worker_method: str | None = "multiprocessing"


this_worker: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """Which worker of a `DataLoader` this process is; None where it is none.

    An iterable dataset takes its share by it, `worker_init_fn` and samples may ask as well.

    >>> from pygrad.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return this_worker


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


@dataclass
class Fetcher:
    """Gives the batch for what a sampler says, once `begin` was called.

    Attributes:
        streams: whether the dataset is iterable: then the indices only count.
        batched: whether an index is a list of indices, of a batch.
    """

    dataset: Any
    streams: bool
    batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool

    def begin(self) -> None:
        """A new pass: an iterable dataset starts again."""
        self._stream = iter(cast("Iterable[Any]", self.dataset)) if self.streams else None

    def fetch(self, index: Any) -> Any:
        """The batch; raises StopIteration when an iterable dataset is over."""
        return self._map(index) if self._stream is None else self._take(self._stream, index)

    def _map(self, index: Any) -> Any:
        if not self.batched:
            return self.collate(self.dataset[index])
        if self.collate is default_collate:
            batch = _gather(self.dataset, index)
            if batch is not None:
                return batch
        return self.collate(_samples(self.dataset, index))

    def _take(self, stream: Iterator[Any], index: Any) -> Any:
        if not self.batched:
            return self.collate(next(stream))
        # By next() alone: iter() of the stream, which islice() calls, may start it again.
        batch: list[Any] = []
        for _ in index:
            try:
                batch.append(next(stream))
            except StopIteration:
                # Not asked again: a stream may have more to give after it said that it was over.
                self._stream = iter(())
                if not batch or self.drop_last:
                    raise
                break
        return self.collate(batch)
