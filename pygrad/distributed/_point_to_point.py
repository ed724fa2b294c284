"""Messages from one rank to another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .._tensor.tensor import Tensor
from . import _buffers, _message
from ._call import member
from ._group import ProcessGroup, find, find_for
from ._progress import Steps, Waiting, Work


def _head(tensor: Tensor, tag: int, group: ProcessGroup) -> bytes:
    """The head of a message. Shapes may differ as long as the numbers of elements agree."""
    name = f"a message with tag {tag}, {tensor.numel()} elements of {tensor.dtype}"
    return _message.head(name, [], group._where)


def isend(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> Work | None:
    """Starts to send a tensor; it must not change until the work has ended.

    Args:
        tensor: the tensor to send.
        dst: the receiver's rank in the world; or `group_dst`, its rank in the group.
        group: the process group.
        tag: the tag that the receiver uses, from 0 to 32767.

    Returns:
        A `Work`; None if this rank is not a member of the group.

    Raises:
        ValueError: the rank is this one, or not a member.
    """
    _buffers.check([tensor], "isend")
    pg = find_for("isend", group)
    if pg is None:
        return None
    there = pg._ranks[member(pg, dst, group_dst)]
    _check_other(there, pg, "destination")
    head, at = _head(tensor, tag, pg), pg._point_to_point_tag(tag)
    row, channel = _buffers.flat(tensor), pg._channel

    def steps() -> Steps[None]:
        yield Waiting([(there, channel.send(there, at, head, _buffers.bytes_of(row)))])

    says = f"send of {head.decode()}"
    return Work(steps(), says, channel, pg._seconds, [tensor], ("send", [tensor]))


def _check_other(rank: int, group: ProcessGroup, what: str) -> None:
    if rank == group._ranks[group.rank()]:
        raise ValueError(
            f"Invalid {what} rank: {what} rank should not be the same as the rank of the current "
            "process."
        )


def irecv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> Work | None:
    """Starts to receive a tensor.

    Args:
        tensor: is overwritten.
        src: the sender's rank in the world, any if None; or `group_src`, its rank in the group.
        group: the process group.
        tag: the sender's tag.

    Returns:
        A `Work`, with the sender as its `source_rank`; None if this rank is not a member.

    Raises:
        ValueError: the rank is this one, or not a member.
        DistBackendError: (when it is waited for) the message has another size or dtype.
    """
    _buffers.check([tensor], "irecv")
    pg = find_for("irecv", group)
    if pg is None:
        return None
    known = src is not None or group_src is not None
    there = pg._ranks[member(pg, src, group_src)] if known else -1
    if known:
        _check_other(there, pg, "source")
    head, at = _head(tensor, tag, pg), pg._point_to_point_tag(tag)
    target, channel = _buffers.Target(tensor), pg._channel

    def steps() -> Steps[int]:
        found = [there]
        if not known:
            yield Waiting([(rank, _probe(pg, at, found)) for rank in pg._ranks[:1]])
        accept = _message.expect(found[0], head, _buffers.bytes_of(target.row))
        yield Waiting([(found[0], channel.receive(found[0], at, accept))])
        target.finish_write()
        return found[0]

    says = f"receive of {head.decode()}"
    event = "recv" if known else "recvAnySource"
    return Work(steps(), says, channel, pg._seconds, [tensor], (event, [tensor]))


def _probe(group: ProcessGroup, tag: int, found: list[int]) -> Callable[[], bool]:
    """Makes a poll for a message with a tag. The poll records the sender in `found`."""

    def poll() -> bool:
        peer = group._channel.probe(tag)
        if peer is None:
            return False
        found[0] = peer
        return True

    return poll


def send(
    tensor: Tensor,
    dst: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_dst: int | None = None,
) -> None:
    """`isend` with a wait: the tensor may change afterwards."""
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(
    tensor: Tensor,
    src: int | None = None,
    group: Any = None,
    tag: int = 0,
    group_src: int | None = None,
) -> int:
    """`irecv` with a wait; returns the sender's rank, -1 if this rank is not a member."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """A message to send or receive by `batch_isend_irecv`.

    Args:
        op: `isend` or `irecv`.
        tensor: the tensor to send or overwrite.
        peer: the other rank in the world; or `group_peer`, its rank in the group.
        group, tag: see `isend`.

    Raises:
        ValueError: another op.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        tensor: Tensor,
        peer: int | None = None,
        group: Any = None,
        tag: int = 0,
        group_peer: int | None = None,
    ) -> None:
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _buffers.check([tensor], "P2POp")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = find(group)
        self.group_peer = member(self.group, peer, group_peer)
        self.peer = self.group._ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Starts several messages; returns a `Work` for each.

    Raises:
        ValueError: not a list of `P2POp`, or several groups.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError(
            "Invalid ``p2p_op_list``. Each op is expected to to be of type "
            "``torch.distributed.P2POp``."
        )
    if any(each.group is not p2p_op_list[0].group for each in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    started = [
        each.op(each.tensor, group=each.group, tag=each.tag, **{side: each.group_peer})
        for each in p2p_op_list
        for side in ["group_dst" if each.op is isend else "group_src"]
    ]
    return [work for work in started if work is not None]
