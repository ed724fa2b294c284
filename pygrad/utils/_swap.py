"""Exchange of two tensors: `torch.utils.swap_tensors`."""

from __future__ import annotations

import copyreg
import weakref
from typing import Any, NoReturn

from .._boundary import calls, header, release
from .._tensor.base import slots_of
from .._tensor.tensor import Tensor
from ..autograd.graph import get_gradient_edge


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Exchanges two tensors: elements, gradient, history, class, attributes. References to either
    object then refer to the other tensor.

    Raises:
        RuntimeError: a tensor has weak references, their classes have different slots, or the
            engine uses one elsewhere: in a graph, or as the base of a view. Nothing has changed.

    Example:
        >>> import pygrad as torch
        >>> x, y = torch.ones(2), torch.zeros(3, dtype=torch.int64)
        >>> torch.utils.swap_tensors(x, y)
        >>> x, y
        (tensor([0, 0, 0]), tensor([1., 1.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if any(ref is not calls.known_refs.get(tensor._h) for ref in weakref.getweakrefs(tensor)):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    names = [set(copyreg._slotnames(type(each))) for each in (t1, t2)]  # type: ignore[attr-defined]
    if names[0] != names[1]:
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    one, other = slots_of(t1), slots_of(t2)
    release.drain_if_idle()  # unreferenced tensors still count until they are released
    nodes = [_accumulator(t1, "t1"), _accumulator(t2, "t2")]
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
    _fill_slots(t1, one, other)
    _fill_slots(t2, other, one)
    calls.exchange(t1, t2)
    for node in nodes:
        if node is not None:
            node.register_prehook(_raise_poisoned)


def _fill_slots(tensor: Tensor, had: dict[str, Any], gets: dict[str, Any]) -> None:
    for name in had.keys() - gets.keys():
        delattr(tensor, name)
    for name, value in gets.items():
        setattr(tensor, name, value)


def _accumulator(tensor: Tensor, name: str) -> Any:
    """The accumulation node of a leaf in a graph; its gradients would go to the wrong tensor."""
    count = header.references_to(tensor._h)
    if count == 1:
        return None
    if count == 2 and tensor.is_leaf:
        node = get_gradient_edge(tensor).node
        if header.references_to(tensor._h) == 2:
            return node
    raise RuntimeError(
        f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count} "
        "make sure you are not holding references to the tensor in other places."
    )


def _raise_poisoned(gradients: Any) -> NoReturn:
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen "
        "when you try to run backward on a tensor that was swapped. For a module m with "
        "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the "
        "device or dtype of the module (e.g. `m.cpu()` or `m.half()`) between running forward and "
        "backward. To resolve this, please only change the device/dtype before running forward "
        "(or after both forward and backward)."
    )
