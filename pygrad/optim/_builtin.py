"""The base class of the optimizers of this package. A class is its signature and its description
(`_description`); a step is one call of the engine for each group, prepared once and reused while
nothing changes.

``foreach`` and ``fused`` choose among PyTorch's implementations of one formula. Here there is one
implementation, so any value of them is accepted. ``capturable`` and ``differentiable`` are not
supported and raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from types import MappingProxyType
from typing import Any, ClassVar

from .._boundary.prepared import Prepared
from .._table import functions
from .._tensor import namespace as pygrad
from .._tensor.subclassing import answers_for_ops
from .._tensor.tensor import Tensor
from ._description import (
    PARTS,
    Check,
    Entry,
    check_options,
    check_parameters,
    chosen,
    entries,
    formula,
    getter,
    new_step,
)
from ._plan import Form, Plan, State
from ._refusals import check_choice, check_fused, refuse_parameter, refuse_unsupported
from .optimizer import Closure, Group, Optimizer, Params

_LONG = 1 << 16


class BuiltinOptimizer(Optimizer):
    """An optimizer that its description makes: see `_description`.

    The engine finds the gradients itself, skips parameters without one, and records nothing.
    """

    _order: ClassVar[str]
    """The names of the options in the order of ``defaults``."""
    _checks: ClassVar[tuple[Check, ...]]
    _checks_of_parameters: ClassVar[tuple[Check, ...]] = ()
    _state: ClassVar[str]
    """The entries of a parameter's state, in order, each with how it begins."""
    _fixed: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    """Options that the constructor does not take."""
    _row: ClassVar[str]
    """The formula as ops."""
    _loop: ClassVar[str] = ""
    """The formula as one loop, if there is one: a row, or ``row if option else row``."""
    _refuses: ClassVar[tuple[str, ...]] = ("sparse",)
    """The kinds of parameters that get no state: see `_refusals`."""
    _begins_at_once: ClassVar[bool] = False
    """Whether the constructor begins the states."""

    _entries: ClassVar[dict[str, Entry]]
    _options: ClassVar[Callable[[Group], tuple[Any, ...]]]
    """Reads from a group what a step depends on."""
    _is_prepared: ClassVar[bool]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_row" not in cls.__dict__:
            return
        cls._entries = entries(cls._state)
        own = formula(cls._row)
        keys = dict.fromkeys(PARTS.get(each, (each,))[0] for each in own.options)
        keys.update(dict.fromkeys(e.condition for e in cls._entries.values() if e.condition))
        keys.pop("is_first_step", None)
        cls._options = getter(tuple(keys))
        holes = any(e.maker in ("rows", "vector") for e in cls._entries.values())
        cls._is_prepared = own.is_plain and not holes

    def __init__(self, params: Params, given: dict[str, Any]) -> None:
        self._plans: dict[int, Plan] = {}  # by id of the group
        given = {**given, **self._fixed}
        options = {name: given[name] for name in self._order.split()}
        check_options(self._checks, options)
        check_choice(options)
        super().__init__(params, options)
        check_parameters(self._checks_of_parameters, self.param_groups)
        if self._begins_at_once:
            for group in self.param_groups:
                for parameter in group["params"]:
                    self._begin(parameter, options)

    def step(self, closure: Closure | None = None) -> Any:
        """Update the parameters that have a gradient, once.

        Args:
            closure: recomputes the loss and its gradients; called first.

        Returns:
            The result of ``closure``, or ``None``.
        """
        loss = None
        if closure is not None:
            with pygrad.enable_grad():
                loss = closure()
        self._update_all()
        return loss

    def _update_all(self) -> None:
        read, state = type(self)._options, self.state
        for group in self.param_groups:
            options = read(group)
            plan = self._plans.get(id(group))
            if (
                plan is None
                or options != plan.options
                or hash(options) != plan.hash
                or not plan.is_current(group["params"], state)
            ):
                plan = self._renew(plan, group, options)
            if plan is not None:
                plan.call.run()

    def _renew(self, plan: Plan | None, group: Group, options: tuple[Any, ...]) -> Plan | None:
        """A plan for the current state: the given one with new numbers if possible. None: the step
        is already made.
        """
        params = group["params"]
        hosted = bool(self._loop) and _any_answers_for_ops(params)
        form = self._form(group, hosted)
        if not self._is_prepared:
            with pygrad.no_grad():
                self._update(group, form)
            return None
        numbers = form[0].read(group)
        if plan is not None and plan.form == form and plan.is_current(params, self.state):
            plan.call.set(numbers)
        else:
            check_fused(group, params)
            with pygrad.no_grad():
                plan = self._plans[id(group)] = self._lists(group, form, numbers)
        if hosted:
            del self._plans[id(group)]
        else:
            plan.know(options)
        return plan

    def _form(self, group: Group, hosted: bool) -> Form:
        """The formula of a step, as ops if classes of the parameters answer for ops."""
        as_loop = self._loop and not hosted
        found = formula(chosen(self._loop, group) if as_loop else self._row)
        entries = self._entries
        return found, tuple(key for key in found.states if entries[key].is_kept(group))

    def _begin(self, parameter: Tensor, options: Mapping[str, Any]) -> State:
        """The state of a parameter, which begins with its first gradient."""
        own = self.state.get(parameter)
        if own:
            return own
        refuse_parameter(self._refuses, type(self).__name__, parameter)
        begun = {}
        for key, each in self._entries.items():
            if each.is_kept(options):
                made = each.begin(parameter, options)
                if made is not None:
                    begun[key] = made
        if not begun:
            return {}
        own = self.state[parameter]
        own.update(begun)  # all at once, so that an interrupt leaves no partial state
        return own

    def _lists(self, group: Group, form: Form, numbers: tuple[Any, ...]) -> Plan:
        """A plan, after the begin of the states of parameters with a gradient. Parameters whose
        first step is another formula take it here.
        """
        found, keys = form
        params = group["params"]
        takes, new = [], []
        options = self.defaults if self._begins_at_once else group
        for p in params:
            has_grad = p._has_grad()
            own = self._begin(p, options) if has_grad else self.state.get(p)
            if "is_first_step" in found.options and keys:
                takes.append(bool(own) and own.get(keys[0]) is not None)  # type: ignore[union-attr]
                if has_grad and not takes[-1]:
                    new.append(p)
            else:
                takes.append(not keys or has_grad or bool(own and all(key in own for key in keys)))
        if new:
            self._step_first(new, form, numbers)
        taken = list(compress(params, takes))
        columns = {key: [_handle(self.state[p][key]) for p in taken] for key in keys}
        lists: list[Sequence[int]] = [[p._h for p in taken], ()]
        lists += [columns.get(key, ()) for key in found.states]
        long = sum(p.numel() for p in params) > _LONG
        call = Prepared(found.row, lists, found.options, numbers, long)
        if not keys:
            return Plan(form, [p._h for p in params], call)
        states = zip(*columns.values(), strict=True)
        entries = [
            tuple(zip(keys, next(states), strict=True)) if is_taken else None for is_taken in takes
        ]
        handles = [p._h for p in params]
        return Plan(form, list(zip(handles, entries, strict=True)), call)

    def _step_first(self, params: list[Tensor], form: Form, numbers: tuple[Any, ...]) -> None:
        """The step of parameters with their first gradient, which fills their state."""
        found, (key,) = form
        buffers = [pygrad.empty_like(p) for p in params]
        keywords = {**dict(zip(found.options, numbers, strict=True)), "is_first_step": True}
        functions.C[found.name](params, [], buffers, **keywords)
        for p, buffer in zip(params, buffers, strict=True):
            self.state[p][key] = buffer

    def _update(self, group: Group, form: Form) -> None:
        """The step of a group by a call that is not prepared."""
        found, keys = form
        params = [p for p in group["params"] if p._has_grad()]
        if not params:
            return
        states = [self._begin(p, group) for p in params]
        lists = [[own.get(key) for own in states] if key in keys else [] for key in found.states]
        numbers = dict(zip(found.options, found.read(group), strict=True))
        functions.C[found.name](params, [], *lists, **numbers)

    def add_param_group(self, param_group: Group) -> None:
        if isinstance(param_group, dict):
            refuse_unsupported({**self.defaults, **param_group})
        super().add_param_group(param_group)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._plans = {}
        super().__setstate__(state)
        for group in self.param_groups:
            # Options that are newer than the saved state get their defaults.
            for name, value in self.defaults.items():
                group.setdefault(name, value)
            group.update(self._fixed)
            refuse_unsupported(group)
            for parameter in group["params"]:
                own = self.state.get(parameter)
                if own and "step" in own and not isinstance(own["step"], Tensor):
                    own["step"] = new_step(float(own["step"]))


def _handle(entry: Tensor | None) -> int:
    if entry is None:  # in PyTorch's words, whose step is composed of methods
        raise AttributeError("'NoneType' object has no attribute 'mul_'")
    return entry._h


def _any_answers_for_ops(params: list[Tensor]) -> bool:
    return any(
        answers_for_ops(p) or (p.grad is not None and answers_for_ops(p.grad)) for p in params
    )
