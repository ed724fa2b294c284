"""Helpers around training: `pygrad.utils.data` feeds batches to a loop, `pygrad.utils.checkpoint`
saves memory.
"""

from typing import TYPE_CHECKING

from pygrad.utils import _pytree, data

if TYPE_CHECKING:
    from pygrad.utils import checkpoint
else:

    def __getattr__(name):
        """`checkpoint` when first asked for: it needs autograd, which needs this package."""
        if name == "checkpoint":
            import importlib

            return importlib.import_module("pygrad.utils.checkpoint")
        raise AttributeError(f"module 'pygrad.utils' has no attribute '{name}'")


__all__ = ["_pytree", "checkpoint", "data"]
