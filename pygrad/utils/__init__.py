"""Helpers around training: `pygrad.utils.data` feeds batches to a loop, `pygrad.utils.checkpoint`
saves memory.
"""

from typing import TYPE_CHECKING

from .._package import submodule
from . import _pytree, data

if TYPE_CHECKING:
    from . import checkpoint, dlpack
else:

    def __getattr__(name):
        """Modules when first asked for: they need autograd or tensors, which need this package."""
        if name in ("checkpoint", "dlpack"):
            return submodule(f"utils.{name}")
        raise AttributeError(f"module 'pygrad.utils' has no attribute '{name}'")


__all__ = ["_pytree", "checkpoint", "data", "dlpack"]
