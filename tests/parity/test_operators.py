"""Python's operators with what is no tensor, and elements replaced by functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import torch, tried

import pygrad

REFLECTED = "truediv floordiv mod pow matmul lshift rshift add sub mul and or xor"


class Other:
    """Something that knows what to do with anything."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


for _name in REFLECTED.split():
    setattr(Other, f"__{_name}__", lambda self, other: NotImplemented)
    setattr(Other, f"__r{_name}__", lambda self, other: f"asked with {type(other).__name__}")


@pytest.mark.parametrize("value", [Other(), "a", None, [1, 2, 3], 2, 2.5, True, np.float32(2)])
@pytest.mark.parametrize("name", REFLECTED.split())
def test_what_a_tensor_does_not_know_it_leaves_to_the_other(name: str, value: Any) -> None:
    def run(t: Any, method: str, x: Any) -> Any:
        found = tried(lambda: getattr(x, method)(value))
        return found.tolist() if isinstance(found, t.Tensor) else found

    for method in (f"__{name}__", f"__r{name}__"):
        if hasattr(torch.Tensor, method):
            for values in ([1.0, 2.0, 3.0], [1, 2, 3]):
                mine, theirs = (run(t, method, t.tensor(values)) for t in (pygrad, torch))
                assert mine == theirs or (mine is NotImplemented and theirs is NotImplemented), (
                    method
                )


@pytest.mark.parametrize("sign", "/ // % ** @ << >> + - * & | ^".split())
def test_errors_name_both_operands(sign: str) -> None:
    def run(t: Any, text: str, value: Any) -> Any:
        return tried(lambda: eval(text, {"x": t.tensor([1, 2]), "y": value}))

    for text in (f"x {sign} y", f"y {sign} x"):
        for value in (object(), None, "a"):
            assert run(pygrad, text, value) == run(torch, text, value), text


def test_arrays_are_divided_by_tensors() -> None:
    def run(t: Any) -> Any:
        with pytest.warns() if t is torch else pytest.MonkeyPatch.context():
            return (np.ones(3) / t.tensor([1.0, 2.0, 4.0])).tolist()

    assert run(pygrad) == run(torch)


MAPS = {
    "map": lambda t, x, y: x.map_(y, lambda a, b: a + 2 * b),
    "map of ints": lambda t, x, y: x.long().map_(y.long(), lambda a, b: 2.7 * b),
    "map of bools": lambda t, x, y: (x > 1).map_(y > 1, lambda a, b: a and not b),
    "map expands": lambda t, x, y: x.map_(t.tensor(2.0), lambda a, b: a * b),
    "map of a transposed": lambda t, x, y: t.ones(2, 3).t().map_(t.arange(6.0).view(3, 2), max),
    "map2": lambda t, x, y: x.map2_(y, t.tensor([5.0]), lambda a, b, c: a + b * c),
    "map, not a tensor": lambda t, x, y: x.map_(2, max),
    "map, dtypes": lambda t, x, y: x.map_(y.long(), max),
    "map2, dtypes": lambda t, x, y: x.map2_(y, y.double(), max),
    "map, sizes": lambda t, x, y: x.map_(t.ones(4), max),
    "map, grad": lambda t, x, y: x.map_(y.requires_grad_(), max),
    "map2, grad": lambda t, x, y: x.requires_grad_().map2_(y, y, max),
    "map, text": lambda t, x, y: x.map_(y, lambda a, b: "x"),
    "apply": lambda t, x, y: x.apply_(lambda a: a + 1),
    "apply to ints": lambda t, x, y: x.long().apply_(lambda a: a + 0.7),
    "apply, too large": lambda t, x, y: x.to(t.uint8).apply_(lambda a: 300),
    "apply, too large by far": lambda t, x, y: x.to(t.int16).apply_(lambda a: 1 << 40),
    "apply, grad": lambda t, x, y: x.requires_grad_().apply_(abs),
}


@pytest.mark.parametrize("name", MAPS)
def test_elements_by_functions(name: str) -> None:
    def run(t: Any) -> Any:
        x, y = t.tensor([1.0, 2.0, 3.0]), t.tensor([3.0, 0.5, 2.0])
        found = tried(lambda: MAPS[name](t, x, y))
        return (str(found.dtype)[-5:], found.tolist()) if isinstance(found, t.Tensor) else found

    assert run(pygrad) == run(torch)


def test_paths_of_einsum_are_those_of_pytorch_alone() -> None:
    def run(t: Any) -> Any:
        switches = t.backends.opt_einsum
        with switches.flags(enabled=False):
            inside = switches.enabled, switches.strategy
        return (
            inside,
            switches.is_available(),
            switches.get_opt_einsum(),
            tried(lambda: switches.set_flags(True, None)),
            tried(lambda: switches.set_flags(False, "greedy")),
        )

    assert run(pygrad) == run(torch)
