"""Ops that are one loop here, and in PyTorch several ops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from .. import ops
from .._boundary.arguments import Index
from .._boundary.asked import tensor_of
from .._tensor.index import ELLIPSIS, INT, NONE, SLICE

Composed = Callable[[], Any]
"""Makes an answer of calls of other ops."""
Request = tuple[Any, list[Any], dict[str, Any]]
"""A call of an op: the op, its arguments, and those by keyword."""


def _steps(index: Sequence[int], x: Any) -> Iterator[tuple[Any, ...]]:
    """A subscript as a sequence of ops, each with its arguments after the first."""
    width, items, at = {NONE: 1, ELLIPSIS: 1, SLICE: 4}, [], 0
    while at < len(index):
        n = width.get(index[at], 2)
        items.append(index[at : at + n])
        at += n
    used, dim = sum(kind[0] not in (NONE, ELLIPSIS) for kind in items), 0
    lists: list[Any] = []
    for kind, *item in items:
        if kind == INT:
            yield ops.aten.select.int, dim, item[0]
            continue
        if kind == NONE:
            yield ops.aten.unsqueeze.default, dim
        elif kind == ELLIPSIS:
            dim += x.dim() - used - 1
        elif kind == SLICE:
            start, stop, step = (None if each == _ABSENT else each for each in item)
            if (start, stop, step) != (None, None, None):
                start, step = start or 0, 1 if step is None else step
                yield ops.aten.slice.Tensor, dim, start, _END if stop is None else stop, step
        else:
            lists += [None] * (dim - len(lists))
            lists.append(tensor_of(item[0]))
        dim += 1
    if lists:
        yield ops.aten.index.Tensor, lists


_ABSENT, _END = -(1 << 63), (1 << 63) - 1


def _subscript_ops(values: list[Any]) -> Composed | None:
    x, index = values
    if not isinstance(index, Index):
        return None

    def run() -> Any:
        found = x
        for op, *args in _steps(index.words, x):
            found = op(found, *args)
        return ops.aten.alias.default(x) if found is x else found

    return run


def _linear(values: list[Any]) -> Composed:
    x, weight, bias = values

    def run() -> Any:
        aten = ops.aten
        turned = aten.t.default(weight)
        if x.dim() == 2 and bias is not None:
            return aten.addmm.default(bias, x, turned)
        flat = x if x.dim() == 2 else aten.view.default(x, [-1, x.shape[-1]])
        if x.dim() == 1:
            flat = aten.unsqueeze.default(x, 0)
        y = (
            aten.mm.default(flat, turned)
            if bias is None
            else aten.addmm.default(bias, flat, turned)
        )
        return y if x.dim() == 2 else aten.view.default(y, [*x.shape[:-1], weight.shape[0]])

    return run


def _sum_to_size_ops(values: list[Any]) -> Composed:
    x, size = values

    def run() -> Any:
        lead = x.dim() - len(size)
        dims = [i for i in range(x.dim()) if i < lead or (size[i - lead] == 1 and x.shape[i] != 1)]
        y = ops.aten.sum.dim_IntList(x, dims, True) if dims else x
        return ops.aten.view.default(y, list(size)) if lead else y

    return run


def _dropout_ops(values: list[Any]) -> Composed | None:
    """An op draws the noise, so that a recorder of ops draws new noise each time."""
    x, p, training, *kind = values
    if kind[:1] not in ([], [0]) or not training or not 0 < p < 1 or not x.numel():
        return None

    def run() -> Any:
        aten = ops.aten
        noise = aten.bernoulli_.float(aten.empty_like.default(x), 1 - p)
        return aten.mul.Tensor(x, aten.div_.Scalar(noise, 1 - p))

    return run


AT_DOOR: Final[dict[str, Callable[[list[Any]], Request | Composed | None]]] = {
    "dropout": _dropout_ops,
}
"""Functions that make the calls of ops which are asked at their doors, by name."""
AT_LAST: Final[dict[str, Callable[[list[Any]], Request | Composed | None]]] = {
    "_getitem": _subscript_ops,
    "__getitem__": _subscript_ops,
    "linear": _linear,
    "sum_to_size": _sum_to_size_ops,
}
"""Functions that make the calls of ops which are asked after their bodies, by name: what PyTorch
calls depends on ranks and subscripts.
"""
