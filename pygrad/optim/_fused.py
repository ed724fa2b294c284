"""Optimizers whose step is one engine call per group, prepared once and reused while nothing
changes.

A group's plan is a copy of its options and state. Each step compares the plan with them, parameter
by parameter, and updates the differences in the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from .._boundary.calls import ROWS
from .._boundary.prepared import Prepared
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor, answers_for_ops
from ._builtin import BuiltinOptimizer, check_fused
from .optimizer import Group, Params

Options: TypeAlias = tuple[Any, ...]
Numbers: TypeAlias = tuple[float, ...]
Form: TypeAlias = tuple[str, bool]
"""An op, and whether it gets its optional list."""
Rows: TypeAlias = list[Any]
Lists: TypeAlias = list[Sequence[int]]

_LONG = 1 << 16


class Plan:
    """The step of a group as a prepared call, with the data it was prepared from.

    Attributes:
        form: the op and its lists.
        rows: for each parameter of the group, its handle and the handles of its state.
        call: the prepared call. Its lists have the parameters that may have a gradient.
        options: the options whose numbers the call has; None if they must be read each time.
        hash: the hash of the options. A tensor may equal a number, but has another hash.
    """

    __slots__ = ("call", "form", "hash", "options", "rows")

    def __init__(self, form: Form, rows: Rows, call: Prepared) -> None:
        self.form, self.rows, self.call = form, rows, call
        self.options: Options | None = None
        self.hash = 0

    def know(self, options: Options) -> None:
        """Stores the options if equal ones cannot have changed in place."""
        self.options = options if _is_plain(options) else None
        self.hash = hash(self.options)


class FusedOptimizer(BuiltinOptimizer):
    """An optimizer whose step for a group is an engine op, which finds the gradients itself, skips
    parameters without one, and records nothing.
    """

    _options: Callable[[Group], Options]
    """Reads the arguments of `_read` from a group."""
    _names: tuple[str, ...]
    """The op's keywords, in the order of `_read`."""

    def __init__(self, params: Params, defaults: dict[str, Any]) -> None:
        self._plans: dict[int, Plan] = {}  # by id of the group
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
        """A plan for the current state: the given one with new numbers if possible. None if classes
        of the parameters override ops: the step is then composed of single ops.
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
        """The form of the call, and the values of its keywords: floats and bools."""
        raise NotImplementedError

    def _is_current(self, plan: Plan, params: list[Tensor]) -> bool:
        """Whether the plan's lists still match the parameters and their state."""
        raise NotImplementedError

    def _lists(self, params: list[Tensor], form: Form, numbers: Numbers) -> tuple[Rows, Lists]:
        """A plan's rows, and the op's lists of handles. Begins the state of parameters with a
        gradient.
        """
        raise NotImplementedError


def _is_plain(options: Any) -> bool:
    if isinstance(options, tuple):
        return all(map(_is_plain, options))
    return isinstance(options, (int, float))
