"""PyTorch's private module for nested containers, which scripts use all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .._tree import Spec as TreeSpec
from .._tree import flatten as tree_flatten
from .._tree import unflatten

__all__ = [
    "TreeSpec",
    "tree_all",
    "tree_any",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]

IsLeaf = Callable[[Any], bool] | None


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree in order."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """A tree without its leaves."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The tree of this structure with these leaves.

    Raises:
        ValueError: another number of leaves than the structure has.
    """
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(
            f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to "
            f"a pytree that holds {treespec.num_leaves} items ({treespec})."
        )
    return unflatten(leaves, treespec)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """The tree with each leaf replaced by what the function makes of it and of its place in the
    others.

    Raises:
        ValueError: another tree has no such place.

    Example:
        >>> from pygrad.utils._pytree import tree_map
        >>> tree_map(lambda x: x * 2, {"a": 1, "b": (2, 3)})
        {'a': 2, 'b': (4, 6)}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def tree_map_only(
    kinds: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None
) -> Any:
    """`tree_map` where only leaves of these types, or that a predicate holds for, are replaced."""

    def taken(leaf: Any) -> bool:
        if callable(kinds) and not isinstance(kinds, type):
            return bool(kinds(leaf))
        return isinstance(leaf, kinds)

    return tree_map(lambda leaf: func(leaf) if taken(leaf) else leaf, tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for every leaf."""
    for leaf in tree_leaves(tree, is_leaf):  # noqa: SIM110 (a generator changes StopIteration)
        if not pred(leaf):
            return False
    return True


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for a leaf."""
    return not tree_all(lambda leaf: not pred(leaf), tree, is_leaf)
