"""Modules called with other tensors than their own: attributes, what forward sets, refusals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error, torch

import pygrad


def counting(t: Any) -> Any:
    """A module that sets its buffer anew, and has a tensor that is neither."""

    class Counting(t.nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.layer = t.nn.Linear(1, 1, bias=False)
            self.register_buffer("count", t.zeros(1))
            self.scale = t.ones(1)
            self.name = "text"

        def forward(self, x: Any) -> Any:
            self.count = self.count + 1
            seen = [p.detach() for p in self.parameters()] + list(self.buffers())
            return self.layer(x).detach() * self.scale + self.count, seen

    return Counting()


def numbers(t: Any, value: Any) -> Any:
    return value.tolist() if isinstance(value, t.Tensor) else value


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "buffer": lambda t, call, m: (lambda d: [call(m, d, t.ones(1)), d])({"count": t.ones(1) * 5}),
    "attribute": lambda t, call, m: (lambda d: [call(m, d, t.ones(1)), d])({"scale": t.zeros(1)}),
    "nothing": lambda t, call, m: call(m, {}, t.ones(1)),
    "new name": lambda t, call, m: (lambda d: [call(m, d, t.ones(1)), d, hasattr(m, "more")])(
        {"more": t.ones(1)}
    ),
    "weight": lambda t, call, m: call(m, {"layer.weight": 3 * t.ones(1, 1)}, t.ones(1)),
    "not a tensor": lambda t, call, m: call(m, {"layer.weight": 3}, t.ones(1)),
    "not an attribute of tensors": lambda t, call, m: call(m, {"name": t.ones(1)}, t.ones(1)),
    "no submodule": lambda t, call, m: call(m, {"other.weight": t.ones(1)}, t.ones(1)),
    "a tensor as submodule": lambda t, call, m: call(m, {"scale.weight": t.ones(1)}, t.ones(1)),
    "strict": lambda t, call, m: call(m, {"more": t.ones(1)}, t.ones(1), strict=True),
}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_calls(name: str, old: bool) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        module = counting(t)
        with t.no_grad():
            module.layer.weight.fill_(2)
        call = t.nn.utils.stateless._functional_call if old else t.func.functional_call
        found = result_or_error(lambda: CALLS[name](t, call, module))
        state = {key: value.tolist() for key, value in module.state_dict().items()}
        return describe(t, found), state, module.scale.tolist(), hasattr(module, "more")

    def describe(t: Any, value: Any) -> Any:
        if isinstance(value, dict):
            return {key: describe(t, each) for key, each in value.items()}
        if isinstance(value, (list, tuple)):
            return [describe(t, each) for each in value]
        return numbers(t, value)

    assert run(pygrad) == run(torch)


def test_modules_in_a_circle() -> None:
    def script(t: Any) -> Any:
        outer, inner = t.nn.Linear(2, 1), t.nn.Linear(2, 1)
        outer.inner, inner.outer = inner, outer
        given = {"inner.outer.weight": t.ones(1, 2), "bias": t.zeros(1)}
        return t.func.functional_call(outer, given, t.ones(2), tie_weights=False)

    both(script)


def test_errors_in_forward_leave_the_module_as_it_was() -> None:
    def script(t: Any) -> Any:
        class Failing(t.nn.Linear):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                raise ValueError("no")

        module = Failing(1, 1)
        weight = module.weight
        message = result_or_error(
            lambda: t.func.functional_call(module, {"weight": t.ones(1, 1)}, 1)
        )
        return [message, module.weight is weight]

    both(script)


def test_assert() -> None:
    def script(t: Any) -> Any:
        return [t._assert(True, "fine"), result_or_error(lambda: t._assert(1 > 2, "not so"))]

    both(script)
