"""Packed and padded sequences, and recurrent layers over them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import both


def make_padded(t: Any) -> Any:
    values = np.random.default_rng(0).uniform(-1, 1, (5, 4, 3))
    return t.from_numpy(values).requires_grad_()


LENGTHS = {"sorted": [5, 3, 3, 1], "unsorted": [2, 5, 1, 3], "equal": [5, 5, 5, 5]}


@pytest.mark.parametrize("order", LENGTHS)
@pytest.mark.parametrize("batch_first", [False, True])
def test_packing_and_back(order: str, batch_first: bool) -> None:
    def script(t: Any) -> Any:
        rnn = t.nn.utils.rnn
        x = make_padded(t)
        given = x.transpose(0, 1) if batch_first else x
        lengths = t.tensor(LENGTHS[order])
        packed = rnn.pack_padded_sequence(given, lengths, batch_first, enforce_sorted=False)
        back, found = rnn.pad_packed_sequence(packed, batch_first, -1.0, total_length=6)
        (back * back).sum().backward()
        return *packed, back, found, x.grad, rnn.unpack_sequence(packed)

    both(script)


@pytest.mark.parametrize("order", LENGTHS)
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("RNN", {"nonlinearity": "relu"}),
        ("GRU", {"num_layers": 2, "bidirectional": True}),
        ("LSTM", {"num_layers": 2, "dropout": 0.4}),
        ("LSTM", {"bidirectional": True, "proj_size": 1, "bias": False}),
        ("GRU", {"batch_first": True}),
    ],
    ids=str,
)
@pytest.mark.parametrize("state", [False, True])
def test_layer_over_packed(order: str, kind: str, options: Any, state: bool) -> None:
    def script(t: Any) -> Any:
        rnn = t.nn.utils.rnn
        layer = getattr(t.nn, kind)(3, 2, **options).double()
        x = make_padded(t)
        packed = rnn.pack_padded_sequence(x, t.tensor(LENGTHS[order]), enforce_sorted=False)
        output, last = layer(packed)
        if state:
            output, last = layer(packed, last)
        states = last if kind == "LSTM" else (last,)
        total = (output.data**2).sum() + sum((each**3).sum() for each in states)
        total.backward()
        grads = [p.grad for p in layer.parameters()]
        return *output, states, x.grad, grads

    both(script)


SCRIPTS: dict[str, Any] = {
    "left": lambda t, r: r.pad_sequence([t.tensor([1]), t.tensor([1, 2])], True, 7, "left"),
    "right": lambda t, r: r.pad_sequence([t.ones(2, 3), t.ones(3, 3)]),
    "tensor": lambda t, r: r.pad_sequence(t.ones(2, 3)),
    "unpad": lambda t, r: r.unpad_sequence(t.arange(12).view(3, 4), t.tensor([3, 2, 1, 1])),
    "invert": lambda t, r: [r.invert_permutation(t.tensor([2, 0, 1])), r.invert_permutation(None)],
    "pack": lambda t, r: repr(r.pack_sequence([t.ones(3), t.ones(1)])),
    "unsorted": lambda t, r: repr(r.pack_sequence([t.ones(1), t.ones(3)], enforce_sorted=False)),
    "made": lambda t, r: repr(r.PackedSequence(t.ones(3), t.tensor([2, 1]), t.tensor([1, 0]))),
    "double": lambda t, r: r.pack_sequence([t.ones(2)]).double().data,
    "same": lambda t, r: (lambda p: (p.cpu() is p, p.is_cuda, p.to(t.float32) is p))(
        r.pack_sequence([t.ones(2)])
    ),
    "no_sequences": lambda t, r: r.pad_sequence([]),
    "number": lambda t, r: r.pad_sequence(3),
    "side": lambda t, r: r.pad_sequence([t.ones(2)], padding_side="x"),
    "order": lambda t, r: r.pack_sequence([t.ones(1), t.ones(3)]),
    "count": lambda t, r: r.pack_padded_sequence(t.ones(3, 4), [3, 2]),
    "zero": lambda t, r: r.pack_padded_sequence(t.ones(3, 2), [3, 0]),
    "total": lambda t, r: r.pad_packed_sequence(r.pack_sequence([t.ones(3)]), total_length=2),
    "rank": lambda t, r: t.nn.GRU(1, 2)(r.pack_sequence([t.ones(3)])),
    "features": lambda t, r: t.nn.GRU(2, 2)(r.pack_sequence([t.ones(3, 1)])),
    "state": lambda t, r: t.nn.GRU(1, 2)(r.pack_sequence([t.ones(3, 1)]), t.zeros(1, 3, 2)),
    "flat": lambda t, r: t.nn.GRU(1, 2)(r.pack_sequence([t.ones(3, 1)]), t.zeros(1, 2)),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_sequences(name: str) -> None:
    both(lambda t: SCRIPTS[name](t, t.nn.utils.rnn))
