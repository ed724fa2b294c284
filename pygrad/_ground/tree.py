"""Nested containers flattened into leaves and rebuilt: the one implementation in the package.

`flatten` asks the registry of `Node`s for a container's children; an object without a node, None
included, is a leaf. `utils._pytree` has the functions that programs call, under PyTorch's names.
"""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar

from .._table import functions
from .dtypes import Size

T = TypeVar("T")
K = TypeVar("K", bound=Hashable)

Context: TypeAlias = Any
PyTree: TypeAlias = Any
FlattenFn: TypeAlias = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn: TypeAlias = Callable[[Iterable[Any], Context], PyTree]
IsLeaf: TypeAlias = Callable[[PyTree], bool] | None


# ------------------------------------------------------------------ steps from a node to a child


@dataclass(frozen=True, slots=True)
class SequenceKey(Generic[T]):
    """The step to an element by its position.

    Example:
        >>> from pygrad._ground.tree import SequenceKey
        >>> str(SequenceKey(2)), SequenceKey(2).get("abc")
        ('[2]', 'c')
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Sequence[T]) -> T:
        """The element of this sequence."""
        return sequence[self.idx]


@dataclass(frozen=True, slots=True)
class MappingKey(Generic[K, T]):
    """The step to a value by its key."""

    key: K

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Mapping[K, T]) -> T:
        """The value of this mapping."""
        return mapping[self.key]


@dataclass(frozen=True, slots=True)
class GetAttrKey:
    """The step to an attribute by its name."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """The attribute of this object."""
        return getattr(obj, self.name)


KeyedFlattenFn: TypeAlias = Callable[[PyTree], tuple[list[tuple[Any, Any]], Context]]


# ------------------------------------------------------------------ the registry


class Node(NamedTuple):
    """How containers of a type are taken apart and put together."""

    type: Any
    flatten_fn: FlattenFn
    unflatten_fn: UnflattenFn
    flatten_with_keys_fn: KeyedFlattenFn | None


REGISTERING: Final = threading.RLock()
NODES: Final[dict[Any, Node]] = {}
"""The nodes by type; one entry, the function ``namedtuple``, is for all classes that it makes."""


def is_namedtuple_class(cls: Any) -> bool:
    """Whether a class was made by ``namedtuple``, or looks like one."""
    return (
        isinstance(cls, type)
        and issubclass(cls, tuple)
        and isinstance(fields := getattr(cls, "_fields", None), tuple)
        and all(type(field) is str for field in fields)
        and callable(getattr(cls, "_make", None))
        and callable(getattr(cls, "_asdict", None))
    )


def node_type(tree: Any) -> Any:
    """The registry's key for an object."""
    kind = type(tree)
    plain = kind is tuple or not issubclass(kind, tuple)  # the common case, which is tested faster
    return kind if plain or not is_namedtuple_class(kind) else namedtuple


def _children_by_position(children: Iterable[Any], context: Context) -> tuple[list[Any], Context]:
    return [(SequenceKey(i), child) for i, child in enumerate(children)], context


def _children_by_key(tree: Any, context: Context) -> tuple[list[Any], Context]:
    return [(MappingKey(key), child) for key, child in tree.items()], context


def _make_namedtuple(values: Iterable[Any], context: Any) -> Any:
    return context(*values)


def _register_containers() -> None:
    def sequence_node(kind: Any) -> Node:
        return Node(
            kind,
            lambda d: (list(d), None),
            lambda values, context: kind(values),
            lambda d: _children_by_position(d, None),
        )

    def mapping_node(kind: Any) -> Node:
        return Node(
            kind,
            lambda d: (list(d.values()), list(d)),
            lambda values, context: kind(zip(context, values, strict=True)),
            lambda d: _children_by_key(d, list(d)),
        )

    def parts_of_default(d: Any) -> Context:
        return [d.default_factory, list(d)]

    for node in (
        sequence_node(tuple),
        sequence_node(list),
        mapping_node(dict),
        mapping_node(OrderedDict),
        *(sequence_node(kind) for kind in functions.return_types.values()),
        sequence_node(tuple)._replace(type=Size),  # mapping one gives a tuple, as in PyTorch
        Node(
            defaultdict,
            lambda d: (list(d.values()), parts_of_default(d)),
            lambda values, context: defaultdict(context[0], zip(context[1], values, strict=True)),
            lambda d: _children_by_key(d, parts_of_default(d)),
        ),
        Node(
            deque,
            lambda d: (list(d), d.maxlen),
            lambda values, context: deque(values, maxlen=context),
            lambda d: _children_by_position(d, d.maxlen),
        ),
        Node(
            namedtuple,
            lambda d: (list(d), type(d)),
            _make_namedtuple,
            lambda d: (
                [(GetAttrKey(f), v) for f, v in zip(d._fields, d, strict=True)],
                type(d),
            ),
        ),
    ):
        NODES[node.type] = node


