"""PyTorch's private module for nested containers. Libraries use it to register their own
containers, and to take trees apart by leaves and by paths.

Example:
    >>> from pygrad.utils import _pytree
    >>> _pytree.tree_map(lambda x: x * 2, {"a": 1, "b": (2, 3)})
    {'a': 2, 'b': (4, 6)}
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import json
import types
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar

from .._ground.dtypes import Size
from .._ground.tree import BUILTIN_TYPES as BUILTIN_TYPES
from .._ground.tree import DICTS, IsLeaf, is_namedtuple_class, node_type, spread
from .._ground.tree import LEAF as _LEAF_SPEC
from .._ground.tree import NODES as SUPPORTED_NODES
from .._ground.tree import REGISTERING as _NODE_REGISTRY_LOCK
from .._ground.tree import ConstantNode as ConstantNode
from .._ground.tree import Context as Context
from .._ground.tree import FlattenFn as FlattenFn
from .._ground.tree import GetAttrKey as GetAttrKey
from .._ground.tree import KeyedFlattenFn as FlattenWithKeysFn
from .._ground.tree import LeafSpec as LeafSpec
from .._ground.tree import MappingKey as MappingKey
from .._ground.tree import Node as NodeDef
from .._ground.tree import PyTree as PyTree
from .._ground.tree import SequenceKey as SequenceKey
from .._ground.tree import TreeSpec as TreeSpec
from .._ground.tree import UnflattenFn as UnflattenFn
from .._ground.tree import flatten as tree_flatten
from .._table import functions

__all__ = [
    "Context",
    "DumpableContext",
    "FlattenFn",
    "FromDumpableContextFn",
    "LeafSpec",
    "PyTree",
    "PyTreeSpec",
    "ToDumpableContextFn",
    "TreeSpec",
    "UnflattenFn",
    "is_namedtuple",
    "is_namedtuple_class",
    "is_namedtuple_instance",
    "is_structseq",
    "is_structseq_class",
    "is_structseq_instance",
    "key_get",
    "keystr",
    "register_pytree_node",
    "tree_all",
    "tree_all_only",
    "tree_any",
    "tree_any_only",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_iter",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_",
    "tree_map_only",
    "tree_map_only_",
    "tree_map_with_path",
    "tree_structure",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "treespec_pprint",
]

P = ParamSpec("P")
R = TypeVar("R")

DumpableContext: TypeAlias = Any
ToDumpableContextFn: TypeAlias = Callable[[Context], DumpableContext]
FromDumpableContextFn: TypeAlias = Callable[[DumpableContext], Context]
PyTreeSpec: TypeAlias = TreeSpec
STANDARD_DICT_TYPES = DICTS
FlattenFunc: TypeAlias = FlattenFn
UnflattenFunc: TypeAlias = UnflattenFn
FlattenWithKeysFunc: TypeAlias = FlattenWithKeysFn
TypeAny: TypeAlias = Any
"""A type, a tuple of types, or a union."""


class KeyEntry(Protocol):
    """A step from a node to a child: hashable, printed in Python's syntax."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...
    def __str__(self) -> str: ...
    def get(self, parent: Any) -> Any:
        """The child."""


KeyPath: TypeAlias = tuple[KeyEntry, ...]


