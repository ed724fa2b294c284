"""Calls as they were before numbers became keywords: ``x.add_(0.1, y)``, ``x.addcdiv_(-lr, a, b)``,
``torch.addmm(beta, x, alpha, a, b)``. PyTorch still takes them, and warns once.
"""

from __future__ import annotations

import functools
import re
import warnings
from collections.abc import Sequence
from typing import Any, Final

from .._ground.warnings import once
from .arguments import K_BOOL, K_TENSOR, kind_of
from .release import user_level
from .table import rows

_FORM: Final = re.compile(
    r"(\w+)\(\S+ self, (Tensor\S* \w+(?:, Tensor \w+)*), \*, (Scalar \w+=1(?:, Scalar \w+=1)*)\) .*"
)


@functools.cache
def _operands() -> dict[str, tuple[list[str], list[str]]]:
    """The ops with old forms: the names of their tensors after the first, and of their numbers.
    `subtract` is younger than the old forms.
    """
    found = {}
    for words, schema in rows:
        form = _FORM.fullmatch(schema)
        if form and words >= {"method", "inplace"} and form[1] != "subtract":
            tensors, numbers = (re.findall(r" (\w+)", form[k].replace(", ", ",")) for k in (2, 3))
            found[form[1]] = tensors, numbers
    return found


def names() -> tuple[str, ...]:
    """The ops with old forms."""
    return tuple(_operands())


def _orders(op: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The old orders of the arguments, for a function and for a method."""
    names, numbers = _operands()[op]
    tensors = " ".join(names)
    if len(numbers) == 1:
        return (f"input {numbers[0]} {tensors}",), (f"{numbers[0]} {tensors}",)
    return (
        (f"beta input {tensors}", f"beta input alpha {tensors}"),
        (f"beta {tensors}", f"beta alpha {tensors}"),
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
    numbers = [f"Number {word} = 1" for word in _operands()[op][1]]
    old = ", ".join(f"{'Number' if word in _NUMBERS else 'Tensor'} {word}" for word in words)
    old = ", *, ".join([old, *out])
    now = [f"\t{name}({tensors}, *, {', '.join(numbers + out)})"]
    if op in ("addmm", "baddbmm") and not method:
        now.append(f"\t{name}({tensors}, torch.dtype out_dtype, *, {', '.join(numbers + out)})")
    return (
        f"This overload of {name} is deprecated:\n\t{name}({old})\n"
        "Consider using one of the following signatures instead:\n" + "\n".join(now)
    )
