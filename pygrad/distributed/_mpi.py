"""Messages over MPI, by mpi4py, between the processes that ``mpiexec`` started.

A short message is one message of MPI. A long one is two, and its body goes from the memory of one
engine to that of another. MPI's own collectives are not used: they wait without a limit, and do not
name the missing rank.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib
import math
import os
import socket
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from ._alive import Flag, Watch
from ._errors import DistBackendError
from ._transport import LEFT, lock
from ._witness import Witness

if TYPE_CHECKING:
    from ._transport import Accept, Poll

_FRAME: Final = struct.Struct("<HQI")
"""The start of each message: the lengths of its head and body, and the tag of a separate body."""
_SHORT: Final = 8192
"""The largest message, in bytes, that is sent as one."""
_TAGS: Final = 1 << 27
"""Tags of heads are below it, tags of bodies start with it and end with MPI's last tag."""
_CONTROL: Final = _TAGS - 1
_ENDED: Final = "has ended"
"""Sent at a regular end of the process, perhaps long after it left its group."""
_FATES: Final = {"alive": "", "left": _ENDED, "died": "has died"}
_FAREWELL: Final = 3.0
"""Seconds that a process which gives up waits, so that the others can report their errors."""


def load() -> Any:
    """The module ``mpi4py.MPI``.

    Raises:
        RuntimeError: mpi4py is not installed, or finds no MPI.
    """
    try:
        if "mpi4py.MPI" not in sys.modules:
            mpi4py = importlib.import_module("mpi4py")
            mpi4py.rc.initialize = False  # `world` does
            mpi4py.rc.finalize = False  # `_leave` decides
        return importlib.import_module("mpi4py.MPI")
    except (ImportError, RuntimeError) as error:
        raise RuntimeError(
            f"the backend mpi needs mpi4py and an MPI: pip install 'pygrad-wasm[mpi]' ({error})"
        ) from None


def world(deadline: float) -> tuple[int, int]:
    """This process's rank and the number of processes, after the start of MPI.

    Raises:
        RuntimeError: there is no mpi4py, or no MPI.
        DistBackendError: MPI, which waits for all processes, has not started by the deadline.
    """
    mpi = load()
    if not mpi.Is_initialized():
        _start(mpi, deadline)
    return mpi.COMM_WORLD.Get_rank(), mpi.COMM_WORLD.Get_size()


def _start(mpi: Any, deadline: float) -> None:
    """Starts MPI in a thread, because the start waits without a limit for a missing process.
    mpi4py's own call would hold the interpreter's lock, so the library's function is called
    directly.
    """
    _process.witness.start()
    init, level = ctypes.CDLL(mpi.__file__).MPI_Init_thread, ctypes.c_int()
    arguments = None, None, mpi.THREAD_MULTIPLE, ctypes.byref(level)
    thread = threading.Thread(target=init, args=arguments, daemon=True)
    thread.start()
    thread.join(max(0.0, deadline - time.monotonic()))
    if thread.is_alive() or not mpi.Is_initialized():
        raise DistBackendError(
            "init_process_group: this process waited in vain for all others to start MPI"
        )


def _forget(request: Any) -> None:
    """Cancels a receive, so that nothing writes to its buffer any more."""
    if request:
        request.Cancel()
        request.Wait()