_register_containers()
DICTS: Final[frozenset[Any]] = frozenset({dict, OrderedDict, defaultdict})
BUILTIN_TYPES: Final[frozenset[Any]] = DICTS | {tuple, list, namedtuple, deque}


# ------------------------------------------------------------------ structures


@dataclass(frozen=True, slots=True)
class ConstantNode(Generic[T]):
    """The context of an object that has no leaves: the object."""

    value: T


class TreeSpec:
    """The structure of a tree: the type of each container, its context, its children; PyTorch's
    ``TreeSpec``, under which name it prints.

    A leaf has no type.
    """

    __slots__ = (
        "__weakref__", "_children", "_context", "num_children", "num_leaves", "num_nodes", "type",
    )  # fmt: skip

    def __init__(self, type: Any, context: Context, children_specs: list[Any]) -> None:
        self.type = type
        self._context = context
        self._children: list[Any] = children_specs
        self.num_children = len(children_specs)
        self.num_nodes = 1 + sum([child.num_nodes for child in children_specs])
        if type is not None:
            self.num_leaves: int = sum([child.num_leaves for child in children_specs])
            return
        if context is not None:
            raise AssertionError("leaf node should not have a context")
        if children_specs:
            raise AssertionError("leaf node should not have children")
        self.num_leaves = 1

    @property
    def context(self) -> Context:
        """The data needed beside the children to rebuild the container."""
        return self._context

    @property
    def children_specs(self) -> list[Any]:
        """The structures of the children; deprecated."""
        warnings.warn(
            "`treespec.children_specs` is deprecated. Use `treespec.child(index)` to access a "
            "single child, or `treespec.children()` to get all children.",
            FutureWarning,
            stacklevel=2,
        )
        return self._children

    def children(self) -> list[Any]:
        """The structures of the children, in a new list."""
        return self._children.copy()

    def child(self, index: int) -> Any:
        """The structure of one child."""
        return self._children[index]

    def is_leaf(self) -> bool:
        """Whether the tree is one leaf."""
        return self.num_nodes == 1 and self.num_leaves == 1

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other.__class__ is not self.__class__:
            return NotImplemented
        assert isinstance(other, TreeSpec)
        return (
            str(self.type) == str(other.type)
            and self._context == other._context
            and self._children == other._children
        )

    def __hash__(self) -> int:
        context: Any = self._context
        if self.type is defaultdict:
            context = context[0], tuple(context[1])
        elif self.type in DICTS:
            context = tuple(context)
        elif isinstance(context, ConstantNode):
            context = context.value
        elif self.type is not None and self.type not in BUILTIN_TYPES:
            context = None  # it may have no hash
        return hash((self.type, context, tuple(self._children)))

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        between = ",\n" + " " * (indent + 2)
        inside = between.join(child._text(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inside}])"

    def unflatten(self, leaves: Iterable[Any]) -> PyTree:
        """The tree of this structure with these leaves.

        Raises:
            ValueError: another number of leaves than the structure has.
        """
        if not isinstance(leaves, (list, tuple)):
            leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec "
                f"refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return _build(iter(leaves), self)

    def flatten_up_to(self, tree: PyTree) -> list[Any]:
        """The subtrees of a tree at the places of this structure's leaves.

        Raises:
            ValueError: it has other containers there.
        """
        if self.is_leaf():
            return [tree]
        pairs = zip(self._children, self._children_of(tree), strict=True)
        return [leaf for spec, child in pairs for leaf in spec.flatten_up_to(child)]

    def _children_of(self, tree: PyTree) -> list[Any]:
        """The children of a container of this one's type and arity, in this one's order."""
        kind = node_type(tree)
        builtin = self.type in BUILTIN_TYPES
        both_dicts = self.type in DICTS and kind in DICTS
        if kind != self.type and not both_dicts:
            raise ValueError(
                f"{'Node type' if builtin else 'Type'} mismatch; expected {self.type!r}, but got "
                f"{kind!r}."
            )
        children, context = NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(
                f"Node arity mismatch; expected {self.num_children}, but got {len(children)}."
            )
        if both_dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            self._check_keys(set(keys), set(tree))
            return [tree[key] for key in keys]
        if context != self._context and kind is not deque:
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; expected {self._context!r}, "
                f"but got {context!r}."
                if builtin
                else f"Node context mismatch for custom node type {self.type!r}."
            )
        return children

    @staticmethod
    def _check_keys(expected: set[Any], got: set[Any]) -> None:
        if missing := expected - got:
            text = f"; missing key(s): {missing}"
        else:
            text = ""
        if extra := got - expected:
            text += f"; extra key(s): {extra}"
        if text:
            raise ValueError(f"Node keys mismatch{text}.")


