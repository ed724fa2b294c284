"""Schedules that rise and fall: cycles, restarts, and one cycle for a whole training."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from ._schedule import (
    LRScheduler,
    Rate,
    begin_momentum_cycle,
    one_for_each_group,
    require_momentum,
    require_optimizer,
    set_momentum,
    set_value,
)
from .optimizer import Optimizer

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from the initial lr to ``eta_min``, restarted after T_0, T_0 * T_mult, ...

    Raises:
        ValueError: ``T_0`` or ``T_mult`` is no positive integer, ``eta_min`` is no number, or the
            epoch of a :meth:`step` is negative.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Rate]:
        self._present()
        low = self.eta_min
        cosine = math.cos(math.pi * self.T_cur / self.T_i)
        return [low + (base - low) * (1 + cosine) / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Advance to the next epoch, or to any other one, including fractions.

        Example:
            >>> import pygrad
            >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
            >>> schedule = pygrad.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer, 2)
            >>> schedule.step(1.0)
            >>> round(schedule.get_last_lr()[0], 4)
            0.5
        """
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._within_step():
            rates = self.get_lr()
        self._set_rates(rates)

    def _go_to(self, epoch: float) -> None:
        """Set the period of an epoch, and the position in it."""
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            # n whole periods last T_0 * (T_mult^n - 1) / (T_mult - 1).
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            passed = self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_cur = epoch - passed
            self.T_i = self.T_0 * self.T_mult**n


