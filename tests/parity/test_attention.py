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
    "padding_size": lambda t: t.nn.MultiheadAttention(8, 2, add_bias_kv=True, add_zero_attn=True)(
        *[t.ones(X)] * 3, key_padding_mask=t.zeros(2, 5, dtype=t.bool)
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


FORWARDS: dict[str, Any] = {
    "plain": lambda t: {},
    "no_weights": lambda t: {"need_weights": False},
    "not_averaged": lambda t: {"average_attn_weights": False},
    "separate": lambda t: {
        "use_separate_proj_weight": True,
        **{f"{name}_proj_weight": numbers(t, 8, 8) for name in "qkv"},
    },
    "added": lambda t: {"bias_k": numbers(t, 1, 1, 8), "bias_v": numbers(t, 1, 1, 8)},
    "static": lambda t: {"static_k": numbers(t, 4, 5, 4), "static_v": numbers(t, 4, 5, 4)},
    "zeros": lambda t: {"add_zero_attn": True, "static_k": numbers(t, 4, 4, 4)},
    "static_heads": lambda t: {"static_k": numbers(t, 3, 5, 4)},
    "static_width": lambda t: {"static_v": numbers(t, 4, 5, 3)},
    "static_and_added": lambda t: {
        "bias_k": numbers(t, 1, 1, 8),
        "bias_v": numbers(t, 1, 1, 8),
        "static_k": numbers(t, 4, 5, 4),
    },
    "half_added": lambda t: {"bias_k": numbers(t, 1, 1, 8)},
    "other_half_added": lambda t: {"bias_v": numbers(t, 1, 1, 8)},
    "no_weight": lambda t: {"in_proj_weight": None},
    "no_part": lambda t: {"use_separate_proj_weight": True, "q_proj_weight": numbers(t, 8, 8)},
    "part": lambda t: {
        "use_separate_proj_weight": True,
        **{f"{name}_proj_weight": numbers(t, 8, 6) for name in "qkv"},
    },
    "heads": lambda t: {"num_heads": 3},
    "width": lambda t: {"embed_dim_to_check": 4},
    "value": lambda t: {"value": numbers(t, 3, 2, 8)},
}


@pytest.mark.parametrize("name", FORWARDS)
def test_forward_of_given_weights(name: str) -> None:
    def run(t: Any) -> Any:
        options = {
            **{each: numbers(t, 4, 2, 8) for each in ("query", "key", "value")},
            "embed_dim_to_check": 8,
            "num_heads": 2,
            "in_proj_weight": numbers(t, 24, 8),
            "in_proj_bias": numbers(t, 24),
            "bias_k": None,
            "bias_v": None,
            "add_zero_attn": False,
            "dropout_p": 0.0,
            "out_proj_weight": numbers(t, 8, 8),
            "out_proj_bias": None,
            **FORWARDS[name](t),
        }
        output, weights = t.nn.functional.multi_head_attention_forward(**options)
        (output**2).sum().backward()
        given = [each for each in options.values() if isinstance(each, t.Tensor)]
        return output, weights, [each.grad for each in given]

    both(run, rtol=1e-6, atol=1e-9)


def ones(t: Any, *sizes: int) -> Any:
    return t.ones(*sizes, dtype=t.bool)


MASKS: dict[str, Any] = {
    "all": lambda t: ones(t, 4, 5),
    "row": lambda t: ones(t, 1, 5),
    "column": lambda t: ones(t, 4, 1),
    "three": lambda t: ones(t, 2, 4, 5),
    "four": lambda t: ones(t, 2, 1, 4, 5),
    "nothing": lambda t: ~ones(t, 4, 5),
    "numbers": lambda t: numbers(t, 4, 5).detach(),
    "recorded": lambda t: numbers(t, 4, 5),
}


@pytest.mark.parametrize("mask", MASKS)
def test_causal_beside_a_mask(mask: str) -> None:
    def run(t: Any) -> Any:
        q, k, v = (numbers(t, 2, 2, size, 3) for size in (4, 5, 5))
        attend = t.nn.functional.scaled_dot_product_attention
        y = attend(q, k, v, attn_mask=MASKS[mask](t), is_causal=True)
        (y * y).sum().backward()
        return y, q.grad, k.grad, v.grad

    both(run, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("width", [3, 2])
@pytest.mark.parametrize("shape", [(2, 2, 5), (1, 2, 5), (2, 5), (2, 2, 0)], ids=str)
@pytest.mark.parametrize("options", [{}, {"dropout_p": 0.5}, {"enable_gqa": True}], ids=str)
def test_causal_beside_a_mask_where(options: Any, shape: tuple[int, ...], width: int) -> None:
    def run(t: Any) -> Any:
        q, k, v = numbers(t, 2, 2, 4, 3), numbers(t, *shape, 3), numbers(t, *shape, width)
        attend = t.nn.functional.scaled_dot_product_attention
        return attend(q, k, v, attn_mask=ones(t, 4, shape[-1]), is_causal=True, **options)

    both(run, rtol=1e-6, atol=1e-9)
