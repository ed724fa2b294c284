"""Gradients checked against finite differences: of functions, and of their gradients.

Each check compares what autograd says with what the function does; the first that fails raises, and
says which output, which input, and both Jacobians.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pygrad

from . import _jacobians as jac
from ._jacobians import Function, GradcheckError, Tensors, as_tuple, is_differentiable, wants_grad

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]

_NONDETERMINISM = (
    "Backward is not reentrant, i.e., running backward with same input and grad_output multiple "
    "times gives different values, although analytical gradient matches numerical gradient."
    "The tolerance for nondeterminism was {}.\n\n"
    "NOTE: If the function is not deterministic by nature, this may be expected: call "
    "gradcheck/gradgradcheck\nwith `nondet_tol=<tol>` as a keyword argument.\n"
)
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
_FAST_FAILED_SLOW_PASSED = (
    "Fast gradcheck failed but element-wise differences are small. This means that the\n"
    "test might've passed in slow_mode!\n\n"
    "Call gradcheck/gradgradcheck with `fast_mode=False` as a keyword argument to compare element "
    "by element."
)
_UNDEFINED_NOTE = (
    'Please look at "Notes about undefined output gradients" in "tools/autograd/derivatives.yaml"'
)


@dataclass(frozen=True)
class _Check:
    """One function at one point, and how exact its gradients must be."""

    func: Function
    inputs: Tensors
    outputs: Tensors
    """All that the function returned."""
    eps: float
    atol: float
    rtol: float
    nondet_tol: float
    check_grad_dtypes: bool
    masked: bool | None

    @property
    def recorded(self) -> Tensors:
        """The outputs that have a gradient."""
        return tuple(y for y in self.outputs if y.requires_grad)

    @property
    def wanted(self) -> list[Any]:
        """The inputs that require grad."""
        return [x for x in self.inputs if wants_grad(x)]

    # -------------------------------------------------------------- Jacobians in full

    def compare_in_full(self, forward: bool) -> None:
        """Every element of every Jacobian."""
        recorded = self.recorded
        if not recorded:
            self._expect_zero_in_full()
            return
        table = jac.numerical(self.func, self.inputs, self.outputs, eps=self.eps)
        floating = [y for y in self.outputs if is_differentiable(y)]
        kept = [k for k, y in enumerate(floating) if y.requires_grad]
        by_forward = self._forward(None) if forward else None
        for i, k in enumerate(kept):
            if by_forward is None:
                analytical = self._backward(recorded[i])
            else:
                analytical = tuple(of_input[k] for of_input in by_forward)
            for j, (a, of_input) in enumerate(zip(analytical, table, strict=True)):
                if not _close(a, of_input[k], self.rtol, self.atol):
                    raise GradcheckError(_mismatch(a, of_input[k], i, j, forward))

    def _expect_zero_in_full(self) -> None:
        for of_input in jac.numerical(self.func, self.inputs, self.outputs, eps=self.eps):
            if any(bool((matrix != 0).any()) for matrix in of_input):
                raise GradcheckError("Numerical gradient for function expected to be zero")

    def _forward(self, all_u: list[Any] | None) -> list[list[Any]]:
        return jac.forward_columns(
            self.func,
            self.inputs,
            self.outputs,
            check_grad_dtypes=self.check_grad_dtypes,
            all_u=all_u,
        )

    def _backward(self, output: Any, v: Any = None) -> Tensors:
        matrices, same = jac.backward_twice(self.inputs, output, self.nondet_tol, v)
        if not same:
            raise GradcheckError(_NONDETERMINISM.format(self.nondet_tol))
        return matrices

    # -------------------------------------------------------------- one random product each

    def compare_products(self, forward: bool) -> None:
        """One random combination of each Jacobian's elements."""
        generator = pygrad.Generator()
        all_u = [_random_direction(x, generator) for x in self.wanted]
        all_v = None if forward else [_random_direction(y, generator) for y in self.recorded]
        table = self._numerical_products(all_u, all_v)
        analytical = (
            self._forward_products(all_u) if all_v is None else self._products(all_u, all_v)
        )
        for i, u in enumerate(all_u):
            for j, (a, n) in enumerate(zip(analytical[i], table[i], strict=True)):
                sum_v = float(all_v[j].sum()) if all_v is not None else 1.0
                if not _close(a, n, self.rtol, self.atol * float(u.sum()) * sum_v):
                    message = _mismatch(a, n, j, i, forward)
                    raise GradcheckError(message + self._in_full_after_all(i, j, forward))

    def _forward_products(self, all_u: list[Any]) -> list[list[Any]]:
        floating = [y for y in self.outputs if is_differentiable(y)]
        kept = [k for k, y in enumerate(floating) if y.requires_grad]
        return [[of_input[k] for k in kept] for of_input in self._forward(all_u)]

    def _products(self, all_u: list[Any], all_v: list[Any]) -> list[list[Any]]:
        if not all_v:
            self._expect_zero_products(all_u)
        columns = [self._backward(y, v) for y, v in zip(self.recorded, all_v, strict=True)]
        return [[column[i].reshape(-1).dot(u) for column in columns] for i, u in enumerate(all_u)]

    def _numerical_products(self, all_u: list[Any], all_v: list[Any] | None) -> list[list[Any]]:
        table = []
        for x, u in zip(self.wanted, all_u, strict=True):
            products = jac.numerical_products(self.func, self.inputs, x, u, self.eps)
            if len(products) != len(self.outputs):
                raise AssertionError(
                    f"Expected all_Ju and func_out to have the same length, but got "
                    f"{len(products)} and {len(self.outputs)}"
                )
            kept = [p for y, p in zip(self.outputs, products, strict=True) if y.requires_grad]
            if all_v is not None:
                kept = [(v * p).sum() for v, p in zip(all_v, kept, strict=True)]
            table.append(kept)
        return table

    def _expect_zero_products(self, all_u: list[Any]) -> None:
        for x, u in zip(self.wanted, all_u, strict=True):
            for product in jac.numerical_products(self.func, self.inputs, x, u, self.eps):
                if product.numel() and bool(product.abs().max() > self.nondet_tol):
                    raise GradcheckError("Numerical gradient for function expected to be zero")

    def _in_full_after_all(self, i: int, j: int, forward: bool) -> str:
        """What the full Jacobian of output j by input i says, for the message of a failure."""
        outputs = self.recorded
        position = next(k for k, y in enumerate(self.outputs) if y is outputs[j])
        x = self.wanted[i]
        numerical = jac.numerical_for_input(
            lambda *inputs: as_tuple(self.func(*inputs))[position],
            self.inputs,
            (outputs[j],),
            x,
            self.eps,
        )[0]
        if forward:
            floating = [k for k, y in enumerate(self.outputs) if is_differentiable(y)]
            analytical = self._forward(None)[i][floating.index(position)]
        else:
            analytical = jac.backward_twice(self.inputs, outputs[j], float("inf"))[0][i]
        text = (
            "\nThe above quantities relating the numerical and analytical jacobians are computed \n"
            "in fast mode. See: https://github.com/pytorch/pytorch/issues/53876 for more "
            "background \nabout fast mode. Below, we recompute numerical and analytical jacobians "
            f"in slow mode:\n\nNumerical:\n {numerical}\nAnalytical:\n{analytical}\n\n"
            "The max per-element difference (slow mode) is: "
            f"{(numerical - analytical).abs().max()}.\n"
        )
        if pygrad.allclose(analytical, numerical, self.rtol, self.atol):
            text += _FAST_FAILED_SLOW_PASSED
        return text

    # -------------------------------------------------------------- batches

    def compare_batched_backward(self) -> None:
        """Two gradients by one batched backward, beside two by single ones."""
        for i, output in enumerate(self.recorded):
            cotangents = [pygrad.randn_like(output) for _ in range(2)]

            def pull_back(g: Any, batched: bool = False, output: Any = output) -> list[Any]:
                grads = pygrad.autograd.grad(
                    output,
                    self.wanted,
                    g,
                    retain_graph=True,
                    allow_unused=True,
                    is_grads_batched=batched,
                )
                lead = (2,) if batched else ()
                return [
                    x.new_zeros((*lead, *x.shape)) if grad is None else grad
                    for grad, x in zip(grads, self.wanted, strict=True)
                ]

            pairs = _batched_and_single(
                pull_back, partial(pull_back, batched=True), cotangents, _BATCHED
            )
            for j, (mine, right) in enumerate(pairs):
                if not pygrad.allclose(mine, right):
                    raise GradcheckError(_batch_mismatch(i, j, _BATCHED, mine, right))

    def compare_batched_forward(self) -> None:
        """Two tangents pushed forward as one batch, beside two single ones."""
        for place, x in enumerate(self.inputs):
            if not wants_grad(x) or not is_differentiable(x):
                continue
            tangents = [pygrad.randn_like(x) for _ in range(2)]

            def push(tangent: Any, place: int = place) -> Tensors:
                inputs = [a.detach() if isinstance(a, pygrad.Tensor) else a for a in self.inputs]
                given = [tangent if i == place else None for i in range(len(inputs))]
                parts = jac.push_forward(self.func, inputs, given)
                return tuple(pygrad.zeros_like(p) if t is None else t for p, t in parts)

            pairs = _batched_and_single(push, pygrad.vmap(push), tangents, _BATCHED_FORWARD)
            for k, (mine, right) in enumerate(pairs):
                if not pygrad.allclose(mine, right):
                    raise GradcheckError(_batch_mismatch(k, k, _BATCHED_FORWARD, mine, right))

    # -------------------------------------------------------------- zero and absent gradients

    def expect_zero_of_zero(self) -> None:
        """A backward that starts from zeros must give zeros."""
        recorded, wanted = self.recorded, self.wanted
        if not wanted:
            raise GradcheckError("no Tensors requiring grad found in input")
        zeros = [pygrad.zeros(tuple(y.shape), dtype=y.dtype) for y in recorded]
        grads = pygrad.autograd.grad(recorded, wanted, zeros, allow_unused=True)
        for grad in (g for g in grads if g is not None):
            nothing = pygrad.zeros_like(grad)
            right = pygrad.allclose(grad, nothing) if self.masked else bool(grad.eq(0).all())
            if not right:
                raise GradcheckError("backward not multiplied by grad_output")

    def expect_zero_of_absent(self) -> None:
        """Gradients that do not arrive must count as zeros: all of them, then one at a time."""
        if not self.wanted:
            raise GradcheckError("no Tensors requiring grad found in input")
        undefined = pygrad._C._undefined_grad

        def fresh() -> Tensors:
            return tuple(y for y in as_tuple(self.func(*self.inputs)) if y.requires_grad)

        outputs = fresh()
        runs = [[undefined(y) for y in outputs]]
        if len(outputs) > 1:
            for k in range(len(outputs)):
                runs.append([undefined(y) if i == k else y for i, y in enumerate(fresh())])
        for run in runs:
            self._expect_zero(run)

    def _expect_zero(self, outputs: list[Any]) -> None:
        zeros = [pygrad.zeros(tuple(y.shape), dtype=y.dtype) for y in outputs]
        try:
            grads = pygrad.autograd.grad(outputs, self.wanted, zeros, allow_unused=True)
        except RuntimeError as error:
            _warn_of_undefined()
            raise GradcheckError(
                f"Expected backward function to handle undefined output grads. {_UNDEFINED_NOTE}"
            ) from error
        if any(grad is not None and not bool(grad.eq(0).all()) for grad in grads):
            _warn_of_undefined()
            raise GradcheckError(
                "Expected all input grads to be undefined or zero when all output grads are "
                f"undefined or zero. {_UNDEFINED_NOTE}"
            )

    def compare_absent_tangents(self) -> None:
        """An input without a tangent must do what one with a tangent of zeros does."""
        generator = pygrad.Generator()
        places = jac.places_of(self.inputs)
        tangents: list[Any] = [None] * len(self.inputs)
        for place in places:
            x = self.inputs[place]
            tangents[place] = _random_direction(x, generator).reshape(x.shape)
        for place in places:
            x = self.inputs[place]
            zero, absent = list(tangents), list(tangents)
            zero[place], absent[place] = pygrad.zeros_like(x), None
            inputs = [x.detach() if i == place else a for i, a in enumerate(self.inputs)]
            first = jac.push_forward(self.func, inputs, zero)
            second = jac.push_forward(self.func, inputs, absent)
            for k, ((_, a), (_, b)) in enumerate(zip(first, second, strict=True)):
                if a is not None and b is not None and not pygrad.allclose(a, b):
                    raise GradcheckError(
                        "Mismatch in tangent values for output with index: ",
                        k,
                        " when input: ",
                        x,
                        " has an undefined tangent value. ",
                        " Got: ",
                        a,
                        " but expected: ",
                        b,
                    )


