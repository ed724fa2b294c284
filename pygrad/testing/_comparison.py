"""Helpers of tests: `assert_close`, with PyTorch's tolerances and messages."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .._boundary.arguments import is_numpy_scalar
from .._ground.dtypes import (
    bfloat16,
    complex32,
    complex64,
    complex128,
    dtype,
    float16,
    float32,
    float64,
    int64,
    strided,
    uint16,
    uint32,
    uint64,
)
from .._table import functions
from .._tensor.creation import data_as_tensor, tensor
from .._tensor.tensor import Tensor
from ..autograd.grad_mode import no_grad

__all__ = ["assert_allclose", "assert_close"]

_TOLERANCES: dict[Any, tuple[float, float]] = {
    float16: (1e-3, 1e-5),
    bfloat16: (1.6e-2, 1e-5),
    float32: (1.3e-6, 1e-5),
    float64: (1e-7, 1e-7),
    complex32: (1e-3, 1e-5),
    complex64: (1.3e-6, 1e-5),
    complex128: (1e-7, 1e-7),
}
"""dtype -> (rtol, atol); any other type must be equal."""
_BARE = {uint16, uint32, uint64}  # these have no common type with other dtypes
_f = functions.SPACES["torch"]

__tracebackhide__ = True
"""pytest shows no frames of this module: a failure ends at the caller's line."""


class _Rules(NamedTuple):
    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_dtype: bool
    check_stride: bool
    check_device: bool
    check_layout: bool

    def tolerances(self, *kinds: Any) -> tuple[float, float]:
        """The given (rtol, atol), or the widest defaults of the kinds."""
        if self.rtol is not None and self.atol is not None:
            return self.rtol, self.atol
        own = [_TOLERANCES.get(kind, (0.0, 0.0)) for kind in kinds]
        return max(rtol for rtol, _ in own), max(atol for _, atol in own)


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raises unless ``|actual - expected| <= atol + rtol * |expected|`` in every element.

    Args:
        actual, expected: tensors, NumPy's arrays, numbers, None, or sequences and mappings of them.
        allow_subclasses: whether tensors of different classes may be compared.
        rtol, atol: both or neither; by default 1e-3 and 1e-5 for float16, 1.6e-2 and 1e-5 for
            bfloat16, 1.3e-6 and 1e-5 for float32, 1e-7 for float64 and Python's floats, those of
            their parts for complex numbers, 0 for all else.
        equal_nan: whether NaN equals NaN.
        check_dtype, check_stride: whether these must agree too.
        check_device, check_layout: whether these must agree; sparse tensors are compared as dense.
        msg: replaces the message, or a function of it.

    Raises:
        AssertionError: they differ; the message says by how much and where.
        ValueError: one tolerance without the other.
        TypeError: the arguments cannot be compared.

    >>> import pygrad
    >>> pygrad.testing.assert_close(pygrad.ones(2) / 3 * 3, pygrad.ones(2))
    """
    rules = _Rules(rtol, atol, equal_nan, check_dtype, check_stride, check_device, check_layout)
    pairs = list(_pairs(actual, expected, ""))
    if (rtol is None) != (atol is None) and any(_has_tolerance(mine) for _, mine, _ in pairs):
        raise _lonely(rtol)
    for place, mine, theirs in pairs:
        if type(mine) is not type(theirs) and not allow_subclasses and isinstance(mine, Tensor):
            raise _incomparable(mine, theirs)
        found = _difference(mine, theirs, rules)
        if found is not None:
            if place:
                found += f"\n\nThe failure occurred for item {place}"
            raise AssertionError(found if msg is None else msg(found) if callable(msg) else msg)


def _has_tolerance(value: Any) -> bool:
    kind = getattr(getattr(value, "dtype", None), "kind", "")  # of what NumPy made
    return isinstance(value, (Tensor, int, float, complex)) or kind in tuple("iufcb")


def _incomparable(mine: Any, theirs: Any) -> TypeError:
    return TypeError(
        f"No comparison pair was able to handle inputs of type {type(mine)} and {type(theirs)}."
    )


def _pairs(mine: Any, theirs: Any, place: str) -> Iterator[tuple[str, Any, Any]]:
    """Pairs the leaves of two structures, with their subscripts, and compares the structures."""
    if _is_sequence(mine) and _is_sequence(theirs):
        if len(mine) != len(theirs):
            where = f"\n\nThe failure occurred for item {place}" if place else ""
            raise AssertionError(
                f"The length of the sequences mismatch: {len(mine)} != {len(theirs)}{where}"
            )
        for k, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            yield from _pairs(a, b, f"{place}[{k}]")
    elif isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        if mine.keys() != theirs.keys():
            missing = sorted(theirs.keys() - mine.keys(), key=str)
            additional = sorted(mine.keys() - theirs.keys(), key=str)
            raise AssertionError(
                "The keys of the mappings do not match:\n"
                f"Missing keys in the actual mapping: {missing}\n"
                f"Additional keys in the actual mapping: {additional}"
            )
        for key in mine:
            yield from _pairs(mine[key], theirs[key], f"{place}[{key!r}]")
    else:
        yield place, mine, theirs


def _is_sequence(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def _difference(mine: Any, theirs: Any, rules: _Rules) -> str | None:
    """Describes the difference of a pair; None if there is none."""
    if mine is None or theirs is None:
        return None if mine is theirs else f"None mismatch: {mine} is not {theirs}"
    given = mine, theirs
    mine, theirs = _number(mine), _number(theirs)
    if type(mine) is type(theirs) and hasattr(mine, "__array_interface__"):
        try:
            mine, theirs = data_as_tensor(mine), data_as_tensor(theirs)
        except TypeError:
            raise _incomparable(*given) from None
    if isinstance(mine, Tensor) and isinstance(theirs, Tensor):
        with no_grad():
            return _tensor_difference(mine.detach(), theirs.detach(), rules)
    numbers = (int, float, complex)
    if isinstance(mine, numbers) and isinstance(theirs, numbers):
        if rules.check_dtype and type(mine) is not type(theirs):
            return f"The (d)types do not match: {type(mine)} != {type(theirs)}."
        floating = not (isinstance(mine, int) and isinstance(theirs, int))
        tolerances = rules.tolerances(float64 if floating else None)
        return _number_difference(mine, theirs, *tolerances, rules.equal_nan)
    raise _incomparable(*given)


def _number(value: Any) -> Any:
    """A scalar of NumPy's as a number, anything else as it is."""
    return value.item() if is_numpy_scalar(value) else value


