"""Fetches the batch of some indices, in the loader's process or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .._collate import default_collate
from .dataset import Subset, TensorDataset, _samples


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Describes the worker that this process is.

    Attributes:
        id: the number of the worker, from 0 to `num_workers - 1`.
        num_workers: the number of workers.
        seed: the seed of the default generator and of Python's `random`.
        dataset: the dataset of this process, a copy of the loader's.
        rng: always None: the worker uses the generators of the process.
        worker_method: always "multiprocessing".
    """

    id: int
    num_workers: int
    seed: int
    dataset: Any
    rng: None = None
    worker_method: str | None = "multiprocessing"


_this_worker: WorkerInfo | None = None


def begin_worker(info: WorkerInfo) -> None:
    """Makes this process the worker that is described."""
    global _this_worker
    _this_worker = info


def get_worker_info() -> WorkerInfo | None:
    """Describes the worker of a `DataLoader` that this process is; None in any other process.

    An iterable dataset uses it to select its share. `worker_init_fn` and samples may call it too.

    >>> from pygrad.utils.data import get_worker_info
    >>> get_worker_info() is None
    True
    """
    return _this_worker


def _gather(dataset: Any, indices: list[Any]) -> list[Tensor] | None:
    """The collated batch of a TensorDataset or subsets of one, in one indexing op a tensor.

    None if collating samples could give another result: for an overridden method, an index that is
    no plain int, or a tensor that requires a gradient.
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
    """Fetches the batch for an index of the sampler. Call `begin` first.

    Attributes:
        streams: whether the dataset is iterable; then only the number of indices matters.
        batched: whether an index is the list of a batch's indices.
    """

    dataset: Any
    streams: bool
    batched: bool
    collate: Callable[[Any], Any]
    drop_last: bool

    def begin(self) -> None:
        """Begins a new pass; restarts an iterable dataset."""
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
        # Calls only next(): islice() would call iter() of the stream, which may restart it.
        batch: list[Any] = []
        for _ in index:
            try:
                batch.append(next(stream))
            except StopIteration:
                # Never call the stream again: it could yield more after StopIteration.
                self._stream = iter(())
                if not batch or self.drop_last:
                    raise
                break
        return self.collate(batch)
