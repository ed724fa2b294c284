"""Messages between processes over sockets, each rank of these worlds in this process or forked."""

from __future__ import annotations

import os
import random
import secrets
import signal
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from pygrad.distributed._errors import DistBackendError
from pygrad.distributed._transport import LEFT
from pygrad.distributed.ray import _sockets

World = list[_sockets.Sockets]
Made = Callable[[int], World]
SIZES = [0, 1, 4096, 65536, 65537, 3_000_000]
"""The bytes of bodies that are sent whole and of those that are sent when asked for."""


def connect(size: int) -> World:
    listeners = [_sockets.listen("127.0.0.1") for _ in range(size)]
    addresses = [listener.getsockname() for listener in listeners]
    secret = secrets.token_bytes(32)
    with ThreadPoolExecutor(size) as pool:
        made = [
            pool.submit(_sockets.connect, listener, rank, addresses, secret, 10)
            for rank, listener in enumerate(listeners)
        ]
        return [each.result() for each in made]


@pytest.fixture
def world() -> Iterator[Made]:
    """Makes worlds that are closed in the end."""
    made: World = []

    def make(size: int) -> World:
        made.extend(connect(size))
        return made[-size:]

    yield make
    for transport in made:
        transport.close()


def poll_all(*polls: Callable[[], Any]) -> None:
    """Polls all until all are done."""
    stop = time.monotonic() + 20
    while [poll for poll in polls if not poll()]:
        assert time.monotonic() < stop, "nothing more comes"


def accepting(into: Any, heads: list[bytes]) -> Callable[[bytes], Any]:
    def accept(head: bytes) -> Any:
        heads.append(head)
        return into

    return accept


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("order", ["sent first", "awaited first"])
def test_message_arrives_with_head_and_body(world: Made, size: int, order: str) -> None:
    a, b = world(2)
    body, into, heads = os.urandom(size), bytearray(size), []
    send = lambda: a.send(1, 7, b"what it is", body)  # noqa: E731
    receive = lambda: b.receive(0, 7, accepting(into, heads))  # noqa: E731
    calls = [send, receive] if order == "sent first" else [receive, send]
    poll_all(*[call() for call in calls])
    assert (heads, into) == ([b"what it is"], body)


def test_message_may_have_no_body(world: Made) -> None:
    a, b = world(2)
    heads: list[bytes] = []
    poll_all(a.send(1, 0, b"no more", None), b.receive(0, 0, accepting(None, heads)))
    assert heads == [b"no more"]


def test_messages_of_a_tag_arrive_in_order_and_tags_do_not_wait_for_each_other(world: Made) -> None:
    a, b = world(2)
    bodies = [os.urandom(SIZES[i % len(SIZES)]) for i in range(12)]
    sends = [a.send(1, i % 2, b"%d" % i, body) for i, body in enumerate(bodies)]
    heads: list[bytes] = []
    buffers = [bytearray(len(body)) for body in bodies]
    for parity in (1, 0):
        polls = [b.receive(0, parity, accepting(buffers[i], heads)) for i in range(parity, 12, 2)]
        poll_all(*polls, *sends[parity::2])
    assert heads == [b"%d" % i for i in [*range(1, 12, 2), *range(0, 12, 2)]]
    assert buffers == bodies


def test_all_send_to_all_at_once(world: Made) -> None:
    ranks = world(4)
    random.seed(0)
    polls, checks = [], []
    for t in ranks:
        for peer in range(4):
            for tag in range(3) if peer != t.rank else ():
                body = bytes([t.rank, peer, tag]) * random.choice([1, 1000, 400_000])
                into = bytearray(len(body))
                polls.append(ranks[peer].receive(t.rank, tag, accepting(into, [])))
                polls.append(t.send(peer, tag, b"", body))
                checks.append((into, body))
    poll_all(*polls)
    assert all(into == body for into, body in checks)


@pytest.mark.parametrize("size", [10, 1_000_000])
def test_message_that_is_not_accepted_is_an_error_of_its_receive_alone(
    world: Made, size: int
) -> None:
    a, b = world(2)

    def accept(head: bytes) -> Any:
        raise DistBackendError(f"not {head.decode()}")

    a.send(1, 0, b"this", bytes(size))
    wrong, into = b.receive(0, 0, accept), bytearray(3)
    poll_all(a.send(1, 1, b"", b"abc"), b.receive(0, 1, accepting(into, [])))
    assert into == b"abc"
    with pytest.raises(DistBackendError, match="not this"):
        poll_all(wrong)


def test_body_of_another_size_is_an_error(world: Made) -> None:
    a, b = world(2)
    a.send(1, 0, b"", b"abc")
    with pytest.raises(DistBackendError, match="rank 0 sent 3 bytes where 4 are expected"):
        poll_all(b.receive(0, 0, accepting(bytearray(4), [])))


def test_probe_says_whose_message_has_come(world: Made) -> None:
    a, b, c = world(3)
    assert a.probe(5) is None
    poll_all(c.send(0, 5, b"", b"x"))
    poll_all(lambda: a.probe(5) == 2)
    assert a.probe(4) is None
    poll_all(a.receive(2, 5, accepting(bytearray(1), [])))
    assert a.probe(5) is None
    assert b.departed_peers() == {}