def _number_difference(
    mine: complex, theirs: complex, rtol: float, atol: float, equal_nan: bool
) -> str | None:
    difference = abs(mine - theirs)
    if mine == theirs or difference <= atol + rtol * abs(theirs) < math.inf:
        return None
    if equal_nan and mine != mine and theirs != theirs:
        return None
    relative = difference / abs(theirs) if theirs else math.inf
    exact = rtol == 0 and atol == 0
    lines = [
        f"Scalars are not {'equal' if exact else 'close'}!\n",
        f"Expected {theirs} but got {mine}.",
        f"Absolute difference: {difference}" + ("" if exact else f" (up to {atol} allowed)"),
        f"Relative difference: {relative}" + ("" if exact else f" (up to {rtol} allowed)"),
    ]
    return "\n".join(lines)


def _elements(x: Tensor) -> Tensor:
    """The elements to compare: the values of a nested tensor, else all elements, as dense."""
    if x.is_nested:
        return x.values()
    return x if x.layout is strided else x.to_dense()


def _tensor_difference(mine: Tensor, theirs: Tensor, rules: _Rules) -> str | None:
    def unlike(name: str, a: Any, b: Any) -> str:
        return f"The values for attribute '{name}' do not match: {a} != {b}."

    if mine.shape != theirs.shape:
        return unlike("shape", mine.shape, theirs.shape)
    if rules.check_layout and mine.layout is not theirs.layout:
        return unlike("layout", mine.layout, theirs.layout)
    if rules.check_device and mine.device != theirs.device:
        return unlike("device", mine.device, theirs.device)
    if rules.check_dtype and mine.dtype is not theirs.dtype:
        return unlike("dtype", mine.dtype, theirs.dtype)
    if rules.check_stride and mine.stride() != theirs.stride():
        return unlike("stride()", mine.stride(), theirs.stride())
    mine, theirs = map(_elements, (mine, theirs))
    if mine.is_meta or theirs.is_meta:  # one of them has no elements
        return None
    rtol, atol = rules.tolerances(mine.dtype, theirs.dtype)
    if mine.dtype is not theirs.dtype:
        kinds = (int64 if each.dtype in _BARE else each.dtype for each in (mine, theirs))
        kind: dtype = _f["promote_types"](*kinds)
        mine, theirs = mine.to(kind), theirs.to(kind)
    close = _f["isclose"](mine, theirs, rtol=rtol, atol=atol, equal_nan=rules.equal_nan)
    if bool(close.all()):
        return None
    if not mine.ndim:
        return _number_difference(mine.item(), theirs.item(), rtol, atol, rules.equal_nan)
    return _worst(mine, theirs, close, rtol, atol)


