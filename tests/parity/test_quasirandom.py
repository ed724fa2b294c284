"""torch.quasirandom: the same points, with the same seed scrambled in the same way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import array, both, result_or_error, torch

import pygrad

Script = Callable[[Any], Any]

STEPS: dict[str, Callable[[Any, Any], Any]] = {
    "one after the other": lambda t, e: [e.draw(), e.draw(), e.draw(3), e.draw()],
    "many": lambda t, e: e.draw(1000),
    "as float64": lambda t, e: [e.draw(dtype=t.float64), e.draw(70, dtype=t.float64)],
    "passed over": lambda t, e: [e.fast_forward(1).draw(), e.fast_forward(1000).draw(2)],
    "from the start again": lambda t, e: [e.draw(4), e.reset().draw(3), e.num_generated],
    "powers of two": lambda t, e: [
        e.draw_base2(3),
        e.draw_base2(3),
        result_or_error(lambda: e.draw_base2(3)),
    ],
    "into a tensor": lambda t, e: [e.draw(3, out=t.zeros(0)), e.draw(2, out=t.ones(7))],
    "state": lambda t, e: [e.draw(5), e.sobolstate, e.shift, e.quasi, e.num_generated],
    "text": lambda t, e: repr(e),
    "none": lambda t, e: result_or_error(lambda: e.draw(0)),
    "fewer": lambda t, e: result_or_error(lambda: e.draw(-3)),
    "integers": lambda t, e: result_or_error(lambda: e.draw(2, dtype=t.int64)),
}


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 37])
@pytest.mark.parametrize("name", STEPS)
def test_points(name: str, dimension: int, scramble: bool, seed: int | None) -> None:
    def script(t: Any) -> Any:
        t.manual_seed(11)
        engine = t.quasirandom.SobolEngine(dimension, scramble=scramble, seed=seed)
        return STEPS[name](t, engine), t.rand(1)

    both(script)


def test_direction_numbers_of_all_dimensions() -> None:
    mine, theirs = (t.quasirandom.SobolEngine(t_max()) for t in (pygrad, torch))
    np.testing.assert_array_equal(array(mine.sobolstate), array(theirs.sobolstate))
    np.testing.assert_array_equal(array(mine.draw(3)), array(theirs.draw(3)))


def t_max() -> int:
    assert pygrad.quasirandom.SobolEngine.MAXDIM == torch.quasirandom.SobolEngine.MAXDIM
    return pygrad.quasirandom.SobolEngine.MAXDIM


def state(t: Any, *shape: int) -> Any:
    return t.zeros(*shape, dtype=t.int64)


CALLS: dict[str, Script] = {
    "too many dimensions": lambda t: t.quasirandom.SobolEngine(21202),
    "no dimension": lambda t: t.quasirandom.SobolEngine(0),
    "text": lambda t: t.quasirandom.SobolEngine("2"),
    "part of a state": lambda t: t._sobol_engine_initialize_state_(state(t, 3, 30), 2),
    "state of floats": lambda t: t._sobol_engine_initialize_state_(t.zeros(3, 30), 3),
    "strided state": lambda t: t._sobol_engine_initialize_state_(state(t, 30, 3).t(), 3),
    "draw": lambda t: t._sobol_engine_draw(state(t, 3) + 7, 2, state(t, 3, 30) + 9, 3, 2, None),
    "draw from int32": lambda t: t._sobol_engine_draw(
        state(t, 3).int(), 2, state(t, 3, 30), 3, 0, None
    ),
    "draw by floats": lambda t: t._sobol_engine_draw(state(t, 3), 2, t.zeros(3, 30), 3, 0, None),
    "draw integers": lambda t: t._sobol_engine_draw(
        state(t, 3), 2, state(t, 3, 30), 3, 0, dtype=t.int64
    ),
    "pass none": lambda t: t._sobol_engine_ff_(state(t, 3), -2, state(t, 3, 30), 3, 0),
    "pass in steps of two": lambda t: t._sobol_engine_ff_(
        state(t, 6)[::2], 9, state(t, 3, 30) + 4, 3, 5
    ),
    "pass by floats": lambda t: t._sobol_engine_ff_(state(t, 3), 2, t.zeros(3, 30), 3, 0),
    "scramble": lambda t: t._sobol_engine_scramble_(
        t._sobol_engine_initialize_state_(state(t, 3, 30), 3),
        t.arange(2700).reshape(3, 30, 30) % 7,
        3,
    ),
    "scramble by floats": lambda t: t._sobol_engine_scramble_(
        state(t, 3, 30), t.ones(3, 30, 30), 3
    ),
    "scramble floats": lambda t: t._sobol_engine_scramble_(t.zeros(3, 30), state(t, 3, 30, 30), 3),
}


@pytest.mark.parametrize("name", CALLS)
def test_call(name: str) -> None:
    both(CALLS[name])
