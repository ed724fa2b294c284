"""Helpers around training: `pygrad.utils.data` feeds batches to a loop, `pygrad.utils.checkpoint`
saves memory.
"""

from typing import TYPE_CHECKING

from .._ground.package import submodule
from . import _pytree, data

_LATE = "_foreach_utils benchmark checkpoint dlpack hooks model_zoo module_tracker weak".split()

if TYPE_CHECKING:
    from . import benchmark as benchmark
    from . import checkpoint, dlpack
    from . import hooks as hooks
    from . import model_zoo as model_zoo
    from . import module_tracker as module_tracker
    from . import weak as weak
    from ._swap import swap_tensors
else:

    def __getattr__(name):
        """Imports modules at first use, because they need autograd or tensors, which need this
        package.
        """
        if name in _LATE:
            return submodule(f"utils.{name}")
        if name == "swap_tensors":
            return submodule("utils._swap").swap_tensors
        raise AttributeError(f"module 'pygrad.utils' has no attribute '{name}'")


__all__ = ["_pytree", "checkpoint", "data", "dlpack", "swap_tensors"]