def test_who_leaves_is_gone_after_what_it_sent(world: Made) -> None:
    a, b = world(2)
    body = os.urandom(50_000)
    poll = a.send(1, 0, b"", body)
    poll_all(poll)
    a.close()
    poll_all(b.departed_peers)
    into = bytearray(len(body))
    poll_all(b.receive(0, 0, accepting(into, [])))
    assert into == body
    assert b.departed_peers() == {0: LEFT}


def test_who_gives_up_says_why_and_does_so_once(world: Made) -> None:
    a, b, c = world(3)
    a.fail("shapes differ")
    a.fail("again")
    assert a.broken == "shapes differ"
    poll_all(b.departed_peers, c.departed_peers)
    a.close()
    assert b.departed_peers() == c.departed_peers() == {0: "gave up: shapes differ"}


def test_who_gives_up_receives_nothing_more(world: Made) -> None:
    """Neither what comes later nor the rest of a body that was coming."""
    a, b = world(2)
    into, small = bytearray(8_000_000), bytearray(3)
    large = b.receive(0, 0, accepting(into, []))
    b.receive(0, 1, accepting(small, []))
    poll = a.send(1, 0, b"", b"x" * len(into))
    poll_all(lambda: poll() or large() or into[0])
    b.fail("enough")
    had = bytes(into)
    a.send(1, 1, b"", b"abc")
    poll_all(poll, lambda: a.departed_peers() and b.probe(1) == 0)
    assert (bytes(into), bytes(small)) == (had, bytes(3))


class Narrow(socket.socket):
    """A connection that takes a number of bytes and then no more."""

    room: float = 0

    def sendmsg(self, parts: Any, *more: Any) -> int:
        taken = b"".join(parts)[: int(min(self.room, 1 << 20))]
        if not taken:
            raise BlockingIOError
        sent = self.send(taken)
        self.room -= sent
        return sent


@pytest.mark.parametrize("room", [1, _sockets._FRAME.size, _sockets._FRAME.size + 1])
def test_who_gives_up_as_a_body_begins_is_heard(world: Made, room: int) -> None:
    """What is said after a body is not taken for a part of it."""
    a, b = world(2)
    peer = a._peers[1]
    body, into = bytes(100_000), bytearray(100_000)
    poll = a.send(1, 0, b"", body)
    b.receive(0, 0, accepting(into, []))
    connection = peer.connection = Narrow(fileno=peer.connection.detach())
    connection.setblocking(False)
    connection.room = room
    poll_all(lambda: b.departed_peers() or poll() or not connection.room)
    connection.room = float("inf")
    a.fail("enough")
    poll_all(b.departed_peers)
    assert b.departed_peers() == {0: "gave up: enough"}


def test_messages_that_were_received_leave_nothing(world: Made) -> None:
    """Each collective has a tag of its own, so a queue for each would be thousands."""
    a, b = world(2)
    for tag in range(100):
        into = bytearray(1)
        poll_all(a.send(1, tag, b"", b"x"), b.receive(0, tag, accepting(into, [])))
    assert (dict(b._came), dict(b._wanted)) == ({}, {})


def fork(run: Callable[[], None]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            run()
        finally:
            os._exit(0)
    return pid


@pytest.mark.parametrize("when", ["before it says anything", "in the middle of a body"])
def test_killed_process_is_gone(when: str) -> None:
    listeners = [_sockets.listen("127.0.0.1") for _ in range(2)]
    addresses = [listener.getsockname() for listener in listeners]
    secret = bytes(32)

    def run_other() -> None:
        listeners[0].close()
        transport = _sockets.connect(listeners[1], 1, addresses, secret, 10)
        poll = transport.send(0, 0, b"", bytes(100_000_000))
        while when == "in the middle of a body" and not poll():
            pass
        time.sleep(60)

    pid = fork(run_other)
    listeners[1].close()
    transport = _sockets.connect(listeners[0], 0, addresses, secret, 10)
    into = bytearray(b"x") * 100_000_000
    poll = transport.receive(1, 0, accepting(into, []))
    if when == "in the middle of a body":
        poll_all(lambda: poll() or into[0] == 0)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    poll_all(transport.departed_peers)
    assert transport.departed_peers() == {1: _sockets.KILLED}
    assert not poll()
    transport.close()


def test_strangers_are_not_let_in() -> None:
    listeners = [_sockets.listen("127.0.0.1") for _ in range(2)]
    addresses = [listener.getsockname() for listener in listeners]
    wrong = socket.create_connection(addresses[0])
    wrong.sendall(b"?" * 36)
    silent = socket.create_connection(addresses[0])
    silent.shutdown(socket.SHUT_WR)
    with ThreadPoolExecutor(2) as pool:
        made = [
            pool.submit(_sockets.connect, listeners[r], r, addresses, b"s" * 32, 10)
            for r in range(2)
        ]
        a, b = [each.result() for each in made]
    into = bytearray(2)
    poll_all(b.send(0, 0, b"", b"hi"), a.receive(1, 0, accepting(into, [])))
    assert into == b"hi"
    for each in (a, b, wrong, silent):
        each.close()


def test_missing_rank_is_an_error_that_names_it() -> None:
    listener, silent = (_sockets.listen("127.0.0.1") for _ in range(2))
    addresses = [listener.getsockname(), silent.getsockname()]
    with pytest.raises(ConnectionError, match=r"rank 0 is not connected with \[1\]"):
        _sockets.connect(listener, 0, addresses, bytes(32), 0.2)
    silent.close()
