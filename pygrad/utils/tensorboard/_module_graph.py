"""The ops of one call of a module, as a graph for TensorBoard."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tensorboard.compat.proto.attr_value_pb2 import AttrValue
from tensorboard.compat.proto.config_pb2 import RunMetadata
from tensorboard.compat.proto.graph_pb2 import GraphDef
from tensorboard.compat.proto.node_def_pb2 import NodeDef
from tensorboard.compat.proto.step_stats_pb2 import DeviceStepStats, StepStats
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.compat.proto.versions_pb2 import VersionDef

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .._python_dispatch import TorchDispatchMode
from .._pytree import tree_leaves

if TYPE_CHECKING:
    from ...nn import Module


def module_graph(model: Module, args: Sequence[Any]) -> tuple[Any, Any]:
    """Calls ``model(*args)`` without gradients; returns a ``GraphDef`` of its ops, and the
    ``RunMetadata``, which names the device.

    A node is an input, a parameter or buffer, an op, or an output. Its name begins with the names
    of the modules around it, which TensorBoard shows as boxes. PyTorch shows the calls of
    TorchScript instead, for example ``aten::linear`` where this graph has ``aten::addmm``.
    """
    recorder = _Recorder(model)
    for number, leaf in enumerate(tree_leaves(args)):
        if isinstance(leaf, Tensor):
            recorder.add(f"input/{number}", "IO Node", (), leaf)
    with pygrad.no_grad(), recorder.scopes(), recorder:
        result = model(*args)
    for number, leaf in enumerate(tree_leaves(result)):
        if isinstance(leaf, Tensor):
            recorder.add(f"output/{number}", "IO Node", [leaf])
    graph = GraphDef(node=recorder.nodes, versions=VersionDef(producer=22))
    device = DeviceStepStats(device="/device:CPU:0")
    return graph, RunMetadata(step_stats=StepStats(dev_stats=[device]))


class _Recorder(TorchDispatchMode):
    """A mode that adds a node for each op; `scopes` has the labels of the running modules."""

    def __init__(self, model: Module) -> None:
        super().__init__()
        self.nodes: list[Any] = []
        self._model = model
        self._scope: list[str] = []
        self._makers: dict[int, str] = {}
        self._alive: list[Tensor] = []  # keeps tensors alive, so that their ids stay unique
        self._times: Counter[str] = Counter()
        held = [*model.named_parameters(), *model.named_buffers()]
        self._held = {id(tensor): name for name, tensor in held}

    def scopes(self) -> Any:
        """A context in which the names of running modules are tracked."""
        return _Scopes(self._model, self._scope)

    def add(
        self, name: str, kind: str, operands: Sequence[Tensor], result: Tensor | None = None
    ) -> None:
        """Adds a node; later nodes that read `result` get it as an input."""
        node = NodeDef(name=name, op=kind, input=[self._maker(each) for each in operands])
        shown = operands[0] if result is None else result
        dimensions = [TensorShapeProto.Dim(size=size) for size in shown.shape]
        shapes = AttrValue.ListValue(shape=[TensorShapeProto(dim=dimensions)])
        node.attr["_output_shapes"].CopyFrom(AttrValue(list=shapes))
        self.nodes.append(node)
        if result is not None:
            self._makers[id(result)] = name
            self._alive.append(result)

    def _maker(self, tensor: Tensor) -> str:
        """The node that produced a tensor. Makes one for parameters, buffers and constants."""
        if id(tensor) not in self._makers:
            name = self._held.get(id(tensor))
            if name is None:
                self.add(self._unique_name("constant"), "Constant", (), tensor)
            else:
                path, _, short = name.rpartition(".")
                scope = _scope_of(self._model, path)
                self.add("/".join([*scope, short]), "prim::GetAttr", (), tensor)
        return self._makers[id(tensor)]

    def _unique_name(self, short: str) -> str:
        """An unused name in the running module."""
        name = "/".join([*self._scope, short])
        self._times[name] += 1
        return name if self._times[name] == 1 else f"{name}_{self._times[name] - 1}"

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        operands = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        kind = func._schema.name
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor):
                self.add(self._unique_name(kind.partition("::")[2]), kind, operands, leaf)
        return result


def _label(module: Module, name: str) -> str:
    return f"{type(module).__name__}[{name}]"


def _scope_of(model: Module, path: str) -> list[str]:
    """The labels of a module and of the modules around it."""
    labels, module = [type(model).__name__], model
    for name in filter(None, path.split(".")):
        module = getattr(module, name)
        labels.append(_label(module, name))
    return labels


class _Scopes:
    """Keeps a list of the running modules' labels up to date, by hooks."""

    def __init__(self, model: Module, scope: list[str]) -> None:
        self._model, self._scope = model, scope
        self._handles: list[Any] = []

    def __enter__(self) -> None:
        for path, module in self._model.named_modules():
            labels = _scope_of(self._model, path)
            before: list[list[str]] = []

            def enter(*_: Any, labels: list[str] = labels, before: list[Any] = before) -> None:
                before.append(self._scope[:])
                self._scope[:] = labels

            def leave(*_: Any, before: list[Any] = before) -> None:
                self._scope[:] = before.pop()

            self._handles.append(module.register_forward_pre_hook(enter))
            self._handles.append(module.register_forward_hook(leave, always_call=True))

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()
