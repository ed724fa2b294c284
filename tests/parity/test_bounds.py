"""Gradients of composed ops exactly at their bounds, beside PyTorch's to the third order: clamps,
hinges, ties, paddings, places between pixels, losses of infinite values, distances of zero.

Where PyTorch's number is NaN from the second order on, ours may be the derivative that is there;
else the two are alike, but in `OTHERWISE`.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from oracle import torch

import pygrad

INF = math.inf
Make = Callable[..., Any]
Values = list[Any]

ENDS = [-INF, -2.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0, INF]
"""The bounds of activations and clamps, and both infinities."""
NUMBERS = [-3.0, *ENDS[1:-1]]
ROWS = [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [2.0, 0.0], [-1.0, 1.0], [0.0, -0.0]]
OTHERS = [[0.0, 0.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]
THIRD = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [1.0, 0.0], [3.0, 3.0], [1.0, 1.0]]
LOGITS = [
    *([0.0, 1.0, -INF], [INF, 0.0, 0.0], [0.0, 0.0, 0.0], [1e300, 1e300, -1e300]),
    *([-INF, -INF, -INF], [800.0, 0.0, 0.0]),
]
TIES = [*LOGITS, [0.0, -0.0, 0.0], [1.0, 1.0, 2.0], [2.0, 1.0, 1.0], [0.0, 0.0, 2.0]]
FEW = [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]
IMAGE = [[[[0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 1.0, 1.0], [2.0, -0.0, 0.0, 3.0], [-1.0, -1.0, 1, 2]]]]
ENDLESS = [[[*IMAGE[0][0][:3], [-INF, -INF, 1.0, INF]]]]
GRID = [
    [
        [[-1.0, -1.0], [1.0, 1.0], [0.0, 0.0], [-0.5, 0.5]],
        [[1.25, -1.25], [-1.0, 0.0], [2.0, 2.0], [0.75, 0.75]],
        [[-3.0, 0.5], [0.25, -0.75], [1.0, -1.0], [1.75, -1.75]],
    ]
]
SIGNS = [1.0, -1.0, 1.0, -1.0, 1.0, -1.0]

CASES: dict[str, tuple[Make, tuple[Values, ...]]] = {}


def case(name: str, make: Make, *values: Values) -> None:
    assert name not in CASES, name
    CASES[name] = (make, values)


def pairs(a: Iterable[float], b: Iterable[float]) -> tuple[Values, Values]:
    both = list(itertools.product(a, b))
    return [x for x, _ in both], [y for _, y in both]


def double(t: Any, values: Any) -> Any:
    return t.tensor(values, dtype=t.float64)


def call_named(space: str, name: str, *args: Any, **options: Any) -> Make:
    """A function by its name, with these arguments behind its tensors."""

    def call(t: Any, *tensors: Any) -> Any:
        found = t
        for part in [*space.split("."), name] if space else [name]:
            found = getattr(found, part)
        return found(*tensors, *args, **options)

    return call


def nn(name: str, *args: Any, **options: Any) -> Make:
    return call_named("nn.functional", name, *args, **options)


# ------------------------------------------------------------------ element by element

for _name, *_args in (
    *(["relu"], ["relu6"], ["hardtanh", -1.0, 2.0], ["hardsigmoid"], ["hardswish"]),
    *(["leaky_relu", 0.1], ["elu"], ["selu"], ["celu"], ["silu"], ["mish"], ["gelu"], ["softplus"]),
    *(["logsigmoid"], ["softshrink", 0.5], ["hardshrink", 0.5], ["tanhshrink"], ["softsign"]),
    *(["threshold", 0.5, -7.0], ["rrelu", 0.1, 0.3]),
):
    case(f"nn {_name}", nn(_name, *_args), ENDS)
for _name, *_args in (
    *(["clamp", -1.0, 2.0], ["clip", None, 1.0], ["clamp_min", -0.5], ["clamp_max", 0.5], ["abs"]),
    *(["frac"], ["nan_to_num"], ["logit"], ["floor"], ["round"], ["trunc"], ["sgn"], ["sinc"]),
    *(["erfinv"], ["special.entr"], ["special.i1"], ["special.erfcx"]),
):
    _space, _, _last = _name.rpartition(".")
    case(_name, call_named(_space, _last, *_args), ENDS)
case("mvlgamma", call_named("", "mvlgamma", 2), [0.75, 1.0, 2.0, INF])
case("clamp crossed", call_named("", "clamp", 2.0, -1.0), ENDS)
case(
    "clamp by tensors",
    call_named("", "clamp"),
    [-1.0, 0, 1, 2, 1],
    [-1.0, 0, 0, 0, 2],
    [1.0, 0, 1, 1, 1],
)
for _eps in (0.0, 0.25):
    case(f"logit {_eps}", call_named("", "logit", _eps), [0.0, 0.25, 0.5, 0.75, 1.0, -1.0, 0.1])
for _name in (
    "maximum minimum fmax fmin atan2 hypot logaddexp logaddexp2 xlogy fmod remainder copysign pow"
    " mul div sub ldexp nextafter float_power special.xlog1py"
).split():
    _space, _, _last = _name.rpartition(".")
    case(_name, call_named(_space, _last), *pairs(ENDS, ENDS))
case("lerp", call_named("", "lerp"), [0.0, 1.0, 2.0], [1.0, 1.0, 5.0], [0.0, 0.5, 1.0])
case("softplus 2 3", nn("softplus", 2.0, 3.0), [1.5, 1.4, 1.6, -INF, INF, 800.0, -800.0])
case(
    "gammainc",
    lambda t, x: t.special.gammainc(double(t, [1, 2, 3, 0.5]), x),
    [0.0, 0.0, 0.0, 0.0],
)
case("addcdiv", call_named("", "addcdiv"), [0.0, 0.0], [0.0, 1.0], [1.0, 0.0])
case("polar", lambda t, r, a: t.view_as_real(t.polar(r, a)), [0.0, 1.0], [0.0, 0.0])
case("glu", nn("glu"), [[0.0, 1.0, INF, -INF], [INF, 1.0, 0.0, 0.0]])
case("prelu", nn("prelu"), [[0.0, -0.0, 1.0, -1.0]], [0.25])

# ------------------------------------------------------------------ losses

for _name in (
    "l1_loss mse_loss smooth_l1_loss huber_loss kl_div binary_cross_entropy_with_logits"
    " poisson_nll_loss hinge_embedding_loss"
).split():
    case(_name, nn(_name, reduction="none"), *pairs(ENDS, NUMBERS))
case(
    "soft_margin_loss",
    lambda t, x: t.nn.functional.soft_margin_loss(x, double(t, [1, -1] * 6), reduction="none"),
    ENDS,
)
case("kl_div log", nn("kl_div", reduction="none", log_target=True), *pairs(ENDS, ENDS))
case(
    "poisson_nll_loss plain",
    nn("poisson_nll_loss", log_input=False, reduction="none"),
    *pairs(NUMBERS, [0.0, 0.5, 1.0, 2.0]),
)
case(
    "poisson_nll_loss full",
    nn("poisson_nll_loss", full=True, reduction="none"),
    *pairs(NUMBERS, [0.0, 0.5, 1.0, 2.0, 5.0]),
)
_shares = [0.0, 1.0, 0.5, 0.25, 1e-12]
case("binary_cross_entropy", nn("binary_cross_entropy", reduction="none"), *pairs(_shares, _shares))
case(
    "binary_cross_entropy weighted",
    lambda t, x, y: t.nn.functional.binary_cross_entropy(x, y, double(t, [0, 0, 1, 2, 3])),
    *([0.0, 1.0, 0.0, 1.0, 0.5], [0.0, 1.0, 1.0, 0.0, 1.0]),
)
case(
    "binary_cross_entropy_with_logits pos_weight",
    lambda t, x, y: t.nn.functional.binary_cross_entropy_with_logits(
        x, y, pos_weight=double(t, 3.0), reduction="none"
    ),
    *pairs(ENDS, [0.0, 1.0, 0.5]),
)
case("huber_loss 2", nn("huber_loss", delta=2.0, reduction="none"), *pairs(NUMBERS, [0.0, 1.0]))
for _beta in (0.0, 2.0):
    case(
        f"smooth_l1_loss {_beta}",
        nn("smooth_l1_loss", beta=_beta, reduction="none"),
        *pairs(NUMBERS, [0.0, 1.0]),
    )
for _full in (False, True):
    case(
        f"gaussian_nll_loss {_full}",
        nn("gaussian_nll_loss", full=_full, reduction="none"),
        *([0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 1e-6, 1e-7, 1.0]),
    )
case(
    "margin_ranking_loss",
    lambda t, x, y: t.nn.functional.margin_ranking_loss(
        x, y, double(t, [1, -1] * 4), margin=1.0, reduction="none"
    ),
    *([0.0, 1.0, 2.0, 1.0, 0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 2.0, 1.0, 0.0, 0.0, 0.0]),
)
case(
    "hinge_embedding_loss at its margin",
    lambda t, x: t.nn.functional.hinge_embedding_loss(
        x, double(t, [1, -1, -1, -1]), margin=1.0, reduction="none"
    ),
    [0.0, 1.0, 2.0, 0.5],
)
case("triplet_margin_loss", nn("triplet_margin_loss", reduction="none"), ROWS, OTHERS, THIRD)
case(
    "triplet_margin_loss swapped",
    nn("triplet_margin_loss", eps=0.0, swap=True, reduction="none"),
    *(ROWS, OTHERS, THIRD),
)
case(
    "triplet_margin_with_distance_loss",
    nn("triplet_margin_with_distance_loss", reduction="none"),
    *(ROWS, OTHERS, THIRD),
)
_even = [[0.0, 1.0, 1.0], [0.0, 1.0, 0.0], [1.0, 1.0, 2.0]]
for _p in (1, 2):
    case(
        f"multi_margin_loss {_p}",
        lambda t, x, p=_p: t.nn.functional.multi_margin_loss(
            x, t.tensor([0, 1, 1]), p=p, reduction="none"
        ),
        _even,
    )
case(
    "multilabel_margin_loss",
    lambda t, x: t.nn.functional.multilabel_margin_loss(
        x, t.tensor([[0, -1, 0], [1, 2, -1], [-1, 0, 0]]), reduction="none"
    ),
    _even,
)
case(
    "multilabel_soft_margin_loss",
    nn("multilabel_soft_margin_loss", reduction="none"),
    *([[0.0, 100.0, -100.0], [0.0, INF, -INF]], [[0.0, 1.0, 1.0], [0.0, 1.0, 0.0]]),
)
for _name in ("softmax", "log_softmax", "softmin"):
    case(_name, nn(_name, -1), LOGITS)
for _name, _target, _options in (
    ("plain", [0, 1, 2, 0, 1, 2], {}),
    ("ignored", [2, 0, 1, 2, -100, 0], {}),
    ("smoothed", [2, 0, 1, 2, -100, 0], {"label_smoothing": 0.1}),
):
    case(
        f"cross_entropy {_name}",
        lambda t, x, target=_target, options=_options: t.nn.functional.cross_entropy(
            x, t.tensor(target), reduction="none", **options
        ),
        LOGITS,
    )
case(
    "cross_entropy of probabilities",
    nn("cross_entropy", reduction="none"),
    *(LOGITS, [[1.0, 0, 0], [0.0, 1, 0], [0.0, 0, 1], [1.0, 0, 0], [0.0, 1, 0], [0.5, 0.5, 0]]),
)
case(
    "cross_entropy without a weight",
    lambda t, x: t.nn.functional.cross_entropy(
        x, t.tensor([0, 0, 1, 1, 0, 1]), double(t, [0, 1, 2]), reduction="none"
    ),
    LOGITS,
)
for _zero in (False, True):
    case(
        f"ctc_loss without an alignment {_zero}",
        lambda t, x, zero=_zero: t.nn.functional.ctc_loss(
            x.log_softmax(-1), t.tensor([[1, 1, 2], [1, 2, 1]]), (2, 3), (3, 1), zero_infinity=zero
        ),
        [[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]] * 3,
    )

# ------------------------------------------------------------------ lengths and distances

case("cosine_similarity", nn("cosine_similarity"), ROWS, OTHERS)
case("pairwise_distance", nn("pairwise_distance"), ROWS, OTHERS)
for _p in (0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 4.0, INF):
    case(f"pairwise_distance {_p}", nn("pairwise_distance", _p, 0.0), ROWS, OTHERS)
    case(f"cdist {_p}", call_named("", "cdist", _p), ROWS, OTHERS)
    case(f"cdist of itself, squared {_p}", lambda t, x, p=_p: t.cdist(x, x, p) ** 2, ROWS)
    case(f"pdist squared {_p}", lambda t, x, p=_p: t.pdist(x, p) ** 2, ROWS)
    case(f"vector_norm {_p}", call_named("linalg", "vector_norm", _p, -1), ROWS)
    case(f"norm {_p}", call_named("", "norm", _p, -1), ROWS)
    case(f"normalize {_p}", nn("normalize", _p, -1), ROWS)
    if _p:
        case(f"renorm {_p}", call_named("", "renorm", _p, 0, 1.0), ROWS)
        case(f"dist {_p}", call_named("", "dist", _p), ROWS, ROWS)
case("matrix_norm", call_named("linalg", "matrix_norm"), [[0.0, 0.0], [0.0, 0.0]])
case("matrix_norm 1", call_named("linalg", "matrix_norm", 1), [[1.0, -1.0], [0.0, 0.0]])
case("matrix_norm inf", call_named("linalg", "matrix_norm", INF), [[1.0, 0.0], [0.0, 1.0]])
case("det of nothing", call_named("linalg", "det"), [[0.0, 0.0], [0.0, 0.0]])
case("det of rank one", call_named("linalg", "det"), [[1.0, 2.0], [2.0, 4.0]])
case(
    "det of rank one of three", call_named("linalg", "det"), [[1.0, 2, 3], [2.0, 4, 6], [0.0, 0, 0]]
)

# ------------------------------------------------------------------ ties

for _name in (
    "logsumexp logcumsumexp amax amin max min median nanmedian cummax cummin mode sort prod cumprod"
    " std var nanmean nansum cumsum"
).split():
    case(f"{_name} of ties", call_named("", _name, -1), TIES)
for _name in "max min median nanmedian amax amin prod std var nansum".split():
    case(f"{_name} of all", call_named("", _name), [0.0, 1.0, 1.0, 0.0])
case("aminmax", call_named("", "aminmax", dim=-1), FEW)
case("quantile", lambda t, x: t.quantile(x, double(t, [0, 0.25, 0.5, 1]), -1), FEW)
case("nanquantile", call_named("", "nanquantile", 0.5, -1), FEW)
case("kthvalue", lambda t, x: t.kthvalue(x, 2, -1)[0], FEW)
case("topk", lambda t, x: t.topk(x, 2, -1)[0], FEW)
case("std of equals", call_named("", "std", -1, correction=0), [[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
case("std of equals, squared", lambda t, x: t.std(x, -1) ** 2, [[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
case("std_mean", call_named("", "std_mean", -1), [[1.0, 1.0], [2.0, 2.0], [0.0, 1.0]])
case("cov", call_named("", "cov"), [[1.0, 1.0], [2.0, 3.0], [0.0, 1.0]])
for _name in ("sum", "prod", "mean", "amax", "amin"):
    for _self in (False, True):
        case(
            f"scatter_reduce {_name} {_self}",
            lambda t, x, s, name=_name, self=_self: t.scatter_reduce(
                x, 0, t.tensor([0, 0, 1]), s, name, include_self=self
            ),
            *([1.0, 0.0], [1.0, 1.0, 0.0]),
        )
case(
    "embedding_bag max",
    lambda t, w: t.nn.functional.embedding_bag(
        t.tensor([0, 1, 1, 2]), w, t.tensor([0, 2]), mode="max"
    ),
    [[0.0, 1.0], [0.0, 1.0], [0.0, 0.0]],
)
case("layer_norm of equals", nn("layer_norm", (3,)), [[1.0, 1.0, 1.0], [0.0, 1.0, 2.0]])
case("rms_norm of nothing", nn("rms_norm", (3,)), [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
case("batch_norm of equals", nn("batch_norm", None, None, training=True), [[1.0, 1.0], [1.0, 2.0]])
case("group_norm of equals", nn("group_norm", 1), [[[1.0, 1.0]], [[0.0, 2.0]]])
case("instance_norm of equals", nn("instance_norm"), [[[1.0, 1.0]], [[0.0, 2.0]]])
case("trapezoid", call_named("", "trapezoid"), [0.0, 1.0, 2.0], [0.0, 0.0, 1.0])

# ------------------------------------------------------------------ windows and places

for _name, _image in (("", IMAGE), (" endless", ENDLESS)):
    case(f"max_pool2d{_name}", nn("max_pool2d", 2, 1, 1), _image)
    case(f"max_pool2d dilated{_name}", nn("max_pool2d", 2, 1, 1, 2, True), _image)
    case(f"adaptive_max_pool2d{_name}", nn("adaptive_max_pool2d", 3), _image)
    case(f"avg_pool2d{_name}", nn("avg_pool2d", 3, 2, 1, True, False), _image)
    for _p in (1.0, 2.0, 3.0):
        case(f"lp_pool2d {_p}{_name}", nn("lp_pool2d", _p, 2), _image)
    for _mode in ("constant", "reflect", "replicate", "circular"):
        case(f"pad {_mode}{_name}", nn("pad", (2, 1, 1, 2), _mode), _image)
    case(f"pad cut{_name}", nn("pad", (-1, 2, 1, -2)), _image)
for _mode, _options in (
    ("nearest", {}),
    ("area", {}),
    ("nearest-exact", {}),
    *(
        (mode, {"align_corners": corners, "antialias": smooth})
        for mode in ("bilinear", "bicubic")
        for corners in (None, True, False)
        for smooth in (False, True)
    ),
):
    for _size in ((7, 3), (1, 1)):
        case(
            f"interpolate {_mode} {_size} {list(_options.values())}",
            nn("interpolate", size=_size, mode=_mode, **_options),
            IMAGE,
        )
for _mode, _padding, _corners in itertools.product(
    ("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"), (True, False)
):
    case(
        f"grid_sample {_mode} {_padding} {_corners}",
        nn("grid_sample", _mode, _padding, _corners),
        *(IMAGE, GRID),
    )
case(
    "attention with nothing to attend to",
    lambda t, q, m: t.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=m),
    *([[[0.0, 1.0], [1.0, 0.0]]], [[0.0, -INF], [-INF, -INF]]),
)

# ------------------------------------------------------------------ the comparison

PRELU = "PyTorch's gradient takes a zero for negative, the derivative of it for positive"
NORMS = "PyTorch's third derivative disagrees with differences of its second"
OTHERWISE: dict[str, tuple[int, str]] = {
    "binary_cross_entropy": (2, "PyTorch adds 1e-12 to denominators that its gradient does not"),
    "prelu": (2, PRELU),
    "polar": (1, "the derivative by a length of zero is the direction, not 0"),
    "logcumsumexp of ties": (2, "PyTorch's loses what is small beside 1e300"),
    "cumprod of ties": (3, "of an infinite factor"),
    **dict.fromkeys(
        ["scatter_reduce amax False", "scatter_reduce amin False"],
        (1, "PyTorch shares the gradient with a self that takes no part"),
    ),
    "copysign": (1, "the slope at infinity is 1, not NaN"),
    "soft_margin_loss": (1, "the slope at minus infinity is -1, not NaN"),
    "special.i1": (3, "PyTorch's is 0 at 0, where it is 3/8"),
    "special.erfcx": (1, "it ends in 0 and infinity, not NaN"),
    "gammainc": (1, "the density at 0 is 1, not NaN"),
    **dict.fromkeys(
        [f"{name}_norm of equals" for name in ("layer", "batch", "instance")], (3, NORMS)
    ),
    "det of rank one": (3, "it is a polynomial of the second degree"),
    "det of rank one of three": (3, "PyTorch's is not exact"),
}
"""Case -> the order from which our numbers differ, and why."""


def plain(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().resolve_neg().clone().numpy(force=True)


def derivatives(t: Any, make: Make, values: tuple[Values, ...], order: int) -> list[Any]:
    """The derivatives up to an order by each argument. Each order differentiates a weighted sum of
    the one before; the last records no graph.
    """
    leaves = [t.tensor(v, dtype=t.float64, requires_grad=True) for v in values]
    made = make(t, *leaves)
    found = list(made) if isinstance(made, (tuple, list)) else [made]
    for k in range(1, order + 1):
        found = [x for x in found if x is not None and x.requires_grad]
        if not found:
            return [np.zeros(leaf.shape) for leaf in leaves]
        weights = [
            t.linspace(1.0, 1.75, x.numel(), dtype=t.float64).reshape(x.shape) for x in found
        ]
        found = list(
            t.autograd.grad(found, leaves, weights, create_graph=k < order, allow_unused=True)
        )
    gradients = zip(map(plain, found), leaves, strict=True)
    return [np.zeros(leaf.shape) if g is None else g for g, leaf in gradients]


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("name", CASES)
def test_gradients_at_the_bounds(name: str, order: int) -> None:
    make, values = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = derivatives(pygrad, make, values, order)
        try:
            theirs = derivatives(torch, make, values, order)
        except (RuntimeError, NotImplementedError) as error:
            assert "not implemented" in str(error), error
            return
    if order >= OTHERWISE.get(name, (4, ""))[0]:
        return
    for a, b in zip(mine, theirs, strict=True):
        b = np.where(np.isnan(b), a, b) if order > 1 else b
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", OTHERWISE)
def test_what_differs_does(name: str) -> None:
    make, values = CASES[name]
    order, reason = OTHERWISE[name]
    mine, theirs = (derivatives(t, make, values, order) for t in (pygrad, torch))
    pairs = zip(mine, theirs, strict=True)
    assert not all(np.allclose(a, b, 1e-7, 1e-9, equal_nan=True) for a, b in pairs), reason
