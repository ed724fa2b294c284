"""Averages of weights over training: stochastic weight averaging, and exponential averages."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor
from ..autograd.grad_mode import no_grad
from ..nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from ..nn.modules.module import Module
from ._schedule import LRScheduler
from .optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]

Average: TypeAlias = Callable[[Tensor, Tensor, Any], Tensor]
Averages: TypeAlias = Callable[[Sequence[Tensor], Sequence[Tensor], Any], None]


def _check_decay(decay: float) -> None:
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Makes a function for exponential averages of lists: a = decay * a + (1 - decay) * current.

    Example:
        >>> import pygrad
        >>> average = pygrad.ones(1)
        >>> pygrad.optim.swa_utils.get_ema_multi_avg_fn(0.5)([average], [pygrad.zeros(1)], 1)
        >>> average
        tensor([0.5000])
    """
    _check_decay(decay)
    one = get_ema_avg_fn(decay)

    @no_grad()
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], number: Any) -> None:
        for mean, new in zip(averaged, current, strict=True):
            if mean.is_floating_point():
                mean.lerp_(new, 1 - decay)
            else:
                mean.copy_(one(mean, new, number))

    return update


def get_swa_multi_avg_fn() -> Averages:
    """Makes a function that adds lists of tensors to their means, with equal weights.

    Example:
        >>> import pygrad
        >>> average = pygrad.ones(1)
        >>> pygrad.optim.swa_utils.get_swa_multi_avg_fn()([average], [pygrad.zeros(1)], 1)
        >>> average
        tensor([0.5000])
    """
    one = get_swa_avg_fn()

    @no_grad()
    def update(averaged: Sequence[Tensor], current: Sequence[Tensor], number: Any) -> None:
        for mean, new in zip(averaged, current, strict=True):
            if mean.is_floating_point():
                mean.lerp_(new, 1 / (int(number) + 1))
            else:
                mean.copy_(one(mean, new, number))

    return update


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Makes a function for exponential averages of tensors.

    Example:
        >>> import pygrad
        >>> mean = pygrad.optim.swa_utils.get_ema_avg_fn(0.5)
        >>> mean(pygrad.ones(1), pygrad.zeros(1), 1)
        tensor([0.5000])
    """
    _check_decay(decay)

    @no_grad()
    def update(averaged: Tensor, current: Tensor, number: Any) -> Tensor:
        return decay * averaged + (1 - decay) * current

    return update


def get_swa_avg_fn() -> Average:
    """Makes a function that adds a tensor to a mean of n tensors.

    Example:
        >>> import pygrad
        >>> mean = pygrad.optim.swa_utils.get_swa_avg_fn()
        >>> mean(pygrad.ones(1), pygrad.zeros(1), 3)
        tensor([0.7500])
    """

    @no_grad()
    def update(averaged: Tensor, current: Tensor, number: Any) -> Tensor:
        mean: Tensor = averaged + (current - averaged) / (number + 1)
        return mean

    return update


class AveragedModel(Module):
    """A model whose parameters are averages of another's.

    Args:
        model: the model, which is copied.
        device: must be the CPU.
        avg_fn: returns the average for (average, parameter, count); by default with equal weights.
        multi_avg_fn: writes the averages of lists of tensors.
        use_buffers: average buffers too; else copy them from the model.

    Example:
        >>> import pygrad
        >>> model = pygrad.nn.Linear(1, 1)
        >>> averaged = pygrad.optim.swa_utils.AveragedModel(model)
        >>> averaged.update_parameters(model)
        >>> averaged.n_averaged
        tensor(1)
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", pygrad.tensor(0, dtype=pygrad.long, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _averaged_tensors(self, module: Module) -> list[Tensor]:
        found: list[Tensor] = list(module.parameters())
        return found + list(module.buffers()) if self.use_buffers else found

    def update_parameters(self, model: Module) -> None:
        """Add the current parameters of the model to the averages."""
        means = [each.detach() for each in self._averaged_tensors(self.module)]
        news = [each.detach() for each in self._averaged_tensors(model)]
        if not int(self.n_averaged):
            for mean, new in zip(means, news, strict=True):
                mean.copy_(new)
        elif self.avg_fn is not None:
            for mean, new in zip(means, news, strict=True):
                mean.copy_(self.avg_fn(mean, new, self.n_averaged))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(means, news, self.n_averaged)
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=True):
                own.detach().copy_(other.detach())
        self.n_averaged += 1


@no_grad()
def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of batch norms from the data.

    Args:
        loader: yields batches, or lists whose first element is the batch.
        model: the model, which is called with each batch.
        device: must be the CPU.

    Example:
        >>> import pygrad
        >>> model = pygrad.nn.BatchNorm1d(1)
        >>> pygrad.optim.swa_utils.update_bn([pygrad.tensor([[1.0], [3.0]])], model)
        >>> model.running_mean
        tensor([2.])
    """
    norms = [
        (m, m.momentum)
        for m in model.modules()
        if isinstance(m, (BatchNorm1d, BatchNorm2d, BatchNorm3d))
    ]
    if not norms:
        return
    was_training = model.training
    model.train()
    for norm, _ in norms:
        norm.reset_running_stats()
        norm.momentum = None
    for batch in loader:
        data = batch[0] if isinstance(batch, (list, tuple)) else batch
        model(data if device is None else data.to(device))
    for norm, momentum in norms:
        norm.momentum = momentum
    model.train(was_training)


_SHAPES: dict[str, Callable[[float], float]] = {
    "cos": lambda t: (1 - math.cos(math.pi * t)) / 2,
    "linear": lambda t: t,
}


class SWALR(LRScheduler):
    """Moves the rates of the groups to fixed rates, and keeps them there.

    Args:
        optimizer: the optimizer whose learning rates change.
        swa_lr: the rate of all groups, or a list with one per group.
        anneal_epochs: the number of steps of the transition.
        anneal_strategy: "cos" or "linear".
        last_epoch: the last epoch of a run to resume; -1 begins anew.

    Raises:
        ValueError: an argument is out of range.

    Example:
        >>> import pygrad
        >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
        >>> schedule = pygrad.optim.swa_utils.SWALR(optimizer, 0.5, 1)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        groups = optimizer.param_groups
        rates = list(swa_lr) if isinstance(swa_lr, (list, tuple)) else [swa_lr] * len(groups)
        if len(rates) != len(groups):
            raise ValueError(
                "swa_lr must have the same length as optimizer.param_groups. swa_lr has "
                f"{len(rates)} values, param_groups has {len(groups)}."
            )
        for rate, group in zip(rates, groups, strict=True):
            # A copy, since a tensor may be changed in place.
            group["swa_lr"] = rate.clone() if isinstance(rate, Tensor) else rate
        if anneal_strategy not in _SHAPES:
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._anneal_strategy = anneal_strategy
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        step = self._step_count - 1
        if not self.anneal_epochs:
            step = max(1, step)
        before, now = (
            _SHAPES[self._anneal_strategy](max(0, min(1, at / max(1, self.anneal_epochs))))
            for at in (step - 1, step)
        )
        rates = []
        for group in self.optimizer.param_groups:
            last = group["swa_lr"]
            start = last if before == 1 else (group["lr"] - before * last) / (1 - before)
            rates.append(last * now + start * (1 - now))
        return rates
