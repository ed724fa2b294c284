"""Analysis of a module's outputs: the parameters that backward reaches, and the start of
backward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..._ground.tree import flatten, map_leaves
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ...autograd.function import Function


class _DDPSink(Function):
    """The identity, as one node of all tensors. A backward from one tensor passes through the
    histories of all, so hooks of parameters that the loss does not depend on are called too.
    """

    @staticmethod
    def forward(ctx: Any, begin: Callable[[], None], clone: bool, _: Tensor, *given: Any) -> Any:
        ctx.set_materialize_grads(False)
        ctx.begin = begin
        return tuple(each.clone() if clone else each.view_as(each) for each in given)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        ctx.begin()
        return None, None, None, *grads


def tensors_of(output: Any) -> list[Tensor]:
    """The tensors in the output of a module."""
    return [each for each in flatten(output)[0] if isinstance(each, Tensor)]


def with_begin(output: Any, begin: Callable[[], None], clone: bool) -> Any:
    """Wraps the output so that its backward first calls `begin`.

    If no tensor requires a gradient, all tensors of floats do in the result: this rank then has a
    backward too, since the others wait for its zeros.

    Args:
        output: the output of the module.
        begin: the function to call.
        clone: copy the tensors, so that they can be changed in place.
    """
    tensors = tensors_of(output)
    chosen = [each for each in tensors if each.requires_grad]
    start = pygrad.empty(0, requires_grad=not chosen)
    chosen = chosen or [each for each in tensors if each.is_floating_point()]
    if not chosen:
        return output
    made = _DDPSink.apply(begin, clone, start, *chosen)
    places = {id(each): new for each, new in zip(chosen, made, strict=True)}
    return map_leaves(lambda each: places.get(id(each), each), output)


def reachable_leaves(outputs: Iterable[Tensor]) -> set[int]:
    """The ids of the leaves that backward from these tensors would reach."""
    found: set[int] = set()
    seen: set[Any] = set()
    left: list[Any] = []
    for each in outputs:
        if each.grad_fn is not None:
            left.append(each.grad_fn)
        elif each.requires_grad:
            found.add(id(each))
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.name().endswith("AccumulateGrad"):
            found.add(id(node.variable))
        left += [following for following, _ in node.next_functions if following is not None]
    return found
