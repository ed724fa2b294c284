"""`make_fx`: the ops of a function as a graph; and `CSEPass`, which puts equal calls together."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import pygrad
from pygrad import functorch, nn
from pygrad.fx.experimental.proxy_tensor import (
    ProxyTorchDispatchMode,
    PythonKeyTracer,
    decompose,
    disable_proxy_modes_tracing,
    get_isolated_graphmodule,
    get_proxy_mode,
    get_proxy_slot,
    has_proxy_slot,
    make_fx,
)
from pygrad.fx.passes.dialect.common.cse_pass import CSEPass, get_CSE_banned_ops
from pygrad.utils._python_dispatch import TorchDispatchMode

aten = pygrad.ops.aten


def targets(module: Any) -> list[str]:
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def test_functorch_has_it_too() -> None:
    assert functorch.make_fx is make_fx


def test_nodes_know_the_shapes_of_their_values() -> None:
    module = make_fx(lambda x: x.sum(0))(pygrad.ones(2, 3))
    shapes = [tuple(n.meta["tensor_meta"].shape) for n in list(module.graph.nodes)[:-1]]
    assert shapes == [(2, 3), (3,)]


def test_nothing_that_the_function_computed_is_in_the_graph_but_what_comes_from_outside() -> None:
    def function(x: Any) -> Any:
        y = x.detach().requires_grad_()
        loss = (y.tanh().softmax(0) * y.exp().sqrt()).t()[1:].max()
        return pygrad.autograd.grad(loss, y)

    module = make_fx(function)(pygrad.arange(1.0, 5.0))
    assert [node.target for node in module.graph.nodes if node.op == "get_attr"] == []
    x = pygrad.tensor([0.5, 0.1, -1.0, 2.0])
    assert module(x)[0].tolist() == pytest.approx(function(x)[0].tolist())


def test_a_trace_survives_tensors_that_die_meanwhile() -> None:
    def function(x: Any) -> Any:
        for _ in range(20):
            x = (x * 2 - 1).cos()
            gc.collect()
        return x

    x = pygrad.tensor([0.3, 0.7])
    assert make_fx(function)(pygrad.zeros(2))(x).tolist() == function(x).tolist()


def test_dropout_draws_another_mask_in_each_run() -> None:
    module = make_fx(lambda x: nn.functional.dropout(x, 0.5, True))(pygrad.ones(64))
    pygrad.manual_seed(1)
    first, second = module(pygrad.ones(64)), module(pygrad.ones(64))
    assert first.tolist() != second.tolist()
    pygrad.manual_seed(1)
    assert first.tolist() == nn.functional.dropout(pygrad.ones(64), 0.5, True).tolist()


def test_a_module_keeps_its_parameters_as_attributes() -> None:
    layer = nn.Linear(2, 1)
    module = make_fx(layer)(pygrad.ones(3, 2))
    assert module._param_constant0 is layer.weight
    assert module(pygrad.ones(1, 2)).tolist() == layer(pygrad.ones(1, 2)).tolist()


def test_a_tensor_of_data_is_new_in_each_run() -> None:
    module = make_fx(lambda x: pygrad.tensor([1.0]).add_(x))(pygrad.ones(1))
    assert [module(pygrad.ones(1)).item() for _ in range(2)] == [2.0, 2.0]


def test_a_wrapper_class_answers_for_its_tensors_first() -> None:
    class Other(pygrad.Tensor):
        __torch_function__ = pygrad._C._disabled_torch_function_impl

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            return aten.add.Tensor(pygrad.ones(2), 1)

    other = Other._make_wrapper_subclass(Other, (2,))
    assert targets(make_fx(lambda x: other * 2)(pygrad.ones(2))) == [
        "aten.ones.default",
        "aten.add.Tensor",
    ]


@pytest.mark.parametrize(
    "given",
    [
        {"tracing_mode": "fake"},
        {"tracing_mode": "symbolic"},
        {"pre_dispatch": True},
        {"record_module_stack": True},
        {"proxy_module_inputs": True},
    ],
)
def test_what_is_not_there_is_refused_by_name(given: dict[str, Any]) -> None:
    with pytest.raises(NotImplementedError, match=next(iter(given))):
        make_fx(lambda x: x, **given)


def test_a_mode_of_another_name_is_wrong() -> None:
    with pytest.raises(AssertionError, match="must be real/fake/symbolic, got no"):
        make_fx(lambda x: x, tracing_mode="no")


def test_an_error_of_the_function_leaves_no_mode() -> None:
    with pytest.raises(RuntimeError):
        make_fx(lambda x: x @ x)(pygrad.ones(2, 3))
    assert get_proxy_mode() is None


def test_the_mode_is_found_while_it_notes_and_can_be_put_aside() -> None:
    seen: list[Any] = []

    def function(x: Any) -> Any:
        mode = get_proxy_mode()
        assert isinstance(mode, ProxyTorchDispatchMode)
        seen.append(has_proxy_slot(x, mode.tracer))
        seen.append(get_proxy_slot(x, mode.tracer).proxy.node.name)
        with disable_proxy_modes_tracing() as aside:
            seen.append(aside is mode and get_proxy_mode() is None)
            unseen = x + 1
        seen.append(has_proxy_slot(unseen, mode.tracer))
        seen.append(targets(get_isolated_graphmodule(pygrad.cos, (x,), {})))
        return x * 2

    assert targets(make_fx(function)(pygrad.ones(2))) == ["aten.mul.Tensor"]
    assert seen == [True, "x_1", True, False, ["aten.cos.default"]]
    with pytest.raises(RuntimeError, match="is not tracked with proxy"):
        get_proxy_slot(pygrad.ones(2), PythonKeyTracer())


# ------------------------------------------------------------------ what modes are told for it


class Listing(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


def test_modes_are_told_of_tensors_of_data_and_of_numbers_read() -> None:
    with Listing() as outer, Listing() as inner:
        assert pygrad.tensor(2.5).item() == 2.5
    assert inner.names == outer.names
    assert inner.names == ["aten.lift_fresh.default", "aten._local_scalar_dense.default"]


def test_modes_are_told_of_what_composite_ops_are_made_of() -> None:
    x = pygrad.ones(2, 4)
    with Listing() as mode:
        pygrad.chunk(x, 2, 1)
        nn.functional.layer_norm(x, (4,))
        x.masked_fill(x > 0, 1.0)
    assert mode.names == [
        "aten.split.Tensor",
        "aten.native_layer_norm.default",
        "aten.gt.Scalar",
        "aten.masked_fill.Scalar",
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.split(3),
        lambda x: x.split([3]),
        lambda x: x.chunk(1),
        lambda x: x[None].unbind(),
        lambda x: pygrad.broadcast_tensors(x),
    ],
)
def test_a_list_of_one_tensor_is_a_list_under_a_mode_too(function: Any) -> None:
    with Listing():
        (found,) = function(pygrad.ones(3))
    assert found.tolist() == [1.0, 1.0, 1.0]


def test_a_number_put_into_places_has_the_dtype_under_a_mode_too() -> None:
    x, places = pygrad.zeros(3), pygrad.tensor([0, 2])
    with Listing():
        x[places] = 1
    assert x.tolist() == [1.0, 0.0, 1.0]


def test_transforms_tell_modes_of_the_ops_of_their_function_alone() -> None:
    with Listing() as mode:
        pygrad.func.vjp(pygrad.sin, pygrad.ones(2))
    assert mode.names == ["aten.ones.default", "aten.sin.default"]


# ------------------------------------------------------------------ CSEPass


def test_equal_calls_are_made_once() -> None:
    def function(x: Any) -> Any:
        return (x.sum(0) + x.sum(0)) * (x.t()[0] + x.t()[0])

    module = make_fx(function)(pygrad.ones(2, 2))
    result = CSEPass()(module)
    assert result.modified
    assert len(targets(result.graph_module)) == len(targets(module)) - 3
    x = pygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert result.graph_module(x).tolist() == module(x).tolist()


def test_calls_that_differ_in_a_number_stay_two() -> None:
    for a, b in ((1, 2), (1, 1.0), (0.0, -0.0), (1, True)):
        module = make_fx(lambda x, a=a, b=b: x.add(a) + x.add(b))
        result = CSEPass()(_one_argument(module))
        assert not result.modified


def _one_argument(trace: Any) -> Any:
    return trace(pygrad.ones(2), *trace.__wrapped__.__defaults__)


def test_banned_ops_stay_two() -> None:
    module = make_fx(lambda x: x + pygrad.rand(2) + pygrad.rand(2))(pygrad.ones(2))
    assert not CSEPass(banned_ops=get_CSE_banned_ops())(module).modified
    assert CSEPass()(module).modified
    assert aten.add_ in get_CSE_banned_ops()


def test_a_decomposition_lasts_as_long_as_its_scope() -> None:
    def program(x: Any) -> Any:
        with decompose({aten.sigmoid.default: lambda x: 1 / (1 + (-x).exp())}):
            inner = x.sigmoid()
        return inner + x.sigmoid()

    module = make_fx(program)(pygrad.ones(2))
    names = [name.removeprefix("aten.") for name in targets(module)]
    assert names[:2] == ["neg.default", "exp.default"]
    assert names[-2:] == ["sigmoid.default", "add.Tensor"]
    x = pygrad.tensor([0.5, -2.0])
    pygrad.testing.assert_close(module(x), 2 * x.sigmoid())
