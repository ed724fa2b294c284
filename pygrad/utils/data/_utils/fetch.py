"""Fetchers as classes under PyTorch's names, from which programs derive."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from .._fetch import Fetcher

__all__: list[str] = []


class _BaseDatasetFetcher:
    """The base class of fetchers: returns the batch for an index of the sampler."""

    _streams: bool

    def __init__(
        self,
        dataset: Any,
        auto_collation: bool,
        collate_fn: Callable[[Any], Any],
        drop_last: bool,
    ) -> None:
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The batch for an index, or for a list of indices."""
        raise NotImplementedError

    def _fetcher(self) -> Fetcher:
        made = Fetcher(
            self.dataset, self._streams, self.auto_collation, self.collate_fn, self.drop_last
        )
        made.begin()
        return made


class _MapDatasetFetcher(_BaseDatasetFetcher):
    """Fetches batches of a dataset with numbered samples."""

    _streams = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        return self._fetcher().fetch(possibly_batched_index)


class _IterableDatasetFetcher(_BaseDatasetFetcher):
    """Fetches batches of an iterable dataset, of which indices only give the size."""

    _streams = True

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._own = self._fetcher()
        self.dataset_iter = self._own._stream
        self.ended = False

    def fetch(self, possibly_batched_index: Any) -> Any:
        """The next batch; raises StopIteration when there is none."""
        if self.ended:
            raise StopIteration
        try:
            return self._own.fetch(possibly_batched_index)
        except StopIteration:
            self.ended = True
            raise

    def __getstate__(self) -> NoReturn:
        raise NotImplementedError("an iterator over a dataset cannot be pickled")
