"""Complex tensors: what holds of every op that takes them, and of their gradients."""

from __future__ import annotations

import pygrad


def test_gradient_is_added_to_a_conjugate_that_waits() -> None:
    x = pygrad.ones(2, dtype=pygrad.complex128, requires_grad=True)
    x.grad = pygrad.full((2,), 1 + 2j, dtype=pygrad.complex128).conj()
    (x * 1j).real.sum().backward()
    assert x.grad.tolist() == [1 - 3j, 1 - 3j]
