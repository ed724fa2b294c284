"""Late references to modules of a higher layer: the only place where the package looks up.

A method of `Tensor` may need things that are themselves made of tensors: storages, graphs,
transforms. It calls ``above.elements_of(...)``; the name is looked up on first use, in the same
instance of the package, and is an attribute of this module from then on. `tests/test_layers.py`
lists the modules that may use this, and checks that none of them could import the name instead.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from .._ground.package import PACKAGE, submodule

if TYPE_CHECKING:
    from .._dispatch.wrappers import host_tensor as host_tensor
    from .._dispatch.wrappers import make_wrapper as make_wrapper
    from .._transforms.derivatives import show as show
    from ..autograd._gradients import backward as backward
    from ..autograd._views import rev_view_func as rev_view_func
    from ..autograd._views import view_func as view_func
    from ..autograd._walk import walk as walk
    from ..autograd.graph import node_of as node_of
    from ..autograd.variable import Variable as Variable
    from ..storage import UntypedStorage as UntypedStorage
    from ..storage import deep_copy as deep_copy
    from ..storage import elements_of as elements_of
    from ..storage import storage_class as storage_class
    from ..storage import typed_storage as typed_storage
    from .creation import data_as_tensor as data_as_tensor
    from .creation import tensor as tensor
    from .creation import tensor_from_data as tensor_from_data
    from .functions import is_storage as is_storage
    from .functions import lu as lu
    from .host_data import apply_ as apply_
    from .host_data import dim_order as dim_order
    from .host_data import find_exported_tensor as find_exported_tensor
    from .host_data import find_lent_tensor as find_lent_tensor
    from .host_data import map_ as map_
    from .host_data import reduce_tensor as reduce_tensor
    from .host_data import to_dlpack as to_dlpack
    from .host_data import to_numpy as to_numpy
    from .host_data import tolist as tolist
    from .legacy import dtype_named as dtype_named
    from .legacy import legacy_name as legacy_name
    from .legacy import legacy_tensor as legacy_tensor

PLACES: Final = {
    name: module
    for module, names in {
        "_dispatch.wrappers": "host_tensor make_wrapper",
        "_tensor.creation": "data_as_tensor tensor_from_data tensor",
        "_tensor.functions": "is_storage lu",
        "_tensor.host_data": "apply_ dim_order find_exported_tensor find_lent_tensor map_ "
        "reduce_tensor to_dlpack to_numpy tolist",
        "_tensor.legacy": "dtype_named legacy_name legacy_tensor",
        "_transforms.derivatives": "show",
        "autograd._gradients": "backward",
        "autograd._views": "rev_view_func view_func",
        "autograd._walk": "walk",
        "autograd.graph": "node_of",
        "autograd.variable": "Variable",
        "storage": "UntypedStorage deep_copy elements_of storage_class typed_storage",
    }.items()
    for name in names.split()
}
"""The module of each name."""


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(submodule(PLACES[name]), name)
        return found


def _at_exit() -> None:
    """Looks up all names, for finalizers that run when nothing can be imported any more. Does
    nothing if the package failed to import.
    """
    if not hasattr(sys.modules.get(PACKAGE), "Tensor"):
        return
    for name, module in PLACES.items():
        globals()[name] = getattr(submodule(module), name)


_process = submodule("_boundary.process")
_process.hear(_process.at_exit, _at_exit)
