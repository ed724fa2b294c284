"""Optimizers: what a step does, one crossing a step, state that can be saved. Numbers:
parity/test_nn.py.
"""

from __future__ import annotations

import copy
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pygrad
from pygrad import optim
from pygrad._boundary import calls, prepared, shapes
from pygrad._table import functions
from pygrad.optim._builtin import BuiltinOptimizer
from pygrad.optim._description import formula

MAKERS: dict[str, Any] = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "Adam": lambda p: optim.Adam(p, lr=0.1),
    "AdamW": lambda p: optim.AdamW(p, lr=0.1),
}
DESCRIBED = sorted(cls.__name__ for cls in BuiltinOptimizer.__subclasses__())
EVERY: dict[str, Any] = {
    **MAKERS,
    **{
        name: lambda p, name=name: getattr(optim, name)(p, lr=0.1)
        for name in DESCRIBED
        if name not in ("Muon", "SparseAdam")  # of matrices alone, of sparse gradients alone
    },
}
OPTIONS: dict[str, Any] = {"momentum": 0.5, "amsgrad": True, "centered": True}
"""Options with which a formula needs all its states."""


def quadratic(p: Any) -> Any:
    return ((p - 3) ** 2).sum()


@pytest.mark.parametrize("name", MAKERS)
def test_optimizer_finds_the_minimum(name: str) -> None:
    p = pygrad.zeros(4, requires_grad=True)
    optimizer = MAKERS[name]([p])
    for _ in range(300):
        optimizer.zero_grad()
        quadratic(p).backward()
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), 3, atol=0.05)


def test_sgd_step_is_its_formula() -> None:
    p = pygrad.tensor([1.0, 2.0], requires_grad=True)
    p.grad = pygrad.tensor([10.0, 20.0])
    optim.SGD([p], lr=0.1).step()
    np.testing.assert_allclose(p.detach().numpy(), [0.0, 0.0], atol=1e-6)
    assert (p._version, p.is_leaf) == (1, True)


@pytest.mark.parametrize("has_all", [True, False])
@pytest.mark.parametrize("name", EVERY)
def test_step_is_one_crossing(name: str, has_all: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    ps = [pygrad.ones(3, requires_grad=True) for _ in range(6)]
    optimizer = EVERY[name](ps)
    for p in ps[has_all ^ 1 :]:
        p.grad = pygrad.ones(3)
    crossings: list[int] = []
    for module, attribute in (
        (calls, "_call"),
        (calls, "_call_long"),
        (calls, "_call2"),
        (shapes, "_call2"),
        (prepared, "_call2"),
    ):
        kept = getattr(module, attribute)

        def count(*places: Any, kept: Any = kept) -> object:
            crossings.append(1)
            return kept(*places)

        monkeypatch.setattr(module, attribute, count)
    optimizer.step()
    optimizer.step()  # what the first began is in the call that this one prepares
    crossings.clear()
    optimizer.step()
    assert len(crossings) == 1
    crossings.clear()
    optimizer.param_groups[0]["lr"] = 0.5  # only a number is written anew
    optimizer.step()
    assert len(crossings) == 1
    assert ps[0].grad is not None or ps[0].tolist() == [1, 1, 1]
    assert ps[1].tolist() != [1, 1, 1]


@pytest.mark.parametrize("n", [3, 70_000])
@pytest.mark.parametrize("name", MAKERS)
def test_step_in_another_thread(name: str, n: int) -> None:
    def three_steps(p: Any, optimizer: Any) -> None:
        for _ in range(3):
            p.grad = pygrad.ones(n)
            optimizer.step()

    found = []
    for is_apart in (False, True):
        p = pygrad.ones(n, requires_grad=True)
        optimizer = EVERY[name]([p])
        three_steps(p, optimizer)
        if is_apart:
            thread = threading.Thread(target=three_steps, args=(p, optimizer))
            thread.start()
            thread.join()
        else:
            three_steps(p, optimizer)
        three_steps(p, optimizer)
        found.append(p.tolist())
    assert found[0] == found[1]


def test_step_that_cannot_be_made_changes_nothing() -> None:
    p, q = pygrad.ones(2, requires_grad=True), pygrad.ones(2, requires_grad=True)
    optimizer = optim.Adam([p, q], lr=0.1)
    for parameter in (p, q):
        parameter.grad = pygrad.ones(2)
    optimizer.step()
    before = p.tolist()
    optimizer.state[q]["exp_avg"] = pygrad.ones(3)
    with pytest.raises(RuntimeError, match=r"exp_avgs\[1\] is float32 of shape \[3\]"):
        optimizer.step()
    assert p.tolist() == before
    assert optimizer.state[p]["step"].item() == 1


def call_formula(name: str, states: list[list[Any]]) -> Any:
    """Calls the formula of an optimizer for a matrix that it must refuse; returns that."""
    cls: Any = getattr(optim, name)
    p = pygrad.ones(2, 2, requires_grad=True)
    gradient = pygrad.ones(2, 2).to_sparse() if name == "SparseAdam" else pygrad.ones(2, 2)
    options = {**cls([pygrad.ones(2, 2, requires_grad=True)]).defaults, **OPTIONS}
    found = formula(cls._row)
    numbers = dict(zip(found.options, found.read(options), strict=True))
    with pytest.raises(RuntimeError):
        functions.C[cls._row]([p], [gradient], *states, **numbers)
    return p


@pytest.mark.parametrize("name", DESCRIBED)
def test_formula_without_its_states_is_an_error(name: str) -> None:
    lists = formula(getattr(optim, name)._row).lists
    without: tuple[list[Any], ...] = ([], [None], [pygrad.ones(0)])
    for states in without:
        p = call_formula(name, [states for _ in lists])
        assert p.isfinite().all()


@pytest.mark.parametrize("name", [each for each in DESCRIBED if each != "Adafactor"])
def test_formula_with_states_of_other_sizes_changes_nothing(name: str) -> None:
    lists = formula(getattr(optim, name)._row).lists
    counter = pygrad.tensor(1.0)
    p = call_formula(name, [[pygrad.ones(3)] if x != "state_steps" else [counter] for x in lists])
    assert p.tolist() == [[1, 1], [1, 1]]
    assert counter.item() == 1


@pytest.mark.parametrize("name", EVERY)
def test_state_dict_continues_where_it_was(name: str) -> None:
    def run(p: Any, optimizer: Any, n: int) -> None:
        for _ in range(n):
            optimizer.zero_grad()
            quadratic(p).backward()
            optimizer.step()

    p = pygrad.zeros(2, requires_grad=True)
    first = EVERY[name]([p])
    run(p, first, 3)
    q = p.detach().clone().requires_grad_(True)
    second = EVERY[name]([q])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    run(p, first, 3)
    run(q, second, 3)
    assert p.tolist() == q.tolist()


def test_parameter_without_gradient_stays() -> None:
    p, q = pygrad.ones(2, requires_grad=True), pygrad.ones(2, requires_grad=True)
    optimizer = optim.Adam([p, q], lr=0.1)
    p.sum().backward()
    optimizer.step()
    assert p.tolist() != [1, 1]
    assert q.tolist() == [1, 1]


@pytest.mark.parametrize("name", EVERY)
def test_parameter_whose_first_gradient_comes_late_moves(name: str) -> None:
    p, q = pygrad.ones(2, requires_grad=True), pygrad.ones(2, requires_grad=True)
    optimizer = EVERY[name]([p, q])
    p.grad = pygrad.ones(2)
    optimizer.step()
    optimizer.step()
    assert q.tolist() == [1, 1]
    q.grad = pygrad.ones(2)
    optimizer.step()
    assert q.tolist() != [1, 1]


def test_groups_have_options_of_their_own() -> None:
    p, q = pygrad.ones(1, requires_grad=True), pygrad.ones(1, requires_grad=True)
    optimizer = optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)
    (p + q).sum().backward()
    optimizer.step()
    np.testing.assert_allclose([p.item(), q.item()], [0.9, 0.5], rtol=1e-6)


