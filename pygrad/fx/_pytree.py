"""Nested containers taken apart by a structure that was seen when the graph was made."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any, Final

from ..utils._pytree import TreeSpec, tree_flatten

FlattenFnSpec = Callable[[Any, TreeSpec], list[Any]]
FlattenFnExactMatchSpec = Callable[[Any, TreeSpec], bool]
FlattenFuncSpec = FlattenFnSpec
FlattenFuncExactMatchSpec = FlattenFnExactMatchSpec

SUPPORTED_NODES: Final[dict[Any, FlattenFnSpec]] = {}
SUPPORTED_NODES_EXACT_MATCH: Final[dict[Any, FlattenFnExactMatchSpec | None]] = {}


def register_pytree_flatten_spec(
    cls: type[Any],
    flatten_fn_spec: FlattenFnSpec,
    flatten_fn_exact_match_spec: FlattenFnExactMatchSpec | None = None,
) -> None:
    """Let generated code take containers of this class apart by a structure that it was given."""
    SUPPORTED_NODES[cls] = flatten_fn_spec
    SUPPORTED_NODES_EXACT_MATCH[cls] = flatten_fn_exact_match_spec


def _deregister_pytree_flatten_spec(cls: type[Any]) -> None:
    del SUPPORTED_NODES[cls]
    del SUPPORTED_NODES_EXACT_MATCH[cls]


def tree_flatten_spec(pytree: Any, spec: TreeSpec) -> list[Any]:
    """The leaves of a tree in the places where the structure has its own.

    Raises:
        RuntimeError: a container of another structure.
    """
    if spec.is_leaf():
        return [pytree]
    if spec.type in SUPPORTED_NODES:
        parts = SUPPORTED_NODES[spec.type](pytree, spec)
        pairs = zip(parts, spec.children(), strict=False)
        return [leaf for part, below in pairs for leaf in tree_flatten_spec(part, below)]
    leaves, found = tree_flatten(pytree)
    if found != spec:
        raise RuntimeError(
            f"Real spec {found} of object {pytree} is different from expected spec {spec}. "
            "Please file an issue at https://github.com/pytorch/pytorch/issues/new?template="
            "bug-report.yml"
        )
    return leaves


def _flatten_mapping(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[key] for key in spec.context]


def _flatten_sequence(d: Any, spec: TreeSpec) -> list[Any]:
    return [d[at] for at in range(spec.num_children)]


def _has_spec_length(d: Any, spec: TreeSpec) -> bool:
    return len(d) == spec.num_children


register_pytree_flatten_spec(dict, _flatten_mapping, _has_spec_length)
for _kind in (list, tuple, namedtuple):
    register_pytree_flatten_spec(_kind, _flatten_sequence, _has_spec_length)  # type: ignore[arg-type]
