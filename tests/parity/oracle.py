"""Running one thing in both libraries and comparing what came of it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from samples import Entry

import pygrad

torch = pytest.importorskip(
    "torch", reason="PyTorch, which these tests compare with, is not installed"
)


@dataclass
class Outcome:
    """What a call gave: values, or an error."""

    values: list[Any] = field(default_factory=list)
    error: str = ""
    message: str = ""


def leaves(value: Any) -> list[Any]:
    """Tensors and numbers of a result, in order."""
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return [value]


def is_tensor(value: Any) -> bool:
    return isinstance(value, (pygrad.Tensor, torch.Tensor))


def function(entry: Entry, library: Any) -> Any:
    """The op as the library offers it to users; None where it has none of that name."""
    path = entry.id.split(".")
    if path[0] == "_C":
        return None
    found = library
    for name in path:
        found = getattr(found, name, None)
    return found


def outcome(call: Callable[[], Any]) -> Outcome:
    """The result of a call, or the type and text of its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Outcome(values=leaves(call()))
        except pygrad.EngineError:
            raise
        except Exception as error:
            kind = type(error).__name__
            return Outcome(
                error={"_LinAlgError": "LinAlgError"}.get(kind, kind), message=str(error)
            )


def leaf(t: Any, *values: float) -> Any:
    """A float64 vector that requires grad."""
    return t.tensor(values, dtype=t.float64, requires_grad=True)


def result_or_error(call: Callable[[], Any]) -> Any:
    """The result, or the error in words."""
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def warnings_of(call: Callable[[], Any]) -> list[tuple[str, str]]:
    """The warnings of a call, without the source line that PyTorch appends."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(w.category.__name__, str(w.message).split(" (Triggered")[0]) for w in caught]


def normalize_message(message: str) -> str:
    """The first line of a message, with addresses masked."""
    return re.sub(r"0x[0-9a-f]+", "0x", message.split("\n")[0].strip())


def describe(tensor: Any) -> tuple[Any, ...]:
    """All of a tensor but its elements."""
    return (
        tuple(tensor.shape),
        str(tensor.dtype),
        tensor.requires_grad,
        tensor.grad_fn.name() if tensor.grad_fn is not None else None,
    )


def layout(tensor: Any) -> tuple[Any, ...]:
    """Strides where they mean something, and the offset."""
    kept = [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n > 1]
    return (kept if tensor.numel() else [], tensor.storage_offset() if tensor.numel() else 0)


def array(tensor: Any) -> np.ndarray[Any, Any]:
    if str(tensor.dtype) in ("torch.bfloat16", "torch.complex32"):  # NumPy has neither
        tensor = tensor.float() if tensor.is_floating_point() else tensor.cfloat()
    return np.array(tensor.detach().numpy(force=True))


def assert_equal(mine: Any, theirs: Any, rtol: float = 1e-6, atol: float = 1e-9) -> None:
    """Equal values: tensors element by element, anything else by its text."""
    if is_tensor(mine) or is_tensor(theirs):
        assert is_tensor(mine) == is_tensor(theirs), (mine, theirs)
        assert str(mine.dtype) == str(theirs.dtype)
        assert tuple(mine.shape) == tuple(theirs.shape)
        np.testing.assert_allclose(array(mine), array(theirs), rtol=rtol, atol=atol)
    elif isinstance(theirs, float):
        np.testing.assert_allclose(mine, theirs, rtol=rtol, atol=atol)
    else:
        assert str(mine).replace("pygrad", "torch") == str(theirs)


def assert_same_outcome(mine: Outcome, theirs: Outcome, **tolerance: float) -> None:
    """Equal values, or the same error in the same words."""
    assert (mine.error, normalize_message(mine.message)) == (
        theirs.error,
        normalize_message(theirs.message),
    )
    assert len(mine.values) == len(theirs.values)
    for a, b in zip(mine.values, theirs.values, strict=True):
        assert_equal(a, b, **tolerance)


def both(script: Callable[[Any], Any], **tolerance: float) -> None:
    """Runs a script with each library as `torch` and compares what it returns or raises."""
    pygrad.manual_seed(0)
    mine = outcome(lambda: script(pygrad))
    torch.manual_seed(0)
    assert_same_outcome(mine, outcome(lambda: script(torch)), **tolerance)


class Scripts(dict[str, Callable[[Any], Any]]):
    """Programs by name, each a function of the library that it runs in."""

    def add(self, script: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """A decorator."""
        self[script.__name__] = script
        return script