def test_zero_grad_forgets_or_zeroes() -> None:
    p = pygrad.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)
    p.sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert p.grad.tolist() == [0]
    optimizer.zero_grad()
    assert p.grad is None


def test_closure_is_called_with_recording_on() -> None:
    p = pygrad.ones(1, requires_grad=True)
    optimizer = optim.SGD([p], lr=0.1)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = quadratic(p)
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4.0


def test_schedule_changes_the_rate() -> None:
    optimizer = optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
    schedule = optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)
    rates = []
    for _ in range(5):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        schedule.step()
    np.testing.assert_allclose(rates, [1, 1, 0.1, 0.1, 0.01])


PLAIN = "ASGD Adadelta Adafactor Adagrad Adam AdamW Adamax NAdam RAdam Rprop".split()
FIRST_STEPS: dict[str, dict[str, Any]] = {
    **{kind: {} for kind in PLAIN},
    "SGD": {"lr": 0.1, "momentum": 0.9},
    "RMSprop": {"momentum": 0.9, "centered": True},
    "Muon": {},
}


STEPPING = {"_begin", "begin", "_lists", "_step_first", "_update"}


@pytest.mark.parametrize("kind", FIRST_STEPS)
def test_a_first_step_may_be_interrupted_anywhere(kind: str) -> None:
    """An interruption where a state is made leaves no half of one to the steps that follow."""
    here = str(Path(pygrad.optim.__file__).parent)

    def step(line: int) -> bool:
        """Takes three steps, interrupted at a line; False if they have fewer lines."""
        parameters = [pygrad.nn.Parameter(pygrad.full((2, 2), k + 1.0)) for k in range(2)]
        optimizer = getattr(pygrad.optim, kind)(parameters, **FIRST_STEPS[kind])
        left = line

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal left
            if not frame.f_code.co_filename.startswith(here):
                return None
            left -= event == "line" and frame.f_code.co_name in STEPPING
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
            return trace

        for _ in range(3):
            for parameter in parameters:
                parameter.grad = pygrad.ones(2, 2)
            was = sys.gettrace()
            try:
                sys.settrace(trace if left >= 0 else was)
                optimizer.step()
            except KeyboardInterrupt:
                pygrad.set_grad_enabled(True)  # where it was raised at the end of a `with`
            finally:
                sys.settrace(was)
        assert all(parameter.isfinite().all() for parameter in parameters)
        return left < 0

    line = 0
    while step(line):
        line += 1
    assert line > 3
