"""Learning rate schedules: PyTorch's ``torch.optim.lr_scheduler``.

Example:
    >>> import pygrad
    >>> optimizer = pygrad.optim.SGD([pygrad.ones(1, requires_grad=True)], lr=1.0)
    >>> schedule = pygrad.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
    >>> optimizer.step()
    >>> schedule.step()
    >>> schedule.get_last_lr()
    [0.5]
"""

from __future__ import annotations

from ._schedule import EPOCH_DEPRECATION_WARNING, LRScheduler
from ._schedules import (
    ConstantLR,
    CosineAnnealingLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from ._schedules_composed import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from ._schedules_cyclic import CosineAnnealingWarmRestarts, CyclicLR, OneCycleLR

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "ChainedScheduler",
    "ConstantLR",
    "CosineAnnealingLR",
    "CosineAnnealingWarmRestarts",
    "CyclicLR",
    "ExponentialLR",
    "LRScheduler",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "OneCycleLR",
    "PolynomialLR",
    "ReduceLROnPlateau",
    "SequentialLR",
    "StepLR",
]

_LRScheduler = LRScheduler

for _name in __all__:
    if isinstance(globals()[_name], type):
        globals()[_name].__module__ = __name__  # as in PyTorch, in printed forms
