"""Graphs written as Python: one line for each node; values are freed after their last use."""

from __future__ import annotations

import enum
import inspect
import os
import pprint
import re
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from .._ground.dtypes import device
from .._tensor.tensor import Tensor
from ..utils import _pytree as pytree
from ._metadata import TensorMetadata, abbreviate_dtype, format_list
from ._names import is_from_torch, qualified_name, resolve_torch_name, type_repr
from ._namespace import _custom_builtins, _Namespace
from .node import Node
from .tensor_type import TensorType

TransformCodeFunc = Callable[[list[str]], list[str]]

reflectable_magic_methods: Final = {
    "add": "{} + {}",
    "sub": "{} - {}",
    "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}",
    "div": "{} / {}",
    "mod": "{} % {}",
    "pow": "{} ** {}",
    "lshift": "{} << {}",
    "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}",
    "xor": "{} ^ {}",
    "getitem": "{}[{}]",
    "matmul": "{} @ {}",
}
magic_methods: Final = {
    "eq": "{} == {}",
    "ne": "{} != {}",
    "lt": "{} < {}",
    "gt": "{} > {}",
    "le": "{} <= {}",
    "ge": "{} >= {}",
    "pos": "+{}",
    "neg": "-{}",
    "invert": "~{}",
    **reflectable_magic_methods,
}
"""How source writes the functions of Python's module `operator`. The tables are PyTorch's, by which
programs make their own tracers.
"""
inplace_methods: Final = {
    "i" + name.rstrip("_"): text[:-3] + "= {}"  # a + b is a += b
    for name, text in reflectable_magic_methods.items()
    if name not in ("getitem", "div")
} | {"setitem": "{}[{}] = {}"}

_GENERIC: Final = {
    list: typing.List,  # noqa: UP006 (what was written with typing is printed so)
    dict: typing.Dict,  # noqa: UP006
    set: typing.Set,  # noqa: UP006
    frozenset: typing.FrozenSet,  # noqa: UP006
    tuple: typing.Tuple,  # noqa: UP006
}
_COLORS: Final = {
    "red": "\033[31m",
    "blue": "\033[34m",
    "dim": "\033[2m",
    "dim_blue": "\033[2m\033[34m",
    "dim_green": "\033[2m\033[32m",
}
_COUNTER: Final = re.compile(r"# COUNTER: (\d+)")
_FRAME: Final = re.compile(r"^File \"(.+)\", line (\d+), in (.+)$")


