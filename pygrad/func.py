"""Function transforms: `vmap`. PyTorch's others (grad, vjp, jacrev, ...) have their counterparts in
`pygrad.autograd` and `pygrad.autograd.functional`.
"""

from ._vmap import vmap

__all__ = ["vmap"]
