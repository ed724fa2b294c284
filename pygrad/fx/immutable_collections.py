"""Immutable lists and dicts: the arguments of a node, whose users are counted."""

from __future__ import annotations

from typing import Any, Final, NoReturn, TypeVar

from ..utils._pytree import MappingKey, SequenceKey, register_pytree_node

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

_ADVICE: Final = """\
If you are attempting to modify the kwargs or args of a torch.fx.Node object,
instead create a new copy of it and assign the copy to the node:

    new_args = ...  # copy and mutate args
    node.args = new_args"""


def _no_mutation(self: Any, *_: Any, **__: Any) -> NoReturn:
    raise TypeError(f"{type(self).__name__!r} object does not support mutation. {_ADVICE}")


class immutable_list(list[T]):
    """A list that cannot be changed.

    Example:
        >>> from pygrad.fx.immutable_collections import immutable_list
        >>> immutable_list([1, 2])
        [1, 2]
    """

    append = extend = insert = pop = remove = _no_mutation
    clear = reverse = sort = _no_mutation
    __delitem__ = __setitem__ = __iadd__ = __imul__ = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self),)


class immutable_dict(dict[K, V]):
    """A dict that cannot be changed."""

    clear = pop = popitem = setdefault = update = _no_mutation
    __delitem__ = __setitem__ = __ior__ = _no_mutation

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __reduce__(self) -> Any:
        return type(self), (tuple(self.items()),)


register_pytree_node(
    immutable_list,
    lambda d: (list(d), None),
    lambda children, _: immutable_list(children),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=lambda d: ([(SequenceKey(at), x) for at, x in enumerate(d)], None),
)
register_pytree_node(
    immutable_dict,
    lambda d: (list(d.values()), list(d)),
    lambda children, keys: immutable_dict(zip(keys, children, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=lambda d: ([(MappingKey(k), x) for k, x in d.items()], list(d)),
)

__all__ = ["immutable_dict", "immutable_list"]
