"""PyTorch's compiler, of which pygrad has only the class of a compiled module."""

from .eval_frame import OptimizedModule as OptimizedModule
