"""Graphs cut into parts, each a submodule that one node calls."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ...nn import Module
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg
from ..proxy import Proxy


@compatibility(is_backward_compatible=True)
class Partition:
    """A part: its nodes, its inputs and outputs by the names of nodes, its graph."""

    def __init__(self, name: str) -> None:
        self.name: str = name
        self.submod_name = f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph: Graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n"
            f" nodes: {self.node_names},\n"
            f" inputs: {self.inputs},\n"
            f" outputs: {self.outputs},\n"
            f" partitions depended on: {self.dependencies},\n"
            f" partition dependents: {self.dependents}"
        )


def _get_attr_from_qualname(mod: Module, qualname: str) -> Any:
    try:
        return _get_attr(mod, qualname)
    except AttributeError as error:
        raise AttributeError(f"Node target {qualname} not found!") from error


@compatibility(is_backward_compatible=True)
def split_module(
    m: GraphModule,
    root_m: Module,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """A module that does the same by calls of submodules ``submod_0``, ``submod_1`` and so on.

    Args:
        m: the module whose graph is cut.
        root_m: not used.
        split_callback: returns the part of a node, usually a number.
        qualname_map: filled with the old dotted names of the parts' attributes, by the new names.
        keep_original_order: call the parts in the order of their first nodes.
        keep_original_node_name: keep the names of nodes.
        keep_original_input_name: name the inputs of parts after the given nodes; else ``arg_0``.
        partition_affix: put before the number of a part.
        tuple_return: let parts with one result also return a tuple.

    Raises:
        RuntimeError: the parts depend on each other in a cycle.
    """
    split = _Split(m, bool(keep_original_node_name), keep_original_input_name)
    for node in m.graph.nodes:
        if node.op not in ("placeholder", "get_attr", "output"):
            name = str(split_callback(node))
            split.assign(node, f"{partition_affix}_{name}" if partition_affix else name)
    split.find_uses()
    order = split.order()
    for name in order:
        split.add_inputs(split.parts[name])
    split.fill(qualname_map)
    return split.build_outer_module(
        list(split.parts) if keep_original_order else order, bool(keep_original_order), tuple_return
    )


class _Split:
    """A module on its way into parts."""

    def __init__(self, module: GraphModule, keep_names: bool, keep_input_names: bool) -> None:
        self.module = module
        self.keep_names = keep_names
        self.keep_input_names = keep_input_names
        self.parts: dict[str, Partition] = {}
        self.part_of: dict[Node, Partition] = {}
        self.nodes = {node.name: node for node in module.graph.nodes}

    def assign(self, node: Node, name: str) -> None:
        """Put a node into the part of this name."""
        part = self.parts.setdefault(name, Partition(name))
        part.node_names.append(node.name)
        self.part_of[node] = part
        node._fx_partition = name  # type: ignore[attr-defined]  # which programs read

    def find_uses(self) -> None:
        """Record the values that parts take from each other."""
        for user in self.module.graph.nodes:
            if user.op in ("placeholder", "get_attr"):
                continue
            using = self.part_of.get(user)
            for value in user._input_nodes:
                defining = self.part_of.get(value)
                if defining is using:
                    continue
                if defining is not None:
                    defining.outputs.setdefault(value.name)
                if using is not None:
                    using.inputs.setdefault(value.name)
                if defining is not None and using is not None:
                    defining.dependents.setdefault(using.name)
                    using.dependencies.setdefault(defining.name)

    def order(self) -> list[str]:
        """The parts, each behind the parts on which it depends."""
        ready = [name for name, part in self.parts.items() if not part.dependencies]
        done = []
        while ready:
            done.append(ready.pop())
            for name in self.parts[done[-1]].dependents:
                waiting = self.parts[name].dependencies
                waiting.pop(done[-1])
                if not waiting:
                    ready.append(name)
        if len(done) != len(self.parts):
            raise RuntimeError("cycle exists between partitions!")
        return done

    def _module_at(self, node: Node) -> Module | None:
        """The module that a node reads, if any: parts have it as their own attribute."""
        if node.op != "get_attr":
            return None
        found = _get_attr_from_qualname(self.module, str(node.target))
        return found if isinstance(found, Module) else None

    def add_inputs(self, part: Partition) -> None:
        """Give a part's graph the values that it takes."""
        nodes = [self.nodes[name] for name in part.inputs]
        part.inputs = {}
        for node in sorted(nodes, key=lambda n: self._module_at(n) is not None):
            module = self._module_at(node)
            if module is not None:
                made = part.graph.get_attr(str(node.target))
                part.targets[str(node.target)] = module
            else:
                name = node.name if self.keep_input_names else f"arg_{len(part.inputs)}"
                made = part.graph.placeholder(name, type_expr=node.type)
                part.inputs[node.name] = None
            made.meta = node.meta.copy()
            part.environment[node] = made

    def fill(self, qualname_map: dict[str, str] | None) -> None:
        """Copy the nodes into their parts."""
        for node, part in self.part_of.items():
            env, target = part.environment, node.target
            if node.op == "call_module":
                target = str(node.target).replace(".", "_")
                part.targets[target] = _get_attr_from_qualname(self.module, str(node.target))
                if qualname_map is not None:
                    qualname_map[f"{part.submod_name}.{target}"] = str(node.target)
            made = part.graph.create_node(
                node.op,
                target,
                map_arg(node.args, env.__getitem__),
                map_arg(node.kwargs, env.__getitem__),
                node.name if self.keep_names else None,
                node.type,
            )
            made.meta = node.meta.copy()
            env[node] = made

    def build_outer_module(
        self, order: list[str], original_order: bool, tuple_return: bool
    ) -> GraphModule:
        """The module that calls the parts."""
        graph = Graph()
        env: dict[str, Node] = {}
        attributes: dict[str, Any] = {}

        def outer(node: Node) -> None:
            if node.name in env:
                return
            if node.op == "placeholder":
                name = node.name if self.keep_names else str(node.target)
                default = node.args[0] if node.args else inspect.Signature.empty
                env[node.name] = graph.placeholder(name, node.type, default)
            else:
                env[node.name] = graph.get_attr(str(node.target))
                attributes[str(node.target)] = _get_attr_from_qualname(
                    self.module, str(node.target)
                )
            env[node.name].meta = node.meta.copy()

        first = ("placeholder",) if original_order else ("placeholder", "get_attr")
        for node in self.module.graph.nodes:
            if node.op in first:
                outer(node)
        for name in order:
            part = self.parts[name]
            results = tuple(part.environment[self.nodes[each]] for each in part.outputs)
            alone = len(results) == 1 and not tuple_return
            part.graph.output(results[0] if alone else results)
            for each in part.inputs:
                if self.nodes[each].op == "get_attr":
                    outer(self.nodes[each])
            attributes[part.submod_name] = GraphModule(part.targets, part.graph)
            call = graph.call_module(part.submod_name, tuple(env[each] for each in part.inputs))
            for at, each in enumerate(part.outputs):
                env[each] = call if alone else Proxy(call)[at].node  # type: ignore[index]
        for node in self.module.graph.nodes:
            if node.op == "output":
                for value in node._input_nodes:
                    if value not in self.part_of:
                        outer(value)
                graph.output(map_arg(node.args[0], lambda n: env[n.name])).meta = node.meta.copy()
        made = GraphModule(attributes, graph)
        made.meta = dict(self.module.meta)
        return made


__all__ = ["Partition", "split_module"]
