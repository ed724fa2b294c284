"""Programs as graphs: traced, changed, written as Python again and run.

`symbolic_trace` runs a program with proxies that record its operations. The `Graph` is a list of
nodes, which a program can change; a `GraphModule` is a module whose ``forward`` is written from its
graph.

Example:
    >>> import pygrad as torch
    >>> from pygrad import fx
    >>> module = fx.symbolic_trace(lambda x, y: x.sin() + y)
    >>> for node in module.graph.nodes:
    ...     if node.target == "sin":
    ...         node.target = "cos"
    >>> _ = module.recompile()
    >>> module(torch.zeros(2), 1)
    tensor([2., 2.])
"""

from . import graph as graph
from . import graph_module as graph_module
from . import immutable_collections as immutable_collections
from . import interpreter as interpreter
from . import node as node
from . import proxy as proxy
from . import subgraph_rewriter as subgraph_rewriter
from . import tensor_type as tensor_type
from . import traceback as traceback
from ._symbolic_trace import PH, ProxyableClassMeta, Tracer, symbolic_trace, wrap
from .graph import CodeGen, Graph
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_arg
from .proxy import Proxy
from .subgraph_rewriter import replace_pattern

vars(node)["Graph"] = Graph  # which annotations name, as `typing.get_type_hints` finds them
vars(graph).update(GraphModule=GraphModule, Tracer=Tracer)

__all__ = [
    "PH",
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Node",
    "Proxy",
    "ProxyableClassMeta",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
