"""Recurrent layers over sequences, and the cells for a single step."""

from __future__ import annotations

import math
import numbers
import warnings
from collections.abc import Callable
from typing import Any, Self

from ..._boundary.modes import AUTOCAST, get
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import init
from .._recurrent import STEPS, Recurrence, State, advance
from .._types import DeviceLike, DTypeLike
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]


def _apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    return tensor.index_select(dim, permutation)


def apply_permutation(tensor: Tensor, permutation: Tensor, dim: int = 1) -> Tensor:
    """The older name of ``tensor.index_select(dim, permutation)``."""
    warnings.warn(
        "`apply_permutation` is deprecated, please use `tensor.index_select(dim, permutation)` "
        "instead",
        FutureWarning,
        stacklevel=2,
    )
    return _apply_permutation(tensor, permutation, dim)


_KINDS = (("bias", bool), ("batch_first", bool), ("input_size", int), ("hidden_size", int))
"""The arguments whose types are checked, in PyTorch's order."""


def _draw(module: Module, hidden_size: int) -> None:
    bound = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0
    for weight in module.parameters():
        init.uniform_(weight, -bound, bound)


class RNNBase(Module):
    """The base class of :class:`RNN`, :class:`LSTM` and :class:`GRU`, selected by `mode`.

    Args:
        mode: "LSTM", "GRU", "RNN_TANH" or "RNN_RELU".
        input_size: features of the input.
        hidden_size: features of the hidden state.
        num_layers: the number of layers; each gets the output of the previous one.
        bias: whether there are biases.
        batch_first: the batch is the first dimension of input and output.
        dropout: the probability of zeroing an output element of each layer but the last.
        bidirectional: each layer has a second one that runs backwards in time.
        proj_size: for an LSTM, the size to which the hidden state is projected; 0: no projection.

    Raises:
        ValueError: a size or probability out of range.
        TypeError: a size that is no int.

    Example:
        >>> import pygrad
        >>> pygrad.nn.RNNBase("GRU", 2, 3, num_layers=2)
        RNNBase(2, 3, num_layers=2)
    """

    _derived = ("_flat_weights_names", "_flat_weights")

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._check(dropout)
        self._all_weights: list[list[str]] = []
        gates = STEPS[mode][0] * hidden_size
        for layer in range(num_layers):
            width = self._output_size * self._directions if layer else input_size
            for suffix in self._suffixes(layer):
                shapes: dict[str, tuple[int, ...]] = {
                    f"weight_ih{suffix}": (gates, width),
                    f"weight_hh{suffix}": (gates, self._output_size),
                }
                if bias:
                    shapes |= {f"bias_ih{suffix}": (gates,), f"bias_hh{suffix}": (gates,)}
                if proj_size:
                    shapes[f"weight_hr{suffix}"] = (proj_size, hidden_size)
                for name, shape in shapes.items():
                    empty = pygrad.empty(shape, device=device, dtype=dtype)
                    self.register_parameter(name, Parameter(empty))
                self._all_weights.append([*shapes])
        self.reset_parameters()

    def _check(self, dropout: Any) -> None:
        if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool):
            dropout = -1
        if not 0 <= dropout <= 1:
            raise ValueError(
                "dropout should be a number in range [0, 1] representing the probability of an "
                "element being zeroed"
            )
        if dropout > 0 and self.num_layers == 1:
            warnings.warn(
                "dropout option adds dropout after all but last recurrent layer, so non-zero "
                f"dropout expects num_layers greater than 1, but got dropout={dropout} and "
                f"num_layers={self.num_layers}",
                stacklevel=4,
            )
        for name, kind in _KINDS:
            value = getattr(self, name)
            if not isinstance(value, kind):
                got = type(value).__name__
                raise TypeError(f"{name} should be of type {kind.__name__}, got: {got}")
            if kind is int and value <= 0:
                raise ValueError(f"{name} must be greater than zero")
        if self.num_layers <= 0:
            raise ValueError("num_layers must be greater than zero")
        if self.proj_size < 0:
            raise ValueError(
                "proj_size should be a positive integer or zero to disable projections"
            )
        if self.proj_size >= self.hidden_size:
            raise ValueError("proj_size has to be smaller than hidden_size")

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        return self.proj_size or self.hidden_size

    def _suffixes(self, layer: int) -> list[str]:
        return [f"_l{layer}", f"_l{layer}_reverse"][: self._directions]

    def reset_parameters(self) -> None:
        """Redraw every parameter, uniform on +-1 / sqrt(hidden_size)."""
        _draw(self, self.hidden_size)

    def flatten_parameters(self) -> None:
        """Does nothing: parameters need not be contiguous in pygrad."""

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The parameters for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    @property
    def _flat_weights_names(self) -> list[str]:
        return [name for names in self._all_weights for name in names]

    @property
    def _flat_weights(self) -> list[Any]:
        """The weights of the computation in order: the parameters, or assigned replacements. Each
        access returns a new list.
        """
        lent: list[Any] | None = self.__dict__.get("_lent_weights")
        if lent is not None:
            return list(lent)
        return [getattr(self, name) for name in self._flat_weights_names]

    @_flat_weights.setter
    def _flat_weights(self, weights: list[Any]) -> None:
        self.__dict__["_lent_weights"] = list(weights)

    def __setattr__(self, name: str, value: Any) -> None:
        lent = self.__dict__.get("_lent_weights")
        if lent is not None and name in self._flat_weights_names:
            lent[self._flat_weights_names.index(name)] = value
        super().__setattr__(name, value)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self.__dict__.pop("_lent_weights", None)
        return super()._apply(fn, recurse)

    def _weights_of(self, row: int) -> list[Any]:
        """The weights of a layer's direction, from assigned replacements if there are any."""
        if "_lent_weights" not in self.__dict__:
            return [getattr(self, name) for name in self._all_weights[row]]
        start = sum(len(names) for names in self._all_weights[:row])
        return self._flat_weights[start : start + len(self._all_weights[row])]

    # -------------------------------------------------------------- running

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """The outputs of all steps, and the last state; packed sequences yield packed outputs."""
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        if input.dim() not in (2, 3):
            raise ValueError(
                f"{type(self).__name__}: Expected input to be 2D or 3D, got {input.dim()}D instead"
            )
        batched = input.dim() == 3
        time = 1 if self.batch_first and batched else 0
        x = input if batched else input.unsqueeze(1)
        x = x.transpose(0, 1) if time else x
        self._check_input(x)
        states = self._states(x, hx, batched)
        output, last = self._run(x, states)
        output = output.transpose(0, 1) if time else output
        if not batched:
            output, last = output.squeeze(1), tuple(each.squeeze(1) for each in last)
        return output, last if self.mode == "LSTM" else last[0]

    def _check_input(self, x: Tensor, rank: int | None = None) -> None:
        kind = self._weights_of(0)[0].dtype
        if x.dtype != kind and not get() & AUTOCAST:
            raise ValueError(
                f"RNN input dtype ({x.dtype}) does not match weight dtype ({kind}). Convert input: "
                f"input.to({kind}), or convert model: model.to({x.dtype})"
            )
        if rank is not None and x.dim() != rank:
            raise RuntimeError(f"input must have {rank} dimensions, got {x.dim()}")
        if x.size(-1) != self.input_size:
            raise RuntimeError(
                "input.size(-1) must be equal to input_size. "
                f"Expected {self.input_size}, got {x.size(-1)}"
            )

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> Any:
        x, sizes = packed.data, packed.batch_sizes.tolist()
        if x.dim() != 2:
            raise RuntimeError(f"input must have 2 dimensions, got {x.dim()}")
        self._check_input(x)
        states = self._states(x, hx, True, sizes[0])
        if hx is not None and packed.sorted_indices is not None:
            states = tuple(each.index_select(1, packed.sorted_indices) for each in states)
        output, last = self._run(x, states, sizes)
        if packed.unsorted_indices is not None:
            last = tuple(each.index_select(1, packed.unsorted_indices) for each in last)
        return packed._with_data(output), last if self.mode == "LSTM" else last[0]

    def _states(self, x: Tensor, hx: Any, batched: bool, batch: int = -1) -> State:
        """The initial states, (layers * directions, batch, features) each; by default zeros."""
        packed = batch >= 0
        batch = batch if packed else x.size(1)
        sizes = [self._output_size, self.hidden_size][: 2 if self.mode == "LSTM" else 1]
        rows = self.num_layers * self._directions
        if hx is None:
            return tuple(
                pygrad.zeros(rows, batch, size, dtype=x.dtype, device=x.device) for size in sizes
            )
        given = tuple(hx) if self.mode == "LSTM" else (hx,)
        if not packed:
            self._check_ranks(given, batched)
        states = given if batched else tuple(each.unsqueeze(1) for each in given)
        for number, (each, size) in enumerate(zip(states, sizes, strict=True)):
            which = "" if self.mode != "LSTM" else f"[{number}]"
            message = f"Expected hidden{which} size {{}}, got {{}}"
            self.check_hidden_size(each, (rows, batch, size), message)
        return states

    # -------------------------------------------------------------- helpers of derived layers

    def check_input(self, input: Tensor, batch_sizes: Tensor | None) -> None:
        """Raises unless the input (packed if there are batch sizes) matches this layer."""
        self._check_input(input, 2 if batch_sizes is not None else 3)

    def get_expected_hidden_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The sizes of the hidden state for an input."""
        return self._state_size(input, batch_sizes, self._output_size)

    def _state_size(
        self, input: Tensor, batch_sizes: Tensor | None, width: int
    ) -> tuple[int, int, int]:
        if batch_sizes is not None:
            batch = int(batch_sizes[0])
        else:
            batch = input.size(0) if self.batch_first else input.size(1)
        return self.num_layers * self._directions, batch, width

    def check_hidden_size(
        self,
        hx: Tensor,
        expected_hidden_size: tuple[int, int, int],
        msg: str = "Expected hidden size {}, got {}",
    ) -> None:
        """Raises unless a state has the expected sizes."""
        if tuple(hx.shape) != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)))

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        """Raises unless an input and its initial state match this layer."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        """The state with a permuted batch."""
        return hx if permutation is None else _apply_permutation(hx, permutation)

    def _check_ranks(self, given: State, batched: bool) -> None:
        rank = 3 if batched else 2
        if all(each.dim() == rank for each in given):
            return
        names, got = "hx", f"{given[0].dim()}-D tensor"
        if self.mode == "LSTM":
            names, got = "hx and cx", f"({given[0].dim()}-D, {given[1].dim()}-D) tensors"
        kind = "batched" if batched else "unbatched"
        raise RuntimeError(
            f"For {kind} {rank}-D input, {names} should also be {rank}-D but got {got}"
        )

    def _run(
        self, x: Tensor, states: State, sizes: list[int] | None = None
    ) -> tuple[Tensor, State]:
        how = Recurrence(
            self.mode,
            self.bias,
            self.num_layers,
            self.dropout,
            self.training,
            self.bidirectional,
            self.proj_size > 0,
        )
        weights = [self._weights_of(row) for row in range(len(self._all_weights))]
        return how.run(x, states, weights, sizes)

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        for name, usual in (
            ("proj_size", 0),
            ("num_layers", 1),
            ("bias", True),
            ("batch_first", False),
            ("dropout", 0),
            ("bidirectional", False),
        ):
            if getattr(self, name) != usual:
                shown += f", {name}={getattr(self, name)}"
        return shown


class RNN(RNNBase):
    """h = tanh(W x + b + U h + c) at each step, or relu instead of tanh.

    Args:
        nonlinearity: "tanh" or "relu"; the fourth argument. The others are those of
            :class:`RNNBase` without `mode` and `proj_size`.

    Shape: (L, N, input_size) or (L, input_size) and states (layers * directions, N, hidden_size)
        -> (L, N, directions * hidden_size), and the last states.

    Example:
        >>> import pygrad
        >>> output, last = pygrad.nn.RNN(10, 20, 2)(pygrad.zeros(5, 3, 10))
        >>> tuple(output.shape), tuple(last.shape)
        ((5, 3, 20), (2, 3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(
                f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'."
            )
        mode = f"RNN_{nonlinearity.upper()}"
        super().__init__(mode, input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: gates control how a cell keeps, adds and outputs its state.

    Args: those of :class:`RNNBase` without `mode`.

    Shape: (L, N, input_size) or (L, input_size) and a pair of states, (layers * directions, N,
        proj_size or hidden_size) and (layers * directions, N, hidden_size)
        -> (L, N, directions * (proj_size or hidden_size)), and the last pair.

    Example:
        >>> import pygrad
        >>> output, (h, c) = pygrad.nn.LSTM(10, 20, bidirectional=True)(pygrad.zeros(5, 3, 10))
        >>> tuple(output.shape), tuple(h.shape), tuple(c.shape)
        ((5, 3, 40), (2, 3, 20), (2, 3, 20))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def get_expected_cell_size(
        self, input: Tensor, batch_sizes: Tensor | None
    ) -> tuple[int, int, int]:
        """The sizes of the cell state for an input."""
        return self._state_size(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Tensor, hidden: Any, batch_sizes: Tensor | None) -> None:
        self.check_input(input, batch_sizes)
        sizes = (
            self.get_expected_hidden_size(input, batch_sizes),
            self.get_expected_cell_size(input, batch_sizes),
        )
        for number, (each, size) in enumerate(zip(hidden, sizes, strict=True)):
            self.check_hidden_size(each, size, f"Expected hidden[{number}] size {{}}, got {{}}")

    def permute_hidden(self, hx: Any, permutation: Tensor | None) -> Any:
        if permutation is None:
            return hx
        return tuple(_apply_permutation(each, permutation) for each in hx)


class GRU(RNNBase):
    """Gated recurrent units: one gate resets the hidden state, another keeps it.

    Args: those of :class:`RNNBase` without `mode` and `proj_size`.

    Shape: as for :class:`RNN`.

    Example:
        >>> import pygrad
        >>> output, last = pygrad.nn.GRU(10, 20, batch_first=True)(pygrad.zeros(3, 5, 10))
        >>> tuple(output.shape), tuple(last.shape)
        ((3, 5, 20), (1, 3, 20))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if "proj_size" in kwargs:
            raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
        super().__init__("GRU", *args, **kwargs)


# ------------------------------------------------------------------ cells


class RNNCellBase(Module):
    """The base class of the cells, with the weights of `num_chunks` gates.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.RNNCellBase(2, 3, True, num_chunks=4).weight_hh.shape)
        (12, 3)
    """

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool,
        num_chunks: int,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        rows = num_chunks * hidden_size
        for name, shape in (
            ("weight_ih", (rows, input_size)),
            ("weight_hh", (rows, hidden_size)),
            ("bias_ih", (rows,)),
            ("bias_hh", (rows,)),
        ):
            wanted = bias or name.startswith("weight")
            empty = pygrad.empty(shape, device=device, dtype=dtype) if wanted else None
            self.register_parameter(name, None if empty is None else Parameter(empty))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraw every parameter, uniform on +-1 / sqrt(hidden_size)."""
        _draw(self, self.hidden_size)

    def _step(self, mode: str, input: Tensor, hx: Any) -> State:
        name = type(self).__name__
        if input.dim() not in (1, 2):
            raise ValueError(f"{name}: Expected input to be 1D or 2D, got {input.dim()}D instead")
        batched = input.dim() == 2
        x = input if batched else input.unsqueeze(0)
        state = self._states(x, hx, batched, 2 if mode == "LSTM" else 1)
        weights = self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh
        after = advance(mode, x, state, weights)
        return after if batched else tuple(each.squeeze(0) for each in after)

    def _states(self, x: Tensor, hx: Any, batched: bool, count: int) -> State:
        """The states before the step, (batch, hidden_size) each; by default zeros."""
        if x.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {x.size(1)} expected {self.input_size}"
            )
        if hx is None:
            size = (x.size(0), self.hidden_size)
            return tuple(pygrad.zeros(size, dtype=x.dtype, device=x.device) for _ in range(count))
        if count == 2 and isinstance(hx, Tensor):
            raise TypeError(
                "lstm_cell(): argument 'hx' (position 2) must be tuple of Tensors, not Tensor"
            )
        given = tuple(hx) if count == 2 else (hx,)
        for number, each in enumerate(given):
            if each.dim() not in (1, 2):
                which = f"hx[{number}]" if count == 2 else "hidden"
                raise ValueError(
                    f"{type(self).__name__}: Expected {which} to be 1D or 2D, "
                    f"got {each.dim()}D instead"
                )
        states = given if batched else tuple(each.unsqueeze(0) for each in given)
        for number, each in enumerate(states):
            self._check_state(x, each, number)
        return states

    def _check_state(self, x: Tensor, state: Tensor, number: int) -> None:
        if state.size(0) != x.size(0):
            raise RuntimeError(
                f"Input batch size {x.size(0)} doesn't match hidden{number} batch size "
                f"{state.size(0)}"
            )
        if state.size(1) != self.hidden_size:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {state.size(1)}, "
                f"expected {self.hidden_size}"
            )

    def extra_repr(self) -> str:
        shown = f"{self.input_size}, {self.hidden_size}"
        if self.bias is not True:
            shown += f", bias={self.bias}"
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown += f", nonlinearity={self.nonlinearity}"
        return shown


class RNNCell(RNNCellBase):
    """One step of an :class:`RNN`.

    Shape: (N, input_size) or (input_size) and a state (N, hidden_size) -> (N, hidden_size).

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.RNNCell(10, 20)(pygrad.zeros(3, 10)).shape)
        (3, 20)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(f"RNN_{self.nonlinearity.upper()}", input, hx)[0]


class LSTMCell(RNNCellBase):
    """One step of an :class:`LSTM`.

    Shape: (N, input_size) or (input_size) and a pair of states -> the next pair, (N, hidden_size)
        each.

    Example:
        >>> import pygrad
        >>> h, c = pygrad.nn.LSTMCell(10, 20)(pygrad.zeros(3, 10))
        >>> tuple(h.shape), tuple(c.shape)
        ((3, 20), (3, 20))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> State:
        return self._step("LSTM", input, hx)


class GRUCell(RNNCellBase):
    """One step of a :class:`GRU`.

    Shape: as for :class:`RNNCell`.

    Example:
        >>> import pygrad
        >>> tuple(pygrad.nn.GRUCell(10, 20)(pygrad.zeros(10)).shape)
        (20,)
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._step("GRU", input, hx)[0]
