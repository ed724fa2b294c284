"""Programs through complex numbers, run by both libraries: they come to the same numbers on the
same way, and to the answer that the program is for.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from oracle import array, torch

import pygrad


def spectrogram_inverted(t: Any) -> tuple[list[float], Any, Any, Any]:
    """A chirp that fades in and out, found by gradient descent from the magnitudes of its
    short-time Fourier transform: the loss of each step, magnitudes wanted and found, and by what
    the inverse of the found transform misses the found signal.
    """
    n = 384
    seconds = t.arange(n, dtype=t.float64) / n
    signal = (2 * math.pi * (20 + 40 * seconds) * seconds).sin() * (math.pi * seconds).sin()
    options = {
        "n_fft": 64,
        "hop_length": 16,
        "window": t.hann_window(64, dtype=t.float64),
        "normalized": True,
    }

    def transform(x: Any) -> Any:
        return t.stft(x, return_complex=True, **options)

    wanted = transform(signal).abs()
    found = (signal + 0.3 * (300 * seconds).sin()).requires_grad_()
    optimizer = t.optim.Adam([found], lr=0.02)
    losses = []
    for _ in range(60):
        optimizer.zero_grad()
        loss = (transform(found).abs() - wanted).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    made = transform(found).detach()
    return losses, wanted, made.abs(), t.istft(made, length=n, **options) - found.detach()


def test_a_spectrogram_is_inverted_by_gradient_descent() -> None:
    mine, theirs = spectrogram_inverted(pygrad), spectrogram_inverted(torch)
    assert mine[0] == pytest.approx(theirs[0], rel=1e-6)
    for a, b in zip(mine[1:], theirs[1:], strict=True):
        assert array(a) == pytest.approx(array(b), abs=1e-6)
    losses, wanted, found, rest = mine
    assert losses[-1] < 1e-2 * losses[0]
    assert (found - wanted).norm().item() < 0.05 * wanted.norm().item()
    assert rest.abs().max().item() < 1e-10, "the inverse transform gives the signal back"


def phases_retrieved(t: Any) -> tuple[list[float], Any, float]:
    """A complex vector found from the intensities of its projections, in complex64: the loss of
    each step, the vector, and how far it is from the one behind the intensities, but for its phase.
    """
    rows, n = 60, 8

    def numbers(count: int, scale: float) -> Any:
        k = t.arange(count, dtype=t.float64)
        re, im = (k * k * 0.7 + k).sin(), (k * k * 1.3 + 2 * k).cos()
        return (scale * t.complex(re, im)).to(t.complex64)

    behind, directions = numbers(n, 1.0), numbers(rows * n, 1.0).reshape(rows, n)
    wanted = (directions @ behind).abs() ** 2

    def loss(z: Any) -> Any:
        return ((directions @ z).abs() ** 2 - wanted).square().mean() / wanted.mean() ** 2

    # the first direction of the intensities' matrix, as long as the vector must be
    matrix = (directions.mH * wanted) @ directions / rows
    scale = (wanted.mean() / directions.abs().square().sum(1).mean()).sqrt()
    first = t.ones(n, dtype=t.complex64)
    for _ in range(30):
        first = matrix @ first
        first = first / first.norm()
    z = (first * scale * math.sqrt(n)).requires_grad_()
    optimizer = t.optim.SGD([z], lr=0.15 * z.abs().square().sum().item() / 8, momentum=0.5)
    losses = []
    for _ in range(240):
        optimizer.zero_grad()
        value = loss(z)
        value.backward()
        optimizer.step()
        losses.append(value.item())
    found = z.detach()
    turn = t.vdot(found, behind)
    distance = (found * turn / turn.abs() - behind).norm() / behind.norm()
    return losses, found, distance.item()


def test_phases_are_retrieved_in_complex64() -> None:
    (losses, found, distance), theirs = phases_retrieved(pygrad), phases_retrieved(torch)
    assert str(found.dtype) == "torch.complex64"
    assert losses == pytest.approx(theirs[0], rel=1e-2, abs=1e-6)
    assert array(found) == pytest.approx(array(theirs[1]), abs=1e-3)
    assert losses[-1] < 1e-4 * losses[0]
    assert distance < 0.01