class MPITransport:
    """The transport between the processes of ``MPI.COMM_WORLD``.

    Args:
        deadline: the time, as of `time.monotonic`, by which all processes must have arrived.

    Raises:
        DistBackendError: a process did not arrive.
    """

    name = "mpi"
    most_tags = _CONTROL

    def __init__(self, deadline: float) -> None:
        self._mpi: Any = load()
        world = self._mpi.COMM_WORLD
        self.rank: int = world.Get_rank()
        self.size: int = world.Get_size()
        self.broken = ""
        self.gave_up: dict[tuple[str, int], str] = {}
        self._others = [peer for peer in range(self.size) if peer != self.rank]
        self._gone: dict[int, str] = {}
        self._cut: dict[int, str] = {}  # peers that MPI can no longer reach
        self._bodies = 0
        self._told: list[Poll] = []  # sends that may be unfinished
        self._receiving: set[_Receiving] = set()
        before = _process.transport
        self._flag: Flag = Flag() if before is None else before._flag
        self._watches: dict[int, Watch] = {} if before is None else before._watches
        _process.in_order = False
        try:
            self._meet(world, deadline)
            self._comm, request = world.Idup()
            self._wait_until(request.Test, deadline, lambda: "a communicator of all ranks")
        finally:
            self._flag.hide()
        self._heard = bytearray(_SHORT)
        self._telling = self._comm.Irecv(self._heard, tag=_CONTROL)
        if before is not None:
            before._release()
        _process.transport, _process.in_order = self, True

    def _meet(self, world: Any, deadline: float) -> None:
        """Waits until all processes have arrived, then watches those on this host."""
        mine = f"{socket.gethostname()}\n{self._flag.path}".encode()
        buffers = {peer: bytearray(_SHORT) for peer in self._others}
        sends = [world.Isend(mine, dest=peer, tag=_CONTROL) for peer in self._others]
        missing = {p: world.Irecv(buffers[p], source=p, tag=_CONTROL) for p in self._others}
        status = self._mpi.Status()

        def all_arrived() -> bool:
            for peer in [p for p, request in missing.items() if request.Test(status)]:
                del missing[peer]
                said = bytes(buffers[peer][: status.Get_count(self._mpi.BYTE)]).decode()
                host, _, path = said.partition("\n")
                if host == socket.gethostname() and peer not in self._watches:
                    self._watches[peer] = Watch(path)
            return not missing and self._mpi.Request.Testall(sends)

        try:
            self._wait_until(all_arrived, deadline, lambda: f"rank {', '.join(map(str, missing))}")
        finally:
            for request in missing.values():
                _forget(request)

    def _wait_until(self, done: Poll, deadline: float, what: Any) -> None:
        while not done():
            if time.monotonic() > deadline:
                raise DistBackendError(
                    f"init_process_group: rank {self.rank} of {self.size} waited in vain for "
                    f"{what()}"
                )
            time.sleep(0.0001)

    def _is_complete(self, request: Any, peer: int) -> bool:
        """Whether a request is complete. If MPI fails, `departed_peers` tells why."""
        try:
            return peer not in self._cut and bool(request.Test())
        except self._mpi.Exception as error:
            self._cut[peer] = f"cannot be reached: {error}"
            return False

    def _send(self, peer: int, tag: int, data: Any) -> Poll:
        try:
            request = self._comm.Isend(data, dest=peer, tag=tag)
        except self._mpi.Exception as error:
            self._cut[peer] = f"cannot be reached: {error}"
            request = None
        return lambda: self._is_complete(request, peer)

    def send(self, peer: int, tag: int, head: bytes, body: Any) -> Poll:
        """See `Transport`."""
        size = 0 if body is None else body.nbytes
        if _FRAME.size + len(head) + size <= _SHORT:
            frame = _FRAME.pack(len(head), size, 0) + head + (body.tobytes() if size else b"")
            return self._send(peer, tag, frame)
        self._bodies = (self._bodies + 1) % _TAGS
        follows = _TAGS + self._bodies
        frame = _FRAME.pack(len(head), size, follows) + head
        first, second = self._send(peer, tag, frame), self._send(peer, follows, body)
        return lambda: first() and second()

    def receive(self, peer: int, tag: int, accept: Accept) -> Poll:
        """See `Transport`."""
        return _Receiving(self, peer, tag, accept).poll

    def probe(self, tag: int) -> int | None:
        """See `Transport`."""
        status = self._mpi.Status()
        found = self._comm.Iprobe(source=self._mpi.ANY_SOURCE, tag=tag, status=status)
        return status.Get_source() if found else None

    def departed_peers(self) -> dict[int, str]:
        """See `Transport`."""
        self._hear()
        return {peer: LEFT if why == _ENDED else why for peer, why in self._gone.items()}

    def _hear(self) -> None:
        """Updates the states of the peers. A peer that has ended or failed sends nothing more."""
        status = self._mpi.Status()
        while self._telling.Test(status):
            said = self._heard[: status.Get_count(self._mpi.BYTE)].decode(errors="replace")
            group, given_up, why = said.partition("\0")
            if given_up:
                self.gave_up[group, status.Get_source()] = why
            else:
                self._gone[status.Get_source()] = said
            self._telling = self._comm.Irecv(self._heard, tag=_CONTROL)
        for peer in self._reachable_peers():
            fate = _FATES[self._watches[peer].fate()] if peer in self._watches else ""
            if came := fate or self._cut.get(peer, ""):
                self._gone[peer] = came

    def _reachable_peers(self) -> list[int]:
        """The peers that may still send control messages: at work, or gone only from the group."""
        return [peer for peer in self._others if self._gone.get(peer, LEFT) == LEFT]

    def _tell(self, said: str) -> None:
        text = said.encode()[:_SHORT]
        self._told += [self._send(peer, _CONTROL, text) for peer in self._reachable_peers()]

    def fail(self, reason: str) -> None:
        """See `Transport`."""
        if not self.broken:
            self.broken = reason
            self._cancel()
            self._tell(f"gave up: {reason}")

    def give_up(self, group: str, tags: range, reason: str) -> None:
        """See `Transport`."""
        self._cancel(tags)
        self._tell(f"{group}\0gave up: {reason}")

    def _cancel(self, tags: range | None = None) -> None:
        for each in list(self._receiving):
            if tags is None or each.tag in tags:
                _forget(each.request)
                self._receiving.remove(each)

    def close(self) -> None:
        """See `Transport`. The peers stay monitored until the end of the process."""
        self._cancel()
        if not self.broken:
            self._tell(LEFT)

    def _release(self) -> None:
        """Frees MPI's communicator, once all ranks have closed it and started another.

        MPI may then reuse its number, and a leftover message would reach the next communicator. So
        it is freed only if all ranks have left regularly and no message is unreceived: a rank's
        messages arrive before its farewell.
        """
        end = time.monotonic() + _FAREWELL
        while len(self._gone) < len(self._others) and time.monotonic() < end:
            self._hear()
            time.sleep(0.0001)
        _forget(self._telling)
        in_order = not self.broken and all(self._gone.get(p) == LEFT for p in self._others)
        if in_order and not self._comm.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG):
            self._comm.Free()

    def part(self) -> bool:
        """Waits for the others at the end of the process; whether all of them end regularly."""
        self._cancel()
        if not self.broken:
            self._tell(_ENDED)
        end = time.monotonic() + _FAREWELL if self.broken else math.inf
        unread: list[Any] = []
        while True:
            self._hear()
            unread = [request for request in unread + self._unread() if not request.Test()]
            lost = [f"rank {p} {why}" for p, why in self._gone.items() if why not in (LEFT, _ENDED)]
            if lost and not self.broken:
                print(f"rank {self.rank} has ended; {lost[0]}", file=sys.stderr)
                self.broken = lost[0]
                end = time.monotonic() + _FAREWELL
            if (not self._reachable_peers() and not unread) or time.monotonic() > end:
                break
            time.sleep(0.005)
        self.broken = self.broken or ("messages are left" if unread else "")
        _forget(self._telling)
        self._flag.lower(in_order=not self.broken)
        return not self.broken

    def _unread(self) -> list[Any]:
        """Starts to receive leftover messages of abandoned groups; MPI's end waits for them."""
        found, status = [], self._mpi.Status()
        while self._comm.Iprobe(self._mpi.ANY_SOURCE, self._mpi.ANY_TAG, status):
            room = bytearray(status.Get_count(self._mpi.BYTE))
            found.append(self._comm.Irecv(room, status.Get_source(), status.Get_tag()))
        return found


