"""Averages of parameters over a group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .... import nn
from ...._tensor import namespace as pygrad
from ...._tensor.tensor import Tensor
from ... import _reductions
from ..._flat import Flat
from ..._group import get_rank, get_world_size
from ..._module_states import group_by_dtype

__all__ = [
    "average_parameters",
    "average_parameters_or_parameter_groups",
    "get_params_to_average",
]


def average_parameters(params: Iterable[Tensor], process_group: Any) -> None:
    """Replaces each parameter by its mean over the ranks of a group, in place.

    A rank outside of the group does nothing.

    Args:
        params: the parameters, the same on all ranks.
        process_group: the ranks; the default group if it is None.
    """
    if get_rank(process_group) < 0:
        return
    ranks = get_world_size(process_group)
    with pygrad.no_grad():
        for each in group_by_dtype([each.detach() for each in params]):
            flat = Flat(each)
            flat.gather(each)
            flat.tensor.div_(ranks)
            _reductions.all_reduce(flat.tensor, group=process_group)
            flat.scatter(each)


def get_params_to_average(params: Iterable[Any]) -> list[Tensor]:
    """The parameters that have a gradient.

    Args:
        params: parameters, or groups of them as an optimizer has.

    Raises:
        NotImplementedError: another type.
    """
    found: list[Tensor] = []
    for each in params:
        if isinstance(each, nn.Parameter):
            found.append(each)
        elif isinstance(each, dict):
            found += each["params"]
        else:
            raise NotImplementedError(f"Parameter input of type {type(each)} is not supported")
    return [each for each in found if each.grad is not None]


def average_parameters_or_parameter_groups(params: Iterable[Any], process_group: Any) -> None:
    """`average_parameters` of the parameters that have a gradient.

    Args:
        params: parameters, or groups of them as an optimizer has.
        process_group: the ranks.
    """
    average_parameters(get_params_to_average(params), process_group)