def _deprecate(message: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorates a function so that it issues a warning."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            warnings.warn(message, FutureWarning, stacklevel=2)
            return function(*args, **kwargs)

        return wrapper

    return decorate


# ------------------------------------------------------------------ named tuples


def is_namedtuple_instance(obj: object) -> bool:
    """Whether an object is a named tuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj: Any) -> bool:
    """Whether an object is a named tuple or a class of them."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls: Any) -> bool:
    """Whether a class is a tuple type with names that C defines: `time.struct_time`, or those of
    `return_types`.
    """
    return isinstance(cls, type) and (
        cls in functions.return_types.values()
        or (
            cls.__bases__ == (tuple,)
            and all(
                isinstance(getattr(cls, f"n_{what}", None), int)
                for what in ("fields", "sequence_fields", "unnamed_fields")
            )
        )
    )


def is_structseq_instance(obj: object) -> bool:
    """Whether an object's class is such a tuple type."""
    return is_structseq_class(type(obj))


def is_structseq(obj: Any) -> bool:
    """Whether an object or its class is such a tuple type."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


@_deprecate(
    "torch.utils._pytree._is_namedtuple_instance is private and will be removed in a future "
    "release. Please use torch.utils._pytree.is_namedtuple_instance instead."
)
def _is_namedtuple_instance(tree: Any) -> bool:
    return is_namedtuple_instance(tree)


# ------------------------------------------------------------------ registration

NO_SERIALIZED_TYPE_NAME_FOUND: Final = "NO_SERIALIZED_TYPE_NAME_FOUND"
DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL: Final = 1


class _SerializeNodeDef(NamedTuple):
    """The serialized form of a type's structures."""

    typ: Any
    serialized_type_name: str
    to_dumpable_context: ToDumpableContextFn | None
    from_dumpable_context: FromDumpableContextFn | None


SUPPORTED_SERIALIZED_TYPES: dict[Any, _SerializeNodeDef] = {}
SERIALIZED_TYPE_TO_PYTHON_TYPE: dict[str, Any] = {}
CONSTANT_NODES: set[type] = set()


def register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """Registers a type as a container of trees: for `tree_map`, `vmap` and the transforms.

    Args:
        cls: the type itself; derived types are not registered by this.
        flatten_fn: returns the children of a container, and a context.
        unflatten_fn: makes a container from children and that context.
        serialized_type_name: the name by which `treespec_dumps` writes the type.
        to_dumpable_context, from_dumpable_context: convert the context to JSON, and back; both or
            neither.
        flatten_with_keys_fn: like `flatten_fn`, with pairs of a step and a child.

    Raises:
        ValueError: the type is registered already; one of the two conversions is missing.

    Example:
        >>> from pygrad.utils import _pytree
        >>> class Pair:
        ...     def __init__(self, a, b):
        ...         self.a, self.b = a, b
        >>> _pytree.register_pytree_node(
        ...     Pair, lambda p: ([p.a, p.b], None), lambda children, _: Pair(*children)
        ... )
        >>> _pytree.tree_leaves([Pair(1, (2, 3))])
        [1, 2, 3]
    """
    with _NODE_REGISTRY_LOCK:
        if cls in SUPPORTED_NODES:
            raise ValueError(f"{cls} is already registered as pytree node.")
        _private_register_pytree_node(
            cls,
            flatten_fn,
            unflatten_fn,
            serialized_type_name=serialized_type_name,
            to_dumpable_context=to_dumpable_context,
            from_dumpable_context=from_dumpable_context,
            flatten_with_keys_fn=flatten_with_keys_fn,
        )


def _private_register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    *,
    serialized_type_name: str | None = None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
    flatten_with_keys_fn: FlattenWithKeysFn | None = None,
) -> None:
    """`register_pytree_node` that replaces an earlier registration with a warning."""
    with _NODE_REGISTRY_LOCK:
        if cls in SUPPORTED_NODES:
            warnings.warn(
                f"{cls} is already registered as pytree node. Overwriting the previous "
                "registration.",
                stacklevel=2,
            )
        if (to_dumpable_context is None) != (from_dumpable_context is None):
            raise ValueError(
                f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or "
                "registered."
            )
        SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
        _name(cls, serialized_type_name, to_dumpable_context, from_dumpable_context)


def _name(
    cls: Any,
    name: str | None,
    to_dumpable_context: ToDumpableContextFn | None = None,
    from_dumpable_context: FromDumpableContextFn | None = None,
) -> None:
    name = name or NO_SERIALIZED_TYPE_NAME_FOUND
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
        cls, name, to_dumpable_context, from_dumpable_context
    )
    SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


