"""float16 and bfloat16 against PyTorch: promotion, every op of the sweep with its gradients, what
nodes keep, random numbers, training.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers import UNINITIALISED, sweep_entries
from oracle import function, is_tensor, leaves, normalize_message, outcome, result_or_error, torch
from samples import Entry
from sampling import Call, build

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

HALVES = {"float16": 2e-2, "bfloat16": 8e-2}
"""How near results must be: two libraries round sums of rounded numbers."""
DTYPES = (
    "uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex32 complex64 complex128"
    " bool uint16 uint32 uint64"
).split()

APART = {
    "special.i1": "PyTorch has no loop for the gradient",
    "special.i1e": "PyTorch has no loop for the gradient",
    "angle": "complex32 is computed here, and refused by PyTorch",
    "nuclear_norm": "refused by both, in other words",
    "stft": "refused by both, in other words",
    "_standard_gamma": "drawn by PyTorch in half, refused here",
    "_standard_gamma_grad": "computed by PyTorch in half, refused here",
    "_sample_dirichlet": "drawn by PyTorch in half, refused here",
    "_dirichlet_grad": "computed by PyTorch in half, refused here",
    "vander": "PyTorch writes over what it saved",
    "native_channel_shuffle": "PyTorch has no derivative",
    "histc": "bins at an edge: PyTorch divides in the half type",
    "gradient": "PyTorch rounds after each step of a difference of near numbers",
    "histogram": "refused for its dtype, in PyTorch for its gradient",
    "histogramdd": "refused for its dtype, in PyTorch for its gradient",
    "linalg.matrix_exp": "PyTorch gives NaNs",
    "matrix_exp": "PyTorch gives NaNs",
    "nn.functional.grid_sample": "rounded after each step, in another order",
    "svd_lowrank": "refused by the decomposition, in PyTorch by a product",
    "pca_lowrank": "refused by the decomposition, in PyTorch by a product",
    "nn.functional.multi_margin_loss": "refused for its dtype, in PyTorch for its weight",
}
"""Op -> why pygrad and PyTorch differ."""


def is_compared(entry: Entry) -> bool:
    return function(entry, torch) is not None and entry.id not in APART


def dtype_named(t: Any, name: str) -> Any:
    return getattr(t, name, None) or getattr(pygrad._ground.dtypes, name)


BESIDE_A_NUMBER = (
    "add sub mul div floor_divide pow fmod remainder atan2 maximum fmin hypot copysign"
    " eq ne lt le gt ge hardshrink"
).split()
NUMBERS = ["Python's", "a tensor's", "an integer tensor's"]
PAIRS = [*product(BESIDE_A_NUMBER, NUMBERS)]
PAIRS.remove(("floor_divide", "an integer tensor's"))  # PyTorch rounds after each of its steps


@pytest.mark.parametrize(("op", "number"), PAIRS)
@pytest.mark.parametrize("half", HALVES)
def test_a_number_is_rounded_where_pytorch_rounds_it(half: str, op: str, number: str) -> None:
    def run(t: Any) -> list[Any]:
        f = getattr(t.nn.functional if op == "hardshrink" else t, op)
        dtype = dtype_named(t, half)
        near = t.tensor(0.3, dtype=dtype).item()
        x = (t.arange(1, 400) / 97).to(dtype)
        x[5], x[6] = near, -near
        found = []
        for value in (0.3, near + 1e-5, near - 1e-5):
            other: Any = value
            if number == "a tensor's":
                other = t.tensor(value, dtype=t.float64)
            if number == "an integer tensor's":
                other = t.arange(257, 656)  # most of them are no numbers of bfloat16
            sides = (result_or_error(partial(f, x, other)), result_or_error(partial(f, other, x)))
            found += [str(y.tolist()) if is_tensor(y) else "refused" for y in sides]
        return found

    assert run(pygrad) == run(torch)


@pytest.mark.parametrize(("first", "second"), [*product(DTYPES, DTYPES)])
def test_two_dtypes_promote_as_in_pytorch(first: str, second: str) -> None:
    def run(t: Any) -> list[Any]:
        a, b = dtype_named(t, first), dtype_named(t, second)
        pairs = [
            (t.ones(2, dtype=a), t.ones(2, dtype=b)),
            (t.ones(2, dtype=a), t.ones((), dtype=b)),
            (t.ones((), dtype=a), t.ones((), dtype=b)),
        ]
        return [
            *(result_or_error(lambda x=x, y=y: str(t.result_type(x, y))) for x, y in pairs),
            result_or_error(lambda: t.can_cast(a, b)),
            result_or_error(lambda: str(t.promote_types(a, b))),
        ]

    assert run(pygrad) == run(torch)


@pytest.mark.parametrize(("dtype", "number"), [*product(DTYPES, [True, 2, 2.5, 1j])])
def test_a_dtype_promotes_with_numbers_as_in_pytorch(dtype: str, number: Any) -> None:
    def run(t: Any) -> list[Any]:
        made = [t.ones(size, dtype=dtype_named(t, dtype)) for size in (2, ())]
        return [result_or_error(lambda x=x: str(t.result_type(x, number))) for x in made]

    assert run(pygrad) == run(torch)


def ran(entry: Entry, sample: Call, dtype: str, library: Any) -> list[Any]:
    """The results of a call on half tensors, and gradients of a sum of them."""

    def make(array: Any) -> Any:
        made = library.from_numpy(array.copy())
        if made.dtype != library.float32:
            return made
        return made.to(getattr(library, dtype)).requires_grad_()

    args, kwargs = build(sample, "float32", make, library)
    library.default_generator.manual_seed(0)
    if entry.mutates:
        args = [args[0].clone(), *args[1:]]
    results = leaves(function(entry, library)(*args, **kwargs))
    found = [t for t in results if is_tensor(t) and t.requires_grad]
    wanted = [t for t in leaves([args, kwargs]) if is_tensor(t) and t.requires_grad and t.is_leaf]
    if not found or not wanted or entry.name in UNINITIALISED:
        return results
    total = sum(
        (t.double() * (1 + library.arange(t.numel()).view(t.shape) % 3)).sum() for t in found
    )
    return [*results, *library.autograd.grad(total, wanted, allow_unused=True)]


@pytest.mark.parametrize("dtype", HALVES)
@sweep_entries(is_compared)
def test_op_is_pytorchs_with_half_operands(entry: Entry, sample: Call, dtype: str) -> None:
    mine, theirs = (outcome(lambda t=t: ran(entry, sample, dtype, t)) for t in (pygrad, torch))
    assert (mine.error, normalize_message(mine.message)) == (
        theirs.error,
        normalize_message(theirs.message),
    )
    for a, b in zip(mine.values, theirs.values, strict=True):
        if not is_tensor(b):
            assert is_tensor(a) == is_tensor(b)
            continue
        assert str(a.dtype) == str(b.dtype)
        assert tuple(a.shape) == tuple(b.shape)
        if entry.name not in UNINITIALISED:
            close = HALVES[dtype]
            np.testing.assert_allclose(*(np.array(wide(t)) for t in (a, b)), close, close)


def wide(t: Any) -> Any:
    """The elements, which NumPy has no type for."""
    return t.detach().tolist() if t.is_complex() else t.detach().double().tolist()


@pytest.mark.parametrize("dtype", HALVES)
def test_nodes_keep_half_tensors_and_pass_half_gradients_on(dtype: str) -> None:
    def run(t: Any) -> list[Any]:
        x = t.tensor([[1.5, 2.25, -3.0], [0.1, 0.2, 7.0]], dtype=getattr(t, dtype))
        x.requires_grad_()
        packed: list[str] = []
        passed: list[str] = []
        with t.autograd.graph.saved_tensors_hooks(
            lambda s: (packed.append(str(s.dtype)), s)[1], lambda s: s
        ):
            y = x.softmax(1).logsumexp(0).cumsum(0)
            y = t.nn.functional.layer_norm(y, [3])
        y.grad_fn.register_hook(lambda gi, go: passed.append(str(go[0].dtype)))
        first = t.autograd.grad(y.square().sum(), x, create_graph=True)[0]
        second = t.autograd.grad(first.square().sum(), x)[0]
        softmax = x.softmax(1)
        return [
            packed[:4],
            passed,
            str(first.dtype),
            str(second.dtype),
            y.grad_fn.name(),
            str(softmax.grad_fn._saved_result.dtype),
            str(x.logsumexp(0).grad_fn._saved_self.dtype),
        ]

    assert run(pygrad) == run(torch)


@pytest.mark.parametrize("dtype", HALVES)
def test_tangents_of_half_tensors_are_pytorchs(dtype: str) -> None:
    def run(t: Any) -> list[Any]:
        x = t.tensor([[1.5, 2.25, -3.0], [0.1, 0.2, 2.0]], dtype=getattr(t, dtype))
        tangents = []
        for f in (
            lambda v: v.softmax(1),
            lambda v: v.logsumexp(1),
            lambda v: v @ v.T,
            lambda v: v.var(1),
            lambda v: t.nn.functional.layer_norm(v, [3]),
            lambda v: v.sort(1)[0],
            lambda v: v.cumsum(0),
        ):
            value, tangent = t.func.jvp(f, (x,), (x.cos(),))
            assert value.dtype == tangent.dtype == x.dtype
            tangents.append(tangent.float().flatten().tolist())
        return tangents

    close = HALVES[dtype]
    for a, b in zip(run(pygrad), run(torch), strict=True):
        np.testing.assert_allclose(a, b, close, close)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("n", [5, 16, 20, 300])
def test_random_half_numbers_are_pytorchs(dtype: str, n: int) -> None:
    def run(t: Any) -> list[Any]:
        d = getattr(t, dtype)
        t.manual_seed(3)
        return [
            made.float().tolist()
            for made in (
                t.rand(n, dtype=d),
                t.randn(n, dtype=d),
                t.empty(n, dtype=d).random_(),
                t.empty(n, dtype=d).exponential_(),
                t.bernoulli(t.full((n,), 0.3, dtype=d)),
                t.randint(0, 9, (n,), dtype=d),
                t.nn.functional.dropout(t.ones(n, dtype=d)),
            )
        ]

    assert run(pygrad) == run(torch)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "optimizer",
    [
        ("SGD", {"lr": 0.1, "momentum": 0.9}),
        ("Adam", {"lr": 0.1, "eps": 1e-3}),
        ("AdamW", {"lr": 0.1, "eps": 1e-3}),
        ("RMSprop", {"lr": 0.01, "eps": 1e-3}),
        ("Adagrad", {"lr": 0.1}),
    ],
    ids=lambda o: o[0],
)
def test_a_half_module_trains_as_in_pytorch(dtype: str, optimizer: Any) -> None:
    def run(t: Any) -> list[float]:
        t.manual_seed(0)
        model = t.nn.Sequential(
            t.nn.Linear(4, 8), t.nn.LayerNorm(8), t.nn.GELU(), t.nn.Linear(8, 1)
        )
        model = model.half() if dtype == "float16" else model.bfloat16()
        assert {str(p.dtype) for p in model.parameters()} == {f"torch.{dtype}"}
        name, options = optimizer
        steps = getattr(t.optim, name)(model.parameters(), **options)
        x = t.linspace(-1, 1, 24).view(6, 4).to(getattr(t, dtype))
        for _ in range(4):
            steps.zero_grad()
            loss = t.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            loss.backward()
            steps.step()
        return [v for p in model.parameters() for v in p.float().flatten().tolist()]

    np.testing.assert_allclose(run(pygrad), run(torch), 0.1, 0.06)


def test_the_default_dtype_may_be_half() -> None:
    def run(t: Any, d: str) -> list[Any]:
        t.set_default_dtype(getattr(t, d))
        try:
            made = (
                t.rand(2),
                t.arange(0.0, 1, 0.3),
                t.linspace(0, 1, 3),
                t.eye(2),
                t.full((2,), 0.1),
                t.tensor([1, 2]) / 3,
                t.tensor(0.5),
                t.tensor([1, 2]).sqrt(),
                t.empty(0).mean(),
            )
            return [(str(x.dtype), x.float().nan_to_num().tolist()) for x in made[1:]] + [
                str(made[0].dtype)
            ]
        finally:
            t.set_default_dtype(t.float32)

    for d in HALVES:
        assert run(pygrad, d) == run(torch, d)


@pytest.mark.parametrize("dtype", HALVES)
def test_limits_of_half_types_are_pytorchs(dtype: str) -> None:
    def run(t: Any) -> list[Any]:
        info = t.finfo(getattr(t, dtype))
        return [info.bits, info.eps, info.max, info.min, info.tiny, info.resolution, info.dtype]

    assert run(pygrad) == run(torch)
