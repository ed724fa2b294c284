"""Random numbers: the same after the same seed, and the numbers that PyTorch's CPU stream has."""

from __future__ import annotations

import numpy as np
import pytest

import pygrad

STREAM = {
    "rand": [0.4962566, 0.7682218, 0.0884774, 0.1320305],
    "randn": [1.5409961, -0.2934289, -2.1787894, 0.5684313],
    "randperm": [0, 1, 3, 2],
}


@pytest.mark.parametrize("name", STREAM)
def test_stream_after_seed_zero(name: str) -> None:
    """Saved from PyTorch 2.13; parity/test_random.py compares all of them."""
    pygrad.manual_seed(0)
    np.testing.assert_allclose(getattr(pygrad, name)(4).tolist(), STREAM[name], rtol=1e-5)


def test_seed_gives_the_same_again() -> None:
    for _ in range(2):
        pygrad.manual_seed(5)
        first = pygrad.rand(10).tolist()
        second = pygrad.rand(10).tolist()
        pygrad.manual_seed(5)
        assert pygrad.rand(10).tolist() == first != second


def test_state_can_be_saved_and_restored() -> None:
    state = pygrad.get_rng_state()
    first = pygrad.randn(7).tolist()
    pygrad.set_rng_state(state)
    assert pygrad.randn(7).tolist() == first


def test_generator_has_a_stream_of_its_own() -> None:
    g = pygrad.Generator()
    g.manual_seed(1)
    a = pygrad.rand(3, generator=g).tolist()
    pygrad.rand(100)
    g.manual_seed(1)
    assert pygrad.rand(3, generator=g).tolist() == a
    assert g.initial_seed() == 1


def test_layout_does_not_change_the_numbers_of_a_fill() -> None:
    pygrad.manual_seed(0)
    plain = pygrad.empty(3, 4).normal_()
    pygrad.manual_seed(0)
    turned = pygrad.empty(4, 3).t().normal_()
    assert plain.shape == turned.shape


@pytest.mark.parametrize("p", [0.0, 0.25, 1.0])
def test_dropout_keeps_the_mean(p: float) -> None:
    kept = pygrad.nn.functional.dropout(pygrad.ones(10_000), p)
    scale = 1 / (1 - p) if p < 1 else 0.0
    assert all(v == 0 or abs(v - scale) < 1e-6 for v in kept.unique().tolist())
    np.testing.assert_allclose(kept.mean().item(), 1.0 if p < 1 else 0.0, atol=0.05)


def test_distributions_have_their_moments() -> None:
    n = 20_000
    np.testing.assert_allclose(pygrad.rand(n).mean().item(), 0.5, atol=0.02)
    np.testing.assert_allclose(pygrad.randn(n).std().item(), 1.0, atol=0.03)
    np.testing.assert_allclose(pygrad.randint(10, (n,)).double().mean().item(), 4.5, atol=0.1)
    assert sorted(pygrad.randperm(100).tolist()) == list(range(100))


@pytest.mark.parametrize("concentration", [0.3, 1.0, 7.5])
def test_gamma_draws_have_their_moments(concentration: float) -> None:
    pygrad.manual_seed(0)
    drawn = pygrad._standard_gamma(pygrad.full((40_000,), concentration))
    np.testing.assert_allclose(drawn.mean().item(), concentration, rtol=0.05)
    np.testing.assert_allclose(drawn.var().item(), concentration, rtol=0.1)


def test_mean_gradient_of_gamma_draws_is_that_of_their_mean() -> None:
    pygrad.manual_seed(0)
    a = pygrad.tensor([0.4, 2.0, 30.0], requires_grad=True)
    pygrad._standard_gamma(a.expand(40_000, 3)).mean(0).sum().backward()
    np.testing.assert_allclose(a.grad.tolist(), [1.0, 1.0, 1.0], rtol=0.05)


