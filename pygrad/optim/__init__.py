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

from pygrad.optim import lr_scheduler, optimizer, swa_utils
from pygrad.optim.adadelta import Adadelta
from pygrad.optim.adafactor import Adafactor
from pygrad.optim.adagrad import Adagrad
from pygrad.optim.adam import Adam
from pygrad.optim.adamax import Adamax
from pygrad.optim.adamw import AdamW
from pygrad.optim.asgd import ASGD
from pygrad.optim.lbfgs import LBFGS
from pygrad.optim.nadam import NAdam
from pygrad.optim.optimizer import Optimizer
from pygrad.optim.radam import RAdam
from pygrad.optim.rmsprop import RMSprop
from pygrad.optim.rprop import Rprop
from pygrad.optim.sgd import SGD

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
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "optimizer",
    "swa_utils",
]
