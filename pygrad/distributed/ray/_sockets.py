"""Messages between the workers of a Ray run, over one TCP connection for each pair.

Ray distributes the addresses. A call of an actor takes more than half a millisecond, a message here
some tens of microseconds. The system closes the connections of a killed process, so its peers
notice at once. MPI would end all ranks at the loss of one.

A small message is sent whole. For a larger one the head is sent first. The body follows when the
receiver has chosen its destination, and is read directly into it.
"""

from __future__ import annotations

import contextlib
import hmac
import selectors
import socket
import struct
import time
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, TypeVar

from .._errors import DistBackendError
from .._transport import LEFT, Accept, Poll

Address = tuple[str, int]

KILLED = "was killed, or its connection broke"
"""The reason recorded for a peer that is gone without a message."""

_FRAME = struct.Struct("!BIIQQ")
"""The start of each frame: its kind, the tag, the sizes of head and body in bytes, and the index of
the body on the connection.
"""
_WHOLE, _OFFER, _READY, _BODY, _GONE, _GIVEN_UP = range(6)
_HELLO = struct.Struct("!32sI")
"""The first bytes of a connection: the secret of the run, and the rank."""

_SMALL = 1 << 16
"""The largest size in bytes of a message that is sent whole."""
_CHUNK = 1 << 18
_HEARING = 10.0
"""Seconds within which a new connection must send its first bytes."""
_PATIENCE = 1.0
"""Seconds that leaving may take while peers do not read."""


def _bytes(body: Any) -> memoryview:
    view = memoryview(bytearray() if body is None else body)
    return view.cast("B") if view.nbytes else memoryview(bytearray())


class _Outgoing:
    """Bytes to write to one peer in order; `tag` is the tag of a message."""

    def __init__(self, *parts: bytes | memoryview, tag: int = -1) -> None:
        self.tag = tag
        self.parts = [memoryview(part) for part in parts if len(part)]
        self.started = False

    def precede(self, frame: bytes) -> None:
        """Prepends a frame, so that frame and bytes are sent together."""
        self.parts.insert(0, memoryview(frame))

    def wrote(self, count: int) -> None:
        self.started = True
        while count:
            first = self.parts[0]
            if count < len(first):
                self.parts[0] = first[count:]
                return
            count -= len(first)
            del self.parts[0]


class _Message:
    """An arrived message: whole, or the offer of a body."""

    def __init__(self, head: bytes, body: bytearray | None, size: int, number: int) -> None:
        self.head, self.body, self.size, self.number = head, body, size, number


class _Receive:
    """A message that the program is receiving."""

    def __init__(self, accept: Accept, tag: int) -> None:
        self.accept, self.tag = accept, tag
        self.into: memoryview | None = None
        self.done = False
        self.error: BaseException | None = None


_Place = tuple[int, int]
"""A peer and a tag. Messages of one place are received in the order of sending."""

_T = TypeVar("_T")


def _first(queues: dict[_Place, deque[_T]], place: _Place) -> _T | None:
    """Removes and returns the first entry of a queue; deletes empty queues, since tags are many."""
    queue = queues.get(place)
    if queue is None:
        return None
    first = queue.popleft()
    if not queue:
        del queues[place]
    return first


class _Peer:
    """The connection to one process, and its pending transfers."""

    def __init__(self, rank: int, connection: socket.socket) -> None:
        self.rank, self.connection = rank, connection
        self.reason: str | None = None  # the reason if it is gone
        self.open = True
        self.out: deque[_Outgoing] = deque()
        self.offered: dict[int, _Outgoing] = {}  # bodies until the peer is ready
        self.offers = 0
        self.read = bytearray()  # incomplete frames
        self.ready: dict[int, _Receive | None] = {}  # receivers of future bodies; None: discard
        self.body: memoryview | None = None  # the unread rest of the current body
        self.whose: _Receive | None = None


