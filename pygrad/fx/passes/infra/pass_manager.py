"""Passes run in an order that constraints allow, until nothing changes."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable
from functools import wraps
from typing import Any

from ....nn import Module
from ...graph_module import GraphModule
from .pass_base import PassResult

Pass = Callable[..., Any]
Constraint = Callable[[Pass, Pass], bool]


def _name(function: Any) -> str:
    return function.__name__ if inspect.isfunction(function) else type(function).__name__


def pass_result_wrapper(fn: Any) -> Any:
    """Turns a function that changes a module in place, or returns another, into a pass."""
    if fn is None:
        return None

    @wraps(fn)
    def wrapper(module: Module) -> PassResult | None:
        result = fn(module)
        if isinstance(result, Module) or result is None:
            return PassResult(module if result is None else result, True)
        return result if isinstance(result, PassResult) else None

    if not inspect.isfunction(fn):
        wrapper.__name__ = type(fn).__name__
    return wrapper


def _validate_pass_schedule_constraint(constraint: Constraint, passes: list[Pass]) -> None:
    for i, a in enumerate(passes):
        for j, b in enumerate(passes[i + 1 :]):
            if not constraint(a, b):
                raise RuntimeError(
                    f"pass schedule constraint violated. Expected {a} before {b} but found {a} at "
                    f"index {i} and {b} at index {j} in pass list."
                )


def _topological_sort_passes(passes: list[Pass], constraints: list[Constraint]) -> list[Pass]:
    """The passes in an order that all constraints allow.

    Raises:
        RuntimeError: there is no such order.
    """
    if not constraints:
        return passes
    after: dict[Pass, list[Pass]] = {each: [] for each in passes}
    missing = dict.fromkeys(passes, 0)
    for a in passes:
        for b in passes:
            for constraint in constraints:
                if a != b and not constraint(a, b):  # so b comes first
                    after[b].append(a)
                    missing[a] += 1
    ready = deque(each for each in passes if not missing[each])
    done: list[Pass] = []
    while ready:
        done.append(ready.popleft())
        for each in after[done[-1]]:
            missing[each] -= 1
            if not missing[each]:
                ready.append(each)
    if circle := [each for each in missing if missing[each]]:
        raise RuntimeError(f"Circular dependency detected within the following passes: {circle}")
    return done


def this_before_that_pass_constraint(this: Pass, that: Pass) -> Constraint:
    """The constraint that pass `this` comes before pass `that`."""

    def allows(a: Pass, b: Pass) -> bool:
        return a != that or b != this

    return allows


class PassManager:
    """Runs passes.

    Args:
        passes: functions from a module to a `PassResult`.
        constraints: which of two passes may come before the other.
        steps: how often to run them all, unless nothing changes any more.
        run_checks_after_each_pass: call `check` between passes too.
    """

    def __init__(
        self,
        passes: list[Pass] | None = None,
        constraints: list[Constraint] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = passes or []
        self.constraints = constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass: Pass) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint: Constraint) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)
        self._validated = False

    def validate_constraints(self) -> None:
        """Raises `RuntimeError` if the passes are in an order that is not allowed."""
        if not self._validated:
            for constraint in self.constraints:
                _validate_pass_schedule_constraint(constraint, self.passes)
            self._validated = True

    def solve_constraints(self) -> None:
        """Put the passes in an order that is allowed."""
        self.passes = _topological_sort_passes(self.passes, self.constraints)
        self._validated = True

    def add_checks(self, check: Callable[[Module], None]) -> None:
        """Call this with the module before the passes."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.__dict__["check"] = check

    def check(self, module: Module) -> None:
        """Nothing, unless `add_checks` was called."""

    def __call__(self, module: Module) -> PassResult:
        """Run the passes.

        Raises:
            Exception: a pass's error, with the names of the passes before it.
        """
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        ever_modified = False
        for _ in range(self.steps):
            modified = False
            for at, each in enumerate(self.passes):
                try:
                    module, changed = self._result(each, module)
                except Exception as error:
                    before = [_name(p) for p in self.passes[:at]]
                    raise Exception(
                        f"An error occurred when running the '{_name(each)}' pass after the "
                        f"following passes: {before}"
                    ) from error
                modified = modified or changed
            ever_modified = ever_modified or modified
            if not modified:
                break
        return PassResult(module, ever_modified)

    def _result(self, each: Pass, module: Module) -> tuple[Module, bool]:
        result = each(module)
        if not hasattr(result, "graph_module"):
            raise TypeError(
                f"The result of the pass {_name(each)} should be type PassResult."
                "Please wrap it with pass_result_wrapper()"
            )
        if isinstance(result.graph_module, GraphModule):
            result.graph_module.recompile()
        if self.run_checks_after_each_pass:
            self.check(result.graph_module)
        return result.graph_module, result.modified


__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]
