"""Layers of nothing, of wrong sizes, without initialisation; switches of libraries not here."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error

import pygrad


@pytest.mark.parametrize("shape", [(0, 5, 8), (5, 0, 8)])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("masked", [True, False])
def test_attention_of_empty_batches(
    shape: tuple[int, ...], batch_first: bool, masked: bool
) -> None:
    if shape[not batch_first]:
        pytest.skip("this is an empty sequence")

    def script(t: Any) -> Any:
        layer = t.nn.TransformerEncoderLayer(8, 2, 4, 0.0, batch_first=batch_first)
        x = t.ones(shape, requires_grad=True)
        mask = t.zeros(5, 5, dtype=t.bool) if masked else None
        y = layer(x, mask)
        y.sum().backward()
        decoder = t.nn.TransformerDecoderLayer(8, 2, 4, 0.0, batch_first=batch_first)
        return y, x.grad, layer.linear1.weight.grad, decoder(x, y), layer.eval()(x)

    both(script)


SIZES: dict[str, Callable[[Any], Any]] = {
    "ratios": lambda t: t.nn.FractionalMaxPool2d(2, output_ratio=[0.5, 0.5, 0.6])(
        t.ones(1, 1, 4, 4)
    ),
    "no channels": lambda t: t.nn.FractionalMaxPool2d(2, 2)(t.ones(2, 0, 5, 5)),
    "no rows": lambda t: t.nn.FractionalMaxPool2d(2, 2)(t.ones(2, 3, 0, 5)),
    "no batch": lambda t: t.nn.FractionalMaxPool2d(2, 2)(t.ones(0, 3, 5, 5)),
    "nothing wanted": lambda t: t.nn.FractionalMaxPool2d(2, (0, 1))(t.ones(2, 3, 5, 5)),
    "unpool 2": lambda t: t.nn.functional.max_unpool2d(
        t.ones(1, 2, 3, 3), t.zeros(1, 2, 3, 3).long(), [2]
    ),
    "unpool 3": lambda t: t.nn.functional.max_unpool3d(
        t.ones(1, 2, 3, 3, 3), t.zeros(1, 2, 3, 3, 3).long(), [1, 1]
    ),
    "grid": lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, 1, 0, 4), True),
    "grid below": lambda t: t.nn.functional.affine_grid(t.ones(1, 2, 3), (1, -1, 2, 4), True),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes(name: str) -> None:
    both(SIZES[name])


def test_modules_without_initialisation() -> None:
    def script(t: Any) -> Any:
        skip = t.nn.utils.skip_init
        layer = skip(t.nn.Linear, 3, 4, bias=False, device="cpu", dtype=t.float64)
        conv = skip(t.nn.Conv2d, 1, 2, kernel_size=3)
        return [
            [repr(layer), str(layer.weight.dtype), layer.weight.requires_grad, repr(conv)],
            t.rand(2),  # as if nothing had been drawn
            result_or_error(lambda: skip(int, 3)),
            result_or_error(lambda: skip(t.nn.ReLU)),
        ]

    both(script)


def test_flat_weights_of_recurrent_layers() -> None:
    def script(t: Any) -> Any:
        layer = t.nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2)
        return layer._flat_weights_names, layer._flat_weights

    both(script)


def test_switches_are_scopes() -> None:
    def script(t: Any) -> Any:
        cudnn, mkldnn = t.backends.cudnn, t.backends.mkldnn
        seen = [cudnn.enabled, cudnn.benchmark, cudnn.deterministic, mkldnn.enabled]
        with cudnn.flags(enabled=False, benchmark=True, deterministic=True):
            seen += [cudnn.enabled, cudnn.benchmark, cudnn.deterministic]
            with cudnn.flags(enabled=True), mkldnn.flags(enabled=False):
                seen += [cudnn.enabled, cudnn.benchmark, cudnn.deterministic, mkldnn.enabled]
        seen += [cudnn.enabled, cudnn.benchmark, cudnn.deterministic, mkldnn.enabled]
        cudnn.benchmark = True
        with cudnn.flags(), pytest.raises(ZeroDivisionError):
            with cudnn.flags(enabled=False):
                1 / 0  # noqa: B018
        seen.append(cudnn.benchmark)
        cudnn.benchmark = False
        return seen

    both(script)


@pytest.mark.parametrize(
    "name", ["sin", "nn.functional.gelu", "linalg.inv", "special.erf", "Tensor.add", "randn"]
)
def test_functions_are_pickled_by_name(name: str) -> None:
    function: Any = pygrad
    for part in name.split("."):
        function = getattr(function, part)
    assert pickle.loads(pickle.dumps(function)) is function


def test_layers_with_functions_are_pickled() -> None:
    layer = pygrad.nn.TransformerEncoderLayer(4, 2, 4, activation=pygrad.nn.functional.gelu)
    twin = pickle.loads(pickle.dumps(layer.eval()))
    x = pygrad.rand(2, 1, 4)
    assert pygrad.equal(twin(x), layer(x))


def test_rates_that_are_tensors_are_copied() -> None:
    def script(t: Any) -> Any:
        rate, end = t.tensor(0.1), t.tensor(0.05)
        optimizer = t.optim.SGD([t.ones(1, requires_grad=True)], lr=rate)
        schedule = t.optim.swa_utils.SWALR(optimizer, swa_lr=end, anneal_epochs=2)
        seen = []
        for _ in range(3):
            end.mul_(0.5)
            optimizer.step()
            schedule.step()
            group = optimizer.param_groups[0]
            seen.append([float(group[name]) for name in ("lr", "initial_lr", "swa_lr")])
        return seen

    both(script)
