"""rearrange: a tensor's dimensions by names, reordered, split and joined.

``"a (b c) -> (a c) b"``: names in one pair of brackets form one dimension, the last name the
fastest; ``1`` or ``()`` is a dimension of one element, ``...`` any number of dimensions.
"""

from __future__ import annotations

import keyword
import math
import warnings
from collections.abc import Sequence
from typing import Any, TypeAlias

from .._table import functions
from .._tensor.tensor import Tensor

_DOTS = "…"
_BARE = _DOTS, _DOTS  # outside brackets
Group: TypeAlias = "tuple[str, ...]"


class DimensionBindError(Exception):
    """Sizes do not fit a pattern."""


def _check_axis_name(name: str) -> str:
    reason = ""
    if not name.isidentifier():
        reason = "not a valid python identifier"
    elif name.startswith("_") or name.endswith("_"):
        reason = "axis name should should not start or end with underscore"
    elif keyword.iskeyword(name):
        warnings.warn(
            f"It is discouraged to use axes names that are keywords: {name}",
            RuntimeWarning,
            stacklevel=6,
        )
    if reason:
        raise ValueError(f"Invalid axis identifier: {name}\n{reason}")
    return name


def _words(side: str) -> list[str]:
    """Names, dots and brackets of one side of a pattern."""
    words = [""]
    for char in side:
        if char in "()":
            words += [char, ""]
        elif char == " ":
            words.append("")
        elif char.isalnum() or char in ("_", _DOTS):
            words[-1] += char
        else:
            raise ValueError(f"Unknown character '{char}'")
    return [word for word in words if word]


def _parse_side(side: str) -> list[Group]:
    """The dimensions of one side, each a group of names."""
    if "." in side:
        if "..." not in side:
            raise ValueError("Expression may contain dots only inside ellipsis (...)")
        if side.count("...") != 1 or side.count(".") != 3:
            raise ValueError(
                "Expression may contain dots only inside ellipsis (...); only one ellipsis for "
                "tensor "
            )
    groups: list[Group] = []
    inside: list[str] | None = None
    seen: set[str] = set()
    for word in _words(side.replace("...", _DOTS)):
        if word == "(":
            if inside is not None:
                raise ValueError(
                    "Axis composition is one-level (brackets inside brackets not allowed)"
                )
            inside = []
        elif word == ")":
            if inside is None:
                raise ValueError("Brackets are not balanced")
            groups.append(tuple(inside))
            inside = None
        elif word in seen:
            raise ValueError(f"Indexing expression contains duplicate dimension '{word}'")
        else:
            if word.isdecimal() and int(word) != 1:
                raise ValueError("rearrange only supports unnamed axes of size 1")
            found = [] if word == "1" else [word if word == _DOTS else _check_axis_name(word)]
            seen.update(found)
            if inside is None:
                groups.append(_BARE if word == _DOTS else tuple(found))
            else:
                inside += found
    if inside is not None:
        raise ValueError(f"Imbalanced parentheses in expression: '{side}'")
    return groups


def _is_ellipsis_in_brackets(side: str) -> bool:
    before = side.partition("...")[0]
    return before != side and before.count("(") > before.count(")")


def _sides(pattern: str, sizes: dict[str, int]) -> tuple[list[Group], list[Group]]:
    parts = pattern.split("->")
    if len(parts) != 2:
        raise ValueError("Pattern must contain a single '->' separator")
    left, right = map(_parse_side, parts)
    if _is_ellipsis_in_brackets(parts[0]):
        raise ValueError(f"Ellipsis is parenthesis in the left side is not allowed: {pattern}")
    names, wanted = ({name for group in side for name in group} for side in (left, right))
    if _DOTS in wanted - names:
        raise ValueError(f"Ellipsis found in right side, but not left side of a pattern {pattern}")
    for size in sizes.values():
        if not isinstance(size, int):
            raise TypeError(f"rearrange axis lengths must be integers, got: {type(size)}")
    if names != wanted:
        raise ValueError(
            "Identifiers only on one side of rearrange expression (should be on both): "
            f"{names ^ wanted}"
        )
    if unknown := sizes.keys() - names:
        raise ValueError(f"Identifiers not found in rearrange expression: {unknown}")
    return left, right


