"""Backward hooks of modules.

A module's backward hook needs all gradients of the module's inputs and outputs at once. So its
tensor arguments pass through one node of the graph, and its tensor results through another:
identities, whose hooks see every gradient. A `BackwardHook` belongs to one call of a module. The
hook of the output node stores the gradients of the outputs for that of the input node.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..autograd.function import Function

if TYPE_CHECKING:
    from .modules.module import Module

__all__ = ["BackwardHook"]

Grads: TypeAlias = tuple[Any, ...]
NodeHook: TypeAlias = Callable[[Grads, Grads], Grads | None]


class BackwardHookFunction(Function):
    """The identity of several tensors as one node. Missing gradients count as zeros."""

    @staticmethod
    def forward(ctx: Any, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Returns the tensors. Tensors that require no gradient still require none."""
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Grads:
        """Returns the gradients unchanged."""
        return grads


class BackwardHook:
    """One call of a module with full backward hooks or backward pre-hooks.

    Args:
        module: the first argument of the hooks.
        user_hooks: called with the gradients of the inputs and of the outputs; a returned tuple
            replaces the gradients of the inputs.
        user_pre_hooks: called with the gradients of the outputs, which they may replace.

    The gradient of an argument that is no tensor is None. That of a tensor without gradient is
    zero.

    Example:
        >>> import pygrad
        >>> from pygrad.utils.hooks import BackwardHook
        >>> x = pygrad.ones(1, requires_grad=True)
        >>> hook = BackwardHook(None, [lambda module, gi, go: print(gi, go)], [])
        >>> (inside,) = hook.setup_input_hook((x,))
        >>> hook.setup_output_hook(inside * 3).backward()
        (tensor([3.]),) (tensor([1.]),)
    """

    def __init__(
        self,
        module: Module | None,
        user_hooks: Sequence[Callable[..., Any]],
        user_pre_hooks: Sequence[Callable[..., Any]],
    ) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Grads | None = None
        self.n_outputs = self.n_inputs = -1
        self.output_tensors_index: list[int] | None = None
        self.input_tensors_index: list[int] | None = None

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Returns the arguments to pass to the module instead."""
        self.n_inputs = len(args)
        gated, self.input_tensors_index = _gate(args, self._on_grad_inputs)
        return gated

    def setup_output_hook(self, args: Any) -> Any:
        """Returns the results to return to the module's caller instead."""
        is_tuple = isinstance(args, tuple)
        outputs = args if is_tuple else (args,)
        self.n_outputs = len(outputs)
        gated, self.output_tensors_index = _gate(outputs, self._on_grad_outputs)
        return gated if is_tuple else gated[0]

    def _on_grad_outputs(self, _: Grads, grads: Grads) -> Grads:
        assert self.output_tensors_index is not None
        current = _spread(grads, self.output_tensors_index, self.n_outputs)
        self.grad_outputs = current
        for hook in self.user_pre_hooks:
            changed = hook(self.module, self.grad_outputs)
            if changed is None:
                continue
            if len(changed) != len(current):
                raise RuntimeError(
                    "Backward pre hook returned an invalid number of grad_output, "
                    f"got {len(changed)}, but expected {len(current)}"
                )
            self.grad_outputs = changed
        passed_on = self.grad_outputs
        if self.input_tensors_index is None:
            self._run_without_inputs()
        return tuple(passed_on[i] for i in self.output_tensors_index)

    def _run_without_inputs(self) -> None:
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module "
            "outputs since no inputs require gradients. See "
            "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
            "#torch.nn.Module.register_full_backward_hook for more details.",
            stacklevel=5,
        )
        nothing: Grads = (None,) * self.n_inputs
        for hook in self.user_hooks:
            changed = hook(self.module, nothing, self.grad_outputs)
            if changed is None or (isinstance(changed, tuple) and set(changed) <= {None}):
                continue
            raise RuntimeError(
                "Backward hook for Modules where no input requires gradient should always "
                "return None or None for all gradients."
            )
        self.grad_outputs = None

    def _on_grad_inputs(self, grads: Grads, _: Grads) -> Grads | None:
        if self.grad_outputs is None or self.input_tensors_index is None:
            return None  # the backward did not pass through the outputs
        current = _spread(grads, self.input_tensors_index, self.n_inputs)
        for hook in self.user_hooks:
            changed = hook(self.module, current, self.grad_outputs)
            if changed is None:
                continue
            if len(changed) != len(current):
                raise RuntimeError(
                    "Backward hook returned an invalid number of grad_input, "
                    f"got {len(changed)}, but expected {len(current)}"
                )
            current = changed
        self.grad_outputs = None
        return tuple(current[i] for i in self.input_tensors_index)


def _gate(args: tuple[Any, ...], hook: NodeHook) -> tuple[tuple[Any, ...], list[int] | None]:
    """Passes the tensors among the arguments through one node with this hook; returns the new
    arguments and the tensors' indices. If nothing is recorded, returns the arguments and None.
    """
    places = [i for i, arg in enumerate(args) if isinstance(arg, Tensor)]
    if not (any(args[i].requires_grad for i in places) and pygrad.is_grad_enabled()):
        return args, None
    tensors = BackwardHookFunction.apply(*[args[i] for i in places])
    node = next(t.grad_fn for t in tensors if t.grad_fn is not None)
    node.register_hook(hook)
    gated = list(args)
    for place, tensor in zip(places, tensors, strict=True):
        gated[place] = tensor
    return (tuple(gated) if type(args) is tuple else type(args)(*gated)), places


def _spread(grads: Grads, places: Sequence[int], size: int) -> Grads:
    """A tuple of length ``size`` with the gradients at their indices, ``None`` elsewhere."""
    spread = [None] * size
    for place, grad in zip(places, grads, strict=True):
        spread[place] = grad
    return tuple(spread)
