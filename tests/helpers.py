"""Running samples and comparing what comes out; shared by the sweeps."""

from __future__ import annotations

import functools
import gc
import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from samples import POLYNOMIALS, Entry, entries, samples
from sampling import Array, Call

import pygrad

PROPER_ERRORS = (
    RuntimeError,
    TypeError,
    ValueError,
    IndexError,
    NotImplementedError,
    AssertionError,
)
"""What bad input may raise; `no_breakdown` sorts out the RuntimeError that is none."""

Test = Callable[..., None]

STRIDES_ARE_ITS_ARGUMENT = {"view", "view_as", "as_strided", "as_strided_", "as_strided_scatter"}
STRIDES_ARE_ITS_ARGUMENT |= {"as_strided_copy", "view_copy", "view_as_complex"}
STRIDES_ARE_ITS_ARGUMENT |= {"_is_view", "set_", "is_contiguous", "is_set_to", "squeeze_"}
"""Ops whose result or whose failure depends on the layout of what they are given."""

WITHOUT_HISTORY = {
    **dict.fromkeys(
        "zeros_like ones_like full_like rand_like randn_like randint_like Tensor.new_zeros"
        " Tensor.new_ones Tensor.new_full".split(),
        "it looks at the sizes alone",
    ),
    **dict.fromkeys(["detach", "detach_"], "cuts the graph on purpose"),
    **dict.fromkeys(
        "histc histogram histogramdd special.modified_bessel_i0 special.modified_bessel_i1"
        " special.modified_bessel_k0 special.modified_bessel_k1 special.scaled_modified_bessel_k0"
        " special.scaled_modified_bessel_k1 special.spherical_bessel_j0 special.airy_ai"
        " special.bessel_j0 special.bessel_j1 special.bessel_y0 special.bessel_y1".split()
        + POLYNOMIALS.split(),
        "PyTorch has no derivative",
    ),
    **dict.fromkeys(["masked.argmax", "masked.argmin"], "places, in the type of the input"),
    "_C._elements": "a service of the page, which shows them",
}
"""Ops that give floating tensors that do not depend on their inputs: all others do."""

DEPENDENT = {
    **dict.fromkeys(
        ["native_layer_norm", "native_batch_norm", "_batch_norm_with_update", "lstsq"], slice(1)
    ),
    **dict.fromkeys(["linalg.lu", "lu_unpack"], slice(1, 3)),
}
"""Ops of several floating results of which some alone depend on their inputs."""

UNINITIALISED = {"empty", "empty_like", "empty_strided", "empty_permuted"}
UNINITIALISED |= {"new_empty", "new_empty_strided", "resize_", "resize_as_", "data_ptr"}
"""Ops whose values are whatever lies in memory."""

RANDOM = set(
    "dropout alpha_dropout feature_dropout feature_alpha_dropout dropout1d dropout2d dropout3d"
    " native_dropout rrelu rand_like randn_like randint_like multinomial uniform_ normal_ random_"
    " bernoulli bernoulli_ exponential_ cauchy_ log_normal_ geometric_ normal poisson"
    " binomial _standard_gamma _sample_dirichlet svd_lowrank pca_lowrank gumbel_softmax"
    " fractional_max_pool2d fractional_max_pool2d_with_indices fractional_max_pool3d"
    " fractional_max_pool3d_with_indices".split()
)
"""Ops that draw numbers, in the order of memory rather than of subscripts."""


def sweep_entries(keep: Callable[[Entry], bool] = lambda _: True) -> Callable[[Test], Test]:
    """Parametrises a test of `entry` over the table; if it takes `sample` too, it runs for each of
    the op's.

    A failure names the first sample that failed and how many did; it is skipped if it was for all.
    """

    def decorate(test: Test) -> Test:
        parameters = inspect.signature(test).parameters
        chosen = [e for e in entries() if keep(e) and ("sample" not in parameters or samples(e))]

        def sweep(entry: Entry, **others: Any) -> None:
            failures, skipped = [], []
            for sample in samples(entry):
                try:
                    test(entry=entry, sample=sample, **others)
                except pytest.skip.Exception as skip:
                    skipped.append(skip)
                except Exception as error:
                    error.add_note(f"sample: {entry.id}({sample})")
                    failures.append(error)
            if failures:
                failures[0].add_note(f"{len(failures)} samples failed")
                raise failures[0]
            if len(skipped) == len(samples(entry)):
                raise skipped[0]

        if "sample" in parameters:
            kept = [p for name, p in parameters.items() if name != "sample"]
            sweep.__signature__ = inspect.Signature(kept)  # type: ignore[attr-defined]
            sweep.__name__, sweep.__doc__ = test.__name__, test.__doc__
            sweep.__module__, sweep.__qualname__ = test.__module__, test.__qualname__
            sweep.pytestmark = list(getattr(test, "pytestmark", []))  # type: ignore[attr-defined]
        else:
            sweep = test
        return pytest.mark.parametrize("entry", [pytest.param(e, id=e.id) for e in chosen])(sweep)

    return decorate


