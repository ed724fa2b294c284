"""Placements: values that describe the part of a shared tensor on each process."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The base class of placements."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether each process has a part of the tensor, along `dim` if that is given."""
        return isinstance(self, Shard) and dim in (None, self.dim)

    def is_replicate(self) -> bool:
        """Whether each process has the whole tensor."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each process has a summand of the tensor, of `reduce_op` if that is given."""
        return isinstance(self, Partial) and reduce_op in (None, self.reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Each process has a part of the tensor, in order along one dimension.

    Example:
        >>> Shard(0), str(Shard(0)), Shard(0).is_shard(1)
        (Shard(dim=0), 'S(0)', False)
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"

    @staticmethod
    def local_shard_size_and_offset(
        curr_local_size: int, num_chunks: int, rank: int
    ) -> tuple[int, int]:
        """The length and the start of one part.

        Args:
            curr_local_size: the length to divide.
            num_chunks: the number of parts. All have the length of the first, as far as elements
                remain.
            rank: the index of the part.

        Example:
            >>> [Shard.local_shard_size_and_offset(5, 3, rank) for rank in range(3)]
            [(2, 0), (2, 2), (1, 4)]
        """
        length = -(-curr_local_size // num_chunks)
        start = min(length * rank, curr_local_size)
        return min(length, curr_local_size - start), start


@dataclass(frozen=True)
class _StridedShard(Placement):
    """Each process has pieces of several groups along one dimension."""

    dim: int
    split_factor: int

    def __init__(self, dim: int, *, split_factor: int = 1, sf: int | None = None) -> None:
        split_factor = split_factor if sf is None else sf
        object.__setattr__(self, "dim", dim)
        object.__setattr__(self, "split_factor", split_factor)

    def __repr__(self) -> str:
        return f"_StridedShard(dim={self.dim}, sf={self.split_factor})"

    def __str__(self) -> str:
        return f"_S({self.dim}, {self.split_factor})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Each process has the whole tensor.

    Example:
        >>> str(Replicate()), Replicate() == Replicate()
        ('R', True)
    """

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each process has a tensor of the whole shape, which is a summand of the reduction.

    Example:
        >>> Partial(), Partial("avg").is_partial("sum")
        (Partial(sum), False)
    """

    reduce_op: str = "sum"

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"
