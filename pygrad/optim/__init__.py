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

from pygrad.optim import lr_scheduler, optimizer
from pygrad.optim.adadelta import Adadelta
from pygrad.optim.adagrad import Adagrad
from pygrad.optim.adam import Adam
from pygrad.optim.adamw import AdamW
from pygrad.optim.optimizer import Optimizer
from pygrad.optim.rmsprop import RMSprop
from pygrad.optim.sgd import SGD

__all__ = [
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Optimizer",
    "RMSprop",
    "lr_scheduler",
    "optimizer",
]