class _Receiving:
    """A message being received: first its head, with a short body, then a long body."""

    __slots__ = ("_accept", "_buffer", "_peer", "_to", "request", "tag")

    def __init__(self, to: MPITransport, peer: int, tag: int, accept: Accept) -> None:
        self._to, self._peer, self.tag = to, peer, tag
        self._accept: Accept | None = accept
        self._buffer = bytearray(_SHORT)
        self.request = to._comm.Irecv(self._buffer, source=peer, tag=tag)
        to._receiving.add(self)

    def poll(self) -> bool:
        """Whether the whole message has arrived."""
        if not self._to._is_complete(self.request, self._peer):
            return False
        if self._accept is not None and self._take(self._accept):
            return False
        self._to._receiving.discard(self)
        return True

    def _take(self, accept: Accept) -> bool:
        """Reads the head; returns whether a separate body follows."""
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


class _Process:
    """This process's last transport, and whether every start has met all other processes."""

    transport: MPITransport | None = None
    in_order = True
    witness = Witness()


_process: Final = _Process()


def _leave() -> None:
    """Ends MPI with the process: regularly if all others end regularly. Else the process ends
    without MPI's own end, which would wait for the others, but leaves them time to receive the
    reason.
    """
    mpi: Any = sys.modules.get("mpi4py.MPI")
    if mpi is None or not mpi.Is_initialized() or mpi.Is_finalized():
        _process.witness.dismiss(mpi is None or mpi.Is_initialized())
        return
    with lock:
        parted = _process.transport is None or _process.transport.part()
    in_order = parted and _process.in_order
    if in_order:
        mpi.Finalize()
    _process.witness.dismiss(in_order)
    if not in_order and importlib.import_module("mpi4py").rc.finalize is not False:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)  # a normal exit would finalize MPI


atexit.register(_leave)
