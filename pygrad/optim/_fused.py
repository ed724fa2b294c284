"""Optimizers whose step is one engine call a group: prepared once, used while nothing changes.

A group's plan is only ever a copy of what its options and the state say. Each step compares it with
them, parameter by parameter, and tells the engine what differs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .._boundary.calls import ROWS
from .._boundary.prepared import Prepared
from .._package import pygrad
from .._tensor import Tensor, answers_for_ops
from ._builtin import BuiltinOptimizer, check_fused
from .optimizer import Group, Params

Options: TypeAlias = tuple[Any, ...]
Numbers: TypeAlias = tuple[float, ...]
Form: TypeAlias = tuple[str, bool]
"""An op, and whether it has the list that it may do without."""
Rows: TypeAlias = list[Any]
Lists: TypeAlias = list[Sequence[int]]

_LONG = 1 << 16


class Plan:
    """The step of a group as a prepared call, and what it was prepared from.

    Attributes:
        form: which op and lists.
        rows: for each parameter of the group, its handle and those of its state.
        call: of the lists, which have those parameters that may have a gradient.
        options: whose numbers the call has; None if they must be read each time.
        hash: of the options. A tensor may equal a number, but hashes as none.
    """

    __slots__ = ("call", "form", "hash", "options", "rows")

    def __init__(self, form: Form, rows: Rows, call: Prepared) -> None:
        self.form, self.rows, self.call = form, rows, call
        self.options: Options | None = None
        self.hash = 0

    def know(self, options: Options) -> None:
        """Remembers options, if only another object can be another number."""
        self.options = options if _is_plain(options) else None
        self.hash = hash(self.options)


class FusedOptimizer(BuiltinOptimizer):
    """An optimizer with an engine op for the step of a group, which finds the gradients itself,
    leaves out who has none, and records nothing.
    """

    _options: Callable[[Group], Options]
    """Reads from a group what `_read` needs."""
    _names: tuple[str, ...]
    """The op's keywords, in the order of `_read`."""

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self._plans: dict[int, Plan] = {}  # by the id of the group
        super().__init__(params, defaults)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._plans = {}
        super().__setstate__(state)

    def _update_all(self) -> None:
        read = self._options
        for group in self.param_groups:
            options = read(group)
            plan = self._plans.get(id(group))
            if (
                plan is None
                or options != plan.options
                or hash(options) != plan.hash
                or not self._is_current(plan, group["params"])
            ):
                plan = self._renew(plan, group, options)
            if plan is not None:
                plan.call.run()
            else:
                with pygrad.no_grad():
                    self._update(group)

    def _renew(self, plan: Plan | None, group: Group, options: Options) -> Plan | None:
        """A plan of what there is now: the same with other numbers, if that will do. None where
        classes of the parameters answer for ops: the step is made of such then.
        """
        form, numbers = self._read(options)
        params = group["params"]
        if any(
            answers_for_ops(p) or (p.grad is not None and answers_for_ops(p.grad)) for p in params
        ):
            check_fused(group, params)
            self._plans.pop(id(group), None)
            return None
        if plan is not None and plan.form == form and self._is_current(plan, params):
            plan.call.set(numbers)
        else:
            check_fused(group, params)
            rows, lists = self._lists(params, form, numbers)
            long = sum(p.numel() for p in params) > _LONG
            call = Prepared(ROWS[form[0]], lists, self._names, numbers, long)
            plan = self._plans[id(group)] = Plan(form, rows, call)
        plan.know(options)
        return plan

    def _read(self, options: Options) -> tuple[Form, Numbers]:
        """The form of the call, and its keywords: floats and bools."""
        raise NotImplementedError

    def _is_current(self, plan: Plan, params: list[Tensor]) -> bool:
        """Whether the plan's lists are still those of these parameters and their state."""
        raise NotImplementedError

    def _lists(self, params: list[Tensor], form: Form, numbers: Numbers) -> tuple[Rows, Lists]:
        """A plan's rows, and the op's lists of handles. Begins the state of who has a gradient."""
        raise NotImplementedError


def _is_plain(options: Any) -> bool:
    if isinstance(options, tuple):
        return all(map(_is_plain, options))
    return isinstance(options, (int, float))
