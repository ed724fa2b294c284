"""Every differentiable op against central differences, in float64: first order, then second
order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    STRIDES_ARE_ITS_ARGUMENT,
    UNINITIALISED,
    assert_same,
    differentiable_outputs,
    floating,
    leaves_nothing,
    run,
    sweep_entries,
    with_grad,
)
from samples import Entry
from sampling import Array, Call, X, fill_sample, numbers

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

STEP = 1e-6
NO_DERIVATIVE = "PyTorch has none either, by one of its inputs"
DIRECTIONS = 3
NOT_BY_DIFFERENCES = {
    **dict.fromkeys(("detach", "detach_", "requires_grad_"), "cuts the graph on purpose"),
    **dict.fromkeys(
        ("fill_diagonal_", "randint_like", "rand_like", "randn_like"), "no gradient flows"
    ),
    "nextafter": "the step is far larger than what it does",
    "view": "one sample reinterprets bits",
    **dict.fromkeys(
        [
            "igamma",
            "igammac",
            "gammainc",
            "gammaincc",
            "zeta",
            "floor_divide",
            "bincount",
            "_chunk_cat",
        ],
        NO_DERIVATIVE,
    ),
    **dict.fromkeys(["unique", "unique_consecutive", "binomial", "remainder"], NO_DERIVATIVE),
    **dict.fromkeys(["geqrf", "ldl_factor", "ldl_factor_ex", "ldl_solve"], NO_DERIVATIVE),
    "normal": "the stream of numbers depends on the values",
    **dict.fromkeys(  # that of the first has none
        ["_standard_gamma", "_standard_gamma_grad", "_sample_dirichlet", "_dirichlet_grad"],
        NO_DERIVATIVE,
    ),
    "bernoulli": NO_DERIVATIVE,
    "set_": NO_DERIVATIVE,
    **dict.fromkeys(["to", "type_as", "float", "half", "bfloat16", "cfloat", "chalf"], "rounds"),
    "nn.functional.embedding": "a padding row has no gradient by definition",
    "as_strided_scatter": "PyTorch's gradient is no derivative: parity/test_ops.py",
    "embedding_renorm_": NO_DERIVATIVE,
    "bernoulli_": "a step function of its input",
    "cholesky_inverse": "all of a factor has a gradient, as in PyTorch, though a triangle is read",
    "ctc_loss": "its gradient takes the input for a log_softmax, as PyTorch's",
    "gumbel_softmax": "what is hard has the gradient of what is soft",
}


def inputs(sample: Call) -> list[Array]:
    """The sample's arrays; salts as in `sampling.build`."""
    return [numbers(what, "float64", salt) for salt, what in enumerate(sample.tensors(), 1)]


def weights(tensors: list[Any], seed: int) -> list[Any]:
    """Fixed numbers to make one number of several tensors."""
    rng = np.random.default_rng(seed)
    return [pygrad.from_numpy(np.asarray(rng.uniform(0.5, 1.5, t.shape))) for t in tensors]


def in_reals(tensor: Any) -> Any:
    """Its elements, of complex ones both parts."""
    return pygrad.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def contract(tensors: list[Any], seed: int) -> Any:
    """Sum of the tensors' elements, each with a weight of its own."""
    total = pygrad.zeros((), dtype=pygrad.float64)
    tensors = [in_reals(tensor) for tensor in tensors]
    for tensor, weight in zip(tensors, weights(tensors, seed), strict=True):
        total = total + (tensor * weight).sum()
    return total


def outputs(entry: Entry, sample: Call, arrays: list[Array]) -> tuple[list[Any], list[Any]]:
    """The differentiable outputs, and the inputs that require grad."""
    made = with_grad(sample, arrays)
    result = run(entry, *fill_sample(sample, made))
    return differentiable_outputs(entry, result, made), [t for t in made if t.requires_grad]


def gradients(entry: Entry, sample: Call, arrays: list[Array]) -> tuple[list[Any], list[Any]]:
    """First-order gradients with a graph of their own, and the inputs."""
    found, wanted = outputs(entry, sample, arrays)
    return list(
        pygrad.autograd.grad(contract(found, 1), wanted, create_graph=True, materialize_grads=True)
    ), wanted


def assert_slopes(
    sample: Call, function: Any, arrays: list[Array], got: list[Any], atol: float
) -> None:
    """The gradients of a function of arrays agree with central differences, for each floating array
    along directions that move all of its elements."""
    free = enumerate(zip(arrays, sample.tensors(), strict=True))
    floating = [k for k, (a, what) in free if a.dtype == np.float64 and not what.constant]
    rng = np.random.default_rng(7)
    for k, gradient in zip(floating, got, strict=True):
        for _ in range(DIRECTIONS):
            direction = rng.uniform(-1, 1, arrays[k].shape)
            if sample.tensors()[k].kind == "definite":  # stay symmetric
                direction = direction + np.swapaxes(direction, -1, -2)
            above, below = list(arrays), list(arrays)
            above[k] = np.asarray(arrays[k] + STEP * direction)
            below[k] = np.asarray(arrays[k] - STEP * direction)
            slope = (function(above) - function(below)) / (2 * STEP)
            mine = float((gradient.detach().numpy() * direction).sum())
            np.testing.assert_allclose(mine, slope, rtol=1e-4, atol=atol, err_msg=f"input {k}")


