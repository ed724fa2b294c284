"""Modules that are a graph and the code made of it."""

from __future__ import annotations

import contextlib
import copy
import itertools
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, cast

from .. import nn, serialization
from .._tensor.tensor import Tensor
from ..nn.modules.utils import _addindent
from ._compatibility import compatibility
from ._namespace import _custom_builtins
from ._source import _exec_with_source as _exec_with_source
from ._source import _forward_from_src, _WrappedCall, import_block
from ._source import _loader as _loader
from ._source import _method_from_src as _method_from_src
from .graph import Graph, PythonCode, _BoxedCodeGen, _PyTreeCodeGen
from .node import Node

_USER_PRESERVED_ATTRIBUTES_KEY: Final = "_user_preserved_attributes"
_KEPT_BY_COPIES: Final = (
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
    "_replace_hooks",
    "_create_node_hooks",
    "_erase_node_hooks",
    "_deepcopy_hooks",
)
_PRINTED_WHOLE: Final = (
    nn.Linear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
)
"""Modules whose repr is a constructor call."""


_default_tracer: Final[list[type]] = []
"""The tracer's class, which needs this module and registers itself here."""


class _CodeOnlyModule(nn.Module):
    """The attributes of a module, and one function, from which to rebuild the module."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__()
        self.__dict__ = body


def _ensure_submodule(module: Any, path: list[str]) -> Any:
    """The module at a path of names; makes empty modules where there are none."""
    for name in path:
        found = getattr(module, name, None)
        if found is None:
            found = nn.Module()
            setattr(module, name, found)
        module = found
    return module


def _put(module: Any, name: str, value: Any) -> None:
    """A tensor that is no parameter becomes a buffer, anything else an attribute."""
    if isinstance(value, Tensor) and not isinstance(value, nn.Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


def _copy_attr(from_module: nn.Module, to_module: nn.Module, target: str) -> None:
    """Copy an attribute with a dotted name to another module; makes missing modules on the way."""
    *path, name = target.split(".")
    source: Any = from_module
    place: Any = to_module
    for part in path:
        source, above = getattr(source, part), place
        place = getattr(above, part, None)
        if place is source:
            return  # a module on the way is shared already
        if place is None:
            place = nn.Module()
            setattr(above, part, place)
    _put(place, name, getattr(source, name))


def _assign_attr(from_obj: object, to_module: nn.Module, target: str) -> None:
    """Put an object at a dotted name."""
    *path, name = target.split(".")
    _put(_ensure_submodule(to_module, path), name, from_obj)


def _get_attr_via_attr_list(model: nn.Module, attr_list: list[str]) -> Any:
    found: Any = model
    for name in attr_list:
        if found is None:
            raise AssertionError(f"Attribute '{name}' not found in model")
        found = getattr(found, name)
    return found


def _get_attr(model: nn.Module, attr_name: str) -> Any:
    return _get_attr_via_attr_list(model, attr_name.split("."))


def _has_attr(model: nn.Module, attr_name: str) -> bool:
    try:
        _get_attr(model, attr_name)
    except AttributeError:
        return False
    return True


def _del_attr(model: nn.Module, attr_name: str) -> None:
    *path, name = attr_name.split(".")
    delattr(_get_attr_via_attr_list(model, path), name)


@compatibility(is_backward_compatible=True)
def reduce_graph_module(body: dict[str, Any], import_block: str) -> nn.Module:
    """A pickled `GraphModule` again: its code is run, and traced for the graph."""
    source = body.get("_code") or body["code"]
    return _deserialize_graph_module(_forward_from_src(import_block + source, {}), body)


@compatibility(is_backward_compatible=True)
def reduce_package_graph_module(
    importer: Any, body: dict[str, Any], generated_module_name: str
) -> nn.Module:
    """Like `reduce_graph_module`, for a module in a package."""
    forward = importer.import_module(generated_module_name).forward
    return _deserialize_graph_module(forward, body)


def _deserialize_graph_module(
    forward: Callable[..., Any], body: dict[str, Any], graph_module_cls: type | None = None
) -> nn.Module:
    tracer_cls: Any = body.get("_tracer_cls") or _default_tracer[-1]

    class KeepModules(tracer_cls):  # type: ignore[misc]  # what was traced had been traced into
        def is_leaf_module(self, _: nn.Module, __: str) -> bool:
            return True

    class CodeOnly(_CodeOnlyModule):
        pass

    CodeOnly.forward = forward
    module = CodeOnly(body)
    graph = KeepModules().trace(module, **body.get("_tracer_extras", {}))
    for node in graph.nodes:
        trace = (body.get("_graphmodule_graph_node_meta_stack_trace") or {}).get(node.name)
        if trace is not None:
            node.meta["stack_trace"] = trace
    body.pop("_graphmodule_graph_node_meta_stack_trace", None)
    graph._tracer_cls = tracer_cls
    made: Any = (graph_module_cls or GraphModule)(
        module, graph, class_name=body.get("_graphmodule_cls_name", "GraphModule")
    )
    for name, value in body.items():
        if not hasattr(made, name):
            setattr(made, name, value)
    return cast(nn.Module, made)


def _print_readable(
    module: nn.Module,
    module_name: str,
    print_output: bool = True,
    include_stride: bool = False,
    include_device: bool = False,
    colored: bool = False,
    expanded_def: bool = False,
    additional_meta: list[str] | None = None,
) -> str:
    graph = module.graph
    if not isinstance(graph, Graph):
        raise AssertionError("print_readable must be used on a module with a graph")
    code = graph.python_code(
        "self",
        verbose=True,
        include_stride=include_stride,
        include_device=include_device,
        colored=colored,
        expanded_def=expanded_def,
        additional_meta=additional_meta,
    ).src.lstrip("\n")
    text = _addindent(f"class {module_name}(torch.nn.Module):\n{code}", 4)
    inner = [
        _print_readable(
            child,
            name,
            False,
            include_stride,
            include_device,
            colored,
            additional_meta=additional_meta,
        )
        for name, child in module.named_children()
        if isinstance(child, GraphModule)
    ]
    text += _addindent("\n".join(["", *inner]), 4)
    if print_output:
        print(text)
    return text


@compatibility(is_backward_compatible=True)
class GraphModule(nn.Module):
    """A module whose ``forward`` is written from a graph.

    Changes of the graph show when it is assigned again, or after `recompile`.

    Args:
        root: a module with the graph's targets, or a dict of targets by dotted names.
        graph: the graph, which this module owns from then on.
        class_name: the name of its class.

    Raises:
        RuntimeError: `root` lacks a target of the graph.

    Example:
        >>> import pygrad
        >>> from pygrad import nn
        >>> from pygrad.fx import Graph, GraphModule
        >>> graph = Graph()
        >>> _ = graph.output(graph.call_method("relu", (graph.placeholder("x"),)))
        >>> module = GraphModule(nn.Module(), graph)
        >>> print(module.code.strip())
        def forward(self, x):
            relu = x.relu();  x = None
            return relu
        >>> module(pygrad.tensor([-1.0, 2.0]))
        tensor([0., 2.])
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> GraphModule:
        # Each instance has its own forward, so each has its own class.
        base: Any = next(c for c in cls.__mro__ if c.__qualname__.split(".")[-1] != _IMPL)

        class GraphModuleImpl(base):  # type: ignore[misc]
            pass

        return super().__new__(GraphModuleImpl)

    @compatibility(is_backward_compatible=True)
    def __init__(
        self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        self.__class__.__name__ = class_name
        named = [node for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, nn.Module):
            if hasattr(root, "training"):
                self.training = root.training
            if isinstance(root, _CodeOnlyModule):  # all of it is wanted
                tables = root.named_children(), root.named_buffers(), root.named_parameters()
                for name, _ in itertools.chain(*tables):
                    _copy_attr(root, self, name)
            for node in named:
                _copy_attr(root, self, str(node.target))
        elif isinstance(root, dict):
            for node in named:
                if node.target not in root:
                    raise RuntimeError(
                        f"Node {node} referenced target {node.target} but that target was not "
                        "provided in ``root``!"
                    )
            # Modules before their members, so that they do not replace them.
            for target in sorted([str(n.target) for n in named], key=lambda t: t.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.graph = graph
        tracer = graph._tracer_cls
        local = tracer is not None and "<locals>" in tracer.__qualname__  # is not pickled
        self._tracer_cls = None if local else tracer
        self._tracer_extras = graph._tracer_extras or {}
        self.meta: dict[str, Any] = {}
        self._replace_hooks: list[Callable[..., Any]] = []
        self._create_node_hooks: list[Callable[[Node], Any]] = []
        self._erase_node_hooks: list[Callable[[Node], Any]] = []
        self._deepcopy_hooks: list[Callable[[GraphModule], Any]] = []
        self.shape_env = None

    __jit_unused_properties__ = ("graph", "_boxed_call")

    @property
    def _boxed_call(self) -> bool:
        return isinstance(self._graph._codegen, _BoxedCodeGen)

    @property
    def graph(self) -> Graph:
        """The graph; assigning one rewrites the code."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = g
        g.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The source of ``forward``."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    @compatibility(is_backward_compatible=True)
    def recompile(self) -> PythonCode:
        """Write the code from the present graph."""
        codegen = self._graph._codegen
        if isinstance(codegen, _PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        written = self._graph.python_code("self")
        self._code = written.src
        self._lineno_map = written._lineno_map
        self._prologue_start = written._prologue_start
        cls: Any = type(self)
        cls.forward = _forward_from_src(self._code, written.globals, self._graph._co_fields)
        if "_wrapped_call" not in vars(cls):
            cls._wrapped_call = _WrappedCall(cls, vars(cls).get("__call__"))
        self._recompile_submodules()

        def call_wrapped(self: Any, *args: Any, **kwargs: Any) -> Any:
            return self._wrapped_call(self, *args, **kwargs)

        cls.__call__ = call_wrapped
        return written

    def _recompile_submodules(self) -> list[tuple[str, PythonCode]]:
        children = self.named_children()
        return [(name, m.recompile()) for name, m in children if isinstance(m, GraphModule)]

    # --- submodules ---

    @compatibility(is_backward_compatible=True)
    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put a module at a dotted name, in empty modules if they are missing.

        Returns:
            Whether it could be: False if something on the way is no module.
        """
        *path, name = target.split(".")
        place: Any = self
        for part in path:
            place = _ensure_submodule(place, [part])
            if not isinstance(place, nn.Module):
                return False
        place.add_module(name, m)
        return True

    @compatibility(is_backward_compatible=True)
    def delete_submodule(self, target: str) -> bool:
        """Take out the module at a dotted name; returns whether there was one."""
        *path, name = target.split(".")
        place: Any = self
        for part in path:
            place = getattr(place, part, None)
            if not isinstance(place, nn.Module):
                return False
        if not isinstance(getattr(place, name, None), nn.Module):
            return False
        delattr(place, name)
        return True

    @compatibility(is_backward_compatible=True)
    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that no node calls, reads, or passes on its way."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op not in ("call_module", "get_attr"):
                continue
            target = str(node.target)
            used.update(itertools.accumulate(target.split("."), "{}.{}".format))
            if node.op == "call_module" and _has_attr(self, target):
                inner = self.get_submodule(target).named_modules()
                used.update(f"{target}.{name}" for name, _ in inner if name)
        for name in [name for name, _ in self.named_modules() if name not in used]:
            self.delete_submodule(name)

    # --- copies ---

    def __reduce__(self) -> Any:
        body = self.__dict__.copy()
        written = self.recompile()
        del body["_graph"]
        return reduce_graph_module, (body, import_block(written.globals))

    def _deepcopy_init(self) -> Callable[..., None]:
        return GraphModule.__init__

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        made: Any = type(self).__new__(type(self))
        memo[id(self)] = made
        body = _CodeOnlyModule(copy.deepcopy(self.__dict__, memo))
        self._deepcopy_init()(made, body, body.__dict__["_graph"])
        for name in _KEPT_BY_COPIES:
            if name in self.__dict__:
                setattr(made, name, copy.deepcopy(self.__dict__[name], memo))
        made.meta = copy.deepcopy(getattr(self, "meta", {}), memo)
        for name, value in made.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        for hook in getattr(self, "_deepcopy_hooks", ()):
            hook(made)
        return made  # type: ignore[no-any-return]

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph)
        made.meta = getattr(self, "meta", {})
        return made

    def _replicate_for_data_parallel(self) -> GraphModule:
        made = self.__copy__()
        made.__dict__["_is_replica"] = True
        return made

    # --- texts ---

    @compatibility(is_backward_compatible=False)
    def print_readable(
        self,
        print_output: bool = True,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        *,
        fast_sympy_print: bool = False,
        expanded_def: bool = False,
        additional_meta: list[str] | None = None,
    ) -> str:
        """The code of this module and of graph modules in it, with the shapes in `meta`."""
        return _print_readable(
            self,
            self._get_name(),
            print_output,
            include_stride,
            include_device,
            colored,
            expanded_def,
            additional_meta,
        )

    def __str__(self) -> str:
        hint = "# To see more debug info, please use `graph_module.print_readable()`"
        return "\n".join([super().__str__(), self._code, hint])

    @compatibility(is_backward_compatible=False)
    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write the module as a package: ``module.py`` with its code, and its tensors beside it."""
        folder = Path(folder)
        folder.mkdir(exist_ok=True)
        serialization.save(self.state_dict(), folder / "state_dict.pt")
        lines = ["", "import torch", *(each.import_str for each in _custom_builtins.values()), ""]
        lines += ["from torch.nn import *", f"class {module_name}(torch.nn.Module):"]
        lines += ["    def __init__(self):", "        super().__init__()"]
        pickled = []
        for name, module in self.named_children():
            made = repr(module)
            if type(module) not in _PRINTED_WHOLE:
                pickled.append(name)
                file = folder / f"{name}.pt"
                serialization.save(module, file)
                comment = made.replace("\r", " ").replace("\n", " ")
                made = f"torch.load(r'{file}', weights_only=False)"
                lines.append(f"        setattr(self, '{name}', {made}) # {comment}")
            else:
                lines.append(f"        setattr(self, '{name}', {made})")
        for name, tensor in self._buffers.items():
            if tensor is not None:
                made = f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
                lines.append(f"        self.register_buffer('{name}', {made})")
        for name, tensor in self._parameters.items():
            if tensor is not None:
                made = f"torch.empty({list(tensor.shape)}, dtype={tensor.dtype})"
                lines.append(f"        setattr(self, '{name}', torch.nn.Parameter({made}))")
        lines.append(f"        self.load_state_dict(torch.load(r'{folder}/state_dict.pt'))")
        lines.append(_addindent(self.code, 4))
        (folder / "module.py").write_text("\n".join(lines) + "\n")
        (folder / "__init__.py").write_text("from .module import *")
        if pickled:
            warnings.warn(
                "Was not able to save the following children modules as reprs -"
                f"saved as pickled files instead: {pickled}",
                stacklevel=2,
            )

    # --- hooks on changes of nodes ---

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        self._register_replace_node_hook(f)
        try:
            yield
        finally:
            self._unregister_replace_node_hook(f)


_IMPL: Final = "GraphModuleImpl"


def _hooks_of(kind: str, table: str) -> None:
    """The two methods of a kind of hooks."""

    def register(self: Any, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise AssertionError(f"{kind} hook must be a callable.")
        getattr(self, table).append(f)

    def unregister(self: Any, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise AssertionError(f"{kind} hook must be a callable.")
        getattr(self, table).remove(f)

    name = table.strip("_").removesuffix("s").replace("replace_hook", "replace_node_hook")
    setattr(GraphModule, f"_register_{name}", register)
    setattr(GraphModule, f"_unregister_{name}", unregister)


_hooks_of("create_node", "_replace_hooks")
_hooks_of("create_node", "_create_node_hooks")
_hooks_of("erase_node", "_erase_node_hooks")
_hooks_of("deepcopy", "_deepcopy_hooks")

__all__ = ["GraphModule", "reduce_graph_module", "reduce_package_graph_module"]