class LeafSpec(TreeSpec):
    """The structure of a leaf. Deprecated: use ``spec.is_leaf()``."""

    __slots__ = ()

    def __init__(self) -> None:
        warnings.warn(
            "`isinstance(treespec, LeafSpec)` is deprecated, use `isinstance(treespec, TreeSpec) "
            "and treespec.is_leaf()` instead.",
            FutureWarning,
            stacklevel=2,
        )
        super().__init__(None, None, [])

    def __reduce__(self) -> Any:
        return _the_leaf, ()


def _the_leaf() -> LeafSpec:
    return LEAF


LEAF: Final = LeafSpec.__new__(LeafSpec)
TreeSpec.__init__(LEAF, None, None, [])


# ------------------------------------------------------------------ taking apart, putting together


def flatten(tree: PyTree, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of a tree in order, and its structure; `is_leaf` marks further leaves.

    Example:
        >>> from pygrad._ground.tree import flatten
        >>> flatten((1, [2, {"a": 3}]))[0]
        [1, 2, 3]
    """
    leaves: list[Any] = []
    return leaves, _flatten_into(leaves, tree, is_leaf)


def _flatten_into(leaves: list[Any], tree: PyTree, is_leaf: IsLeaf) -> TreeSpec:
    if is_leaf is not None and is_leaf(tree):
        leaves.append(tree)
        return LEAF
    kind = node_type(tree)
    node = NODES.get(kind)
    if node is None:
        leaves.append(tree)
        return LEAF
    children, context = node.flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten_into(leaves, child, is_leaf) for child in children])


def unflatten(leaves: Sequence[Any], spec: TreeSpec) -> PyTree:
    """The tree of this structure with these leaves.

    Example:
        >>> from pygrad._ground.tree import flatten, unflatten
        >>> unflatten([4, 5], flatten({"a": 1, "b": (2,)})[1])
        {'a': 4, 'b': (5,)}
    """
    return _build(iter(leaves), spec)


def _build(leaves: Iterator[Any], spec: TreeSpec) -> PyTree:
    if spec.type is None:
        return next(leaves)
    children = [_build(leaves, child) for child in spec._children]
    return NODES[spec.type].unflatten_fn(children, spec._context)


def map_leaves(function: Callable[[Any], Any], tree: PyTree) -> PyTree:
    """The tree with the function applied to each leaf."""
    leaves, spec = flatten(tree)
    return unflatten([function(leaf) for leaf in leaves], spec)


def spread(prefix: PyTree, spec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of a prefix of a tree, each repeated for every leaf of the tree below it; None if
    the two have different containers.

    Example:
        >>> from pygrad._ground.tree import flatten, spread
        >>> spread((0, 1), flatten(("a", ["b", "c"]))[1])
        [0, 1, 1]
    """
    kind = node_type(prefix)
    if kind not in NODES or (is_leaf is not None and is_leaf(prefix)):
        return [prefix] * spec.num_leaves
    if spec.type is None:
        return None
    try:
        children = spec._children_of(prefix)
    except ValueError:
        return None
    found: list[Any] = []
    for child, below in zip(children, spec._children, strict=True):
        part = spread(child, below, is_leaf)
        if part is None:
            return None
        found += part
    return found
