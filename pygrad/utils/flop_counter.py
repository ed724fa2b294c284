"""Floating point operations, counted by a dispatch mode.

Example:
    >>> import pygrad as torch
    >>> from pygrad.utils.flop_counter import FlopCounterMode
    >>> with FlopCounterMode(display=False) as counter:
    ...     y = torch.ones(2, 3) @ torch.ones(3, 4)
    >>> counter.get_total_flops()
    48
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, Final

from .. import ops
from .._tensor.tensor import Tensor
from ._python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

_aten = ops.aten
flop_registry: Final[dict[Any, Callable[..., int]]] = {}
"""The formulas by packet of an op: functions of shapes, or of arguments and result."""


def register_flop_formula(
    targets: Any, get_raw: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Registers the number of operations of some ops: a function of the shapes of the arguments
    and, as ``out_shape``, of the result. With `get_raw` it gets the tensors, and ``out_val``.
    """

    def register(formula: Callable[..., int]) -> Callable[..., int]:
        for each in targets if isinstance(targets, (list, tuple)) else (targets,):
            flop_registry[each] = formula if get_raw else _shape_wrapper(formula)
        return formula

    return register


def _shape(value: Any) -> Any:
    if isinstance(value, Tensor):
        return tuple(value.shape)
    return type(value)(map(_shape, value)) if type(value) in (list, tuple) else value


def _shape_wrapper(formula: Callable[..., int]) -> Callable[..., int]:
    def wrapper(*args: Any, out_val: Any = None, **kwargs: Any) -> int:
        named = {name: _shape(value) for name, value in kwargs.items()}
        return formula(*_shape(list(args)), out_shape=_shape(out_val), **named)

    return wrapper


@register_flop_formula(_aten.mm)
def _mm(a: Sequence[int], b: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * a[0] * a[1] * b[1]


@register_flop_formula(_aten.addmm)
def _addmm(_: Any, a: Sequence[int], b: Sequence[int], **__: Any) -> int:
    return _mm(a, b)


@register_flop_formula(_aten.bmm)
def _bmm(a: Sequence[int], b: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * math.prod(a) * b[2]


@register_flop_formula(_aten.baddbmm)
def _baddbmm(_: Any, a: Sequence[int], b: Sequence[int], **__: Any) -> int:
    return _bmm(a, b)


@register_flop_formula(_aten.convolution)
def _convolution(
    x: Sequence[int],
    w: Sequence[int],
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    *_: Any,
    out_shape: Sequence[int],
    **__: Any,
) -> int:
    places = x[2:] if transposed else out_shape[2:]
    return 2 * x[0] * math.prod(places) * math.prod(w)


@register_flop_formula(_aten.convolution_backward)
def _convolution_backward(
    g: Sequence[int],
    x: Sequence[int],
    w: Sequence[int],
    _bias: Any,
    _stride: Any,
    _padding: Any,
    _dilation: Any,
    transposed: bool,
    _output_padding: Any,
    _groups: Any,
    mask: Sequence[bool],
    **_: Any,
) -> int:
    """Counts the gradient by the weight as if there were one group, as PyTorch does."""
    small, channels = (x, g[1]) if transposed else (g, x[1])
    of_input = 2 * g[0] * math.prod(small[2:]) * math.prod(w)
    of_weight = 2 * channels * math.prod(w[2:]) * math.prod(small)
    return mask[0] * of_input + mask[1] * of_weight


class FlopCounterMode(TorchDispatchMode):
    """A scope that counts the operations of matrix products and convolutions, by module.

    Args:
        mods: ignored, since modules are found as they run. depth: the depth of the table.
            display: whether to print the table at the end. custom_mapping: formulas for more ops.
    """

    def __init__(
        self,
        mods: Any = None,
        depth: int = 2,
        display: bool = True,
        custom_mapping: dict[Any, Any] | None = None,
    ) -> None:
        super().__init__()
        self.depth, self.display = depth, display
        self.flop_counts: dict[str, dict[Any, int]] = defaultdict(lambda: defaultdict(int))
        self.flop_registry = {
            **flop_registry,
            **{
                op: formula if getattr(formula, "_get_raw", False) else _shape_wrapper(formula)
                for op, formula in (custom_mapping or {}).items()
            },
        }
        self._modules = ModuleTracker()

    def get_total_flops(self) -> int:
        """The total number of operations."""
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self) -> dict[str, dict[Any, int]]:
        """The counts by module name ("Global" for the total) and op."""
        return {name: dict(counts) for name, counts in self.flop_counts.items()}

    def get_table(self, depth: int | None = None) -> str:
        """The counts as a table, with modules indented below their parents."""
        most, total = self.depth if depth is None else depth, self.get_total_flops()
        lines = [f"{'Module':<40} {'FLOP':>14} {'% Total':>8}"]
        for name in sorted(self.flop_counts, key=lambda n: (n != "Global", n)):
            level = 0 if name == "Global" else name.count(".") + 1
            if level > most:
                continue
            for op, count in [(None, sum(self.flop_counts[name].values()))] + list(
                self.flop_counts[name].items()
            ):
                shown = "  " * level + (name if op is None else f" - {op}")
                lines.append(f"{shown:<40} {count:>14} {100 * count / max(total, 1):>7.2f}%")
        return "\n".join(lines)

    def __enter__(self) -> FlopCounterMode:
        self.flop_counts.clear()
        self._modules.__enter__()
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self._modules.__exit__(*error)
        if self.display:
            print(self.get_table())

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        formula = self.flop_registry.get(func.overloadpacket)
        if formula is not None:
            count = formula(*args, **(kwargs or {}), out_val=made)
            for module in {*self._modules.parents, "Global"}:
                self.flop_counts[module][func.overloadpacket] += count
        return made
