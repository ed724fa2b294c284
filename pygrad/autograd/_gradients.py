"""`backward` and `grad`: the arguments that users give, in the form of `differentiate`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._boundary import calls
from .._boundary.overriding import overridable
from .._ground.package import PACKAGE
from .._tensor.base import Tensor
from ._backward import differentiate
from .graph import GradientEdge


def _to_tuple(places: Any) -> tuple[Any, ...]:
    """One place or several, as a tuple."""
    return (places,) if isinstance(places, (Tensor, GradientEdge)) else tuple(places)


def _inputs(inputs: Any, caller: str) -> tuple[Any, ...]:
    """The inputs of differentiation: a tensor, several, or a dict of them."""
    if type(inputs) is dict:
        inputs = inputs.values()
    elif isinstance(inputs, Mapping):
        raise TypeError(
            f"`inputs` argument to `{caller}()` must be a dict, not {type(inputs).__name__}. "
            "Other Mapping types are not supported."
        )
    return _to_tuple(inputs)


@overridable
def backward(
    tensors: Tensor | GradientEdge | Iterable[Tensor | GradientEdge],
    grad_tensors: Tensor | Iterable[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Tensor
    | GradientEdge
    | Iterable[Tensor | GradientEdge]
    | dict[Any, Tensor]
    | None = None,
) -> None:
    """Adds the gradients of the sum of `tensors` to the ``.grad`` of the graph's leaves.

    Args:
        tensors: the roots, of any shapes.
        grad_tensors: the starting gradient of each root, of its shape; None for a root of one
            element.
        retain_graph: keep the saved tensors for another backward; default `create_graph`.
        create_graph: record the backward itself, for higher derivatives. Warns, once, that a
            gradient which has a history keeps its tensor alive.
        grad_variables: the old name of `grad_tensors`.
        inputs: the only tensors to accumulate into, leaves or not; of a dict, the values.

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
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to "
                "`backward()`. Please only use `grad_tensors`."
            )
        grad_tensors = grad_variables
    differentiate(
        _to_tuple(tensors),
        None if inputs is None else _inputs(inputs, "backward"),
        grad_tensors if grad_tensors is None else _to_tuple(grad_tensors),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        allow_unused=True,
        materialize=False,
        accumulate=True,
    )


@overridable
def grad(
    outputs: Tensor | GradientEdge | Iterable[Tensor | GradientEdge],
    inputs: Tensor | GradientEdge | Iterable[Tensor | GradientEdge] | dict[Any, Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> Any:
    """The gradients of the sum of `outputs` with respect to `inputs`, without touching ``.grad``.

    Args:
        outputs: the roots.
        inputs: the tensors by which to differentiate, leaves or not.
        grad_outputs: the starting gradient of each root; None for a root of one element.
        retain_graph: keep the saved tensors; default `create_graph`.
        create_graph: record the backward itself.
        only_inputs: deprecated and ignored.
        allow_unused: return None for an input on which no output depends, instead of raising.
        is_grads_batched: the first dimension of every gradient in `grad_outputs` is a batch; a
            backward runs for each of its rows, and the results are stacked.
        materialize_grads: return zeros instead of None.

    Returns:
        A tuple with a tensor an input, of its shape; for a dict of inputs, a dict.

    Raises:
        RuntimeError: an input was not used, a root has no history or several elements and no
            gradient, or the graph was freed.

    Example:
        >>> import pygrad
        >>> x = pygrad.tensor(2.0, requires_grad=True)
        >>> (first,) = pygrad.autograd.grad(x ** 3, x, create_graph=True)
        >>> pygrad.autograd.grad(first, {"x": x})
        {'x': tensor(12.)}
    """
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To "
            "accumulate gradient for other parts of the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    result = differentiate(
        _to_tuple(outputs),
        _inputs(inputs, "grad"),
        grad_outputs if grad_outputs is None else _to_tuple(grad_outputs),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        materialize_grads if allow_unused is None else allow_unused,
        materialize_grads,
        rows=-1 if is_grads_batched else 0,
    )
    result = [
        t if t is None else calls.remembered_object(t) for t in result
    ]  # hooks may have seen them
    return dict(zip(inputs, result, strict=True)) if type(inputs) is dict else tuple(result)


for _each in (backward, grad):
    _each.__module__ = f"{PACKAGE}.autograd"  # where users know them
