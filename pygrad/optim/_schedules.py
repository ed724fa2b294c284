"""Schedules given by a formula of the epoch."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from ._schedule import LRScheduler, Rate
from .optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]

Factor: TypeAlias = Callable[[int], float]


class _FactorLR(LRScheduler):
    """The base class of schedules with a function of the epoch for each group."""

    def __init__(
        self, optimizer: Optimizer, lr_lambda: Factor | list[Factor], last_epoch: int = -1
    ) -> None:
        self.optimizer = optimizer
        n_groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            self.lr_lambdas = [lr_lambda] * n_groups
        elif len(lr_lambda) != n_groups:
            raise ValueError(f"Expected {n_groups} lr_lambdas, but got {len(lr_lambda)}")
        else:
            self.lr_lambdas = list(lr_lambda)
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        pass

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer and plain functions; callable objects give their
        state.
        """
        state = {key: value for key, value in super().state_dict().items() if key != "lr_lambdas"}
        state["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else function.__dict__.copy()
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of :meth:`state_dict`; plain functions stay unchanged."""
        own = {key: value for key, value in state_dict.items() if key != "lr_lambdas"}
        self.__dict__.update(own)
        for function, state in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=True):
            if state is not None:
                function.__dict__.update(state)


class LambdaLR(_FactorLR):
    """lr = initial lr * lr_lambda(epoch).

    Example:
        >>> import pygrad
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = pygrad.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def get_lr(self) -> list[Rate]:
        self._present()
        return [
            base * function(self.last_epoch)
            for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)
        ]


class MultiplicativeLR(_FactorLR):
    """lr = lr * lr_lambda(epoch).

    Raises:
        TypeError: a ``lr_lambda`` cannot be called.
    """

    def _check_functions(self) -> None:
        for function in self.lr_lambdas:
            if not callable(function):
                raise TypeError(
                    f"lr_lambda should be a function, but got {type(function).__name__}"
                )

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        if self._is_initial:
            return rates
        return [
            rate * function(self.last_epoch)
            for function, rate in zip(self.lr_lambdas, rates, strict=True)
        ]


class StepLR(LRScheduler):
    """lr = lr * gamma every ``step_size`` epochs.

    Example:
        >>> import pygrad
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = pygrad.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> rates = []
        >>> for _ in range(5):
        ...     rates.extend(schedule.get_last_lr())
        ...     optimizer.step()
        ...     schedule.step()
        >>> rates
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        if self.last_epoch == 0 or self.last_epoch % self.step_size != 0:
            return rates
        return [rate * self.gamma for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.gamma ** (self.last_epoch // self.step_size)
        return [base * factor for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """lr = lr * gamma at each of ``milestones``; a milestone given twice counts twice."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Iterable[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        if self.last_epoch not in self.milestones:
            return rates
        factor = self.gamma ** self.milestones[self.last_epoch]
        return [rate * factor for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """lr = initial lr * factor for ``total_iters`` epochs, and the initial lr after them.

    Raises:
        ValueError: ``factor`` is not between 0 and 1.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        if self.last_epoch == 0:
            return [rate * self.factor for rate in rates]
        if self.last_epoch != self.total_iters:
            return rates
        return [rate * (1.0 / self.factor) for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """lr = initial lr * a factor that changes linearly in ``total_iters`` epochs.

    Raises:
        ValueError: ``start_factor`` is not in (0, 1], or ``end_factor`` not in [0, 1].

    Example:
        >>> import pygrad
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = pygrad.optim.lr_scheduler.LinearLR(optimizer, 0.5, total_iters=2)
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates = rates + schedule.get_last_lr()
        >>> rates
        [0.5, 0.75, 1.0, 1.0]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal "
                "to 1."
            )
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in rates]
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates
        rise = self.end_factor - self.start_factor
        before = self.total_iters * self.start_factor + (self.last_epoch - 1) * rise
        return [rate * (1.0 + rise / before) for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        rise = self.end_factor - self.start_factor
        passed = min(self.total_iters, self.last_epoch)
        factor = self.start_factor + rise * passed / self.total_iters
        return [base * factor for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """lr = lr * gamma every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        return rates if self._is_initial else [rate * self.gamma for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """lr = initial lr * (1 - epoch / total_iters)^power, and zero after ``total_iters``."""

    def __init__(
        self,
        optimizer: Optimizer,
        total_iters: int = 5,
        power: float = 1.0,
        last_epoch: int = -1,
    ) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        if self._is_initial or self.last_epoch > self.total_iters:
            return rates
        left = 1.0 - self.last_epoch / self.total_iters
        left_before = 1.0 - (self.last_epoch - 1) / self.total_iters
        factor = (left / left_before) ** self.power
        return [rate * factor for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        passed = min(self.total_iters, self.last_epoch)
        factor = (1.0 - passed / self.total_iters) ** self.power
        return [base * factor for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """From the initial lr to ``eta_min`` along half a cosine of ``T_max`` epochs, and back.

    Example:
        >>> import pygrad
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = pygrad.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> round(schedule.get_last_lr()[0], 4)
        0.5
    """

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        rates = self._present()
        low, period, epoch = self.eta_min, self.T_max, self.last_epoch
        if self._is_initial:
            return rates
        if self._step_count == 1 and epoch > 0:
            # The angle with pi as the last factor, then as the first: PyTorch rounds both ways.
            cosine = math.cos(epoch * math.pi / period)
            return [low + (base - low) * (1 + cosine) / 2 for base in self.base_lrs]
        if (epoch - 1 - period) % (2 * period) == 0:
            # The previous rate is the lowest one, so the quotient below would divide by zero.
            rise = 1 - math.cos(math.pi / period)
            return [
                rate + (base - low) * rise / 2
                for rate, base in zip(rates, self.base_lrs, strict=True)
            ]
        height = 1 + math.cos(math.pi * epoch / period)
        height_before = 1 + math.cos(math.pi * (epoch - 1) / period)
        return [height / height_before * (rate - low) + low for rate in rates]

    def _get_closed_form_lr(self) -> list[Rate]:
        low = self.eta_min
        cosine = math.cos(math.pi * self.last_epoch / self.T_max)
        return [low + (base - low) * (1 + cosine) / 2 for base in self.base_lrs]
