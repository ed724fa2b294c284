"""Recurrent layers as functions of tensors: `torch.lstm`, `torch.gru_cell` and others, which the
modules use.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from .._boundary.modes import AUTOCAST, get
from .._ground.package import submodule
from .._table.builtins import builtin
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from . import functional as F
from .utils.rnn import run_steps

State = tuple[Tensor, ...]
"""The state between steps: the hidden state; for an LSTM also the cell state."""

Step = Callable[[Tensor, Tensor, State], State]
"""Maps the gates' inputs from x and from the hidden state, and the state, to the next state."""


def _lstm_step(x: Tensor, h: Tensor, state: State) -> State:
    i, f, g, o = (x + h).chunk(4, -1)
    cell = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    return o.sigmoid() * cell.tanh(), cell


def _gru_step(x: Tensor, h: Tensor, state: State) -> State:
    (xr, xz, xn), (hr, hz, hn) = x.chunk(3, -1), h.chunk(3, -1)
    new = (xn + (xr + hr).sigmoid() * hn).tanh()
    return (new + (xz + hz).sigmoid() * (state[0] - new),)


def _tanh_step(x: Tensor, h: Tensor, state: State) -> State:
    return ((x + h).tanh(),)


def _relu_step(x: Tensor, h: Tensor, state: State) -> State:
    return ((x + h).relu(),)


STEPS: Final[dict[str, tuple[int, Step]]] = {
    "LSTM": (4, _lstm_step),
    "GRU": (3, _gru_step),
    "RNN_TANH": (1, _tanh_step),
    "RNN_RELU": (1, _relu_step),
}
"""The number of gates and the step function of each mode."""


class Recurrence(NamedTuple):
    """The configuration of a stack of recurrent layers."""

    mode: str
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    projects: bool = False

    def run(
        self, x: Tensor, states: State, weights: list[list[Any]], sizes: list[int] | None = None
    ) -> tuple[Tensor, State]:
        """Returns all outputs and the last states.

        `x` is (time, batch, features), or packed sequences with batch sizes `sizes`. `weights` has
        one list for each layer and direction. Under autocast an LSTM runs in autocast's dtype
        throughout, as in PyTorch, where each layer is one op.
        """
        if sizes is not None or self.mode != "LSTM" or self.projects or not get() & AUTOCAST:
            return self._run(x, states, weights, sizes)
        kind = submodule("amp._state").get_autocast_dtype("cpu")
        with submodule("amp").autocast("cpu", enabled=False):
            cast = tuple(each.to(kind) for each in states)
            return self._run(x.to(kind), cast, [[w.to(kind) for w in row] for row in weights], None)

    def _run(
        self, x: Tensor, states: State, weights: list[list[Any]], sizes: list[int] | None
    ) -> tuple[Tensor, State]:
        last: list[State] = []
        for layer in range(self.num_layers):
            outputs = []
            for backwards in (False, True)[: 1 + self.bidirectional]:
                row = len(last)
                start = tuple(each[row] for each in states)
                output, end = self._direction(x, start, weights[row], backwards, sizes)
                outputs.append(output)
                last.append(end)
            x = pygrad.cat(outputs, -1) if len(outputs) > 1 else outputs[0]
            if self.dropout and layer + 1 < self.num_layers:
                x = F.dropout(x, self.dropout, self.train)
        return x, tuple(pygrad.stack(each) for each in zip(*last, strict=True))

    def _direction(
        self, x: Tensor, state: State, weights: list[Any], backwards: bool, sizes: list[int] | None
    ) -> tuple[Tensor, State]:
        wx, wh, bx, bh = (*weights[:4],) if self.has_biases else (*weights[:2], None, None)
        projection = weights[-1] if self.projects else None
        step = STEPS[self.mode][1]

        def advance(gates: Tensor, state: State) -> State:
            state = step(gates, F.linear(state[0], wh, bh), state)
            return state if projection is None else (F.linear(state[0], projection), *state[1:])

        all_gates = F.linear(x, wx, bx)
        if sizes is not None:
            return run_steps(all_gates.split(sizes), state, advance, backwards)
        outputs = []
        for gates in reversed(all_gates) if backwards else all_gates:
            state = advance(gates, state)
            outputs.append(state[0])
        return pygrad.stack(outputs[::-1] if backwards else outputs), state


