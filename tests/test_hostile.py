"""Arguments that nobody should pass: every op of the table, valid samples with one to three
arguments replaced by tensors of strange shapes and values, numbers beyond all bounds, wrong types.

What comes back is a result, of which a gradient is taken too, or a proper error; the engine keeps
nothing and goes on. Then what the engine might trust: numbers that are addresses or counts, and
what hooks give back. Bytes are in test_hostile_bytes.py.
"""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import PROPER_ERRORS, leaves, leaves_nothing, no_breakdown, run, sweep_entries
from samples import Entry, samples
from sampling import DTYPES, Array, Call, build

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

TRIES = 3
SHAPES = [(), (0,), (1,), (3,), (2, 3), (2, 0, 3), (1, 1, 1, 1), (2, 3, 4), (2, 3, 5, 5), (1,) * 8]
LAYOUTS: list[Callable[[Any], Any]] = [
    lambda t: t,
    lambda t: t,
    lambda t: t.transpose(0, -1) if t.dim() else t,
    lambda t: t[..., ::2] if t.dim() else t,
    lambda t: t.unsqueeze(0).expand(3, *t.shape),
    lambda t: pygrad.zeros(10, dtype=t.dtype).as_strided((3, 3), (1, 1)),
]
INTEGERS = [0, 1, -1, 2, -2, 7, 100, 2**31 - 1, 2**31, -(2**31), 2**40, 2**62, -(2**63), 2**63]
FLOATS = [0.0, -0.0, 1.0, -1.0, 2.5, float("nan"), float("inf"), float("-inf"), 1e30, -1e-30]
OTHERS = [True, None, "x", "", "mean", pygrad.float32, pygrad.int64, object(), {}, b"x", 3j, ...]
OTHERS += [slice(3, 1), (slice(None), 0), [[1, 2], [3]]]


LONG = {"special.laguerre_polynomial_l", "special.legendre_polynomial_p"}
"""Ops that take a step for each unit of a number, as PyTorch's: ten seconds for 2**31."""


def short(entry: Entry) -> bool:
    return bool(samples(entry)) and entry.id not in LONG


def hostile_tensor(chance: random.Random) -> Any:
    """Any shape, dtype and layout, with the values that formulas divide by or overflow on."""
    shape, dtype = chance.choice(SHAPES), chance.choice(DTYPES)
    n = int(np.prod(shape))
    if dtype.startswith("float"):
        values: list[Any] = [chance.choice(FLOATS) for _ in range(n)]
    elif dtype == "bool":
        values = [chance.random() < 0.5 for _ in range(n)]
    else:
        bounds = np.iinfo(dtype)
        values = [chance.choice([0, 1, 2, 5, bounds.min, bounds.max]) for _ in range(n)]
    made = pygrad.from_numpy(np.array(values, dtype=dtype).reshape(shape))
    made = chance.choice(LAYOUTS)(made)
    return made.requires_grad_(dtype.startswith("float") and chance.random() < 0.4)


def hostile(chance: random.Random) -> Any:
    """Any argument."""
    kind = chance.random()
    if kind < 0.4:
        return hostile_tensor(chance)
    if kind < 0.65:
        return chance.choice(INTEGERS)
    if kind < 0.75:
        return [chance.choice(INTEGERS) for _ in range(chance.randrange(5))]
    if kind < 0.85:
        return [hostile_tensor(chance) for _ in range(chance.randrange(4))]
    return chance.choice(FLOATS + OTHERS)


def first_order(result: Any, args: Any, create_graph: bool = False) -> list[Any]:
    """Gradients of all that can have one, by the inputs."""
    outputs = [t for t in leaves(result) if t.requires_grad]
    inputs = [t for t in leaves(args) if t.requires_grad]
    if not outputs or not inputs:
        return []
    total = sum(t.sum() for t in outputs)
    return list(pygrad.autograd.grad(total, inputs, allow_unused=True, create_graph=create_graph))


def first_and_second_order(result: Any, args: Any) -> None:
    """Gradients of all that can have one, and theirs."""
    gradients = first_order(result, args, create_graph=True)
    again = [g for g in gradients if g is not None and g.requires_grad]
    if again:
        sum(g.sum() for g in again).backward()  # type: ignore[attr-defined]