# ------------------------------------------------------------------ parts


def _close(a: Any, b: Any, rtol: float, atol: float) -> bool:
    kind = pygrad.promote_types(a.dtype, b.dtype)
    return bool(pygrad.allclose(a.to(kind), b.to(kind), rtol, atol))


def _mismatch(analytical: Any, numerical: Any, output: int, input_: int, forward: bool) -> str:
    mode = "computed with forward mode " if forward else ""
    return (
        f"Jacobian {mode}mismatch for output {output} with respect to input {input_},\n"
        f"numerical:{numerical}\nanalytical:{analytical}\n"
    )


def _batched_and_single(
    single: Callable[[Any], Any], batched: Callable[[Any], Any], given: list[Any], note: str
) -> Iterator[tuple[Any, Any]]:
    """What a function gives of a batch, each result beside the batch of those of single calls."""
    singles = [single(each) for each in given]
    expected = [pygrad.stack(results) for results in zip(*singles, strict=True)]
    try:
        got = batched(pygrad.stack(given))
    except RuntimeError as error:
        raise GradcheckError(
            f"While computing batched gradients, got: {error}\n\n{note}"
        ) from error
    return zip(got, expected, strict=True)


def _batch_mismatch(output: int, input_: int, note: str, got: Any, expected: Any) -> str:
    return (
        f"For output {output} and input {input_}:\n\n{note}\n\nGot:\n{got}\n\nExpected:\n{expected}"
    )


