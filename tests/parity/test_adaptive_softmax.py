"""The adaptive softmax: values, gradients, predictions, printed form, messages."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import both, result_or_error


def data(t: Any, *shape: int) -> Any:
    x = t.arange(float(t.Size(shape).numel()), dtype=t.float64).square().sin()
    return x.reshape(shape).requires_grad_()


@pytest.mark.parametrize("cutoffs", [[4], [4, 10], [1, 2, 3]])
@pytest.mark.parametrize("bias", [True, False])
def test_values_and_gradients(cutoffs: list[int], bias: bool) -> None:
    def script(t: Any) -> Any:
        layer = t.nn.AdaptiveLogSoftmaxWithLoss(8, 20, cutoffs, 2.0, bias).double()
        seen = [repr(layer), list(layer.state_dict())]
        for targets in ([0, 3, 4, 9, 10, 19, 0], [1, 1], [19], [0]):
            x = data(t, len(targets), 8)
            result = layer(x, t.tensor(targets))
            layer.zero_grad(set_to_none=False)
            result.loss.backward(retain_graph=True)
            (result.output * t.arange(1.0, 1 + len(targets))).sum().backward()
            seen += [result.output, result.loss, x.grad, [p.grad for p in layer.parameters()]]
            seen += [type(result).__name__, len(result), layer.log_prob(x), layer.predict(x * 5)]
        one = layer(data(t, 8), t.tensor(5))
        layer.reset_parameters()
        return [*seen, one.output, one.loss, layer.log_prob(data(t, 2, 8))]

    both(script)


def test_messages() -> None:
    def script(t: Any) -> Any:
        make = t.nn.AdaptiveLogSoftmaxWithLoss
        layer = make(4, 10, [3])
        wrong: list[list[Any]] = [[], [3, 3], [5, 3], [0, 3], [10], [12], [2.5], [-1, 2]]
        return [
            *(result_or_error(lambda c=c: make(4, 10, c)) for c in wrong),
            result_or_error(lambda: layer(t.ones(2, 4), t.tensor([0, 10]))),
            result_or_error(lambda: layer(t.ones(2, 4), t.tensor([-1, 2]))),
            result_or_error(lambda: layer(t.ones(2, 4), t.tensor([1, 2, 3]))),
            result_or_error(lambda: layer(t.ones(2, 4), t.tensor([[1], [2]]))),
            result_or_error(lambda: layer(t.ones(2), t.tensor([1, 2]))),
            result_or_error(lambda: layer(t.ones(2, 4), t.tensor(1))),
        ]

    both(script)