def _worst(mine: Tensor, theirs: Tensor, close: Tensor, rtol: float, atol: float) -> str:
    """The number of elements that differ, and the place of the greatest difference."""
    exact = rtol == 0 and atol == 0
    if not mine.dtype._inexact:
        mine, theirs = mine.to(int64), theirs.to(int64)
    difference = (mine - theirs).abs()
    difference = difference.masked_fill(close, 0)
    relative = (difference / theirs.abs()).masked_fill(close, 0)
    wrong, count = close.numel() - int(close.sum()), close.numel()

    def greatest(name: str, values: Tensor, allowed: float) -> str:
        at = values.argmax()
        value = values.flatten()[at].item()
        place = tuple(int(k) for k in _f["unravel_index"](at, tuple(values.shape)))
        limit = "" if exact else f" (up to {allowed} allowed)"
        return f"Greatest {name} difference: {value} at index {place}{limit}"

    return "\n".join(
        [
            f"Tensor-likes are not {'equal' if exact else 'close'}!\n",
            f"Mismatched elements: {wrong} / {count} ({wrong / count:.1%})",
            greatest("absolute", difference, atol),
            greatest("relative", relative, rtol),
        ]
    )


def default_tolerances(
    *inputs: Tensor | dtype, dtype_precisions: dict[Any, tuple[float, float]] | None = None
) -> tuple[float, float]:
    """(rtol, atol) for tensors of these types: the widest of each.

    Raises:
        TypeError: neither a tensor nor a dtype.

    >>> import pygrad
    >>> default_tolerances(pygrad.float32, pygrad.int64)
    (1.3e-06, 1e-05)
    """
    kinds = []
    for each in inputs:
        kind = each.dtype if isinstance(each, Tensor) else each
        if not isinstance(kind, dtype):
            raise TypeError(
                f"Expected a torch.Tensor or a torch.dtype, but got {type(each)} instead."
            )
        kinds.append((dtype_precisions or _TOLERANCES).get(kind, (0.0, 0.0)))
    return max(rtol for rtol, _ in kinds), max(atol for _, atol in kinds)


def get_tolerances(
    *inputs: Tensor | dtype, rtol: float | None, atol: float | None, id: tuple[Any, ...] = ()
) -> tuple[float, float]:
    """The given (rtol, atol), or the default.

    Raises:
        ValueError: one without the other.
    """
    if (rtol is None) != (atol is None):
        raise _lonely(rtol)
    return default_tolerances(*inputs) if rtol is None or atol is None else (rtol, atol)


def _lonely(rtol: float | None) -> ValueError:
    missing = "rtol" if rtol is None else "atol"
    return ValueError(
        f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}."
    )


_OLD_TOLERANCES: dict[Any, tuple[float, float]] = {
    float16: (1e-3, 1e-3),
    float32: (1e-4, 1e-5),
    float64: (1e-5, 1e-8),
}


def assert_allclose(
    actual: Any,
    expected: Any,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = True,
    msg: str = "",
) -> None:
    """The older name of `assert_close`, with wider tolerances, and with NaN equal to NaN. Converts
    its arguments to tensors; dtypes may differ.

    Raises:
        AssertionError: they differ.

    >>> import pygrad, warnings
    >>> warnings.simplefilter("ignore", FutureWarning)
    >>> pygrad.testing.assert_allclose([1.0, 2.0], pygrad.tensor([1.0, 2.00001]))
    """
    warnings.warn(
        "`torch.testing.assert_allclose()` is deprecated since 1.12 and will be removed in a "
        "future release. Please use `torch.testing.assert_close()` instead. You can find detailed "
        "upgrade instructions in https://github.com/pytorch/pytorch/issues/61844.",
        FutureWarning,
        stacklevel=2,
    )
    if not isinstance(actual, Tensor):
        actual = tensor(actual)
    if not isinstance(expected, Tensor):
        expected = tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = default_tolerances(actual, expected, dtype_precisions=_OLD_TOLERANCES)
    assert_close(
        actual,
        expected,
        rtol=rtol,
        atol=atol,
        equal_nan=equal_nan,
        check_dtype=False,
        msg=msg or None,
    )