def _register_pytree_node(
    cls: type[Any],
    flatten_fn: FlattenFn,
    unflatten_fn: UnflattenFn,
    to_str_fn: Any = None,
    maybe_from_str_fn: Any = None,
    **options: Any,
) -> None:
    """The older name of `register_pytree_node`; two further arguments are ignored."""
    warnings.warn(
        "`torch.utils._pytree._register_pytree_node` is deprecated. Please use "
        "`torch.utils._pytree.register_pytree_node` instead.",
        FutureWarning,
        stacklevel=2,
    )
    if to_str_fn is not None or maybe_from_str_fn is not None:
        warnings.warn(
            "`to_str_fn` and `maybe_from_str_fn` is deprecated. Please use `to_dumpable_context` "
            "and `from_dumpable_context` instead.",
            FutureWarning,
            stacklevel=2,
        )
    _private_register_pytree_node(cls, flatten_fn, unflatten_fn, **options)


def _deregister_pytree_node(cls: type[Any]) -> None:
    """Removes a registration."""
    with _NODE_REGISTRY_LOCK:
        del SUPPORTED_NODES[cls]
        del SERIALIZED_TYPE_TO_PYTHON_TYPE[SUPPORTED_SERIALIZED_TYPES[cls].serialized_type_name]
        del SUPPORTED_SERIALIZED_TYPES[cls]
        CONSTANT_NODES.discard(cls)


def _register_namedtuple(cls: type[Any], *, serialized_type_name: str) -> None:
    """Sets the serialized name of a class of named tuples, which need no registration."""
    node = SUPPORTED_NODES[namedtuple]
    _private_register_pytree_node(
        cls,
        node.flatten_fn,
        node.unflatten_fn,
        serialized_type_name=serialized_type_name,
        to_dumpable_context=_namedtuple_serialize,
        from_dumpable_context=_namedtuple_deserialize,
        flatten_with_keys_fn=node.flatten_with_keys_fn,
    )


def register_dataclass(
    cls: type[Any],
    *,
    field_names: list[str] | None = None,
    drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:
    """Registers a dataclass, or a class that is built from its fields, as a container of trees.

    Args:
        cls: the class.
        field_names: the fields that are children; by default all fields of a dataclass that its
            constructor takes. A field that is None is no child.
        drop_field_names: fields of a dataclass to leave out.
        serialized_type_name: the name by which `treespec_dumps` writes the type.

    Raises:
        ValueError: the names are missing, or differ from the fields.

    Example:
        >>> import dataclasses
        >>> from pygrad.utils import _pytree
        >>> @dataclasses.dataclass
        ... class Point:
        ...     x: int
        ...     y: int
        >>> _pytree.register_dataclass(Point)
        >>> _pytree.tree_map(lambda v: v + 1, Point(1, 2))
        Point(x=2, y=3)
    """
    fields = None
    if dataclasses.is_dataclass(cls):
        fields = [field.name for field in dataclasses.fields(cls) if field.init]
    if field_names is None:
        if fields is None:
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize "
                f"{cls}, as it is not a dataclass."
            )
        field_names = fields
    elif fields is not None:
        _check_fields(set(fields) - set(drop_field_names or ()), set(field_names))
    names = field_names

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        values = {name: getattr(obj, name) for name in names}
        present = [name for name, value in values.items() if value is not None]
        absent = [name for name, value in values.items() if value is None]
        return [values[name] for name in present], [present, absent]

    def unflatten(children: Iterable[Any], context: Context) -> Any:
        present, absent = context
        return cls(**dict(zip(present, children, strict=True)), **dict.fromkeys(absent))

    def flatten_with_keys(obj: Any) -> tuple[list[tuple[Any, Any]], Context]:
        children, (present, _) = flatten(obj)
        return [(GetAttrKey(n), v) for n, v in zip(present, children, strict=True)], present

    _private_register_pytree_node(
        cls,
        flatten,
        unflatten,
        serialized_type_name=serialized_type_name,
        flatten_with_keys_fn=flatten_with_keys,
    )


def _check_fields(fields: set[str], names: set[str]) -> None:
    if fields == names:
        return
    text = "field_names does not include all dataclass fields.\n"
    if missing := fields - names:
        text += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in "
            "the pytree, please add them to `field_names`, otherwise please add them to "
            "`drop_field_names`.\n"
        )
    if unexpected := names - fields:
        text += (
            f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or "
            "add them to `drop_field_names`.\n"
        )
    raise ValueError(text)


