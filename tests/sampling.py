"""What samples are made of: tensors to be, calls, and the calls that a schema suggests.

A sample is a call whose tensors are descriptions (`X`), so that one sample can be built in any
dtype and layout, here or in PyTorch. The calls themselves are in `samples.py`.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

import pygrad

Array = np.ndarray[Any, Any]

FLOATS = ("float64", "float32")
DTYPES = (*FLOATS, "int64", "int32", "int16", "int8", "uint8", "bool")
HALVES, COMPLEX = ("float16", "bfloat16"), ("complex128", "complex64")
WIDER = (*HALVES, *COMPLEX)
"""Dtypes of some ops' samples alone: see `wider` in samples.py."""


@dataclass(frozen=True)
class X:
    """A tensor to be made: its shape, what numbers it holds, its dtype if the op dictates one."""

    shape: tuple[int, ...] = (2, 3)
    kind: str = "real"
    dtype: str | None = None
    high: int = 0
    constant: bool = False  # an op has no derivative by it


@dataclass(frozen=True)
class Dtype:
    """A dtype argument."""

    name: str


@dataclass(frozen=True)
class Call:
    """The arguments of one call."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        named = [f"{name}={_show(value)}" for name, value in self.kwargs.items()]
        return ",".join([_show(value) for value in self.args] + named)

    def map(self, change: Callable[[X], Any]) -> Call:
        """The call with each tensor replaced by what `change` makes of it."""

        def convert(value: Any) -> Any:
            if isinstance(value, X):
                return change(value)
            if isinstance(value, (list, tuple)):
                return type(value)(convert(item) for item in value)
            return value

        return Call(
            tuple(map(convert, self.args)),
            {name: convert(value) for name, value in self.kwargs.items()},
        )

    def tensors(self) -> list[X]:
        """The tensors among the arguments, in order."""
        found: list[X] = []
        self.map(found.append)
        return found


def _show(value: Any) -> str:
    if isinstance(value, X):
        return "x".join(map(str, value.shape)) or "scalar"
    if isinstance(value, Dtype):
        return value.name
    if isinstance(value, (list, tuple)):
        return "[" + " ".join(map(_show, value)) + "]"
    return str(value)


def call(*args: Any, **kwargs: Any) -> Call:
    """A sample."""
    return Call(args, kwargs)


def x(*shape: int, kind: str = "real") -> X:
    """Numbers of the dtype under test."""
    return X(shape, kind)


def constant(*shape: int, kind: str = "real") -> X:
    """Numbers by which the op has no derivative: targets, weights of classes, running
    statistics.
    """
    return X(shape, kind, constant=True)


def parts(*shape: int) -> X:
    """Complex numbers: real ones of this shape, of which the call gets the complex tensor that has
    their last dimension, of size 2, for its parts. So whatever holds for real tensors, of their
    gradients, tangents, batches and bytes, is tested of complex ones too.
    """
    return X((*shape, 2), "parts")


def index(high: int, *shape: int) -> X:
    """Indices in [0, high)."""
    return X(shape, "index", "int64", high)


def permutation(high: int, *shape: int) -> X:
    """Distinct indices in [0, high), along the last dimension."""
    return X(shape, "permutation", "int64", high)


def mask(*shape: int) -> X:
    """A mask."""
    return X(shape, "bool", "bool")


def checkered(*shape: int) -> X:
    """A mask that leaves something along every dimension of two or more."""
    return X(shape, "checkered", "bool")


RANGES = {
    "real": (-2, 2),
    "parts": (-2, 2),
    "positive": (0.2, 2),
    "unit": (-0.9, 0.9),
    "probability": (0.1, 0.9),
    "above_one": (1.1, 3),
}
"""Where the elements lie, by kind. Uniform draws keep clear of kinks and ties with certainty
enough.
"""


def numbers(what: X, dtype: str = "float64", salt: int = 0) -> Array:
    """The elements of a sample tensor; equal arguments give equal elements."""
    rng = np.random.default_rng([salt, zlib.crc32(what.kind.encode()), *what.shape])
    made: Any
    if what.kind in RANGES:
        made = _in_dtype(
            rng.uniform(*RANGES[what.kind], what.shape), what.kind, what.dtype or dtype
        )
    elif what.kind == "index":
        made = rng.integers(0, max(what.high, 1), what.shape)
    elif what.kind == "permutation":
        made = np.zeros(what.shape) + rng.permutation(what.high)[: what.shape[-1]]
    elif what.kind == "bool":
        made = rng.random(what.shape) > 0.5
    elif what.kind == "checkered":
        made = np.indices(what.shape).sum(0) % 2 == 0
    elif what.kind == "sign":
        made = np.where(rng.random(what.shape) > 0.5, 1.0, -1.0)
    elif what.kind == "sorted":
        made = np.sort(rng.uniform(-2, 2, what.shape), axis=-1)
    elif what.kind == "distribution":
        made = rng.uniform(0.1, 0.9, what.shape)
        made = made / made.sum(-1, keepdims=True)
    elif what.kind == "definite":  # a symmetric positive definite matrix
        made = rng.uniform(-1, 1, what.shape)
        made = made @ np.swapaxes(made, -1, -2) + np.eye(what.shape[-1])
    elif what.kind == "places":  # the pivots of a matrix whose rows stay where they are
        made = np.zeros(what.shape) + np.arange(1, what.shape[-1] + 1)
    elif what.kind == "halves":  # lengths that add up to `high`
        made = np.zeros(what.shape) + what.high / max(what.shape[-1], 1)
    elif what.kind == "bounds":  # where parts of `high` end
        made = np.zeros(what.shape) + [0, *[what.high // 2] * (what.shape[-1] - 2), what.high]
    elif what.kind == "sizes":  # lengths of sequences that fit into `high`
        made = rng.integers(1, what.high + 1, what.shape)
    else:
        raise ValueError(what.kind)
    return np.asarray(made).astype(what.dtype or dtype)


def _in_dtype(made: Array, kind: str, dtype: str) -> Array:
    """Numbers worth having in an integer type too."""
    if dtype.startswith("float"):
        return made
    whole = np.round(made * 4) if kind == "real" else np.ceil(np.abs(made))
    return np.abs(whole) if dtype == "uint8" else whole > 0 if dtype == "bool" else whole


Make = Callable[[Array], Any]


def complex_of_parts(tensor: Any, what: X, library: Any) -> Any:
    """The complex tensor of such parts, a view if that can be; another tensor itself."""
    if what.kind != "parts" or not tensor.is_floating_point():
        return tensor
    try:
        return library.view_as_complex(tensor)
    except RuntimeError:
        return library.complex(*tensor.unbind(-1))


def fill_sample(sample: Call, tensors: Iterable[Any], library: Any = pygrad) -> Any:
    """The arguments and keywords of a sample with these tensors in place of its own, in order."""
    rest = iter(tensors)
    made = sample.map(lambda what: complex_of_parts(next(rest), what, library))

    def resolve_dtype(value: Any) -> Any:
        return getattr(library, value.name) if isinstance(value, Dtype) else value

    return [resolve_dtype(v) for v in made.args], {
        k: resolve_dtype(v) for k, v in made.kwargs.items()
    }


def build(
    sample: Call, dtype: str = "float64", make: Make | None = None, torch: Any = pygrad
) -> Any:
    """The arguments and keywords of a sample, its tensors made by `make` (contiguous ones by
    default).
    """
    make = make or (lambda array: torch.from_numpy(array.copy()))
    arrays = (numbers(what, dtype, salt) for salt, what in enumerate(sample.tensors(), 1))
    return fill_sample(sample, map(make, arrays), torch)


# ------------------------------------------------------------------ what a schema suggests

_ARGUMENT = re.compile(r"(?P<type>\S+) (?P<name>\w+)(?:=(?P<default>.*))?")

SUGGESTED: dict[tuple[str, str] | str, tuple[Any, ...]] = {
    "Tensor": (X(),),
    "Tensor|Scalar": (X((3,)), 1.5, 2),
    "Tensor[]": ([X(), X()], [X()]),
    "Scalar": (1.5,),
    "float": (0.7,),
    "bool": (True,),
    ("Tensor", "other"): (X(), X((3,))),
    ("int", "dim"): (0, -1),
    ("int[1]", "dim"): (1, [0, 1]),
    ("int", "dim0"): (0,),
    ("int", "dim1"): (1,),
    ("int", "axis0"): (0,),
    ("int", "axis1"): (-1,),
    ("int", "diagonal"): (1, -1),
    ("int", "offset"): (1,),
    ("Scalar", "correction"): (0, 2),
    ("ScalarType", "dtype"): (Dtype("float64"),),
}
"""What to pass: by type and name, else by type. Where the argument is required the first is always
taken for the other calls; an optional argument is passed once with each."""

NOT_ABOUT_VALUES = {
    "layout",
    "device",
    "pin_memory",
    "memory_format",
    "non_blocking",
    "copy",
    "generator",
    "inplace",
    "_stacklevel",
}
"""Optional arguments that suggest no call of their own."""


def parse(schema: str) -> Iterator[tuple[str, str, bool]]:
    """(type, name, required) of each argument, `?` dropped from the types."""
    body = schema[schema.index("(") + 1 : schema.rindex(") ->")]
    for part in re.split(r", (?![^\[]*\])", body) if body else []:
        if part == "*":
            continue
        match = _ARGUMENT.fullmatch(part)
        assert match, schema
        yield match["type"].replace("?", ""), match["name"], match["default"] is None


def derive(schema: str, kind: str = "real") -> list[Call]:
    """One call with what is required, and one more for each other suggestion; none if one is
    missing.
    """
    required: list[tuple[Any, ...]] = []
    keywords: list[dict[str, Any]] = []
    for type_, name, needed in parse(schema):
        options = SUGGESTED.get((type_, name), SUGGESTED.get(type_, ()))
        if needed:
            required.append(options)
        elif name not in NOT_ABOUT_VALUES and type_ != "Tensor":
            keywords += [{name: option} for option in options]
    if () in required:
        return []
    base = tuple(options[0] for options in required)
    calls = [Call(base)]
    for k, options in enumerate(required):
        calls += [Call((*base[:k], option, *base[k + 1 :])) for option in options[1:]]
    calls += [Call(base, chosen) for chosen in keywords]
    return [each.map(lambda what: replace(what, kind=kind)) for each in calls]
