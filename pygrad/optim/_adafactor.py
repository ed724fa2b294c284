"""PyTorch's module name for `Adafactor`."""

from .adafactor import Adafactor as Adafactor
from .adafactor import _multi_tensor_adafactor as _multi_tensor_adafactor
from .adafactor import _single_tensor_adafactor as _single_tensor_adafactor
from .adafactor import adafactor as adafactor

__all__ = ["Adafactor"]