class CyclicLR(LRScheduler):
    """Moves the rate from ``base_lr`` up to ``max_lr`` and down again, in cycles.

    Args:
        optimizer: the optimizer whose learning rates change.
        base_lr, max_lr: the bounds, one for all groups or a list.
        step_size_up, step_size_down: iterations up and down; by default both are equal.
        mode: "triangular", "triangular2" (half the amplitude each cycle) or "exp_range" (the
            amplitude falls by ``gamma`` each iteration).
        scale_fn: the amplitude, instead of ``mode``, as a function of the cycle or the iteration.
        scale_mode: "cycle" or "iterations": the argument of ``scale_fn``.
        cycle_momentum: move momentum in the opposite direction, between ``base_momentum`` and
            ``max_momentum``.

    Raises:
        ValueError: the mode is unknown, a list has another length, or there is no momentum.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: Literal["triangular", "triangular2", "exp_range"] = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: Literal["cycle", "iterations"] = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.8,
        max_momentum: float | list[float] = 0.9,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = one_for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, rate in zip(optimizer.param_groups, base_lrs, strict=True):
                set_value(group, "lr", rate)
        self.max_lrs = one_for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode: str = scale_mode
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            require_momentum(optimizer)
            self.use_beta1 = "betas" in optimizer.defaults
            self.base_momentums = one_for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = one_for_each_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                begin_momentum_cycle(optimizer, self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        """Set the function of the mode, unless the user gave one."""
        if self._scale_fn_custom is not None:
            return
        functions: dict[str, tuple[Callable[[float], float], str]] = {
            "triangular": (_full_height, "cycle"),
            "triangular2": (_half_height_each_cycle, "cycle"),
            "exp_range": (partial(_power, self.gamma), "iterations"),
        }
        self._scale_fn_ref, self.scale_mode = functions[self.mode]

    def scale_fn(self, x: float) -> float:
        """The amplitude in cycle or iteration ``x``, relative to the first."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return self._scale_fn_ref(x)

    def get_lr(self) -> list[Rate]:
        self._present()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        if x <= self.step_ratio:
            height = x / self.step_ratio
        else:
            height = (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momentums = zip(self.base_momentums, self.max_momentums, strict=True)
            for group, (low, high) in zip(self.optimizer.param_groups, momentums, strict=True):
                set_momentum(group, high - (high - low) * height * scale)
        rates = zip(self.base_lrs, self.max_lrs, strict=True)
        return [low + (high - low) * height * scale for low, high in rates]

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer and plain functions; callable objects give their
        state.
        """
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        function = state["_scale_fn_custom"]
        if function is not None:
            is_plain = isinstance(function, types.FunctionType)
            state["_scale_fn_custom"] = None if is_plain else function.__dict__.copy()
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of :meth:`state_dict`; plain functions stay unchanged."""
        state = dict(state_dict)
        custom = state.pop("_scale_fn_custom")
        super().load_state_dict(state)
        if custom is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(custom)
        self._init_scale_fn()


def _full_height(cycle: float) -> float:
    return 1.0


def _power(base: float, exponent: float) -> float:
    return float(base**exponent)


def _half_height_each_cycle(cycle: float) -> float:
    return float(1 / (2.0 ** (cycle - 1)))


class OneCycleLR(LRScheduler):
    """One rise to ``max_lr`` and one fall far below the initial rate, for a whole training.

    Call :meth:`step` after every batch.

    Args:
        optimizer: the optimizer whose learning rates change.
        max_lr: the peak, one for all groups or a list.
        total_steps: the steps of the cycle; or give ``epochs`` and ``steps_per_epoch``.
        pct_start: the fraction of the steps that rise.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: move momentum in the opposite direction, between ``base_momentum`` and
            ``max_momentum``.
        div_factor: the initial rate is max_lr / div_factor.
        final_div_factor: the last rate is the initial rate / final_div_factor.
        three_phase: fall to the initial rate symmetrically to the rise, and then to the last rate.

    Raises:
        ValueError: a number is out of range, a list has another length, there is no momentum, or
            at :meth:`step` the cycle is over.

    Example:
        >>> import pygrad
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
        >>> schedule = pygrad.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=1.0, total_steps=10)
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(9):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates = rates + schedule.get_last_lr()
        >>> round(rates[0], 4), max(rates), rates.index(max(rates))
        (0.04, 1.0, 2)
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: Literal["cos", "linear"] = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_func_type = anneal_strategy
        peaks = one_for_each_group("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for group, peak in zip(optimizer.param_groups, peaks, strict=True):
                group["initial_lr"] = peak / div_factor
                group["max_lr"] = peak
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            require_momentum(optimizer)
            self.use_beta1 = "betas" in optimizer.defaults
            top = one_for_each_group("max_momentum", optimizer, max_momentum)
            base = one_for_each_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                begin_momentum_cycle(optimizer, base, top)
        super().__init__(optimizer, last_epoch)

    def _interpolate(self, start: Any, end: Any, share: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * share + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * share) + 1)

    def _place(self) -> tuple[dict[str, Any], float]:
        """The phase of the current step, and the fraction of it that has passed."""
        start = 0.0
        for phase in self._schedule_phases[:-1]:
            if self.last_epoch <= phase["end_step"]:
                break
            start = phase["end_step"]
        else:
            phase = self._schedule_phases[-1]
        return phase, (self.last_epoch - start) / (phase["end_step"] - start)

    def get_lr(self) -> list[Rate]:
        self._present()
        if self.last_epoch > self.total_steps:
            raise ValueError(
                f"Tried to step {self.last_epoch} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        phase, share = self._place()
        rates = []
        for group in self.optimizer.param_groups:
            start, end = group[phase["start_lr"]], group[phase["end_lr"]]
            rates.append(self._interpolate(start, end, share))
            if self.cycle_momentum:
                start, end = group[phase["start_momentum"]], group[phase["end_momentum"]]
                set_momentum(group, self._interpolate(start, end, share))
        return rates


def _total_steps(total: int | None, epochs: int | None, per_epoch: int | None) -> int:
    if total is not None:
        return _positive("total_steps", total)
    if epochs is None or per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", per_epoch)


def _positive(name: str, value: int) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(pct_start: float, total_steps: int, three_phase: bool) -> list[dict[str, Any]]:
    """The phases of the cycle: their ends, and the options of a group between which each moves."""
    rise_end = float(pct_start * total_steps) - 1
    legs: list[tuple[float, str, str, str, str]] = [
        (rise_end, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    ]
    if three_phase:
        fall_end = float(2 * pct_start * total_steps) - 2
        legs.append((fall_end, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        legs.append((total_steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        legs.append((total_steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return [dict(zip(names, leg, strict=True)) for leg in legs]
