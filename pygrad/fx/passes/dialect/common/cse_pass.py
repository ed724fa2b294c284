"""Calls that are in a graph twice, made once."""

from __future__ import annotations

from typing import Any, Final

from ..... import ops
from ....graph import Graph
from ....graph_module import GraphModule
from ....node import Node, map_arg
from ...infra.pass_base import PassBase, PassResult

_RANDOM: Final = (
    "_fused_dropout _standard_gamma bernoulli binomial dropout multinomial native_dropout normal "
    "poisson rand rand_like randint randn randperm rrelu"
)
_IN_PLACE: Final = "add_ div_ lerp_ mul_ pow_ relu_ sigmoid_ sub_ tanh_"
_KEPT: Final = frozenset(["placeholder", "get_attr", "output"])


def get_CSE_banned_ops() -> set[Any]:
    """The ops of PyTorch's list that return another result each time, or write to an argument.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.fx.passes.dialect.common.cse_pass import get_CSE_banned_ops
        >>> torch.ops.aten.rand in get_CSE_banned_ops()
        True
    """
    return {getattr(ops.aten, name) for name in (*_RANDOM.split(), *_IN_PLACE.split())}


class CSEPass(PassBase):
    """Merges calls of one function with the same arguments: the first replaces the others.

    Args:
        banned_ops: ops whose calls are all kept, as ``OpOverloadPacket`` or as other functions;
            see `get_CSE_banned_ops`. The pass does not know by itself which ops are random or
            write to their arguments.

    Example:
        >>> import pygrad as torch
        >>> from pygrad.fx.experimental.proxy_tensor import make_fx
        >>> from pygrad.fx.passes.dialect.common.cse_pass import CSEPass
        >>> module = make_fx(lambda x: x.cos() + x.cos())(torch.ones(2))
        >>> result = CSEPass()(module)
        >>> result.modified
        True
        >>> print(result.graph_module.code.strip())
        def forward(self, x_1):
            cos = torch.ops.aten.cos.default(x_1);  x_1 = None
            add = torch.ops.aten.add.Tensor(cos, cos);  cos = None
            return add
    """

    def __init__(self, banned_ops: set[Any] | None = None) -> None:
        self.banned_ops = banned_ops or set()

    def call(self, graph_module: GraphModule) -> PassResult:
        """The module, or a new one if calls were merged."""
        graph = Graph()
        replaced: dict[Node, Node] = {}
        made: dict[Any, Node] = {}
        modified = False
        for node in graph_module.graph.nodes:
            key = None
            if node.op not in _KEPT and self._op(node) not in self.banned_ops:
                arguments = map_arg((node.args, node.kwargs), lambda n: replaced[n])
                key = node.op, node.target, _key(arguments)
                if (found := made.get(key)) is not None:
                    replaced[node] = found
                    modified = True
                    continue
            replaced[node] = graph.node_copy(node, lambda n: replaced[n])
            if key is not None:
                made[key] = replaced[node]
        if not modified:
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, graph), True)

    @staticmethod
    def _op(node: Node) -> Any:
        return getattr(node.target, "overloadpacket", node.target)


def _key(value: Any) -> Any:
    """The arguments in a form for comparing calls: keeps structures, and 1 is neither 1.0 nor
    True.
    """
    if isinstance(value, (list, tuple)):
        return type(value), tuple(map(_key, value))
    if isinstance(value, dict):
        return dict, tuple((name, _key(each)) for name, each in value.items())
    if isinstance(value, slice):
        return slice, _key(value.start), _key(value.stop), _key(value.step)
    return type(value), repr(value) if isinstance(value, float) else value  # -0.0 is not 0.0


__all__ = ["CSEPass", "get_CSE_banned_ops"]
