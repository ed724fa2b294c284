"""Python's operators with what is no tensor, and elements replaced by functions."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from oracle import result_or_error, torch, warnings_of

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
        found = result_or_error(lambda: getattr(x, method)(value))
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
        return result_or_error(lambda: eval(text, {"x": t.tensor([1, 2]), "y": value}))

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
        found = result_or_error(lambda: MAPS[name](t, x, y))
        return (str(found.dtype)[-5:], found.tolist()) if isinstance(found, t.Tensor) else found

    assert run(pygrad) == run(torch)


ODD = [300, -1, -200, -256, 1 << 40, 1 << 63, 10**400, 1e39, float("nan"), "text", None, True, 2.7]


@pytest.mark.parametrize("dtype", "float32 float64 int64 int32 int16 int8 uint8 bool".split())
@pytest.mark.parametrize("value", ODD, ids=lambda v: str(v)[:9])
def test_what_a_function_of_elements_may_return(value: Any, dtype: str) -> None:
    def run(t: Any) -> Any:
        x, values = t.zeros(3, dtype=getattr(t, dtype)), iter([1, value, 1])
        found = result_or_error(lambda: x.apply_(lambda _: next(values)))
        return str(x.tolist()), None if isinstance(found, t.Tensor) else found

    assert run(pygrad) == run(torch)


@pytest.mark.parametrize("error", [StopIteration, GeneratorExit, ValueError])
@pytest.mark.parametrize("layout", ["dense", "transposed", "strided", "integers"])
@pytest.mark.parametrize(("name", "n_others"), [("apply_", 0), ("map_", 1), ("map2_", 2)])
def test_elements_before_an_error_are_replaced(
    name: str, n_others: int, layout: str, error: type[BaseException]
) -> None:
    def run(t: Any) -> Any:
        x = t.arange(6.0).view(2, 3)
        x = {"dense": x, "transposed": x.t(), "strided": x[:, ::2], "integers": x.long()}[layout]
        calls: list[Any] = []

        def function(*values: Any) -> Any:
            calls.append(values)
            if len(calls) > 3:
                raise error("by the user")
            return sum(values) + 10

        with pytest.raises(error, match="by the user"):
            getattr(x, name)(*[x.clone()] * n_others, function)
        return x.tolist(), calls

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
            result_or_error(lambda: switches.set_flags(True, None)),
            result_or_error(lambda: switches.set_flags(False, "greedy")),
        )

    assert run(pygrad) == run(torch)


OLD = """
x.add(2,y) x.add_(2.5,y) torch.add(x,2,y) torch.add(x,1,2) x.sub(2,y) x.sub_(0.5,y) torch.sub(x,2,y)
x.add(2,other=y) torch.add(x,2,y,out=torch.empty(0)) x.add_(torch.tensor(2.),y) x.addcmul(2.,y,z)
x.addcmul_(-0.5,y,z) x.addcmul_(2.,tensor1=y,tensor2=z) torch.addcmul(x,2,y,z) x.addcdiv(2.,y,z)
x.addcdiv_(-0.5,y,z) torch.addcdiv(x,2,y,z) torch.addmm(2,a,a,a) torch.addmm(2,a,3,a,a)
torch.addmm(2,a,3,a,a,out=torch.empty(0)) a.addmm(2,a,a) a.addmm(2,3,a,a) a.clone().addmm_(2,a,a)
a.clone().addmm_(2,3,a,a) torch.addbmm(2,a,3,b,b) a.addbmm(2,b,b) a.addbmm_(2,3,b,b)
torch.baddbmm(2,b,b,b) torch.baddbmm(2,b,3,b,b) b.baddbmm(2,b,b) b.clone().baddbmm_(2,3,b,b)
torch.addmv(2,x,3,a,y) x.addmv(2,a,y) x.addmv_(2,3,a,y)
torch.addr(2,a,3,x,y) a.addr(2,x,y) a.addr_(2,3,x,y)
""".split()
"""Calls as they were before numbers became keywords."""


@pytest.mark.parametrize("call", OLD)
def test_old_forms(call: str) -> None:
    def run(t: Any) -> Any:
        x, y, z = t.tensor([1.0, 2.0]), t.tensor([3.0, -1.0]), t.tensor([0.5, 4.0])
        a, b = t.arange(4.0).view(2, 2), t.arange(12.0).view(3, 2, 2)
        names = {"torch": t, "x": x, "y": y, "z": z, "a": a, "b": b}
        before = t.is_warn_always_enabled()
        t.set_warn_always(True)
        found: list[Any] = []
        try:
            warnings = warnings_of(lambda: found.append(eval(call, names)))
        finally:
            t.set_warn_always(before)
        return warnings, found[0].tolist(), x.tolist(), a.tolist()

    assert run(pygrad) == run(torch)


def test_old_forms_warn_once_where_they_are_called_and_have_gradients() -> None:
    code = (
        "import warnings, pygrad\n"
        "x = pygrad.ones(2, requires_grad=True)\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    y = x.mul(2).add_(3, x)\n"
        "    x.add(2, x)\n"
        "y.sum().backward()\n"
        "assert len(caught) == 1 and caught[0].filename == '<string>', caught\n"
        "assert x.grad.tolist() == [5.0, 5.0]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_what_has_no_old_form() -> None:
    x = pygrad.ones(2)
    before = pygrad.pg_live_count()
    for call in [
        lambda: x.mul(2, x),
        lambda: x.add(x, 2),
        lambda: x.add(x, x),
        lambda: x.add("2", x),
        lambda: x.addcmul(x, 2, x),
        lambda: pygrad.addmm(x, 2, x, x),
        lambda: x.add(2, x, 3),
        lambda: x.add(2, x, foo=1),
    ]:
        with pytest.raises(TypeError):
            call()
    assert pygrad.pg_live_count() == before


NAMED = """
torch.sum(NAME=x) torch.add(NAME=x,other=x) torch.exp(NAME=x)
torch.mm(NAME=x.view(1,2),mat2=x.view(2,1))
torch.max(NAME=x,axis=0,keepdims=True) torch.reshape(NAME=x,shape=(2,1)) torch.linalg.norm(NAME=x)
torch.special.expit(NAME=x) torch.mul(NAME=x,x2=x) torch.atan2(x,x2=x) x.mul(x2=x)
torch.eq(NAME=x,x2=2) torch.matmul(NAME=x,x2=x)
""".split()
"""Arguments by NumPy's names."""


@pytest.mark.parametrize("name", ["x", "a", "x1"])
@pytest.mark.parametrize("call", NAMED)
def test_names_of_numpy(call: str, name: str) -> None:
    def run(t: Any) -> Any:
        found = eval(call.replace("NAME", name), {"torch": t, "x": t.tensor([1.0, 2.0])})
        found = found.values if isinstance(found, tuple) else found
        return found.shape, found.flatten().tolist()

    (shape, values), (wanted, others) = run(pygrad), run(torch)
    assert tuple(shape) == tuple(wanted)
    assert values == pytest.approx(others)


@pytest.mark.parametrize(
    "call", ["torch.cat(x=[y])", "torch.sum(y, x=y)", "torch.add(x1=y, x=y)", "torch.sum(q=y)"]
)
def test_names_of_numpy_that_do_not_fit(call: str) -> None:
    for t in (pygrad, torch):
        with pytest.raises(TypeError):
            eval(call, {"torch": t, "y": t.ones(2)})


def test_results_of_composed_functions_are_cast_to_their_places() -> None:
    out = pygrad.linalg.cond(pygrad.eye(2), out=pygrad.empty(0, dtype=pygrad.float64))
    assert out.dtype is pygrad.float64
    assert out.item() == 1
