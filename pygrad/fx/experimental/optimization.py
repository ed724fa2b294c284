"""Modules made faster for evaluation: layers fused, dropouts left out."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any, Final

from ... import nn
from ...nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval
from .._symbolic_trace import symbolic_trace
from ..graph import Graph
from ..graph_module import GraphModule
from ..interpreter import Transformer
from ..node import Node

__all__ = [
    "extract_subgraph",
    "fuse",
    "matches_module_pattern",
    "remove_dropout",
    "replace_node_module",
]

_FUSED: Final[list[tuple[type, type, Callable[[Any, Any], nn.Module]]]] = [
    (nn.Conv1d, nn.BatchNorm1d, fuse_conv_bn_eval),
    (nn.Conv2d, nn.BatchNorm2d, fuse_conv_bn_eval),
    (nn.Conv3d, nn.BatchNorm3d, fuse_conv_bn_eval),
    (nn.Linear, nn.BatchNorm1d, fuse_linear_bn_eval),
]


def _parent_name(target: str) -> tuple[str, str]:
    """The name of the module that has a module, and its name there."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(
    pattern: Iterable[type], node: Node, modules: dict[str, nn.Module]
) -> bool:
    """Whether a node calls a module of the second class on the result of one of the first class."""
    if not node.args:
        return False
    for kind, each in zip(pattern, (node.args[0], node), strict=False):
        if not isinstance(each, Node) or each.op != "call_module":
            return False
        if type(modules.get(str(each.target))) is not kind:
            return False
    return True


def replace_node_module(node: Node, modules: dict[str, nn.Module], new_module: nn.Module) -> None:
    """Puts another module in the place of that which a node calls, in its parent and in `modules`.

    Raises:
        AssertionError: the node calls no module.
    """
    if not isinstance(node.target, str):
        raise AssertionError(f"Expected str target, got {type(node.target)}")
    parent, name = _parent_name(node.target)
    modules[node.target] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: nn.Module, inplace: bool = False, no_trace: bool = False) -> nn.Module:
    """A module in which each batch normalization is part of the layer before it.

    Args:
        model: in evaluation mode.
        inplace: replace the model's own layers, not a copy's.
        no_trace: it has a graph already.

    Layers stay unchanged whose output has other users, that are called more than once, or whose
    normalization has no running statistics.

    Example:
        >>> import pygrad
        >>> layers = pygrad.nn.Conv2d(1, 2, 1), pygrad.nn.BatchNorm2d(2)
        >>> fused = fuse(pygrad.nn.Sequential(*layers).eval())
        >>> [type(each).__name__ for each in fused.children()]
        ['Conv2d']
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for layer, norm, fused in _FUSED:
        for node in list(graph.nodes):
            if not matches_module_pattern((layer, norm), node, modules):
                continue
            before, found = node.args[0], modules[str(node.target)]
            calls = sum(each.target == before.target for each in graph.nodes)
            if len(before.users) > 1 or calls > 1 or not found.track_running_stats:
                continue
            replace_node_module(before, modules, fused(modules[before.target], found))
            node.replace_all_uses_with(before)
            graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not isinstance(self.submodules[target], nn.Dropout):
            return super().call_module(target, args, kwargs)
        if len(args) != 1:
            raise AssertionError(f"Expected 1 arg for Dropout, got {len(args)}")
        return args[0]


def remove_dropout(model: nn.Module) -> nn.Module:
    """A module without the dropouts of another."""
    return _WithoutDropout(symbolic_trace(model)).transform()


def extract_subgraph(
    orig_module: nn.Module, nodes: list[Node], inputs: list[Node], outputs: list[Node]
) -> GraphModule:
    """A module of some nodes of a graph, which takes the values of `inputs` and returns
    `outputs`.
    """
    graph = Graph()
    known = {each: graph.placeholder(each.name) for each in inputs}
    for each in nodes:
        known[each] = graph.node_copy(each, lambda node: known[node])
    graph.output([known[each] for each in outputs])
    graph.lint()
    return GraphModule(orig_module, graph)
