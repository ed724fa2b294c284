"""Attention by functions of positions: PyTorch's block masks, and what the definition gives."""

from __future__ import annotations

import importlib
import math
from typing import Any

import pytest
from oracle import both, result_or_error

import pygrad


def flexible(t: Any) -> Any:
    return importlib.import_module(f"{t.__name__}.nn.attention.flex_attention")


def causal(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return q >= kv


def is_near(b: Any, h: Any, q: Any, kv: Any) -> Any:
    return (q - kv).abs() <= h + 1


@pytest.mark.parametrize("mask", [causal, is_near], ids=["causal", "near"])
@pytest.mark.parametrize("sizes", [(8, 8, 2), (5, 7, 4), (6, 4, (2, 4))], ids=str)
def test_block_masks(mask: Any, sizes: Any) -> None:
    queries, keys, block = sizes

    def script(t: Any) -> Any:
        f = flexible(t)
        made = f.create_block_mask(mask, 2, 3, queries, keys, device="cpu", BLOCK_SIZE=block)
        part = made[0, 1]
        return (
            f.create_mask(mask, 2, 3, queries, keys, device="cpu"),
            made.to_dense(),
            [
                made.kv_num_blocks,
                made.full_kv_num_blocks,
                made.q_num_blocks,
                made.full_q_num_blocks,
            ],
            [made.kv_indices, made.full_kv_indices, made.q_indices, made.full_q_indices],
            list(made.shape),
            made.numel(),
            float(made.sparsity()),
            list(made.seq_lengths),
            list(made.BLOCK_SIZE),
            part.kv_num_blocks,
            part.to_dense(),
        )

    both(script)


def test_masks_of_masks() -> None:
    def script(t: Any) -> Any:
        f = flexible(t)
        return (
            f.create_mask(f.or_masks(causal, is_near), 1, 2, 4, 4, device="cpu"),
            f.create_mask(f.and_masks(causal, is_near), 1, 2, 4, 4, device="cpu"),
            f.create_mask(f.noop_mask, None, None, 2, 3, device="cpu").expand(1, 1, 2, 3),
            f.create_mask(
                lambda s, b, h, q, kv: t.where(q >= kv, s, -math.inf), 1, 1, 3, 3, device="cpu"
            ),
            result_or_error(lambda: f.or_masks(3)),
            result_or_error(lambda: f.BlockMask.from_kv_blocks(t.ones(1), t.ones(1))),
        )

    both(script)


def test_attention_is_that_of_the_definition() -> None:
    t, f = pygrad, flexible(pygrad)
    t.manual_seed(0)
    q, k, v = (t.randn(2, 4, 5, 3, dtype=t.float64, requires_grad=True) for _ in range(3))
    slopes = t.rand(4, dtype=t.float64, requires_grad=True)

    def score(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return s + slopes[h] * (i - j)

    distance = t.arange(5).unsqueeze(1) - t.arange(5)
    bias = slopes.view(4, 1, 1) * distance
    mask = t.ones(5, 5, dtype=t.bool).tril()
    attend = t.nn.functional.scaled_dot_product_attention
    expected = attend(q, k, v, bias.masked_fill(~mask, -math.inf).expand(2, 4, 5, 5))
    block = f.create_block_mask(causal, None, None, 5, 5, BLOCK_SIZE=2)
    found, extra = f.flex_attention(
        q, k, v, score, block, return_aux=f.AuxRequest(lse=True, max_scores=True)
    )
    t.testing.assert_close(found, expected)
    scores = (q @ k.mT / math.sqrt(3) + bias).masked_fill(~mask, -math.inf)
    t.testing.assert_close(extra.lse, scores.logsumexp(-1))
    t.testing.assert_close(extra.max_scores, scores.amax(-1))
    inputs = [q, k, v, slopes]
    mine = t.autograd.grad(found.square().sum(), inputs)
    theirs = t.autograd.grad(expected.square().sum(), inputs)
    t.testing.assert_close(mine, theirs)


def test_heads_that_share_keys_and_queries_that_see_nothing() -> None:
    t, f = pygrad, flexible(pygrad)
    q, k = t.rand(1, 4, 3, 2), t.rand(1, 2, 3, 2)
    shared = f.flex_attention(q, k, k, enable_gqa=True)
    twice = k.repeat_interleave(2, dim=1)
    t.testing.assert_close(shared, f.flex_attention(q, twice, twice))
    block = f.create_block_mask(lambda b, h, i, j: i > 5, None, None, 3, 3)
    blind, lse = f.flex_attention(q, twice, twice, block_mask=block, return_lse=True)
    assert blind.abs().max() == 0
    assert lse.isneginf().all()


def test_calls_that_are_refused() -> None:
    def script(t: Any) -> Any:
        f = flexible(t)
        x, y = t.rand(1, 2, 4, 3), t.rand(1, 3, 4, 3)
        block = f.create_block_mask(causal, 1, 1, 4, 4, device="cpu", BLOCK_SIZE=2)
        calls = [
            lambda: f.flex_attention(x[0], x, x),
            lambda: f.flex_attention(x, y, y),
            lambda: f.flex_attention(x, y, y, enable_gqa=True),
            lambda: f.flex_attention(x, x[..., :2], x),
            lambda: f.flex_attention(x, x, x, block_mask=block[0]),
        ]
        return [result_or_error(call) for call in calls]

    both(script)


def test_causal_masks() -> None:
    def script(t: Any) -> Any:
        b = importlib.import_module(f"{t.__name__}.nn.attention.bias")
        q, k = t.rand(1, 1, 2, 3), t.rand(1, 1, 4, 3)
        attend = t.nn.functional.scaled_dot_product_attention
        left, right = b.causal_upper_left(2, 4), b.causal_lower_right(2, 4)
        return (
            left._materialize(),
            right._materialize(),
            attend(q, k, k, left),
            attend(q, k, k, right),
            [int(each.variant) for each in (left, right)],
            [right.seq_len_q, right.seq_len_kv],
            isinstance(left, t.Tensor),
            result_or_error(lambda: b.CausalBias(3, 2, 2)),
            result_or_error(lambda: b.causal_upper_left(2)),
        )

    both(script, rtol=1e-5, atol=1e-6)
