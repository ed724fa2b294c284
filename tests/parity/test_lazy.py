"""Layers and tensors whose shapes are not known before the first call."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error

import pygrad

LAYERS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "linear": (lambda nn: nn.LazyLinear(4), (2, 3)),
    "linear, no bias": (lambda nn: nn.LazyLinear(4, bias=False), (2, 3)),
    "conv 1": (lambda nn: nn.LazyConv1d(4, 3, stride=2, padding=1), (2, 3, 6)),
    "conv 2": (lambda nn: nn.LazyConv2d(4, (3, 2), groups=2, bias=False), (2, 2, 4, 4)),
    "conv 2, alone": (lambda nn: nn.LazyConv2d(4, 2, padding="same"), (2, 4, 4)),
    "conv 3": (
        lambda nn: nn.LazyConv3d(2, 2, dilation=2, padding_mode="circular"),
        (1, 2, 4, 4, 4),
    ),
    "transposed 1": (lambda nn: nn.LazyConvTranspose1d(4, 3, 2, 1, 1), (2, 3, 6)),
    "transposed 2": (lambda nn: nn.LazyConvTranspose2d(4, 3, groups=2), (2, 2, 4, 4)),
    "transposed 3": (lambda nn: nn.LazyConvTranspose3d(2, 2, bias=False), (1, 2, 3, 3, 3)),
    "batch 1": (lambda nn: nn.LazyBatchNorm1d(), (4, 3)),
    "batch 2": (lambda nn: nn.LazyBatchNorm2d(affine=False), (2, 3, 4, 4)),
    "batch 3": (lambda nn: nn.LazyBatchNorm3d(track_running_stats=False), (2, 3, 2, 2, 2)),
    "batch, no bias": (lambda nn: nn.LazyBatchNorm1d(bias=False), (4, 3)),
    "instance 1": (lambda nn: nn.LazyInstanceNorm1d(), (2, 3, 4)),
    "instance 2": (lambda nn: nn.LazyInstanceNorm2d(momentum=0.5), (2, 3, 4, 4)),
    "instance 3": (lambda nn: nn.LazyInstanceNorm3d(affine=False), (2, 3, 2, 2, 2)),
}


def data(t: Any, shape: tuple[int, ...]) -> Any:
    return t.arange(float(t.Size(shape).numel())).square().sin().reshape(shape)


def describe(module: Any) -> list[Any]:
    return [
        repr(module),
        type(module).__name__,
        [(k, type(v).__name__, str(v.dtype)) for k, v in module.state_dict().items()],
        [(k, type(v).__name__, v.requires_grad) for k, v in module.named_parameters()],
        [(k, type(v).__name__, v.requires_grad) for k, v in module.named_buffers()],
    ]


@pytest.mark.parametrize("name", LAYERS)
def test_first_call(name: str) -> None:
    make, shape = LAYERS[name]

    def script(t: Any) -> Any:
        layer = make(t.nn)
        optimizer = t.optim.SGD(layer.parameters(), 0.1) if list(layer.parameters()) else None
        seen = [*describe(layer), layer.has_uninitialized_params()]
        layer.zero_grad()
        output = layer(data(t, shape))
        seen += [output, *describe(layer), hasattr(layer, "_initialize_hook")]
        if optimizer is not None:
            output.square().sum().backward()
            optimizer.step()
        return [*seen, list(layer.state_dict().values()), layer(data(t, shape))]

    both(script, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_states(name: str) -> None:
    make, shape = LAYERS[name]

    def script(t: Any) -> Any:
        nn = t.nn
        trained, lazy, other = make(nn), make(nn), make(nn)
        trained(data(t, shape))
        seen = [str(lazy.load_state_dict(other.state_dict()))]
        seen += [result_or_error(lambda: str(trained.load_state_dict(other.state_dict())))]
        seen += [str(lazy.load_state_dict(trained.state_dict())), *describe(lazy)]
        seen.append(list(lazy.state_dict().values()))
        first = result_or_error(lambda: lazy(data(t, shape)))
        return [*seen, first, repr(lazy)]

    both(script, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", LAYERS)
def test_conversions_and_copies(name: str) -> None:
    make, shape = LAYERS[name]

    def script(t: Any) -> Any:
        layer = make(t.nn).double()
        # PyTorch does not copy uninitialized buffers.
        twin = (
            layer if isinstance(layer, t.nn.modules.batchnorm._NormBase) else copy.deepcopy(layer)
        )
        seen = [*describe(layer), *describe(twin.train(False))]
        output = twin.train()(data(t, shape).double())
        return [*seen, output, *describe(twin), *describe(layer), *describe(twin.float())]

    both(script, rtol=1e-5, atol=1e-6)


def test_pickles() -> None:
    layer = pygrad.nn.LazyConv2d(3, 2, dtype=pygrad.float64)
    twin = pickle.loads(pickle.dumps(layer))
    twin(pygrad.zeros(1, 2, 4, 4, dtype=pygrad.float64))
    assert type(twin) is pygrad.nn.Conv2d
    assert twin.weight.dtype == pygrad.float64
    assert layer.has_uninitialized_params()


def test_wrong_inputs() -> None:
    def script(t: Any) -> Any:
        nn = t.nn
        loaded = nn.LazyLinear(2)
        loaded.load_state_dict(nn.Linear(3, 2).state_dict())
        return [
            result_or_error(lambda: nn.LazyConv2d(2, 2)(t.ones(2, 3))),
            result_or_error(lambda: nn.LazyConv1d(2, 2)(t.ones(1, 1, 2, 2))),
            result_or_error(lambda: nn.LazyConv1d(2, 2, groups=2)(t.ones(1, 3, 4))),
            result_or_error(lambda: nn.LazyConvTranspose2d(2, 2)(t.ones(2))),
            result_or_error(lambda: loaded(t.ones(2, 4))),
            loaded.in_features,
            result_or_error(lambda: nn.LazyBatchNorm2d()(t.ones(2, 3))),
            result_or_error(lambda: nn.utils.weight_norm(nn.LazyLinear(2))),
            result_or_error(lambda: nn.utils.spectral_norm(nn.LazyLinear(2))),
        ]

    both(script)


def test_modules_of_ones_own() -> None:
    def script(t: Any) -> Any:
        mixin = t.nn.modules.lazy.LazyModuleMixin

        class Half(mixin, t.nn.Module):  # type: ignore[misc]
            def __init__(self) -> None:
                super().__init__()
                self.first = t.nn.UninitializedParameter(requires_grad=False)
                self.second = t.nn.UninitializedBuffer(persistent=False)
                self.register_buffer("third", None)

        class Whole(Half):
            def initialize_parameters(self, x: Any, *, factor: int) -> None:
                self.first.materialize(x.shape, dtype=t.float64)
                self.second.materialize((factor,))
                with t.no_grad():
                    self.first.fill_(factor)

            def forward(self, x: Any, *, factor: int) -> Any:
                return self.first * x

        class Partly(Half):
            def initialize_parameters(self, x: Any) -> None:
                self.first.materialize(x.shape)

        whole = Whole()
        seen = describe(whole)
        seen += [whole(t.ones(2), factor=3), *describe(whole), whole.second.persistent]
        return [
            *seen,
            result_or_error(lambda: Half()(t.ones(2))),
            result_or_error(lambda: Partly()(t.ones(2))),
        ]

    both(script)


def test_tensors() -> None:
    def script(t: Any) -> Any:
        make = t.nn.UninitializedParameter
        p = make()
        buffer = t.nn.UninitializedBuffer(dtype=t.float64)
        is_lazy = t.nn.parameter.is_lazy
        seen = [
            [repr(p), repr(buffer), is_lazy(p), is_lazy(buffer), is_lazy(t.ones(1)), is_lazy(None)],
            [isinstance(p, t.nn.Parameter), isinstance(buffer, t.nn.Buffer)],
            [p.requires_grad, buffer.requires_grad, make(False).requires_grad],
            [str(p.dtype), str(buffer.dtype), str(p.device), str(p.layout), p.is_leaf],
            [p.grad, p.grad_fn, tuple(p.data.shape), tuple(p.size()), p.is_floating_point()],
            [str(buffer.float().dtype), repr(buffer.long()), repr(p.cpu())],
            result_or_error(lambda: p.shape),
            result_or_error(lambda: p.share_memory_()),
        ]
        p.data = t.empty(0, dtype=t.float64)
        seen.append(str(p.dtype))
        p.requires_grad = False
        p.materialize((2, 3))
        buffer.materialize(4)
        for made in (p, buffer):
            seen.append((type(made).__name__, tuple(made.shape), str(made.dtype)))
            seen.append((made.requires_grad, is_lazy(made), isinstance(made, t.nn.Buffer)))
        return seen

    both(script)


USES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda t, p: p + 1,
    "add to": lambda t, p: 1 + p,
    "function": lambda t, p: t.sin(p),
    "second": lambda t, p: t.add(t.ones(2), p),
    "list": lambda t, p: t.stack([p, p]),
    "item": lambda t, p: p[0],
    "set item": lambda t, p: p.__setitem__(0, 1),
    "length": lambda t, p: len(p),
    "rank": lambda t, p: p.dim(),
    "view": lambda t, p: p.view(-1),
    "detach": lambda t, p: p.detach(),
    "numpy": lambda t, p: p.numpy(),
    "linear": lambda t, p: t.nn.functional.linear(t.ones(1, 1), p),
    "in place": lambda t, p: t.nn.init.ones_(p),
    "hook": lambda t, p: p.register_hook(print),
    "retain": lambda t, p: p.retain_grad(),
    "backward": lambda t, p: p.backward(),
}


@pytest.mark.parametrize("use", USES)
def test_uses_are_refused(use: str) -> None:
    def script(t: Any) -> Any:
        p = t.nn.UninitializedParameter()
        words = str(result_or_error(lambda: USES[use](t, p))).split(" in ")[0]
        return words, t.ones(2) + 1  # and all goes on as before

    both(script)


def test_buffers_are_tensors_with_a_mark() -> None:
    def script(t: Any) -> Any:
        start = t.ones(2)
        buffer = t.nn.Buffer(start, persistent=False)
        module = t.nn.Module()
        module.mean = buffer
        twin = copy.deepcopy(module)
        learned = t.nn.Buffer(t.nn.Parameter(t.ones(1)))
        start += 1
        return [
            [type(buffer).__name__, repr(buffer), isinstance(buffer, t.nn.Buffer)],
            [isinstance(start, t.nn.Buffer), buffer.persistent, list(module.state_dict())],
            [isinstance(twin.mean, t.nn.Buffer), twin.mean.persistent, list(twin.state_dict())],
            [type(learned).__name__, learned.requires_grad, learned.is_leaf],
            [name for name, _ in twin.named_buffers()],
            buffer,
            pickle.loads(pickle.dumps(buffer)),
            isinstance(pickle.loads(pickle.dumps(buffer)), t.nn.Buffer),
        ]

    both(script)