@dataclass
class PythonCode:
    """Source of a function ``forward``, the globals that it needs, and which line is which node."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """The argument names of a traced function, and the structures of its arguments and its
    result.
    """

    orig_args: list[str]
    in_spec: Any
    out_spec: Any


@dataclass(frozen=True)
class _ParsedStackTrace:
    """The innermost frame of a stack trace."""

    file: str
    lineno: str
    name: str
    code: str

    def get_summary_str(self) -> str:
        return f"File: {self.file}:{self.lineno} in {self.name}, code: {self.code}"


def _parse_stack_trace(
    stack_trace: str | None, filter_fn: Callable[[str, str, str], bool] | None = None
) -> _ParsedStackTrace | None:
    """The last frame of a text of frames that the filter, if any, takes."""
    lines = (stack_trace or "").strip().split("\n")
    for at in range(len(lines) - 2, -1, -1):
        if found := _FRAME.match(lines[at].strip()):
            file, lineno, name = found.groups()
            code = lines[at + 1].strip()
            if not filter_fn or filter_fn(file, name, code):
                return _ParsedStackTrace(file, lineno, name, code)
    return None


def _format_target(base: str, target: str) -> str:
    """The expression of a dotted name below another; uses getattr for parts that are no
    identifiers.
    """
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def _with_supported(method: Callable[..., str], *args: Any, **kwargs: Any) -> str:
    """Calls an override with the arguments that it accepts: older ones lack some."""
    known = inspect.signature(method).parameters
    return method(*args, **{key: value for key, value in kwargs.items() if key in known})


class CodeGen:
    """The writer of a graph as a function. Derived classes may change the first and last line."""

    @staticmethod
    def _sym_repr(x: Any) -> str:
        return repr(x)

    def __init__(self) -> None:
        self._body_transformer: TransformCodeFunc | None = None
        self._func_name: str = "forward"

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        """The line that begins the function.

        Args:
            free_vars: its parameters; ``self`` is put before them if it is not there.
            maybe_return_annotation: `` -> type``, or nothing.
            expanded_def: a line a parameter.

        Example:
            >>> from pygrad.fx.graph import CodeGen
            >>> CodeGen().gen_fn_def(["a", "b"], "")
            'def forward(self, a, b):'
        """
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        if not expanded_def:
            return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"
        lines = "".join(_argument_line(each) for each in free_vars)
        return f"def {self._func_name}(\n{lines}){maybe_return_annotation}:"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        """The line that returns, without its indentation."""
        return f"return {_result_text(output_args, descs, repr_fn or repr)}"

    def process_inputs(self, *args: Any) -> Any:
        """Converts the function's arguments to the graph's inputs."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """Converts the graph's result to the function's result."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names, with their objects, that overrides need in the code."""
        return []

    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        include_stride: bool = False,
        include_device: bool = False,
        colored: bool = False,
        expanded_def: bool = False,
        record_func: bool = False,
        additional_meta: list[str] | None = None,
    ) -> PythonCode:
        writer = _Writer(self, root_module, namespace)
        writer.expanded = expanded_def
        if verbose:
            writer.notes = _Notes(include_stride, include_device, colored, additional_meta or [])
        elif colored:
            writer.color = _color_text
        writer.write(nodes)
        return writer.build_code()


def _plain(name: str, text: str) -> str:
    return text


def _color_text(name: str, text: str) -> str:
    return f"{_COLORS[name]}{text}\033[0m"


def _argument_line(argument: str) -> str:
    """A parameter on its own line, with its comment behind the comma."""
    code, mark, comment = argument.partition("#")
    return f"    {code.rstrip()},  # {comment.lstrip()}\n" if mark else f"    {argument},\n"


def _result_text(value: Any, descs: Sequence[str] | None, text: Callable[[Any], str]) -> str:
    """The returned expression; with descriptions, one line for each element."""
    if descs is None or not isinstance(value, (list, tuple)):
        return text(value)
    left, right = "()" if isinstance(value, tuple) else "[]"
    pairs = zip(value, descs, strict=False)
    lines = "".join(f"    {text(item)},  # {note}\n" for item, note in pairs)
    return f"{left}\n{lines}{right}"


class _Notes:
    """Additions of readable code: types and shapes as annotations, and the origin of each node."""

    def __init__(self, stride: bool, device: bool, colored: bool, keys: list[str]) -> None:
        self._stride = stride or os.environ.get("FX_GRAPH_SHOW_STRIDE", "0") == "1"
        self._device = device or os.environ.get("FX_GRAPH_SHOW_DEVICE", "0") == "1"
        self._color = _color_text if colored else _plain
        self._keys = keys
        self._last: str | None = None

    def annotation(self, node: Node) -> str | None:
        """The type of the node's value, if `meta` has it."""
        value = node.meta.get("val", node.meta.get("tensor_meta", node.meta.get("example_value")))
        if isinstance(value, TensorMetadata):
            return f': "{abbreviate_dtype(value.dtype)}{format_list(value.shape)}"'
        if not isinstance(value, Tensor):
            return None
        text = self._color("red", abbreviate_dtype(value.dtype))
        text += self._color("blue", format_list(value.shape))
        text += self._color("dim_blue", format_list(value.stride()) if self._stride else "")
        text += self._color("dim_green", str(value.device) if self._device else "")
        kind = type(value)
        return f': "{text}"' if kind is Tensor else f': "{kind.__name__}({text})"'

    def origin(self, node: Node) -> str:
        """A comment with the origin of the node, unless it equals the one before."""
        if node.op in ("placeholder", "output"):
            return ""
        found = [f"{key}: {node.meta[key]}" for key in self._keys if key in node.meta]
        more = f"# {', '.join(found)} " if found else ""
        custom = {
            key: f"{str(value)[:40]}..." if len(str(value)) > 40 else value
            for key, value in (node.meta.get("custom") or {}).items()
        }
        note = f" Annotation: {custom}" if custom else ""
        frame = _parse_stack_trace(node.stack_trace)
        where = frame.get_summary_str() if frame else "No stacktrace found for following nodes"
        line = "\n" + self._color("dim", f"{more}#{note} {where}") + "\n"
        if line == self._last:
            return ""
        self._last = line
        return line


