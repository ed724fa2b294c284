"""Sequences of points that fill a cube more evenly than random ones: ``torch.quasirandom``."""

from __future__ import annotations

import zlib
from functools import cache
from importlib import resources
from typing import Any, Final

from .._table import functions as _functions
from .._table.builtins import builtin
from .._tensor import namespace as pygrad
from .._tensor.creation import from_buffer
from .._tensor.tensor import Tensor

__all__ = ["SobolEngine"]

_C: Final = _functions.C
_sobol_engine_draw = _C["_sobol_engine_draw"]
_sobol_engine_ff_ = _C["_sobol_engine_ff_"]
_sobol_engine_scramble_ = _C["_sobol_engine_scramble_"]


class SobolEngine:
    """A Sobol sequence of points in [0, 1), scrambled or not.

    The direction numbers are Joe's and Kuo's, see ``sobol.LICENSE.txt`` beside this file. A
    sequence has 2**30 points.

    Args:
        dimension: how many numbers a point has, 1 to 21201.
        scramble: multiply the direction numbers by random matrices, and shift the points (Owen).
        seed: of the generator that scrambles; by default the default generator does.

    Raises:
        ValueError: another dimension.

    Example:
        >>> import pygrad
        >>> pygrad.quasirandom.SobolEngine(dimension=3).draw(3)
        tensor([[0.0000, 0.0000, 0.0000],
                [0.5000, 0.5000, 0.5000],
                [0.7500, 0.2500, 0.2500]])
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None) -> None:
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(
                f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]"
            )
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = pygrad.zeros(dimension, self.MAXBIT, dtype=pygrad.int64)
        _sobol_engine_initialize_state_(self.sobolstate, dimension)
        if scramble:
            self._scramble()
        else:
            self.shift = pygrad.zeros(dimension, dtype=pygrad.int64)
        self.quasi = self.shift.clone(memory_format=pygrad.contiguous_format)
        self._first_point = (self.quasi / 2**self.MAXBIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next n points, (n, dimension).

        Args:
            n: how many.
            out: where to write them; it is resized.
            dtype: a floating type; by default the default one.

        Example:
            >>> import pygrad
            >>> engine = pygrad.quasirandom.SobolEngine(1)
            >>> engine.draw(2).tolist(), engine.draw(2).tolist()
            ([[0.0], [0.5]], [[0.75], [0.25]])
        """
        dtype = pygrad.get_default_dtype() if dtype is None else dtype
        first = self.num_generated == 0
        if first and n == 1:
            drawn = self._first_point.to(dtype)
        else:
            # The first point is not made by the engine, whose points are each a step from the one
            # before.
            count, before = (n - 1, 0) if first else (n, self.num_generated - 1)
            drawn, self.quasi = _sobol_engine_draw(
                self.quasi, count, self.sobolstate, self.dimension, before, dtype=dtype
            )
            if first:
                drawn = pygrad.cat((self._first_point.to(dtype), drawn), dim=-2)
        self.num_generated += n
        return drawn if out is None else out.resize_as_(drawn).copy_(drawn)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: Any = None) -> Tensor:
        """The next 2**m points; the total drawn is then a power of two.

        Raises:
            ValueError: it is not.

        Example:
            >>> import pygrad
            >>> pygrad.quasirandom.SobolEngine(1).draw_base2(2).tolist()
            [[0.0], [0.5], [0.75], [0.25]]
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                "The balance properties of Sobol' points require n to be a power of 2. "
                f"{self.num_generated} points have been previously generated, then: "
                f"n={self.num_generated}+2**{m}={total}. If you still want to do this, please use "
                "'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Goes back to the first point."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Passes over n points.

        Example:
            >>> import pygrad
            >>> pygrad.quasirandom.SobolEngine(1).fast_forward(2).draw().tolist()
            [[0.75]]
        """
        count, before = (n, self.num_generated - 1) if self.num_generated else (n - 1, 0)
        _sobol_engine_ff_(self.quasi, count, self.sobolstate, self.dimension, before)
        self.num_generated += n
        return self

    def _scramble(self) -> None:
        generator = None
        if self.seed is not None:
            generator = pygrad.Generator()
            generator.manual_seed(self.seed)
        bits = pygrad.randint(2, (self.dimension, self.MAXBIT), generator=generator)
        self.shift = pygrad.mv(bits, pygrad.pow(2, pygrad.arange(0, self.MAXBIT)))
        size = (self.dimension, self.MAXBIT, self.MAXBIT)
        matrices = pygrad.randint(2, size, generator=generator).tril()
        _sobol_engine_scramble_(self.sobolstate, matrices, self.dimension)

    def __repr__(self) -> str:
        shown = [f"dimension={self.dimension}"]
        if self.scramble:
            shown.append("scramble=True")
        if self.seed is not None:
            shown.append(f"seed={self.seed}")
        return f"{type(self).__name__}({', '.join(shown)})"


@cache
def _numbers() -> Tensor:
    """The direction numbers that all others are computed from, as the engine reads them."""
    packed = resources.files(__package__).joinpath("sobol.bin").read_bytes()
    raw = zlib.decompress(packed)
    return from_buffer(raw, (len(raw),), pygrad.uint8)


@builtin
def _sobol_engine_initialize_state_(state: Tensor, dimension: int) -> Tensor:
    """Writes the direction numbers of `dimension` dimensions to a state."""
    return _C["_sobol_engine_initialize_state_"](state, dimension, _numbers())  # type: ignore[no-any-return]
