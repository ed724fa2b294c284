"""The places of a jagged tensor's entries in its values: between offsets, along one dimension."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import int64
from .._table import functions
from .._tensor.tensor import Tensor
from ._sizes import SymInt, ragged_size_of

_F = functions.SPACES["torch"]


class Jagged:
    """The places of the entries.

    Attributes:
        offsets: the begin of each entry, and the end of the last.
        lengths: the length of each entry if there are gaps between entries; else None.
        ragged: the ragged dimension, counted with the batch.
        least, most: the given lengths of the shortest and the longest entry, or None.
        size: the ragged size.
    """

    __slots__ = ("_index", "_spans", "_versions", "least", "lengths", "most", "offsets", "ragged")

    def __init__(
        self,
        offsets: Tensor,
        lengths: Tensor | None = None,
        ragged: int = 1,
        least: int | None = None,
        most: int | None = None,
    ) -> None:
        self.offsets, self.lengths, self.ragged = offsets, lengths, ragged
        self.least, self.most = least, most
        self._spans: Any = None
        self._index: Any = None
        self._versions: Any = None

    @property
    def batch(self) -> int:
        """How many entries there are."""
        return len(self.offsets) - 1

    @property
    def size(self) -> SymInt:
        """The ragged size."""
        return ragged_size_of(self.offsets if self.lengths is None else self.lengths)

    def same(self, other: Jagged) -> bool:
        """Whether the parts have the same ragged size, at the same dimension."""
        return self.ragged == other.ragged and self.size == other.size

    def with_ragged(self, ragged: int) -> Jagged:
        """The parts with another ragged dimension."""
        if ragged == self.ragged:
            return self
        moved = Jagged(self.offsets, self.lengths, ragged, self.least, self.most)
        moved._spans, moved._index, moved._versions = self._spans, self._index, self._versions
        return moved

    def spans(self, total: int, op: str) -> list[tuple[int, int]]:
        """The begin and the length of each entry.

        Raises: RuntimeError: an entry exceeds the `total` rows.
        """
        known = self._read_spans()
        lengths = [length for _, length in known]
        if self.lengths is None and min(lengths, default=0) >= 0 and sum(lengths) != total:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {total} (input tensor's "
                f"size at dimension {self.ragged - 1}), but got split_sizes={lengths}"
            )
        if not all(start >= 0 and 0 <= n <= total - start for start, n in known):
            raise RuntimeError(
                f"{op}(): nested tensor offsets and lengths do not match ragged_idx dimension"
            )
        return known

    def _read_spans(self) -> list[tuple[int, int]]:
        """The numbers in offsets and lengths, read again if these were written to."""
        lengths = self.lengths
        versions = self.offsets._version, None if lengths is None else lengths._version
        if self._spans is None or versions != self._versions:
            starts = self.offsets.tolist()
            if any(type(each) is not int for each in starts):
                raise RuntimeError("offsets of nested tensors must be integers")
            ends = starts[1:]
            sizes = (
                [b - a for a, b in zip(starts, ends, strict=False)]
                if lengths is None
                else lengths.tolist()
            )
            self._spans = list(zip(starts[:-1], sizes, strict=True))
            self._index, self._versions = None, versions
        return self._spans  # type: ignore[no-any-return]

    def longest(self) -> int:
        """The length of the longest entry, whatever `most` is."""
        return max((n for _, n in self._read_spans()), default=0)

    def shortest(self) -> int:
        """The length of the shortest entry, whatever `least` is."""
        return min((n for _, n in self._read_spans()), default=0)

    def places(self, total: int, op: str) -> tuple[Tensor, Tensor]:
        """The entry of each row of the values, and the row's place in the entry.

        Raises: RuntimeError: the offsets are wrong, or there are gaps.
        """
        spans = self.spans(total, op)
        if self.lengths is not None:
            raise RuntimeError(f"{op}(): not supported for nested tensors with holes")
        if self._index is None:
            entries = [b for b, (_, n) in enumerate(spans) for _ in range(n)]
            within = [i for _, n in spans for i in range(n)]
            self._index = (_indices(entries), _indices(within))
        return self._index  # type: ignore[no-any-return]


def _indices(numbers: list[int]) -> Tensor:
    from .._tensor.creation import tensor

    return tensor(numbers, dtype=int64)
