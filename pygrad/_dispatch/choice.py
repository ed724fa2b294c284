"""The op of PyTorch's dispatcher, with its arguments, that a question of the engine comes to.

The candidates are data (`row_calls`). Which of them take values of certain kinds is found out once
for each combination of kinds that occurs; a question then is one look-up and a conversion of each
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from .. import ops
from .._boundary import asked, constants, modes
from .._boundary.asked import INPLACE, OUT, values_of
from .._ground.dtypes import device, preserve_format
from .._table import functions
from .._tensor.tensor import Tensor
from . import composed
from .composed import Request
from .conversions import KINDS, Misfit
from .handlers import unseen
from .row_calls import Plan, calls_of_door, calls_of_row, name_of_row

_kind_of = KINDS.__getitem__


class _Asked:
    """A row in one form, or a C function: `calls` are its calls, `compose` makes the call of
    several ops.
    """

    __slots__ = ("at_door", "calls", "compose", "name", "plans", "row")

    def __init__(self, row: int, name: str, form: int) -> None:
        self.row = row >= 0
        found = calls_of_row(row, form) if self.row else calls_of_door(name)
        self.name = name = name_of_row(row) if self.row else name
        self.calls = found.calls if found is not None else []
        self.at_door = found is not None and found.at_door
        self.compose = None if form else composed.AT_LAST.get(name)
        if not form and name in composed.AT_DOOR:
            self.compose, self.at_door = composed.AT_DOOR[name], True
        self.plans: dict[tuple[Any, ...], list[Plan]] = {}

    def plans_for(self, kinds: tuple[int, ...], several: bool) -> list[Plan]:
        """The calls that take values of these kinds, and have several results if wanted."""
        made = list[Plan]()
        for call in self.calls if constants.OTHER not in kinds else ():
            if not (call.explicit or ops.is_callable(call.name)):
                continue
            returns = call.schema.returns
            if several and len(returns) == 1 and returns[0].type.kind_ != "ListType":
                continue
            try:
                made.append(Plan(call, kinds, self.row))
            except Misfit:
                continue
        self.plans[kinds, several] = made
        return made


_known: Final[dict[tuple[int | str, int], _Asked]] = {}


def requested_call(row: int, how: int, words: Sequence[int]) -> Request | Callable[[], Any] | None:
    """The call that a question of the engine describes, or a function that makes it of several
    ops; None: the question is not passed on.
    """
    form = how & (INPLACE | OUT)
    key = (row, form) if row >= 0 else (asked.name_of(words), form)
    known = _known.get(key)
    if known is None:
        known = _known[key] = _Asked(row, "" if row >= 0 else str(key[0]), form)
    if not (known.at_door or how & asked.AT_LAST):
        return None
    values = values_of(words)
    if row < 0 and values and asked.parameters_last(words):
        values[-1:] = values[-1] or []  # the parameters of an element-wise op
    kinds = tuple(map(_kind_of, map(type, values)))
    if known.compose is not None:
        return None if constants.OTHER in kinds else known.compose(values)
    several = row < 0 and asked.has_places(words)
    plans = known.plans.get((kinds, several))
    if plans is None:
        plans = known.plans_for(kinds, several)
    for plan in plans:
        bound = plan.bind(values)
        if bound is not None:
            args, kwargs = bound
            if plan.completes:
                kwargs = _complete_factory_arguments(plan, kwargs)
            elif plan.is_index_put:
                args[2] = _value_to_put(*args[:3])
            elif row < 0 and plan.name == "ones_like":  # the gradient with which a backward begins
                kwargs.setdefault("memory_format", preserve_format)
                kwargs = _complete_factory_arguments(plan, kwargs)
            return plan.func, args, kwargs
    return None


def _value_to_put(into: Any, _: Any, value: Any) -> Any:
    """A number that a subscript puts into a tensor has the tensor's dtype."""
    if not isinstance(value, Tensor):
        make = partial(functions.SPACES["torch"]["scalar_tensor"], dtype=into.dtype)
        return unseen(make, value)
    if not value.dim() and value.dtype is not into.dtype:
        return unseen(lambda each: each.to(into.dtype), value)
    return value


def _complete_factory_arguments(plan: Plan, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Completes the arguments of a function that makes tensors: PyTorch's Python functions pass the
    device, where no tensor does, and that the memory is not pinned.
    """
    arguments = plan.schema.arguments
    where = {"device": kwargs.get("device")}
    if where["device"] is not None:
        where["device"] = device(where["device"])
    elif arguments[0].type.name != "Tensor":
        where["device"] = device("meta" if modes.get() & modes.MADE_META else "cpu")
    kwargs = {"pin_memory": False, **kwargs, **where}
    names = [each.name for each in arguments if kwargs.get(each.name) is not None]
    return {each: kwargs[each] for each in names}
