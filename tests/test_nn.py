"""Modules as containers: registration, state, modes, hooks, nesting. Numbers: parity/test_nn.py."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, get_type_hints

import numpy as np
import pytest
from helpers import leaves_nothing

import pygrad
from pygrad import nn


def mlp() -> Any:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))


def test_parameters_are_found_by_name() -> None:
    names = [name for name, _ in mlp().named_parameters()]
    assert names == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_transform_and_distribution_may_be_modules_too() -> None:
    class Scaled(pygrad.distributions.transforms.Transform, nn.Module):
        def __init__(self) -> None:
            super().__init__(cache_size=1)
            self.scale = nn.Parameter(pygrad.ones(2))

        __hash__ = nn.Module.__hash__

    class Learnt(pygrad.distributions.Distribution, nn.Module):
        def __init__(self) -> None:
            super().__init__(validate_args=False)
            self.transform = Scaled()

    assert [name for name, _ in Learnt().named_parameters()] == ["transform.scale"]


def test_hints_of_a_module_are_found_from_anywhere() -> None:
    assert get_type_hints(nn.MSELoss(), {}, {}) == {"reduction": str}
    assert "_forward_hooks" in get_type_hints(nn.ReLU(), {}, {})


def test_compiled_module_is_another_around_it() -> None:
    inner = mlp()
    compiled = pygrad.compile(inner, mode="reduce-overhead")
    assert compiled._orig_mod is inner
    assert isinstance(compiled, nn.modules._compiled.OptimizedModule)
    assert [name for name, _ in compiled.named_parameters()] == [
        f"_orig_mod.{name}" for name, _ in inner.named_parameters()
    ]
    compiled.eval()
    assert (compiled.training, inner.training, inner[0].training) == (False, False, False)
    compiled.note = 3
    assert (inner.note, len(compiled)) == (3, 3)
    del compiled.note
    assert not hasattr(inner, "note")
    order = []
    inner.register_forward_hook(lambda *_: order.append("inner"))
    compiled.register_forward_hook(lambda *_: order.append("outer"))
    x = pygrad.ones(1, 3)
    assert compiled(x).tolist() == inner(x).tolist()
    assert order == ["inner", "outer", "inner"]
    copied = copy.deepcopy(compiled)
    assert list(copied.state_dict()) == list(compiled.state_dict())
    assert copied._orig_mod is not inner
    with pytest.raises(AttributeError, match="'Sequential' object has no attribute 'nothing'"):
        _ = compiled.nothing
    assert pygrad.compile(inner, disable=True) is inner


def test_module_compiles_itself_without_a_change() -> None:
    model = mlp()
    names = list(model.state_dict())
    assert model.compile(fullgraph=True) is None
    assert list(model.state_dict()) == names
    with pytest.raises(RuntimeError, match="Unrecognized mode=x"):
        model.compile(mode="x")


def test_user_defined_module() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 2)
            self.scale = nn.Parameter(pygrad.ones(()))
            self.register_buffer("steps", pygrad.zeros(()))

        def forward(self, x: Any) -> Any:
            self.steps += 1
            return self.first(x) * self.scale

    net = Net()
    net(pygrad.ones(1, 2)).sum().backward()
    assert net.steps.item() == 1
    assert net.scale.grad is not None
    assert list(net.state_dict()) == ["scale", "steps", "first.weight", "first.bias"]


def test_state_dict_loads_into_another() -> None:
    a, b = mlp(), mlp()
    x = pygrad.ones(1, 3)
    assert a(x).tolist() != b(x).tolist()
    assert str(b.load_state_dict(a.state_dict())) == "<All keys matched successfully>"
    assert a(x).tolist() == b(x).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.pop("0.bias"), 'Missing key(s) in state_dict: "0.bias"'),
        (lambda d: d.update(more=pygrad.ones(1)), 'Unexpected key(s) in state_dict: "more"'),
        (lambda d: d.update({"0.bias": pygrad.ones(9)}), "size mismatch for 0.bias"),
    ],
)
def test_state_dict_that_does_not_fit_is_refused(change: Any, message: str) -> None:
    state = dict(mlp().state_dict())
    change(state)
    with pytest.raises(RuntimeError) as caught:
        mlp().load_state_dict(state)
    assert message in str(caught.value)


def test_train_and_eval_reach_every_layer() -> None:
    net = nn.Sequential(nn.Dropout(0.5), nn.Sequential(nn.BatchNorm1d(2)))
    assert all(m.training for m in net.modules())
    assert not any(m.training for m in net.eval().modules())
    x = pygrad.ones(4, 2)
    assert net(x).tolist() == net(x).tolist()


def test_batch_norm_tracks_statistics_while_training_only() -> None:
    layer = nn.BatchNorm1d(2)
    layer(pygrad.tensor([[1.0, 2.0], [3.0, 6.0]]))
    np.testing.assert_allclose(layer.running_mean.numpy(), [0.2, 0.4], rtol=1e-6)
    assert layer.num_batches_tracked.item() == 1
    layer.eval()(pygrad.ones(2, 2))
    assert layer.num_batches_tracked.item() == 1


def test_module_moves_to_another_dtype() -> None:
    assert mlp().double()(pygrad.ones(1, 3, dtype=pygrad.float64)).dtype == pygrad.float64


def test_requires_grad_freezes() -> None:
    net = mlp().requires_grad_(False)
    assert not net(pygrad.ones(1, 3)).requires_grad


def test_forward_hooks_run_in_order() -> None:
    layer, order = nn.Linear(1, 1), []
    layer.register_forward_pre_hook(lambda m, args: order.append("pre"))
    handle = layer.register_forward_hook(lambda m, args, out: order.append("post"))
    layer(pygrad.ones(1, 1))
    handle.remove()
    layer(pygrad.ones(1, 1))
    assert order == ["pre", "post", "pre"]


def test_shared_parameter_is_counted_once() -> None:
    a = nn.Linear(2, 2)
    net = nn.Sequential(a, a)
    assert len(list(net.parameters())) == 2
    net(pygrad.ones(1, 2)).sum().backward()
    assert a.weight.grad is not None


def test_parameters_as_one_vector() -> None:
    net = mlp()
    vector = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(vector * 0, net.parameters())
    assert vector.numel() == 26
    assert net(pygrad.ones(1, 3)).tolist() == [[0.0, 0.0]]


def test_gradient_norm_is_clipped() -> None:
    p = nn.Parameter(pygrad.zeros(2))
    p.grad = pygrad.tensor([3.0, 4.0])
    assert nn.utils.clip_grad_norm_([p], 1.0).item() == 5.0
    np.testing.assert_allclose(p.grad.numpy(), [0.6, 0.8], rtol=1e-5)


@pytest.mark.parametrize(
    "name", ["relu", "relu6", "elu", "selu", "celu", "silu", "mish", "hardtanh", "leaky_relu"]
)
def test_activation_in_place_is_its_input(name: str) -> None:
    function = getattr(nn.functional, name)
    x = pygrad.linspace(-2, 2, 5)
    expected = function(x)
    assert function(x, inplace=True) is x
    assert x.tolist() == expected.tolist()


def test_divisor_of_an_average_may_be_negative() -> None:
    x = pygrad.ones(1, 1, 2, 2, requires_grad=True)
    y = nn.functional.avg_pool2d(x, 2, divisor_override=-2)
    y.sum().backward()
    assert (y.item(), x.grad.tolist()) == (-2.0, [[[[-0.5, -0.5], [-0.5, -0.5]]]])
    assert nn.functional.avg_pool2d(x, 2).grad_fn._saved_divisor_override is None


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_rows_after_the_last_bag_count_for_nothing(mode: str) -> None:
    rows, table = pygrad.tensor([1, 2, 3]), pygrad.arange(8.0).reshape(4, 2).requires_grad_()
    bags = [
        nn.functional.embedding_bag(
            rows, table, pygrad.tensor(ends), mode=mode, include_last_offset=True
        )
        for ends in ([0], [0, 1], [0, 1, 1])
    ]
    assert [bag.tolist() for bag in bags] == [[], [[2.0, 3.0]], [[2.0, 3.0], [0.0, 0.0]]]
    pygrad.cat(bags).sum().backward()
    assert table.grad.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [0.0, 0.0]]


def test_maxima_of_the_last_bag_go_on_to_the_end() -> None:
    """As PyTorch's, whatever the last offset says."""
    rows, table = pygrad.tensor([1, 2, 3]), pygrad.arange(8.0).reshape(4, 2).requires_grad_()
    bags = [
        nn.functional.embedding_bag(
            rows, table, pygrad.tensor(ends), mode="max", include_last_offset=True
        )
        for ends in ([0], [0, 1], [0, 1, 1])
    ]
    assert [bag.tolist() for bag in bags] == [[], [[6.0, 7.0]], [[2.0, 3.0], [6.0, 7.0]]]
    pygrad.cat(bags).sum().backward()
    assert table.grad.tolist() == [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]


