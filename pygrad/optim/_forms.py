"""The functional forms of optimizers: ``optim.adam.adam(params, grads, ...)``.

PyTorch offers each optimizer's step as a function of lists, which programs call for their own
steps, and under two private names that select an implementation. pygrad has one implementation: a
form runs the step of the class, with the lists as its state.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from .._table import functions
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._description import formula
from ._refusals import check_choice, refuse_unsupported

Form: TypeAlias = Callable[..., None]
Step: TypeAlias = Callable[[list[list[Any]], dict[str, Any]], None]

_FLAGS = {
    "foreach": None,
    "fused": None,
    "grad_scale": None,
    "found_inf": None,
    "capturable": False,
    "differentiable": False,
    "has_complex": False,
    "has_sparse_grad": False,
    "maximize": False,
    "decoupled_weight_decay": False,
}


def step_of(name: str, lists: list[list[Any]], options: dict[str, Any]) -> None:
    """Takes the step of a formula, with the numbers it has among the options."""
    found = formula(name)
    numbers = {
        key: convert(options[key])
        for key, convert in zip(found.options, found.converters, strict=True)
    }
    functions.C[name](*lists, **numbers)


def forms(row: str, flags: str, name: str = "") -> tuple[Form, Form, Form]:
    """Makes the public function of a formula, and the two private ones for one tensor and for many.

    The lists and the numbers, which are required keyword arguments, are those of the row.

    Args:
        row: the row of the formula.
        flags: the names of the arguments after the lists that have defaults.
        name: the name of the function, if it is not the row's.
    """
    found = formula(row)
    lists = ["params", "grads", *found.lists]
    options = [each for each in found.options if each not in flags.split()]
    return functional_forms(
        functools.partial(step_of, row), lists, lists, options, flags, name or row.strip("_")
    )


def functional_forms(
    step: Step, order: list[str], inner: list[str], options: list[str], flags: str, name: str
) -> tuple[Form, Form, Form]:
    """Makes the public function, and the two private ones for one tensor and for many.

    Args:
        step: the implementation.
        order, inner: the names of the lists in the public function and in the other two.
        options: the names of the options, which are required keyword arguments.
        flags: the names of the arguments after the lists that have defaults.
        name: the name of the function.
    """
    scaled = ["grad_scale", "found_inf"] if "grad_scale" in flags else []
    later = [flag for flag in flags.split() if flag not in ("foreach", "fused", *scaled)]
    public = _signature([*order, *flags.split()], options)
    private = _signature([*inner, *scaled], [*options, *later])
    module = f"{__package__}.{name}"
    return (
        _make_form(step, name, public, order, module),
        _make_form(step, f"_single_tensor_{name}", private, inner, module),
        _make_form(step, f"_multi_tensor_{name}", private, inner, module),
    )


def _make_form(
    step: Step, name: str, signature: inspect.Signature, order: list[str], module: str
) -> Form:
    def form(*args: Any, **kwargs: Any) -> None:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{name}(): {error}") from None
        bound.apply_defaults()
        given = {**_FLAGS, **bound.arguments}
        _run(step, [given.pop(each) for each in order], order, given)

    form.__name__ = form.__qualname__ = name
    form.__module__ = module
    form.__signature__ = signature  # type: ignore[attr-defined]
    form.__doc__ = (
        f"The step of `{module.rpartition('.')[2]}` with the state in lists.\n\nRaises:\n    "
        "RuntimeError: a counter of steps is no tensor.\n    NotImplementedError: ``capturable`` "
        "or ``differentiable``.\n"
    )
    return form


def _signature(positional: list[str], keywords: list[str]) -> inspect.Signature:
    parameter = inspect.Parameter
    return inspect.Signature(
        [
            parameter(
                each, parameter.POSITIONAL_OR_KEYWORD, default=_FLAGS.get(each, parameter.empty)
            )
            for each in positional
        ]
        + [
            parameter(
                each,
                parameter.KEYWORD_ONLY,
                default=parameter.empty
                if each == "maximize"
                else _FLAGS.get(each, parameter.empty),
            )
            for each in keywords
        ]
    )


def _run(step: Step, lists: list[list[Any]], order: list[str], options: dict[str, Any]) -> None:
    if "state_steps" in order:
        counters = lists[order.index("state_steps")]
        if not all(isinstance(each, Tensor) for each in counters):
            raise RuntimeError(
                "API has changed, `state_steps` argument must contain a list of singleton tensors"
            )
    refuse_unsupported(options)
    check_choice(options)
    scale, found = options.pop("grad_scale"), options.pop("found_inf")
    if found is not None and found.item():
        return
    if scale is not None:
        for grad in lists[1]:
            grad.div_(scale)
    if lists[0]:
        with pygrad.no_grad():
            step(lists, options)
