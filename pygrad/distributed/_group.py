"""Process groups: the members of collectives, and entering and leaving the world."""

from __future__ import annotations

import itertools
import os
import sys
import time
import warnings
import zlib
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from importlib.util import find_spec
from types import TracebackType
from typing import Any, Final

from ._group_calls import Calls
from ._transport import Channel, Transport, lock

default_pg_timeout: Final = timedelta(minutes=30)
_SPAN: Final = 1 << 16
"""The number of tags of a group: half for its collectives in turn, half for messages between
ranks.
"""


class Backend(str):
    """The name of a backend, in lower case. Only `mpi` exists; the others are names.

    Example:
        >>> Backend("MPI")
        'mpi'
    """

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    XCCL = "xccl"
    RAY = "ray"

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


class ProcessGroup(Calls):
    """A subset of the world's ranks. Each member also has a rank in the group.

    Made by `init_process_group` and `new_group`.
    """

    def __init__(
        self, transport: Transport, ranks: Sequence[int], number: int, seconds: float, name: str
    ) -> None:
        self._transport = transport
        self._ranks = list(ranks)
        self._rank = self._ranks.index(transport.rank) if transport.rank in ranks else -1
        self._first_tag = number % (transport.most_tags // _SPAN) * _SPAN
        tags = range(self._first_tag, self._first_tag + _SPAN)
        self._channel = Channel(transport, name, self._ranks, tags)
        self._calls = itertools.count(1)
        self._seconds = seconds
        self._where = (
            "" if len(ranks) == transport.size else f" in the group of ranks {list(ranks)}"
        )
        self.group_name = name
        self.group_desc = "default_pg" if number == 0 else "undefined"

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._rank

    def size(self) -> int:
        """The number of ranks in the group."""
        return len(self._ranks)

    def name(self) -> str:
        """The name of the backend."""
        return self._transport.name

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the time limit of all further collectives."""
        self._seconds = timeout.total_seconds()

    def _next_tag(self) -> int:
        """The tag of the next collective. All ranks count collectives in the same order."""
        return self._first_tag + next(self._calls) % (_SPAN // 2)

    def _point_to_point_tag(self, tag: int) -> int:
        """The transport's tag for a message that the program tagged."""
        if not 0 <= tag < _SPAN // 2:
            raise ValueError(f"tag must be from 0 to {_SPAN // 2 - 1}, got {tag}")
        return self._first_tag + _SPAN // 2 + tag


NON_GROUP_MEMBER: Final = -100


class _World:
    """The state of a process: the default group and the others, in the order they were made."""

    def __init__(self) -> None:
        self.default: ProcessGroup | None = None
        self.groups: list[ProcessGroup] = []
        self.made = itertools.count(2, 2)
        self.local: Counter[tuple[int, ...]] = Counter()


_world: Final = _World()


class _GroupMeta(type):
    @property
    def WORLD(cls) -> ProcessGroup | None:
        """The default group."""
        return _world.default


class group(metaclass=_GroupMeta):
    """Holds the default group as ``group.WORLD``."""


class GroupMember(metaclass=_GroupMeta):
    """Holds the default group, and the value that stands for a group without this process."""

    NON_GROUP_MEMBER = NON_GROUP_MEMBER


# ------------------------------------------------------------------ availability


def is_available() -> bool:
    """Whether the package is available: always True."""
    return True


def is_mpi_available() -> bool:
    """Whether mpi4py is installed."""
    return find_spec("mpi4py") is not None


def is_backend_available(backend: str) -> bool:
    """Whether a backend can be used."""
    return backend.lower() == Backend.MPI and is_mpi_available()


def is_initialized() -> bool:
    """Whether the process is in a group."""
    return _world.default is not None


# ------------------------------------------------------------------ entering and leaving


def _seconds_of(timeout: timedelta | None) -> float:
    if timeout is None:
        timeout = default_pg_timeout
    if not isinstance(timeout, timedelta):
        raise TypeError(
            f"Expected timeout argument to be of type datetime.timedelta, got {timeout}"
        )
    return timeout.total_seconds()


def seconds_or(timeout: timedelta | float | None, default: float) -> float:
    """A call's timeout in seconds, or the default if none is given."""
    if timeout is None:
        return default
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Any = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
    _ranks: list[int] | None = None,
) -> None:
    """Joins the world of processes that ``mpiexec`` started.

    Args:
        backend: "mpi" (the default), also as "cpu:mpi".
        init_method: "env://" or None, since MPI finds the other processes.
        timeout: the time limit of this call and of each collective; 30 minutes if it is None.
        world_size: if given, it must be the number of processes. 0, which programs for MPI pass,
            has no effect but a warning; `rank` is then ignored too.
        rank: if given, it must be this process's rank in MPI.
        store: not supported; nor `pg_options`, `device_id` and `_ranks`.
        group_name: ignored.

    Raises:
        ValueError: a group exists already, or `world_size` or `rank` contradicts MPI.
        NotImplementedError: an argument that is not supported.
        RuntimeError: mpi4py is not installed.
        DistBackendError: not all processes arrived in time.
    """
    if _world.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    for what, given in (
        ("store", store),
        ("pg_options", pg_options),
        ("device_id", device_id),
        ("_ranks", _ranks),
    ):
        if given is not None:
            raise NotImplementedError(f"init_process_group: {what} is not supported")
    name = Backend(backend or Backend.MPI).removeprefix("cpu:")
    if name != Backend.MPI:
        raise NotImplementedError(
            f"init_process_group: there is no backend {backend!r} here; use 'mpi', and start the "
            "program by mpiexec"
        )
    if init_method not in (None, "env://"):
        raise NotImplementedError(
            f"init_process_group: init_method={init_method!r} is not supported: processes that "
            "mpiexec starts know each other"
        )
    seconds = _seconds_of(timeout)
    from ._mpi import MPITransport, world

    deadline = time.monotonic() + seconds
    here, size = world(deadline)
    if world_size == 0:
        warnings.warn(
            f"For MPI backend, world_size (0) and rank ({rank}) are ignored since they are "
            "assigned by the MPI runtime.",
            stacklevel=2,
        )
        world_size = rank = -1
    for what, given, there in (("world_size", world_size, size), ("rank", rank, here)):
        if given not in (-1, there):
            raise ValueError(
                f"init_process_group: {what} is {given}, but MPI says {there}; start the program "
                "by mpiexec -n with the number of processes"
            )
    start(MPITransport(deadline), seconds)


