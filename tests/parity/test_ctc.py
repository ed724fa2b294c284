"""CTC loss: values, and gradients as PyTorch gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import both


def loss_of(t: Any, inputs: Any, lengths: Any, options: Any, row: bool, normal: bool) -> Any:
    rng = np.random.default_rng(0)
    x = t.from_numpy(rng.normal(size=(8, 3, 5))).requires_grad_()
    targets = t.from_numpy(rng.integers(1, 5, (3, 4)))
    if row:
        targets = t.cat([each[:k] for each, k in zip(targets, lengths, strict=True)])
    given = x.log_softmax(2) if normal else x
    loss = t.nn.CTCLoss(**options)(given, targets, t.tensor(inputs), t.tensor(lengths))
    (loss**2).sum().backward()
    return repr(t.nn.CTCLoss(**options)), loss, x.grad


@pytest.mark.parametrize("inputs", [[8, 8, 8], [8, 6, 5]])
@pytest.mark.parametrize("lengths", [[4, 3, 2], [4, 0, 1]])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("row", [False, True])
@pytest.mark.parametrize("normal", [False, True])
def test_loss(inputs: Any, lengths: Any, reduction: str, row: bool, normal: bool) -> None:
    options = {"reduction": reduction}
    both(lambda t: loss_of(t, inputs, lengths, options, row, normal), rtol=1e-9, atol=1e-12)


def test_target_that_is_too_long() -> None:
    options = {"reduction": "none", "zero_infinity": True}
    both(lambda t: loss_of(t, [3, 8, 8], [4, 2, 2], options, False, True), rtol=1e-9, atol=1e-12)
    both(
        lambda t: t.nn.functional.ctc_loss(
            t.zeros(2, 1, 3).log_softmax(2), t.tensor([[1, 1, 2]]), (2,), (3,)
        )
    )


def test_one_sample() -> None:
    def script(t: Any) -> Any:
        x = t.arange(12.0, dtype=t.float64).reshape(4, 3).sin().log_softmax(1)
        return t.nn.functional.ctc_loss(
            x, t.tensor([2, 1]), t.tensor(4), t.tensor(2), blank=0, reduction="none"
        )

    both(script)


def test_unknown_reduction() -> None:
    both(
        lambda t: t.nn.functional.ctc_loss(
            t.zeros(2, 1, 3), t.tensor([[1]]), (2,), (1,), reduction="x"
        )
    )


@pytest.mark.parametrize("lengths", [(0, 0, 0), (2, 0, 1)])
def test_inputs_without_a_step(lengths: tuple[int, ...]) -> None:
    def script(t: Any) -> Any:
        x = t.arange(36.0, dtype=t.float64).reshape(4, 3, 3).sin().requires_grad_()
        options = {"reduction": "none", "zero_infinity": True}
        ends, targets = (0, 4, 0), t.tensor([[1, 2], [2, 1], [1, 1]])
        found = t.nn.functional.ctc_loss(x.log_softmax(2), targets, ends, lengths, **options)
        found.sum().backward()
        options["zero_infinity"] = False
        return found, x.grad, t.nn.functional.ctc_loss(x, targets, ends, lengths, **options)

    both(script, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    ("inputs", "targets"),
    [([4.0, 4], [1, 1]), ([4, 4], [1.0, 1]), ([-1, 4], [1, 1]), ([4, 4], [1, -2])]
    + [([5, 4], [1, 1]), ([4, 4], [1, 3]), ([4], [1, 1]), ([4, 4], [1])],
)
def test_lengths_that_cannot_be(inputs: list[float], targets: list[float]) -> None:
    def script(t: Any) -> Any:
        labels = t.tensor([[1, 2], [2, 1]])
        return t.nn.functional.ctc_loss(
            t.zeros(4, 2, 3).log_softmax(2), labels, t.tensor(inputs), t.tensor(targets)
        )

    both(script)


LONG = [4, 2, 2]
REFUSED: dict[str, Any] = {
    "longer than the input": lambda t, F, x, y: F.ctc_loss(x, y, [9, 8, 10], [1, 1, 1]),
    "too few labels in a row": lambda t, F, x, y: F.ctc_loss(x, t.tensor([1, 2]), [8] * 3, LONG),
    "too many labels in a row": lambda t, F, x, y: F.ctc_loss(x, t.ones(9).long(), [8] * 3, LONG),
    "integers": lambda t, F, x, y: F.ctc_loss(x.long(), y, [8] * 3, LONG),
    "a row": lambda t, F, x, y: F.ctc_loss(x[:, 0, 0], y[:1], [8], [4]),
    "four dimensions": lambda t, F, x, y: F.ctc_loss(x[None], y, [8] * 3, LONG),
    "no steps": lambda t, F, x, y: F.ctc_loss(x[:0], y, [0] * 3, LONG),
    "no samples": lambda t, F, x, y: F.ctc_loss(x[:, :0], y[:0], t.zeros(0), t.zeros(0)),
    "a list beside a tensor": lambda t, F, x, y: t.ctc_loss(x, y, t.tensor([8] * 3), LONG),
    "a class that is none": lambda t, F, x, y: F.ctc_loss(x, y, [8] * 3, LONG, 5),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    def script(t: Any) -> Any:
        x = t.arange(120.0).reshape(8, 3, 5).sin().log_softmax(2)
        return REFUSED[name](t, t.nn.functional, x, t.tensor([[1, 2, 3, 4]] * 3))

    both(script)


@pytest.mark.parametrize("reduction", [None, 0, 1, 2])
def test_reductions_by_number(reduction: int | None) -> None:
    def script(t: Any) -> Any:
        x = t.arange(120.0, dtype=t.float64).reshape(8, 3, 5).sin().log_softmax(2)
        options = {} if reduction is None else {"reduction": reduction}
        return [
            t.ctc_loss(x, t.tensor([[1, 2, 3, 4]] * 3), *lengths, **options)
            for lengths in (([8, 8, 7], LONG), (t.tensor([8, 8, 7]), t.tensor(LONG)))
        ]

    both(script)
