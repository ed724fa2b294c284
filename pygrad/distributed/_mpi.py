"""Messages over MPI, by mpi4py: the processes are those that ``mpiexec`` started.

A short message is one message of MPI. A long one is two, and its body goes from the memory of one
engine to that of the other. MPI's own collectives are not used: they wait without an end, and say
nothing of who is missing.
"""

from __future__ import annotations

import atexit
import importlib
import math
import os
import socket
import struct
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from ._alive import Flag, Watch
from ._errors import DistBackendError
from ._transport import LEFT

if TYPE_CHECKING:
    from ._transport import Accept, Poll

_FRAME: Final = struct.Struct("<HQI")
"""Before each message: the lengths of its head and body, and the tag of a body that follows."""
_SHORT: Final = 8192
"""Bytes of a message that is sent as one."""
_TAGS: Final = 1 << 27
"""The tags of heads are below it, those of bodies from it on, to the last that MPI has."""
_CONTROL: Final = _TAGS - 1
_FATES: Final = {"alive": "", "left": LEFT, "died": "has died"}
_FAREWELL: Final = 3.0
"""Seconds that a process which gives up leaves the others to say so themselves."""


def load() -> Any:
    """The module ``mpi4py.MPI``, which starts MPI when it is first imported.

    Raises:
        RuntimeError: it is not installed, or finds no MPI.
    """
    try:
        if "mpi4py.MPI" not in sys.modules:
            mpi4py = importlib.import_module("mpi4py")
            mpi4py.rc.finalize = False  # `_leave` decides
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"the backend mpi needs mpi4py and an MPI: pip install 'pygrad[mpi]' ({error})"
        ) from None


def world() -> tuple[int, int]:
    """This process's rank, and how many there are.

    Raises:
        RuntimeError: there is no mpi4py, or no MPI.
    """
    comm = load().COMM_WORLD
    return comm.Get_rank(), comm.Get_size()


def _forget(request: Any) -> None:
    """Ends a receive, so that its buffer is not written to any more."""
    if request:
        request.Cancel()
        request.Wait()


