"""`pygrad.autograd` as PyTorch has it: `graph.allow_mutation_on_saved_tensors` is a context
manager, and `autograd.torch` exists for programs that reach torch by it. All else is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ... import autograd as _original
from ..._install.dialect import forward

if TYPE_CHECKING:
    from ...autograd import *
else:
    __getattr__, __dir__ = forward(__name__)
    __all__ = list(getattr(_original, "__all__", ()))

from ... import torch as torch
from . import graph as graph  # type: ignore[no-redef]
from .graph import allow_mutation_on_saved_tensors as allow_mutation_on_saved_tensors
