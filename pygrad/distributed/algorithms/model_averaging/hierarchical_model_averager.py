"""Averages of parameters over small groups often, and over large ones rarely."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from ..._group import get_world_size, new_subgroups
from . import averagers, utils

__all__ = ["HierarchicalModelAverager"]


class HierarchicalModelAverager(averagers.ModelAverager):
    """Averages parameters over groups of several sizes, each with a period of steps. If several are
    due in a step, the one with the longest period averages.

    Args:
        period_group_size_dict: the size of the groups for each period. Periods increase, and the
            last size is that of `process_group`.
        warmup_steps: steps before the first one that averages.
        process_group: the ranks; the default group if it is None.

    Raises:
        ValueError: the numbers violate these rules.
    """

    def __init__(
        self,
        period_group_size_dict: Mapping[int, int] | None = None,
        warmup_steps: int = 0,
        process_group: Any = None,
    ) -> None:
        super().__init__(process_group)
        if not period_group_size_dict:
            raise ValueError("Arg ``period_group_size_dict`` must not be empty.")
        self._periods = list(period_group_size_dict)
        if self._periods[0] <= 0:
            raise ValueError(
                "The minimum period in arg ``period_group_size_dict`` must be a positive value."
            )
        if self._periods[-1] == 1:
            warnings.warn(
                "When the maximum period in arg ``period_group_size_dict`` is 1, no need to use "
                "model averaging because the communication cost of all-reducing parameters will "
                "be no less than the cost of all-reducing gradients by DistributedDataParallel in "
                "the backward pass. Therefore, only DistributedDataParallel should be used for "
                "this case.",
                stacklevel=2,
            )
        ranks = get_world_size(self.process_group)
        last = period_group_size_dict[self._periods[-1]]
        if last != ranks:
            raise ValueError(
                f"The last value in arg ``period_group_size_dict`` {last} must be equal to the "
                f"size of arg ``process_group`` {ranks}."
            )
        self.period_process_group_dict = {
            period: self.process_group
            if size == ranks
            else new_subgroups(group_size=size, group=self.process_group)[0]
            for period, size in period_group_size_dict.items()
        }
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        self.warmup_steps = warmup_steps

    def _find_process_group(self) -> Any:
        """The group that averages in this step, or None."""
        for period in reversed(self._periods):
            if self.step % period == 0:
                return self.period_process_group_dict[period]
        return None

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Averages the parameters that have a gradient, in steps that are due.

        Args:
            params: parameters, or groups of them as an optimizer has.
        """
        group = self._find_process_group()
        if self.step >= self.warmup_steps and group is not None:
            utils.average_parameters_or_parameter_groups(params, group)
        self.step += 1
