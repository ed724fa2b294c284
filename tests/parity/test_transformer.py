"""Transformers: initial values, outputs, gradients, masks, warnings, dropout's stream."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import both, torch, warnings_of

import pygrad


def numbers(t: Any, *shape: int) -> Any:
    rng = np.random.default_rng(len(shape))
    return t.from_numpy(rng.uniform(-1, 1, shape)).requires_grad_()


def run(t: Any, module: Any, *args: Any, **kwargs: Any) -> Any:
    module = module.double()
    output = module(*args, **kwargs)
    (output * output).sum().backward()
    grads = [p.grad for p in module.parameters()] + [a.grad for a in args]
    return repr(module), list(module.state_dict()), output, grads


OPTIONS: list[dict[str, Any]] = [
    {},
    {"norm_first": True, "activation": "gelu"},
    {"batch_first": True, "bias": False},
    {"dropout": 0.0, "layer_norm_eps": 1e-3},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["Encoder", "Decoder"])
def test_layer(options: dict[str, Any], training: bool, kind: str) -> None:
    def script(t: Any) -> Any:
        layer = getattr(t.nn, f"Transformer{kind}Layer")(8, 2, 12, **options).train(training)
        x, memory = numbers(t, 3, 4, 8), numbers(t, 3, 4, 8).detach().requires_grad_()
        return run(t, layer, *([x] if kind == "Encoder" else [x, memory]))

    both(script)


@pytest.mark.parametrize("mask", ["none", "causal", "bool", "float", "square"])
@pytest.mark.parametrize("padding", [False, True])
def test_encoder_with_masks(mask: str, padding: bool) -> None:
    def script(t: Any) -> Any:
        layer = t.nn.TransformerEncoderLayer(8, 2, 12, 0.0, batch_first=True)
        encoder = t.nn.TransformerEncoder(layer, 2, norm=t.nn.LayerNorm(8))
        causal = t.nn.Transformer.generate_square_subsequent_mask(4, dtype=t.float64)
        options: dict[str, Any] = {}
        if mask != "none":
            found = {
                "causal": causal,
                "square": causal,
                "bool": causal < 0,
                "float": t.full((4, 4), 0.5, dtype=t.float64),
            }[mask]
            options |= {"mask": found}
        if mask == "square":
            options["is_causal"] = True
        if padding:
            options["src_key_padding_mask"] = t.tensor([[False] * 4, [False, False, True, True]])
        return run(t, encoder, numbers(t, 2, 4, 8), **options)

    both(script)


def test_decoder_with_masks() -> None:
    def script(t: Any) -> Any:
        decoder = t.nn.TransformerDecoder(t.nn.TransformerDecoderLayer(8, 2, 12, 0.0), 2)
        causal = t.nn.Transformer.generate_square_subsequent_mask(3, dtype=t.float64)
        memory = t.tensor([[False] * 5, [False, False, False, True, True]])
        x, y = numbers(t, 3, 2, 8), numbers(t, 5, 2, 8)
        return run(t, decoder, x, y, tgt_mask=causal, memory_key_padding_mask=memory)

    both(script)


@pytest.mark.parametrize("training", [True, False])
def test_whole(training: bool) -> None:
    def script(t: Any) -> Any:
        model = t.nn.Transformer(8, 2, 2, 1, 12, batch_first=True).train(training)
        return run(t, model, numbers(t, 2, 5, 8), numbers(t, 2, 4, 8).detach().requires_grad_())

    both(script)


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("check", [True, False])
def test_padding_outside_of_graphs(ends: bool, check: bool) -> None:
    def script(t: Any) -> Any:
        layer = t.nn.TransformerEncoderLayer(8, 2, 12, batch_first=True)
        encoder = t.nn.TransformerEncoder(layer, 2, mask_check=check).double().eval()
        padding = t.tensor([[False] * 4, [False, ends, True, ends]])
        with t.no_grad():
            return encoder(numbers(t, 2, 4, 8), src_key_padding_mask=padding)

    if ends or check:
        both(script)


WARNED: list[dict[str, Any]] = [
    {"batch_first": False},
    {"norm_first": True},
    {"bias": False},
    {"activation": "tanh"},
    {"nhead": 1},
]


@pytest.mark.parametrize("options", WARNED, ids=str)
def test_encoder_warns(options: dict[str, Any]) -> None:
    def script(t: Any) -> Any:
        given = {"batch_first": True, "nhead": 2, **options}
        if given.get("activation"):
            given["activation"] = t.tanh
        t.nn.TransformerEncoder(t.nn.TransformerEncoderLayer(8, **given), 1)

    assert warnings_of(lambda: script(pygrad)) == warnings_of(lambda: script(torch))


def test_mixed_masks_warn() -> None:
    def script(t: Any) -> Any:
        layer = t.nn.TransformerEncoderLayer(8, 2)
        padding = t.zeros(2, 4, dtype=t.bool)
        layer(t.ones(4, 2, 8), t.zeros(4, 4), padding)

    assert warnings_of(lambda: script(pygrad)) == warnings_of(lambda: script(torch))


@pytest.mark.parametrize(
    "script",
    [
        lambda t: t.nn.TransformerEncoderLayer(8, 3),
        lambda t: t.nn.TransformerEncoderLayer(8, 2, activation="foo"),
        lambda t: t.nn.Transformer(8, 2)(t.ones(2, 3, 8), t.ones(2, 2, 8)),
        lambda t: t.nn.Transformer(8, 2)(t.ones(2, 3, 7), t.ones(2, 3, 7)),
        lambda t: t.nn.TransformerEncoderLayer(8, 2)(t.ones(2, 3, 8), t.ones(2, 2).long()),
        lambda t: t.nn.TransformerEncoderLayer(8, 2)(t.ones(8)),
    ],
)
def test_refuses(script: Any) -> None:
    both(script)
