"""Modules of complex and half types beside PyTorch's: conversions and their warning, values,
gradients, state dicts, running statistics, initialisers, parametrizations, and what is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from oracle import torch
from verdicts import assert_same_results, compare, flat, result_of

import pygrad

Case = (
    tuple[Callable[[Any], Any], tuple[int, ...]] | tuple[Callable[[Any], Any], tuple[int, ...], int]
)

MODULES: dict[str, Case] = {
    "linear": (lambda nn: nn.Linear(4, 3), (2, 4)),
    "linear, no bias": (lambda nn: nn.Linear(4, 3, bias=False), (4,)),
    "bilinear": (lambda nn: nn.Bilinear(4, 4, 3), (2, 4), 2),
    "conv 1": (lambda nn: nn.Conv1d(2, 4, 3, padding=1), (2, 2, 6)),
    "conv 2": (lambda nn: nn.Conv2d(2, 4, 3, stride=2, padding=1, groups=2), (2, 2, 5, 5)),
    "conv 2, circular": (
        lambda nn: nn.Conv2d(2, 4, 3, padding=1, padding_mode="circular"),
        (2, 2, 5, 5),
    ),
    "conv 3": (lambda nn: nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3)),
    "transposed 1": (lambda nn: nn.ConvTranspose1d(2, 3, 3, stride=2), (2, 2, 4)),
    "transposed 2": (lambda nn: nn.ConvTranspose2d(2, 4, 3, stride=2, groups=2), (2, 2, 3, 3)),
    "RNN": (lambda nn: nn.RNN(4, 3), (5, 2, 4)),
    "LSTM": (lambda nn: nn.LSTM(4, 3, 2, bidirectional=True), (5, 2, 4)),
    "LSTM, projected": (lambda nn: nn.LSTM(4, 3, proj_size=2), (5, 2, 4)),
    "GRU": (lambda nn: nn.GRU(4, 3, batch_first=True), (2, 5, 4)),
    "RNN cell": (lambda nn: nn.RNNCell(4, 3), (2, 4)),
    "LSTM cell": (lambda nn: nn.LSTMCell(4, 3), (2, 4)),
    "GRU cell": (lambda nn: nn.GRUCell(4, 3), (2, 4)),
    "batch norm 1": (lambda nn: nn.BatchNorm1d(4), (6, 4)),
    "batch norm 2": (lambda nn: nn.BatchNorm2d(2), (3, 2, 4, 4)),
    "batch norm, cumulative": (lambda nn: nn.BatchNorm1d(4, momentum=None), (6, 4)),
    "batch norm, evaluated": (lambda nn: nn.BatchNorm1d(4).eval(), (6, 4)),
    "instance norm": (
        lambda nn: nn.InstanceNorm1d(2, affine=True, track_running_stats=True),
        (3, 2, 5),
    ),
    "layer norm": (lambda nn: nn.LayerNorm(4), (2, 4)),
    "group norm": (lambda nn: nn.GroupNorm(2, 4), (2, 4, 3)),
    "RMS norm": (lambda nn: nn.RMSNorm(4), (2, 4)),
    "local response norm": (lambda nn: nn.LocalResponseNorm(2), (1, 4, 4)),
    "embedding": (lambda nn: nn.Embedding(5, 3, padding_idx=1), ()),
    "embedding bag": (lambda nn: nn.EmbeddingBag(5, 3), ()),
    "attention": (lambda nn: nn.MultiheadAttention(4, 2), (3, 2, 4), 3),
    "encoder layer": (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, 0.0), (3, 2, 4)),
    "dropout": (lambda nn: nn.Dropout(0.5), (2, 4)),
    "average pool": (lambda nn: nn.AvgPool2d(2), (1, 2, 4, 4)),
    "max pool": (lambda nn: nn.MaxPool2d(2), (1, 2, 4, 4)),
    "constant pad": (lambda nn: nn.ConstantPad1d(1, 2.0), (1, 2, 4)),
    "reflection pad": (lambda nn: nn.ReflectionPad1d(1), (1, 2, 4)),
    "unfold": (lambda nn: nn.Unfold(2), (1, 2, 4, 4)),
    "pixel shuffle": (lambda nn: nn.PixelShuffle(2), (1, 4, 2, 2)),
    "cosine similarity": (lambda nn: nn.CosineSimilarity(), (2, 4), 2),
    "pairwise distance": (lambda nn: nn.PairwiseDistance(), (2, 4), 2),
    "old spectral norm": (lambda nn: nn.utils.spectral_norm(nn.Linear(4, 3)), (2, 4)),
    "old weight norm": (lambda nn: nn.utils.weight_norm(nn.Linear(4, 3)), (2, 4)),
    "spectral norm": (
        lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3)),
        (2, 4),
    ),
    "weight norm": (lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)), (2, 4)),
    **{
        name: (lambda nn, name=name: getattr(nn, name)(), (2, 4))
        for name in (
            "PReLU Tanh ReLU GELU Sigmoid SiLU Softmax LogSoftmax ELU Softplus GLU LeakyReLU "
            "Tanhshrink Mish Hardtanh Softsign Identity"
        ).split()
    },
    **{
        name: (lambda nn, name=name: getattr(nn, name)(), (2, 4), 2)
        for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "KLDivLoss")
    },
}
MORE = {
    "bilinear": "PyTorch has no derivative of complex numbers",
    "embedding": "PyTorch has no derivative of complex numbers",
    "SiLU": "PyTorch has no derivative of complex numbers",
    "weight norm": "PyTorch has no kernel of complex numbers",
    "old weight norm": "PyTorch has no kernel of complex numbers",
    "encoder layer": "which part refuses complex numbers first is each library's own",
}
"""What complex modules do here, and do not in PyTorch."""
TOLERANCES = {"complex64": 2e-4, "complex128": 1e-9, "float16": 2e-2, "bfloat16": 1e-1}


def values(t: Any, shape: tuple[int, ...], phase: float, dtype: str) -> Any:
    real = t.arange(math.prod(shape), dtype=t.float64).mul(1.3).add(phase).sin().reshape(shape)
    kind = getattr(t, dtype)
    return t.complex(real, real.mul(3).cos()).to(kind) if kind.is_complex else real.to(kind)


def convert(t: Any, module: Any, dtype: str) -> Any:
    if dtype == "float16":
        return module.half()
    return module.bfloat16() if dtype == "bfloat16" else module.to(getattr(t, dtype))


def train(t: Any, name: str, dtype: str) -> list[Any]:
    """What a module of that type gives, its gradients, and its state, loaded by another."""
    make, shape, *count = MODULES[name]
    t.manual_seed(0)
    module = convert(t, make(t.nn), dtype)
    if "norm" not in name or "batch" in name:
        for k, p in enumerate(module.parameters()):
            p.data.copy_(values(t, tuple(p.shape), 0.7 * k, dtype) * 0.5)
    inputs = [values(t, shape, 3 + k, dtype).requires_grad_() for k in range(sum(count) or 1)]
    if not shape:
        inputs = [t.tensor([[0, 1], [2, 4]])]
    t.manual_seed(1)
    outputs = [y for y in flat([module(*inputs)]) if y is not None]
    sum((y.abs() ** 2).sum() for y in outputs).backward()
    again = make(t.nn).to(getattr(t, dtype))
    again.load_state_dict(module.state_dict())
    return [
        [y.detach() for y in outputs],
        [x.grad for x in inputs],
        [p.grad for p in module.parameters()],
        [[key, value] for key, value in again.state_dict().items()],
    ]


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, dtype: str) -> None:
    if dtype.startswith("complex") and name in MORE:
        pytest.skip(MORE[name])

    def run(t: Any) -> list[Any]:
        found, warnings = result_of(lambda: train(t, name, dtype))
        return [found, [text.split(" (Trig")[0] for text in warnings if "oneDNN" not in text]]

    # the vectors of a spectral norm are computed before the module is converted
    least = 1e-6 if name == "spectral norm" else 0.0
    assert_same_results(run(pygrad), run(torch), max(TOLERANCES[dtype], least))


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3)], ids=str)
@pytest.mark.parametrize("kind", [None, "matrix_exp", "cayley", "householder", "spectral"])
def test_parametrizations_of_complex_weights(kind: str | None, shape: tuple[int, int]) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        layer = t.nn.Linear(*shape, dtype=t.complex128, bias=False)
        layer.weight.data.copy_(values(t, (shape[1], shape[0]), 0, "complex128"))
        module = t.nn.utils.parametrizations
        if kind == "spectral":
            layer = module.spectral_norm(layer)
        else:
            layer = module.orthogonal(layer, orthogonal_map=kind)
        weight = layer.weight
        (weight * (1 + 2j)).real.sum().backward()
        own = layer.parametrizations.weight.original
        return weight.detach(), own.detach(), own.grad

    assert_same_results(result_of(lambda: run(pygrad)), result_of(lambda: run(torch)), 1e-6)


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(
    "init",
    [
        lambda nn, w: nn.init.uniform_(w, -1, 2),
        lambda nn, w: nn.init.normal_(w, 1, 0.5),
        lambda nn, w: nn.init.trunc_normal_(w),
        lambda nn, w: nn.init.constant_(w, 0.3),
        lambda nn, w: nn.init.ones_(w),
        lambda nn, w: nn.init.zeros_(w),
        lambda nn, w: nn.init.eye_(w),
        lambda nn, w: nn.init.xavier_uniform_(w),
        lambda nn, w: nn.init.xavier_normal_(w, 2.0),
        lambda nn, w: nn.init.kaiming_uniform_(w, 0.1),
        lambda nn, w: nn.init.kaiming_normal_(w, mode="fan_out"),
        lambda nn, w: nn.init.orthogonal_(w),
        lambda nn, w: nn.init.sparse_(w, 0.5),
    ],
    ids="uniform normal truncated constant ones zeros eye xavier_uniform xavier_normal "
    "kaiming_uniform kaiming_normal orthogonal sparse".split(),
)
def test_initialisers(init: Callable[[Any, Any], Any], dtype: str) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        return init(t.nn, t.empty(4, 5, dtype=getattr(t, dtype)).fill_(7))

    assert_same_results(
        result_of(lambda: run(pygrad)), result_of(lambda: run(torch)), TOLERANCES[dtype] / 10
    )


@pytest.mark.parametrize("kind", ["float16", "complex128"])
def test_a_parameter_of_another_type_gets_gradients_of_that(kind: str) -> None:
    def run(t: Any) -> Any:
        p, log = t.nn.Parameter(t.ones(2)), []
        p.register_hook(lambda g: log.append(f"hook {g.dtype}"))
        p.register_post_accumulate_grad_hook(lambda p: log.append(f"after {p.grad.dtype}"))
        y = p * 1
        accumulator = y.grad_fn.next_functions[0][0]
        accumulator.register_prehook(lambda g: log.append("of the old node"))
        p.data = p.data.to(getattr(t, kind))
        (p * 2).abs().sum().backward()
        log.append(str((p * 1).grad_fn.next_functions[0][0] is accumulator))
        found = [p.grad]
        p.grad = None
        y.sum().backward()
        return [*found, p.grad, *log]

    compare(run)
