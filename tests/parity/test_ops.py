"""The sample sweep against PyTorch: values, dtypes, strides, names of nodes, gradients, errors."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from helpers import UNINITIALISED, sweep_entries
from oracle import (
    Outcome,
    assert_equal,
    assert_same_outcome,
    describe,
    function,
    is_tensor,
    layout,
    leaves,
    normalize_message,
    outcome,
    torch,
)
from samples import Entry, entries
from sampling import DTYPES, Call, X, build
from test_ops import doubled, emptied, scalar

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

NO_DERIVATIVE = r"derivative for \S+ is not implemented|modified by an inplace operation"
"""PyTorch differentiates less than pygrad does, and its vander writes over what it saved."""

APART = {
    "gradient nn.functional.embedding": "PyTorch's second derivative drops scale_grad_by_freq",
    "gradient nn.functional.pad": "one node here, in PyTorch a chain of copies into slices",
    **dict.fromkeys(
        (f"gradient {each.id}" for each in entries() if each.name.endswith("_copy")),
        "a view's node and a copy's, in PyTorch one",
    ),
    "gradient norm_except_dim": "torch.norm in Python and at::norm have other nodes",
    "gradient _convolution": "PyTorch adds a dimension to an image of one, and drops it again",
    "transposed conv_tbc": "PyTorch raises for a layout, by mistake",
    "gradient renorm": "nodes of what it is composed of, in PyTorch one",
    "gradient native_group_norm": "nodes of what it is composed of, in PyTorch one",
    "scalar native_group_norm": "PyTorch looks at the weight first",
    "transposed native_group_norm": "PyTorch takes contiguous memory alone",
    "transposed renorm": "PyTorch's result is contiguous",
    "scalar cov": "one observation: 0 / 0, or what rounding leaves of the first 0",
    "doubled linalg.svd": "the signs of singular vectors are anybody's choice",
    **dict.fromkeys(
        (f"emptied fft.{name}" for name in "fft ifft rfft irfft hfft ihfft".split()),
        "lines of some length, but none of them: MKL, which others do without, refuses that",
    ),
    "scalar ops.aten.unfold_backward": "PyTorch reads memory beyond the gradient",
    "unit ops.aten.unfold_backward": "PyTorch reads memory beyond the gradient",
    "emptied nn.functional.multi_margin_loss": "PyTorch returns uninitialised memory",
    "emptied nn.functional.multilabel_margin_loss": "PyTorch returns uninitialised memory",
    "emptied native_batch_norm": "PyTorch checks nothing and reads out of bounds",
    "scalar native_batch_norm": "PyTorch checks nothing and reads out of bounds",
    "doubled native_batch_norm": "PyTorch checks nothing and reads out of bounds",
    "emptied Tensor.set_": "the storage grows, and shows what lay there",
    "scalar Tensor.set_": "the storage grows, but not PyTorch's where it is NumPy's",
    "unit Tensor.set_": "the storage grows, but not PyTorch's where it is NumPy's",
    "unit segment_reduce": "PyTorch reads what lies behind the data",
    "unit _segment_reduce": "PyTorch reads what lies behind the data",
    "scalar _chunk_cat": "PyTorch breaks down",
    "emptied _unsafe_masked_index": "PyTorch's shape is not the one that indices give",
    "emptied pixel_unshuffle": "PyTorch returns the input's shape",
    "uint8 affine_grid_generator": "what is below zero is no byte",
    "transposed take_along_dim": "PyTorch raises for a layout, by mistake",
    "bool _neg_view": "PyTorch makes a view that nothing can read",
    "float32 linalg.eig": "computed in double here, and so nearer",
    "transposed angle": "PyTorch's angles of complex numbers are contiguous",
    "gradient Tensor.chalf": "PyTorch has no loop for the gradient",
    "transposed isin": "PyTorch raises for a layout, by mistake",
}
"""Test and op -> why pygrad and PyTorch differ for good."""


OF_FREE_SIGNS = {"linalg.eigh", "svd", "svd_lowrank", "pca_lowrank"}
"""Ops whose results have signs that are anybody's choice: test_linalg and test_composed compare the
rest.
"""

COMPOSED = set(
    "linalg.lu lu_unpack linalg.lu_solve lu_solve triangular_solve linalg.lstsq linalg.cond"
    " linalg.matrix_exp matrix_exp linalg.householder_product orgqr ormqr cholesky_inverse"
    " nuclear_norm frobenius_norm nn.functional.max_unpool1d nn.functional.max_unpool2d"
    " nn.functional.max_unpool3d nn.functional.affine_grid"
    " affine_grid_generator nn.functional.grid_sample"
    " grid_sampler grid_sampler_2d grid_sampler_3d".split()
)
"""Ops that are one node in PyTorch, or composed of others than here: the nodes, the strides and
whether a result is a view are those of what they are composed of.
"""


def is_compared(entry: Entry) -> bool:
    return function(entry, torch) is not None and entry.id not in OF_FREE_SIGNS


def call(
    entry: Entry, library: Any, sample: Call, dtype: str = "float64", grad: bool = False
) -> Any:
    """Arguments and a thunk that runs the op on them."""

    def make(array: Any) -> Any:
        if array.size == 0:  # NumPy gives these strides of 0
            return library.zeros(array.shape, dtype=getattr(library, str(array.dtype)))
        made = library.from_numpy(array.copy())
        return made.requires_grad_(True) if grad and made.is_floating_point() else made

    args, kwargs = build(sample, dtype, make, library)
    library.default_generator.manual_seed(0)
    first = args[0] if args else None
    if entry.mutates:
        args = [args[0].clone(), *args[1:]]
    result = function(entry, library)(*args, **kwargs)
    return first, args, kwargs, result


def tensors(values: Any) -> list[Any]:
    return [value for value in leaves(values) if is_tensor(value)]


@sweep_entries(is_compared)
def test_result(entry: Entry, sample: Call) -> None:
    mine = outcome(lambda: call(entry, pygrad, sample)[3])
    theirs = outcome(lambda: call(entry, torch, sample)[3])
    if entry.name in UNINITIALISED:
        assert [describe(t) for t in mine.values] == [describe(t) for t in theirs.values]
        return
    assert_same_outcome(mine, theirs)
    for a, b in zip(mine.values, theirs.values, strict=True):
        if is_tensor(a) and entry.id not in COMPOSED:
            assert layout(a) == layout(b)
            assert a._is_view() == b._is_view()


@sweep_entries(is_compared)
def test_gradient_and_node(entry: Entry, sample: Call) -> None:
    if entry.name in UNINITIALISED or f"gradient {entry.id}" in APART:
        return

    def run(library: Any) -> Any:
        _, args, kwargs, result = call(entry, library, sample, grad=True)
        found = [t for t in tensors(result) if t.requires_grad]
        wanted = [t for t in tensors([args, kwargs]) if t.requires_grad and t.is_leaf]
        nodes = [t.grad_fn.name() if t.grad_fn is not None else None for t in tensors(result)]
        if entry.id in COMPOSED:
            nodes = []
        if not found or not wanted:
            return nodes
        total = sum((t * t).sum() for t in found)
        first = library.autograd.grad(total, wanted, create_graph=True, allow_unused=True)
        again = [g for g in first if g is not None and g.requires_grad]
        if not again:
            return nodes, first
        total = sum((g * g).sum() for g in again)
        return nodes, first, library.autograd.grad(total, wanted, allow_unused=True)

    mine, theirs = outcome(lambda: run(pygrad)), outcome(lambda: run(torch))
    if not mine.error and re.search(NO_DERIVATIVE, theirs.message):
        return  # test_gradients.py compares with differences
    assert_same_outcome(mine, theirs, rtol=1e-5, atol=1e-8)


@sweep_entries(is_compared)
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtype(entry: Entry, sample: Call, dtype: str) -> None:
    if entry.name in UNINITIALISED or f"{dtype} {entry.id}" in APART:
        return
    mine = outcome(lambda: call(entry, pygrad, sample, dtype)[3])
    theirs = outcome(lambda: call(entry, torch, sample, dtype)[3])
    single = any(is_tensor(value) and value.dtype == torch.float32 for value in theirs.values)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if single else {}
    assert mine.error == theirs.error, (
        normalize_message(mine.message),
        normalize_message(theirs.message),
    )
    if not mine.error:
        assert_same_outcome(mine, theirs, **tolerance)


def unit(what: X) -> X:
    return replace(what, shape=tuple(1 for _ in what.shape))


@sweep_entries(is_compared)
@pytest.mark.parametrize("change", [emptied, scalar, unit, doubled])
def test_other_shape(entry: Entry, sample: Call, change: Any) -> None:
    if entry.name in UNINITIALISED or f"{change.__name__} {entry.id}" in APART:
        return
    changed = sample.map(change)
    mine = outcome(lambda: call(entry, pygrad, changed)[3])
    theirs = outcome(lambda: call(entry, torch, changed)[3])
    assert mine.error == theirs.error, (
        normalize_message(mine.message),
        normalize_message(theirs.message),
    )
    if not mine.error:
        assert_same_outcome(mine, theirs)


@sweep_entries(lambda entry: is_compared(entry) and not entry.mutates)
def test_strides_of_a_transposed_input(entry: Entry, sample: Call) -> None:
    if entry.name in UNINITIALISED or f"transposed {entry.id}" in APART:
        return

    def run(library: Any) -> Any:
        def make(array: Any) -> Any:
            turned = library.from_numpy(np.ascontiguousarray(array.T))
            return turned.permute(*reversed(range(array.ndim))) if array.ndim else turned

        args, kwargs = build(sample, "float64", make, library)
        library.default_generator.manual_seed(0)
        return function(entry, library)(*args, **kwargs)

    mine, theirs = outcome(lambda: run(pygrad)), outcome(lambda: run(torch))
    assert mine.error == theirs.error, (
        normalize_message(mine.message),
        normalize_message(theirs.message),
    )
    for a, b in zip(mine.values, theirs.values, strict=True):
        assert_equal(a, b)
        if is_tensor(a) and entry.id not in COMPOSED:
            assert layout(a) == layout(b)


# ------------------------------------------------------------------ out=

PLACES = ["float64", "float32", "int64", "int32", "bool"]

LENIENT = {
    "conj_physical": "it also puts results of what Python composes in their places",
    "lerp": "a number as weight",
    "clamp": "numbers as bounds",
    "clip": "numbers as bounds",
    "clamp_min": "a number as bound",
    "clamp_max": "a number as bound",
    "where": "PyTorch's has no numbers beside out=",
    "matrix_power": "PyTorch's takes what the power 0 gives",
    "linalg.matrix_power": "PyTorch's takes what the power 0 gives",
    "nansum": "PyTorch's has no kernel for integers",
    "nanmean": "PyTorch's has no kernel for integers, nor for two dtypes",
    **dict.fromkeys(["sum", "prod", "median", "nanmedian", "var", "std"], "PyTorch's needs a dim"),
    "remainder": "PyTorch's of a number has no out=",
    "normal": "PyTorch's has the shape of out=",
    "linspace": "PyTorch's gives a bool if there is one",
    "nonzero": "PyTorch's has no out= beside as_tuple=True",
    "linalg.lstsq": "PyTorch's fails an assertion for another dtype of the singular values",
    **dict.fromkeys(
        ["split_copy", "split_with_sizes_copy", "unbind_copy"], "PyTorch's does not resize"
    ),
}
"""Ops that take, or do not take, another dtype where PyTorch's does not, or does."""


