"""Calls as they were before numbers became keywords: ``x.add_(0.1, y)``, ``x.addcdiv_(-lr, a, b)``,
``torch.addmm(beta, x, alpha, a, b)``. PyTorch still takes them, and warns once.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Final

from .._ground.warnings import once
from .arguments import K_BOOL, K_TENSOR, kind_of
from .release import user_level

_OPERANDS: Final = {
    "add": "other",
    "sub": "other",
    "addcmul": "tensor1 tensor2",
    "addcdiv": "tensor1 tensor2",
    "addmm": "mat1 mat2",
    "addbmm": "batch1 batch2",
    "baddbmm": "batch1 batch2",
    "addmv": "mat vec",
    "addr": "vec1 vec2",
}
"""The ops with old forms, and the names of their tensors after the first."""


def names() -> tuple[str, ...]:
    """The ops with old forms."""
    return tuple(_OPERANDS)


def _orders(op: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The old orders of the arguments, for a function and for a method."""
    if op in ("add", "sub"):
        return (("input alpha other",), ("alpha other",))
    a, b = _OPERANDS[op].split()
    if op in ("addcmul", "addcdiv"):
        return ((f"input value {a} {b}",), (f"value {a} {b}",))
    return (
        (f"beta input {a} {b}", f"beta input alpha {a} {b}"),
        (f"beta {a} {b}", f"beta alpha {a} {b}"),
    )


_NUMBERS: Final = ("beta", "alpha", "value")


def rearrange(
    op: str, method: bool, inplace: bool, args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]] | None:
    """The arguments of a call in an old form, rearranged to the present form, after a warning; None
    for any other call.
    """
    given = args[1:] if method else args
    for order in _orders(op)[method]:
        words = order.split()
        places = dict(zip(words, given, strict=False))
        places |= {name: value for name, value in kwargs.items() if name in words[len(given) :]}
        rest = {name: value for name, value in kwargs.items() if name not in places}
        if len(places) != len(words) or len(given) > len(words) or rest.keys() - {"out"}:
            continue
        if all(_fits(name, value) for name, value in places.items()):
            if once("old form"):
                warnings.warn(_message(op + "_" * inplace, words, method), stacklevel=user_level())
            tensors = [value for name, value in places.items() if name not in _NUMBERS]
            numbers = {name: value for name, value in places.items() if name in _NUMBERS}
            return [*args[:method], *tensors], {**numbers, **rest}
    return None


def _fits(name: str, value: Any) -> bool:
    kind = kind_of(value)
    if name in _NUMBERS:
        return kind <= K_BOOL and (kind != K_TENSOR or value.dim() == 0)
    return kind == K_TENSOR or (name == "other" and kind <= K_BOOL)


def _message(name: str, words: list[str], method: bool) -> str:
    out = [] if method else ["Tensor out = None"]
    op = name.rstrip("_")
    tensors = ", ".join(f"Tensor {word}" for word in words if word not in _NUMBERS)
    all_numbers = {"add": ["alpha"], "sub": ["alpha"], "addcmul": ["value"], "addcdiv": ["value"]}
    numbers = [f"Number {word} = 1" for word in all_numbers.get(op, ["beta", "alpha"])]
    old = ", ".join(f"{'Number' if word in _NUMBERS else 'Tensor'} {word}" for word in words)
    old = ", *, ".join([old, *out])
    now = [f"\t{name}({tensors}, *, {', '.join(numbers + out)})"]
    if op in ("addmm", "baddbmm") and not method:
        now.append(f"\t{name}({tensors}, torch.dtype out_dtype, *, {', '.join(numbers + out)})")
    return (
        f"This overload of {name} is deprecated:\n\t{name}({old})\n"
        "Consider using one of the following signatures instead:\n" + "\n".join(now)
    )
