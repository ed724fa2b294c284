"""The parts of texts of tensors, for objects that print like tensors.

The engine prints tensors by itself (`report/print.c`). These are PyTorch's functions for programs
that print parts of a tensor, or numbers in a tensor's format; both print the same.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from typing import Any, Final

from .._ground.dtypes import float64
from .._table import functions
from .._tensor.functions import _print_options, set_printoptions
from .._tensor.tensor import Tensor

__all__ = ["get_printoptions", "printoptions", "set_printoptions"]


class _PrinterOptions:
    """The options of printing as attributes, which may be set.

    Example:
        >>> PRINT_OPTS.precision, PRINT_OPTS.linewidth
        (4, 80)
    """

    precision: int
    threshold: float
    edgeitems: int
    linewidth: int
    sci_mode: bool | None

    def __getattr__(self, name: str) -> Any:
        if name in _print_options:
            return _print_options[name]
        raise AttributeError(f"no option of printing is called {name}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        set_printoptions(**{"sci_mode": self.sci_mode, name: value})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_print_options})"


PRINT_OPTS: Final = _PrinterOptions()


def get_printoptions() -> dict[str, Any]:
    """The options of printing by name.

    Example:
        >>> get_printoptions()["precision"]
        4
    """
    return dict(_print_options)


@contextlib.contextmanager
def printoptions(**kwargs: Any) -> Iterator[None]:
    """A scope with other options of printing; arguments as `set_printoptions`.

    Example:
        >>> import pygrad
        >>> with printoptions(precision=1):
        ...     print(pygrad.tensor([0.25]))
        tensor([0.2])
    """
    before = get_printoptions()
    set_printoptions(**{"sci_mode": before["sci_mode"], **kwargs})
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_totype(t: Tensor) -> Tensor:
    """A tensor in float64.

    Example:
        >>> import pygrad
        >>> tensor_totype(pygrad.ones(1)).dtype
        torch.float64
    """
    return t.to(float64)


class _Formatter:
    """The form that the numbers of a tensor have in common.

    Attributes:
        int_mode: no number has a fraction.
        sci_mode: they are written with exponents.
        max_width: of the widest finite number that is not 0.

    Example:
        >>> import pygrad
        >>> _Formatter(pygrad.tensor([1e-4, 1.0])).format(0.5)
        '5.0000e-01'
    """

    def __init__(self, tensor: Tensor) -> None:
        self.floating_dtype = tensor.dtype.is_floating_point
        self.int_mode, self.sci_mode, self.max_width = True, False, 1
        values = tensor.detach().resolve_neg().reshape(-1).tolist()
        if not self.floating_dtype:
            self.max_width = max([1, *(len(str(value)) for value in values)])
            return
        values = [value for value in values if value != 0 and math.isfinite(value)]
        if not values:
            return
        sizes = [abs(value) for value in values]
        self.int_mode = all(value == math.floor(value) for value in values)
        low, high = min(sizes), max(sizes)
        wanted = PRINT_OPTS.sci_mode
        exponents = high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4
        self.sci_mode = exponents if wanted is None else wanted
        self.max_width = max(len(self._format_number(value)) for value in values)

    def width(self) -> int:
        """The number of characters of one element."""
        return self.max_width

    def _format_number(self, value: Any) -> str:
        digits = PRINT_OPTS.precision
        if self.sci_mode:
            return f"{value:.{digits}e}"
        if not self.int_mode:
            return f"{value:.{digits}f}"
        return f"{value:.0f}" + "." * math.isfinite(value)

    def format(self, value: Any) -> str:
        """The text of a number, with spaces before it up to the width."""
        shown = self._format_number(value) if self.floating_dtype else f"{value}"
        return shown.rjust(self.max_width)


def _number(value: Any, formatter1: _Formatter, formatter2: _Formatter | None) -> str:
    if formatter2 is None:
        return formatter1.format(value)
    imaginary = (formatter2.format(value.imag) + "j").lstrip()
    sign = "" if imaginary[0] in "+-" else "+"
    return formatter1.format(value.real) + sign + imaginary


def _scalar_str(self: Tensor, formatter1: _Formatter, formatter2: _Formatter | None = None) -> str:
    """The text of a tensor of no dimension."""
    return _number(self.item(), formatter1, formatter2)


def _vector_str(
    self: Tensor,
    indent: int,
    summarize: bool,
    formatter1: _Formatter,
    formatter2: _Formatter | None = None,
) -> str:
    """The text of a vector, in lines of at most the width that the options set."""
    width = formatter1.width() + 2
    if formatter2 is not None:
        width += formatter2.width() + 1
    per_line = max(1, math.floor((PRINT_OPTS.linewidth - indent) / width))
    edge = PRINT_OPTS.edgeitems
    values = self.tolist()
    shown = [_number(value, formatter1, formatter2) for value in _ends(values, summarize)]
    if summarize and not edge:
        shown = ["..."]
    elif summarize and len(values) > 2 * edge:
        shown.insert(edge, " ...")
    lines = [", ".join(shown[i : i + per_line]) for i in range(0, len(shown), per_line)]
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"


def _ends(items: Any, summarize: bool) -> Any:
    """The items that are shown: the first and the last, if all are too many."""
    edge = PRINT_OPTS.edgeitems
    if not summarize or len(items) <= 2 * edge:
        return items
    return [*items[:edge], *items[len(items) - edge :]]


def _tensor_str_with_formatter(
    self: Tensor,
    indent: int,
    summarize: bool,
    formatter1: _Formatter,
    formatter2: _Formatter | None = None,
) -> str:
    """The text of the numbers of a tensor, each in the form of a formatter; the second is of
    imaginary parts.
    """
    if self.dim() == 0:
        return _scalar_str(self, formatter1, formatter2)
    if self.dim() == 1:
        return _vector_str(self, indent, summarize, formatter1, formatter2)
    inner, edge = indent + 1, PRINT_OPTS.edgeitems
    parts = [
        _tensor_str_with_formatter(each, inner, summarize, formatter1, formatter2)
        for each in _ends(list(self), summarize)
    ]
    if summarize and len(self) > 2 * edge:
        parts.insert(edge, "...")
    between = "," + "\n" * (self.dim() - 1) + " " * inner
    return "[" + between.join(parts) + "]"


def _tensor_str(self: Tensor, indent: int) -> str:
    """The text of a tensor's numbers; `indent` is the column where the first line begins.

    Example:
        >>> import pygrad
        >>> _tensor_str(pygrad.tensor([0.0001]), 4)
        '[1.0000e-04]'
    """
    if self.numel() == 0:
        return "[]"
    summarize = self.numel() > PRINT_OPTS.threshold
    whole = self.detach().resolve_neg()
    ends = get_summarized_data(whole) if summarize else whole
    if not whole.is_complex():
        return _tensor_str_with_formatter(whole, indent, summarize, _Formatter(ends))
    forms = _Formatter(ends.real), _Formatter(ends.resolve_conj().imag)
    return _tensor_str_with_formatter(whole.resolve_conj(), indent, summarize, *forms)


def _add_suffixes(
    tensor_str: str, suffixes: Iterable[str], indent: int, force_newline: bool
) -> str:
    """Appends the suffixes and a bracket to a text; a suffix starts a new line if the last has no
    room.

    Example:
        >>> _add_suffixes("tensor([1]", ["dtype=torch.int8"], 7, False)
        'tensor([1], dtype=torch.int8)'
    """
    parts = [tensor_str]
    last = len(tensor_str) - tensor_str.rfind("\n") + 1
    for suffix in suffixes:
        if force_newline or last + len(suffix) + 2 > PRINT_OPTS.linewidth:
            parts.append(",\n" + " " * indent + suffix)
            last, force_newline = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            last += len(suffix) + 2
    return "".join([*parts, ")"])


def get_summarized_data(self: Tensor) -> Tensor:
    """The numbers of a tensor that are shown where all are too many.

    Example:
        >>> import pygrad
        >>> get_summarized_data(pygrad.arange(10))
        tensor([0, 1, 2, 7, 8, 9])
    """
    edge = PRINT_OPTS.edgeitems
    for dim in range(self.dim()):
        n = self.size(dim)
        if n > 2 * edge:
            ends = (self.narrow(dim, 0, edge), self.narrow(dim, n - edge, edge))
            self = functions.SPACES["torch"]["cat"](ends, dim)
    return self


def _str_intern(inp: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor, its numbers as given."""
    shown: Any = Tensor.__repr__
    text: str = shown(inp, tensor_contents=tensor_contents)
    return text


def _str(self: Tensor, *, tensor_contents: str | None = None) -> str:
    """The text of a tensor, its numbers as given."""
    return _str_intern(self, tensor_contents=tensor_contents)
