"""The op that a call from Python counts as, for policies of selective checkpointing.

A policy is told of the op that PyTorch's dispatcher sees, or, if that sees several, of the one that
does the work: ``linear`` is addmm or mm, ``matmul`` is mm, mv, dot or bmm. An op that PyTorch
composes of many has its own name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import _boundary, ops
from .._boundary import constants
from .._boundary.asked import INPLACE, MISSING
from .._table import functions
from .._table.schema import Argument, arguments
from .._tensor import index
from .._tensor.tensor import Tensor
from .conversions import KINDS, NUMBERS, Misfit
from .row_calls import Plan, calls_of_row

_IGNORED: Final = {"detach", "detach_", "requires_grad_", "contiguous"}
"""Ops that PyTorch's policies are not told of; `contiguous` is one seldom."""


def _product(args: Sequence[Any]) -> str:
    left, right = (each.ndim for each in args[:2])
    if right == 1:
        return "dot.default" if left == 1 else "mv.default"
    return "mm.default" if right == 2 else "bmm.default"


_WIDTH: Final = {index.NONE: 1, index.ELLIPSIS: 1, index.SLICE: 4}
_SUBSCRIPTS: Final = {
    index.TENSOR: "index.Tensor",
    index.BOOL: "index.Tensor",
    index.INT: "select.int",
    index.SLICE: "slice.Tensor",
    index.NONE: "unsqueeze.default",
}
"""The op of a subscript: the first of these kinds that it contains."""


def _subscript(args: Sequence[Any]) -> str:
    if isinstance(args[1], int):
        return _SUBSCRIPTS[index.INT]
    words, at, kinds = args[1].words, 0, set()
    while at < len(words):
        kinds.add(words[at])
        at += _WIDTH.get(words[at], 2)
    return next((name for kind, name in _SUBSCRIPTS.items() if kind in kinds), "alias.default")


_CHOSEN: Final[dict[str, Callable[[Sequence[Any]], str]]] = {
    "matmul": _product,
    "linear": lambda args: "mm.default" if len(args) < 3 or args[2] is None else "addmm.default",
    "_getitem": _subscript,
}
"""Ops that are several in PyTorch; which one does the work depends on ranks and subscripts."""


@functools.cache
def _ops_by_row() -> dict[int, functions.Op]:
    """The op that begins at each row, for ops that make tensors; that of `torch.masked` counts as
    the op of that name.
    """
    named = {op.name: op for op in functions.TABLE if "masked" not in op.words}
    return {
        op.row: named.get(op.name, op) if "masked" in op.words else op
        for op in functions.TABLE
        if "Tensor" in op.schemas[0].partition("->")[2]
        and (op.name == "_getitem" or not op.name.startswith("_"))
        and op.name not in _IGNORED
    }


def _takes(argument: Argument, kind: int) -> bool:
    """Whether an argument of a row takes values of a kind."""
    of = argument.type
    if kind in (constants.MISSING, constants.NONE):
        return argument.default is not None or of.endswith("?")
    if kind == constants.TENSOR:
        return of.startswith(("Tensor|", "Tensor?")) or "Tensor" in of.split("|") or of == "Tensor"
    if kind == constants.INTS:
        return "[" in of
    if kind in NUMBERS:
        return "Tensor" not in of or "Scalar" in of
    return True


def _bind(schema: str, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any] | None:
    """The values of a row's arguments; None if the call has others."""
    given = arguments(schema)
    ordered = [each for each in given if not each.keyword_only]
    if len(args) > len(ordered):  # sizes that are separate arguments
        at = next((i for i, each in enumerate(ordered) if "[" in each.type), len(args))
        args = (*args[:at], list(args[at:]))
    if len(args) > len(ordered):
        return None
    named = dict(zip([each.name for each in ordered], args, strict=False)) | kwargs
    if "input" in named and all(each.name != "input" for each in given):
        named.setdefault("self", named.pop("input"))
    values = [named.pop(each.name, MISSING) for each in given]
    kinds = [KINDS[type(value)] for value in values]
    fits = all(_takes(each, kind) for each, kind in zip(given, kinds, strict=True))
    return values if fits and named.keys() <= {"out", "requires_grad", "mask"} else None


def _called_overload(op: functions.Op, form: int, args: Sequence[Any], kwargs: Any) -> Any:
    """The overload that a call comes to; None if PyTorch's dispatcher has none."""
    said = next((word[5:] for word in op.words if word.startswith("aten:")), "(")
    name, _, overload = said.partition(".")
    name += "_" * bool(form)
    lines = [calls_of_row(row, form) for row in range(op.row, op.row + len(op.schemas))]
    for line, schema in zip(lines, op.schemas, strict=True):
        values = _bind(schema, args, kwargs)
        if line is None or values is None:
            continue
        for call in line.calls:
            if call.explicit:
                return ops.overload(call.name, call.overload)
            if "(" not in said and call.name != name:
                continue
            try:
                plan = Plan(call, [KINDS[type(value)] for value in values], True)
            except Misfit:
                continue
            if plan.func._can_decompose():  # it is made of a candidate before
                break
            if all(values[at] is MISSING or values[at] is None for at, _ in plan.rest):
                return plan.func
    if "(" not in said:
        return ops.overload(name, overload or "default")
    first = next((line.calls[0] for line in lines if line is not None), None)
    return first and ops.overload(first.name, first.overload)


_known: Final[dict[tuple[Any, ...], Any]] = {}
"""The overloads of calls, by row, form and the kinds of arguments."""


def op_of_call(row: int, mode: int, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    """The op that represents a call to a policy; None for a call that is no op of PyTorch's
    dispatcher.
    """
    op = _ops_by_row().get(row)
    if op is None:
        return None
    in_place = mode & _boundary.INPLACE
    if op.name in _CHOSEN:
        values = (*args, *(each for each in kwargs.values() if isinstance(each, Tensor)))
        name, _, overload = _CHOSEN[op.name](values).partition(".")
        return ops.overload(name, overload)
    kinds = (
        tuple(KINDS[type(each)] for each in args),
        tuple((name, KINDS[type(each)]) for name, each in kwargs.items()),
    )
    key = row, in_place, *kinds
    if key not in _known:
        found = _called_overload(op, INPLACE if in_place else 0, args, kwargs)
        if found is None:
            found = ops.overload(ops.name_in_aten(op) + "_" * bool(in_place), "default")
        _known[key] = found
    return _known[key]