class _Writer:
    """A graph being written as source."""

    notes: _Notes | None = None
    expanded = False
    color: Callable[[str, str], str] = staticmethod(_plain)

    def __init__(self, codegen: CodeGen, root: str, namespace: _Namespace) -> None:
        self._codegen = codegen
        self._root = root
        self._namespace = namespace
        self._free_vars: list[str] = []
        self._body: list[str] = []
        self._globals: dict[str, Any] = {}
        self._wrapped: dict[str, None] = {}
        self._returned = ""
        for name, (_, obj) in _custom_builtins.items():
            self._add(name, obj)

    # --- names ---

    def _add(self, name: str, obj: Any) -> str:
        given = self._namespace.create_name(name, obj)
        self._globals.setdefault(given, obj)
        return given

    def global_name(self, hint: str, obj: Any) -> str:
        """The name of an object outside the graph; objects of torch keep their own."""
        if is_from_torch(obj) and obj is not device:
            name = qualified_name(obj)
            if resolve_torch_name(name) is not None:
                return name
        return self._add(hint, obj)

    def _type(self, kind: Any) -> str:
        if isinstance(kind, tuple) and not kind:
            return "()"  # of an empty tuple's annotation
        name = type_repr(kind)
        if isinstance(kind, types.UnionType) and "|" in name:
            return "|".join(self._type(each) for each in typing.get_args(kind))
        origin = getattr(kind, "__origin__", None)
        if origin is None:
            return self.global_name(name, kind)
        if type(kind).__module__ == "typing":
            origin = _GENERIC.get(origin, origin)
        outer = self.global_name(type_repr(origin), origin)
        inner = kind.dims if isinstance(kind, TensorType) else typing.get_args(kind)
        return f"{outer}[{','.join(self._type(each) for each in inner)}]" if inner else outer

    # --- expressions ---

    def _text(self, arg: Any) -> str:
        if isinstance(arg, Node):
            return repr(arg)
        if isinstance(arg, tuple) and hasattr(arg, "_fields"):
            kind = type(arg)
            return f"{self.global_name(qualified_name(kind), kind)}{tuple(arg)!r}"
        if isinstance(arg, enum.Enum):
            return f"{self.global_name(type(arg).__name__, type(arg))}.{arg.name}"
        if isinstance(arg, Tensor):
            dtype = str(arg.dtype).split(".")[-1]
            return f"torch.Tensor(size={list(arg.size())}, dtype={dtype})"
        if isinstance(arg, tuple):
            return f"({self._texts(arg)},)" if len(arg) == 1 else f"({self._texts(arg)})"
        if isinstance(arg, list):
            return f"[{self._texts(arg)}]"
        if isinstance(arg, slice):
            return f"slice({self._texts((arg.start, arg.stop, arg.step))})"
        if is_from_torch(arg) and callable(arg) and hasattr(arg, "_schema"):  # an op as a value
            return qualified_name(arg)
        return self.color("blue", repr(arg))

    def _texts(self, args: Any) -> str:
        return ", ".join(self._text(each) for each in args)

    def _call(self, function: str, args: Any, kwargs: Any) -> str:
        given = [self._text(each) for each in args]
        given += [f"{key} = {self._text(each)}" for key, each in kwargs.items()]
        return f"{function}({', '.join(given)})"

    # --- nodes ---

    def write(self, nodes: Any) -> None:
        """Write all nodes into the body."""
        last_uses: dict[Node, list[Node]] = {}
        seen: set[Node] = set()
        for user in reversed(nodes):
            for value in user._input_nodes:
                if value not in seen:
                    seen.add(value)
                    last_uses.setdefault(user, []).append(value)
        for at, node in enumerate(nodes):
            if self.notes and (line := self.notes.origin(node)):
                self._body.append(line)
            self._body.append(f"# COUNTER: {at}\n")
            self._node(node)
            if node.op == "placeholder":
                continue
            unused = last_uses.get(node, []) if node.op != "output" else []
            if node.op != "output" and not node.users:
                unused = [*unused, node]
            text = " = ".join([*map(repr, unused), "None"])
            if self.notes:
                text = self.notes._color("dim", text)
            self._body.append(f";  {text}\n" if unused else "\n")

    def _node(self, node: Node) -> None:
        kind = "" if node.type is None else f" : {self._type(node.type)}"
        if self.notes:
            kind = self.notes.annotation(node) or kind
        if os.environ.get("FX_GRAPH_SHOW_META", "0") == "1" and node.meta:
            lines = [
                f"{k}: {pprint.pformat(str(v), width=80, compact=True)}\n"
                for k, v in node.meta.items()
            ]
            self._body += ['"""\n', *lines, '"""\n']
        if node.op == "placeholder":
            self._input(node, kind)
        elif node.op == "output":
            self._output(node)
        elif node.op == "call_function":
            self._body.append(self._function(node, kind))
        else:
            name, target = f"{node!r}{kind}", str(node.target)
            if node.op == "call_method":
                method = _format_target(self._text(node.args[0]), target)
                text = self._call(method, node.args[1:], node.kwargs)
            elif node.op == "call_module":
                text = self._call(_format_target(self._root, target), node.args, node.kwargs)
            elif node.op == "get_attr":
                text = _format_target(self._root, target)
            else:
                raise NotImplementedError(f"node: {node.op} {node.target}")
            self._body.append(f"{name} = {text}")

    def _input(self, node: Node, kind: str) -> None:
        default = f" = {self._text(node.args[0])}" if node.args else ""
        note = node.meta.get("desc") if self.expanded else None
        comment = f"  # {note}" if note is not None else ""
        self._free_vars.append(f"{node.target}{kind}{default}{comment}")
        plain = str(node.target).replace("*", "")
        if plain != repr(node):
            self._body.append(f"{node!r} = {plain}\n")

    def _output(self, node: Node) -> None:
        if node.type is not None:
            self._returned = f" -> {self._type(node.type)}"
        descs = node.meta.get("desc") if self.expanded else None
        self._body.append(
            _with_supported(
                self._codegen.generate_output, node.args[0], descs=descs, repr_fn=self._text
            )
        )

    def _function(self, node: Node, kind: str) -> str:
        target: Any = node.target
        name, args = f"{node!r}{kind}", node.args
        if getattr(target, "__module__", "") == "_operator":
            if pattern := magic_methods.get(target.__name__):
                return f"{name} = {pattern.format(*map(self._text, args))}"
            if pattern := inplace_methods.get(target.__name__):
                return f"{pattern.format(*map(self._text, args))};  {name} = {self._text(args[0])}"
        function = self.global_name(qualified_name(target), target)
        if function == "getattr" and len(args) == 2 and isinstance(args[1], str):
            if args[1].isidentifier():
                return f"{name} = {_format_target(self._text(args[0]), args[1])}"
        if node.meta.get("is_wrapped", False):
            self._wrapped.setdefault(function)
        return f"{name} = {self._call(function, args, node.kwargs)}"

    # --- the whole ---

    def build_code(self) -> PythonCode:
        """The source, once all nodes are written."""
        body = self._body or ["pass\n"]
        wraps = [f'torch.fx._symbolic_trace.wrap("{name}")' for name in self._wrapped]
        if self._codegen._body_transformer:
            body = self._codegen._body_transformer(body)
        for name, value in self._codegen.additional_globals():
            self.global_name(name, value)
        prologue = _with_supported(
            self._codegen.gen_fn_def, self._free_vars, self._returned, expanded_def=self.expanded
        )
        before = prologue.count("\n") + 1
        lines: list[str] = []
        line_to_node: dict[int, int | None] = {}
        node: int | None = None
        for line in "".join(body).split("\n"):
            if counter := _COUNTER.search(line):
                node = int(counter[1])
            else:
                line_to_node[len(lines) + before] = node
                lines.append(line)
        code = "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n"))
        wrapping = "\n".join(wraps)
        return PythonCode(
            f"\n{wrapping}\n\n{prologue}\n{code}",
            self._globals,
            line_to_node,
            wrapping.count("\n") + 4,
        )


