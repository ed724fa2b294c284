"""The samples of every op as one plain description, and what a case of it comes to in a library.

`describe` writes down calls and the numbers of their tensors, so that Python and JavaScript run
the same (web/rooms/sweep.js is this file's twin). A case is a call in one dtype and one of `MODES`;
its outcome is a list of what came out, or the name of an error.
"""

from __future__ import annotations

import functools
import math
import operator
import re
import struct
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from helpers import UNINITIALISED
from samples import Entry, entries, samples, wider
from sampling import COMPLEX, DTYPES, FLOATS, HALVES, WIDER, Call, Dtype, X, numbers

import pygrad

Description = dict[str, Any]
Leaf = Any
"""(dtype, shape, elements) of a tensor, or a number, a string, None."""
Outcome = list[Leaf] | str | None

MODES = {
    "forward": DTYPES,
    "backward": FLOATS,
    "second order": FLOATS,
    "in-place": DTYPES,
    "view": DTYPES,
}
"""What is done with a call, and in which dtypes."""
WIDER_MODES = ("forward", "backward", "in-place", "view")
"""In which an op's own dtypes, that a description gives it, come after those."""


def dtypes_of(op: Any, mode: str) -> tuple[str, ...]:
    """The dtypes in which an op of a description has cases."""
    return (*MODES[mode], *(op.get("dtypes", ()) if mode in WIDER_MODES else ()))


# ------------------------------------------------------------------ writing calls down


def describe(keep: Callable[[Entry], bool] = lambda _: True) -> Description:
    """All samples, as JSON has it. A tensor is the number of its entry in a list of tensors."""
    tensors: dict[str, tuple[int, Any]] = {}
    ops = []
    for entry in entries():
        found = filter(_is_real, samples(entry)) if keep(entry) else ()
        calls = [_plain_call(sample, tensors) for sample in found]
        if calls:
            facts = {
                "inplace": _in_place_name(entry),
                "mutates": entry.mutates,
                "blank": entry.name in UNINITIALISED,
                "dtypes": list(wider(entry)),
            }
            given = {name: value for name, value in facts.items() if value}
            ops.append({"id": entry.id, **given, "calls": calls})
    return {"tensors": [made for _, made in tensors.values()], "ops": ops}


def _is_real(sample: Call) -> bool:
    return all(what.kind != "parts" for what in sample.tensors())


def _in_place_name(entry: Entry) -> str | None:
    """Where the form is that writes to its first argument."""
    if "inplace" not in entry.words or entry.space not in ("torch", "method"):
        return None
    return ("Tensor." if "method" in entry.words else "") + entry.name + "_"


def _plain_call(sample: Call, tensors: dict[str, tuple[int, Any]]) -> list[Any]:
    salts = iter(range(1, 100))

    def plain(value: Any) -> Any:
        if isinstance(value, X):
            salt = next(salts)
            key = f"{value.shape} {value.kind} {value.dtype} {value.high} {salt}"
            if key not in tensors:
                tensors[key] = (len(tensors), _plain_tensor(value, salt))
            return {"tensor": tensors[key][0]} | ({"constant": True} if value.constant else {})
        if isinstance(value, Dtype):
            return {"dtype": value.name}
        if isinstance(value, float):  # JSON has neither infinities nor 1.0 apart from 1
            return {"float": str(value)}
        if isinstance(value, (list, tuple)):
            return [plain(item) for item in value]
        return value

    return [plain(sample.args), {name: plain(value) for name, value in sample.kwargs.items()}]


def _plain_tensor(what: X, salt: int) -> Any:
    """Its shape and numbers: those of its dtype, or `float`, in steps of 1/1024 that every
    float type has, `int`, and where they are not the numbers of these types `uint8` and `bool`.
    """

    def flat(dtype: str) -> list[Any]:
        return list(map(int, numbers(what, dtype, salt).ravel()))

    if what.dtype and what.dtype not in FLOATS:
        return {"shape": list(what.shape), "dtype": what.dtype, "int": flat(what.dtype)}
    steps = np.round(numbers(what, "float64", salt) * 1024).astype(int).ravel().tolist()
    made = {"shape": list(what.shape), "float": steps}
    if what.dtype:
        return made | {"dtype": what.dtype}
    made["int"] = flat("int64")
    derived = {"uint8": list(map(abs, made["int"])), "bool": [int(v > 0) for v in made["int"]]}
    return made | {kind: flat(kind) for kind in derived if flat(kind) != derived[kind]}


# ------------------------------------------------------------------ running a case


def find(id: str, torch: Any) -> Any:
    """The op as a library offers it; None where it has none of that name."""
    path = id.split(".")
    if path[0] == "_C" and torch is pygrad:
        return pygrad._table.functions.C[path[1]]
    return functools.reduce(lambda found, name: getattr(found, name, None), path, torch)


class Unanswered(Exception):
    """A library has no answer that others are to be compared with."""


def run(
    torch: Any,
    description: Description,
    op: Any,
    call: Any,
    mode: str,
    dtype: str,
    unanswered: str = r"(?!)",
) -> Outcome:
    """What a case gives: a list of `Leaf`, or the name of an error; None if the op has no such
    case.

    Raises:
        Unanswered: for an error whose message has the pattern `unanswered`.
    """
    if mode == "in-place" and not ("inplace" in op and call[0] and "tensor" in _keys(call[0][0])):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = _Case(torch, description["tensors"], dtype, mode).run(op, call)
            return list(_leaves(result, "blank" in op))
        except pygrad.EngineError:
            raise
        except Exception as error:
            if re.search(unanswered, str(error)):
                raise Unanswered(str(error)) from error
            return type(error).__name__.lstrip("_")


