"""The functional forms of optimizers: ``optim.adam.adam(params, grads, ...)``.

PyTorch offers each optimizer's step as a function of lists, which programs call for their own
steps, and under two private names that select an implementation. pygrad has one implementation: a
form runs the step of the class, with the lists as its state.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from .._table import functions
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ._builtin import BuiltinOptimizer, check_choice, refuse_unsupported

Form: TypeAlias = Callable[..., None]
Step: TypeAlias = Callable[[list[list[Any]], dict[str, Any]], None]

_PAIRS = {
    "betas": ("beta1", "beta2"),
    "eps": ("eps1", "eps2"),
    "etas": ("etaminus", "etaplus"),
    "step_sizes": ("step_size_min", "step_size_max"),
}
"""Options of a class that the functions take as separate arguments."""
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


def step_from_class(cls: type[BuiltinOptimizer], states: dict[str, str]) -> Step:
    """Makes a form from the step of a class, with the parameters' state in lists.

    Args:
        cls: the optimizer.
        states: the state's key for each list after parameters and gradients.
    """

    def step(lists: list[list[Any]], options: dict[str, Any]) -> None:
        params, grads, *rest = lists
        optimizer = cls.__new__(cls)
        optimizer.state = {}  # type: ignore[assignment]
        for place, parameter in enumerate(params):
            optimizer.state[parameter] = {
                key: each[place]
                for key, each in zip(states.values(), rest, strict=True)
                if place < len(each) and each[place] is not None
            }
        optimizer._update({**options, "params": params, "grads": grads})

    return step


def step_from_op(name: str | Callable[[dict[str, Any]], str], names: str) -> Step:
    """Makes a form from an engine op.

    Args:
        name: the name of the op, or a function from the options to it.
        names: the op's keywords.
    """

    def step(lists: list[list[Any]], options: dict[str, Any]) -> None:
        op = name if isinstance(name, str) else name(options)
        numbers = {key: _number(options[key]) for key in names.split()}
        functions.C[op](*lists, **numbers)

    return step


def _number(value: Any) -> Any:
    return value if isinstance(value, bool) else float(value)


def forms(step: Step, lists: str, options: str, flags: str, name: str) -> tuple[Form, Form, Form]:
    """Makes the public function, and the two private ones for one tensor and for many.

    Args:
        step: the implementation.
        lists: the names of the lists; `a=b` is a in the public function and b in the other two.
        options: the names of the options, which are required keyword arguments.
        flags: the names of the arguments after the lists that have defaults.
        name: the name of the function.
    """
    order = [each.partition("=")[0] for each in lists.split()]
    inner = [each.rpartition("=")[2] for each in lists.split()]
    scaled = ["grad_scale", "found_inf"] if "grad_scale" in flags else []
    later = [flag for flag in flags.split() if flag not in ("foreach", "fused", *scaled)]
    public = _signature([*order, *flags.split()], options.split())
    private = _signature([*inner, *scaled], [*options.split(), *later])

    def make(own: str, signature: inspect.Signature, order: list[str]) -> Form:
        def form(*args: Any, **kwargs: Any) -> None:
            try:
                bound = signature.bind(*args, **kwargs)
            except TypeError as error:
                raise TypeError(f"{own}(): {error}") from None
            bound.apply_defaults()
            given = {**_FLAGS, **bound.arguments}
            _run(step, [given.pop(each) for each in order], order, given)

        form.__name__ = form.__qualname__ = own
        form.__module__ = module
        form.__signature__ = signature  # type: ignore[attr-defined]
        form.__doc__ = (
            f"The step of `{name}` with the state in lists.\n\nRaises:\n    RuntimeError: a "
            "counter of steps is no tensor.\n    NotImplementedError: ``capturable`` or "
            "``differentiable``.\n"
        )
        return form

    module = f"{__package__}.{name}"
    return (
        make(name, public, order),
        make(f"_single_tensor_{name}", private, inner),
        make(f"_multi_tensor_{name}", private, inner),
    )


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
    for key, parts in _PAIRS.items():
        if all(part in options for part in parts):
            options[key] = tuple(options[part] for part in parts)
    if lists[0]:
        with pygrad.no_grad():
            step(lists, options)
