"""Ops that are one loop here, and in PyTorch several ops."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from .. import ops
from .._boundary.arguments import Index

Composed = Callable[[], Any]
"""Makes an answer of calls of other ops."""
Request = tuple[Any, list[Any], dict[str, Any]]
"""A call of an op: the op, its arguments, and those by keyword."""


def _subscript_ops(values: list[Any]) -> Composed | None:
    """A subscript that takes all: the ops of others answer for themselves."""
    x, index = values
    return partial(ops.aten.alias.default, x) if isinstance(index, Index) else None


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
}
"""Functions that make the calls of ops which are asked after their bodies, by name."""
