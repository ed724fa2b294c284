"""Small helpers of the layers: sizes given as one number or many, names of types in messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from ..._tensor.tensor import Tensor

__all__ = ["consume_prefix_in_state_dict_if_present"]

_Number = TypeVar("_Number", int, float)


def typename(obj: object) -> str:
    """The name of an object in PyTorch's messages: a tensor's type, else a qualified name.

    Example:
        >>> typename("text"), typename(typename)
        ('str', 'pygrad.nn.modules.utils.typename')
    """
    if isinstance(obj, Tensor):
        return str(obj.type())
    named = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(named, "__module__", "") or ""
    name = str(getattr(named, "__qualname__"))  # noqa: B009
    return name if module in ("", "builtins") else f"{module}.{name}"


def ntuple(value: _Number | Iterable[_Number], count: int) -> tuple[_Number, ...]:
    """Repeats one number ``count`` times; converts an iterable to a tuple.

    Example:
        >>> ntuple(3, 2), ntuple([1, 2], 2)
        ((3, 3), (1, 2))
    """
    return tuple(value) if isinstance(value, Iterable) else (value,) * count


def _ntuple(n: int, name: str = "parse") -> Callable[[Any], tuple[int, ...]]:
    """`ntuple` for a fixed count, as a function of a name. Layers of other libraries import
    these.
    """

    def parse(x: int | Iterable[int]) -> tuple[int, ...]:
        return ntuple(x, n)

    parse.__name__ = name
    return parse


_single = _ntuple(1, "_single")
_pair = _ntuple(2, "_pair")
_triple = _ntuple(3, "_triple")
_quadruple = _ntuple(4, "_quadruple")


def _reverse_repeat_tuple(t: Iterable[Any], n: int) -> tuple[Any, ...]:
    """The items in reverse order, each `n` times.

    Example:
        >>> _reverse_repeat_tuple((1, 2), 2)
        (2, 2, 1, 1)
    """
    return tuple(item for item in reversed(tuple(t)) for _ in range(n))


def _list_with_default(out_size: Any, defaults: list[int]) -> Any:
    """Sizes, with the last sizes of the input in place of None.

    Raises:
        ValueError: the input has no more dimensions than there are sizes.

    Example:
        >>> _list_with_default([None, 3], [1, 2, 4])
        [2, 3]
    """
    if isinstance(out_size, int):
        return out_size
    if len(defaults) <= len(out_size):
        raise ValueError(f"Input dimension should be at least {len(out_size) + 1}")
    own = defaults[-len(out_size) :]
    return [d if size is None else size for size, d in zip(out_size, own, strict=True)]


def _addindent(s_: str, numSpaces: int) -> str:
    """Indent every line of a child's ``repr`` except the first; leave blank lines empty."""
    first, *rest = s_.split("\n")
    return "\n".join([first, *(" " * numSpaces + line if line.strip() else "" for line in rest)])


def consume_prefix_in_state_dict_if_present(state_dict: dict[str, Any], prefix: str) -> None:
    """Strip ``prefix`` from the keys of a state dict, in place, preserving their order.

    Example:
        >>> state = {"module.weight": 1, "bias": 2}
        >>> consume_prefix_in_state_dict_if_present(state, "module.")
        >>> state
        {'bias': 2, 'weight': 1}
    """
    for key in list(state_dict):
        if key.startswith(prefix):
            state_dict[key.removeprefix(prefix)] = state_dict.pop(key)
    metadata: dict[str, Any] = getattr(state_dict, "_metadata", {})
    for key in list(metadata):
        # The root's own entry is "", which no prefix matches; "module" stands for "module.".
        if key and (key == prefix.rstrip(".") or key.startswith(prefix)):
            metadata[key[len(prefix) :]] = metadata.pop(key)
