"""What carries messages between the processes of a world: the one thing that backends differ in.

All collectives are made of such messages, so they are the same over every transport.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

Poll = Callable[[], bool]
"""Asked again and again: True once a message is sent or received; raises what went wrong."""

Accept = Callable[[bytes], Any]
"""Called with the head of a message that came: says where its body goes (a writable buffer of as
many bytes as the sender's, or None for no body), or raises if the message is not the expected one.
"""

LEFT: Final = "has left the group"
"""Why a peer is gone that ended in order."""


class Transport(Protocol):
    """Messages between ranks. A message has a head, a few bytes that say what it is, and a body.

    Messages with the same sender, receiver and tag arrive in the order in which they were sent.
    Nothing here waits: who waits polls, and asks `gone` now and then.
    """

    name: str
    """The backend's name."""
    rank: int
    """This process's place in the world."""
    size: int
    """How many processes there are."""
    most_tags: int
    """Tags are 0 to this, without it."""
    broken: str
    """Why nothing can be sent any more; empty while all is well."""

    def send(self, peer: int, tag: int, head: bytes, body: Any) -> Poll:
        """Starts to send. The body is read in place: it must not change until the poll is True."""

    def receive(self, peer: int, tag: int, accept: Accept) -> Poll:
        """Starts to receive one message, of one peer."""

    def probe(self, tag: int) -> int | None:
        """A peer whose message with this tag has come and is not being received; None if none."""

    def gone(self) -> dict[int, str]:
        """The peers that will send nothing more, with why: `LEFT`, or what went wrong with them."""

    def fail(self, reason: str) -> None:
        """Forgets all receives and tells all peers that this process gives up: `gone` shows them
        "gave up: " and the reason. A second time it does nothing.
        """

    def close(self) -> None:
        """Leaves the world. Peers that still wait for this one are told."""
