"""PyTorch's compiler, which is not here, but for the class of a compiled module."""

from .eval_frame import OptimizedModule as OptimizedModule
