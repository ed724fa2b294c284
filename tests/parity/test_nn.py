"""Layers, losses and optimizers beside PyTorch's: initial values, outputs, gradients, state,
steps.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from oracle import array, both, outcome, torch

import pygrad

S = ((4, 6), "real")
SEQUENCE = ((2, 4, 8), "real")
IMAGE = ((2, 4, 8, 9), "real")
VOLUME = ((2, 4, 3, 3, 3), "real")
PROBABILITY = ((4, 6), "probability")
LABELS = ((4,), "labels")
SIGNS = ((4,), "signs")
COLUMN = ((4,), "real")

LAYERS: list[tuple[str, tuple[Any, ...], dict[str, Any], list[Any]]] = [
    ("Identity", (), {}, [S]),
    ("Linear", (6, 3), {}, [S]),
    ("Linear", (6, 3), {"bias": False}, [S]),
    ("Bilinear", (6, 6, 3), {}, [S, S]),
    ("Flatten", (), {}, [IMAGE]),
    ("Flatten", (0, 2), {}, [IMAGE]),
    ("Unflatten", (1, (2, 3)), {}, [S]),
    ("Embedding", (10, 3), {}, [LABELS]),
    ("Embedding", (10, 3, 2), {}, [LABELS]),
    ("LayerNorm", (6,), {}, [S]),
    ("LayerNorm", ([8, 9],), {"bias": False}, [IMAGE]),
    ("LayerNorm", (6,), {"elementwise_affine": False}, [S]),
    ("GroupNorm", (2, 4), {}, [IMAGE]),
    ("RMSNorm", (6,), {}, [S]),
    ("BatchNorm1d", (6,), {}, [S]),
    ("BatchNorm1d", (4,), {}, [SEQUENCE]),
    ("BatchNorm2d", (4,), {}, [IMAGE]),
    ("BatchNorm2d", (4,), {"momentum": None}, [IMAGE]),
    ("BatchNorm2d", (4,), {"affine": False}, [IMAGE]),
    ("BatchNorm2d", (4,), {"track_running_stats": False}, [IMAGE]),
    ("BatchNorm3d", (4,), {}, [VOLUME]),
    ("Conv1d", (4, 6, 3), {}, [SEQUENCE]),
    ("Conv2d", (4, 6, 3), {}, [IMAGE]),
    ("Conv2d", (4, 6, (3, 2)), {"stride": (2, 1), "padding": (1, 0), "groups": 2}, [IMAGE]),
    ("Conv2d", (4, 6, 3), {"dilation": 2, "bias": False}, [IMAGE]),
    ("Conv2d", (4, 4, 3), {"padding": "same"}, [IMAGE]),
    ("Conv2d", (4, 4, 3), {"padding": 1, "padding_mode": "reflect"}, [IMAGE]),
    ("MaxPool1d", (2,), {}, [SEQUENCE]),
    ("MaxPool2d", (3, 2), {"padding": 1, "ceil_mode": True}, [IMAGE]),
    ("AvgPool1d", (3, 2, 1), {}, [SEQUENCE]),
    ("AvgPool2d", (2,), {"divisor_override": 3}, [IMAGE]),
    ("AdaptiveAvgPool1d", (3,), {}, [SEQUENCE]),
    ("AdaptiveAvgPool2d", ((2, None),), {}, [IMAGE]),
    *(
        (f"{kind}Pad{rank}d", (padding, *more), {}, [inputs])
        for kind, more in (
            ("Constant", (2.5,)),
            ("Zero", ()),
            ("Reflection", ()),
            ("Replication", ()),
            ("Circular", ()),
        )
        for rank, inputs in ((1, SEQUENCE), (2, IMAGE), (3, VOLUME))
        for padding in (1, (1, 2, 2, 0, 1, 1)[: 2 * rank])
    ),
    ("Conv3d", (4, 6, 2), {}, [VOLUME]),
    ("Conv3d", (4, 6, (2, 1, 3)), {"padding": 1, "groups": 2, "bias": False}, [VOLUME]),
    ("MaxPool3d", (2, 1), {}, [VOLUME]),
    ("AvgPool3d", (2, 1), {"padding": 1}, [VOLUME]),
    ("AdaptiveAvgPool3d", ((2, None, 1),), {}, [VOLUME]),
    ("AdaptiveMaxPool1d", (3,), {}, [SEQUENCE]),
    ("AdaptiveMaxPool2d", ((2, None),), {}, [IMAGE]),
    ("AdaptiveMaxPool3d", (2,), {}, [VOLUME]),
    ("PixelShuffle", (2,), {}, [IMAGE]),
    ("PixelUnshuffle", (3,), {}, [((2, 4, 6, 9), "real")]),
    ("ChannelShuffle", (2,), {}, [IMAGE]),
    ("Upsample", (), {"scale_factor": 2}, [SEQUENCE]),
    ("Upsample", ((5, 4),), {"mode": "bilinear", "align_corners": True}, [IMAGE]),
    ("Upsample", (), {"scale_factor": (1.5, 2), "recompute_scale_factor": True}, [IMAGE]),
    ("UpsamplingNearest2d", (), {"scale_factor": 2}, [IMAGE]),
    ("UpsamplingBilinear2d", ((5, 4),), {}, [IMAGE]),
    ("Unfold", ((2, 3),), {"padding": 1, "stride": 2}, [IMAGE]),
    ("Fold", ((3, 4), 2), {"padding": (1, 0), "stride": (2, 1)}, [((2, 8, 6), "real")]),
    ("Dropout", (0.3,), {}, [S]),
    ("Dropout2d", (0.4,), {}, [IMAGE]),
    ("AlphaDropout", (), {}, [S]),
    ("PReLU", (), {}, [S]),
    ("GLU", (), {}, [S]),
    ("GELU", ("tanh",), {}, [S]),
    ("Softplus", (2.0, 3.0), {}, [S]),
    ("Threshold", (0.1, 2.0), {}, [S]),
    ("CosineSimilarity", (), {}, [S, S]),
    ("PairwiseDistance", (), {}, [S, S]),
    *(
        (name, (), {}, [S])
        for name in (
            "ReLU ReLU6 SELU SiLU Mish Hardsigmoid Hardswish ELU CELU GELU Sigmoid Tanh LogSigmoid "
            "Softsign Tanhshrink Hardshrink Softshrink LeakyReLU Hardtanh"
        ).split()
    ),
    *((name, (1,), {}, [S]) for name in ("Softmax", "Softmin", "LogSoftmax")),
    *(
        (name, (), {"reduction": how}, inputs)
        for how in ("mean", "sum", "none")
        for name, inputs in (
            ("L1Loss", [S, S]),
            ("MSELoss", [S, S]),
            ("SmoothL1Loss", [S, S]),
            ("HuberLoss", [S, S]),
            ("NLLLoss", [S, LABELS]),
            ("CrossEntropyLoss", [S, LABELS]),
            ("BCELoss", [PROBABILITY, PROBABILITY]),
            ("BCEWithLogitsLoss", [S, PROBABILITY]),
            ("KLDivLoss", [S, PROBABILITY]),
            ("PoissonNLLLoss", [S, PROBABILITY]),
            ("GaussianNLLLoss", [S, S, PROBABILITY]),
            ("HingeEmbeddingLoss", [COLUMN, SIGNS]),
            ("SoftMarginLoss", [COLUMN, SIGNS]),
            ("MarginRankingLoss", [COLUMN, COLUMN, SIGNS]),
            ("CosineEmbeddingLoss", [S, S, SIGNS]),
            ("TripletMarginLoss", [S, S, S]),
        )
    ),
]


def make(library: Any, what: tuple[tuple[int, ...], str], k: int) -> Any:
    shape, kind = what
    rng = np.random.default_rng(k)
    if kind == "labels":
        return library.from_numpy(rng.integers(0, 6, shape))
    numbers = rng.uniform(-2, 2, shape) if kind == "real" else rng.uniform(0.1, 0.9, shape)
    if kind == "signs":
        numbers = np.where(numbers > 0.5, 1.0, -1.0)
    made = library.from_numpy(numbers)
    return made.requires_grad_(kind == "real")


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize(
    ("name", "args", "kwargs", "inputs"),
    LAYERS,
    ids=[f"{name}-{args}{kwargs}" for name, args, kwargs, _ in LAYERS],
)
def test_layer(name: str, args: Any, kwargs: Any, inputs: Any, training: bool) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(3)
        layer = getattr(t.nn, name)(*args, **kwargs).double().train(training)
        given = [make(t, what, k) for k, what in enumerate(inputs)]
        first = layer(*given)
        second = layer(*given)
        if first.requires_grad:
            (first * first).sum().backward()
        state = {k: v.detach() for k, v in layer.state_dict().items()}
        grads = [p.grad for p in (*given, *layer.parameters()) if p.grad is not None]
        return repr(layer), list(state), list(state.values()), first, second, grads

    both(run, rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", ["Linear", "Conv2d", "BatchNorm2d", "Embedding", "LayerNorm"])
def test_layer_refuses(name: str) -> None:
    shapes = {"Linear": (6, 3), "Conv2d": (4, 6, 3), "BatchNorm2d": (4,), "Embedding": (3, 2)}
    for shape in [(5,), (2, 5), (2, 5, 5), (2, 5, 5, 5)]:

        def run(t: Any, shape: Any = shape) -> Any:
            return getattr(t.nn, name)(*shapes.get(name, (6,)))(t.ones(shape))

        mine, theirs = outcome(lambda: run(pygrad)), outcome(lambda: run(torch))
        assert mine.error == theirs.error, (mine.message, theirs.message)


OPTIMIZERS: list[tuple[str, dict[str, Any]]] = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.5, "maximize": True}),
    ("Adam", {"lr": 0.01}),
    ("Adam", {"lr": 0.01, "amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"lr": 0.01, "betas": (0.5, 0.9), "eps": 1e-3, "maximize": True}),
    ("AdamW", {"lr": 0.01}),
    ("AdamW", {"lr": 0.01, "weight_decay": 0.3, "amsgrad": True}),
    ("RMSprop", {"lr": 0.01, "momentum": 0.5, "centered": True}),
    ("Adagrad", {"lr": 0.1}),
    ("Adadelta", {}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_optimizer(name: str, options: Any, dtype: str) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        net = t.nn.Sequential(t.nn.Linear(3, 4), t.nn.Tanh(), t.nn.Linear(4, 1)).to(
            getattr(t, dtype)
        )
        optimizer = getattr(t.optim, name)(net.parameters(), **options)
        x = t.from_numpy(np.linspace(-1, 1, 6).reshape(2, 3).astype(dtype))
        losses = []
        for _ in range(6):
            optimizer.zero_grad()
            loss = (net(x) ** 2).sum()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())
        state = optimizer.state_dict()
        flat = [(k, sorted(v)) for k, v in state["state"].items()]
        return (
            losses,
            [p.detach() for p in net.parameters()],
            str(flat),
            sorted(state["param_groups"][0]),
        )

    both(
        run, rtol=1e-5 if dtype == "float32" else 1e-10, atol=1e-6 if dtype == "float32" else 1e-12
    )


def test_state_dicts_go_from_one_library_to_the_other() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    mine = pygrad.nn.Sequential(pygrad.nn.Linear(3, 4), pygrad.nn.BatchNorm1d(4))
    mine.load_state_dict({k: pygrad.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(
        array(mine(pygrad.from_numpy(x))), array(theirs(torch.from_numpy(x))), rtol=1e-5, atol=1e-6
    )
