"""A running collective: its messages, their heads, and argument checks that collectives share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import _buffers, _message
from ._group import ProcessGroup
from ._progress import Steps, Work


class Call:
    """A running collective.

    Args:
        group: the process group.
        name: the name in the heads of its messages.
        tensors: the tensors whose types and shapes are in the heads.
        event: the name in a profile; None: the first word of `name`.
        inputs: the inputs that a profile shows; None: `tensors`.
    """

    def __init__(
        self,
        group: ProcessGroup,
        name: str,
        tensors: Sequence[Tensor] = (),
        event: str | None = None,
        inputs: Sequence[Tensor] | None = None,
    ) -> None:
        self.group = group
        self.head = _message.head(name, tensors, group._where)
        self.rank, self.size = group.rank(), group.size()
        self._channel = group._channel
        self._event = event or name.split()[0]
        self._inputs = tensors if inputs is None else inputs

    def others(self) -> Iterator[int]:
        """The other ranks, beginning with the next one, so that ranks do not all send to the same
        peer.
        """
        return ((self.rank + i) % self.size for i in range(1, self.size))

    def send(self, peer: int, row: Tensor | None = None) -> tuple[int, Callable[[], bool]]:
        """Sends a message with the elements of a row to a rank of the group."""
        body = None if row is None else _buffers.bytes_of(row)
        there = self.group._ranks[peer]
        return there, self._channel.send(there, self.tag, self.head, body)

    def receive(self, peer: int, row: Tensor | None = None) -> tuple[int, Callable[[], bool]]:
        """Receives a message from a rank of the group into a row."""
        body = None if row is None else _buffers.bytes_of(row)
        there = self.group._ranks[peer]
        accept = _message.expect(there, self.head, body)
        return there, self._channel.receive(there, self.tag, accept)

    def start(
        self, steps: Steps[Any], result: Sequence[Tensor] = (), seconds: float | None = None
    ) -> Work:
        """Starts the collective. The time limit is `seconds`, or else the group's."""
        seconds = self.group._seconds if seconds is None else seconds
        says = self.head.decode()
        event = self._event, map(as_real, self._inputs)
        self.tag = self.group._next_tag()  # a call that was refused before takes no tag
        return Work(steps, says, self._channel, seconds, list(result), event)

    def run(self, steps: Steps[Any], async_op: bool, result: Sequence[Tensor] = ()) -> Work | None:
        """Starts the collective, and waits for it unless it is asynchronous."""
        work = self.start(steps, result)
        if async_op:
            return work
        work.wait()
        return None


def member(group: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """The rank in the group, given in one of two ways."""
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        if not 0 <= group_rank < group.size():
            raise ValueError(f"Group rank {group_rank} is not part of group {group}")
        return group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if global_rank not in group._ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return group._ranks.index(global_rank)


def root_or_first(group: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """`member`, or the world's first rank if neither argument is given."""
    return member(
        group, 0 if global_rank is None and group_rank is None else global_rank, group_rank
    )


def check_where(here: bool, missing: bool, given: Any, parameter: str, role: str) -> None:
    """Raises if the list is missing on the rank with the role, or given on another rank."""
    if here and missing:
        raise ValueError(f"Argument ``{parameter}`` must be specified on {role} rank.")
    if not here and given:
        raise ValueError(f"Argument ``{parameter}`` must NOT be specified on non-{role} ranks.")


def check_list(tensors: Any, parameter: str) -> None:
    """Raises unless the argument is a list of tensors."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{parameter}` of type "
            f"List[torch.Tensor]\n             but got {type(tensors)} instead."
        )


def as_real(tensor: Tensor) -> Tensor:
    """A complex tensor as its real and imaginary parts."""
    return pygrad.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def check_types(*tensors: Tensor) -> None:
    """Raises if the tensors differ in dtype."""
    for each in tensors[1:]:
        if each.dtype is not tensors[0].dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes"
                f"Found {tensors[0].dtype} and  {each.dtype}"
            )


def check_count(tensors: Sequence[Tensor], group: ProcessGroup, parameter: str) -> None:
    """Raises unless there is one tensor for each rank."""
    if len(tensors) != group.size():
        raise ValueError(
            f"{parameter} has {len(tensors)} tensors, one for each of {group.size()} ranks is "
            "expected"
        )


def check_like(one: Tensor, other: Tensor) -> None:
    """Raises if the numbers of elements differ."""
    if one.numel() != other.numel():
        raise ValueError(f"shapes {list(one.shape)} and {list(other.shape)} differ in size")


def split_row(whole: Tensor, row: Tensor, part: Tensor, group: ProcessGroup) -> list[Tensor]:
    """Divides the row of `whole` into one row of the size of `part` for each rank."""
    if whole.numel() != part.numel() * group.size():
        raise ValueError(
            f"a tensor of {whole.numel()} elements is not {group.size()} of {part.numel()}"
        )
    size = part.numel()
    return [row[i * size : (i + 1) * size] for i in range(group.size())]
