"""Results do not depend on the layout of a tensor: every op of the table gives the same numbers
and gradients of lazy, strided, offset, transposed and halved operands as of contiguous ones, and
writes through them.

`make test` takes one layout for each sample, in turn; PYGRAD_ALL_LAYOUTS=1 takes all of them.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from helpers import (
    PROPER_ERRORS,
    RANDOM,
    STRIDES_ARE_ITS_ARGUMENT,
    UNINITIALISED,
    arrays,
    assert_same,
    floating,
    leaves,
    leaves_nothing,
)
from samples import Entry, entries, samples
from sampling import Call, X, fill_sample, numbers
from test_gradients import contract
from test_nested import SHAPES
from test_nested import SWEPT as NESTED

import pygrad as torch

pytestmark = pytest.mark.filterwarnings("ignore")

Tensor = Any
ALL = bool(os.environ.get("PYGRAD_ALL_LAYOUTS"))

# ------------------------------------------------------------------ the layouts


def make_strided(x: Tensor) -> Tensor:
    return torch.stack([x, torch.ones_like(x)], -1)[..., 0]


def offset(x: Tensor) -> Tensor:
    return torch.cat([x.flatten()[:1], x.flatten()])[min(x.numel(), 1) :].view(x.shape)


def make_transposed(x: Tensor) -> Tensor:
    return x.mT.contiguous().mT if x.ndim > 1 else make_strided(x)


def conjugate(x: Tensor) -> Tensor:
    return x.conj().resolve_conj().conj()


def negative(x: Tensor) -> Tensor:
    return torch._neg_view(-x)


def half(x: Tensor) -> Tensor:
    return torch.complex(x, -x).real


def half_negative(x: Tensor) -> Tensor:
    return torch.complex(x, -x).conj().imag


LAZY = {"conjugate", "negative", "negative conjugate", "negative half"}
LAYOUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "strided": make_strided,
    "offset": offset,
    "transposed": make_transposed,
    "conjugate": conjugate,
    "negative": negative,
    "negative conjugate": lambda x: conjugate(negative(x)),
    "transposed conjugate": lambda x: conjugate(make_transposed(x)),
    "strided negative": lambda x: negative(make_strided(x)),
    "half": half,
    "negative half": half_negative,
}
"""Differentiable identities, by the layout of their results."""


def takes(layout: str, x: Tensor) -> bool:
    if "conjugate" in layout:
        return bool(x.is_complex())
    if "half" in layout:
        return x.dtype in (torch.float64, torch.float32, torch.float16)
    return "negative" not in layout or x.dtype is not torch.bool


def laid(layout: str, x: Tensor) -> Tensor:
    return LAYOUTS[layout](x) if takes(layout, x) else x.clone()


# ------------------------------------------------------------------ the calls

TELLS_THEM_APART = {
    "is_conj": "asks",
    "is_neg": "asks",
    "_is_view": "a computed conjugate is none",
    "resolve_conj": "gives back what waits for nothing",
    "resolve_neg": "gives back what waits for nothing",
    "conj": "of a conjugate that waits it is a view of another kind",
    "view_as_real": "refuses a conjugate that waits",
    "set_": "takes another's memory as it is",
    "data_ptr": "shows memory",
    "_export": "shows memory",
    "_pin": "shows memory",
    "_elements": "shows memory",
    "view": "reinterprets bits in one sample",
    "view_copy": "reinterprets bits in one sample",
}
"""Ops that see how their argument waits to be computed."""
OF_ITS_MEMORY = {
    **dict.fromkeys(STRIDES_ARE_ITS_ARGUMENT, "its result depends on strides"),
    **dict.fromkeys(RANDOM, "draws in the order of memory"),
    "contiguous": "gives back what is contiguous",
    **dict.fromkeys(["stride", "storage_offset", "is_set_to", "_version"], "asks"),
}
"""Ops that see how their argument lies."""


@dataclass(frozen=True)
class Case:
    """One sample of an op in one kind of numbers."""

    entry: Entry
    sample: Call
    dtype: str
    alone: int = -1
    """The tensor that is laid out otherwise; -1: all that can be."""

    def __str__(self) -> str:
        which = f", tensor {self.alone} alone" if self.alone >= 0 else ""
        return f"{self.entry.id}({self.sample}), {self.dtype}{which}"

    def numbers(self) -> list[Any]:
        found = []
        for salt, what in enumerate(self.sample.tensors(), 1):
            real = numbers(what, "float64" if self.dtype == "complex128" else self.dtype, salt)
            own = what.dtype or what.kind == "parts"
            if self.dtype == "complex128" and not own:
                real = real + 1j * numbers(what, "float64", salt + 20)
            found.append(np.asarray(real).copy())
        return found

    def leaves(self) -> list[Tensor]:
        made = list(map(torch.from_numpy, self.numbers()))
        for x, what in zip(made, self.sample.tensors(), strict=True):
            x.requires_grad_((x.is_complex() or x.is_floating_point()) and not what.constant)
        return made

    def laid(self, layout: str, made: list[Tensor]) -> list[Tensor]:
        return [laid(layout, x) if self.alone in (-1, k) else x.clone() for k, x in enumerate(made)]


def layouts_of(case: Case) -> list[str]:
    given = list(map(torch.from_numpy, case.numbers()))
    chosen = [name for name in LAYOUTS if any(takes(name, x) for x in given)]
    if case.entry.name in TELLS_THEM_APART:
        chosen = [name for name in chosen if not ("conj" in name or "negative" in name)]
    if case.entry.name in OF_ITS_MEMORY:
        chosen = [name for name in chosen if name in LAZY - {"negative half"}]
    return chosen


def dtypes_of(sample: Call) -> Iterator[str]:
    own = [bool(what.dtype) or what.kind == "parts" for what in sample.tensors()]
    yield "float64"
    if not all(own):
        yield from ("complex128", "float16") if ALL else ("complex128",)


def cases(entry: Entry, step: int) -> Iterator[tuple[Case, str]]:
    """All cases of each sample; else one case of each of some samples, by their names."""
    for sample in samples(entry)[:: 1 if ALL else step]:
        count = len(sample.tensors())
        made = [
            (case, layout)
            for dtype in dtypes_of(sample)
            for alone in (-1, *(range(count) if ALL and count > 1 else ()))
            for case in [Case(entry, sample, dtype, alone)]
            for layout in layouts_of(case)
        ]
        if made and not ALL:
            made = [made[zlib.crc32(f"{entry.id}({sample})".encode()) % len(made)]]
        yield from made


def swept(keep: Callable[[Entry], bool]) -> Any:
    chosen = [e for e in entries() if samples(e) and e.name not in UNINITIALISED and keep(e)]
    return pytest.mark.parametrize("entry", chosen, ids=lambda entry: entry.id)


def each(entry: Entry, check: Callable[[Case, str], None], step: int = 1) -> None:
    failures = []
    for case, layout in cases(entry, step):
        try:
            check(case, layout)
        except torch.EngineError:
            raise
        except Exception as error:
            error.add_note(f"{case}, {layout}")
            failures.append(error)
    if failures:
        for error in failures[1:]:
            failures[0].add_note(f"and {type(error).__name__}: {error.__notes__[-1]}")
        raise failures[0]


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the type of its error."""
    torch.manual_seed(0)
    try:
        return call()
    except torch.EngineError:
        raise
    except PROPER_ERRORS as error:
        return type(error)