@sweep_entries(short)
@leaves_nothing
def test_hostile_arguments_are_no_breakdown(entry: Entry) -> None:
    for turn in range(TRIES):
        chance = random.Random(f"{entry.id} {turn}")
        args, kwargs = build(chance.choice(samples(entry)), chance.choice(DTYPES))
        for _ in range(chance.choice([1, 1, 2, 3])):
            place = chance.randrange(len(args) + len(kwargs) + 1)
            if place < len(args):
                args[place] = hostile(chance)
            elif kwargs:
                kwargs[chance.choice(list(kwargs))] = hostile(chance)
        with no_breakdown():
            first_and_second_order(entry.function(*args, **kwargs), [args, kwargs])
    assert pygrad.ones(3).sum().item() == 3


def zeroes_of(value: Any) -> list[Any]:
    """An integer as zero; a list of them with each as zero, and with all."""
    if type(value) is int:
        return [0]
    if isinstance(value, (list, tuple)) and value and {*map(type, value)} == {int}:
        one = [[*value[:at], 0, *value[at + 1 :]] for at in range(len(value))]
        return [*one, [0] * len(value)]
    return []


@sweep_entries(short)
@leaves_nothing
def test_each_integer_may_be_zero(entry: Entry, sample: Call) -> None:
    """No loop divides by a size, a step or a count that is zero."""
    for place, value in enumerate(sample.args):
        for zero in zeroes_of(value):
            args, kwargs = build(sample)
            args[place] = zero
            for each in leaves(args):
                each.requires_grad_(each.is_floating_point())
            with no_breakdown(), contextlib.suppress(ZeroDivisionError):
                first_order(run(entry, args, kwargs), args)


def test_counts_beyond_all_memory_are_errors_after_which_all_works() -> None:
    x, none = pygrad.zeros(1, 1), pygrad.zeros(0)
    for count in (2**31 - 1, 2**31, 2**40, 2**62):
        for call in (
            lambda n=count: x.tensor_split(n),
            lambda n=count: none.chunk(n),
            lambda n=count: pygrad.mvlgamma(x + 3, n),
            lambda n=count: pygrad.zeros(1).expand(n).unbind(),
            lambda n=count: pygrad.tril_indices(n, 3),
        ):
            with pytest.raises(PROPER_ERRORS):
                call()
        assert len(x.chunk(count)) == 1
        assert pygrad.triu_indices(count, 3, -1).shape == (2, 9)
        assert pygrad.tril_indices(count, 0).shape == (2, 0)
    assert (x + 1).tolist() == [[1.0]]