def _keys(argument: Any) -> Any:
    return argument if isinstance(argument, dict) else ()


class _Case:
    """One call in one dtype; the tensors that it makes on the way."""

    def __init__(self, torch: Any, tensors: Any, dtype: str, mode: str) -> None:
        self.torch, self.tensors, self.dtype, self.mode = torch, tensors, dtype, mode
        self.grad = mode != "forward" and dtype in (*FLOATS, *WIDER)
        self.leaves: list[Any] = []

    def run(self, op: Any, call: Any) -> Any:
        args, options = (
            self.make_argument(call[0]),
            {k: self.make_argument(v) for k, v in call[1].items()},
        )
        if "mutates" in op or self.mode == "in-place":
            args[0] = args[0].clone()
        self.torch.default_generator.manual_seed(0)
        id = op["inplace"] if self.mode == "in-place" else op["id"]
        result = find(id, self.torch)(*args, **options)
        if not self.grad or "blank" in op:
            return result
        grads = self.gradients(result)
        return grads if self.mode in ("backward", "second order") else [result, grads]

    def gradients(self, result: Any) -> list[Any]:
        """By each leaf, of the sum of the result's squares; in second order once more."""
        grad = self.torch.autograd.grad
        found = [t for t in _flat(result) if is_tensor(t) and t.requires_grad]
        if not found or not self.leaves:
            return []
        again = self.mode == "second order"
        if self.dtype in WIDER:  # of these types there may be no sum
            first = grad(found, self.leaves, [2 * t.detach() for t in found], allow_unused=True)
        else:
            first = grad(_squares(found), self.leaves, create_graph=again, allow_unused=True)
        if not again:
            return [g if g is None or self.mode != "view" else _inner(g) for g in first]
        found = [g for g in first if g is not None and g.requires_grad]
        if not found:
            return []
        return list(grad(_squares(found), self.leaves, allow_unused=True))

    def make_argument(self, value: Any) -> Any:
        """An argument as the library takes it."""
        if isinstance(value, list):
            return [self.make_argument(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "float" in value:
            return float(value["float"])
        if "dtype" in value:
            return getattr(self.torch, value["dtype"])
        return self.tensor(self.tensors[value["tensor"]], value.get("constant", False))

    def tensor(self, what: Any, constant: bool) -> Any:
        array = _elements(what, what.get("dtype", self.dtype))
        if self.mode == "view":
            array = _outer(array)
        leaf = self.torch.from_numpy(array.copy())
        if what.get("dtype", self.dtype) in HALVES:
            leaf = leaf.to(getattr(self.torch, what.get("dtype", self.dtype)))
        if self.grad and not constant and (leaf.is_floating_point() or leaf.is_complex()):
            self.leaves.append(leaf.requires_grad_())
        return _inner(leaf) if self.mode == "view" else leaf


def _elements(what: Any, dtype: str) -> Any:
    if dtype in (*FLOATS, *WIDER):
        array = np.array(what["float"]) / 1024
        if dtype in COMPLEX:
            array = array + 1j * array[::-1]
        dtype = "float64" if dtype in HALVES else dtype
    elif dtype in what:
        array = np.array(what[dtype])
    else:
        array = np.array(what["int"])
        array = np.abs(array) if dtype == "uint8" else array > 0 if dtype == "bool" else array
    return array.astype(dtype).reshape(what["shape"])


def _squares(tensors: list[Any]) -> Any:
    return functools.reduce(operator.add, [(t * t).sum() for t in tensors])


def _outer(array: Any) -> Any:
    """A larger array, of which these are every other element, or the second."""
    if array.ndim == 0:
        return np.stack([np.zeros_like(array), array])
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1] + 1), array.dtype)
    wide[..., 1::2] = array
    return wide


def _inner(tensor: Any) -> Any:
    """That part of such a tensor."""
    return tensor[1] if tuple(tensor.shape) == (2,) else tensor[..., 1::2]


# ------------------------------------------------------------------ what came out


def is_tensor(value: Any) -> bool:
    return hasattr(value, "requires_grad")


def _flat(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in _flat(item)]
    return [value]


def _leaves(result: Any, blank: bool) -> Iterator[Leaf]:
    for value in _flat(result):
        if is_tensor(value):
            plain = value.detach()
            if str(value.dtype).split(".")[1] in (*HALVES, "complex32"):  # without arrays
                plain = plain.cfloat() if value.is_complex() else plain.float()
            array = plain.numpy(force=True).ravel()
            if value.is_complex():
                array = array.view(array.real.dtype)  # the parts, one after the other
            yield str(value.dtype).split(".")[1], list(value.shape), None if blank else array
        elif isinstance(value, (bool, int, float)) or value is None:
            yield value
        else:  # a dtype, a name
            yield str(value).split(".")[-1]


def encode(outcome: Outcome) -> bytes:
    """An outcome as bytes, the same in each language: numbers as float64, NaN in one form."""
    if isinstance(outcome, str):
        return outcome.encode() + b"\n"
    parts = []
    for leaf in outcome:
        if isinstance(leaf, tuple):
            dtype, shape, array = leaf
            parts += [f"{dtype} {shape}\n".encode(), b"" if array is None else array.tobytes()]
        elif isinstance(leaf, (int, float)) and not isinstance(leaf, bool):
            parts.append(struct.pack("<d", math.nan if leaf != leaf else leaf))
        else:
            parts.append(f"{leaf}\n".encode())
    return b"".join(parts)
