"""Gradients of each sample of a batch from a single call of the module."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..._ground.tree import flatten, unflatten
from ..._tensor.tensor import Tensor
from ..._transforms.vmap import vmap
from ..modules.module import Module
from .stateless import _functional_call

__all__ = ["call_for_per_sample_grads"]


def call_for_per_sample_grads(
    module: Module,
    *,
    batch_size: int | None = None,
    loss_reduction: str = "sum",
    batch_first: bool = True,
) -> Callable[..., Any]:
    """The module as a function whose backward sets ``grad_sample`` of parameters instead of
    ``grad``: (batch, *shape of the parameter).

    Args:
        module: must compute each sample independently, without batch norm over the batch.
        batch_size: the number of samples; by default taken from the inputs.
        loss_reduction: "sum" or "mean", the reduction of the loss over samples.
        batch_first: whether samples are the first dimension of inputs, or the second.

    Raises:
        RuntimeError: arguments of other types; inputs of different batch sizes; an existing
            ``grad_sample``.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.utils._per_sample_grad import call_for_per_sample_grads
        >>> layer = pygrad.nn.Linear(2, 1)
        >>> x = pygrad.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> call_for_per_sample_grads(layer)(x).sum().backward()
        >>> layer.weight.grad_sample
        tensor([[[1., 2.]],
        <BLANKLINE>
                [[3., 4.]]])
    """
    if not isinstance(module, Module):
        raise RuntimeError(f"Module passed must be nn.Module, got {type(module).__name__}")
    if not (batch_size is None or isinstance(batch_size, int)):
        raise RuntimeError(
            f"Batch size passed must be None or an integer, got {type(batch_size).__name__}"
        )
    if batch_size is not None and batch_size < 1:
        raise RuntimeError(f"Batch size must be positive, got {batch_size}")
    if loss_reduction not in ("sum", "mean"):
        raise RuntimeError(
            f"Expected loss_reduction argument to be sum or mean, got {loss_reduction}"
        )
    for parameter in module.parameters():
        if getattr(parameter, "grad_sample", None) is not None:
            raise RuntimeError(
                "Current Expanded Weights accumulates the gradients, which will be incorrect for "
                "multiple calls without clearing gradients. Please clear out the grad_sample "
                f"parameter of {parameter} or post an issue to pytorch/pytorch to prioritize "
                "correct behavior"
            )
    dim = 0 if batch_first else 1

    @functools.wraps(module.forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = flatten((args, kwargs))
        number = batch_size or _batch_size(leaves, dim)
        own: dict[str, Any] = {
            name: _spread(parameter, number, loss_reduction == "mean")
            for name, parameter in module.named_parameters()
            if parameter.requires_grad
        }
        fits = [isinstance(x, Tensor) and x.dim() > dim and x.size(dim) == number for x in leaves]

        def one(given: dict[str, Any], *rest: Any) -> Any:
            samples = [x.unsqueeze(dim) if yes else x for x, yes in zip(rest, fits, strict=True)]
            inner, named = unflatten(samples, spec)
            found, shape = flatten(_functional_call(module, given, inner, named))
            return unflatten(
                [x.squeeze(dim) if isinstance(x, Tensor) and x.dim() > dim else x for x in found],
                shape,
            )

        dims = tuple(dim if yes else None for yes in fits)
        mapped = vmap(one, in_dims=(0, *dims), out_dims=dim, randomness="different")
        return mapped(own, *leaves)

    return call


def _batch_size(leaves: list[Any], dim: int) -> int:
    sizes = [x.size(dim) for x in leaves if isinstance(x, Tensor) and x.dim() > dim]
    if not sizes:
        raise RuntimeError(
            "Unable to find a tensor in the passed args and kwargs. They may not be "
            "pytree-able and so ExpandedWeights cannot compute the batch size from the inputs. "
            "Please specify it explicitly"
        )
    for size in sizes:
        if size != sizes[0]:
            raise RuntimeError(
                "When computing batch size, found at least one input with batch size "
                f"{sizes[0]} and one with batch size {size}. Please specify it explicitly using "
                "the batch size kwarg in call_for_per_sample_grads"
            )
    return int(sizes[0])


def _spread(parameter: Tensor, number: int, mean: bool) -> Tensor:
    """A copy of the parameter for each sample. The gradient of the copies becomes `grad_sample`."""
    copies = parameter.detach().expand(number, *parameter.shape).requires_grad_()

    def keep(grad: Tensor) -> None:
        own = grad * number if mean else grad
        before = getattr(parameter, "grad_sample", None)
        setattr(parameter, "grad_sample", own if before is None else before + own)  # noqa: B010

    copies.register_hook(keep)
    return copies
