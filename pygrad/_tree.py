"""Nested tuples, lists and dicts taken apart into leaves and put together again.

What PyTorch's ``torch.utils._pytree`` does for the containers that functions take and return:
tuples, named tuples, lists, dicts and ordered dicts. Anything else, None included, is a leaf.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any


def _is_namedtuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields")


class Spec:
    """The structure of a tree: the kind of each container, its keys, its children.

    A leaf has no kind. Printed as PyTorch prints its TreeSpec, since messages show it.
    """

    __slots__ = ("children", "context", "kind", "num_leaves")

    def __init__(self, kind: type | None, context: Any, children: Sequence[Spec]) -> None:
        self.kind = kind
        self.context = context
        self.children = children
        self.num_leaves: int = sum(child.num_leaves for child in children) if kind else 1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.kind, self.context, list(self.children)) == (
            other.kind,
            other.context,
            list(other.children),
        )

    __hash__ = None  # type: ignore[assignment]

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What a tree has in the places of this one's leaves.

        Raises:
            ValueError: it has other containers.
        """
        if self.kind is None:
            return [tree]
        kind, context, children = _parts(tree)
        mapping = issubclass(self.kind, dict)
        if kind is not self.kind and not (mapping and kind and issubclass(kind, dict)):
            raise ValueError(f"Node type mismatch; expected {self.kind!r}, but got {type(tree)!r}.")
        if len(children) != len(self.children):
            raise ValueError(
                f"Node arity mismatch; expected {len(self.children)}, but got {len(children)}."
            )
        if mapping:
            missing, extra = set(self.context) - set(context), set(context) - set(self.context)
            if missing:
                raise ValueError(
                    f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}."
                )
            children = [tree[key] for key in self.context]
        pairs = zip(self.children, children, strict=True)
        return [leaf for spec, child in pairs for leaf in spec.flatten_up_to(child)]

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.kind is None:
            return "*"
        kind = "namedtuple" if _is_namedtuple(self.kind) else self.kind.__name__
        between = ",\n" + " " * (indent + 2)
        inside = between.join(child._text(indent + 2) for child in self.children)
        return f"TreeSpec({kind}, {self.context}, [{inside}])"


_LEAF = Spec(None, None, ())


def _parts(tree: Any) -> tuple[type | None, Any, list[Any]]:
    """Kind, context and children of a container; no kind for a leaf."""
    kind = type(tree)
    if kind in (tuple, list):
        return kind, None, list(tree)
    if kind in (dict, OrderedDict):
        return kind, list(tree), list(tree.values())
    if _is_namedtuple(kind):
        return kind, kind, list(tree)
    return None, None, []


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], Spec]:
    """The leaves of a tree in order, and its structure; `is_leaf` tells what more is a leaf.

    Example:
        >>> from pygrad._tree import flatten
        >>> flatten((1, [2, {"a": 3}]))[0]
        [1, 2, 3]
    """
    kind, context, children = _parts(tree)
    if kind is None or (is_leaf and is_leaf(tree)):
        return [tree], _LEAF
    leaves: list[Any] = []
    specs = []
    for child in children:
        found, spec = flatten(child, is_leaf)
        leaves += found
        specs.append(spec)
    return leaves, Spec(kind, context, specs)


def unflatten(leaves: Sequence[Any], spec: Spec) -> Any:
    """The tree of this structure with these leaves.

    Example:
        >>> from pygrad._tree import flatten, unflatten
        >>> unflatten([4, 5], flatten({"a": 1, "b": (2,)})[1])
        {'a': 4, 'b': (5,)}
    """
    return _build(iter(leaves), spec)


def _build(leaves: Iterator[Any], spec: Spec) -> Any:
    if spec.kind is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec.children]
    if issubclass(spec.kind, dict):
        return spec.kind(zip(spec.context, children, strict=True))
    make: Any = getattr(spec.kind, "_make", spec.kind)  # the maker of a named tuple
    return make(children)


def map_leaves(function: Callable[[Any], Any], tree: Any) -> Any:
    """The tree with each leaf replaced by what the function makes of it."""
    leaves, spec = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], spec)


def spread(prefix: Any, spec: Spec) -> list[Any] | None:
    """The leaves of a prefix of a tree, each as often as the tree has leaves below it; None where
    the two have different containers.

    Example:
        >>> from pygrad._tree import flatten, spread
        >>> spread((0, 1), flatten(("a", ["b", "c"]))[1])
        [0, 1, 1]
    """
    kind, context, children = _parts(prefix)
    if kind is None:
        return [prefix] * spec.num_leaves
    ordered = spec.kind in (dict, OrderedDict) and kind in (dict, OrderedDict)
    if ordered:
        if set(context) != set(spec.context):
            return None
        children = [prefix[key] for key in spec.context]
    elif kind is not spec.kind or len(children) != len(spec.children):
        return None
    found: list[Any] = []
    for child, below in zip(children, spec.children, strict=True):
        part = spread(child, below)
        if part is None:
            return None
        found += part
    return found