# ------------------------------------------------------------------ values and gradients


def gradients(result: Any, wanted: list[Tensor]) -> Any:
    found = [t for t in floating(result) if t.requires_grad]
    wanted = [x for x in wanted if x.requires_grad]
    if not found or not wanted:
        return []
    loss = contract(found, 1)
    return outcome(lambda: list(torch.autograd.grad(loss, wanted, materialize_grads=True)))


def assert_equal(got: Any, expected: Any, rtol: float = 1e-12, atol: float = 1e-13) -> bool:
    """Compares two outcomes; errors are equal if their types are. Returns whether they are results.
    linear() rounds halves once or twice, as in PyTorch.
    """
    if any(y.dtype is torch.float16 for y in leaves(expected)):
        rtol = atol = 2e-2
    if isinstance(expected, type) or isinstance(got, type):
        assert got is expected
        return False
    assert_same(got, expected, rtol, atol)
    return True


def given_back(result: Any, made: list[Tensor]) -> list[int]:
    """The places of the arguments that the tensors of a result are."""

    def is_same(x: Tensor, y: Tensor) -> bool:
        flags = (x.is_conj(), x.is_neg()) == (y.is_conj(), y.is_neg())
        return x is y or (flags and x.dtype is y.dtype and bool(x.is_set_to(y)))

    return [next((k for k, x in enumerate(made) if is_same(x, y)), -1) for y in leaves(result)]


