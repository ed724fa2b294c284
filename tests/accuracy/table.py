"""One table: function x range x type, the largest error of pygrad and of PyTorch in units in the
last place of what mpmath says. The exit code says whether pygrad's are PyTorch's at most.

python tests/accuracy/table.py [functions]
"""

from __future__ import annotations

import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import mpmath as mp
import numpy as np
import numpy.typing as npt
import torch
from functions import BITS, FUNCTIONS, Function

import pygrad

POINTS = 2000
"""The number of points of each function in each type."""
ROUNDED, ALIKE = 1.0, 1.3
"""An error below so many units is good; above, an error of so many times PyTorch's counts as the
same, since the largest of many errors is a matter of chance.
"""
MORE = {("nn.functional.mish", "float32"): 1.45}
"""Rows with a larger bound in times of PyTorch's error; to be mended."""
TYPES = ("float32", "float64")
Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Row:
    name: str
    part: int
    dtype: str
    points: int
    ours: float
    theirs: float
    worst: list[float]

    @property
    def good(self) -> bool:
        alike = MORE.get((self.name, self.dtype), ALIKE)
        return self.points > 0 and self.ours <= alike * max(self.theirs, ROUNDED)


def draw(f: Function, part: int, dtype: str) -> list[Array]:
    """The arguments in a range of a function, one array each."""
    rng, n = np.random.default_rng(part), -(-POINTS // len(f.where))
    return [of(rng, n, np.finfo(dtype)).astype(dtype) for of in f.where[part]]


def exactly(f: Function, at: tuple[float, ...]) -> Any:
    """The exact value at a point; None at poles and outside of the domain."""
    try:
        true = f.exact(*map(mp.mpf, at))
    except (ValueError, ZeroDivisionError):
        return None
    return None if mp.im(true) or not mp.isfinite(true) else mp.re(true)


def errors(found: Array, exact: list[Any]) -> npt.NDArray[np.float64]:
    """The errors in units in the last place of the exact value, subnormal numbers included. A value
    too large for the type counts as infinite.
    """
    kind = np.finfo(found.dtype)
    result = np.zeros(len(exact))
    most = mp.mpf(float(kind.max)) * (1 + mp.mpf(2) ** (-kind.nmant - 2))
    for i, (y, true) in enumerate(zip(found.tolist(), exact, strict=True)):
        if abs(true) > most:
            result[i] = 0 if abs(y) >= kind.max else np.inf
        elif not np.isfinite(y):
            result[i] = np.inf
        else:
            exponent = mp.frexp(max(abs(true), mp.mpf(float(kind.tiny))))[1] - 1
            result[i] = float(mp.ldexp(abs(mp.mpf(y) - true), kind.nmant - exponent))
    return result


def measure(number: int, part: int, dtype: str) -> Row:
    f = FUNCTIONS[number]
    x = draw(f, part, dtype)
    with mp.workprec(BITS):
        exact = [exactly(f, at) for at in zip(*(v.tolist() for v in x), strict=True)]
        keep = [i for i, true in enumerate(exact) if true is not None]
        x, exact = [v[keep] for v in x], [exact[i] for i in keep]

        def library_errors(library: ModuleType) -> npt.NDArray[np.float64]:
            return errors(f.call(library, *(library.from_numpy(v) for v in x)).numpy(), exact)

        ours, theirs = library_errors(pygrad), library_errors(torch)
    at = int(np.argmax(ours)) if keep else 0
    return Row(
        f.name,
        part,
        dtype,
        len(keep),
        float(max(ours, default=0)),
        float(max(theirs, default=0)),
        [float(v[at]) for v in x] if keep else [],
    )


def main() -> int:
    torch.set_num_threads(1)
    tasks = [
        (i, part, dtype)
        for i, f in enumerate(FUNCTIONS)
        for dtype in TYPES
        for part in range(len(f.where))
        if not sys.argv[1:] or f.name in sys.argv[1:]
    ]
    print(f"{'function':36}{'type':10}{'points':>7}{'pygrad':>12}{'PyTorch':>12}   pygrad's worst")
    rows = []
    with ProcessPoolExecutor(2) as pool:
        for row in pool.map(measure, *zip(*tasks, strict=True)):
            rows.append(row)
            name = f"{row.name} {'abcdefgh'[row.part]}"
            at = ", ".join(f"{v:.17g}" for v in row.worst)
            mark = "" if row.good else "   WORSE"
            figures = f"{row.points:7}{row.ours:12.4g}{row.theirs:12.4g}"
            print(f"{name:36}{row.dtype:10}{figures}   {at}{mark}", flush=True)
    bad = [row for row in rows if not row.good]
    better = sum(row.ours <= row.theirs for row in rows)
    print(f"{len(rows)} rows, {better} at most PyTorch's, {len(bad)} worse")
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
