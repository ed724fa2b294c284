"""Optimizers and learning rate schedules: PyTorch's ``torch.optim``.

Example:
    >>> import pygrad
    >>> model = pygrad.nn.Linear(2, 1)
    >>> optimizer = pygrad.optim.Adam(model.parameters(), lr=0.1)
    >>> loss = model(pygrad.ones(4, 2)).square().mean()
    >>> loss.backward()
    >>> optimizer.step()
    >>> optimizer.zero_grad()
"""

from __future__ import annotations

from . import lr_scheduler, optimizer, swa_utils
from ._muon import Muon
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam
from .adamax import Adamax
from .adamw import AdamW
from .asgd import ASGD
from .lbfgs import LBFGS
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Muon",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "SparseAdam",
    "lr_scheduler",
    "optimizer",
    "swa_utils",
]
