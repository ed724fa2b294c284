"""Methods of tensors that Python composes: functions of the torch namespace, put on the class."""

from __future__ import annotations

import inspect
from typing import Final

from . import _functions
from ._tensor import Tensor

METHODS: Final = {function.__name__: function for function in (_functions.lu,)}
for _name, _function in METHODS.items():
    setattr(Tensor, _name, inspect.unwrap(_function))  # methods bind
