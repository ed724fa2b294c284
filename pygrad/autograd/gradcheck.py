"""Gradients checked against finite differences: of functions, and of their gradients.

The engine does the checks (wasm_core/walk/gradcheck.c): the first failing check raises, and names
the output and the input, with both Jacobians. This module calls the functions for the engine.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from typing import Any

from .._boundary import callbacks
from .._table import functions as _functions
from .._tensor.base import Tensor
from .._transforms.older_vmap import _vmap
from . import forward_ad
from ._gradients import grad as _grad

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]

_C, _F = _functions.C, _functions.SPACES["torch"]
_requires_grad = attrgetter("requires_grad")
_BATCHED = (
    "gradcheck or gradgradcheck failed while testing batched gradient computation.\n"
    "It computes several gradients by one backward over a batch (vmap), and compares them with "
    "those of single\nbackwards. `check_batched_grad=False` turns the test off; the most common "
    "cause is an operation in the\nbackward that cannot be batched."
)
_BATCHED_FORWARD = (
    "\ngradcheck failed while testing batched gradient computation with forward-mode AD.\n"
    "It pushes several tangents forward as one batch (vmap), and compares them with single ones. "
    "\n`check_batched_forward_grad=False` turns the test off.\n"
)


class GradcheckError(RuntimeError):
    """The error of a failed check of `gradcheck` or `gradgradcheck`.

    Example:
        >>> from pygrad.autograd.gradcheck import GradcheckError
        >>> issubclass(GradcheckError, RuntimeError)
        True
    """


# ------------------------------------------------------------------ functions for the engine


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _tensors(values: Iterable[Any]) -> list[Any]:
    return [value if isinstance(value, Tensor) else None for value in values]


@contextmanager
def _keep_function(function: Callable[..., Any] | None) -> Iterator[int]:
    """Gives a function a number in the engine for the scope; 0 for None."""
    ident = 0 if function is None else callbacks.keep_object(function)
    try:
        yield ident
    finally:
        callbacks.drop_object(ident)


def _caller(func: Callable[..., Any], points: tuple[Any, ...]) -> Callable[..., tuple[Any, ...]]:
    """A function of tensors that the engine puts in place of the points; None: the point itself."""

    def call(*tensors: Any) -> tuple[Any, ...]:
        pairs = zip(points, tensors, strict=True)
        results = _as_tuple(func(*(x if t is None else t for x, t in pairs)))
        list(map(_requires_grad, results))  # fails for a result that is no tensor
        return results

    return call


def _check(
    func: Callable[..., Any],
    points: tuple[Any, ...],
    raise_exception: bool,
    *options: Any,
    batched: Callable[..., Any] | None = None,
    batched_forward: Callable[..., Any] | None = None,
) -> bool:
    """Runs the engine's check; raises or returns its verdict."""
    try:
        verdict = _verdict(
            _caller(func, points), batched, batched_forward, _tensors(points), *options
        )
        if verdict is not None:
            raise GradcheckError(verdict)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _verdict(func: Any, batched: Any, batched_forward: Any, *options: Any) -> str | None:
    try:
        with (
            _keep_function(func) as ident,
            _keep_function(batched) as check,
            _keep_function(batched_forward) as forward,
        ):
            verdict: str | None = _C["_gradcheck"](ident, *options, check, forward)
            return verdict
    except RuntimeError as error:
        note = _C["_gradcheck_note"]()  # the check's message for this error
        if note is None:
            raise
        raise GradcheckError(note) from error


# ------------------------------------------------------------------ batches


def _compare_batched_backward(*given: Any) -> tuple[Any, ...]:
    """Two gradients by one batched backward, beside two by single ones: gradients of the outputs
    before the None by the inputs after it.
    """
    at = next(i for i, t in enumerate(given) if t is None)
    recorded, wanted = given[:at], given[at + 1 :]
    for i, output in enumerate(recorded):

        def pull_back(g: Any, batched: bool = False, output: Any = output) -> list[Any]:
            grads = _grad(
                output, wanted, g, retain_graph=True, allow_unused=True, is_grads_batched=batched
            )
            lead = (2,) if batched else ()
            return [
                x.new_zeros((*lead, *x.shape)) if grad is None else grad
                for grad, x in zip(grads, wanted, strict=True)
            ]

        cotangents = [_F["randn_like"](output) for _ in range(2)]
        pull_batch = partial(pull_back, batched=True)
        for j, results in enumerate(_pairs(pull_back, pull_batch, cotangents, _BATCHED)):
            _expect_close(i, j, _BATCHED, *results)
    return ()


def _compare_batched_forward(
    func: Callable[..., Any], inputs: tuple[Any, ...], *_: Any
) -> tuple[Any, ...]:
    """Two tangents pushed forward as one batch, beside two single ones."""
    for place, x in enumerate(inputs):
        if not isinstance(x, Tensor) or not x.requires_grad:
            continue

        def push(tangent: Any, place: int = place) -> tuple[Any, ...]:
            given = [a.detach() if isinstance(a, Tensor) else a for a in inputs]
            with forward_ad.dual_level():
                given[place] = forward_ad.make_dual(given[place], tangent)
                outputs = [y for y in _as_tuple(func(*given)) if y.dtype._inexact]
                parts = map(forward_ad.unpack_dual, outputs)
                return tuple(_F["zeros_like"](p) if t is None else t for p, t in parts)

        tangents = [_F["randn_like"](x) for _ in range(2)]
        for k, results in enumerate(_pairs(push, _vmap(push), tangents, _BATCHED_FORWARD)):
            _expect_close(k, k, _BATCHED_FORWARD, *results)
    return ()


