"""nn.MultiheadAttention beside PyTorch's: parameters, outputs, weights, gradients, refusals."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import pytest
from oracle import both
from test_rnn import numbers

OPTIONS: list[dict[str, Any]] = [
    {},
    {"bias": False, "batch_first": True},
    {"kdim": 5, "vdim": 3},
    {"add_bias_kv": True, "add_zero_attn": True},
    {"dropout": 0.4},
]
CALLS: dict[str, Any] = {
    "plain": lambda t: {},
    "pairs": lambda t: {"attn_mask": t.ones(4, 6, dtype=t.bool).triu(1)},
    "numbers": lambda t: {"attn_mask": numbers(t, 4, 6), "average_attn_weights": False},
    "each": lambda t: {"attn_mask": numbers(t, 4, 4, 6)},
    "padding": lambda t: {"key_padding_mask": t.tensor([[False] * 4 + [True] * 2, [False] * 6])},
    "masks": lambda t: {
        "attn_mask": t.ones(4, 6, dtype=t.bool).triu(3),
        "key_padding_mask": t.tensor([[False] * 5 + [True], [False] * 6]),
    },
    "causal": lambda t: {"attn_mask": t.ones(4, 6, dtype=t.bool).triu(1), "is_causal": True},
}


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_attention(options: dict[str, Any], call: str, training: bool) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(7)
        layer = t.nn.MultiheadAttention(8, 2, **options, dtype=t.float64).train(training)
        widths = (8, options.get("kdim", 8), options.get("vdim", 8))
        order = (1, 0, 2) if options.get("batch_first") else (0, 1, 2)
        shapes = [(size, 2, w) for size, w in zip((4, 6, 6), widths, strict=True)]
        given = [numbers(t, *(shape[k] for k in order)) for shape in shapes]
        found = []
        for need_weights in (True, False):
            if not need_weights and (call == "numbers" or options.get("dropout")):
                continue
            output, weights = layer(*given, need_weights=need_weights, **CALLS[call](t))
            found += [output, weights]
            (output * output).sum().backward()
        state = layer.state_dict()
        grads = [each.grad for each in (*given, *layer.parameters())]
        return repr(layer), list(state), list(state.values()), found, grads

    both(run, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("need_weights", [True, False])
def test_unbatched(need_weights: bool) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(7)
        layer = t.nn.MultiheadAttention(8, 2, dtype=t.float64)
        mask = t.tensor([False, True, False])
        x = numbers(t, 3, 8)
        return layer(x, x, x, key_padding_mask=mask, need_weights=need_weights)

    both(run, rtol=1e-6, atol=1e-9)


X = (4, 2, 8)
REFUSED: dict[str, Any] = {
    "heads": lambda t: t.nn.MultiheadAttention(8, 3),
    "none": lambda t: t.nn.MultiheadAttention(8, 0),
    "rank": lambda t: t.nn.MultiheadAttention(8, 2)(t.ones(8), t.ones(8), t.ones(8)),
    "key_rank": lambda t: t.nn.MultiheadAttention(8, 2)(t.ones(X), t.ones(4, 8), t.ones(X)),
    "width": lambda t: t.nn.MultiheadAttention(8, 2)(*[t.ones(4, 2, 6)] * 3),
    "hint": lambda t: t.nn.MultiheadAttention(8, 2)(*[t.ones(X)] * 3, is_causal=True),
    "pairs": lambda t: t.nn.MultiheadAttention(8, 2)(*[t.ones(X)] * 3, attn_mask=t.ones(3, 4)),
    "each": lambda t: t.nn.MultiheadAttention(8, 2)(*[t.ones(X)] * 3, attn_mask=t.ones(2, 4, 4)),
    "mask_rank": lambda t: t.nn.MultiheadAttention(8, 2)(*[t.ones(X)] * 3, attn_mask=t.ones(4)),
    "padding_rank": lambda t: t.nn.MultiheadAttention(8, 2)(
        *[t.ones(X)] * 3, key_padding_mask=t.ones(4)
    ),
    "mask_type": lambda t: t.nn.MultiheadAttention(8, 2)(
        *[t.ones(X)] * 3, attn_mask=t.ones(4, 4, dtype=t.int64)
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    both(lambda t: REFUSED[name](t))


def test_mixed_masks_warn() -> None:
    def run(t: Any) -> Any:
        x = t.ones(X)
        masks = {"attn_mask": t.zeros(4, 4), "key_padding_mask": t.zeros(2, 4, dtype=t.bool)}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            t.nn.MultiheadAttention(8, 2)(x, x, x, **masks)
        return [str(each.message) for each in itertools.islice(caught, 1)]

    both(run)
