"""Sequences of different lengths in one tensor: padded, or packed by steps without padding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


_Packed.__name__ = "PackedSequence"


class PackedSequence(_Packed):
    """Packed sequences: for each step, the entries of all sequences that reach it.

    Args:
        data: (entries, *), in the order of steps.
        batch_sizes: the number of sequences that reach each step, int64.
        sorted_indices: the sequence of each row, if they were sorted by length.
        unsorted_indices: the inverse permutation, computed if not given.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([pygrad.tensor([1, 2]), pygrad.tensor([3])]).data
        tensor([1, 3, 2])
    """

    __slots__ = ()

    def __new__(
        cls,
        data: Any,
        batch_sizes: Tensor | None = None,
        sorted_indices: Tensor | None = None,
        unsorted_indices: Tensor | None = None,
    ) -> PackedSequence:
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def _with_data(self, data: Tensor) -> PackedSequence:
        if data is self.data:
            return self
        return PackedSequence(data, self.batch_sizes, self.sorted_indices, self.unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Converts the data; returns this object if that changes nothing."""
        return self._with_data(self.data.to(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Calls `to` if there are arguments. Every tensor is on the CPU."""
        return self.to(*args, **kwargs) if args or kwargs else self

    def double(self) -> PackedSequence:
        """Converts the data to float64."""
        return self.to(dtype=pygrad.float64)

    def float(self) -> PackedSequence:
        """Converts the data to float32."""
        return self.to(dtype=pygrad.float32)

    def long(self) -> PackedSequence:
        """Converts the data to int64."""
        return self.to(dtype=pygrad.int64)

    def int(self) -> PackedSequence:
        """Converts the data to int32."""
        return self.to(dtype=pygrad.int32)

    def short(self) -> PackedSequence:
        """Converts the data to int16."""
        return self.to(dtype=pygrad.int16)

    def char(self) -> PackedSequence:
        """Converts the data to int8."""
        return self.to(dtype=pygrad.int8)

    def byte(self) -> PackedSequence:
        """Converts the data to uint8."""
        return self.to(dtype=pygrad.uint8)

    @property
    def is_cuda(self) -> bool:
        """False."""
        return False

    def is_pinned(self) -> bool:
        """False."""
        return False


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """The inverse of a permutation.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import invert_permutation
        >>> invert_permutation(pygrad.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = pygrad.arange(permutation.numel(), device=permutation.device)
    return pygrad.empty_like(permutation).scatter_(0, permutation, places)


def _lengths_of(lengths: Any) -> Tensor:
    if isinstance(lengths, Tensor):
        return lengths.to("cpu").long()
    return pygrad.tensor(list(lengths), dtype=pygrad.int64)


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences.

    Args:
        input: (T, B, *), or (B, T, *) if `batch_first`.
        lengths: the length of each sequence, at least 1.
        batch_first: the batch is the first dimension.
        enforce_sorted: refuse sequences not sorted by decreasing length; else sort them.

    Raises:
        RuntimeError: lengths that do not match, or are not sorted.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import pack_padded_sequence
        >>> padded = pygrad.tensor([[1, 3], [2, 0]])
        >>> pack_padded_sequence(padded, [2, 1]).batch_sizes
        tensor([2, 1])
    """
    sizes = _lengths_of(lengths)
    order = None
    if not enforce_sorted:
        sizes, order = pygrad.sort(sizes, descending=True)
        input = input.index_select(0 if batch_first else 1, order)
    rows = input.transpose(0, 1) if batch_first else input
    counts: list[int] = sizes.tolist()
    if not rows.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if len(counts) != rows.size(1):
        raise RuntimeError(
            "Expected `len(lengths)` to be equal to batch_size, but got "
            f"{len(counts)} (batch_size={rows.size(1)})"
        )
    if min(counts) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element "
            "in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in pairwise(counts)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement if you do not need ONNX exportability."
        )
    if counts[0] > rows.size(0):
        raise RuntimeError(
            f"Expected lengths to be at most {rows.size(0)}, the length of the input, but got "
            f"{counts[0]}"
        )
    batches = [sum(count > step for count in counts) for step in range(counts[0])]
    data = pygrad.cat([rows[step, :size] for step, size in enumerate(batches)])
    return PackedSequence(data, pygrad.tensor(batches), order, None)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Pads packed sequences; returns them in their original order, and their lengths.

    Args:
        sequence: packed sequences.
        batch_first: return (B, T, *) instead of (T, B, *).
        padding_value: the value after the end of a sequence.
        total_length: pad to this T.

    Raises:
        ValueError: a sequence is longer than `total_length`.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import pack_sequence, pad_packed_sequence
        >>> packed = pack_sequence([pygrad.tensor([1, 2]), pygrad.tensor([3])])
        >>> pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    sizes: list[int] = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but "
            f"got total_length={total_length} and max sequence length being {len(sizes)}"
        )
    data = sequence.data
    steps = [_pad_rows(step, sizes[0], padding_value) for step in data.split(sizes)]
    padded = pygrad.stack(steps)
    if total_length is not None:
        padded = _pad_rows(padded, total_length, padding_value)
    lengths = pygrad.tensor([sum(size > row for size in sizes) for row in range(sizes[0])])
    if batch_first:
        padded = padded.transpose(0, 1)
    order = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order]


def _pad_rows(rows: Tensor, count: int, value: float) -> Tensor:
    """Appends rows of a value up to a count."""
    missing = count - rows.size(0)
    if not missing:
        return rows
    return pygrad.cat([rows, rows.new_full((missing, *rows.shape[1:]), value)])


def pad_sequence(
    sequences: Any,
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Joins sequences (L, *) of different lengths in one padded tensor.

    Args:
        sequences: tensors that may differ in their first size.
        batch_first: return (B, T, *) instead of (T, B, *).
        padding_value: the value of the padding.
        padding_side: "right" or "left".

    Raises:
        RuntimeError: no sequences, or incompatible sizes.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import pad_sequence
        >>> pad_sequence([pygrad.tensor([1, 2]), pygrad.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])
    """
    if isinstance(sequences, Tensor):
        sequences = sequences.unbind(0)
    elif not isinstance(sequences, Iterable):
        raise RuntimeError(
            "pad_sequence: Expected iterable for input sequences, but got arg of type: "
            f"{type(sequences)}"
        )
    given = tuple(sequences)
    if not given:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(
            f"Expected padding_side to be one of left or right, but got {padding_side}."
        )
    longest = max(each.size(0) for each in given)
    shape = (len(given), longest, *given[0].shape[1:])
    whole = given[0].new_full(shape, padding_value)
    for row, each in enumerate(given):
        left = 0 if padding_side == "right" else longest - each.size(0)
        whole[row, left : left + each.size(0)] = each
    found: Tensor = whole if batch_first else whole.transpose(0, 1)
    return found


def unpad_sequence(
    padded_sequences: Tensor, lengths: Tensor, batch_first: bool = False
) -> list[Tensor]:
    """Splits a padded tensor into its sequences, by their lengths.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import unpad_sequence
        >>> unpad_sequence(pygrad.tensor([[1, 2], [3, 0]]), pygrad.tensor([2, 1]), True)
        [tensor([1, 2]), tensor([3])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    return [row[:length] for row, length in zip(rows, lengths.tolist(), strict=True)]


def pack_sequence(sequences: Sequence[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences (L, *) of different lengths; see :func:`pack_padded_sequence`.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import pack_sequence
        >>> pack_sequence([pygrad.tensor([1, 2]), pygrad.tensor([3])]).batch_sizes
        tensor([2, 1])
    """
    lengths = [each.size(0) for each in sequences]
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """Unpacks the sequences.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils.rnn import pack_sequence, unpack_sequence
        >>> unpack_sequence(pack_sequence([pygrad.tensor([1, 2]), pygrad.tensor([3])]))
        [tensor([1, 2]), tensor([3])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


State = tuple[Tensor, ...]


def run_steps(
    pieces: Sequence[Tensor],
    first: State,
    advance: Callable[[Tensor, State], State],
    backwards: bool,
) -> tuple[Tensor, State]:
    """Runs a recurrent layer over packed steps: all outputs, and each sequence's last state.

    Forwards, rows leave the state at the end of their sequence; backwards, they enter it there.
    """
    outputs = []
    if backwards:
        state = tuple(each[:0] for each in first)
        for piece in reversed(pieces):
            have, rows = state[0].size(0), piece.size(0)
            if rows > have:
                new = zip(state, first, strict=True)
                state = tuple(pygrad.cat([each, start[have:rows]]) for each, start in new)
            state = advance(piece, state)
            outputs.append(state[0])
        return pygrad.cat(outputs[::-1]), state
    ended: list[State] = []
    state = first
    for piece in pieces:
        rows = piece.size(0)
        if rows < state[0].size(0):
            ended.append(tuple(each[rows:] for each in state))
            state = tuple(each[:rows] for each in state)
        state = advance(piece, state)
        outputs.append(state[0])
    ended.append(state)
    last = tuple(pygrad.cat(parts) for parts in zip(*reversed(ended), strict=True))
    return pygrad.cat(outputs), last