@leaves_nothing
def test_layers_that_were_lazy_leave_nothing() -> None:
    layer = pygrad.nn.Sequential(pygrad.nn.LazyLinear(3), pygrad.nn.LazyBatchNorm1d())
    layer(pygrad.ones(2, 4)).sum().backward()
    pygrad.nn.LazyConv2d(3, 2)


@leaves_nothing
def test_copies_of_uninitialized_buffers() -> None:
    layer = copy.deepcopy(pygrad.nn.LazyBatchNorm1d(dtype=pygrad.float64))
    assert layer(pygrad.ones(2, 4, dtype=pygrad.float64)).dtype == pygrad.float64


@leaves_nothing
def test_parametrized_layers_leave_nothing() -> None:
    layer = pygrad.nn.utils.parametrizations.orthogonal(pygrad.nn.Linear(3, 4))
    layer(pygrad.ones(2, 3)).sum().backward()
    layer.weight = pygrad.eye(4, 3)
    with pygrad.nn.utils.parametrize.cached():
        layer(pygrad.ones(2, 3))
    pygrad.nn.utils.parametrize.remove_parametrizations(layer, "weight")


@pytest.mark.parametrize(("mode", "padding"), [(3, 0), (-1, 0), (0, 3), (0, -1)])
@leaves_nothing
def test_modes_of_a_grid_by_numbers_that_are_none(mode: int, padding: int) -> None:
    """PyTorch gives memory that nobody wrote to."""
    with pytest.raises(IndexError, match="are 0, 1 or 2"):
        pygrad.grid_sampler(pygrad.ones(1, 1, 2, 2), pygrad.zeros(1, 1, 1, 2), mode, padding, True)


COMPOSED: dict[str, tuple[int, Callable[[], Any]]] = {
    "ctc_loss": (
        2 * 100 * 8 * 129 * 4,  # twice what is gathered for all steps
        lambda: nn.functional.ctc_loss(
            pygrad.zeros(100, 8, 2), pygrad.ones(8, 64, dtype=pygrad.int64), [100] * 8, [64] * 8
        ),
    ),
    "grid_sample": (
        7 * 32 * 64 * 64 * 4,  # seven times the result, of 16 pixels each
        lambda: nn.functional.grid_sample(
            pygrad.zeros(1, 32, 9, 9), pygrad.zeros(1, 64, 64, 2), "bicubic", align_corners=True
        ),
    ),
}
"""The bytes that a call may need at most."""


@pytest.mark.parametrize("name", COMPOSED)
def test_composed_layers_let_go_of_a_step_before_the_next(name: str) -> None:
    most, run = COMPOSED[name]
    run()
    pygrad._C._reset_peak_memory()
    before = pygrad._C._memory()[0]
    run()
    assert pygrad._C._memory()[1] - before < most