def _random_direction(x: Any, generator: Any) -> Any:
    """A random vector of length one with an element for each of x's, none of them negative."""
    vector = pygrad.rand(x.numel(), generator=generator).to(x.dtype)
    vector /= vector.norm()
    return vector


def _warn_of_undefined() -> None:
    warnings.warn(
        "Backwards compatibility: New undefined gradient support checking feature is enabled by "
        "default, but it may break existing callers of this function. If this is true for you, you "
        'can call this function with "check_undefined_grad=False" to disable the feature',
        stacklevel=2,
    )


def _demand(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


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
    """Whether the gradients of a function are what finite differences say.

    The defaults are for float64; a function is to be tried where it is smooth.

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
        GradcheckError: a check failed; says which output and input, with both Jacobians.
        ValueError: no input requires grad.
        AssertionError: the arguments do not go together.

    Example:
        >>> import pygrad
        >>> x = pygrad.rand(3, dtype=pygrad.float64, requires_grad=True)
        >>> pygrad.autograd.gradcheck(lambda x: (x.exp() * x).sum(), x)
        True
    """
    _demand(
        check_forward_ad or check_backward_ad,
        "Expected at least one of check_forward_ad or check_backward_ad to be True",
    )
    _demand(
        check_backward_ad or not check_batched_grad,
        "Setting check_batched_grad=True requires check_backward_ad to be True",
    )
    _demand(
        check_forward_ad or not check_batched_forward_grad,
        "Setting check_batched_forward_grad=True requires check_forward_ad to be True",
    )
    points = as_tuple(inputs)

    def run() -> None:
        pygrad._C._check_inputs([x if isinstance(x, pygrad.Tensor) else None for x in points])
        outputs = as_tuple(func(*points))
        check = _Check(
            func, points, outputs, eps, atol, rtol, nondet_tol, check_grad_dtypes, masked
        )
        compare = check.compare_products if fast_mode else check.compare_in_full
        if check_backward_ad:
            compare(False)
        if check_forward_ad:
            compare(True)
            if check_undefined_grad:
                check.compare_absent_tangents()
        if check_batched_forward_grad:
            check.compare_batched_forward()
        if not check_backward_ad:
            return
        if check_batched_grad:
            check.compare_batched_backward()
        check.expect_zero_of_zero()
        if check_undefined_grad:
            check.expect_zero_of_absent()

    try:
        run()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def _random_gradient(like: Any, noncontiguous: bool) -> Any:
    """Uniform in [-1, 1), of the shape of `like`, requiring grad."""
    shape = tuple(like.shape)
    spread = noncontiguous and like.numel() > 1
    wide = (*shape[:-1], 2 * shape[-1]) if spread else shape
    values = pygrad.empty(wide, dtype=like.dtype).uniform_(-1, 1)
    return (values[..., 1::2] if spread else values).requires_grad_(True)


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
    """Whether the gradients of a function's gradients are what finite differences say.

    Args:
        func: takes the inputs, returns a tensor or a tuple of them.
        inputs: a tensor or a tuple.
        grad_outputs: what the first backward starts from; random if left out. Its own derivatives
            are checked too, if it requires grad.
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
    _demand(
        check_fwd_over_rev or check_rev_over_rev,
        "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True",
    )
    for name, asked in (
        ("check_undefined_grad", check_undefined_grad),
        ("check_batched_grad", check_batched_grad),
    ):
        _demand(
            check_rev_over_rev or not asked,
            f"Setting {name}=True requires check_rev_over_rev to be True",
        )
    points = as_tuple(inputs)
    if grad_outputs is None:
        outputs = [y for y in as_tuple(func(*points)) if y.requires_grad]
        cotangents: Tensors = tuple(
            _random_gradient(y, gen_non_contig_grad_outputs) for y in outputs
        )
    else:
        cotangents = as_tuple(grad_outputs)
    n = len(points)
    restored = {i for i, x in enumerate((*points, *cotangents)) if wants_grad(x)}

    def gradient(*args: Any) -> Tensors:
        given = [x.requires_grad_() if i in restored else x for i, x in enumerate(args)]
        ys = tuple(y for y in as_tuple(func(*given[:n])) if y.requires_grad)
        wanted = tuple(x for i, x in enumerate(given[:n]) if i in restored)
        grads = pygrad.autograd.grad(ys, wanted, given[n:], create_graph=True, allow_unused=True)
        return tuple(g for g in grads if g is not None)

    return gradcheck(
        gradient,
        (*points, *cotangents),
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad,
        check_grad_dtypes=check_grad_dtypes,
        check_batched_grad=check_batched_grad,
        fast_mode=fast_mode,
        check_forward_ad=check_fwd_over_rev,
        check_backward_ad=check_rev_over_rev,
        masked=masked,
    )


# ------------------------------------------------------------------ the old entry points


def _deprecated(name: str) -> None:
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


def get_numerical_jacobian(
    fn: Function, inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0
) -> tuple[Any, ...]:
    """The Jacobians of a function's first output by finite differences. Deprecated in PyTorch.

    Args:
        fn: takes the inputs as one tuple.
        inputs: what it is called with.
        target: the tensors to differentiate by, those of the inputs by default.
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
    _deprecated("get_numerical_jacobian")
    _demand_one("get_numerical_jacobian", grad_out)
    found = jac.numerical(lambda *args: fn(args), inputs, None, target, eps)
    return tuple(of_input[0] for of_input in found)


def get_numerical_jacobian_wrt_specific_input(
    fn: Function,
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
        input_idx: which of them.
        inputs: what it is called with.
        outputs: what it returned.
        eps: the step.
        input: the tensor to differentiate by, instead of that input.
        is_forward_ad: whether complex outputs are allowed, which no function has here.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(1, dtype=pygrad.float64, requires_grad=True)
        >>> from pygrad.autograd import gradcheck
        >>> import sys; module = sys.modules[gradcheck.__module__]
        >>> module.get_numerical_jacobian_wrt_specific_input(lambda x: 3 * x, 0, (x,), (x,), 1e-3)
        (tensor([[3.0000]], dtype=torch.float64),)
    """
    x = inputs[input_idx] if input is None else input
    return jac.numerical_for_input(fn, inputs, outputs, x, eps)


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
    _deprecated("get_analytical_jacobian")
    _demand_one("get_analytical_jacobian", grad_out)
    if output.is_complex():
        raise ValueError(
            "Expected output to be non-complex. get_analytical_jacobian no longer supports "
            "functions that return complex outputs."
        )
    return *jac.backward_twice(inputs, output, nondet_tol), True, True