class Sockets:
    """A `Transport` over sockets, one connected socket for each other rank."""

    name = "ray"
    most_tags = 1 << 32

    def __init__(self, rank: int, connections: dict[int, socket.socket]) -> None:
        self.rank, self.size = rank, len(connections) + 1
        self.broken = ""
        self.gave_up: dict[tuple[str, int], str] = {}
        self._came: defaultdict[_Place, deque[_Message]] = defaultdict(deque)
        self._wanted: defaultdict[_Place, deque[_Receive]] = defaultdict(deque)
        self._selector = selectors.DefaultSelector()
        self._peers = {peer: _Peer(peer, connections[peer]) for peer in sorted(connections)}
        for peer in self._peers.values():
            peer.connection.setblocking(False)
            self._selector.register(peer.connection, selectors.EVENT_READ, peer)

    def send(self, peer: int, tag: int, head: bytes, body: Any) -> Poll:
        """Starts to send. The body is read in place."""
        to, view = self._peers[peer], _bytes(body)
        if len(head) + len(view) <= _SMALL:
            frame = _FRAME.pack(_WHOLE, tag, len(head), len(view), 0)
            sent = _Outgoing(frame, head, view, tag=tag)
            self._write(to, sent)
        else:
            to.offers += 1
            sent = _Outgoing(view, tag=tag)
            to.offered[to.offers] = sent
            offer = _FRAME.pack(_OFFER, tag, len(head), len(view), to.offers)
            self._write(to, _Outgoing(offer, head, tag=tag))

        def poll() -> bool:
            if sent.parts:
                self._turn()
            return not sent.parts

        return poll

    def receive(self, peer: int, tag: int, accept: Accept) -> Poll:
        """Starts to receive one message, of one peer."""
        wanted = _Receive(accept, tag)
        message = _first(self._came, (peer, tag))
        if message is None:
            self._wanted[peer, tag].append(wanted)
        else:
            self._give(self._peers[peer], message, wanted)

        def poll() -> bool:
            if not wanted.done:
                self._turn()
            if wanted.error is not None:
                raise wanted.error
            return wanted.done

        return poll

    def probe(self, tag: int) -> int | None:
        """A peer whose message with this tag has arrived and is not being received; None without
        one.
        """
        self._turn()
        return next((peer for peer in self._peers if (peer, tag) in self._came), None)

    def departed_peers(self) -> dict[int, str]:
        """The peers that will send nothing more, with the reason."""
        self._turn()
        return {p.rank: p.reason for p in self._peers.values() if p.reason is not None}

    def fail(self, reason: str) -> None:
        """Discards all receives and tells all peers that this process gives up."""
        if self.broken:
            return
        self.broken = reason
        self._forget(range(self.most_tags))
        for peer in self._peers.values():
            peer.out = deque(out for out in peer.out if out.started)
        self._say(_GONE, f"gave up: {reason}")

    def give_up(self, group: str, tags: range, reason: str) -> None:
        """Discards the receives of one group and tells all peers."""
        self._forget(tags)
        self._say(_GIVEN_UP, f"{group}\0gave up: {reason}")

    def _forget(self, tags: range) -> None:
        """Discards all receives and sends of some tags, except transfers that have begun."""
        for place in [place for place in self._wanted if place[1] in tags]:
            del self._wanted[place]
        for place in [place for place in self._came if place[1] in tags]:
            del self._came[place]
        for peer in self._peers.values():
            for number, wanted in peer.ready.items():
                if wanted is not None and wanted.tag in tags:
                    peer.ready[number] = None
            if peer.body is not None and peer.whose is not None and peer.whose.tag in tags:
                peer.body, peer.whose = memoryview(bytearray(len(peer.body))), None
            for number in [n for n, out in peer.offered.items() if out.tag in tags]:
                del peer.offered[number]
            peer.out = deque(out for out in peer.out if out.started or out.tag not in tags)

    def close(self) -> None:
        """Leaves the world, after all pending messages."""
        if not self.broken:
            self._say(_GONE, LEFT)
        self.broken = self.broken or LEFT
        for peer in self._peers.values():
            with contextlib.suppress(OSError):
                peer.connection.shutdown(socket.SHUT_WR)
        self._turn()  # closing a connection with unread bytes would discard bytes in flight
        for peer in self._peers.values():
            self._end(peer, peer.reason)
        self._selector.close()

    def _say(self, kind: int, reason: str) -> None:
        """Sends a notice of this process, or of a group, to all peers, after pending messages."""
        head = reason.encode()[:_SMALL]
        for peer in self._peers.values():
            self._write(peer, _Outgoing(_FRAME.pack(kind, 0, len(head), 0, 0), head))
        stop = time.monotonic() + _PATIENCE
        while any(peer.out for peer in self._peers.values()) and time.monotonic() < stop:
            self._turn(0.01)

    def _write(self, peer: _Peer, out: _Outgoing) -> None:
        if not peer.open:
            return
        peer.out.append(out)
        if len(peer.out) == 1:
            self._flush(peer)
            if peer.out and peer.open:
                both = selectors.EVENT_READ | selectors.EVENT_WRITE
                self._selector.modify(peer.connection, both, peer)

    def _flush(self, peer: _Peer) -> None:
        """Writes as much as the connection accepts."""
        try:
            while peer.out:
                first = peer.out[0]
                first.wrote(peer.connection.sendmsg(first.parts))
                if first.parts:
                    return
                peer.out.popleft()
        except BlockingIOError:
            pass
        except OSError:
            self._read(peer)  # its last message may still be readable
            self._end(peer, KILLED)

    def _turn(self, seconds: float = 0) -> None:
        """Makes all progress that is possible without waiting."""
        if not self._selector.get_map():
            return
        for key, events in self._selector.select(seconds):
            peer = key.data
            if events & selectors.EVENT_READ:
                self._read(peer)
            if events & selectors.EVENT_WRITE and peer.open:
                self._flush(peer)
                if not peer.out and peer.open:
                    self._selector.modify(peer.connection, selectors.EVENT_READ, peer)

    def _read(self, peer: _Peer) -> None:
        """Reads the available bytes of a connection."""
        try:
            while peer.open:
                if peer.body is not None:
                    count = peer.connection.recv_into(peer.body)
                    if count:
                        self._advance_body(peer, count)
                else:
                    came = peer.connection.recv(_CHUNK)
                    count = len(came)
                    peer.read += came
                    self._frames(peer)
                if not count:
                    self._end(peer, KILLED)
        except BlockingIOError:
            pass
        except OSError:
            self._end(peer, KILLED)

    def _frames(self, peer: _Peer) -> None:
        """Parses the bytes that were read."""
        while len(peer.read) >= _FRAME.size:
            kind, tag, heads, size, number = _FRAME.unpack_from(peer.read)
            stop = _FRAME.size + heads + (size if kind == _WHOLE else 0)
            if len(peer.read) < stop:
                return
            start = _FRAME.size + heads
            head, body = bytes(peer.read[_FRAME.size : start]), peer.read[start:stop]
            del peer.read[:stop]
            if kind == _WHOLE:
                self._deliver(peer, tag, _Message(head, body, size, 0))
            elif kind == _OFFER:
                self._deliver(peer, tag, _Message(head, None, size, number))
            elif kind == _READY:
                if (sent := peer.offered.pop(number, None)) is not None:  # else discarded
                    sent.precede(_FRAME.pack(_BODY, 0, 0, sum(map(len, sent.parts)), number))
                    self._write(peer, sent)
            elif kind == _BODY:
                self._body(peer, number, size)
            elif kind == _GONE:
                peer.reason = peer.reason or head.decode(errors="replace")
            elif kind == _GIVEN_UP:
                group, _, why = head.decode(errors="replace").partition("\0")
                self.gave_up[group, peer.rank] = why

    def _deliver(self, peer: _Peer, tag: int, message: _Message) -> None:
        wanted = _first(self._wanted, (peer.rank, tag))
        if wanted is None:
            self._came[peer.rank, tag].append(message)
        else:
            self._give(peer, message, wanted)

    def _give(self, peer: _Peer, message: _Message, wanted: _Receive) -> None:
        """Copies a message to the destination of its receiver, or requests its body."""
        try:
            into = _bytes(wanted.accept(message.head))
            if len(into) != message.size:
                raise DistBackendError(
                    f"rank {peer.rank} sent {message.size} bytes where {len(into)} are expected"
                )
        except Exception as error:
            wanted.error = error
            return
        if message.body is None:
            wanted.into = into
            peer.ready[message.number] = wanted
            self._write(peer, _Outgoing(_FRAME.pack(_READY, 0, 0, 0, message.number)))
        else:
            into[:] = message.body
            wanted.done = True

    def _body(self, peer: _Peer, number: int, size: int) -> None:
        """Begins a body, with the part that was read together with its frame."""
        peer.whose = peer.ready.pop(number)
        into = None if peer.whose is None else peer.whose.into
        peer.body = memoryview(bytearray(size)) if into is None else into
        count = min(size, len(peer.read))
        peer.body[:count] = peer.read[:count]
        del peer.read[:count]
        self._advance_body(peer, count)

    def _advance_body(self, peer: _Peer, count: int) -> None:
        assert peer.body is not None
        peer.body = peer.body[count:] if count < len(peer.body) else None
        if peer.body is None and peer.whose is not None:
            peer.whose.done, peer.whose.into, peer.whose = True, None, None

    def _end(self, peer: _Peer, reason: str | None) -> None:
        """Closes the connection; keeps a reason that the peer has sent."""
        if peer.open:
            peer.open = False
            peer.reason = peer.reason or reason
            peer.out.clear()
            self._selector.unregister(peer.connection)
            peer.connection.close()


