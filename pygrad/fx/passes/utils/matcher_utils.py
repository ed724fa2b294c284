"""Places of a graph that are like a pattern, itself a graph."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...._tensor.tensor import Tensor
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node
from .fuser_utils import validate_partition


@dataclass
class InternalMatch:
    """A place in a graph, with its mapping of the pattern's nodes to its own."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors,
            self.nodes_map.copy(),
            self.placeholder_nodes.copy(),
            self.returning_nodes.copy(),
        )


class SubgraphMatcher:
    """Finds a pattern: from the nodes that it returns, against the arrows.

    Args:
        pattern: a graph without dead code.
        match_output: its result must be the graph's result.
        match_placeholder: its inputs must be the graph's inputs; else they are anything.
        remove_overlapping_matches: of places that share nodes only the first.
        ignore_literals: arguments that are no nodes may differ.
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError(
                    "SubgraphMatcher cannot be initialized with an pattern with dead code"
                )
        self.pattern_placeholder_nodes = [n for n in pattern.nodes if n.op == "placeholder"]
        output = next(iter(reversed(pattern.nodes)))
        self.pattern_returning_nodes = output.all_input_nodes
        ends = [n for n in self.pattern_returning_nodes if len(n.users) == 1]
        self.pattern_anchors = [output] if match_output else ends

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The places, in the order of the nodes with which they end."""
        found = [InternalMatch(self.pattern_anchors)]
        searched = False
        for anchor in self.pattern_anchors:
            candidates = [n for n in graph.nodes if self._equal(anchor, n, node_name_match)]
            if not candidates:
                continue
            searched = True
            tried = [(each.__copy__(), n) for each in found for n in candidates]
            found = [
                each for each, n in tried if self._match_nodes(anchor, n, each, node_name_match)
            ]
        if not searched:
            return []
        for each in found:
            each.placeholder_nodes = [each.nodes_map[n] for n in self.pattern_placeholder_nodes]
            each.returning_nodes = [each.nodes_map[n] for n in self.pattern_returning_nodes]
        found = [each for each in found if self._is_contained(each.nodes_map)]
        found = [each for each in found if validate_partition(_inner(each))]
        return _drop_overlaps(found) if self.remove_overlapping_matches else found

    def _equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """Whether two nodes do the same, but for their arguments."""
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        return self._match_attributes(pn, gn) if pn.op == "get_attr" else pn.target == gn.target

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        owners = pn.graph.owning_module, gn.graph.owning_module
        if owners[0] is None or owners[1] is None:
            raise AssertionError("the owning modules of both graphs must be known")
        wanted = _get_attr(owners[0], str(pn.target))
        found = _get_attr(owners[1], str(gn.target))
        if type(wanted) is not type(found):
            return False
        if not isinstance(wanted, Tensor):
            raise RuntimeError(f"Unsupported type {wanted} when matching attributes")
        return True

    def _match_nodes(
        self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str = ""
    ) -> bool:
        """Whether the operands of a graph's node match those of a pattern's node, recursively;
        records the pairs of nodes in `match`. Nodes whose names contain `node_name_match` are
        alike.
        """
        waiting: list[tuple[Any, Any]] = [(pn, gn)]
        while waiting:
            wanted, found = waiting.pop()
            if isinstance(wanted, Node) and isinstance(found, Node):
                below = self._step(wanted, found, match, node_name_match)
                if below is None:
                    return False
                waiting += reversed(below)
            elif isinstance(wanted, (list, tuple)) and isinstance(found, (list, tuple)):
                if len(wanted) != len(found):
                    return False
                waiting += reversed(list(zip(wanted, found, strict=True)))
            elif not (self._literal(wanted, found, match) or self.ignore_literals):
                return False
        return True

    def _step(
        self, pn: Node, gn: Node, match: InternalMatch, node_name_match: str
    ) -> list[tuple[Any, Any]] | None:
        """The pairs of arguments that must match for two nodes to match; None if the nodes
        differ.
        """
        if pn in match.nodes_map:
            return [] if match.nodes_map[pn] is gn else None
        if any(gn is each for each in match.nodes_map.values()) or not self._equal(
            pn, gn, node_name_match
        ):
            return None
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return []
        if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
            wanted, found = (*pn.args, *pn.kwargs.values()), (*gn.args, *gn.kwargs.values())
        elif pn.op == "call_function" and hasattr(pn.target, "_schema"):
            schema = pn.target._schema.arguments
            wanted, found = _full_arguments(schema, pn), _full_arguments(schema, gn)
        else:
            return None
        return list(zip(wanted, found, strict=True))

    @staticmethod
    def _literal(wanted: Any, found: Any, match: InternalMatch) -> bool:
        if isinstance(wanted, Node):
            if wanted.op != "placeholder":
                return False
            return bool(match.nodes_map.setdefault(wanted, found) == found)
        return type(found) is type(wanted) and bool(found == wanted)

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether only the pattern's results are used outside of the place."""
        inside = {
            found: wanted
            for wanted, found in nodes_map.items()
            if wanted.op != "placeholder" and isinstance(found, Node)
        }
        return all(
            wanted in self.pattern_returning_nodes or all(u in inside for u in found.users)
            for found, wanted in inside.items()
        )


def _full_arguments(schema: Any, node: Node) -> tuple[Any, ...]:
    """All arguments of an op in the order of its schema, with defaults for missing ones."""

    def value(at: int, argument: Any) -> Any:
        if argument.name in node.kwargs:
            return node.kwargs[argument.name]
        given = not argument.kwarg_only and at < len(node.args)
        return node.args[at] if given else argument.default_value

    return tuple(value(at, argument) for at, argument in enumerate(schema))


def _inner(match: InternalMatch) -> list[Node]:
    """The nodes of a place that are neither inputs nor the result."""
    pairs = match.nodes_map.items()
    return [found for wanted, found in pairs if wanted.op not in ("placeholder", "output")]


def _drop_overlaps(matches: list[InternalMatch]) -> list[InternalMatch]:
    """The matches that share no nodes with an earlier one."""
    taken: set[Node] = set()
    kept = []
    for match in matches:
        nodes = _inner(match)
        if taken.isdisjoint(nodes):
            kept.append(match)
            taken.update(nodes)
    return kept


__all__ = ["InternalMatch", "SubgraphMatcher"]