@pytest.mark.parametrize("size", [2**k for k in (20, 28, 29, 30, 31, 32, 40, 62)])
def test_windows_beyond_all_memory_are_errors_after_which_all_works(size: int) -> None:
    f = pygrad.nn.functional
    image, kernel = pygrad.ones(1, 2, 6, 6, requires_grad=True), pygrad.ones(2, 2, 3, 3)
    for call in (f.conv2d, f.conv_transpose2d):
        for options in (
            {"stride": size},
            {"dilation": size},
            {"padding": size},
            {"padding": size, "stride": 2 * size},
            {"padding": size, "dilation": size},
            {"padding": size, "dilation": size, "stride": size},
        ):
            if size > 2**20 or list(options) == ["stride"]:
                with no_breakdown():
                    result = call(image, kernel, **options)
                    if result.numel() < 1000:
                        result.sum().backward()
    for columns in (pygrad.ones(1, 8, 9), pygrad.ones(1, 0, 9)):
        for window in (size, (size, 2), (2, size)):
            with pytest.raises(PROPER_ERRORS):
                f.fold(columns, (4, 4), window)
    with pytest.raises(PROPER_ERRORS):
        f.unfold(image, size, padding=size // 2)
    assert pygrad.ones(3).sum().item() == 3


@pytest.mark.parametrize("stride", [7, 2**20, 2**31 - 1])
def test_stride_beyond_the_image_costs_nothing(stride: int) -> None:
    image = pygrad.arange(36.0).view(1, 1, 6, 6).requires_grad_()
    result = pygrad.nn.functional.conv2d(image, pygrad.ones(1, 1, 3, 3), stride=stride)
    result.sum().backward()
    assert result.tolist() == [[[[63.0]]]]
    assert image.grad.sum().item() == 9


@pytest.mark.parametrize("n", [65_480, 65_540, 70_000])
def test_pieces_and_lists_may_be_many(n: int) -> None:
    x = pygrad.zeros(n, requires_grad=True)
    for pieces in (x.split(1), x.split([1] * n), x.tensor_split(n), x.unbind()):
        assert len(pieces) == n
        (gradient,) = pygrad.autograd.grad(pieces[-1].sum() + 2 * pieces[3].sum(), x)
        assert gradient[[0, 3, -1]].tolist() == [0.0, 2.0, 1.0]
    pygrad.stack(list(x.unbind())).sum().backward()
    assert x.grad.sum().item() == n


def test_names_of_keywords_may_be_long() -> None:
    with pytest.raises(TypeError, match="sum.*xxx"):
        pygrad.ones(2).sum(**{"x" * 200_000: 1})
    assert pygrad.ones(2).sum().item() == 2


@pytest.mark.parametrize(("offsets", "last"), [([], False), ([0], True)])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_indices_without_bags_are_in_none(offsets: list[int], last: bool, mode: str) -> None:
    weight = pygrad.ones(4, 2, requires_grad=True)
    share = pygrad.ones(5, requires_grad=True) if mode == "sum" else None
    found = pygrad.nn.functional.embedding_bag(
        pygrad.tensor([0, 1, 2, 3, 0]),
        weight,
        pygrad.tensor(offsets, dtype=pygrad.int64),
        mode=mode,
        include_last_offset=last,
        per_sample_weights=share,
    )
    found.sum().backward()
    assert found.shape == (0, 2)
    assert weight.grad is not None
    assert not weight.grad.any()
    assert share is None or not share.grad.any()  # type: ignore[union-attr]


# ------------------------------------------------------------------ addresses and counts


def edge_numbers(chance: random.Random, array: Array) -> Array:
    """Of the same shape and type, at the edges of the type and of what is small."""
    if array.dtype.kind == "f":
        chosen: list[Any] = [*FLOATS, 0.5, 3.0]
    elif array.dtype.kind in "iu":
        bounds = np.iinfo(array.dtype)
        few = [0, 1, -1, 2, -2, 3, 7, bounds.max // 8 + 1, bounds.min + 1, bounds.max - 1]
        chosen = [v for v in [*few, bounds.min, bounds.max] if bounds.min <= v <= bounds.max]
    else:
        return array
    small = chosen[:3] if chance.random() < 0.5 else chosen
    drawn = [chance.choice(chosen if chance.random() < 0.5 else small) for _ in range(array.size)]
    return np.array(drawn, array.dtype).reshape(array.shape)


def edge_argument(chance: random.Random, value: Any) -> Any:
    if isinstance(value, bool) or chance.random() < 0.6:
        return value
    if isinstance(value, int):
        return chance.choice(INTEGERS)
    if isinstance(value, (list, tuple)) and all(type(each) is int for each in value):
        return [chance.choice(INTEGERS) if chance.random() < 0.4 else each for each in value]
    return value


@sweep_entries(short)
@leaves_nothing
def test_numbers_at_the_edges_of_their_types_are_no_breakdown(entry: Entry) -> None:
    for turn, sample in enumerate(samples(entry) * 2):
        chance = random.Random(f"{entry.id} {turn}")
        args, kwargs = build(
            sample,
            chance.choice(DTYPES),
            lambda array, chance=chance: pygrad.from_numpy(edge_numbers(chance, array)),  # type: ignore[misc]
        )
        args = [edge_argument(chance, value) for value in args]
        kwargs = {name: edge_argument(chance, value) for name, value in kwargs.items()}
        if entry.mutates:
            args[0] = args[0].clone()
        with no_breakdown():
            first_and_second_order(entry.function(*args, **kwargs), [args, kwargs])
    assert pygrad.ones(3).sum().item() == 3


LEAST, MOST = -(2**63), 2**63 - 1


def integers(*values: int) -> Any:
    return pygrad.tensor(values, dtype=pygrad.int64)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: pygrad.bincount(integers(MOST, 0)), RuntimeError, "maximum value of input over"),
        (
            lambda: pygrad.repeat_interleave(integers(2**62, 2**62, 2**62, 2**62 + 5)),
            RuntimeError,
            "more than can be counted",
        ),
        (
            lambda: pygrad.nn.functional.pad(pygrad.ones(3), (MOST, MOST)),
            RuntimeError,
            "resulted in a negative output size",
        ),
        (
            lambda: pygrad.nn.functional.pad(pygrad.ones(1, 1, 3), (MOST, MOST), mode="replicate"),
            RuntimeError,
            "is too small for padding",
        ),
        (
            lambda: pygrad.unravel_index(integers(LEAST), (1, 3, (2**64 - 1) // 3)),
            ValueError,
            "Overflow when unpacking long long",
        ),
        (
            lambda: pygrad.max_pool1d(pygrad.ones(1, 1, 4), MOST),
            RuntimeError,
            r"max_pool1d\(\) Invalid computed output size: 0",
        ),
        (
            lambda: pygrad.nn.functional.max_pool2d(pygrad.ones(1, 1, 4, 4), 2**62 + 1, dilation=4),
            RuntimeError,
            "Output size is too small",
        ),
    ],
)
def test_sizes_that_wrap_around_are_errors(
    call: Callable[[], Any], error: type[Exception], message: str
) -> None:
    neighbours = [pygrad.full((n,), 7.0) for n in range(1, 100)]
    with pytest.raises(error, match=message):
        call()
    assert all((each == 7).all() for each in neighbours)


@pytest.mark.parametrize("dtype", [pygrad.float32, pygrad.float64])
def test_a_histogram_of_the_widest_range_counts_into_its_bins(dtype: pygrad.dtype) -> None:
    most = pygrad.finfo(dtype).max
    x = pygrad.tensor([-most, 0.0, most], dtype=dtype)
    assert pygrad.histc(x, 3).sum() == 3
    assert pygrad.histc(x[1:2], 3, -1e300, 1e300).sum() == 1


# ------------------------------------------------------------------ what hooks give back


def lie(chance: random.Random, t: Any) -> Any:
    """Another tensor in the place of t: of other numbers, another shape or type."""
    t = t.detach()
    kind = chance.randrange(10)
    if kind < 3 and t.dtype in (pygrad.int64, pygrad.int32):
        return pygrad.from_numpy(edge_numbers(chance, t.numpy()))
    if kind == 3:
        return t.reshape(-1)
    if kind == 4:
        return t.reshape(-1)[:1]
    if kind in (5, 6):
        more = chance.choice([-3, -1, 1, 3])
        return pygrad.zeros([max(size + more, 0) for size in t.shape] or [3], dtype=t.dtype)
    if kind == 7:
        return t.to(getattr(pygrad, chance.choice(DTYPES)))
    if kind == 8:
        return t.transpose(0, -1) if t.dim() else t.expand(4)
    return hostile_tensor(chance).detach()


@sweep_entries(lambda entry: bool(samples(entry)))
@leaves_nothing
def test_what_unpack_hooks_give_is_no_breakdown(entry: Entry) -> None:
    for turn, sample in enumerate(sample for sample in samples(entry) for _ in range(4)):
        chance = random.Random(f"{entry.id} {turn}")
        args, kwargs = build(sample, chance.choice(["float64", "float32"]))
        for tensor in leaves([args, kwargs]):
            tensor.requires_grad_(tensor.is_floating_point() and not entry.mutates)

        def unpack(t: Any, chance: random.Random = chance) -> Any:
            return lie(chance, t) if chance.random() < 0.5 else t

        with no_breakdown(), pygrad.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
            result = entry.function(*args, **kwargs)
            (first_order if turn % 2 else first_and_second_order)(result, [args, kwargs])
    assert pygrad.ones(3).sum().item() == 3


f = pygrad.nn.functional
ROWS = pygrad.tensor([0, 1, 1])
KERNELS: dict[str, Callable[[], Any]] = {
    "softmax": lambda: pygrad.rand(2, 3, requires_grad=True).softmax(1),
    "embedding": lambda: f.embedding(ROWS, pygrad.rand(2, 3, requires_grad=True)),
    "nll_loss": lambda: f.nll_loss(pygrad.rand(3, 2, requires_grad=True), ROWS, reduction="none"),
    "multi_margin_loss": lambda: f.multi_margin_loss(
        pygrad.rand(3, 2, requires_grad=True), ROWS, reduction="none"
    ),
    "max_pool2d": lambda: f.max_pool2d(pygrad.rand(1, 1, 4, 4, requires_grad=True), 2),
    "conv1d": lambda: f.conv1d(pygrad.rand(1, 2, 8, requires_grad=True), pygrad.rand(3, 2, 3)),
    "layer_norm": lambda: f.layer_norm(pygrad.rand(3, 2, requires_grad=True), (2,)),
    "cdist": lambda: pygrad.cdist(pygrad.rand(2, 3, requires_grad=True), pygrad.rand(4, 3)),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_takes_what_was_saved_in_its_shape_and_type_alone(kernel: str) -> None:
    for change in (lambda t: t.reshape(-1)[:1], lambda t: t.to(pygrad.int32)):
        with pygrad.autograd.graph.saved_tensors_hooks(lambda t: t, change):
            y = KERNELS[kernel]()
        with pytest.raises(
            RuntimeError, match=r"unpack_hook gave a .* tensor of shape .* which saved"
        ):
            y.sum().backward()


def test_an_elementwise_gradient_takes_what_broadcasts() -> None:
    x = pygrad.tensor([1.0, 2.0], requires_grad=True)
    with pygrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: pygrad.tensor([5.0])):
        (x * x).sum().backward()
    assert x.grad.tolist() == [10.0, 10.0]


@pytest.mark.parametrize("index", [-1, LEAST, 10**6, MOST])
@pytest.mark.parametrize(
    ("kernel", "error"),
    [
        ("embedding", IndexError),
        ("multi_margin_loss", RuntimeError),
        ("max_pool2d", None),
        ("nll_loss", None),
    ],
)
def test_indices_from_unpack_hooks_are_checked_or_left_out(
    kernel: str, error: type[Exception] | None, index: int
) -> None:
    def unpack(t: Any) -> Any:
        return t if t.is_floating_point() else pygrad.full_like(t, index)

    with pygrad.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = KERNELS[kernel]()
    with pytest.raises(error) if error else contextlib.nullcontext():
        y.sum().backward()
    assert pygrad.ones(3).sum().item() == 3


CHANGES: dict[str, Callable[[Any], Any]] = {
    "smaller": lambda g: g.resize_(0),
    "larger": lambda g: g.resize_(2000),
    "elsewhere": lambda g: g.set_(pygrad.ones(1)),
    "more dims": lambda g: g.unsqueeze_(0),
    "other type": lambda g: setattr(g, "data", g.to(pygrad.uint8)),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_a_gradient_that_a_hook_changed_in_place_is_refused(kernel: str, change: str) -> None:
    y = KERNELS[kernel]()
    y.grad_fn.register_prehook(
        lambda gs: [CHANGES[change](g) for g in gs if g is not None] and None
    )
    with pytest.raises(RuntimeError, match="was given an invalid gradient at index 0"):
        y.sum().backward()


@pytest.mark.parametrize("handle", [1, -8, 2**32 - 8, 2**63 - 8])
def test_a_handle_that_was_made_up_is_refused(handle: int) -> None:
    x = pygrad.ones(3)
    real = x._h
    calls: list[Any] = [lambda: x + x, lambda: pygrad.cat([x, x]), lambda: x.item(), lambda: x[0]]
    calls += [lambda: x.sum(), lambda: x.sum(0), lambda: pygrad.full((2,), x), lambda: x.exp_()]
    try:
        x._h = handle
        for call in calls:
            with pytest.raises((RuntimeError, IndexError, TypeError)):
                call()
    finally:
        x._h = real
    assert (x + 1).tolist() == [2, 2, 2]
