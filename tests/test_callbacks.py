"""What the user's function raises reaches the caller, also a StopIteration or GeneratorExit, which
iterators and generators of Python's own take for an end of theirs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import pygrad
from pygrad.autograd.gradcheck import get_numerical_jacobian

pytestmark = pytest.mark.filterwarnings("ignore")


class Pair(NamedTuple):
    first: Any
    second: Any


Fail = Callable[..., Any]


def matrix(t: Any, dtype: str = "float32") -> Any:
    return t.arange(6).to(getattr(t, dtype)).view(2, 3)


def third(fail: Fail) -> Fail:
    """Adds ten to two elements; then fails."""
    seen: list[Any] = []

    def function(*values: Any) -> Any:
        seen.append(values)
        return values[0] + 10 if len(seen) < 3 else fail()

    return function


def graph(t: Any) -> tuple[Any, Any]:
    x = t.ones(2, requires_grad=True)
    return x, x * 2


def function_of(t: Any, forward: Any = None, backward: Any = None) -> Any:
    body = {
        "forward": staticmethod(forward or (lambda ctx, x: x.clone())),
        "backward": staticmethod(backward or (lambda ctx, g: g)),
    }
    return type("F", (t.autograd.Function,), body).apply


def store(t: Any, pack: Any, unpack: Any) -> Any:
    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        x = t.ones(2, requires_grad=True)
        x.exp().sum().backward()


def in_module(t: Any, register: str, fail: Fail) -> Any:
    layer = t.nn.Linear(2, 2)
    getattr(layer, register)(fail)
    layer(t.ones(1, 2, requires_grad=True)).sum().backward()


def average(model: Any) -> None:
    for _ in range(2):
        model.update_parameters(pygrad.nn.Linear(1, 1))


def odd(base: type, fail: Fail) -> Any:
    return type("Odd", (base,), {"__getitem__": fail, "__len__": fail, "forward": fail})


HOST: dict[str, Callable[[Any, Fail], Any]] = {
    "apply_": lambda t, f: matrix(t).apply_(third(f)),
    "apply_ to integers": lambda t, f: matrix(t, "int64").apply_(third(f)),
    "map_": lambda t, f: matrix(t).map_(matrix(t), third(f)),
    "map2_": lambda t, f: matrix(t).map2_(matrix(t), matrix(t), third(f)),
    "tree_map": lambda t, f: t.utils._pytree.tree_map(f, [1, 2]),
    "tree_map_only": lambda t, f: t.utils._pytree.tree_map_only(int, f, [1, 2]),
    "tree_all": lambda t, f: t.utils._pytree.tree_all(f, [1, 2]),
    "tree_any": lambda t, f: t.utils._pytree.tree_any(f, [1, 2]),
    "is_leaf": lambda t, f: t.utils._pytree.tree_leaves([1, [2]], is_leaf=f),
    "default_collate": lambda t, f: t.utils.data.default_collate([[1, 2], odd(list, f)([3, 4])]),
    "default_collate of named tuples": lambda t, f: t.utils.data.default_collate(
        [Pair(1, odd(dict, f)({"a": 3}))]
    ),
    "default_convert": lambda t, f: t.utils.data.default_convert(Pair(1, odd(dict, f)({"a": 3}))),
    "ConcatDataset": lambda t, f: t.utils.data.ConcatDataset([odd(t.utils.data.Dataset, f)()]),
    "repr of modules": lambda t, f: repr(
        t.nn.ModuleList([type("M", (t.nn.Module,), {"extra_repr": f})()])
    ),
    "vmap": lambda t, f: t.vmap(f)(t.ones(2)),
    "func.grad": lambda t, f: t.func.grad(f)(t.ones(())),
    "func.jvp": lambda t, f: t.func.jvp(f, (t.ones(1),), (t.ones(1),)),
    "jacfwd": lambda t, f: t.func.jacfwd(f)(t.ones(1)),
    "jacobian": lambda t, f: t.autograd.functional.jacobian(f, t.ones(2)),
    "jacobian, forward": lambda t, f: t.autograd.functional.jacobian(
        f, t.ones(2), strategy="forward-mode", vectorize=True
    ),
    "hessian": lambda t, f: t.autograd.functional.hessian(f, t.ones(2)),
    "hessian, forward": lambda t, f: t.autograd.functional.hessian(
        f, t.ones(2), outer_jacobian_strategy="forward-mode", vectorize=True
    ),
    "vjp": lambda t, f: t.autograd.functional.vjp(f, t.ones(2), t.ones(2)),
    "forward of a function": lambda t, f: function_of(t, forward=f)(graph(t)[0]),
    "backward of a function": lambda t, f: function_of(t, backward=f)(graph(t)[0]).sum().backward(),
    "checkpoint": lambda t, f: t.utils.checkpoint.checkpoint(f, graph(t)[0], use_reentrant=False),
    "checkpoint_sequential": lambda t, f: t.utils.checkpoint.checkpoint_sequential(
        [f, f], 2, graph(t)[0], use_reentrant=False
    ),
    "parametrization": lambda t, f: t.nn.utils.parametrize.register_parametrization(
        t.nn.Linear(2, 2), "weight", odd(t.nn.Module, f)()
    ),
    "closure": lambda t, f: t.optim.SGD([graph(t)[0]], lr=0.1).step(f),
    "schedule": lambda t, f: t.optim.lr_scheduler.LambdaLR(t.optim.SGD([graph(t)[0]], lr=0.1), f),
    "hook of a module": lambda t, f: in_module(t, "register_forward_hook", f),
    "hook before a module": lambda t, f: in_module(t, "register_forward_pre_hook", f),
    "pass over the layers": lambda t, f: t.nn.Linear(2, 2).apply(f),
    "average": lambda t, f: average(t.optim.swa_utils.AveragedModel(t.nn.Linear(1, 1), avg_fn=f)),
}
"""Run by Python alone."""


class Later:
    """A function that fails when it is called the second time."""

    def __init__(self, fail: Fail) -> None:
        self.fail, self.calls = fail, 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return self.fail() if self.calls > 1 else (x[0] if isinstance(x, tuple) else x).exp()


def hook_program(add: Callable[[Any, Any, Any], Any]) -> Callable[[Any, Fail], Any]:
    def run(t: Any, fail: Fail) -> Any:
        x, y = graph(t)
        add(t, x, y)(fail)
        y.sum().backward()

    return run


ENGINE: dict[str, Callable[[Any, Fail], Any]] = {
    "hook of a tensor": hook_program(lambda t, x, y: y.register_hook),
    "hook of a leaf": hook_program(lambda t, x, y: x.register_hook),
    "hook after a leaf": hook_program(lambda t, x, y: x.register_post_accumulate_grad_hook),
    "hook of a node": hook_program(lambda t, x, y: y.grad_fn.register_hook),
    "hook before a node": hook_program(lambda t, x, y: y.grad_fn.register_prehook),
    "hook of several": hook_program(
        lambda t, x, y: lambda f: t.autograd.graph.register_multi_grad_hook((x, y), f)
    ),
    "pack": lambda t, f: store(t, f, lambda v: v),
    "unpack": lambda t, f: store(t, lambda v: v, f),
    "numerical jacobian": lambda t, f: get_numerical_jacobian(
        Later(f), (t.ones(2, dtype=t.float64, requires_grad=True),)
    ),
    "checkpoint, again": lambda t, f: (
        t.utils.checkpoint.checkpoint(Later(f), graph(t)[0], use_reentrant=False).sum().backward()
    ),
    "gradcheck": lambda t, f: t.autograd.gradcheck(f, (t.ones(2, requires_grad=True).double(),)),
    "hook of a module's gradient": lambda t, f: in_module(t, "register_full_backward_hook", f),
    "hook before a module's gradient": lambda t, f: in_module(
        t, "register_full_backward_pre_hook", f
    ),
}
"""Called by the engine."""


def error_of(program: Callable[[Any, Fail], Any], kind: type[BaseException]) -> str:
    def fail(*_: Any, **__: Any) -> Any:
        raise kind("by the user")

    try:
        program(pygrad, fail)
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"


@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit])
@pytest.mark.parametrize("name", HOST)
def test_error_of_a_function_reaches_the_caller(name: str, kind: type[BaseException]) -> None:
    assert error_of(HOST[name], kind) == f"{kind.__name__}: by the user"


@pytest.mark.parametrize("name", ENGINE)
def test_error_of_a_hook_reaches_the_caller(name: str) -> None:
    assert error_of(ENGINE[name], StopIteration) == "StopIteration: by the user"
