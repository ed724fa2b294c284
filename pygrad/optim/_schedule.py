"""``LRScheduler``, the base class of learning rate schedules, and shared helpers.

A schedule writes ``lr`` into the groups of its optimizer, in its constructor and in every step.
Most compute the next rate from the current one, so that schedules can be chained. Many also have a
closed form from the initial rate, which ``step(epoch)`` uses.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias
from weakref import ref

from .._tensor.tensor import Tensor
from .optimizer import Group, Optimizer

Rate: TypeAlias = Any  # a float, or a tensor of one element that is written in place

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where "
    "possible. Please use `scheduler.step()` to step the scheduler. During the deprecation, if "
    "epoch is different from None, the closed form is used instead of the new chainable form, "
    "where available. Please open an issue if you are unable to replicate your use case: "
    "https://github.com/pytorch/pytorch/issues/new/choose."
)
_ORDER_HELP = (
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


class LRScheduler:
    """Base class of schedules; subclasses define ``get_lr``.

    Args:
        optimizer: the optimizer whose learning rates change.
        last_epoch: the last epoch of a run to resume; -1 begins anew, at the optimizer's rates.

    Raises:
        TypeError: ``optimizer`` is no optimizer.
        KeyError: a schedule is resumed, but a group has no ``initial_lr``.
    """

    _get_lr_called_within_step: bool = False
    _is_initial: bool = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        require_optimizer(optimizer)
        self.optimizer = optimizer
        for index, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copy_rate(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{index}] when resuming "
                    "scheduler with last_epoch >= 0.\nThis typically happens when:\n"
                    "1. You're trying to resume training from a checkpoint but haven't properly "
                    "loaded the optimizer state\n"
                    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
                )
        self.base_lrs: list[Rate] = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        _note_calls_of_step(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        """Set the first rates; ``get_lr`` can detect that this is not a step of training."""
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """The state without the optimizer."""
        return {key: value for key, value in self.__dict__.items() if key != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load the result of :meth:`state_dict`."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Rate]:
        """The rates of the groups, as this schedule last set them."""
        return self._last_lr

    def get_lr(self) -> list[Rate]:
        """The rates for ``last_epoch``, one for each group."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Advance to the next epoch, or (deprecated) to the given one."""
        if self._step_count == 1:
            self._warn_about_order()
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_DEPRECATION_WARNING, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _warn_about_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            message = (
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
                "initialization. Please, make sure to call `optimizer.step()` before "
                "`lr_scheduler.step()`. "
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            message = (
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch "
                "1.1.0 and later, you should call them in the opposite order: `optimizer.step()` "
                "before `lr_scheduler.step()`.  Failure to do this will result in PyTorch "
                "skipping the first value of the learning rate schedule. "
            )
        else:
            return
        warnings.warn(message + _ORDER_HELP, UserWarning, stacklevel=3)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._within_step():
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed_form = getattr(self, "_get_closed_form_lr", None)
            rates = self.get_lr() if epoch is None or closed_form is None else closed_form()
        self._set_rates(rates)

    @contextmanager
    def _within_step(self) -> Iterator[None]:
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _set_rates(self, rates: list[Rate]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            set_value(group, "lr", rate)
        self._last_lr = values_of(self.optimizer, "lr")

    def _present(self) -> list[Rate]:
        """The current rates; warns if ``get_lr`` was called directly."""
        if not self._get_lr_called_within_step:
            warnings.warn(
                "To get the last learning rate computed by the scheduler, "
                "please use `get_last_lr()`.",
                UserWarning,
                stacklevel=3,
            )
        return values_of(self.optimizer, "lr")


def _note_calls_of_step(optimizer: Optimizer) -> None:
    """Make the optimizer record its steps, to detect a wrong order of steps."""
    if hasattr(optimizer.step, "_wrapped_by_lr_sched"):
        return
    owner = ref(optimizer)
    function: Any = optimizer.step.__func__  # type: ignore[attr-defined]

    @functools.wraps(function)
    def step(*args: Any, **kwargs: Any) -> Any:
        live: Any = owner()
        live._opt_called = True
        return function(live, *args, **kwargs)

    step._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = step  # type: ignore[method-assign]


def require_optimizer(optimizer: object) -> None:
    """Raise ``TypeError`` unless the object is an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def copy_rate(value: Any) -> Any:
    """The value; a copy of a tensor, since tensors are written in place."""
    return value.clone() if isinstance(value, Tensor) else value


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """An option of every group."""
    return [copy_rate(group[key]) for group in optimizer.param_groups]


def set_value(group: Group, key: str, value: Any) -> None:
    """Set an option. A tensor is written in place."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def one_for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """A list with one value per group, from a single value or a list."""
    n_groups = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        value = [value] * n_groups
    elif len(value) != n_groups:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has "
            f"{len(value)} values, param_groups has {n_groups}."
        )
    return [copy_rate(entry) for entry in value]


def set_momentum(group: Group, momentum: Any) -> None:
    """Set the momentum, which is the first beta in optimizers with betas."""
    if "betas" in group:
        group["betas"] = (momentum, *group["betas"][1:])
    else:
        group["momentum"] = momentum


def begin_momentum_cycle(optimizer: Optimizer, base: list[Any], top: list[Any]) -> None:
    """Set the momentum of each group to its highest value, and store both bounds."""
    for group, low, high in zip(optimizer.param_groups, base, top, strict=True):
        set_momentum(group, high)
        group["max_momentum"] = high
        group["base_momentum"] = low


def require_momentum(optimizer: Optimizer) -> None:
    """Raise ``ValueError`` if the optimizer has no momentum to cycle."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(
            "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
        )
