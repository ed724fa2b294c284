"""Averagers of parameters, with the choice of steps."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from ..._group import _get_default_group
from . import utils

__all__ = ["ModelAverager", "PeriodicModelAverager"]


class ModelAverager(ABC):
    """Averages parameters over ranks.

    Args:
        process_group: the ranks; the default group if it is None.

    Attributes:
        step: the number of calls of `average_parameters`.
    """

    def __init__(self, process_group: Any = None) -> None:
        self.process_group = _get_default_group() if process_group is None else process_group
        self.step = 0

    @abstractmethod
    def average_parameters(self, params: Iterable[Any]) -> None:
        """Called after each step of the optimizer.

        Args:
            params: parameters, or groups of them as an optimizer has.
        """


class PeriodicModelAverager(ModelAverager):
    """Averages parameters once in a period of steps.

    Args:
        period: the number of steps.
        warmup_steps: steps before the first one that averages.
        process_group: the ranks; the default group if it is None.

    Raises:
        ValueError: a number is too small.
    """

    def __init__(self, period: int, warmup_steps: int = 0, process_group: Any = None) -> None:
        super().__init__(process_group)
        if warmup_steps < 0:
            raise ValueError("Arg ``warmup_steps`` must be a non-negative number.")
        if period < 1:
            raise ValueError("Arg ``period`` must be a positive value.")
        if period == 1:
            warnings.warn(
                "When period is 1, no need to use model averaging because the communication cost "
                "of all-reducing parameters will be no less than the cost of all-reducing "
                "gradients by DistributedDataParallel in the backward pass. Therefore, only "
                "DistributedDataParallel should be used for this case.",
                stacklevel=2,
            )
        self.warmup_steps, self.period = warmup_steps, period

    def average_parameters(self, params: Iterable[Any]) -> None:
        """Averages the parameters that have a gradient, in steps that are due.

        Args:
            params: parameters, or groups of them as an optimizer has.
        """
        past = self.step - self.warmup_steps
        if past >= 0 and past % self.period == 0:
            utils.average_parameters_or_parameter_groups(params, self.process_group)
        self.step += 1
