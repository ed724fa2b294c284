"""Shapes and dtypes of all values of a graph, found by running it."""

from __future__ import annotations

import traceback
from typing import Any

from ..._tensor.tensor import Tensor
from .._metadata import TensorMetadata
from .._metadata import metadata_of as _extract_tensor_metadata
from ..graph_module import GraphModule
from ..interpreter import Interpreter
from ..node import Node, map_aggregate


class ShapeProp(Interpreter):
    """Runs a graph and stores ``tensor_meta`` and ``type`` of each node in its `meta`.

    Raises:
        RuntimeError: a node fails; names the node.

    Example:
        >>> import pygrad
        >>> from pygrad import fx
        >>> from pygrad.fx.passes.shape_prop import ShapeProp
        >>> module = fx.symbolic_trace(lambda x: x.flatten())
        >>> _ = ShapeProp(module).propagate(pygrad.ones(2, 3))
        >>> [tuple(node.meta["tensor_meta"].shape) for node in module.graph.nodes]
        [(2, 3), (6,), (6,)]
    """

    def __init__(self, gm: GraphModule, fake_mode: Any = None) -> None:
        super().__init__(gm)
        if fake_mode is not None:
            raise NotImplementedError("ShapeProp: pygrad has no fake tensors; use device meta")

    def run_node(self, n: Node) -> Any:
        """Runs a node and records its value's metadata."""
        try:
            result = super().run_node(n)
        except Exception as error:
            traceback.print_exc()
            raise RuntimeError(
                f"ShapeProp error for: node={n.format_node()} with meta={n.meta}"
            ) from error
        found = False

        def extract_tensor_meta(value: Any) -> Any:
            nonlocal found
            if isinstance(value, Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, extract_tensor_meta)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args: Any) -> Any:
        """Run the graph with these inputs; its result."""
        return super().run(*args)


__all__ = ["ShapeProp", "TensorMetadata"]