def has_out(entry: Entry) -> bool:
    return (
        "out" in entry.words
        and is_compared(entry)
        and not entry.mutates
        and entry.id not in LENIENT
    )


@sweep_entries(has_out)
@pytest.mark.parametrize("dtype", ["float64", "int64"])
def test_other_dtypes_are_taken_where_pytorch_takes_them(
    entry: Entry, sample: Call, dtype: str
) -> None:
    found = outcome(lambda: call(entry, torch, sample, dtype)[3])
    if found.error or not all(map(is_tensor, found.values)):
        pytest.skip("there is no result to put anywhere")
    kinds = [str(value.dtype).split(".")[-1] for value in found.values]

    def run(t: Any, places: list[str]) -> Any:
        def make(array: Any) -> Any:
            return t.from_numpy(array.copy()) if array.size else t.zeros(array.shape)

        args, kwargs = build(sample, dtype, make, t)
        out = [t.empty(0, dtype=getattr(t, name)) for name in places]
        one = len(found.values) == 1
        return function(entry, t)(*args, **kwargs, out=out[0] if one else out)

    for i, other in product(range(len(kinds)), PLACES):
        places = [*kinds[:i], other, *kinds[i + 1 :]]
        mine, theirs = (outcome(lambda t=t, p=places: run(t, p)) for t in (pygrad, torch))
        assert dtypes_of(mine) == dtypes_of(theirs), places


def dtypes_of(found: Outcome) -> Any:
    """The dtypes, or whether it is refused."""
    return bool(found.error) or [str(v.dtype).split(".")[-1] for v in leaves(found.values)]
