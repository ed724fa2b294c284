"""The protocol of transports, which carry messages between processes: all that backends differ in.

All collectives are composed of messages, so they are the same over every transport.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol

Poll = Callable[[], bool]
"""Called repeatedly: True once the message is sent or received; raises the error if it failed."""

Accept = Callable[[bytes], Any]
"""Called with the head of an arrived message. Returns the destination of its body (a writable
buffer of the sender's size, or None for no body), or raises if the message is unexpected.
"""

LEFT: Final = "has left the group"
"""The reason given for a peer that ended regularly."""


lock: Final = threading.RLock()
"""Held by the thread that uses a transport. Its holder never waits, not for the engine either."""


class Transport(Protocol):
    """Messages between ranks. A message has a head, a few bytes that describe it, and a body.

    Messages with the same sender, receiver and tag arrive in the order in which they were sent.
    No method waits: a caller that waits polls, and calls `departed_peers` now and then.
    """

    name: str
    """The backend's name."""
    rank: int
    """This process's rank in the world."""
    size: int
    """The number of processes."""
    most_tags: int
    """The exclusive upper bound of tags, which start at 0."""
    broken: str
    """Why nothing can be sent any more; empty without a failure."""
    gave_up: dict[tuple[str, int], str]
    """Why a peer gave up a group, by the group's name and the peer. `departed_peers` updates it."""

    def send(self, peer: int, tag: int, head: bytes, body: Any) -> Poll:
        """Starts to send. The body is read in place: it must not change until the poll is True."""

    def receive(self, peer: int, tag: int, accept: Accept) -> Poll:
        """Starts to receive one message, of one peer."""

    def probe(self, tag: int) -> int | None:
        """A peer whose message with this tag has arrived and is not being received; None without
        one.
        """

    def departed_peers(self) -> dict[int, str]:
        """The peers that will send nothing more, with the reason: `LEFT`, or their failure."""

    def fail(self, reason: str) -> None:
        """Discards all receives and tells all peers that this process gives up: their
        `departed_peers` returns "gave up: " and the reason. A second call does nothing.
        """

    def give_up(self, group: str, tags: range, reason: str) -> None:
        """Discards the receives of one group and tells all peers, where `gave_up` shows it."""

    def close(self) -> None:
        """Leaves the world, and tells peers that still wait for this process."""


class Channel:
    """A group's view of a transport: messages with the group's own tags. A failure of one group
    leaves the others intact.

    Args:
        transport: the transport.
        name: the group's name on all ranks, never used for another group.
        ranks: the members' ranks in the world.
        tags: the tags of its messages.
    """

    def __init__(self, transport: Transport, name: str, ranks: Sequence[int], tags: range) -> None:
        self._transport, self._name, self._ranks, self._tags = transport, name, ranks, tags
        self._broken = ""
        self.backend = transport.name

    def failure_reason(self) -> str:
        """Why the group can send nothing any more; empty without a failure."""
        return self._broken or self._transport.broken

    def send(self, peer: int, tag: int, head: bytes, body: Any) -> Poll:
        """See `Transport`."""
        with lock:
            return self._transport.send(peer, tag, head, body)

    def receive(self, peer: int, tag: int, accept: Accept) -> Poll:
        """See `Transport`."""
        with lock:
            return self._transport.receive(peer, tag, accept)

    def probe(self, tag: int) -> int | None:
        """See `Transport`."""
        with lock:
            return self._transport.probe(tag)

    def departed_peers(self) -> dict[int, str]:
        """The members that will send nothing more to the group, with the reason."""
        with lock:
            gone, gave_up = self._transport.departed_peers(), self._transport.gave_up
            told = {rank: gave_up.get((self._name, rank)) or gone.get(rank) for rank in self._ranks}
        return {rank: why for rank, why in told.items() if why}

    def fail(self, reason: str) -> None:
        """Gives the group up, and tells the others. A second call does nothing."""
        with lock:
            if not self.failure_reason():
                self._broken = reason
                self._transport.give_up(self._name, self._tags, reason)
