"""What PyTorch makes of the sweep's cases, for the page's Conformance room: web/conformance.json.

python tests/parity/conformance.py     write the file

The calls are followed by what they come to: `rows` has the row of each call, in order. Of each row
there are `values` (a shape and rounded numbers, see `abridge`, or the number of earlier ones),
`outcomes` (the name of an error, or leaves: the number of a value in the case's dtype, [dtype,
number of a value], {"value": what is no tensor}) and `cases`: for each mode the outcome of each
dtype, the last one standing for all that follow. An outcome of null is one that nothing is compared
with, see `APART`.
"""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parent)]

import numpy as np  # noqa: E402
import sweep  # noqa: E402
import torch  # noqa: E402
from sampling import COMPLEX, HALVES  # noqa: E402

TARGET = HERE.parents[1] / "web" / "conformance.json"
DIGITS = {"forward": 7, "in-place": 7, "view": 7, "backward": 6, "second order": 5}
SINGLE_DIGITS = 5
MOST, SHOWN = 8, 3
"""So many elements are written down; of more than that this many."""
CLOSE = {"float64": (3e-7, 3e-10), "float32": (3e-5, 3e-6)}
"""How near numbers must be to be written down once for several dtypes: a third of what the page
allows (web/rooms/conformance.worker.js).
"""

NO_DERIVATIVE = r"derivative for .+ is not implemented|modified by an inplace operation"


def _reasons(reason: str, modes: str, names: str, dtypes: tuple[str, ...] = ()) -> dict[str, str]:
    names_ = [f"{mode} {name}" for mode in modes.split(",") for name in names.split()]
    return {f"{each} {dtype}".strip(): reason for each in names_ for dtype in dtypes or ("",)}


APART = {
    **_reasons("another error of the two that are due", "view", "nn.functional.batch_norm"),
    **_reasons("another error of the two that are due", "view", "native_batch_norm batch_norm"),
    **_reasons("PyTorch takes contiguous memory alone", "view", "native_group_norm"),
    **_reasons("another error of the two that are due", "in-place", "addmm baddbmm", ("bool",)),
    **_reasons(
        "what is below zero is no byte", "forward,view", "affine_grid_generator", ("uint8",)
    ),
    **_reasons("PyTorch refuses a layout, by mistake", "view", "take_along_dim isin Tensor.set_"),
    **_reasons("PyTorch takes what it else refuses", "view", "inner tensordot", ("bool",)),
    **_reasons(
        "the signs of eigenvectors and of singular vectors are anybody's choice",
        "forward,backward,second order,view",
        "linalg.eigh svd svd_lowrank pca_lowrank",
    ),
    **_reasons(
        "another error of complex numbers than PyTorch's",
        "forward,backward,in-place,view",
        "deg2rad rad2deg relu nn.functional.relu maximum minimum fmax fmin isposinf isneginf",
        COMPLEX,
    ),
    **_reasons("PyTorch says no before it is read", "forward,view", "_neg_view", ("bool",)),
    **_reasons("PyTorch refuses complex numbers", "in-place", "abs", COMPLEX),
    **_reasons("PyTorch refuses complex numbers", "backward,view", "nn.functional.silu", COMPLEX),
    **_reasons(
        "PyTorch has no derivative of 16 bits", "backward,view", "special.i1 special.i1e", HALVES
    ),
    **_reasons(
        "PyTorch's second derivative drops scale_grad_by_freq",
        "second order",
        "nn.functional.embedding",
    ),
}
"""Mode, op and perhaps dtype -> why nothing is compared there."""


