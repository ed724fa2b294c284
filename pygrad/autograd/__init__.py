"""Differentiation: backward, grad, the modes, the graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _ops
from .._tensor import Tensor
from . import anomaly_mode as anomaly_mode
from . import functional as functional
from . import grad_mode as grad_mode
from . import graph as graph
from .anomaly_mode import detect_anomaly, is_anomaly_detection_enabled, set_detect_anomaly
from .grad_mode import (
    enable_grad,
    enforce_grad_layout_policy,
    inference_mode,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from .graph import allow_mutation_on_saved_tensors

__all__ = [
    "allow_mutation_on_saved_tensors",
    "anomaly_mode",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "enforce_grad_layout_policy",
    "functional",
    "grad",
    "grad_mode",
    "graph",
    "inference_mode",
    "is_anomaly_detection_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
    "set_multithreading_enabled",
]

_C = _ops.C


def _tuple(tensors: Any) -> tuple[Any, ...]:
    return (tensors,) if isinstance(tensors, Tensor) or tensors is None else tuple(tensors)


def _grads_for(outputs: tuple[Any, ...], grads: Any) -> tuple[Any, ...]:
    """One gradient (or None) an output."""
    if grads is None:
        return (None,) * len(outputs)
    given = _tuple(grads)
    if len(given) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(given)} gradients")
    for each in given:
        if each is not None and not isinstance(each, Tensor):
            raise TypeError(
                f"gradients can be either Tensors or None, but got {type(each).__name__}"
            )
    return given


def backward(
    tensors: Tensor | Sequence[Tensor],
    grad_tensors: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor | Sequence[Tensor] | None = None,
) -> None:
    """Adds the gradients of the sum of `tensors` to the ``.grad`` of the graph's leaves.

    Args:
        tensors: the roots, of any shapes.
        grad_tensors: what each root's gradient starts from, of its shape; None where it has one
            element.
        retain_graph: keep the saved tensors for another backward; default `create_graph`.
        create_graph: record the backward itself, for higher derivatives.
        grad_variables: the old name of `grad_tensors`.
        inputs: the only tensors to accumulate into.

    Raises:
        RuntimeError: a root without history or of several elements without gradient; a freed graph.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor(3.0, requires_grad=True)
        >>> pygrad.autograd.backward(x * x)
        >>> x.grad
        tensor(6.)
    """
    if grad_variables is not None:
        import warnings

        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use "
                "`grad_tensors`."
            )
        grad_tensors = grad_variables
    wanted = _tuple(inputs) if inputs is not None else ()
    if inputs is not None and not wanted:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    roots = _tuple(tensors)
    grads = _grads_for(roots, grad_tensors)
    _C["_backward"](
        roots, grads, create_graph if retain_graph is None else retain_graph, create_graph, wanted
    )


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """The gradients of the sum of `outputs` with respect to `inputs`, without touching ``.grad``.

    Args:
        outputs: the roots.
        inputs: what to differentiate by, leaves or not.
        grad_outputs: what each root's gradient starts from; None where it has one element.
        retain_graph: keep the saved tensors; default `create_graph`.
        create_graph: record the backward itself.
        only_inputs: must be True.
        allow_unused: give None for an input the outputs do not depend on, instead of raising.
        is_grads_batched: not supported yet.
        materialize_grads: give zeros instead of None.

    Returns:
        A tensor an input, of its shape.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor(2.0, requires_grad=True)
        >>> (first,) = pygrad.autograd.grad(x ** 3, x, create_graph=True)
        >>> pygrad.autograd.grad(first, x)
        (tensor(12.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: "
            "allow_unused=False."
        )
    if is_grads_batched:
        raise NotImplementedError("autograd.grad: is_grads_batched=True is not supported yet")
    if not only_inputs:
        import warnings

        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other "
            "parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    roots, wanted = _tuple(outputs), _tuple(inputs)
    if not wanted:
        raise ValueError("grad requires non-empty inputs.")
    grads = _grads_for(roots, grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    unused = materialize_grads if allow_unused is None else allow_unused
    result = _C["_grad"](roots, wanted, grads, retain, create_graph, unused, materialize_grads)
    return tuple(result)
