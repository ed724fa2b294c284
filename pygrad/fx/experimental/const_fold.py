"""Computes the constant part of a graph once, at the first call."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from typing import Any

from ..._tensor.creation import tensor
from ...nn import Module, Parameter, ParameterList
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg


class FoldedGraphModule(GraphModule):
    """A module with a graph of its constants, which runs once before the module's own graph."""

    def __init__(
        self,
        root: Module,
        graph: Graph,
        const_subgraph: Graph | None = None,
        fx_const_folded_attrs_name: str | None = None,
        device_for_folded_attrs: str = "cuda",
    ) -> None:
        super().__init__(root, graph)
        folded = None if const_subgraph is None else GraphModule(root, const_subgraph)
        self.const_subgraph_module = folded
        self.has_folding_been_run = False
        self.fx_const_folded_attrs_name = fx_const_folded_attrs_name
        self.device_for_folded_attrs = device_for_folded_attrs

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not self.has_folding_been_run:
            self.run_folding()
        return super().__call__(*args)

    def run_folding(self) -> None:
        """Compute the constants, and keep them as parameters."""
        if self.const_subgraph_module is None or self.fx_const_folded_attrs_name is None:
            return
        if self.has_folding_been_run:
            raise AssertionError("Folding has already been run")
        self.has_folding_been_run = True
        found = self.const_subgraph_module()
        many = isinstance(found, tuple)
        kept = ParameterList([_parameter(x) for x in found]) if many else _parameter(found)
        setattr(self, self.fx_const_folded_attrs_name, kept)


def _parameter(value: Any) -> Parameter:
    if isinstance(value, int):
        return Parameter(tensor([float(value)]), requires_grad=False)
    return Parameter(value.detach().clone(), requires_grad=value.requires_grad)


def get_unique_attr_name_in_module(mod_traced: Module, name: str) -> str:
    """A name derived from this one that is no attribute of the module."""
    name = re.sub("[^0-9a-zA-Z_]+", "_", name)
    name = f"_{name}" if name[0].isdigit() else name
    while hasattr(mod_traced, name):
        found = re.fullmatch(r"(.*)_(\d+)", name)
        name = f"{found[1]}_{int(found[2]) + 1}" if found else f"{name}_1"
    return name


def _has_impure_ops(module: GraphModule) -> bool:
    waiting = [module]
    while waiting:
        current = waiting.pop()
        for node in current.graph.nodes:
            if node.op == "call_function" and node.is_impure():
                return True
            if node.op == "call_module":
                inner = current.get_submodule(str(node.target))
                waiting += [inner] if isinstance(inner, GraphModule) else []
    return False


def _constants(module: GraphModule, skip: Callable[[Node], bool] | None) -> set[Node]:
    """The nodes that depend on attributes alone."""
    found: set[Node] = set()
    for node in module.graph.nodes:
        if node.op in ("placeholder", "output"):
            continue
        if node.op != "get_attr" and not found.issuperset(node.all_input_nodes):
            continue
        if (skip and skip(node)) or node.is_impure():
            continue
        if node.op == "call_module":
            inner = module.get_submodule(str(node.target))
            if isinstance(inner, GraphModule) and _has_impure_ops(inner):
                continue
        found.add(node)
    return found


def split_const_subgraphs(
    module: Module,
    skip_folding_node_fn: Callable[[Node], bool] | None = None,
    device_for_folded_attrs: str = "cpu",
) -> FoldedGraphModule:
    """A module whose constants are computed once.

    Args:
        module: it is traced if it is no `GraphModule`.
        skip_folding_node_fn: selects nodes to leave where they are.
        device_for_folded_attrs: the device of constants that are numbers.
    """
    traced = module if isinstance(module, GraphModule) else symbolic_trace(module)
    constant = _constants(traced, skip_folding_node_fn)
    computed = [n for n in traced.graph.nodes if n in constant and n.op != "get_attr"]
    if not computed:
        return FoldedGraphModule(traced, traced.graph)
    results = [n for n in computed if any(user not in constant for user in n.users)]
    name = get_unique_attr_name_in_module(traced, "_FX_CONST_FOLDED_ATTRS")
    inner, outer = Graph(), Graph()
    inside: dict[Node, Node] = {}
    outside: dict[Node, Node] = {}
    folded: Node | None = None
    for node in traced.graph.nodes:
        if node in constant:
            inside[node] = inner.node_copy(node, inside.__getitem__)
        if node in results:
            if folded is None:
                folded = outer.get_attr(name)
                folded.meta = node.meta.copy()
            at = results.index(node)
            alone = len(results) == 1
            value = folded if alone else outer.call_function(operator.getitem, (folded, at))
            outside[node] = value
        elif node.op == "output":
            made = outer.output(map_arg(node.args[0], outside.__getitem__), node.type)
            made.meta = node.meta.copy()
        elif node not in computed and (node.op != "get_attr" or set(node.users) - constant):
            outside[node] = outer.node_copy(node, outside.__getitem__)
    given = tuple(inside[node] for node in results)
    inner.output(given[0] if len(given) == 1 else given)
    setattr(traced, name, ParameterList() if len(given) > 1 else Parameter(tensor([])))
    try:
        return FoldedGraphModule(traced, outer, inner, name, device_for_folded_attrs)
    finally:
        delattr(traced, name)


__all__ = ["FoldedGraphModule", "get_unique_attr_name_in_module", "split_const_subgraphs"]