class _Expected:
    """What the calls come to, each row and each value written down where it is first met."""

    def __init__(self) -> None:
        self.written: dict[str, list[Any]] = {"rows": [], "values": [], "outcomes": [], "cases": []}
        self.places: dict[str, int] = {}
        self.count = 0

    def add(self, description: sweep.Description, op: Any, call: Any) -> None:
        """One call more."""
        self.known: list[Any] = []
        values: list[Any] = []
        outcomes: dict[str, int] = {}
        cases = []
        for mode in sweep.MODES:
            found = self.mode(description, op, call, mode, values)
            while len(found) > 1 and found[-1] == found[-2]:
                found.pop()
            if mode != "in-place" or "inplace" in op:
                cases.append([outcomes.setdefault(each, len(outcomes)) for each in found])
        row = {"values": values, "outcomes": [*map(json.loads, outcomes)], "cases": cases}
        place = self.place(row, len(self.written["values"]))
        self.written["rows"].append(place)
        if place == len(self.written["values"]):
            row["values"] = [self.deduplicate(value) for value in values]
            for name, column in row.items():
                self.written[name].append(column)

    def mode(self, description: Any, op: Any, call: Any, mode: str, values: Any) -> list[str]:
        """The outcome of each dtype, as JSON."""
        found = []
        for dtype in sweep.dtypes_of(op, mode):
            outcome = None
            if not {f"{mode} {op['id']}", f"{mode} {op['id']} {dtype}"} & APART.keys():
                outcome = run(description, op, call, mode, dtype)
            if isinstance(outcome, list):
                outcome = [self.leaf(leaf, mode, dtype, values) for leaf in outcome]
            found.append(json.dumps(outcome))
        return found

    def place(self, thing: Any, next_: int) -> int:
        return self.places.setdefault(json.dumps(thing), next_)

    def deduplicate(self, value: Any) -> Any:
        """The value, or its number if it has been written before."""
        place = self.place(value, self.count)
        if place < self.count:
            return place
        self.count += 1
        return value

    def leaf(self, leaf: Any, mode: str, dtype: str, values: list[Any]) -> Any:
        if not isinstance(leaf, tuple):
            return {"value": leaf if not isinstance(leaf, float) else number(leaf, 7)}
        kind, shape, array = leaf
        place = next(
            (k for k, known in enumerate(self.known) if is_near(known, shape, array)), None
        )
        if place is None:
            place = len(self.known)
            self.known.append((shape, array))
            digits = SINGLE_DIGITS if kind == "float32" else DIGITS[mode]
            numbers = None if array is None else [number(v, digits) for v in abridge(array)]
            values.append([shape, numbers])
        return place if kind == dtype else [kind, place]


def run(description: sweep.Description, op: Any, call: Any, mode: str, dtype: str) -> Any:
    """PyTorch's outcome; None where it has no derivative."""
    try:
        return sweep.run(torch, description, op, call, mode, dtype, NO_DERIVATIVE)
    except sweep.Unanswered:
        return None


def abridge(array: Any) -> list[Any]:
    """The elements; of many only some, and a weighted sum of all."""
    if array.size <= MOST:
        return list(array.tolist())
    some = [array[i * (array.size - 1) // (SHOWN - 1)].item() for i in range(SHOWN)]
    weights = 1 + 7 * np.arange(array.size) % 11
    total = (array.astype("f8") * weights).sum().item()
    return [*some, total if array.dtype.kind == "f" else int(total)]


def number(value: Any, digits: int) -> Any:
    """A number as JSON has it, rounded; what is not finite as text."""
    if not isinstance(value, float):
        return int(value)
    if not math.isfinite(value):
        return str(value)
    rounded = float(f"{value:.{digits - 1}e}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < 1e6 else rounded


def is_near(known: Any, shape: list[int], array: Any) -> bool:
    """Whether an array may go by the numbers of another one."""
    other_shape, other = known
    if shape != other_shape or (array is None) != (other is None):
        return False
    if array is None or array.dtype.kind != "f":
        return array is None or bool(np.array_equal(array, other))
    if array.size != other.size:  # one of them has the parts of complex numbers
        return False
    if other.dtype.kind != "f":
        return bool(np.array_equal(array, other))
    rtol, atol = CLOSE[str(array.dtype)]
    return bool(np.allclose(other.astype("f8"), array, rtol=rtol, atol=atol, equal_nan=True))


def record() -> Any:
    """The whole file."""
    torch.set_num_threads(1)
    has = {
        e.id
        for e in sweep.entries()
        if e.space != "internal" and sweep.find(e.id, torch) is not None
    }
    description = sweep.describe(lambda entry: entry.id in has)
    expected = _Expected()
    for op in description["ops"]:
        for call in op["calls"]:
            expected.add(description, op, call)
    return {"torch": torch.__version__.split("+")[0], **description, **expected.written}


def text() -> str:
    """The file: lines that can be compared."""
    return json.dumps(record(), separators=(",", ":")).replace('],"', '],\n"') + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
