"""The types of several results with names.

Example:
    >>> import pygrad as torch
    >>> isinstance(torch.ones(2).max(dim=0), torch.return_types.max)
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .._ground.tree import NODES
from .._table import functions as _functions

__all__ = ["all_return_types", "pytree_register_structseq"]

globals().update(_functions.return_types)
for _each in _functions.return_types:
    _functions.return_types[_each].__doc__ = f"The results of `{_each}`."
    globals().setdefault(f"{_each}_out", _functions.return_types[_each])

all_return_types = list(_functions.return_types.values())
__all__ += list(_functions.return_types)


def pytree_register_structseq(cls: type[Any]) -> None:
    """Registers a type of results as a container of trees; the types of this module are
    registered.
    """
    from ..utils import _pytree

    flatten, _, with_keys = NODES[tuple][1:]
    _pytree.register_pytree_node(
        cls, flatten, lambda values, _: cls(values), flatten_with_keys_fn=with_keys
    )


if TYPE_CHECKING:

    def __getattr__(name: str) -> Any: ...