def leaves(value: Any) -> list[Any]:
    """The tensors in an argument or a result."""
    if isinstance(value, pygrad.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in leaves(item)]
    if isinstance(value, dict):
        return leaves(list(value.values()))
    return []


def floating(value: Any) -> list[Any]:
    """The floating tensors of a result; of complex ones their parts."""
    return [
        pygrad.view_as_real(t.resolve_conj()) if t.is_complex() else t
        for t in leaves(value)
        if t.is_floating_point() or t.is_complex()
    ]


def run(entry: Entry, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Calls an op under a fixed seed; one that mutates gets a copy of its first argument."""
    pygrad.manual_seed(0)
    if entry.mutates:
        args = [args[0].clone(), *args[1:]]
    return entry.function(*args, **kwargs)


def arrays(value: Any) -> list[np.ndarray[Any, Any]]:
    """Copies of a result's elements, in the nearest type that NumPy has."""
    return [array_of(tensor).copy() for tensor in leaves(value)]


def array_of(tensor: Any) -> np.ndarray[Any, Any]:
    """The elements of one tensor."""
    if tensor.dtype is pygrad.bfloat16:
        tensor = tensor.float()
    if tensor.dtype is pygrad.complex32:
        tensor = tensor.cfloat()
    tensor = tensor.resolve_conj().resolve_neg()
    return tensor.numpy(force=True)  # type: ignore[no-any-return]


def plain(value: Any) -> Any:
    """What of a result is no tensor: numbers, dtypes, strings."""
    if isinstance(value, pygrad.Tensor):
        return None
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


def assert_same(got: Any, expected: Any, rtol: float = 0.0, atol: float = 0.0) -> None:
    """Equal structure, dtypes, shapes and elements, NaN equal to NaN."""
    assert plain(got) == plain(expected)
    assert len(leaves(got)) == len(leaves(expected))
    for mine, other in zip(leaves(got), leaves(expected), strict=True):
        assert mine.dtype == other.dtype
        assert mine.shape == other.shape
        np.testing.assert_allclose(*arrays([mine, other]), rtol=rtol, atol=atol)


def leaves_nothing(test: Test) -> Test:
    """The engine has no more tensors and nodes after the test than before, unless it fails."""

    @functools.wraps(test)
    def wrapper(*args: Any, **kwargs: Any) -> None:
        before = pygrad.pg_live_count()
        test(*args, **kwargs)
        after = pygrad.pg_live_count()
        for generation in range(3):  # the youngest first: a full collection takes long here
            if after > before:
                gc.collect(generation)
                after = pygrad.pg_live_count()
        assert after <= before, f"{after - before} tensors or nodes more than before"

    return wrapper


@contextmanager
def no_breakdown() -> Iterator[None]:
    """Proper errors pass, a trap does not."""
    try:
        yield
    except pygrad.EngineError:
        raise
    except PROPER_ERRORS:
        pass


def dependent(entry: Entry, found: list[Any]) -> list[Any]:
    """Of the floating results of an op those that depend on its inputs."""
    if entry.id in WITHOUT_HISTORY:
        return []
    return found[DEPENDENT.get(entry.id, DEPENDENT.get(entry.name, slice(None)))]


def differentiable_outputs(entry: Entry, result: Any, made: list[Any]) -> list[Any]:
    """The differentiable tensors of an op's result; none unless an input requires grad. Fails if
    one of them has no history.
    """
    found = floating(result)
    if not any(tensor.requires_grad for tensor in made):
        return []
    chosen = dependent(entry, found)
    for k, tensor in enumerate(found):
        if any(tensor is each for each in chosen):
            assert tensor.requires_grad, f"result {k} has lost its history"
        else:
            assert tensor.grad_fn is None, f"result {k} has a history"
    return chosen


def with_grad(sample: Call, arrays_: list[Array]) -> list[Any]:
    """The sample's tensors as leaves that require grad where they can and the op allows it."""
    made = [pygrad.from_numpy(array.copy()) for array in arrays_]
    for tensor, what in zip(made, sample.tensors(), strict=True):
        tensor.requires_grad_(tensor.is_floating_point() and not what.constant)
    return made


def subclass_orders(asked: type) -> list[tuple[type, ...]]:
    """All orders of two subclasses of a class and a subclass of the first."""
    base, beside = type("Base", (asked,), {}), type("Beside", (asked,), {})
    return [*itertools.permutations((base, type("Derived", (base,), {}), beside))]


def order_of_asking(kinds: Sequence[type]) -> list[type]:
    """The order in which PyTorch asks the classes of arguments: each before its bases, else from
    left to right.
    """
    found: list[type] = []
    for kind in kinds:
        bases = (at for at, other in enumerate(found) if issubclass(kind, other))
        found.insert(next(bases, len(found)), kind)
    return found


def names_of(kinds: Sequence[type]) -> str:
    """The name of a test of these classes."""
    return " ".join(kind.__name__ for kind in kinds)
