"""assert_close in both libraries: what passes, and what is said of what does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import both

NAN, INF = float("nan"), float("inf")
PAIRS: dict[str, Callable[[Any], tuple[Any, Any]]] = {
    "one element": lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0, 2.1])),
    "two dims": lambda t: (t.tensor([[1.0, 2.0], [3.0, 4.0]]), t.tensor([[1.0, 2.0], [3.0, 5.0]])),
    "within": lambda t: (t.tensor([1.0, 2.0]), t.tensor([1.0 + 1e-6, 2.0])),
    "0-dim": lambda t: (t.tensor(1.0), t.tensor(2.0)),
    "floats": lambda t: (1.0, 2.0),
    "ints": lambda t: (1, 2),
    "int and float": lambda t: (1, 1.0),
    "nan": lambda t: (1.0, NAN),
    "integers": lambda t: (t.tensor([1, 2]), t.tensor([1, 3])),
    "bools": lambda t: (t.tensor([True]), t.tensor([False])),
    "shapes": lambda t: (t.ones(2), t.ones(3)),
    "dtypes": lambda t: (t.ones(2), t.ones(2, dtype=t.float64)),
    "list": lambda t: ([t.tensor(1.0), t.tensor(2.0)], [t.tensor(1.0), t.tensor(3.0)]),
    "lengths": lambda t: ([t.tensor(1.0)], [t.tensor(1.0), t.tensor(3.0)]),
    "keys": lambda t: ({"a": t.tensor(1.0)}, {"b": t.tensor(1.0)}),
    "nested": lambda t: ({"a": [1.0, (t.ones(2),)]}, {"a": [1.0, (t.tensor([1.0, 4.0]),)]}),
    "None": lambda t: (None, 1),
    "strings": lambda t: ("a", "b"),
    "nans": lambda t: (t.tensor([NAN, 1.0]), t.tensor([NAN, 1.0])),
    "infinities": lambda t: (t.tensor([INF, 1.0]), t.tensor([INF, 2.0])),
    "strides": lambda t: (t.ones(2, 3).t(), t.ones(3, 2)),
    "arrays": lambda t: (np.ones(2), np.array([1.0, 1.0 + 1e-6])),
    "arrays, shapes": lambda t: (np.ones(2), np.ones(3)),
    "arrays, dtypes": lambda t: (np.ones(2, dtype=np.float32), np.ones(2)),
    "arrays of ints": lambda t: ({"a": np.ones(2, dtype=np.int64)}, {"a": np.array([1, 2])}),
    "arrays of text": lambda t: (np.array("a"), np.array("a")),
    "scalars of NumPy": lambda t: (np.float32(1), 1.5),
    "scalars of ints": lambda t: (np.int64(1), np.int64(2)),
    "complex": lambda t: (1 + 2j, 1 + 1j),
    "complex and int": lambda t: (1, 1 + 0j),
    "complex nans": lambda t: (complex("nan"), complex("nan")),
    "empty": lambda t: (t.ones(0), t.ones(0)),
}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"rtol": 0.1},
    {"rtol": 0.0, "atol": 0.2},
    {"rtol": 0.0, "atol": 0.0},
    {"equal_nan": True},
    {"check_dtype": False},
    {"check_stride": True},
    {"msg": "mine"},
    {"msg": lambda text: "of me: " + text},
]


@pytest.mark.parametrize("options", OPTIONS, ids=" ".join)
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_assert_close(pair: Any, options: dict[str, Any]) -> None:
    def script(t: Any) -> list[str]:
        try:
            t.testing.assert_close(*pair(t), **options)
        except AssertionError as error:  # all lines of it
            return str(error).split("\n")
        return []

    both(script)


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int64", "bool"])
@pytest.mark.parametrize("tolerances", [(0, 0), (0.5, 0.5), (1.5, 0.5), (1, 0), (0, 0.1)])
def test_isclose_of_integers(tolerances: tuple[float, float], dtype: str) -> None:
    def script(t: Any) -> Any:
        values = t.tensor([0, 1, 2, 3, 10, 11, 100, 127]).to(getattr(t, dtype))
        atol, rtol = tolerances
        a, b = t.meshgrid(values, values, indexing="ij")
        return t.isclose(a, b, atol=atol, rtol=rtol)

    both(script)