def test_gradient_of_a_gamma_draw_is_at_what_was_drawn() -> None:
    """A write to the concentration, or to the draw, comes too late to change it."""
    grads = []
    for write in (False, True):
        pygrad.manual_seed(0)
        leaf = pygrad.tensor([0.4, 2.0, 30.0], requires_grad=True)
        a = leaf * 1
        drawn = pygrad._standard_gamma(a)
        y = drawn * 1
        if write:
            a.detach().zero_()
            drawn.detach().fill_(7)
        y.sum().backward()
        grads.append(leaf.grad.tolist())
    assert grads[0] == grads[1]


def test_parts_of_a_dirichlet_draw_add_up_to_one() -> None:
    drawn = pygrad._sample_dirichlet(pygrad.tensor([[1e-6, 1.0, 3.0]] * 100))
    np.testing.assert_allclose(drawn.sum(-1).tolist(), [1.0] * 100, rtol=1e-6)
    assert drawn.min().item() > 0


# ------------------------------------------------------------------ Sobol sequences


@pytest.mark.parametrize("scramble", [False, True])
def test_each_interval_has_one_sobol_point(scramble: bool) -> None:
    """Of 2^m points each interval of length 2^-m has one, in every dimension."""
    points = pygrad.quasirandom.SobolEngine(60, scramble, seed=1).draw(256, dtype=pygrad.float64)
    for column in (points * 256).long().t().tolist():
        assert sorted(column) == list(range(256))


def test_passing_over_sobol_points_is_drawing_them() -> None:
    drawn = pygrad.quasirandom.SobolEngine(5)
    passed = pygrad.quasirandom.SobolEngine(5)
    for n in (1, 2, 700, 0, 1 << 12):
        drawn.draw(n) if n else None
        passed.fast_forward(n)
        assert passed.quasi.tolist() == drawn.quasi.tolist()


def test_sobol_sequence_ends() -> None:
    engine = pygrad.quasirandom.SobolEngine(2).fast_forward((1 << 30) - 1)
    point = engine.draw(dtype=pygrad.float64)
    assert (point * 2**30 % 1 == 0).all()
    with pytest.raises(RuntimeError, match="no more than 2\\^30 points"):
        engine.draw()
    with pytest.raises(RuntimeError, match="no more than 2\\^30 points"):
        engine.fast_forward(1)


SIZES = {
    "columns": lambda: pygrad._sobol_engine_ff_(whole(3), 1, whole(3, 29), 3, 0),
    "rows": lambda: pygrad._sobol_engine_ff_(whole(3), 1, whole(2, 30), 3, 0),
    "point": lambda: pygrad._sobol_engine_ff_(whole(2), 1, whole(3, 30), 3, 0),
    "point_of_two": lambda: pygrad._sobol_engine_draw(whole(3, 1), 1, whole(3, 30), 3, 0, None),
    "negative": lambda: pygrad._sobol_engine_draw(whole(3), 1, whole(3, 30), -3, 0, None),
    "matrices": lambda: pygrad._sobol_engine_scramble_(whole(3, 30), whole(3, 30, 29), 3),
    "dimensions": lambda: pygrad._sobol_engine_initialize_state_(whole(30000, 30), 21202),
}


def whole(*shape: int) -> pygrad.Tensor:
    return pygrad.zeros(*shape, dtype=pygrad.int64)


@pytest.mark.parametrize("name", SIZES)
def test_sobol_state_of_a_wrong_size_is_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match="^(pygrad: |Trying to create tensor with negative)"):
        SIZES[name]()


@pytest.mark.parametrize("length", [0, 21200, 21201, 22000])
def test_too_few_direction_numbers_harm_nothing(length: int) -> None:
    state = whole(21201, 30)
    try:
        pygrad._table.functions.C["_sobol_engine_initialize_state_"](
            state, 21201, pygrad.full((length,), 255, dtype=pygrad.uint8)
        )
    except RuntimeError as error:
        assert "no direction numbers" in str(error)
        assert not state.any()
