"""The graph as objects: nodes, and what is done about tensors that were saved and then mutated."""

from __future__ import annotations

from typing import Any

from .. import _call, _engine, _ops

_C = _ops.C
_GRAD_FN = _engine.layout["grad_fn"]
_META = _engine.layout["meta"]


class Node:
    """One recorded operation. Compare with ``is`` through ``==``: two objects of one node are
    equal.
    """

    __slots__ = ("__weakref__", "_address")

    def __init__(self, address: int) -> None:
        self._address = address

    def __del__(self) -> None:
        _engine.released.append(self._address)

    def name(self) -> str:
        """The node's name, such as 'MulBackward0'."""
        return str(_C["_node_name"](self._address))

    @property
    def next_functions(self) -> tuple[tuple[Node | None, int], ...]:
        """The nodes of the inputs, each with the number of the output that was used."""
        flat = _C["_node_next"](self._address)
        return tuple((_wrap(flat[i]), flat[i + 1]) for i in range(0, len(flat), 2))

    @property
    def variable(self) -> Any:
        """Of an AccumulateGrad node: the leaf."""
        found = _C["_node_variable"](self._address)
        if found is None:
            raise AttributeError(f"'{self.name()}' object has no attribute 'variable'")
        return _call.known(found)

    def _sequence_nr(self) -> int:
        return int(_C["_node_sequence"](self._address))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_saved_"):
            fields = _C["_node_fields"](self._address).partition("|")[0].split()
            if name[7:] in fields:
                return _C["_node_saved"](self._address, fields.index(name[7:]))
        raise AttributeError(f"'{self.name()}' object has no attribute '{name}'")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and other._address == self._address

    def __hash__(self) -> int:
        return hash(self._address)

    def __repr__(self) -> str:
        return f"<{self.name().rpartition(':')[2]} object at {self._address:#x}>"


_nodes: Any = None


def _wrap(address: int) -> Node | None:
    """The object of a node, the same one while it lives; takes over the reference that came with
    the address.
    """
    global _nodes
    if not address:
        return None
    if _nodes is None:
        import weakref

        _nodes = weakref.WeakValueDictionary()
    found: Node | None = _nodes.get(address)
    if found is not None:
        _engine.released.append(address)
        return found
    _nodes[address] = node = Node(address)
    return node


def node_of(tensor: Any) -> Node | None:
    """The grad_fn of a tensor."""
    h = tensor._h
    if not _engine.unsigned[(h + _GRAD_FN) >> 2] and not _engine.unsigned[(h + _META) >> 2]:
        return None
    return _wrap(_C["_node_of"](tensor))


def allow_mutation_on_saved_tensors() -> bool:
    """Always True: tensors saved for backward are snapshots, so mutating them is safe.

    Nothing needs to be switched on. The dialect of PyTorch, where this is a context manager, is
    `pygrad.torch`.

    Example:
        >>> import pygrad
        >>> pygrad.autograd.graph.allow_mutation_on_saved_tensors()
        True
    """
    return True


class set_saved_tensor_mode:
    """What happens to a saved tensor that was mutated: "snapshot" (the default) or "check".

    "snapshot" gives gradients as if nothing had been mutated. "check" is PyTorch's rule: backward
    raises a RuntimeError. Takes effect at once for tensors saved from then on; as a context
    manager it ends with the scope.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(2, requires_grad=True)
        >>> with pygrad.autograd.graph.set_saved_tensor_mode("check"):
        ...     a = x * 1
        ...     y = a * a
        ...     _ = a.add_(1)
        >>> y.sum().backward()
        Traceback (most recent call last):
        ...
        RuntimeError: one of the variables needed for gradient computation has been modified by an
            inplace operation: ...
    """

    def __init__(self, mode: str) -> None:
        if mode not in ("snapshot", "check"):
            raise ValueError(f"the mode of saved tensors is 'snapshot' or 'check', not {mode!r}")
        self.mode = mode
        self._before = _C["_set_saved_check"](mode == "check")

    def __enter__(self) -> set_saved_tensor_mode:
        return self

    def __exit__(self, *_: Any) -> None:
        _C["_set_saved_check"](self._before)


def increment_version(tensor: Any) -> None:
    """Adds one to the version of a tensor, or of each of several: it was mutated in a way the
    engine did not see.
    """
    for each in (tensor,) if isinstance(tensor, _call._tensor_type) else tensor:
        _C["_bump_version"](each)
