"""`pygrad.autograd.graph` with PyTorch's form of `allow_mutation_on_saved_tensors`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pygrad.autograd.graph as _original

from ..._dialect import forward

if TYPE_CHECKING:
    from pygrad.autograd.graph import *
else:
    __getattr__, __dir__ = forward(__name__)
    __all__ = list(getattr(_original, "__all__", ()))
