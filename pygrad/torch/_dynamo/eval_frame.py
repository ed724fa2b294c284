"""The module in which PyTorch has the class of a compiled module."""

from ...nn.modules._compiled import OptimizedModule as OptimizedModule