class _BoxedCodeGen(CodeGen):
    """A function that takes one list and empties it."""

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        lines = [f"def {self._func_name}(self, args_list){maybe_return_annotation}:"]
        names = [re.split("[:=]", each)[0].strip() for each in free_vars if each != "self"]
        if names:
            lines.append("    args_iter = iter(args_list)")
            lines += [f"    {name} = next(args_iter)" for name in names]
            lines.append("    args_list.clear()")
        return "\n".join(lines)


class _PyTreeCodeGen(CodeGen):
    """A function whose arguments are containers; their leaves are the graph's inputs."""

    def __init__(self, pytree_info: _PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs: Any) -> Any:
        return [leaf for each in inputs for leaf in pytree.tree_flatten(each)[0]]

    def process_outputs(self, out: Any) -> Any:
        if self.pytree_info is None or self.pytree_info.out_spec is None:
            return out
        if not isinstance(out, (list, tuple)):
            out = [out]
        return pytree.tree_unflatten(out, self.pytree_info.out_spec)

    def gen_fn_def(
        self,
        free_vars: list[str],
        maybe_return_annotation: str,
        *,
        expanded_def: bool = False,
    ) -> str:
        if self.pytree_info is None:
            return super().gen_fn_def(free_vars, maybe_return_annotation, expanded_def=expanded_def)
        names = self.pytree_info.orig_args
        if names and names[0] == "self":
            free_vars.insert(0, "self")
        line = super().gen_fn_def(names[:], maybe_return_annotation, expanded_def=expanded_def)
        return line + self.gen_var_bindings(names, free_vars, expanded_def) if free_vars else line

    def gen_var_bindings(self, fn_args: list[str], free_vars: list[str], expanded_def: bool) -> str:
        """The lines that take the arguments apart."""
        spec = self.pytree_info.in_spec
        taken = f"[{', '.join(fn_args)}]"
        if _is_args_and_kwargs(spec):
            names = self.pytree_info.orig_args
            args, kwargs = spec.children()
            by_name = zip(kwargs.context, names[args.num_children :], strict=False)
            pairs = ", ".join(f"'{key}':{name}" for key, name in by_name)
            taken = f"([{', '.join(names[: args.num_children])}], {{{pairs}}})"
        bare = [re.split("[:#]", each)[0] for each in free_vars]
        annotated = [each for each in free_vars if ":" in each]
        text = ""
        if annotated and expanded_def:
            text = "".join(f"\n    {each}" for each in annotated)
        elif annotated:
            text = "\n    " + "".join(f"{each}; " for each in annotated) + "\n"
        call = f"fx_pytree.tree_flatten_spec({taken}, self._in_spec)"
        return f"{text}\n    {', '.join(bare)}, = {call}"

    def generate_output(
        self,
        output_args: Any,
        *,
        descs: Sequence[str] | None = None,
        repr_fn: Callable[[Any], str] | None = None,
    ) -> str:
        if not self.pytree_info or not self.pytree_info.out_spec:
            return super().generate_output(output_args, descs=descs, repr_fn=repr_fn)
        text = _result_text(output_args, descs, repr_fn or repr)
        return f"return pytree.tree_unflatten({text}, self._out_spec)"


def _is_args_and_kwargs(spec: Any) -> bool:
    """Whether a structure is a pair of positional and keyword arguments."""
    if spec.type is not tuple or spec.num_children != 2:
        return False
    args, kwargs = spec.children()
    return args.type is tuple and kwargs.type is dict