def differentiable(entry: Entry) -> bool:
    return not {entry.id, entry.name} & {*UNINITIALISED, *NOT_BY_DIFFERENCES}


@sweep_entries(lambda entry: entry.name not in UNINITIALISED)
@leaves_nothing
def test_floating_results_of_floating_inputs_have_a_history(entry: Entry, sample: Call) -> None:
    """All but those of the ops in WITHOUT_HISTORY, which have none."""
    outputs(entry, sample, inputs(sample))


@sweep_entries(differentiable)
@leaves_nothing
def test_gradient(entry: Entry, sample: Call) -> None:
    arrays = inputs(sample)
    found, wanted = outputs(entry, sample, arrays)
    if not found:
        pytest.skip("nothing is differentiable")
    got = pygrad.autograd.grad(contract(found, 1), wanted, materialize_grads=True)

    def value(arrays: list[Array]) -> float:
        return float(contract(outputs(entry, sample, arrays)[0], 1).item())

    assert_slopes(sample, value, arrays, got, 1e-6)


@sweep_entries(differentiable)
@leaves_nothing
def test_second_order_gradient(entry: Entry, sample: Call) -> None:
    arrays = inputs(sample)
    if not outputs(entry, sample, arrays)[0]:
        pytest.skip("nothing is differentiable")
    first, wanted = gradients(entry, sample, arrays)
    total = contract(first, 2)
    if total.requires_grad:
        got = list(pygrad.autograd.grad(total, wanted, materialize_grads=True))
    else:  # which says that the gradient is the same everywhere
        got = [pygrad.zeros_like(each) for each in wanted]

    def value(arrays: list[Array]) -> float:
        return float(contract(gradients(entry, sample, arrays)[0], 2).item())

    assert_slopes(sample, value, arrays, got, 1e-5)


def takes_expanded(entry: Entry) -> bool:
    named = entry.mutates or entry.name in STRIDES_ARE_ITS_ARGUMENT
    return differentiable(entry) and not named


@sweep_entries(takes_expanded)
def test_gradient_of_expanded_input_has_its_shape(entry: Entry, sample: Call) -> None:
    """A gradient that comes back through an expand is summed to the smaller shape."""
    arrays = inputs(sample)
    if any(what.kind == "definite" for what in sample.tensors()):
        pytest.skip("a matrix of equal rows is singular")
    small = [a[:1].copy() if a.ndim and a.dtype == np.float64 else a for a in arrays]
    made = with_grad(sample, small)
    wide = [t.expand(a.shape) for t, a in zip(made, arrays, strict=True)]
    try:
        result = run(entry, *fill_sample(sample, wide))
    except PROPER_ERRORS as error:
        with pytest.raises(type(error)):
            run(entry, *fill_sample(sample, [t.clone() for t in wide]))
        return
    found = differentiable_outputs(entry, result, wide)
    if not found:
        pytest.skip("nothing is differentiable")
    contract(found, 1).backward()
    for tensor in made:
        assert tensor.grad is None or tensor.grad.shape == tensor.shape


WRITES_NOTHING = {"transpose_", "swapaxes_", "swapdims_", "t_", "as_strided_", "detach_"}
"""In place, but what changes is which part of the base a view is; or that it is one."""


def writes(entry: Entry) -> bool:
    named = entry.name in WRITES_NOTHING | UNINITIALISED
    return not named and (entry.mutates or "inplace" in entry.words)


@sweep_entries(writes)
@leaves_nothing
def test_write_to_a_view_has_the_gradient_of_a_write_to_a_whole(entry: Entry, sample: Call) -> None:
    """Whether the op has a gradient, one of zero, or none; the rest of the base keeps its own."""
    write = getattr(pygrad.Tensor, entry.name.removesuffix("_") + "_", None)
    if write is None or not isinstance(sample.args[0], X):
        pytest.skip("no such method for these arguments")

    def gradients(of_a_view: bool) -> Any:
        made = with_grad(sample, inputs(sample))
        args, kwargs = fill_sample(sample, made)
        whole = args[0] * 1
        base = pygrad.stack([whole, whole])
        args[0] = base[1] if of_a_view else whole
        pygrad.manual_seed(0)
        try:
            write(*args, **kwargs)
            found = [base[0], base[1], args[0]] if of_a_view else [made[0] * 1, whole, whole]
            wanted = [each for each in made if each.requires_grad]
            total = contract(floating(found), 1)
            return pygrad.autograd.grad(total, wanted, materialize_grads=True)
        except PROPER_ERRORS as error:
            return type(error)

    assert_same(gradients(True), gradients(False), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gradient_has_the_dtype_of_its_input(dtype: str) -> None:
    x = pygrad.ones(3, dtype=getattr(pygrad, dtype), requires_grad=True)
    (x.double() * 2 + x.float() + x).sum().backward()
    assert x.grad.dtype == x.dtype
    assert x.grad.tolist() == [4.0, 4.0, 4.0]
