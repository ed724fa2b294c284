"""Every collective as a function of one rank, for any library that has PyTorch's names."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, Final, NamedTuple


class Rank(NamedTuple):
    """One rank of a world: what it has for torch, and `distributed` of that."""

    torch: Any
    dist: Any
    rank: int
    size: int


Make = Callable[..., Any]
"""Makes a tensor of so many elements for a rank."""
Collective = Callable[..., list[Any]]
"""A function of a rank, a group, makers of what is sent and of what is received, and an op; it
returns the tensors that were received.
"""


def _all_reduce(r: Rank, group: Any, sent: Make, _: Make, op: Any) -> list[Any]:
    r.dist.all_reduce(x := sent(r), op, group)
    return [x]


def _ring_all_reduce(r: Rank, group: Any, sent: Make, _: Make, op: Any) -> list[Any]:
    r.dist.all_reduce(x := sent(r), op, group, deterministic=False)
    return [x]


def _all_reduce_coalesced(r: Rank, group: Any, sent: Make, _: Make, op: Any) -> list[Any]:
    r.dist.all_reduce_coalesced(xs := [sent(r), sent(r)], op, group)
    return xs


def _reduce(r: Rank, group: Any, sent: Make, _: Make, op: Any) -> list[Any]:
    r.dist.reduce(x := sent(r), 0, op, group)
    return [x] if r.rank == 0 else []


def _reduce_scatter(r: Rank, group: Any, sent: Make, received: Make, op: Any) -> list[Any]:
    r.dist.reduce_scatter(x := received(r), [sent(r) for _ in range(r.size)], op, group)
    return [x]


def _reduce_scatter_tensor(r: Rank, group: Any, sent: Make, received: Make, op: Any) -> list[Any]:
    r.dist.reduce_scatter_tensor(x := received(r), sent(r, r.size), op, group)
    return [x]


REDUCTIONS: Final[dict[str, Collective]] = {
    "all_reduce": _all_reduce,
    "all_reduce around a ring": _ring_all_reduce,
    "all_reduce_coalesced": _all_reduce_coalesced,
    "reduce": _reduce,
    "reduce_scatter": _reduce_scatter,
    "reduce_scatter_tensor": _reduce_scatter_tensor,
}


def _broadcast(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    r.dist.broadcast(x := (received if r.rank else sent)(r), 0, group)
    return [x]


def _scatter(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    given = [sent(r) for _ in range(r.size)] if r.rank == 0 else None
    r.dist.scatter(x := received(r), given, 0, group)
    return [x]


def _gather(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    found = [received(r) for _ in range(r.size)] if r.rank == 0 else None
    r.dist.gather(sent(r), found, 0, group)
    return found or []


def _all_gather(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    r.dist.all_gather(found := [received(r) for _ in range(r.size)], sent(r), group)
    return found


def _all_gather_into_tensor(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    r.dist.all_gather_into_tensor(found := received(r, r.size), sent(r), group)
    return list(found.chunk(r.size))


def _all_gather_coalesced(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    lists = [[received(r), received(r)] for _ in range(r.size)]
    r.dist.all_gather_coalesced(lists, [sent(r), sent(r)], group)
    return [each[1] for each in lists]


def _all_to_all(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    found = [received(r) for _ in range(r.size)]
    r.dist.all_to_all(found, [sent(r) for _ in range(r.size)], group)
    return found


def _all_to_all_single(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    r.dist.all_to_all_single(found := received(r, r.size), sent(r, r.size), None, None, group)
    return list(found.chunk(r.size))


def _send(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    if r.rank == 0:
        r.dist.send(sent(r), 1, group)
        return []
    if r.rank > 1:
        return []
    r.dist.recv(x := received(r), 0, group)
    return [x]


def _recv_of_any(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    if r.rank == 0:
        r.dist.send(sent(r), 1, group, tag=3)
        return []
    if r.rank > 1:
        return []
    sender = r.dist.recv(x := received(r), None, group, tag=3)
    assert sender == 0
    return [x]


def _objects(r: Rank, group: Any, sent: Make, received: Make) -> list[Any]:
    r.dist.all_gather_object(found := [None] * r.size, sent(r).tolist(), group)
    made = [received(r) for _ in found]
    for x, values in zip(made, found, strict=True):
        x.copy_(r.torch.tensor(values, dtype=x.dtype).view(x.shape))
    return made


FROM_FIRST: Final[dict[str, Collective]] = {
    "broadcast": _broadcast,
    "scatter": _scatter,
    "send": _send,
    "recv of any": _recv_of_any,
}
FROM_ALL: Final[dict[str, Collective]] = {
    "gather": _gather,
    "all_gather": _all_gather,
    "all_gather_into_tensor": _all_gather_into_tensor,
    "all_gather_coalesced": _all_gather_coalesced,
    "all_to_all": _all_to_all,
    "all_to_all_single": _all_to_all_single,
    "all_gather_object": _objects,
}
EXCHANGES: Final = FROM_FIRST | FROM_ALL
"""The collectives that move tensors as they are: the first rank's, or those of all in order."""

DTYPES: Final = (
    "float64 float32 float16 bfloat16 complex64 complex128 bool "
    "uint8 int8 int16 int32 int64 uint16 uint32 uint64"
).split()
OPS: Final = "SUM AVG PRODUCT MIN MAX BAND BOR BXOR".split()


def values(rank: int, count: int) -> list[int]:
    return [(place + 2 * rank + 1) % 4 for place in range(count)]


def maker_of_dtype(dtype: str, length: int = 3) -> Make:
    """Small whole numbers that differ by rank, of a dtype."""

    def make(r: Rank, times: int = 1) -> Any:
        kind = getattr(r.torch, dtype)
        return r.torch.tensor(values(r.rank, length) * times).to(kind)

    return make


def outcome(run: Callable[[], list[Any]]) -> list[Any]:
    """The tensors as texts of their numbers; or the name and the first line of an error."""
    try:
        return [str(each.tolist()) for each in run()]
    except (TypeError, ValueError, RuntimeError) as error:
        return [type(error).__name__, *str(error).splitlines()[:1]]


def sweep(r: Rank) -> dict[str, list[Any]]:
    """The outcome of each collective for each dtype, and each op."""
    found = {}
    for (name, collective), dtype in itertools.product(EXCHANGES.items(), DTYPES):
        make = maker_of_dtype(dtype)
        found[f"{name} {dtype}"] = outcome(lambda: collective(r, None, make, make))  # noqa: B023
    for (name, collective), dtype, op in itertools.product(REDUCTIONS.items(), DTYPES, OPS):
        make, kind = maker_of_dtype(dtype), getattr(r.dist.ReduceOp, op)
        call = lambda: collective(r, None, make, make, kind)  # noqa: B023, E731
        found[f"{name} {dtype} {op}"] = outcome(call)
    return found
