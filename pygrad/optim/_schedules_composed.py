"""Schedules composed of schedules, and the schedule that depends on a metric."""

from __future__ import annotations

import math
import warnings
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any, Literal, SupportsFloat

from ._schedule import (
    EPOCH_DEPRECATION_WARNING,
    LRScheduler,
    require_optimizer,
    set_value,
    values_of,
)
from .optimizer import Optimizer

__all__ = ["ChainedScheduler", "ReduceLROnPlateau", "SequentialLR"]


class ReduceLROnPlateau(LRScheduler):
    """Multiplies lr by ``factor`` when a metric has not improved for ``patience`` epochs.

    Args:
        optimizer: the optimizer whose learning rates change.
        mode: "min" or "max": which values are better.
        factor: the factor of a reduction, less than one.
        patience: the number of epochs without improvement before a reduction.
        threshold: the least improvement, relative to the best ("rel") or absolute ("abs"), by
            ``threshold_mode``.
        cooldown: the number of epochs after a reduction that are not counted.
        min_lr: the lowest rate, one for all groups or a list.
        eps: smaller changes of a rate are not made.

    Raises:
        TypeError: ``optimizer`` is no optimizer.
        ValueError: ``factor`` is not below one, a mode is unknown, or a list has another length.

    Example:
        >>> import pygrad
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = pygrad.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (3.0, 3.0, 3.0):
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: Literal["min", "max"] = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: Literal["rel", "abs"] = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        self.factor = factor
        require_optimizer(optimizer)
        self.optimizer = optimizer
        n_groups = len(optimizer.param_groups)
        self.default_min_lr: float | None = None
        if not isinstance(min_lr, (list, tuple)):
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * n_groups
        elif len(min_lr) != n_groups:
            raise ValueError(f"expected {n_groups} min_lrs, got {len(min_lr)}")
        else:
            self.min_lrs = list(min_lr)
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = values_of(optimizer, "lr")
        self._init_is_better(mode, threshold, threshold_mode)
        self._reset()

    def _init_is_better(self, mode: str, threshold: float, threshold_mode: str) -> None:
        if mode not in ("min", "max"):
            raise ValueError("mode " + mode + " is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError("threshold mode " + threshold_mode + " is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode

    def _reset(self) -> None:
        """Reset the history of the metric."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        """Whether the cooldown after the last reduction is still running."""
        return self.cooldown_counter > 0

    def _is_better(self, a: float, best: float) -> bool:
        relative = self.threshold_mode == "rel"
        if self.mode == "min":
            return a < (best * (1.0 - self.threshold) if relative else best - self.threshold)
        return a > (best * (self.threshold + 1.0) if relative else best + self.threshold)

    def step(  # type: ignore[override]
        self, metrics: SupportsFloat, epoch: int | None = None
    ) -> None:
        """Record the metric of an epoch, and reduce the rates if due."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self._is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr(self.last_epoch)
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = values_of(self.optimizer, "lr")

    def _reduce_lr(self, epoch: int) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from "
                    f"when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually "
                    "due to a new param group being added to the optimizer. Please modify the "
                    "`min_lrs` field to match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_value(group, "lr", new)

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of :meth:`state_dict`."""
        super().load_state_dict(state_dict)
        self._init_is_better(self.mode, self.threshold, self.threshold_mode)


class _Composed(LRScheduler):
    """The base class of schedules composed of schedules for one optimizer."""

    _schedulers: Sequence[LRScheduler]

    def _check_schedulers(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None, purpose: str
    ) -> Optimizer:
        """The common optimizer of the schedules; raises PyTorch's errors if they differ."""
        name = type(self).__name__
        if len(schedulers) < 1:
            raise ValueError(
                f"{name} expects at least one scheduler{purpose}, but got no scheduler."
            )
        owner = optimizer or schedulers[0].optimizer
        for index, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{name} at index {index} should have `optimizer` as its attribute."
                )
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it requires "
                    "additional kwargs to be specified when calling `step`, but got one at index "
                    f"{index} in the given schedulers sequence."
                )
            if scheduler.optimizer is not owner:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(scheduler).__name__} at index {index} has "
                    f"{scheduler.optimizer}, which is different from {type(owner).__name__}."
                )
        return owner

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer, with the state dicts of the schedules."""
        state = super().state_dict()
        state["_schedulers"] = [scheduler.state_dict() for scheduler in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of :meth:`state_dict`."""
        own = {key: value for key, value in state_dict.items() if key != "_schedulers"}
        super().load_state_dict(own)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(_Composed):
    """Runs one schedule after the other. At each of ``milestones`` the next one begins.

    Raises:
        TypeError, ValueError: the schedules or the milestones do not match.

    Example:
        >>> import pygrad
        >>> from pygrad.optim import lr_scheduler as schedules
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
        >>> warm = schedules.ConstantLR(optimizer, factor=0.5, total_iters=2)
        >>> main = schedules.ExponentialLR(optimizer, gamma=0.5)
        >>> schedule = schedules.SequentialLR(optimizer, [warm, main], milestones=[2])
        >>> rates = schedule.get_last_lr()
        >>> for _ in range(3):
        ...     optimizer.step()
        ...     schedule.step()
        ...     rates = rates + schedule.get_last_lr()
        >>> rates
        [0.5, 0.5, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[LRScheduler],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        self._check_schedulers(schedulers, optimizer, "")
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                "the number of milestone points, but got number of schedulers "
                f"{len(schedulers)} and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        # Each schedule made its first step in its constructor; only the first one's may count.
        for group in optimizer.param_groups:
            set_value(group, "lr", group["initial_lr"])
        self.recursive_undo()
        current = schedulers[bisect_right(milestones, 0)]
        current._initial_step()
        self._last_lr = current.get_last_lr()

    def recursive_undo(self, sched: LRScheduler | None = None) -> None:
        """Undo one step of the schedules in ``sched``, at any depth."""
        scheduler: Any = self if sched is None else sched
        if hasattr(scheduler, "_schedulers"):
            for inner in scheduler._schedulers:
                self.recursive_undo(inner)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]
        """Advance the current schedule to the next epoch."""
        self.last_epoch += 1
        index = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Runs several schedules at once. Each multiplies the result of the previous one.

    Raises:
        TypeError, ValueError: the schedules do not match.
    """

    def __init__(
        self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None
    ) -> None:
        self.optimizer = self._check_schedulers(schedulers, optimizer, " to be chained")
        self._schedulers = schedulers
        self._last_lr = values_of(self.optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]
        """Advance every schedule to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = values_of(self.optimizer, "lr")