def _spread(groups: list[Group], dots: Group) -> list[Group]:
    """The groups with names for the dimensions of the ellipsis."""
    spread: list[Group] = []
    for group in groups:
        if group == _BARE:
            spread += [(name,) for name in dots]
        else:
            spread.append(tuple(n for name in group for n in (dots if name == _DOTS else (name,))))
    return spread


def _bind(groups: list[Group], shape: Sequence[int], sizes: dict[str, int]) -> dict[str, int]:
    """The size of each name, from the tensor's sizes and the given ones."""
    bound, first = dict(sizes), 0
    for group, size in zip(groups, shape, strict=True):
        numbers = {name: f"d{first + k}" for k, name in enumerate(group)}
        first += max(len(group), 1)
        known = math.prod(sizes.get(name, 1) for name in group)
        open_ = [name for name in group if name not in sizes]
        if len(open_) > 1:
            raise DimensionBindError(
                "cannot infer the sizes of two dimensions at once "
                f"{numbers[open_[0]]} and {numbers[open_[1]]}"
            )
        if open_:
            if size % known:
                shown = tuple(sizes.get(name, "?") for name in group)
                raise DimensionBindError(
                    f"inferred dimension does not evenly fit into larger dimension: {size} vs "
                    f"{shown}"
                )
            bound[open_[0]] = size // known
        elif group and known != size:
            pack = "(" + ", ".join(numbers.values()) + ("," if len(group) == 1 else "") + ")"
            raise DimensionBindError(
                f"Dimension sizes to do not match ({size} != {known}) when matching dimension "
                f"pack {pack}"
            )
    return bound


def rearrange(
    tensor: Tensor | list[Tensor] | tuple[Tensor, ...], pattern: str, **axes_lengths: int
) -> Tensor:
    """Reorders, splits and joins a tensor's dimensions according to a pattern.

    Args:
        tensor: a tensor, or several, which are stacked first.
        pattern: the names of the present and of the wanted dimensions: ``"a b -> b a"``.
        axes_lengths: sizes of names in brackets that do not follow from the tensor's.

    Raises:
        ValueError: the pattern is invalid, or does not fit the number of dimensions.
        TypeError: a size is no integer.
        DimensionBindError: sizes do not fit.

    Example:
        >>> import pygrad
        >>> x = pygrad.arange(6).reshape(2, 3)
        >>> pygrad.func.rearrange(x, "a (b c) -> c (b a)", b=3)
        tensor([[0, 3, 1, 4, 2, 5]])
    """
    whole: Any = (
        tensor if isinstance(tensor, Tensor) else functions.SPACES["torch"]["stack"](tensor)
    )
    left, right = _sides(pattern, axes_lengths)
    count, some = len(left), _BARE in left
    if some and count - 1 > whole.ndim:
        raise ValueError(
            f"Number of dimensions in pattern ({count - 1}) must be less than or equal to the "
            f"number of dimensions in the tensor ({whole.ndim})"
        )
    if not some and count != whole.ndim:
        raise ValueError(
            f"Number of dimensions in pattern ({count}) must be equal to the number of dimensions "
            f"in the tensor ({whole.ndim})"
        )
    dots = tuple(f"{_DOTS}{k}" for k in range(whole.ndim - count + 1 if some else 0))
    left, right = _spread(left, dots), _spread(right, dots)
    bound = _bind(left, whole.shape, axes_lengths)
    if unnamed := [place for place, group in enumerate(left) if not group]:
        whole = whole.sum(unnamed)
    names = [name for group in left for name in group]
    whole = whole.reshape([bound[name] for name in names])
    whole = whole.permute([names.index(name) for group in right for name in group])
    result: Tensor = whole.reshape([math.prod(bound[n] for n in group) for group in right])
    return result
