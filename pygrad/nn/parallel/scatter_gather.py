"""Division of containers of tensors over devices, and the inverse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..._ground.tree import is_namedtuple_class
from ..._tensor.tensor import Tensor
from . import comm

__all__ = ["gather", "scatter", "scatter_kwargs"]


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


_is_namedtuple = is_namedtuple


def scatter(inputs: Any, target_gpus: Sequence[Any], dim: int = 0) -> Any:
    """The arguments for each device: a part of each tensor; all of any other value.

    Raises:
        RuntimeError, ValueError: there is a tensor, and there are no such devices.

    Example:
        >>> from pygrad.nn.parallel import scatter
        >>> scatter((3, {"a": "b"}), [0, 1])
        [(3, {'a': 'b'}), (3, {'a': 'b'})]
    """
    if isinstance(inputs, Tensor):
        return comm.scatter(inputs, target_gpus, dim=dim)
    if isinstance(inputs, (tuple, list)) and len(inputs):
        make: Any = type(inputs)._make if is_namedtuple(inputs) else type(inputs)  # type: ignore[union-attr]
        columns = [scatter(each, target_gpus, dim) for each in inputs]
        return [make(row) for row in zip(*columns, strict=True)]
    if isinstance(inputs, dict) and len(inputs):
        columns = [scatter(each, target_gpus, dim) for each in inputs.items()]
        return [type(inputs)(row) for row in zip(*columns, strict=True)]
    return [inputs for _ in target_gpus]


def scatter_kwargs(
    inputs: tuple[Any, ...],
    kwargs: dict[str, Any] | None,
    target_gpus: Sequence[Any],
    dim: int = 0,
) -> tuple[tuple[Any, ...], tuple[dict[str, Any], ...]]:
    """The positional and the keyword arguments for each device."""
    rows = list(scatter(inputs, target_gpus, dim)) if inputs else []
    named = list(scatter(kwargs, target_gpus, dim)) if kwargs else []
    rows += [() for _ in range(len(named) - len(rows))]
    named += [{} for _ in range(len(rows) - len(named))]
    return tuple(rows), tuple(named)


def gather(outputs: Any, target_device: Any, dim: int = 0) -> Any:
    """Joins the outputs of the devices, each tensor along a dimension.

    Raises:
        AssertionError: there are tensors; tensors on the CPU are not gathered.
        ValueError: dicts of different sizes.
    """
    first = outputs[0]
    if isinstance(first, Tensor):
        raise AssertionError("Gather function not implemented for CPU tensors")
    if first is None:
        return None
    if isinstance(first, dict):
        if not all(len(each) == len(first) for each in outputs):
            raise ValueError("All dicts must have the same number of keys")
        return type(first)(
            (key, gather([each[key] for each in outputs], target_device, dim)) for key in first
        )
    parts = [gather(list(each), target_device, dim) for each in zip(*outputs, strict=True)]
    return type(first)._make(parts) if is_namedtuple(first) else type(first)(parts)