def is_view(result: Any) -> list[bool]:
    return [bool(y._is_view()) for y in leaves(result)]


def check_result(case: Case, layout: str) -> None:
    own, others = case.leaves(), case.leaves()
    plain, made = [x.clone() for x in own], case.laid(layout, others)
    if case.entry.mutates:
        plain, made = [x.detach() for x in plain], [x.detach() for x in made]
    args, kwargs = fill_sample(case.sample, plain)
    expected = outcome(lambda: case.entry.function(*args, **kwargs))
    args, kwargs = fill_sample(case.sample, made)
    got = outcome(lambda: case.entry.function(*args, **kwargs))
    if not assert_equal(got, expected):
        return
    if all(what.kind != "parts" for what in case.sample.tensors()):
        assert given_back(got, made) == given_back(expected, plain)
    if layout in LAZY:
        views = zip(is_view(got), is_view(expected), given_back(got, made), strict=True)
        assert all(mine == other for mine, other, at in views if at < 0), "a view, or none"
    if case.entry.mutates:
        assert_equal(made, plain)
    else:
        assert_equal(gradients(got, others), gradients(expected, own), rtol=1e-11, atol=1e-12)


@swept(lambda entry: True)
@leaves_nothing
def test_result_and_gradient_do_not_depend_on_the_layout(entry: Entry) -> None:
    each(entry, check_result, 2)


# ------------------------------------------------------------------ in place


def check_in_place(case: Case, layout: str) -> None:
    """Another view of the same memory shows what was written, and the gradient goes by it."""
    write = getattr(torch.Tensor, case.entry.name + "_", None)
    first = case.sample.args[0] if case.sample.args else None
    if write is None or not isinstance(first, X) or first.kind == "parts":
        return
    outcomes = []
    for chosen in (None, layout):
        made = case.leaves()
        given = [x.clone() for x in made] if chosen is None else case.laid(chosen, made)
        seen = given[0].detach()
        args, kwargs = fill_sample(case.sample, given)
        result = outcome(lambda a=args, k=kwargs: write(*a, **k))
        if not isinstance(result, type):
            assert result is given[0]
            assert seen._version == 1
            np.testing.assert_array_equal(*arrays([seen, result.detach()]))
        outcomes.append((result, [] if isinstance(result, type) else gradients(result, made)))
    (expected, by), (got, gradient) = outcomes
    if assert_equal(got, expected):
        assert_equal(gradient, by, rtol=1e-11, atol=1e-12)


@swept(lambda entry: "inplace" in entry.words)
@leaves_nothing
def test_write_in_place_goes_through_to_what_is_viewed(entry: Entry) -> None:
    each(entry, check_in_place)


# ------------------------------------------------------------------ out=

OUT_NOT_OF_ALL = {"where", "nonzero", "bernoulli"}
"""Ops of which some samples are another overload, which takes no out=."""


def check_out(case: Case, layout: str) -> None:
    plain = [x.detach() for x in case.leaves()]
    args, kwargs = fill_sample(case.sample, plain)
    expected = outcome(lambda: case.entry.function(*args, **kwargs))
    if isinstance(expected, type) or not leaves(expected):
        return
    fresh = [torch.ones_like(y, memory_format=torch.contiguous_format) for y in leaves(expected)]
    made = [laid(layout, y) for y in fresh]
    seen = [y.detach() for y in made]
    out = made[0] if isinstance(expected, torch.Tensor) else tuple(made)
    got = outcome(lambda: case.entry.function(*args, **kwargs, out=out))
    if isinstance(got, type) and case.entry.name in OUT_NOT_OF_ALL:
        return
    assert not isinstance(got, type), got
    assert all(a is b for a, b in zip(leaves(got), made, strict=True))
    assert_equal(seen, leaves(expected))


@swept(lambda entry: "out" in entry.words)
@leaves_nothing
def test_out_goes_through_to_what_is_viewed(entry: Entry) -> None:
    each(entry, check_out)


# ------------------------------------------------------------------ beside sparse tensors


def sparse_forms(x: Tensor) -> Iterator[Callable[[Tensor], Tensor]]:
    """Functions that make sparse tensors of x's shape from values like x's."""
    if x.layout is not torch.strided or not x.ndim or not (x.is_floating_point() or x.is_complex()):
        return
    coo = x.detach().to_sparse()
    places = coo.indices()
    yield lambda lay: torch.sparse_coo_tensor(places, lay(coo.values()), x.shape)
    if x.ndim == 2:
        csr = x.detach().to_sparse_csr()
        at, columns = csr.crow_indices(), csr.col_indices()
        yield lambda lay: torch.sparse_csr_tensor(at, columns, lay(csr.values()), x.shape)