def start(transport: Transport, seconds: float) -> None:
    """Makes the default group, of all ranks of a transport."""
    if not _hooked:
        _hooked.append(sys.excepthook)
        sys.excepthook = _tell_others
    _world.made, _world.local = itertools.count(2, 2), Counter()
    _world.default = ProcessGroup(transport, range(transport.size), 0, seconds, "0")
    _world.groups = [_world.default]


_hooked: Final[list[Any]] = []


def _tell_others(
    kind: type[BaseException], value: BaseException, trace: TracebackType | None
) -> None:
    """On an uncaught exception, calls the former hook and ends the waiting of the other ranks."""
    _hooked[0](kind, value, trace)
    if _world.default is not None:
        with lock:
            _world.default._transport.fail(f"{kind.__name__}: {value}".removesuffix(": "))


def destroy_process_group(group: ProcessGroup | None = None) -> None:
    """Leaves a group; for None the default group, and so all groups.

    Raises:
        AssertionError: there is no default group.
        ValueError: the group was already destroyed.
    """
    if _is_outside(group):
        return
    pg = group or _world.default
    if pg is None:
        raise AssertionError("Process group cannot be None")
    if pg not in _world.groups:
        raise ValueError("Invalid process group specified")
    if pg is _world.default:
        _world.default = None
        _world.groups = []
        with lock:
            pg._transport.close()
    else:
        _world.groups.remove(pg)


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Makes a group of some ranks. All ranks must call it, for all groups in the same order.

    Args:
        ranks: the ranks in the world; None: all.
        timeout: the time limit of its collectives; by default that of the default group.
        backend: must be that of the default group.
        pg_options: not supported; nor `device_id`.
        use_local_synchronization: only the members call it.
        group_desc: the value of `ProcessGroup.group_desc`.
        sort_ranks: order the ranks as in the world; else keep the given order.

    Returns:
        The group, or `GroupMember.NON_GROUP_MEMBER` on a rank that is not a member.

    Raises:
        ValueError, RuntimeError: no default group, invalid ranks, or a rank given twice.
    """
    world = _get_default_group()
    for what, given in (("pg_options", pg_options), ("device_id", device_id)):
        if given is not None:
            raise NotImplementedError(f"new_group: {what} is not supported")
    if backend is not None and Backend(backend).removeprefix("cpu:") != world.name():
        raise NotImplementedError(f"new_group: backend {backend!r} beside {world.name()!r}")
    members = list(range(world.size())) if ranks is None else list(ranks)
    if sort_ranks:
        members.sort()
    if len(members) > world.size():
        raise ValueError(
            "the new group's world size should be less or equal to the world size set by "
            "init_process_group"
        )
    if len(set(members)) != len(members):
        raise ValueError(f"duplicate ranks in the new group: {members}")
    for each in members:
        if not 0 <= each < world.size():
            raise ValueError(
                f"Rank {each} is out of range. Valid ranks are 0 to {world.size() - 1} "
                f"(world_size={world.size()})"
            )
    seconds = world._seconds if timeout is None else _seconds_of(timeout)
    number = _number(members, use_local_synchronization)
    if world.rank() not in members:
        return NON_GROUP_MEMBER
    made = ProcessGroup(world._transport, members, number, seconds, str(number))
    if group_desc is not None:
        made.group_desc = group_desc
    _world.groups.append(made)
    return made


def _number(members: list[int], local: bool) -> int:
    """The number that keeps a group's messages apart from those of other groups.

    If all ranks make the group, the number counts groups and is even. If only its members do
    (`local`), it is an odd checksum of the members and of how many such groups there were.
    """
    if not local:
        return next(_world.made)
    with lock:
        _world.local[tuple(members)] += 1
        before = _world.local[tuple(members)] - 1
    return zlib.crc32(f"{members} {before}".encode()) | 1


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Divides the ranks in order into groups of `group_size`: this rank's group, and all groups.

    Raises:
        ValueError: the size does not divide the world, or is not given.
    """
    if group_size is None:
        raise ValueError("new_subgroups: group_size must be given, there are no devices to count")
    size = get_world_size()
    if group_size <= 0:
        raise ValueError(f"The arg 'group_size' ({group_size}) must be positive")
    if size < group_size:
        raise ValueError(
            f"The arg 'group_size' ({group_size}) must not exceed the world size ({size})"
        )
    if size % group_size:
        raise ValueError(f"The world size ({size}) must be divisible by '{group_size=}'")
    lists = [list(range(i, i + group_size)) for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: list[list[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Makes groups of the given disjoint lists of ranks: this rank's group, and all groups.

    Raises:
        ValueError: not a list of lists, or a rank in two of them.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    seen: set[int] = set()
    for ranks in ranks_per_subgroup_list:
        for each in ranks:
            if each in seen:
                raise ValueError(f"Rank {each} has appeared in both subgroups")
            seen.add(each)
    made = [
        new_group(ranks, timeout, backend, pg_options, group_desc=group_desc)
        for ranks in ranks_per_subgroup_list
    ]
    mine = next((each for each in made if isinstance(each, ProcessGroup)), None)
    return mine, made


# ------------------------------------------------------------------ ranks and sizes


def _get_default_group() -> ProcessGroup:
    if _world.default is None:
        raise ValueError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return _world.default


def _is_outside(group: Any) -> bool:
    return isinstance(group, int) and group == NON_GROUP_MEMBER


def find(group: Any) -> ProcessGroup:
    """The group, or the default one for None.

    Raises:
        ValueError: it was destroyed, or is no group.
    """
    if group is None:
        return _get_default_group()
    if not isinstance(group, ProcessGroup):
        if _is_outside(group):
            raise ValueError("Invalid process group specified")
        raise ValueError(f"Expecting a ProcessGroup, but got a {type(group)}.")
    if group not in _world.groups:
        raise ValueError("Invalid process group specified")
    return group


def find_for(name: str, group: Any) -> ProcessGroup | None:
    """The group of a collective; None, with PyTorch's warning, if this rank is not a member."""
    if not _is_outside(group):
        return find(group)
    warnings.warn(
        f"Running {name} on global rank {get_rank()} which does not belong to the given group.",
        stacklevel=4,
    )
    return None


def get_rank(group: Any = None) -> int:
    """This process's rank in a group; -1 if it is not a member.

    Raises:
        ValueError: there is no group.
    """
    return -1 if _is_outside(group) else find(group).rank()


def get_world_size(group: Any = None) -> int:
    """The size of a group; -1 if this process is not a member.

    Raises:
        ValueError: there is no group.
    """
    return -1 if _is_outside(group) else find(group).size()


def get_backend(group: Any = None) -> str:
    """The name of a group's backend.

    Raises:
        ValueError: there is no group.
    """
    return Backend(find(group).name())


def get_backend_config(group: Any = None) -> str:
    """The backend of each device, as text."""
    return f"cpu:{find(group).name()}"


def get_default_backend_for_device(device: Any) -> str:
    """The backend of a device.

    Raises:
        ValueError: the device has none.
    """
    kind = getattr(device, "type", device)
    if kind != "cpu":
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.MPI


def get_process_group_ranks(group: Any) -> list[int]:
    """The world ranks of the members, by rank in the group."""
    return list(find(group)._ranks)


def get_global_rank(group: Any, group_rank: int) -> int:
    """Converts a rank in the group to the rank in the world.

    Raises:
        ValueError: there is no such rank.
    """
    pg = find(group)
    if not 0 <= group_rank < pg.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return pg._ranks[group_rank]


def get_group_rank(group: Any, global_rank: int) -> int:
    """Converts a rank in the world to the rank in the group.

    Raises:
        ValueError: it is not a member.
    """
    pg = find(group)
    if global_rank not in pg._ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return pg._ranks.index(global_rank)


def get_pg_count() -> int:
    """The number of groups of this process."""
    return len(_world.groups)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """The rank among the processes of this host, from the environment.

    Args:
        fallback_rank: the result if the environment has none.

    Raises:
        RuntimeError: the environment has none, and no fallback was given.
    """
    for name in ("LOCAL_RANK", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    if fallback_rank is not None:
        return fallback_rank
    raise RuntimeError(
        "LOCAL_RANK is not in the environment. Consider passing fallback_rank to allow "
        "`get_node_local_rank` to work, assuming you are not running in a multi-device context "
        "and want the code to run locally instead."
    )
