"""grid_sample and affine_grid: values, gradients, ends of the image, messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both, torch, warnings_of

import pygrad


def draw(t: Any, seed: int, *shape: int) -> Any:
    values = np.random.default_rng(seed).uniform(-1.4, 1.4, shape)
    return t.from_numpy(values).requires_grad_()


SHAPES = {"image": ((2, 3, 4, 5), (2, 3, 2, 2)), "volume": ((1, 2, 3, 4, 2), (1, 2, 3, 2, 3))}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("mode", ["bilinear", "nearest", "bicubic"])
@pytest.mark.parametrize("padding_mode", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align_corners", [True, False])
def test_grid_sample(shape: str, mode: str, padding_mode: str, align_corners: bool) -> None:
    def script(t: Any) -> Any:
        image, grid = (draw(t, k, *sizes) for k, sizes in enumerate(SHAPES[shape]))
        output = t.nn.functional.grid_sample(image, grid, mode, padding_mode, align_corners)
        (output**3).sum().backward()
        return output, image.grad, grid.grad

    both(script, rtol=1e-9)


@pytest.mark.parametrize("align_corners", [True, False])
@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 1, 2, 3, 4)])
def test_affine_grid(align_corners: bool, size: tuple[int, ...]) -> None:
    def script(t: Any) -> Any:
        theta = draw(t, 0, 2, len(size) - 2, len(size) - 1)
        grid = t.nn.functional.affine_grid(theta, size, align_corners=align_corners)
        (grid**3).sum().backward()
        return grid, theta.grad

    both(script, rtol=1e-9)


def test_second_order_of_bicubic() -> None:
    image, grid = (draw(pygrad, k, *sizes) for k, sizes in enumerate(SHAPES["image"]))

    def sample(image: Any, grid: Any) -> Any:
        return pygrad.nn.functional.grid_sample(image, grid, "bicubic", align_corners=False)

    assert pygrad.autograd.gradgradcheck(sample, (image, grid))


@pytest.mark.parametrize("name", ["grid_sampler", "grid_sampler_2d", "grid_sampler_3d"])
@pytest.mark.parametrize("shape", SHAPES)
def test_modes_by_number(name: str, shape: str) -> None:
    def script(t: Any) -> Any:
        image, grid = (draw(t, k, *sizes) for k, sizes in enumerate(SHAPES[shape]))
        return [getattr(t, name)(image, grid, mode, 3 % (mode + 2), True) for mode in (0, 1)]

    both(script)


@pytest.mark.parametrize("align_corners", [True, False])
def test_places_that_are_none(align_corners: bool) -> None:
    def script(t: Any) -> Any:
        image = draw(t, 0, 1, 1, 3, 3)
        ends = [float("nan"), 0.3, float("inf"), 0.2, 1e30, -1e30, 0.1, 0.2]
        grid = t.tensor(ends, dtype=t.float64).reshape(1, 1, 4, 2)
        return t.nn.functional.grid_sample(image, grid, align_corners=align_corners)

    both(script)


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "mode": lambda t, F: F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 1, 1, 2), "x"),
    "padding": lambda t, F: F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 1, 1, 2), padding_mode="x"),
    "rank": lambda t, F: F.grid_sample(t.ones(1, 2, 2), t.ones(1, 1, 2)),
    "flat": lambda t, F: F.grid_sample(t.ones(1, 2, 2), t.ones(1, 1, 1)),
    "ranks": lambda t, F: F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 1, 2)),
    "batch": lambda t, F: F.grid_sample(t.ones(1, 1, 2, 2), t.ones(2, 1, 1, 2)),
    "last": lambda t, F: F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 1, 1, 3)),
    "no rows": lambda t, F: F.grid_sample(t.ones(2, 3, 0, 5), t.ones(2, 1, 1, 2)),
    "no depth, cubic": lambda t, F: F.grid_sample(
        t.ones(1, 1, 2, 0, 2), t.ones(1, 1, 1, 1, 3), "bicubic"
    ),
    "integers of an image": lambda t, F: F.grid_sample(
        t.ones(1, 1, 2, 2).long(), t.ones(1, 1, 1, 2)
    ),
    "integers of a grid": lambda t, F: F.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 1, 1, 2).long()),
    "another dtype": lambda t, F: F.grid_sample(
        t.ones(1, 1, 2, 2).double(), t.ones(1, 1, 1, 2), align_corners=True
    ),
    "generator": lambda t, F: t.affine_grid_generator(t.ones(1, 2, 3), (1, 2, 2), False),
    "theta": lambda t, F: F.affine_grid(t.ones(1, 2, 2), (1, 1, 2, 2)),
    "integers": lambda t, F: F.affine_grid(t.ones(1, 2, 3).long(), (1, 1, 2, 2)),
    "size": lambda t, F: F.affine_grid(t.ones(1, 2, 3), (1, 1, 2)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    both(lambda t: REFUSED[name](t, t.nn.functional))


@pytest.mark.parametrize("size", [(2, 3, 4, 5), (2, 1, 1, 3), (2, 1, 2, 3, 4), (2, 1, 0, 3)])
def test_affine_grid_generator(size: tuple[int, ...]) -> None:
    def script(t: Any) -> Any:
        theta = draw(t, 0, 2, len(size) - 2, len(size) - 1)
        return [t.affine_grid_generator(theta, size, aligned) for aligned in (True, False)]

    both(script, rtol=1e-9)


def test_unknown_mode_warns_of_nothing() -> None:
    def script(t: Any) -> list[str]:
        def sample() -> None:
            with pytest.raises(ValueError, match="expected mode"):
                t.nn.functional.grid_sample(t.ones(1, 1, 2, 2), t.ones(1, 1, 1, 2), "x")

        return warnings_of(sample)

    assert script(pygrad) == script(torch)


def test_default_warns() -> None:
    def script(t: Any) -> None:
        t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 2, 2))

    assert warnings_of(lambda: script(pygrad)) == warnings_of(lambda: script(torch))