def advance(mode: str, x: Tensor, state: State, weights: Sequence[Any]) -> State:
    """One step of a cell with the weights w_ih, w_hh, b_ih and b_hh."""
    wx, wh, bx, bh = weights
    return STEPS[mode][1](F.linear(x, wx, bx), F.linear(state[0], wh, bh), state)


# ------------------------------------------------------------------ functions of torch

_FORMS = {
    "input": "input hx params has_biases num_layers dropout train bidirectional batch_first",
    "data": "data batch_sizes hx params has_biases num_layers dropout train bidirectional",
}
_KINDS: dict[str, Any] = {
    "has_biases": bool,
    "num_layers": int,
    "dropout": (int, float),
    "train": bool,
    "bidirectional": bool,
    "batch_first": bool,
}


def _is_given(name: str, value: Any, hidden: Any) -> bool:
    if name in ("hx", "params"):
        wanted = Tensor if name == "hx" and hidden == 1 else (tuple, list)
        return isinstance(value, wanted)
    return isinstance(value, _KINDS.get(name, Tensor))


def _bind(op: str, hidden: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments by name, for the form that they match."""
    for form in _FORMS.values():
        names = form.split()
        given = dict(zip(names, args, strict=False)) | kwargs
        whole = len(args) + len(kwargs) == len(given) and given.keys() == set(names)
        if whole and all(_is_given(name, value, hidden) for name, value in given.items()):
            return given
    got = [type(each).__name__ for each in args] + [
        f"{name}={type(each).__name__}" for name, each in kwargs.items()
    ]
    forms = "".join(f"\n * ({form.replace(' ', ', ')})" for form in _FORMS.values())
    raise TypeError(
        f"{op}() received an invalid combination of arguments - got ({', '.join(got)}), but "
        f"expected one of:{forms}"
    )


def _layers(op: str, mode: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> State:
    hidden = 2 if mode == "LSTM" else 1
    given = _bind(op, hidden, args, kwargs)
    states = tuple(given["hx"]) if hidden == 2 else (given["hx"],)
    if len(states) != hidden:
        raise RuntimeError("lstm expects two hidden states")
    form = "input" if "input" in given else "data"
    x, time_second = given[form], given.get("batch_first", False)
    rank = 3 if form == "input" else 2
    if x.dim() != rank:
        raise RuntimeError(f"input must have {rank} dimensions, got {x.dim()}")
    how = Recurrence(
        mode,
        given["has_biases"],
        given["num_layers"],
        given["dropout"],
        given["train"],
        given["bidirectional"],
        hidden == 2 and states[0].size(-1) != states[1].size(-1),
    )
    rows, each = how.num_layers * (1 + how.bidirectional), 2 + 2 * how.has_biases + how.projects
    params = list(given["params"])
    if len(params) != rows * each:
        raise RuntimeError(
            f"{op}: expected {rows * each} parameters, {each} a layer and direction, "
            f"got {len(params)}"
        )
    for state in states:
        if state.dim() != 3 or state.size(0) != rows:
            raise RuntimeError(
                f"{op}: expected hidden states of {rows} layers and directions, (layers, batch, "
                f"features), got {list(state.shape)}"
            )
    weights = [params[at : at + each] for at in range(0, len(params), each)]
    sizes = given["batch_sizes"].tolist() if rank == 2 else None
    output, last = how.run(x.transpose(0, 1) if time_second else x, states, weights, sizes)
    return output.transpose(0, 1) if time_second else output, *last


@builtin
def lstm(*args: Any, **kwargs: Any) -> State:
    """An LSTM over sequences or packed sequences.

    Args: (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first),
        or (data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional).

    Shape: input (L, N, in), or (N, L, in) if `batch_first`; data (sum of batch_sizes, in); hx a
        pair of (layers * directions, N, hidden); params w_ih, w_hh, b_ih and b_hh for each layer
        and direction, without the biases unless `has_biases`
        -> the outputs, and the last two states.

    Raises:
        TypeError: arguments that match neither form.
        RuntimeError: too few or too many parameters or states.

    Example:
        >>> import pygrad
        >>> layer, state = pygrad.nn.LSTM(2, 3), pygrad.zeros(1, 4, 3)
        >>> weights = [*layer.parameters()]
        >>> x = pygrad.zeros(5, 4, 2)
        >>> hx = state, state
        >>> output, h, c = pygrad.lstm(x, hx, weights, True, 1, 0.0, False, False, False)
        >>> tuple(output.shape), tuple(h.shape)
        ((5, 4, 3), (1, 4, 3))
    """
    return _layers("lstm", "LSTM", args, kwargs)


@builtin
def gru(*args: Any, **kwargs: Any) -> State:
    """Gated recurrent units: like :func:`lstm`, with one hidden state.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.GRU(2, 3)
        >>> x, weights = pygrad.zeros(5, 4, 2), [*layer.parameters()]
        >>> start = pygrad.zeros(1, 4, 3)
        >>> output, last = pygrad.gru(x, start, weights, True, 1, 0.0, False, False, False)
        >>> tuple(output.shape), tuple(last.shape)
        ((5, 4, 3), (1, 4, 3))
    """
    return _layers("gru", "GRU", args, kwargs)


@builtin
def rnn_tanh(*args: Any, **kwargs: Any) -> State:
    """Layers of tanh(W x + b + U h + c), with the arguments of :func:`gru`."""
    return _layers("rnn_tanh", "RNN_TANH", args, kwargs)


@builtin
def rnn_relu(*args: Any, **kwargs: Any) -> State:
    """Layers of relu(W x + b + U h + c), with the arguments of :func:`gru`."""
    return _layers("rnn_relu", "RNN_RELU", args, kwargs)


@builtin
def lstm_cell(
    input: Tensor,
    hx: Sequence[Tensor],
    w_ih: Tensor,
    w_hh: Tensor,
    b_ih: Tensor | None = None,
    b_hh: Tensor | None = None,
) -> State:
    """One step of an LSTM.

    Shape: input (N, in), hx a pair of (N, hidden), w_ih (4 * hidden, in), w_hh (4 * hidden,
        hidden), biases (4 * hidden,) -> the next pair.

    Raises:
        RuntimeError: the state is not a pair.

    Example:
        >>> import pygrad
        >>> cell, state = pygrad.nn.LSTMCell(2, 3), pygrad.zeros(4, 3)
        >>> h, c = pygrad.lstm_cell(pygrad.zeros(4, 2), (state, state), *cell.parameters())
        >>> tuple(h.shape), tuple(c.shape)
        ((4, 3), (4, 3))
    """
    if isinstance(hx, Tensor):
        raise TypeError(
            "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
        )
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states")
    return advance("LSTM", input, tuple(hx), (w_ih, w_hh, b_ih, b_hh))


def _cell(mode: str, doc: str) -> Callable[..., Tensor]:
    def cell(
        input: Tensor,
        hx: Tensor,
        w_ih: Tensor,
        w_hh: Tensor,
        b_ih: Tensor | None = None,
        b_hh: Tensor | None = None,
    ) -> Tensor:
        return advance(mode, input, (hx,), (w_ih, w_hh, b_ih, b_hh))[0]

    cell.__name__ = cell.__qualname__ = f"{mode.lower()}_cell"
    cell.__doc__ = f"{doc}: arguments as of :func:`lstm_cell`, with one state, and the next one."
    return builtin(cell)


gru_cell = _cell("GRU", "One step of gated recurrent units")
rnn_tanh_cell = _cell("RNN_TANH", "One step of tanh(W x + b + U h + c)")
rnn_relu_cell = _cell("RNN_RELU", "One step of relu(W x + b + U h + c)")

NAMES: Final = "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell".split()
for _name in NAMES:  # the public module
    globals()[_name].__module__ = pygrad.__name__