class MPITransport:
    """The transport between the processes of ``MPI.COMM_WORLD``.

    Args:
        deadline: by when all processes must have come, as `time.monotonic` has it.

    Raises:
        DistBackendError: they have not.
    """

    name = "mpi"
    most_tags = _CONTROL

    def __init__(self, deadline: float) -> None:
        self._mpi: Any = load()
        world = self._mpi.COMM_WORLD
        self.rank: int = world.Get_rank()
        self.size: int = world.Get_size()
        self.broken = ""
        self._gone: dict[int, str] = {}
        self._bodies = 0
        self._told: list[Any] = []  # what MPI may not have sent yet
        self._receiving: set[_Receiving] = set()
        self._flag = Flag()
        try:
            self._watches = self._meet(world, deadline)
            self._comm, request = world.Idup()
            self._wait_until(request.Test, deadline, lambda: "a communicator of all ranks")
        finally:
            self._flag.hide()
        self._heard = bytearray(_SHORT)
        self._telling = self._comm.Irecv(self._heard, tag=_CONTROL)
        _open.append(self)

    def _meet(self, world: Any, deadline: float) -> dict[int, Watch]:
        """Watches of the processes on this host, once all have come."""
        mine = f"{socket.gethostname()}\n{self._flag.path}".encode()
        others = [peer for peer in range(self.size) if peer != self.rank]
        buffers = {peer: bytearray(_SHORT) for peer in others}
        sends = [world.Isend(mine, dest=peer, tag=_CONTROL) for peer in others]
        missing = {p: world.Irecv(buffers[p], source=p, tag=_CONTROL) for p in others}
        found, status = {}, self._mpi.Status()

        def arrived() -> bool:
            for peer in [p for p, request in missing.items() if request.Test(status)]:
                del missing[peer]
                said = bytes(buffers[peer][: status.Get_count(self._mpi.BYTE)]).decode()
                host, _, path = said.partition("\n")
                if host == socket.gethostname():
                    found[peer] = Watch(path)
            return not missing and self._mpi.Request.Testall(sends)

        try:
            self._wait_until(arrived, deadline, lambda: f"rank {', '.join(map(str, missing))}")
        finally:
            for request in missing.values():
                _forget(request)
        return found

    def _wait_until(self, done: Poll, deadline: float, what: Any) -> None:
        while not done():
            if time.monotonic() > deadline:
                raise DistBackendError(
                    f"init_process_group: rank {self.rank} of {self.size} waited in vain for "
                    f"{what()}"
                )
            time.sleep(0.0001)

    def send(self, peer: int, tag: int, head: bytes, body: Any) -> Poll:
        """See `Transport`."""
        size = 0 if body is None else body.nbytes
        if _FRAME.size + len(head) + size <= _SHORT:
            frame = _FRAME.pack(len(head), size, 0) + head + (body.tobytes() if size else b"")
            poll: Poll = self._comm.Isend(frame, dest=peer, tag=tag).Test
            return poll
        self._bodies = (self._bodies + 1) % _TAGS
        follows = _TAGS + self._bodies
        frame = _FRAME.pack(len(head), size, follows) + head
        first = self._comm.Isend(frame, dest=peer, tag=tag)
        second = self._comm.Isend(body, dest=peer, tag=follows)
        return lambda: bool(first.Test() and second.Test())

    def receive(self, peer: int, tag: int, accept: Accept) -> Poll:
        """See `Transport`."""
        return _Receiving(self, peer, tag, accept).poll

    def probe(self, tag: int) -> int | None:
        """See `Transport`."""
        status = self._mpi.Status()
        found = self._comm.Iprobe(source=self._mpi.ANY_SOURCE, tag=tag, status=status)
        return status.Get_source() if found else None

    def gone(self) -> dict[int, str]:
        """See `Transport`."""
        status = self._mpi.Status()
        while self._telling.Test(status):
            said = self._heard[: status.Get_count(self._mpi.BYTE)].decode(errors="replace")
            self._gone[status.Get_source()] = said
            self._telling = self._comm.Irecv(self._heard, tag=_CONTROL)
        for peer, watch in self._watches.items():
            if peer not in self._gone and (came := _FATES[watch.fate()]):
                self._gone[peer] = came
        return self._gone

    def _tell(self, said: str) -> None:
        text = said.encode()[:_SHORT]
        for peer in range(self.size):
            if peer != self.rank and self._gone.get(peer) != _FATES["died"]:
                self._told += [self._comm.Isend(text, dest=peer, tag=_CONTROL)]

    def fail(self, reason: str) -> None:
        """See `Transport`."""
        if not self.broken:
            self.broken = reason
            self._cancel()
            self._tell(f"gave up: {reason}")

    def _cancel(self) -> None:
        for each in self._receiving:
            _forget(each.request)
        self._receiving.clear()

    def part(self) -> bool:
        """Closes it when the process ends, and waits for the others; whether all ended in order."""
        if not self.broken:
            self._tell(LEFT)
        end = time.monotonic() + _FAREWELL if self.broken else math.inf
        while len(self.gone()) < self.size - 1 and time.monotonic() < end:
            lost = [f"rank {peer} {why}" for peer, why in self.gone().items() if why != LEFT]
            if lost and not self.broken:
                print(f"rank {self.rank} has ended; {lost[0]}", file=sys.stderr)
                self.broken = lost[0]
                end = time.monotonic() + _FAREWELL
            time.sleep(0.005)
        self.close()
        return not self.broken

    def close(self) -> None:
        """See `Transport`."""
        self._cancel()
        if not self.broken:
            self._tell(LEFT)
        _forget(self._telling)
        self._flag.lower(in_order=not self.broken)
        for watch in self._watches.values():
            watch.close()
        _open.remove(self)


class _Receiving:
    """A message that is to come: first its head, with a short body, then a long body."""

    __slots__ = ("_accept", "_buffer", "_peer", "_to", "request")

    def __init__(self, to: MPITransport, peer: int, tag: int, accept: Accept) -> None:
        self._to, self._peer = to, peer
        self._accept: Accept | None = accept
        self._buffer = bytearray(_SHORT)
        self.request = to._comm.Irecv(self._buffer, source=peer, tag=tag)
        to._receiving.add(self)

    def poll(self) -> bool:
        """Whether all has come."""
        if not self.request.Test():
            return False
        if self._accept is not None and self._take(self._accept):
            return False
        self._to._receiving.discard(self)
        return True

    def _take(self, accept: Accept) -> bool:
        """Reads the head; whether a body follows."""
        self._accept = None
        length, size, follows = _FRAME.unpack_from(self._buffer)
        start = _FRAME.size + length
        target = accept(bytes(self._buffer[_FRAME.size : start]))
        room = 0 if target is None else target.nbytes
        if room != size:
            raise DistBackendError(f"rank {self._peer} sent {size} bytes where {room} are expected")
        if follows:
            self.request = self._to._comm.Irecv(target, source=self._peer, tag=follows)
        elif size:
            memoryview(target)[:] = self._buffer[start : start + size]
        return bool(follows)


_open: Final[list[MPITransport]] = []


def _leave() -> None:
    """Ends MPI with the process. In order if all others end in order; else without MPI's own end,
    which would wait for them, and after they had the time to hear of it.
    """
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        return
    parted = [transport.part() for transport in list(_open)]
    if all(parted):
        mpi.Finalize()
    elif importlib.import_module("mpi4py").rc.finalize is not False:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # it would end MPI in order


atexit.register(_leave)
