"""Metadata that new nodes take over while a graph is made from another."""

from __future__ import annotations

import copy
import functools
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeVar

if TYPE_CHECKING:
    from .node import Node

P = ParamSpec("P")
R = TypeVar("R")

COPIED_FIELDS: Final = (
    "nn_module_stack torch_fn source_fn_stack original_aten recompute ac_graph_id "
    "has_backward_hook from_node quantization_tag _numeric_debug_handle custom partitioner_tag"
).split()
"""The fields that a node takes over from the node that is run."""

current_meta: dict[str, Any] = {}
should_preserve_node_meta = False


class NodeSourceAction(Enum):
    """Actions of a pass on a node."""

    CREATE = "create"
    REPLACE = "replace"


class NodeSource:
    """The origin of a node: the pass that made it, and the node from which it was made, with that
    node's own origin.
    """

    class NodeInfo:
        """The kept facts about a node."""

        def __init__(self, name: str, target: str, graph_id: int) -> None:
            self.name = name
            self.target = target
            self.graph_id = graph_id

    def __init__(
        self,
        node: Node | None,
        pass_name: str = "",
        action: NodeSourceAction | list[NodeSourceAction] | None = None,
    ) -> None:
        self.pass_name = pass_name
        self.action = action if isinstance(action, list) else [action] if action else []
        for each in self.action:
            if not isinstance(each, NodeSourceAction):
                raise AssertionError(f"Expected NodeSourceAction, got {type(each)}")
        self.node_info: NodeSource.NodeInfo | None = None
        self.from_node: list[NodeSource] = []
        if node is not None:
            self.node_info = self.NodeInfo(node.name, str(node.target), id(node.graph))
            self.from_node = copy.deepcopy(node.meta.get("from_node", []))

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node_info.name if self.node_info else ""

    @property
    def target(self) -> str:
        """The target that the node called."""
        return self.node_info.target if self.node_info else ""

    @property
    def graph_id(self) -> int:
        """A number of its graph."""
        return self.node_info.graph_id if self.node_info else -1

    def _get_action_string(self) -> str:
        return "+".join(each.name.lower() for each in self.action)

    def print_readable(self, indent: int = 0) -> str:
        """One line a node, with its sources indented below it."""
        if indent > 9:
            return ""
        text = (
            f"{' ' * indent * 4}(name={self.name}, pass_name={self.pass_name}, "
            f"action={self._get_action_string()}, graph_id={self.graph_id})\n"
        )
        return text + "".join(each.print_readable(indent + 1) for each in self.from_node)

    __repr__ = print_readable

    def to_dict(self) -> dict[str, Any]:
        """The node source as plain values."""
        return {
            "name": self.name,
            "target": self.target,
            "graph_id": self.graph_id,
            "pass_name": self.pass_name,
            "action": self._get_action_string(),
            "from_node": [each.to_dict() for each in self.from_node],
        }

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NodeSource) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.name, self.target, self.graph_id, self.pass_name))

    @classmethod
    def _from_dict(cls, d: dict[str, Any] | None) -> NodeSource | None:
        if d is None:
            return None
        if not isinstance(d, dict):
            raise AssertionError(f"Expected a dict, got {type(d)}")
        made = cls(None, d.get("pass_name", ""))
        known = {each.name.lower(): each for each in NodeSourceAction}
        names = d.get("action", "").split("+")
        made.action = [known[name] for name in names if name in known]
        if {"name", "target", "graph_id"} <= d.keys():
            made.node_info = cls.NodeInfo(d["name"], d["target"], d["graph_id"])
        found = [cls._from_dict(each) for each in d.get("from_node") or ()]
        made.from_node = [each for each in found if each is not None]
        return made


@contextmanager
def preserve_node_meta(enable: bool = True) -> Iterator[None]:
    """A scope in which new nodes take over the metadata of the node that is run."""
    global should_preserve_node_meta, current_meta
    before = should_preserve_node_meta, current_meta.copy()
    try:
        should_preserve_node_meta = enable
        yield
    finally:
        should_preserve_node_meta, current_meta = before


def has_preserved_node_meta() -> bool:
    """Whether new nodes take over metadata now."""
    return should_preserve_node_meta


def set_stack_trace(stack: list[str]) -> None:
    """Sets the stack trace of new nodes; an empty list removes it."""
    if not should_preserve_node_meta:
        return
    if stack:
        current_meta["stack_trace"] = "".join(stack)
    else:
        current_meta.pop("stack_trace", None)


def format_stack() -> list[str]:
    """The stack trace of new nodes, or the current stack."""
    if should_preserve_node_meta:
        return [current_meta.get("stack_trace", "")]
    return traceback.format_list(traceback.extract_stack()[:-1])


@contextmanager
def annotate(annotation_dict: dict[str, Any]) -> Iterator[None]:
    """A scope in which new nodes have these entries in ``meta["custom"]``."""
    before = copy.copy(current_meta.get("custom"))
    meta = current_meta
    meta["custom"] = {**(before or {}), **annotation_dict}
    try:
        yield
    finally:
        if before is None:
            meta.pop("custom", None)
        else:
            meta["custom"] = before


def annotate_fn(annotation_dict: dict[str, Any]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that adds entries to ``meta["custom"]`` of the function's nodes."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(function)
        def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
            with annotate(annotation_dict):
                return function(*args, **kwargs)

        return wrapper

    return decorate


@contextmanager
def set_current_meta(node: Node, pass_name: str = "") -> Iterator[None]:
    """Let new nodes take over this node's metadata, and record it as their source."""
    global current_meta
    if not (should_preserve_node_meta and node.meta):
        yield
        return
    before = current_meta
    try:
        current_meta = node.meta.copy()
        source = NodeSource(node, pass_name, NodeSourceAction.CREATE)
        current_meta["from_node"] = [source]
        yield
    finally:
        current_meta = before


def get_current_meta() -> dict[str, Any]:
    """The metadata that new nodes take over."""
    return current_meta


__all__ = [
    "NodeSource",
    "NodeSourceAction",
    "annotate",
    "annotate_fn",
    "format_stack",
    "get_current_meta",
    "has_preserved_node_meta",
    "preserve_node_meta",
    "set_current_meta",
    "set_stack_trace",
]