def dense(value: Any) -> Any:
    return [y if y.layout is torch.strided else y.to_dense() for y in leaves(value)]


def check_sparse(case: Case, layout: str) -> None:
    """Checks a case with one tensor sparse, and with all, in each form. Values and dense operands
    have the layout.
    """
    if any(what.kind == "parts" for what in case.sample.tensors()):
        return
    plain = [x.detach() for x in case.leaves()]
    forms = [list(sparse_forms(x)) for x in plain]
    chosen = [{k: form} for k, found in enumerate(forms) for form in found]
    chosen += [{k: found[0] for k, found in enumerate(forms) if found}] if len(plain) > 1 else []
    for sparse in chosen:
        outcomes = []
        for lay in (torch.clone, lambda x: laid(layout, x)):
            made = [
                sparse[k](lay).requires_grad_() if k in sparse else lay(x)
                for k, x in enumerate(plain)
            ]
            args, kwargs = fill_sample(case.sample, made)
            result = outcome(lambda a=args, k=kwargs: case.entry.function(*a, **k))
            if isinstance(result, type):
                outcomes.append(result)
                continue
            shown = outcome(lambda r=result: dense(r))
            by = [] if isinstance(shown, type) else gradients(shown, made)
            outcomes.append([shown, by if isinstance(by, type) else dense(by)])
        expected, got = outcomes
        if assert_error(got, expected):
            continue
        for mine, other in zip(got, expected, strict=True):
            assert_equal(mine, other)


def assert_error(got: Any, expected: Any) -> bool:
    assert isinstance(got, type) is isinstance(expected, type)
    assert not isinstance(got, type) or got is expected
    return isinstance(got, type)


@swept(lambda entry: not entry.mutates and entry.name not in RANDOM)
@leaves_nothing
def test_sparse_tensors_of_such_values_and_beside_such_tensors(entry: Entry) -> None:
    each(entry, check_sparse, 4)


# ------------------------------------------------------------------ nested tensors


def divide(form: str, x: Tensor) -> Any:
    """The first row as an entry, and the others as one."""
    if not x.ndim:
        return x
    if form == "strided":
        return torch.nested.as_nested_tensor([x[:1], x[1:]], layout=torch.strided)
    if form == "entries":
        return torch.nested.as_nested_tensor([x[:1], x[1:]], layout=torch.jagged)
    return torch.nested.nested_tensor_from_jagged(x, torch.tensor([0, 1, len(x)]))


def entries_of(value: Any) -> Any:
    return [part for y in leaves(value) for part in (y.unbind() if y.is_nested else [y])]


def check_nested(case: Case, layout: str) -> None:
    if any(what.kind == "parts" for what in case.sample.tensors()):
        return
    for form in ("strided", "entries", "values"):
        outcomes = []
        for lay in (torch.clone, lambda x: laid(layout, x)):
            own = case.leaves()
            args, kwargs = fill_sample(case.sample, [divide(form, lay(x)) for x in own])
            result = outcome(lambda a=args, k=kwargs: case.entry.function(*a, **k))
            found = result if isinstance(result, type) else entries_of(result)
            outcomes.append((found, [] if isinstance(found, type) else gradients(found, own)))
        (expected, by), (got, gradient) = outcomes
        if assert_equal(got, expected):
            assert_equal(gradient, by)


@pytest.mark.parametrize("entry", list(dict.fromkeys(e for e, _ in NESTED)), ids=lambda e: e.id)
@leaves_nothing
def test_nested_tensors_of_such_values(entry: Entry) -> None:
    each(entry, check_nested, 4)


@pytest.mark.parametrize("layout", [name for name in LAYOUTS if name != "offset"])
@pytest.mark.parametrize("name", SHAPES)
def test_shapes_of_nested_tensors_of_such_values(name: str, layout: str) -> None:
    """Functions see the values of the entries. `offset` is left out: jagged values are whole."""
    function, _ = SHAPES[name]
    x = torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2], [4, 1 - 1j]], dtype=torch.complex128)
    x = x if takes(layout, x) else x.real.clone()
    for form in ("strided", "entries", "values"):
        got, expected = (function(divide(form, y)) for y in (laid(layout, x), x))
        assert_same(entries_of(got), entries_of(expected))
