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
    ("FractionalMaxPool2d", (3, (4, 5)), {}, [IMAGE]),
    ("FractionalMaxPool2d", ((2, 1),), {"output_ratio": 0.6}, [IMAGE]),
    ("FractionalMaxPool3d", (2, (1, 2, 2)), {}, [VOLUME]),
    ("FractionalMaxPool3d", ((2, 1, 2),), {"output_ratio": 0.6}, [VOLUME]),
    ("MaxUnpool1d", (3, 2), {}, [SEQUENCE, ((2, 4, 8), "labels")]),
    ("MaxUnpool2d", ((2, 1),), {"stride": 2}, [IMAGE, ((2, 4, 8, 9), "labels")]),
    ("MaxUnpool3d", (3, 2, (1, 0, 1)), {}, [VOLUME, ((2, 4, 3, 3, 3), "labels")]),
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
    ("InstanceNorm1d", (4,), {}, [SEQUENCE]),
    ("InstanceNorm2d", (4,), {"affine": True}, [IMAGE]),
    ("InstanceNorm2d", (2,), {"affine": True, "bias": False}, [((2, 3, 4), "real")]),
    ("InstanceNorm2d", (3,), {}, [IMAGE]),
    ("InstanceNorm3d", (4,), {"track_running_stats": True}, [VOLUME]),
    ("LocalResponseNorm", (3,), {"alpha": 0.5}, [IMAGE]),
    ("ConvTranspose1d", (4, 6, 3), {}, [SEQUENCE]),
    ("ConvTranspose1d", (4, 6, 3, 2), {"padding": 1, "output_padding": 1}, [SEQUENCE]),
    ("ConvTranspose2d", (4, 6, 3), {"groups": 2, "dilation": 2, "bias": False}, [IMAGE]),
    ("ConvTranspose2d", (4, 2, (3, 2)), {"stride": (2, 1), "padding": (1, 0)}, [IMAGE]),
    ("ConvTranspose3d", (4, 2, 2), {"stride": 2}, [VOLUME]),
    ("LPPool1d", (2, 3), {}, [SEQUENCE]),
    ("LPPool2d", (1.5, 2, 1), {"ceil_mode": True}, [((2, 4, 8, 9), "probability")]),
    ("LPPool3d", (2, 2), {}, [VOLUME]),
    ("RReLU", (), {}, [S]),
    ("EmbeddingBag", (10, 3), {}, [((2, 4), "labels")]),
    ("EmbeddingBag", (10, 3), {"mode": "sum", "padding_idx": 2}, [((2, 4), "labels")]),
    ("EmbeddingBag", (10, 3), {"mode": "max", "norm_type": 1.0}, [((2, 4), "labels")]),
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
            ("MultiMarginLoss", [S, LABELS]),
            ("MultiLabelMarginLoss", [S, ((4, 6), "labels")]),
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


MADE: dict[str, Any] = {
    "bag": lambda t: t.nn.EmbeddingBag(9, 2, mode="sum")(
        t.tensor([1, 2, 4, 5]), t.tensor([0, 3]), t.tensor([0.5, 1.0, 2.0, 3.0])
    ),
    "pretrained": lambda t: t.nn.EmbeddingBag.from_pretrained(t.eye(3))(t.tensor([[0, 2]])),
    "bag_repr": lambda t: repr(t.nn.EmbeddingBag(9, 2, 1.0, 3.0, True, "max", padding_idx=-1)),
    "output_size": lambda t: t.nn.ConvTranspose2d(2, 3, 3, 2)(t.ones(1, 2, 4, 5), [10, 12]),
    "output_sizes": lambda t: t.nn.ConvTranspose1d(2, 3, 3, 2)(t.ones(2, 4), [3, 10]),
    "too_large": lambda t: t.nn.ConvTranspose2d(2, 3, 3, 2)(t.ones(1, 2, 4, 5), [10, 13]),
    "too_many": lambda t: t.nn.ConvTranspose2d(2, 3, 3, 2)(t.ones(1, 2, 4, 5), [10, 9, 13]),
    "mode": lambda t: t.nn.ConvTranspose1d(2, 3, 3, padding_mode="reflect"),
    "output_padding": lambda t: repr(t.nn.ConvTranspose1d(2, 3, 3, 2, 1, 1, bias=False)),
    "channels": lambda t: t.nn.InstanceNorm2d(3, affine=True)(t.ones(2, 4, 3, 3)),
    "instance_rank": lambda t: t.nn.InstanceNorm2d(3)(t.ones(3, 3)),
    "one_position": lambda t: t.nn.InstanceNorm2d(3)(t.ones(2, 3, 1, 1)),
    "norm_state": lambda t: list(t.nn.InstanceNorm1d(2, affine=True).state_dict()),
    "margin": lambda t: t.nn.MultiMarginLoss(2, 0.5, t.tensor([1.0, 2.0]))(
        t.eye(2), t.tensor([1, 0])
    ),
    "margin_p": lambda t: t.nn.MultiMarginLoss(3),
    "margin_weight": lambda t: t.nn.MultiMarginLoss(weight=t.ones(2, 2)),
    "parallel": lambda t: [
        repr(t.nn.DataParallel(t.nn.Linear(2, 1))),
        list(t.nn.DataParallel(t.nn.Linear(2, 1)).state_dict()),
        t.nn.DataParallel(t.nn.Linear(2, 1))(t.ones(1, 2)),
    ],
    "gumbel": lambda t: t.nn.functional.gumbel_softmax(t.arange(6.0).view(2, 3), 0.5),
    "gumbel_hard": lambda t: t.nn.functional.gumbel_softmax(t.eye(3), hard=True, dim=0),
}


