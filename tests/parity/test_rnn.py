"""Recurrent layers and cells beside PyTorch's: parameters, outputs, states, gradients, refusals."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracle import both, torch

import pygrad

LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    (name, (4, 3, *more), options)
    for name in ("RNN", "LSTM", "GRU")
    for more, options in (
        ((), {}),
        ((2,), {"bias": False}),
        ((2,), {"bidirectional": True}),
        ((3,), {"bidirectional": True, "batch_first": True, "dropout": 0.4}),
    )
] + [
    ("RNN", (4, 3, 2, "relu"), {"batch_first": True}),
    ("LSTM", (4, 3), {"proj_size": 2}),
    ("LSTM", (4, 3, 2), {"proj_size": 2, "bidirectional": True}),
]


def flat(value: Any) -> list[Any]:
    return [v for each in value for v in flat(each)] if isinstance(value, tuple) else [value]


def numbers(t: Any, *shape: int) -> Any:
    count = 1
    for size in shape:
        count *= size
    return ((t.arange(count, dtype=t.float64) * 7 % 11 - 5) / 4).reshape(shape).requires_grad_()


def ran(t: Any, layer: Any, *given: Any) -> Any:
    """Everything that comes of a call, the gradients too."""
    found = flat(layer(*given))
    sum((each * each * (k + 1)).sum() for k, each in enumerate(found)).backward()
    leaves = [each for each in flat(given) if each is not None]
    return found, [each.grad for each in (*leaves, *layer.parameters())]


def make(t: Any, name: str, args: Any, options: Any) -> Any:
    t.manual_seed(5)
    return getattr(t.nn, name)(*args, **options, dtype=t.float64)


@pytest.mark.parametrize("given", ["input", "states", "unbatched", "eval"])
@pytest.mark.parametrize(
    ("name", "args", "options"), LAYERS, ids=[f"{n}-{a}{o}" for n, a, o in LAYERS]
)
def test_layer(name: str, args: Any, options: Any, given: str) -> None:
    def run(t: Any) -> Any:
        layer = make(t, name, args, options).train(given != "eval")
        layer.flatten_parameters()
        rows = layer.num_layers * (2 if layer.bidirectional else 1)
        shape = (2, 5, 4) if layer.batch_first else (5, 2, 4)
        x = numbers(t, *(shape if given != "unbatched" else (5, 4)))
        batch = () if given == "unbatched" else (2,)
        states = [numbers(t, rows, *batch, options.get("proj_size", 3))]
        if name == "LSTM":
            states.append(numbers(t, rows, *batch, 3))
        hx: Any = tuple(states) if name == "LSTM" else states[0]
        state = layer.state_dict()
        names = [[tuple(w.shape) for w in each] for each in layer.all_weights]
        result = ran(t, layer, x, hx) if given in ("states", "unbatched") else ran(t, layer, x)
        return repr(layer), list(state), names, list(state.values()), result

    both(run, rtol=1e-6, atol=1e-9)


CELLS = [
    ("RNNCell", {}),
    ("RNNCell", {"nonlinearity": "relu"}),
    ("LSTMCell", {"bias": False}),
    ("LSTMCell", {}),
    ("GRUCell", {}),
]


@pytest.mark.parametrize("batch", [(), (2,)], ids=["one", "batch"])
@pytest.mark.parametrize("with_state", [True, False])
@pytest.mark.parametrize(("name", "options"), CELLS, ids=[f"{n}{o}" for n, o in CELLS])
def test_cell(name: str, options: Any, with_state: bool, batch: Any) -> None:
    def run(t: Any) -> Any:
        cell = make(t, name, (4, 3), options)
        h = numbers(t, *batch, 3)
        hx = (h, numbers(t, *batch, 3)) if name == "LSTMCell" else h
        given = (numbers(t, *batch, 4), hx) if with_state else (numbers(t, *batch, 4),)
        return repr(cell), list(cell.state_dict()), ran(t, cell, *given)

    both(run, rtol=1e-6, atol=1e-9)


REFUSED: dict[str, Any] = {
    "nonlinearity": lambda t: t.nn.RNN(4, 3, 1, "sine"),
    "dropout": lambda t: t.nn.LSTM(4, 3, 2, dropout=1.5),
    "dropout_bool": lambda t: t.nn.LSTM(4, 3, 2, dropout=True),
    "hidden_float": lambda t: t.nn.GRU(4, 3.0),
    "hidden_zero": lambda t: t.nn.GRU(4, 0),
    "layers": lambda t: t.nn.GRU(4, 3, 0),
    "width_of_numpy": lambda t: t.nn.LSTM(np.int64(4), 3),
    "state_of_numpy": lambda t: t.nn.LSTM(4, np.int64(3)),
    "width_float": lambda t: t.nn.GRU(4.0, 3),
    "width_none": lambda t: t.nn.RNN(0, 3),
    "state_none": lambda t: t.nn.RNN(4, 0),
    "bias_number": lambda t: t.nn.GRU(4, 3, bias=1),
    "batch_first_none": lambda t: t.nn.GRU(4, 3, batch_first=None),
    "which_first": lambda t: t.nn.GRU(0, "a", batch_first=1),
    "projection": lambda t: t.nn.GRU(4, 3, proj_size=2),
    "projection_rnn": lambda t: t.nn.RNN(4, 3, proj_size=2),
    "projection_wide": lambda t: t.nn.LSTM(4, 3, proj_size=3),
    "projection_negative": lambda t: t.nn.LSTM(4, 3, proj_size=-1),
    "rank": lambda t: t.nn.LSTM(4, 3)(t.ones(4)),
    "rank_gru": lambda t: t.nn.GRU(4, 3)(t.ones(1, 1, 1, 4)),
    "width": lambda t: t.nn.LSTM(4, 3)(t.ones(2, 2, 5)),
    "dtype": lambda t: t.nn.LSTM(4, 3)(t.ones(2, 2, 5).double()),
    "dtype_gru": lambda t: t.nn.GRU(4, 3).double()(t.ones(2, 4)),
    "state_rank": lambda t: t.nn.GRU(4, 3)(t.ones(2, 2, 4), t.ones(2, 3)),
    "state_rank_unbatched": lambda t: t.nn.RNN(4, 3)(t.ones(2, 4), t.ones(1, 2, 3)),
    "states_rank": lambda t: t.nn.LSTM(4, 3)(t.ones(2, 2, 4), (t.ones(2, 3), t.ones(2, 3))),
    "states_rank_unbatched": lambda t: t.nn.LSTM(4, 3)(
        t.ones(2, 4), (t.ones(1, 1, 3), t.ones(1, 1, 3))
    ),
    "state_size": lambda t: t.nn.GRU(4, 3)(t.ones(2, 2, 4), t.ones(1, 2, 4)),
    "states_size": lambda t: t.nn.LSTM(4, 3)(t.ones(2, 2, 4), (t.ones(1, 2, 3), t.ones(1, 2, 4))),
    "cell_rank": lambda t: t.nn.GRUCell(4, 3)(t.ones(2, 2, 4)),
    "cell_state_rank": lambda t: t.nn.RNNCell(4, 3)(t.ones(2, 4), t.ones(1, 2, 3)),
    "cell_states_rank": lambda t: t.nn.LSTMCell(4, 3)(
        t.ones(2, 4), (t.ones(2, 3), t.ones(1, 2, 3))
    ),
    "cell_nonlinearity": lambda t: t.nn.RNNCell(4, 3, nonlinearity="sine")(t.ones(2, 4)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    both(lambda t: REFUSED[name](t))


def test_dropout_of_one_layer_warns() -> None:
    texts = []
    for t in (pygrad, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            t.nn.GRU(2, 3, dropout=0.5)
        texts.append([(str(each.message), Path(each.filename).name) for each in caught])
    assert texts[0][0][0] == texts[1][0][0]
    assert texts[0][0][1] == Path(__file__).name


# ------------------------------------------------------------------ torch's functions

FUNCTIONS = [
    ("lstm", "LSTM", {}),
    ("lstm", "LSTM", {"num_layers": 2, "bidirectional": True, "bias": False}),
    ("lstm", "LSTM", {"proj_size": 2}),
    ("gru", "GRU", {"num_layers": 2, "batch_first": True}),
    ("rnn_tanh", "RNN", {"bidirectional": True}),
    ("rnn_relu", "RNN", {"nonlinearity": "relu"}),
]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("name", "kind", "options"), FUNCTIONS, ids=[f"{n}-{o}" for n, _, o in FUNCTIONS]
)
def test_function_of_torch(name: str, kind: str, options: Any, packed: bool) -> None:
    def run(t: Any) -> Any:
        layer = make(t, kind, (4, 3), options)
        rows = layer.num_layers * (1 + layer.bidirectional)
        hx: Any = numbers(t, rows, 2, options.get("proj_size", 3))
        if kind == "LSTM":
            hx = [hx, numbers(t, rows, 2, 3)]
        size = (7, 4) if packed else (2, 5, 4) if layer.batch_first else (5, 2, 4)
        x = numbers(t, *size)
        lengths = [t.tensor([2, 2, 2, 1])] if packed else []
        how = (layer.bias, layer.num_layers, 0.0, False, layer.bidirectional)
        weights = [*layer.parameters()]
        call = getattr(t, name)
        found = call(x, *lengths, hx, weights, *how, *([] if packed else [layer.batch_first]))
        sum((each * each * (k + 1)).sum() for k, each in enumerate(found)).backward()
        states = hx if kind == "LSTM" else [hx]
        assert getattr(t._VF, name) is call or t is torch
        return found, [each.grad for each in (x, *states, *weights)]

    both(run)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("name", "kind", "options"),
    [
        ("lstm_cell", "LSTMCell", {}),
        ("gru_cell", "GRUCell", {}),
        ("rnn_tanh_cell", "RNNCell", {}),
        ("rnn_relu_cell", "RNNCell", {"nonlinearity": "relu"}),
    ],
)
def test_cell_of_torch(name: str, kind: str, options: Any, bias: bool) -> None:
    def run(t: Any) -> Any:
        cell = make(t, kind, (4, 3), options | {"bias": bias})
        state = numbers(t, 2, 3)
        hx = (state, numbers(t, 2, 3)) if kind == "LSTMCell" else state
        found = getattr(t, name)(numbers(t, 2, 4), hx, *cell.parameters())
        sum(each.sum() for each in flat(found)).backward()
        return found, state.grad

    both(run)


@pytest.mark.parametrize(
    "call",
    [
        lambda t, x, h, w: t.lstm(x, (h,), w, True, 1, 0.0, False, False, False),
        lambda t, x, h, w: t.lstm(x, h, w, True, 1, 0.0, False, False, False),
        lambda t, x, h, w: t.lstm(x, (h, h), w),
        lambda t, x, h, w: t.gru(x, (h, h), w, True, 1, 0.0, False, False, False),
        lambda t, x, h, w: t.lstm_cell(x[0], h[0], w[0], w[1]),
        lambda t, x, h, w: t.lstm_cell(x[0], (h[0],), w[0], w[1]),
    ],
)
def test_refusal_of_torchs_function(call: Any) -> None:
    def run(t: Any) -> Any:
        layer = make(t, "LSTM", (4, 3), {})
        return call(t, numbers(t, 5, 2, 4), numbers(t, 1, 2, 3), [*layer.parameters()])

    both(run)