def listen(host: str) -> socket.socket:
    """A listening socket, at a port chosen by the system."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, 0), family=family, backlog=1024)


def connect(
    listener: socket.socket, rank: int, addresses: Sequence[Address], secret: bytes, timeout: float
) -> Sockets:
    """Connects this rank with all others, and closes the listener.

    Args:
        listener: The listening socket of `addresses[rank]`.
        rank: This process's rank.
        addresses: The address of each rank.
        secret: 32 bytes known only to the run; connections without them are refused.
        timeout: Seconds until all ranks must be connected.

    Raises:
        ConnectionError: a rank cannot be reached, or not within the time.
    """
    stop = time.monotonic() + timeout

    def remaining_time() -> float:
        return max(stop - time.monotonic(), 0.001)

    connections: dict[int, socket.socket] = {}
    try:
        with listener:
            for peer in range(rank):
                connections[peer] = socket.create_connection(addresses[peer], remaining_time())
                connections[peer].sendall(_HELLO.pack(secret, rank))
            while len(connections) < len(addresses) - 1:
                listener.settimeout(remaining_time())
                connection, _ = listener.accept()
                connection.settimeout(min(remaining_time(), _HEARING))
                peer = _hello(connection, secret)
                if rank < peer < len(addresses) and peer not in connections:
                    connections[peer] = connection
                else:
                    connection.close()
    except OSError as error:
        for connection in connections.values():
            connection.close()
        missing = [r for r in range(len(addresses)) if r not in connections and r != rank]
        raise ConnectionError(f"rank {rank} is not connected with {missing}: {error}") from error
    for connection in connections.values():
        _prompt(connection)
    return Sockets(rank, connections)


def _hello(connection: socket.socket, secret: bytes) -> int:
    """The rank of a new connection; -1 without the secret."""
    said = b""
    try:
        while len(said) < _HELLO.size and (more := connection.recv(_HELLO.size - len(said))):
            said += more
    except OSError:
        pass
    if len(said) < _HELLO.size:
        return -1
    told, rank = _HELLO.unpack(said)
    return int(rank) if hmac.compare_digest(told, secret) else -1


def _prompt(connection: socket.socket) -> None:
    """Sends without delay, and detects within seconds that a host is gone."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    # Linux has these options; other systems use their default times.
    times = {"TCP_KEEPIDLE": 5, "TCP_KEEPINTVL": 1, "TCP_KEEPCNT": 5}
    for name, value in times.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