@pytest.mark.parametrize("name", MADE)
def test_made(name: str) -> None:
    both(MADE[name], rtol=1e-5)


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
    ("Adamax", {"lr": 0.01}),
    ("Adamax", {"weight_decay": 0.1, "maximize": True, "betas": (0.5, 0.9)}),
    ("NAdam", {"lr": 0.01}),
    ("NAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "momentum_decay": 0.1}),
    ("RAdam", {"lr": 0.01, "betas": (0.5, 0.9)}),
    ("RAdam", {"weight_decay": 0.1, "decoupled_weight_decay": True, "maximize": True}),
    ("ASGD", {"lr": 0.1, "lambd": 0.1, "t0": 2, "weight_decay": 0.1}),
    ("Rprop", {}),
    ("Rprop", {"lr": 0.3, "etas": (0.3, 1.5), "step_sizes": (0.01, 0.4)}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.3, "weight_decay": 0.1, "d": 2.0, "eps": (1e-6, 1e-2)}),
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


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lr": 0.3, "max_iter": 7, "history_size": 2},
        {"line_search_fn": "strong_wolfe"},
        {"line_search_fn": "strong_wolfe", "max_iter": 1, "lr": 0.1},
        {"line_search_fn": "strong_wolfe", "max_iter": 3, "lr": 5.0, "history_size": 3},
        {"line_search_fn": "other"},
        {"max_eval": 3},
    ],
    ids=str,
)
def test_lbfgs(options: Any) -> None:
    def run(t: Any) -> Any:
        x = t.tensor([-1.2, 1.0, 0.4], dtype=t.float64, requires_grad=True)
        y = t.tensor([[0.3]], dtype=t.float64, requires_grad=True)
        optimizer = t.optim.LBFGS([x, y], **options)
        found = []

        def closure() -> Any:
            optimizer.zero_grad()
            loss = (1 - x[:-1]).square().sum() + 10 * (x[1:] - x[:-1] ** 2).square().sum()
            loss = loss + (y - x.prod()).square().sum()
            loss.backward()
            found.append(loss.item())
            return loss

        for _ in range(3):
            found.append(optimizer.step(closure).detach())
        own = optimizer.state_dict()["state"][0]
        counts = own["func_evals"], own["n_iter"], len(own["old_dirs"])
        return found, x.detach(), y.detach(), counts, sorted(own)

    both(run, rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("Adamax", {"betas": (1.0, 0.9)}),
        ("NAdam", {"momentum_decay": -1}),
        ("RAdam", {"eps": -1.0}),
        ("ASGD", {"lr": -1.0}),
        ("Rprop", {"etas": (1.5, 2.0)}),
        ("Adafactor", {"d": 0.5}),
        ("Adafactor", {"beta2_decay": 0.5}),
        ("LBFGS", {"lr": -1.0}),
    ],
    ids=str,
)
def test_optimizer_refuses(name: str, options: Any) -> None:
    both(lambda t: getattr(t.optim, name)([t.nn.Parameter(t.ones(2))], **options))


