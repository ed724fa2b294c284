"""Patterns of a graph replaced by others."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..nn import Module
from ._compatibility import compatibility
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule, _get_attr
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

Filter = Callable[[InternalMatch, Graph, Graph], bool]


class Match(NamedTuple):
    """A place of a pattern: the node with which it ended, and the map of its nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]


@dataclass
class ReplacedPatterns:
    """Like `Match`, with the nodes that replaced the place."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


def _attribute(module: Module, name: str) -> Any:
    try:
        return _get_attr(module, name)
    except AttributeError:
        return None


def _replace_attributes(gm: GraphModule, replacement: Module) -> None:
    """Copy the attributes that a replacement's nodes read to the module; delete unused
    submodules.
    """
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()
    for node in gm.graph.nodes:
        if node.op not in ("call_module", "get_attr"):
            continue
        target = str(node.target)
        if _attribute(gm, target) is not None:
            continue
        found = copy.deepcopy(_attribute(replacement, target))
        if found is None:
            raise RuntimeError(
                'Attempted to create a "',
                node.op,
                '" node during subgraph rewriting '
                f"with target {node.target}, but the referenced attribute does not "
                "exist in the replacement GraphModule",
            )
        if isinstance(found, Module):
            gm.add_submodule(target, found)
        else:
            setattr(gm, target, found)
    gm.graph.lint()


@compatibility(is_backward_compatible=True)
def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replace each place of a graph that is like a pattern.

    Args:
        gm: the module with the graph.
        pattern: a function, or module, with the graph to find; its parameters match anything.
        replacement: a function, or module, of the same parameters.

    Returns:
        The places. If places share nodes, only the first is replaced.

    Example:
        >>> import pygrad as torch
        >>> from pygrad import fx
        >>> module = fx.symbolic_trace(lambda x: x.neg().relu() + 1)
        >>> places = fx.replace_pattern(module, lambda x: x.relu(), lambda x: x.clamp(min=0))
        >>> len(places)
        1
        >>> print(module.code.strip())
        def forward(self, x):
            neg = x.neg();  x = None
            clamp = neg.clamp(min = 0);  neg = None
            add = clamp + 1;  clamp = None
            return add
    """
    return [Match(m.anchor, m.nodes_map) for m in _replace_pattern(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """`replace_pattern` with filters of places and a callback for the replacement.

    Args:
        match_filters: called with the place, the graph and the pattern; all must return true.
        ignore_literals: arguments that are no nodes may differ.
        replacement_callback: makes the replacement, from the same arguments.
        node_name_match: a node whose name contains this matches any node.
    """
    return _replace_pattern(
        gm,
        pattern,
        replacement,
        match_filters,
        ignore_literals,
        replacement_callback,
        node_name_match,
    )


def _graph_of(program: Any) -> Graph:
    if isinstance(program, GraphModule):
        return program.graph
    return program if isinstance(program, Graph) else symbolic_trace(program).graph


def _replace_pattern(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    graph, wanted = gm.graph, _graph_of(pattern)
    matcher = SubgraphMatcher(
        wanted,
        match_output=False,
        match_placeholder=False,
        remove_overlapping_matches=True,
        ignore_literals=ignore_literals,
    )
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(accepts(match, graph, wanted) for accepts in match_filters or ())
    ]
    common = _graph_of(replacement) if replacement is not None else None
    replaced: dict[Node, Node] = {}
    done = []
    for match in matches:
        new = replacement_callback(match, graph, wanted) if replacement_callback else common
        if new is None:
            raise AssertionError(
                "Must provide either a replacement GraphModule or a replacement callback"
            )
        done.append(_replace_one(gm, wanted, new, match, replaced))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _replace_one(
    gm: GraphModule,
    pattern: Graph,
    replacement: Graph,
    match: InternalMatch,
    replaced: dict[Node, Node],
) -> ReplacedPatterns:
    """Replace one place; results of earlier replacements may be among its inputs."""
    inputs = [n for n in replacement.nodes if n.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(
            f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}"
        )

    def current_value(value: Any) -> Any:
        return replaced.get(value, value) if isinstance(value, Node) else value

    match.placeholder_nodes = [current_value(value) for value in match.placeholder_nodes]
    for each, value in match.nodes_map.items():
        if each.op == "placeholder":
            match.nodes_map[each] = current_value(value)
    val_map: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    with gm.graph.inserting_before(_insert_point(gm.graph, match)):
        results = gm.graph.graph_copy(replacement, val_map)
    if isinstance(results, Node):
        results = (results,)
    if len(match.returning_nodes) != len(results):
        raise AssertionError(
            f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}"
        )
    given = set(map(id, match.placeholder_nodes))
    added = [node for node in val_map.values() if id(node) not in given]
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        replaced[old] = new
    for node in reversed(pattern.nodes):
        if node.op not in ("placeholder", "output"):
            gm.graph.erase_node(match.nodes_map[node])
    return ReplacedPatterns(match.anchors[0], match.nodes_map, added)


def _insert_point(graph: Graph, match: InternalMatch) -> Node:
    """The node before which to insert: the first user of a place's results, else the node behind
    the place.
    """
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        return min(users)
    return max(match.returning_nodes).next


__all__ = ["Match", "replace_pattern", "replace_pattern_with_filters"]
