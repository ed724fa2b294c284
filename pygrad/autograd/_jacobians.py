"""Jacobians of functions by finite differences, backward and forward mode, for `gradcheck`.

A Jacobian here is a matrix with a row an element of the input and a column an element of the
output. Inputs are perturbed where they lie, through ``.data``, since a function may reach them by
other ways than its arguments; they are put back exactly. The matrices of non-differentiable dtypes
are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import pygrad

from .._tensor import Tensor
from . import forward_ad

Tensors: TypeAlias = tuple[Any, ...]
Function: TypeAlias = Callable[..., Any]


class GradcheckError(RuntimeError):
    """What `gradcheck` and `gradgradcheck` found to be wrong.

    Example:
        >>> from pygrad.autograd.gradcheck import GradcheckError
        >>> issubclass(GradcheckError, RuntimeError)
        True
    """


def as_tuple(value: Any) -> Tensors:
    """A tuple of whatever a function returned."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def is_differentiable(value: Any) -> bool:
    """Whether it is a tensor that could have a gradient."""
    return isinstance(value, Tensor) and (value.is_floating_point() or value.is_complex())


def wants_grad(value: Any) -> bool:
    """Whether it is a tensor that requires grad."""
    return isinstance(value, Tensor) and value.requires_grad


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors that require grad in nested lists, in order."""
    if isinstance(value, Tensor):
        if value.requires_grad:
            yield value
    elif isinstance(value, Iterable) and not isinstance(value, str):
        for item in value:
            yield from tensors_in(item)


def places_of(value: Tensors) -> list[int]:
    """Where the tensors that require grad stand in a tuple."""
    return [i for i, item in enumerate(value) if wants_grad(item)]


# ------------------------------------------------------------------ finite differences


def _check_alike(a: Any, b: Any, eps: float, index: tuple[int, ...] | None) -> None:
    where = "" if index is None else f"on index {index} "
    for kind, mine, theirs in (("shape", a.shape, b.shape), ("dtype", a.dtype, b.dtype)):
        if mine != theirs:
            raise AssertionError(
                f"Expected `func` to return outputs with the same {kind} when inputs are perturbed "
                f"{where}by {eps}, but got: {kind}s {mine} and {theirs}."
            )


def _difference(
    run: Callable[[], Tensors],
    place: Any,
    step: Any,
    eps: float,
    index: tuple[int, ...] | None = None,
) -> list[Any]:
    """The central difference of every output, flat, as the values at `place` move by `step`.

    Formula: (f(x + step) - f(x - step)) / (2 eps)
    """
    here = place.clone()
    place.copy_(here - step)
    below = run()
    place.copy_(here + step)
    above = run()
    place.copy_(here)
    out = []
    for a, b in zip(below, above, strict=False):
        _check_alike(a, b, eps, index)
        out.append(((b - a) / (2 * eps)).detach().reshape(-1))
    return out


def _bound(func: Function, inputs: Any) -> Callable[[], Tensors]:
    """A call of the function whose outputs later calls leave alone."""
    return lambda: tuple(y.clone() for y in as_tuple(func(*as_tuple(inputs))))


def numerical_for_input(
    func: Function, inputs: Any, outputs: Tensors, x: Any, eps: float
) -> tuple[Tensor, ...]:
    """The Jacobian of every floating output by one input, an element at a time."""
    if not x.requires_grad:
        raise AssertionError("Expected input to have requires_grad=True")
    run, data = _bound(func, inputs), x.data
    kept = [k for k, y in enumerate(outputs) if is_differentiable(y)]
    matrices = tuple(outputs[k].new_zeros((x.numel(), outputs[k].numel())) for k in kept)
    for row, index in enumerate(itertools.product(*map(range, x.shape))):
        columns = _difference(run, data[index], eps, eps, index)
        for matrix, k in zip(matrices, kept, strict=True):
            matrix[row] = columns[k]
    return matrices


def numerical(
    func: Function, inputs: Any, outputs: Any = None, target: Any = None, eps: float = 1e-3
) -> list[tuple[Tensor, ...]]:
    """The Jacobians ``[input][output]`` by every tensor of `target` that requires grad."""
    found = as_tuple(func(*as_tuple(inputs))) if outputs is None else outputs
    if any(y.is_complex() for y in found):
        raise ValueError(
            "Expected output to be non-complex. get_numerical_jacobian no longer supports "
            "functions that return complex outputs."
        )
    wanted = inputs if target is None else target
    n = sum(map(wants_grad, wanted))  # nested lists are searched for no more than that
    first = itertools.islice(tensors_in(wanted), n)
    return [numerical_for_input(func, inputs, found, x, eps) for x in first]


def numerical_products(func: Function, inputs: Tensors, x: Any, u: Any, eps: float) -> list[Any]:
    """The Jacobian of every output by one input, times `u`; flat."""
    return _difference(_bound(func, inputs), x.data, eps * u.reshape(x.shape), eps)


# ------------------------------------------------------------------ backward mode


def _within(first: Tensors, second: Tensors, tolerance: float) -> bool:
    return not any(
        a.numel() != 0 and bool((a - b).abs().max() > tolerance)
        for a, b in zip(first, second, strict=True)
    )


def backward_twice(
    inputs: Any, output: Any, nondet_tol: float, v: Any = None
) -> tuple[Tensors, bool]:
    """The Jacobian by every input, or its product with `v`, from a backward that is run twice.

    Gradients have the dtypes and sizes of the inputs: the engine sees to that.

    Returns:
        The matrices, and whether both runs agreed.
    """
    wanted = tuple(tensors_in(inputs))
    width = output.numel() if v is None else 1
    cotangents = () if v is None else (v.reshape(output.shape),)

    def run() -> Tensors:
        if width == 0:
            return tuple(x.new_zeros((x.numel(), 0)) for x in wanted)
        grads = pygrad.autograd._grad(
            (output,), wanted, cotangents, True, False, True, False, rows=width if v is None else 0
        )
        return tuple(
            x.new_zeros((x.numel(), width))
            if grad is None
            else grad.reshape(width, x.numel()).t().contiguous()
            for grad, x in zip(grads, wanted, strict=True)
        )

    first = run()
    return first, _within(first, run(), nondet_tol)


# ------------------------------------------------------------------ forward mode


def push_forward(func: Function, inputs: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """(primal, tangent) of every floating output, as the inputs have these tangents; None: none."""
    with forward_ad.dual_level():
        duals = [
            x if t is None else forward_ad.make_dual(x.detach(), t)
            for x, t in zip(inputs, tangents, strict=True)
        ]
        outputs = filter(is_differentiable, as_tuple(func(*duals)))
        return [tuple(forward_ad.unpack_dual(y)) for y in outputs]


def forward_columns(
    func: Function,
    inputs: Tensors,
    outputs: Tensors,
    *,
    check_grad_dtypes: bool = False,
    all_u: Sequence[Any] | None = None,
) -> list[list[Any]]:
    """The Jacobians ``[input][output]`` in forward mode, or their products with `all_u`."""
    places = places_of(inputs)
    shaped = [y for y in outputs if is_differentiable(y)]
    table = []
    for n, place in enumerate(places):
        x = inputs[place]
        steps = _units(x) if all_u is None else [all_u[n].reshape(x.shape)]
        matrices = [y.new_zeros((len(steps), y.numel())) for y in shaped]
        for row, step in enumerate(steps):
            tangents: list[Any] = [None] * len(inputs)
            for i in places:
                tangents[i] = step if i == place else pygrad.zeros_like(inputs[i])
            pushed = push_forward(func, inputs, tangents)
            for matrix, (primal, tangent) in zip(matrices, pushed, strict=True):
                if tangent is None:
                    continue
                if check_grad_dtypes and primal.is_complex() != tangent.is_complex():
                    raise GradcheckError("Forward AD gradient has dtype mismatch.")
                matrix[row] = tangent.detach().reshape(-1)
        table.append(matrices if all_u is None else [m.squeeze(0) for m in matrices])
    return table


def _units(x: Any) -> list[Any]:
    """The tensors shaped like x that are one in one place and zero elsewhere."""
    return [unit.view(x.shape) for unit in pygrad.eye(x.numel(), dtype=x.dtype).unbind(0)]