@pytest.mark.parametrize(
    ("how", "use_buffers"),
    [
        *((how, False) for how in ("mean", "ema", "ema_multi", "swa", "swa_multi")),
        *((how, True) for how in ("mean", "ema", "ema_multi", "swa")),
    ],
)
def test_averaged_model(how: str, use_buffers: bool) -> None:
    def run(t: Any) -> Any:
        t.manual_seed(0)
        utils = t.optim.swa_utils
        options = {
            "mean": {},
            "ema": {"avg_fn": utils.get_ema_avg_fn(0.9)},
            "ema_multi": {"multi_avg_fn": utils.get_ema_multi_avg_fn(0.9)},
            "swa": {"avg_fn": utils.get_swa_avg_fn()},
            "swa_multi": {"multi_avg_fn": utils.get_swa_multi_avg_fn()},
        }[how]
        net = t.nn.Sequential(t.nn.Linear(2, 3), t.nn.BatchNorm1d(3)).double()
        averaged = utils.AveragedModel(net, use_buffers=use_buffers, **options)
        optimizer = t.optim.SGD(net.parameters(), 0.1)
        schedule = utils.SWALR(optimizer, 0.5, anneal_epochs=2)
        rates = []
        x = t.arange(6.0, dtype=t.float64).reshape(3, 2)
        for k in range(4):
            net((x + k).sin()).pow(3).sum().backward()
            optimizer.step()
            schedule.step()
            averaged.update_parameters(net)
            rates.append(schedule.get_last_lr()[0])
        utils.update_bn([x, [x * x]], averaged)
        return rates, list(averaged.state_dict()), list(averaged.state_dict().values()), averaged

    both(run, rtol=1e-5, atol=1e-6)


def test_state_dicts_go_from_one_library_to_the_other() -> None:
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    mine = pygrad.nn.Sequential(pygrad.nn.Linear(3, 4), pygrad.nn.BatchNorm1d(4))
    mine.load_state_dict({k: pygrad.from_numpy(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(
        array(mine(pygrad.from_numpy(x))), array(theirs(torch.from_numpy(x))), rtol=1e-5, atol=1e-6
    )


@pytest.mark.parametrize("distance", ["default", "module", "function"])
@pytest.mark.parametrize("options", [{}, {"margin": 1e-6}, {"margin": 10.0}, {"swap": True}])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_triplets_with_a_distance(distance: str, options: dict[str, Any], reduction: str) -> None:
    def script(t: Any) -> Any:
        t.manual_seed(0)
        triplet = [t.randn(5, 10, dtype=t.float64, requires_grad=True) for _ in range(3)]
        given: dict[str, Any] = {
            "default": {},
            "module": {"distance_function": t.nn.PairwiseDistance()},
            "function": {"distance_function": lambda a, b: (a - b).abs().amax(-1)},
        }[distance]
        function = t.nn.functional.triplet_margin_with_distance_loss
        loss = function(*triplet, **given, **options, reduction=reduction)
        layer = t.nn.TripletMarginWithDistanceLoss(**given, **options, reduction=reduction)
        return [loss, layer(*triplet), *t.autograd.grad(loss.sum(), triplet)]

    both(script)


@pytest.mark.parametrize("channels_last", [False, True])
@pytest.mark.parametrize("size", [(33, 41), (7, 11), (16, 30), (20, 45)])
@pytest.mark.parametrize("how", ["bilinear", "bicubic", "corners", "bilinear_wide", "bicubic_wide"])
def test_resized_bytes_are_the_same_bytes(
    how: str, size: tuple[int, int], channels_last: bool
) -> None:
    options = {"align_corners": how == "corners", "antialias": how.endswith("_wide")}
    mode = "bicubic" if how == "corners" else how.removesuffix("_wide")
    shape, values = (
        (2, 4, 20, 30),
        torch.randint(256, (4800,), generator=torch.Generator().manual_seed(1)).tolist(),
    )

    def run(t: Any) -> Any:
        x = t.tensor(values, dtype=t.uint8).view(shape)
        if channels_last:
            x = x.contiguous(memory_format=t.channels_last)
        return t.nn.functional.interpolate(x, size, mode=mode, **options).tolist()

    assert run(pygrad) == run(torch)
