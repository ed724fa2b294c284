"""Tensors: their class, their creation, subscripts, hooks, and their exchange with the host."""
