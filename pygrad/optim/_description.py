"""The description of an optimizer: what Python's class says, and JavaScript's is made from.

A class has ``_checks``, pairs of an expression over the options and PyTorch's message where it is
false; and ``_state``, for each entry of a parameter's state how it begins. Both are text, which
``wasm_core/fronts/optimizers.py`` writes for the JavaScript front as well. Names and order of the
formula's lists and numbers are those of its row in ``wasm_core/ops/optim/optim.def``.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from .._boundary.calls import ROWS
from .._table import functions
from .._tensor import namespace as pygrad
from .._tensor.tensor import Tensor

Check: TypeAlias = tuple[str, str]
Options: TypeAlias = Mapping[str, Any]

# ------------------------------------------------------------------ checks

LR: Final[Check] = ("lr >= 0.0", "Invalid learning rate: {lr}")
ONE_LR: Final[Check] = ("elements(lr) == 1", "Tensor lr must be 1-element")
EPS: Final[Check] = ("eps >= 0.0", "Invalid epsilon value: {eps}")
WEIGHT_DECAY: Final[Check] = ("weight_decay >= 0.0", "Invalid weight_decay value: {weight_decay}")
MOMENTUM: Final[Check] = ("momentum >= 0.0", "Invalid momentum value: {momentum}")
BETAS: Final[tuple[Check, ...]] = (
    ("0.0 <= betas[0] < 1.0", "Invalid beta parameter at index 0: {betas[0]}"),
    ("0.0 <= betas[1] < 1.0", "Invalid beta parameter at index 1: {betas[1]}"),
)
ADAPTIVE: Final = (ONE_LR, LR, EPS, *BETAS, WEIGHT_DECAY)
"""The checks of Adam's variants."""

_FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {
    "elements": lambda value: value.numel() if isinstance(value, Tensor) else 1,
    "is_tensor": lambda value: isinstance(value, Tensor),
    "is_float": lambda value: isinstance(value, float),
}


@functools.cache
def _compiled(expression: str) -> Any:
    return compile(expression, f"<check {expression}>", "eval")


def check_options(checks: tuple[Check, ...], options: Options) -> None:
    """Raise PyTorch's ``ValueError`` for the first check that the options do not pass."""
    for expression, message in checks:
        if not eval(_compiled(expression), {**_FUNCTIONS, **options}):
            raise ValueError(message.format(**options))


def check_parameters(checks: tuple[Check, ...], groups: list[dict[str, Any]]) -> None:
    """Raise PyTorch's ``ValueError`` for the first check that a ``parameter`` does not pass."""
    for expression, message in checks:
        code = _compiled(expression)
        found = {
            (i, k): parameter
            for i, group in enumerate(groups)
            for k, parameter in enumerate(group["params"])
            if not eval(code, {"parameter": parameter})
        }
        if found:
            places = [list(place) for place in found]
            raise ValueError(message.format(places=places, parameter=next(iter(found.values()))))


# ------------------------------------------------------------------ states


def new_step(value: float = 0.0) -> Tensor:
    """A counter of steps: a float32 tensor without dimensions, as in PyTorch's state dicts."""
    return pygrad.tensor(value, dtype=pygrad.float32)


def _full(parameter: Tensor, value: float) -> Tensor:
    number = complex(value, value) if parameter.is_complex() else value
    return pygrad.full_like(parameter, number)


def _zeros_over(parameter: Tensor, dim: int) -> Tensor | None:
    if parameter.dim() < 2:
        return None
    sizes = list(parameter.shape)
    sizes[dim] = 1
    return parameter.new_zeros(sizes)


_MAKERS: Final[dict[str, Callable[[Tensor, float], Tensor | None]]] = {
    "counter": lambda p, value: new_step(value),
    "zeros": lambda p, value: pygrad.zeros_like(p),
    "full": _full,
    "rows": lambda p, value: _zeros_over(p, -1),
    "columns": lambda p, value: _zeros_over(p, -2),
    "vector": lambda p, value: pygrad.zeros_like(p) if p.dim() < 2 else None,
    "first": lambda p, value: None,
}
"""How an entry of the state begins; None: it has no such entry. A ``first`` one is filled by the
parameter's first step.
"""


class Entry(NamedTuple):
    """An entry of a parameter's state: ``maker(value) if condition`` in a description."""

    maker: str
    value: str
    condition: str

    def is_kept(self, options: Options) -> bool:
        """Whether the options ask for the entry."""
        return not self.condition or bool(options[self.condition])

    def begin(self, parameter: Tensor, options: Options) -> Tensor | None:
        """The entry at a parameter's first step."""
        value = options.get(self.value, self.value or 0)
        return _MAKERS[self.maker](parameter, float(value))


def entries(text: str) -> dict[str, Entry]:
    """The entries that a description says."""
    found = re.findall(r"(\w+): (\w+)(?:\((\w+)\))?(?: if (\w+))?", text)
    return {key: Entry(*rest) for key, *rest in found}


# ------------------------------------------------------------------ formulas

PARTS: Final = {
    "beta1": ("betas", 0),
    "beta2": ("betas", 1),
    "eps1": ("eps", 0),
    "eps2": ("eps", 1),
    "etaminus": ("etas", 0),
    "etaplus": ("etas", 1),
    "step_size_min": ("step_sizes", 0),
    "step_size_max": ("step_sizes", 1),
}
"""Numbers of formulas that are one of a pair among a group's options."""
_CONVERTERS: Final[dict[str, Callable[[Any], Any]]] = {
    "float": lambda value: float("nan") if value is None else float(value),
    "bool": bool,
}


class Formula(NamedTuple):
    """What a row says of its lists and numbers."""

    name: str
    row: int
    lists: tuple[str, ...]
    """The lists after parameters and gradients."""
    states: tuple[str, ...]
    """The entries of a parameter's state that the lists hold."""
    options: tuple[str, ...]
    kinds: tuple[str, ...]
    converters: tuple[Callable[[Any], Any], ...]
    is_plain: bool
    """Whether all numbers are floats or bools."""

    def read(self, group: Mapping[str, Any]) -> tuple[Any, ...]:
        """The numbers of the formula for a group's options."""
        return tuple(
            convert(_option(group, name))
            for convert, name in zip(self.converters, self.options, strict=True)
        )


def _option(group: Mapping[str, Any], name: str) -> Any:
    key, place = PARTS.get(name, (name, None))
    if name == "is_first_step":
        return False
    return group[name] if name in group or place is None else group[key][place]


@functools.cache
def formula(name: str) -> Formula:
    """The formula of a row."""
    schema = next(op.schemas[0] for op in functions.TABLE if op.name == name)
    lists, _, numbers = schema[schema.index("(") + 1 : schema.index(") ->")].partition(", *, ")
    kinds, options = zip(*(each.split() for each in numbers.split(", ")), strict=True)
    names = tuple(each.split()[1] for each in lists.split(", ")[2:])
    return Formula(
        name,
        ROWS[name],
        names,
        tuple(re.sub(r"^state_|(_list|s)$", "", each) for each in names),
        options,
        kinds,
        tuple(_CONVERTERS.get(kind, lambda value: value) for kind in kinds),
        set(kinds) <= set(_CONVERTERS),
    )


def chosen(rows: str, options: Options) -> str:
    """The row of ``one if option else other``, or the only one."""
    row, _, rest = rows.partition(" if ")
    option, _, other = rest.partition(" else ")
    return row if not rest or options[option] else other


def getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Reads the entries from a dict, always as a tuple."""
    return itemgetter(*names) if len(names) != 1 else lambda own: (own[names[0]],)