def register_constant(cls: type[Any]) -> None:
    """Registers a type as constant: its objects are nodes without leaves.

    Raises:
        TypeError: the type defines no equality, or has no hash.
    """
    for name, without in (("__eq__", object.__eq__), ("__hash__", None)):
        if getattr(cls, name) is without:
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{name}` "
                "implementation."
            )

    def flatten(obj: Any) -> tuple[list[Any], Context]:
        return [], ConstantNode(obj)

    with _NODE_REGISTRY_LOCK:
        _private_register_pytree_node(
            cls, flatten, lambda _, context: context.value, flatten_with_keys_fn=flatten
        )
        CONSTANT_NODES.add(cls)


def is_constant_class(cls: Any) -> bool:
    """Whether a type is registered as constant."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


def _is_constant_holder(spec: TreeSpec) -> bool:
    return isinstance(spec._context, ConstantNode)


def _retrieve_constant(spec: TreeSpec) -> Any:
    if not _is_constant_holder(spec):
        raise AssertionError("spec does not correspond to a registered constant pytree")
    return spec.unflatten([])


# ------------------------------------------------------------------ flattening of containers

_parts = {kind: SUPPORTED_NODES[kind] for kind in BUILTIN_TYPES}
_tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys = _parts[tuple][1:]
_list_flatten, _list_unflatten, _list_flatten_with_keys = _parts[list][1:]
_dict_flatten, _dict_unflatten, _dict_flatten_with_keys = _parts[dict][1:]
_deque_flatten, _deque_unflatten, _deque_flatten_with_keys = _parts[deque][1:]
_namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys = _parts[namedtuple][1:]
_ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys = _parts[OrderedDict][
    1:
]
_defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys = _parts[defaultdict][
    1:
]
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten
_get_node_type = node_type


def _namedtuple_serialize(context: Context) -> str:
    known = SUPPORTED_SERIALIZED_TYPES.get(context)
    if known is None or known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        why = "didn't register a" if known is None else "couldn't find a"
        raise NotImplementedError(
            f"Can't serialize TreeSpec of namedtuple class {context} because we {why} "
            "serializated_type_name. Please register using `_register_namedtuple`."
        )
    return known.serialized_type_name


def _namedtuple_deserialize(dumpable_context: DumpableContext) -> Context:
    if dumpable_context not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(
            f"Can't deserialize TreeSpec of namedtuple class {dumpable_context} because we "
            "couldn't find a serializated name."
        )
    return SERIALIZED_TYPE_TO_PYTHON_TYPE[dumpable_context]


def _defaultdict_serialize(context: Context) -> DumpableContext:
    factory, keys = context
    return {
        "default_factory_module": factory.__module__,
        "default_factory_name": factory.__qualname__,
        "dict_context": keys,
    }


def _defaultdict_deserialize(dumpable_context: DumpableContext) -> Context:
    if not isinstance(dumpable_context, dict):
        raise AssertionError("dumpable_context must be a dict")
    expected = {"default_factory_module", "default_factory_name", "dict_context"}
    if set(dumpable_context) != expected:
        raise AssertionError(
            f"dumpable_context keys must be {expected}, got {set(dumpable_context)}"
        )
    module = importlib.import_module(dumpable_context["default_factory_module"])
    factory = getattr(module, dumpable_context["default_factory_name"])
    return [factory, dumpable_context["dict_context"]]


for _kind, _written, _conversions in (
    (tuple, "builtins.tuple", ()),
    (Size, "torch.Size", ()),
    (list, "builtins.list", ()),
    (dict, "builtins.dict", ()),
    (namedtuple, "collections.namedtuple", (_namedtuple_serialize, _namedtuple_deserialize)),
    (OrderedDict, "collections.OrderedDict", ()),
    (defaultdict, "collections.defaultdict", (_defaultdict_serialize, _defaultdict_deserialize)),
    (deque, "collections.deque", ()),
):
    _name(_kind, _written, *_conversions)
for _kind in functions.return_types.values():
    _name(_kind, None)


# ------------------------------------------------------------------ structures


def treespec_leaf() -> LeafSpec:
    """The structure of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable: Iterable[TreeSpec] = (), /) -> TreeSpec:
    """The structure of a tuple of trees with these structures.

    Raises:
        ValueError: an element is no structure.
    """
    children = list(iterable)
    if not all(isinstance(child, TreeSpec) for child in children):
        raise ValueError(f"Expected a tuple of TreeSpec values, got: {children!r}.")
    return TreeSpec(tuple, None, children)


def treespec_dict(
    mapping: Mapping[Any, TreeSpec] | Iterable[tuple[Any, TreeSpec]] = (), /, **kwargs: TreeSpec
) -> TreeSpec:
    """The structure of a dict of trees with these structures.

    Raises:
        ValueError: a value is no structure.
    """
    found = dict(mapping, **kwargs)
    if not all(isinstance(child, TreeSpec) for child in found.values()):
        raise ValueError(f"Expected a dictionary of TreeSpec values, got: {found!r}.")
    return TreeSpec(dict, list(found), list(found.values()))


def _is_pytreespec_instance(obj: Any) -> bool:
    return isinstance(obj, TreeSpec)


def _check_spec(treespec: Any) -> TreeSpec:
    if not isinstance(treespec, TreeSpec):
        raise TypeError(
            "Expected `treespec` to be an instance of PyTreeSpec but got item of type "
            f"{type(treespec)}."
        )
    return treespec


_ensure_python_treespec_instance = _check_spec


class _Star:
    def __repr__(self) -> str:
        return "*"


def treespec_pprint(treespec: TreeSpec) -> str:
    """A tree of this structure with stars as leaves.

    Example:
        >>> from pygrad.utils import _pytree
        >>> _pytree.treespec_pprint(_pytree.tree_structure({"a": (1, 2)}))
        "{'a': (*, *)}"
    """
    return repr(treespec.unflatten([_Star()] * treespec.num_leaves))


# ------------------------------------------------------------------ trees


def tree_is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether an object is a leaf, that is no container of a registered type."""
    if is_leaf is not None and is_leaf(tree):
        return True
    return node_type(tree) not in SUPPORTED_NODES


@_deprecate(
    "torch.utils._pytree._is_leaf is private and will be removed in a future release. Please use "
    "torch.utils._pytree.tree_is_leaf instead."
)
def _is_leaf(tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    return tree_is_leaf(tree, is_leaf)


def tree_iter(tree: PyTree, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """The leaves of a tree, as an iterator."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree: PyTree, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of a tree in order."""
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args: PyTree, **kwargs: PyTree) -> list[Any]:
    """The leaves of all arguments."""
    return tree_leaves((*args, *kwargs.values()))


def tree_structure(tree: PyTree, is_leaf: IsLeaf = None) -> TreeSpec:
    """The structure of a tree."""
    return tree_flatten(tree, is_leaf)[1]


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> PyTree:
    """Makes the tree of this structure with these leaves. The arguments may be in either order.

    Raises:
        ValueError: the number of leaves differs from the structure's.
        TypeError: neither is a structure.
    """
    if isinstance(leaves, TreeSpec) and not isinstance(treespec, TreeSpec):
        leaves, treespec = treespec, leaves
    return _check_spec(treespec).unflatten(leaves)


def _columns(tree: PyTree, rests: Iterable[PyTree], is_leaf: IsLeaf) -> tuple[Any, TreeSpec]:
    """The corresponding leaves of all trees, and the structure of the first."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return zip(leaves, *[spec.flatten_up_to(rest) for rest in rests], strict=True), spec


def tree_map(func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None) -> Any:
    """Replaces each leaf by the function's result for it and the corresponding leaves of the other
    trees.

    Raises:
        ValueError: another tree lacks a corresponding leaf.

    Example:
        >>> from pygrad.utils._pytree import tree_map
        >>> tree_map(lambda x, y: x * y, {"a": 1, "b": (2, 3)}, {"a": 4, "b": (5, 6)})
        {'a': 4, 'b': (10, 18)}
    """
    rows, spec = _columns(tree, rests, is_leaf)
    return spec.unflatten([func(*row) for row in rows])


def tree_map_(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> Any:
    """Calls the function for each leaf like `tree_map`, and returns the tree itself."""
    for row in _columns(tree, rests, is_leaf)[0]:
        func(*row)
    return tree


def map_only(
    type_or_types_or_pred: Any, /
) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """A decorator that restricts a function to objects of some types, or for which a predicate
    holds; other objects are returned unchanged.

    Raises:
        TypeError: an argument that is neither types nor a function.
    """
    chosen = type_or_types_or_pred
    if isinstance(chosen, (type, tuple, types.UnionType)):

        def selects(leaf: Any) -> bool:
            return isinstance(leaf, chosen)

    elif callable(chosen):
        selects = chosen
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(function)
        def wrapper(leaf: Any) -> Any:
            return function(leaf) if selects(leaf) else leaf

        return wrapper

    return decorate


def tree_map_only(
    type_or_types_or_pred: Any,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> Any:
    """`tree_map` that replaces only leaves of some types, or for which a predicate holds."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(
    type_or_types_or_pred: Any,
    /,
    func: Callable[[Any], Any],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> Any:
    """`tree_map_` for leaves of some types, or for which a predicate holds."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for every leaf."""
    for leaf in tree_leaves(tree, is_leaf):  # noqa: SIM110 (a generator changes StopIteration)
        if not pred(leaf):
            return False
    return True


def tree_any(pred: Callable[[Any], bool], tree: PyTree, is_leaf: IsLeaf = None) -> bool:
    """Whether the predicate holds for some leaf."""
    return not tree_all(lambda leaf: not pred(leaf), tree, is_leaf)


def tree_all_only(
    type_or_types: TypeAny,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> bool:
    """Whether the predicate holds for every leaf of these types."""
    return tree_all(lambda leaf: not isinstance(leaf, type_or_types) or pred(leaf), tree, is_leaf)


def tree_any_only(
    type_or_types: TypeAny,
    /,
    pred: Callable[[Any], bool],
    tree: PyTree,
    is_leaf: IsLeaf = None,
) -> bool:
    """Whether the predicate holds for some leaf of these types."""
    return tree_any(lambda leaf: isinstance(leaf, type_or_types) and pred(leaf), tree, is_leaf)


def _broadcast_to_and_flatten(
    tree: PyTree, treespec: TreeSpec, is_leaf: IsLeaf = None
) -> list[Any] | None:
    return spread(tree, treespec, is_leaf)


# ------------------------------------------------------------------ paths


def _generate_key_paths(
    key_path: KeyPath, tree: PyTree, is_leaf: IsLeaf = None
) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield key_path, tree
        return
    kind = node_type(tree)
    with_keys = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a "
            "flatten_with_keys_fn argument to register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _generate_key_paths((*key_path, key), child, is_leaf)


def tree_leaves_with_path(tree: PyTree, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """The leaves of a tree in order, as pairs of path and leaf.

    Raises:
        ValueError: a type was registered without `flatten_with_keys_fn`.

    Example:
        >>> from pygrad.utils import _pytree
        >>> [(_pytree.keystr(p), v) for p, v in _pytree.tree_leaves_with_path({"a": [1, 2]})]
        [("['a'][0]", 1), ("['a'][1]", 2)]
    """
    return list(_generate_key_paths((), tree, is_leaf))


def tree_flatten_with_path(
    tree: PyTree, is_leaf: IsLeaf = None
) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """The result of `tree_leaves_with_path`, and the structure."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(
    func: Callable[..., Any], tree: PyTree, *rests: PyTree, is_leaf: IsLeaf = None
) -> Any:
    """`tree_map` with the path of the leaf as the function's first argument."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten([func(*pair, *row) for pair, *row in zip(found, *others, strict=True)])


def keystr(kp: KeyPath) -> str:
    """A path in Python's syntax."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """The object at a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


# ------------------------------------------------------------------ serialized structures


class EnumEncoder(json.JSONEncoder):
    """A JSON encoder that writes members of enumerations by name."""

    def default(self, obj: object) -> Any:
        """Encodes a member of an enumeration; the base class raises for other objects."""
        if not isinstance(obj, Enum):
            return super().default(obj)
        cls = type(obj)
        name = f"{cls.__module__}:{cls.__qualname__}"
        return {"__enum__": True, "fqn": name, "name": obj.name}


def enum_object_hook(obj: dict[str, Any]) -> Any:
    """Decodes a member of an enumeration; returns other dicts unchanged."""
    if "__enum__" not in obj:
        return obj
    module, _, names = obj["fqn"].partition(":")
    found: Any = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found[obj["name"]]


def _treespec_to_json(treespec: TreeSpec) -> dict[str, Any]:
    if treespec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES.get(treespec.type)
    if known is None:
        raise NotImplementedError(f"Serializing {treespec.type} in pytree is not registered.")
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {treespec.type} found. Please update your "
            "_register_pytree_node call with a `serialized_type_name` kwarg."
        )
    if known.to_dumpable_context is not None:
        context = known.to_dumpable_context(treespec._context)
    else:
        try:
            context = json.dumps(treespec._context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register "
                "a custom serializer using _register_pytree_node."
            ) from error
    children = [_treespec_to_json(child) for child in treespec._children]
    return {"type": known.serialized_type_name, "context": context, "children_spec": children}


def _json_to_treespec(json_schema: Any) -> TreeSpec:
    kind = json_schema["type"]
    if kind is None and json_schema["context"] is None and not json_schema["children_spec"]:
        return _LEAF_SPEC
    if kind not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"Deserializing {kind} in pytree is not registered.")
    cls = SERIALIZED_TYPE_TO_PYTHON_TYPE[kind]
    convert = SUPPORTED_SERIALIZED_TYPES[cls].from_dumpable_context
    if convert is not None:
        context = convert(json_schema["context"])
    else:
        try:
            context = json.loads(json_schema["context"], object_hook=enum_object_hook)
        except TypeError as error:
            raise TypeError(
                "Unable to deserialize context. Please make the context json load-able, or "
                "register a custom serializer using _register_pytree_node."
            ) from error
    return TreeSpec(
        cls, context, [_json_to_treespec(child) for child in json_schema["children_spec"]]
    )


def _check_protocol(protocol: Any) -> None:
    if protocol != DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")


def treespec_dumps(treespec: TreeSpec, protocol: int | None = None) -> str:
    """Serializes a structure as JSON, in PyTorch's form.

    Raises:
        NotImplementedError: a type was registered without `serialized_type_name`.
        ValueError: an unknown protocol.
        TypeError: not a structure, or a context that JSON cannot represent.

    Example:
        >>> from pygrad.utils import _pytree
        >>> spec = _pytree.tree_structure([1, (2,)])
        >>> _pytree.treespec_loads(_pytree.treespec_dumps(spec)) == spec
        True
    """
    spec = _check_spec(treespec)
    protocol = DEFAULT_TREESPEC_SERIALIZATION_PROTOCOL if protocol is None else protocol
    _check_protocol(protocol)
    return json.dumps((protocol, _treespec_to_json(spec)), cls=EnumEncoder)


@functools.lru_cache
def treespec_loads(serialized: str) -> TreeSpec:
    """Reads a serialized structure.

    Raises:
        NotImplementedError: it contains a type that is not registered.
        ValueError: an unknown protocol.
    """
    protocol, schema = json.loads(serialized)
    _check_protocol(protocol)
    return _json_to_treespec(schema)


@_deprecate("`pytree_to_str` is deprecated. Please use `treespec_dumps` instead.")
def pytree_to_str(treespec: TreeSpec) -> str:
    """The older name of `treespec_dumps`."""
    return treespec_dumps(treespec)


@_deprecate("`str_to_pytree` is deprecated. Please use `treespec_loads` instead.")
def str_to_pytree(json: str) -> TreeSpec:
    """The older name of `treespec_loads`."""
    return treespec_loads(json)