def _pairs(
    single: Callable[[Any], Any], batched: Callable[[Any], Any], given: list[Any], note: str
) -> Iterator[tuple[Any, Any]]:
    """Yields each result of a function of a batch beside the stacked results of single calls."""
    singles = [single(each) for each in given]
    expected = [_F["stack"](results) for results in zip(*singles, strict=True)]
    try:
        got = batched(_F["stack"](given))
    except RuntimeError as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\n\n{note}"
        ) from error
    return zip(got, expected, strict=True)


def _expect_close(output: int, input_: int, note: str, got: Any, expected: Any) -> None:
    if got.layout is not expected.layout or not _F["allclose"](got, expected):
        raise GradcheckError(
            f"For output {output} and input {input_}:\n\n{note}\n\nGot:\n{got}\n\n"
            f"Expected:\n{expected}"
        )


# ------------------------------------------------------------------ the checks


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Compares the gradients of a function with finite differences.

    The defaults are for float64 and complex128; test a function where it is smooth. For complex
    functions the imaginary parts of the outputs are checked, then the real parts; in forward mode
    also the parts of the inputs.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple; those that require grad are checked, and must not overlap
            themselves.
        eps: the step of the finite differences.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        raise_exception: raise where a check fails, instead of returning False.
        nondet_tol: how far two runs of one backward may differ.
        check_undefined_grad: check that gradients which do not arrive count as zeros.
        check_grad_dtypes: check that gradients have the dtypes of their inputs.
        check_batched_grad: check a batched backward too.
        check_batched_forward_grad: check a batch of tangents too.
        check_forward_ad: check forward mode.
        check_backward_ad: check backward.
        fast_mode: compare one random combination of each Jacobian's elements instead of all.
        masked: compare what should be zero with a tolerance.

    Returns:
        True; False if a check failed and `raise_exception` is.

    Raises:
        GradcheckError: a check failed; names the output and the input, with both Jacobians.
        ValueError: no input requires grad.
        AssertionError: the arguments do not go together.

    Example:
        >>> import pygrad
        >>> x = pygrad.rand(3, dtype=pygrad.float64, requires_grad=True)
        >>> pygrad.autograd.gradcheck(lambda x: (x.exp() * x).sum(), x)
        True
    """
    points = _as_tuple(inputs)
    return _check(
        func,
        points,
        raise_exception,
        False,
        None,
        False,
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        check_forward_ad,
        check_backward_ad,
        fast_mode,
        bool(masked),
        batched=_compare_batched_backward if check_batched_grad else None,
        batched_forward=(
            partial(_compare_batched_forward, func, points) if check_batched_forward_grad else None
        ),
    )


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    gen_non_contig_grad_outputs: bool = False,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_fwd_over_rev: bool = False,
    check_rev_over_rev: bool = True,
    fast_mode: bool = False,
    masked: bool = False,
) -> bool:
    """Compares the gradients of a function's gradients with finite differences.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple.
        grad_outputs: the gradients from which the first backward starts; random if left out. Their
            own derivatives are checked too, if they require grad.
        eps: the step of the finite differences.
        atol: the absolute tolerance.
        rtol: the relative tolerance.
        gen_non_contig_grad_outputs: make the random `grad_outputs` not contiguous.
        raise_exception: raise where a check fails, instead of returning False.
        nondet_tol: how far two runs of one backward may differ.
        check_undefined_grad: check that gradients which do not arrive count as zeros.
        check_grad_dtypes: check that gradients have the dtypes of their inputs.
        check_batched_grad: check a batched backward too.
        check_fwd_over_rev: check forward mode through the backward.
        check_rev_over_rev: check backward through the backward.
        fast_mode: compare one random combination of each Jacobian's elements instead of all.
        masked: compare what should be zero with a tolerance.

    Returns:
        True; False if a check failed and `raise_exception` is.

    Raises:
        GradcheckError: a check failed.
        AssertionError: the arguments do not go together.

    Example:
        >>> import pygrad
        >>> x = pygrad.rand(3, dtype=pygrad.float64, requires_grad=True)
        >>> pygrad.autograd.gradgradcheck(lambda x: x.exp() * x, x)
        True
    """
    return _check(
        func,
        _as_tuple(inputs),
        raise_exception,
        True,
        None if grad_outputs is None else _tensors(_as_tuple(grad_outputs)),
        gen_non_contig_grad_outputs,
        eps,
        atol,
        rtol,
        nondet_tol,
        check_undefined_grad,
        check_fwd_over_rev,
        check_rev_over_rev,
        fast_mode,
        masked,
        batched=_compare_batched_backward if check_batched_grad else None,
    )


# ------------------------------------------------------------------ the old entry points


def _warn_deprecated(name: str) -> None:
    warnings.warn(
        f"`{name}` was part of PyTorch's private API and not meant to be exposed. We are "
        "deprecating it and it will be removed in a future version of PyTorch. If you have a "
        "specific use for this or feature request for this to be a stable API, please file us an "
        "issue at https://github.com/pytorch/pytorch/issues/new",
        FutureWarning,
        stacklevel=3,
    )


def _demand_one(name: str, grad_out: float) -> None:
    if grad_out != 1.0:
        raise ValueError(
            f"Expected grad_out to be 1.0. {name} no longer supports values of grad_out != 1.0."
        )


def _demand_real(name: str, outputs: Iterable[Any]) -> None:
    if any(y.is_complex() for y in outputs):
        raise ValueError(
            f"Expected output to be non-complex. {name} no longer supports functions that return "
            "complex outputs."
        )


def _tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors that require grad in nested lists, in order."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield value
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            yield from _tensors_in(item)


def _numerical(
    fn: Any, inputs: Any, outputs: Any, x: Any, eps: float, is_forward_ad: bool = False
) -> tuple[Any, ...]:
    points = _as_tuple(inputs)
    with _keep_function(_caller(fn, points)) as ident:
        found = _C["_numerical_jacobian"](
            ident, _tensors(points), _tensors(outputs), x, eps, is_forward_ad
        )
        return tuple(found)


def get_numerical_jacobian(
    fn: Callable[..., Any],
    inputs: Any,
    target: Any = None,
    eps: float = 1e-3,
    grad_out: float = 1.0,
) -> tuple[Any, ...]:
    """The Jacobians of a function's first output by finite differences. Deprecated in PyTorch.

    Args:
        fn: takes the inputs as one tuple.
        inputs: what it is called with.
        target: the tensors by which to differentiate, the inputs' by default.
        eps: the step.
        grad_out: must be 1.

    Returns:
        A matrix for each tensor that requires grad, a row an element of it.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> x = pygrad.ones(1, dtype=pygrad.float64, requires_grad=True)
        >>> from pygrad.autograd.gradcheck import get_numerical_jacobian
        >>> get_numerical_jacobian(lambda xs: 3 * xs[0], (x,))
        (tensor([[3.0000]], dtype=torch.float64),)
    """
    _warn_deprecated("get_numerical_jacobian")
    _demand_one("get_numerical_jacobian", grad_out)
    outputs = _as_tuple(fn(_as_tuple(inputs)))
    _demand_real("get_numerical_jacobian", outputs)
    wanted = inputs if target is None else target
    n = sum(isinstance(x, Tensor) and x.requires_grad for x in wanted)  # lists are searched for n
    found = list(itertools.islice(_tensors_in(wanted), n))
    return tuple([_numerical(lambda *a: fn(a), inputs, outputs, x, eps)[0] for x in found])


def get_numerical_jacobian_wrt_specific_input(
    fn: Callable[..., Any],
    input_idx: int,
    inputs: Any,
    outputs: Any,
    eps: float,
    input: Any = None,
    is_forward_ad: bool = False,
) -> tuple[Any, ...]:
    """The Jacobians of every output by one input, by finite differences.

    Args:
        fn: takes the inputs as arguments.
        input_idx: the index of the input.
        inputs: its arguments.
        outputs: its results.
        eps: the step.
        input: the tensor to differentiate by, instead of that input.
        is_forward_ad: whether complex outputs of a real input are allowed.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, dtype=pygrad.float64, requires_grad=True)
        >>> from pygrad.autograd import gradcheck
        >>> import sys; module = sys.modules[gradcheck.__module__]
        >>> module.get_numerical_jacobian_wrt_specific_input(lambda x: 3 * x, 0, (x,), (x,), 1e-3)
        (tensor([[3.0000]], dtype=torch.float64),)
    """
    x = inputs[input_idx] if input is None else input
    return _numerical(fn, inputs, outputs, x, eps, is_forward_ad)


def get_analytical_jacobian(
    inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0
) -> tuple[tuple[Any, ...], bool, bool, bool]:
    """The Jacobians of an output by backward. Deprecated in PyTorch.

    Args:
        inputs: the tensors to differentiate by, in nested lists.
        output: a tensor made of them.
        nondet_tol: how far two runs of the backward may differ.
        grad_out: must be 1.

    Returns:
        A matrix for each tensor that requires grad, and whether two runs agreed, the sizes and the
        dtypes were right.

    Example:
        >>> import pygrad, warnings
        >>> warnings.simplefilter("ignore")
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> from pygrad.autograd.gradcheck import get_analytical_jacobian
        >>> get_analytical_jacobian((x,), 3 * x)
        ((tensor([[3.]]),), True, True, True)
    """
    _warn_deprecated("get_analytical_jacobian")
    _demand_one("get_analytical_jacobian", grad_out)
    _demand_real("get_analytical_jacobian", (output,))
    wanted = list(_tensors_in(inputs))
    *found, same = _C["_analytical_jacobian"](wanted, output, nondet_tol)
    return tuple(found), bool(same), True, True
