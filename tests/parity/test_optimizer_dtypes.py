"""Optimizers over complex and half parameters beside PyTorch's: steps, state, state dicts, and what
they refuse. A complex parameter is updated as pairs of real numbers.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from oracle import both, result_or_error, torch
from verdicts import assert_same_results

import pygrad

OPTIMIZERS: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {}),
    "SGD, momentum": ("SGD", {"momentum": 0.9, "dampening": 0.3, "maximize": True}),
    "SGD, Nesterov": ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    "Adam": ("Adam", {"weight_decay": 0.1}),
    "Adam, greatest": ("Adam", {"amsgrad": True, "maximize": True}),
    "AdamW": ("AdamW", {"amsgrad": True}),
    "NAdam": ("NAdam", {}),
    "NAdam, decoupled": ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    "RAdam": ("RAdam", {"betas": (0.5, 0.6), "weight_decay": 0.1}),
    "Adamax": ("Adamax", {"weight_decay": 0.1, "maximize": True}),
    "Adadelta": ("Adadelta", {"weight_decay": 0.1}),
    "Adagrad": ("Adagrad", {"lr_decay": 0.1, "initial_accumulator_value": 0.5}),
    "RMSprop": ("RMSprop", {"momentum": 0.5, "weight_decay": 0.1}),
    "RMSprop, centered": ("RMSprop", {"centered": True}),
    "Rprop": ("Rprop", {"etas": (0.3, 1.5)}),
    "ASGD": ("ASGD", {"weight_decay": 0.1, "t0": 1}),
    "Adafactor": ("Adafactor", {"weight_decay": 0.1}),
}
TOLERANCES = {"complex64": 1e-5, "complex128": 1e-10, "float16": 4e-3, "bfloat16": 3e-2}
"""Half types: PyTorch's vector loops and their ends round differently."""
SHAPES: list[tuple[int, ...]] = [(), (3,), (2, 3), (0, 2)]


def values(t: Any, shape: tuple[int, ...], phase: float, dtype: str) -> Any:
    real = t.arange(math.prod(shape), dtype=t.float64).add(phase).sin().reshape(shape)
    kind = getattr(t, dtype)
    return t.complex(real, real.mul(3).cos()).to(kind) if kind.is_complex else real.to(kind)


def parameters(t: Any, dtype: str) -> list[Any]:
    """Of several shapes; one that is not contiguous, and last one that gets no gradient."""
    found = [values(t, shape, 0.3 * k, dtype) for k, shape in enumerate(SHAPES)]
    found += [values(t, (3, 2), 2, dtype).t(), values(t, (2,), 5, dtype)]
    return [p.requires_grad_() for p in found]


def set_gradients(t: Any, params: list[Any], step: int, dtype: str) -> None:
    for k, p in enumerate(params[:-1]):
        p.grad = values(t, tuple(p.shape), 1 + k + 0.1 * step, dtype)


def state_of(optimizer: Any) -> list[Any]:
    state = optimizer.state_dict()["state"]
    return [[key, own[key]] for i in sorted(state) for own in [state[i]] for key in sorted(own)]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_and_state_dicts(name: str, dtype: str) -> None:
    kind, options = OPTIMIZERS[name]

    def run(t: Any) -> Any:
        params = parameters(t, dtype)
        optimizer = getattr(t.optim, kind)(params, lr=0.05, **options)
        for step in range(3):
            set_gradients(t, params, step, dtype)
            optimizer.step()
        kept = optimizer.state_dict()
        copies = [p.detach().clone().requires_grad_() for p in params]
        other = getattr(t.optim, kind)(copies, lr=0.05, **options)
        other.load_state_dict(kept)
        loaded = [[key, value.clone()] for key, value in state_of(other)]
        set_gradients(t, copies, 3, dtype)
        other.step()
        return (
            [p.detach() for p in params],
            state_of(optimizer),
            loaded,
            [p.detach() for p in copies],
        )

    mine, theirs = result_or_error(lambda: run(pygrad)), result_or_error(lambda: run(torch))
    assert_same_results(mine, theirs, TOLERANCES[dtype])


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
def test_lbfgs_of_complex_parameters(search: str | None) -> None:
    def run(t: Any) -> Any:
        z = t.tensor([0.3 + 1j, 2 - 1j, 0.5j], dtype=t.complex128, requires_grad=True)
        w = t.tensor(1 - 1j, dtype=t.complex128, requires_grad=True)
        target = t.tensor([1, 2j, 3 - 1j], dtype=t.complex128)
        optimizer = t.optim.LBFGS([z, w], lr=0.5, max_iter=8, line_search_fn=search)

        def closure() -> Any:
            optimizer.zero_grad()
            loss = ((z * w - target).abs() ** 2).sum() + (w.abs() - 1) ** 2
            loss.backward()
            return loss

        losses = [optimizer.step(closure).detach() for _ in range(3)]
        return losses, z.detach(), w.detach()

    assert_same_results(run(pygrad), run(torch), 1e-8)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "AdamW", "Adagrad"])
def test_fused_steps_are_of_real_parameters(kind: str) -> None:
    def step_fused(t: Any) -> Any:
        p = t.tensor([1j], requires_grad=True)
        p.grad = t.ones_like(p)
        return getattr(t.optim, kind)([p], fused=True).step()

    both(step_fused)


@pytest.mark.parametrize("kind", ["SGD", "Adam", "RMSprop"])
def test_a_gradient_may_be_a_lazy_conjugate(kind: str) -> None:
    def step(lazy: bool) -> Any:
        p = pygrad.tensor([1j, 2.0], requires_grad=True)
        gradient = pygrad.tensor([1 + 2j, 3 - 1j]).conj()
        p.grad = gradient if lazy else gradient.resolve_conj()
        getattr(pygrad.optim, kind)([p], lr=0.5, weight_decay=0.1).step()
        return p.tolist()

    assert step(True) == step(False)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("norm", [1.0, 2.0, 3.0, float("inf")])
def test_gradients_are_clipped(norm: float, dtype: str) -> None:
    def run(t: Any) -> Any:
        found = []
        utils = t.nn.utils
        for clip in (
            lambda ps: utils.clip_grad_norm_(ps, 0.5, norm_type=norm),
            lambda ps: utils.clip_grad_norm_(ps, 50.0, norm_type=norm),
            lambda ps: utils.clip_grads_with_norm_(
                ps, 0.5, utils.get_total_norm([p.grad for p in ps if p.grad is not None], norm)
            ),
            lambda ps: utils.clip_grad_value_(ps, 0.2),
        ):
            params = [p for p in parameters(t, dtype) if p.numel()]
            set_gradients(t, params, 0, dtype)
            found.append(
                [
                    result_or_error(lambda clip=clip, params=params: clip(params)),
                    [p.grad for p in params],
                ]
            )
        return found

    assert_same_results(run(pygrad), run(torch), TOLERANCES[dtype])
