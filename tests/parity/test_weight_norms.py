"""weight_norm and spectral_norm: parameters by name, values, gradients, removal, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error, torch, warnings_of

import pygrad

LAYERS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda t: (t.nn.Linear(3, 4).double(), (2, 3)),
    "conv": lambda t: (t.nn.Conv2d(2, 3, 2).double(), (1, 2, 4, 4)),
    "transposed": lambda t: (t.nn.ConvTranspose1d(2, 3, 2).double(), (1, 2, 4)),
}


def train(t: Any, made: Any, shape: Any) -> Any:
    x = t.arange(float(t.Size(shape).numel()), dtype=t.float64).reshape(shape).sin()
    optimizer = t.optim.SGD(made.parameters(), 0.1)
    seen = []
    for _ in range(3):
        optimizer.zero_grad()
        output = made(x)
        output.square().sum().backward()
        optimizer.step()
        seen += [output, [p.grad for p in made.parameters()]]
    made.eval()
    seen += [made(x), repr(made), [name for name, _ in made.named_parameters()]]
    return *seen, list(made.state_dict()), list(made.state_dict().values())


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("dim", [0, 1, None])
def test_weight_norm(layer: str, dim: int | None) -> None:
    def script(t: Any) -> Any:
        made, shape = LAYERS[layer](t)
        made = t.nn.utils.weight_norm(made, dim=dim)
        seen = train(t, made, shape)
        t.nn.utils.remove_weight_norm(made)
        return *seen, made.weight, [name for name, _ in made.named_parameters()]

    both(script)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("iterations", [1, 3])
def test_spectral_norm(layer: str, iterations: int) -> None:
    def script(t: Any) -> Any:
        made, shape = LAYERS[layer](t)
        made = t.nn.utils.spectral_norm(made, n_power_iterations=iterations)
        seen = train(t, made, shape)
        t.nn.utils.remove_spectral_norm(made)
        return *seen, made.weight, [name for name, _ in made.named_parameters()]

    both(script)


def test_refused() -> None:
    def script(t: Any) -> Any:
        utils = t.nn.utils
        weight = utils.weight_norm(t.nn.Linear(2, 2))
        spectral = utils.spectral_norm(t.nn.Linear(2, 2))
        return [
            result_or_error(lambda: utils.weight_norm(weight)),
            result_or_error(lambda: utils.spectral_norm(spectral)),
            result_or_error(lambda: utils.remove_weight_norm(t.nn.Linear(1, 1))),
            result_or_error(lambda: utils.remove_spectral_norm(t.nn.Linear(1, 1))),
            result_or_error(lambda: utils.spectral_norm(t.nn.Linear(1, 1), n_power_iterations=0)),
        ]

    both(script)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_warning(name: str) -> None:
    def script(t: Any) -> None:
        getattr(t.nn.utils, name)(t.nn.Linear(2, 2))

    assert warnings_of(lambda: script(pygrad)) == warnings_of(lambda: script(torch))
