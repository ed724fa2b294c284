"""In-place ops: on every kind of view; those without a gradient; the nodes and the errors that
PyTorch has for them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
import pytest
from helpers import UNINITIALISED, sweep_entries
from oracle import (
    assert_same_outcome,
    both,
    leaf,
    normalize_message,
    outcome,
    result_or_error,
    torch,
)
from samples import Entry
from sampling import Array, Call, build

import pygrad
from pygrad._table import functions

COMPARISONS = "eq_ ne_ lt_ le_ gt_ ge_ greater_ greater_equal_ less_ less_equal_ not_equal_".split()
LOGIC = "logical_and_ logical_or_ logical_xor_".split()
OTHERS = {
    "number": lambda t: 1,
    "tensor": lambda t: t.tensor([1.0, 5.0, -3.0], dtype=t.float64),
    "one that requires grad": lambda t: leaf(t, 1, 5, -3),
    "scalar that requires grad": lambda t: leaf(t, 1).sum(),
}


def state_after(written: Any, *leaves: Any) -> Any:
    """All that an in-place op leaves behind."""
    node = written.grad_fn
    before = [(f and f.name(), k) for f, k in node.next_functions]
    saved = [name for name in dir(node) if name.startswith("_saved")]
    written.sum().backward()
    return [
        written,
        written.requires_grad,
        written._version,
        node.name(),
        *before,
        *saved,
        *(each.grad for each in leaves),
    ]


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", COMPARISONS)
def test_comparison(name: str, other: str) -> None:
    def script(t: Any) -> Any:
        x, second = leaf(t, 1, 2, -3), OTHERS[other](t)
        return state_after(
            getattr(x * 1, name)(second), x, *([] if other == "number" else [second])
        )

    both(script)


@pytest.mark.parametrize("name", [*LOGIC, "logical_not_"])
@pytest.mark.parametrize("other", ["tensor", "one that requires grad"])
def test_logic_leaves_the_history(name: str, other: str) -> None:
    def script(t: Any) -> Any:
        x = leaf(t, 1, 0, -3)
        args = [] if name == "logical_not_" else [OTHERS[other](t)]
        return state_after(getattr(x * 2, name)(*args), x)

    both(script)


@pytest.mark.parametrize("name", ["gt_", "ne_"])
def test_where_it_is_refused_or_is_a_view(name: str) -> None:
    def script(t: Any) -> Any:
        x, y = leaf(t, 1, 0, -3), leaf(t, 1, 0, -3)
        whole = x * 1
        part = whole[:2]
        getattr(part, name)(t.ones(2, dtype=t.float64))
        plain = t.ones(3)
        getattr(plain, name)(y)
        grad = t.autograd.grad(whole.sum(), x, create_graph=True)[0]
        error = result_or_error(lambda: getattr(y, name)(x))
        return [whole, part.grad_fn.name(), whole.grad_fn.name(), plain.requires_grad, grad, error]

    both(script)


@pytest.mark.parametrize("name", [*COMPARISONS, *LOGIC])
def test_under_vmap(name: str) -> None:
    def script(t: Any) -> Any:
        x = leaf(t, 1, 2, -3)
        rows = x.expand(2, 3) * 1
        second = t.tensor([1.0, 5.0, -3.0], dtype=t.float64)
        whole = t.vmap(lambda row: getattr(row, name)(second))(rows)
        return [whole, rows, *t.autograd.grad((whole + rows).sum(), x)]

    both(script)


@pytest.mark.parametrize("name", ["dropout", "alpha_dropout", "feature_alpha_dropout"])
@pytest.mark.parametrize("module", ["function", "nn.functional"])
@pytest.mark.parametrize("p", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("training", [False, True])
def test_dropout_that_drops_nothing(name: str, module: str, p: float, training: bool) -> None:
    """It leaves its input alone, whatever that is."""

    def script(t: Any) -> Any:
        def run(x: Any) -> Any:
            if module == "function":
                return getattr(t, name + "_")(x, p, training)
            return getattr(t.nn.functional, name)(x, p, training, inplace=True)

        def said(x: Any) -> Any:
            t.manual_seed(0)
            written = result_or_error(lambda: run(x) is x)
            told = normalize_message(written) if isinstance(written, str) else written
            return told, x, p in (0.0, 1.0) and x._version, x.grad_fn and x.grad_fn.name()

        whole = t.ones(2, 3, dtype=t.float64, requires_grad=True)
        return [said(x) for x in (whole, whole[:1], whole * 1, t.ones(2, 3), t.ones(2, 0))]

    both(script)


@pytest.mark.parametrize("name", ["gt_", "logical_and_"])
def test_tangent(name: str) -> None:
    def script(t: Any) -> Any:
        forward = t.autograd.forward_ad
        with forward.dual_level():
            x = forward.make_dual(leaf(t, 1, 2) * 1, t.ones(2, dtype=t.float64))
            getattr(x, name)(t.zeros(2, dtype=t.float64))
            return list(forward.unpack_dual(x))

    both(script)


@pytest.mark.parametrize("name", ["cumsum_", "cumprod_"])
@pytest.mark.parametrize("kind", "float32 float64 int32 int64 uint8 bool".split())
@pytest.mark.parametrize("given", [None, *"float32 float64 int32 int64 bool".split()])
def test_scan_into_its_own_dtype(name: str, kind: str, given: str | None) -> None:
    def script(t: Any) -> Any:
        x = t.tensor([1, 2, 3]).to(getattr(t, kind))
        dtype = None if given is None else getattr(t, given)
        return [getattr(x, name)(0, dtype=dtype), x]

    both(script)


def test_errors_of_a_scan_come_in_order() -> None:
    def script(t: Any) -> Any:
        x = leaf(t, 1, 2)
        return [
            result_or_error(lambda: x.cumsum_(0, dtype=t.float32)),
            result_or_error(lambda: (x * 1).cumsum_(0, dtype=t.float32)),
            result_or_error(lambda: (x * 1).cumsum_(5, dtype=t.bool)),
            state_after((x * 1).cumsum_(0, dtype=t.float64), x),
        ]

    both(script)


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("name", [*LOGIC, "logical_not_"])
def test_logic_on_a_leaf(name: str, part: bool) -> None:
    def script(t: Any) -> Any:
        x = leaf(t, 1, 0, -3)
        to = x[:2] if part else x
        getattr(to, name)(
            *([] if name == "logical_not_" else [t.tensor([1.0, 0.0, 1.0])[: len(to)]])
        )
        return [x, x._version, x.is_leaf, x.requires_grad, x.grad_fn]

    both(script)


NAMED_APART = {
    "acosh_": (),
    "arctanh_": (),
    "asinh_": (),
    "polygamma_": (2,),
    "sinh_": (),
    "elu_": (),
    "selu_": (),
    "celu_": (),
    "leaky_relu_": (0.1,),
    "threshold_": (0.5, 3.0),
    "rrelu_": (),
    "hardtanh_": (),
    "relu_": (),
}


@pytest.mark.parametrize("name", NAMED_APART)
def test_names_of_nodes(name: str) -> None:
    def script(t: Any) -> Any:
        x = leaf(t, 0.5, 2)
        y = x * 1
        function = getattr(t.Tensor, name, None) or getattr(t.nn.functional, name)
        function(y, *NAMED_APART[name])
        out = getattr(t, name[:-1], None) or getattr(t.nn.functional, name[:-1])
        order = (2, x) if name == "polygamma_" else (x, *NAMED_APART[name])
        return y.grad_fn.name(), y._version, out(*order).grad_fn.name()

    both(script)


def stale(t: Any, kind: str) -> tuple[Any, ...]:
    """A view that may have no history, made before its base was given one; and the base."""
    base = t.ones(2, 3, dtype=t.float64)
    if kind == "Unbind of a history":
        base = leaf(t, 1, 2, 3) * base
    if "Unbind" in kind:
        view = base.unbind()[0]
    elif kind == "no_grad":
        with t.no_grad():
            view = base[0]
    else:
        view = base[0]
    base.mul_(leaf(t, 1, 2, 3))
    return view, base


def mark(view: Any, value: bool) -> bool:
    view.requires_grad = value
    return bool(view.requires_grad)


STALE: dict[str, Any] = {
    "is_leaf": lambda t, x: x.is_leaf,
    "requires_grad": lambda t, x: x.requires_grad,
    "requires_grad_()": lambda t, x: x.requires_grad_().requires_grad,
    "requires_grad_(False)": lambda t, x: x.requires_grad_(False).requires_grad,
    "requires_grad = True": lambda t, x: mark(x, True),
    "requires_grad = False": lambda t, x: mark(x, False),
    "retain_grad": lambda t, x: x.retain_grad(),
    "detach_": lambda t, x: x.detach_(),
    "grad_dtype": lambda t, x: x.grad_dtype,
    "mul_": lambda t, x: x.mul_(2),
    "mul": lambda t, x: x * 2,
}


@pytest.mark.parametrize("kind", ["plain", "no_grad", "Unbind", "Unbind of a history"])
@pytest.mark.parametrize("act", STALE)
def test_stale_view(act: str, kind: str) -> None:
    both(lambda t: result_or_error(lambda: STALE[act](t, stale(t, kind)[0])))


WRITES: dict[str, Callable[[Any, Any], Any]] = {
    "fill_ by a number": lambda t, x: x.fill_(1),
    "fill_ by a tensor": lambda t, x: x.fill_(t.tensor(2.0)),
    "zero_": lambda t, x: x.zero_(),
    "copy_": lambda t, x: x.copy_(t.ones(2, 3)),
    "out=": lambda t, x: t.add(t.ones(2, 3), 1, out=x),
    "[...] = number": lambda t, x: x.__setitem__(Ellipsis, 0.0),
    "[:] = number": lambda t, x: x.__setitem__(slice(None), 0.0),
    "[True] = number": lambda t, x: x.__setitem__(True, 0.0),
    "[:, 0] = number": lambda t, x: x.__setitem__((slice(None), 0), 0.0),
    "[0] = number": lambda t, x: x.__setitem__(0, 0.0),
    "[...] = tensor": lambda t, x: x.__setitem__(Ellipsis, t.ones(2, 3)),
}


@pytest.mark.parametrize("write", WRITES)
def test_write_to_an_expanded_tensor(write: str) -> None:
    def script(t: Any) -> Any:
        x = t.arange(1.0, 4.0).expand(2, 3)
        return result_or_error(lambda: WRITES[write](t, x)), x

    both(script)


@pytest.mark.parametrize("value", [1.0, [5.0], [[1.0, 2.0]] * 3])
@pytest.mark.parametrize("sizes", [(), (2,)])
def test_assignment_where_nothing_is_true(sizes: tuple[int, ...], value: Any) -> None:
    def script(t: Any) -> Any:
        told = []
        for index in (False, t.tensor(False)):
            for make in (lambda x: x, lambda x: x * 1, lambda x: x.detach()):
                x = make(t.ones(sizes, requires_grad=True))
                to = value if isinstance(value, float) else t.tensor(value)
                said = result_or_error(lambda x=x, index=index, to=to: x.__setitem__(index, to))
                told.append((said, x, x.grad_fn and x.grad_fn.name()))
        return told

    both(script)


# ------------------------------------------------------------------ writing where an argument lies

WRITES_TO_ITSELF: dict[str, Callable[[Any, Any, Any], Any]] = {
    "index_add_": lambda t, x, k: x.index_add_(0, k, x[:1]),
    "index_copy_": lambda t, x, k: x.index_copy_(0, k, x[1:2]),
    "index_reduce_": lambda t, x, k: x.index_reduce_(0, k, x[:1], "prod"),
    "index_put_": lambda t, x, k: x.index_put_((k,), x[1]),
    "index_put_ of indices": lambda t, x, k: k.expand(4).clone().index_put_((k,), k[0] + 1),
    "put_": lambda t, x, k: x.put_(k, x[0, :1]),
    "scatter_": lambda t, x, k: x.scatter_(0, k.expand(1, 4), x),
    "scatter_add_": lambda t, x, k: x.scatter_add_(0, k.expand(1, 4), x),
    "scatter_reduce_": lambda t, x, k: x.scatter_reduce_(0, k.expand(1, 4), x, "sum"),
    "addr_": lambda t, x, k: x.addr_(x[0], x[1]),
    "masked_fill_": lambda t, x, k: x.masked_fill_(x > 5, x[1, 1]),
    "masked_fill_ by its mask": lambda t, x, k: (x > 5).masked_fill_(x > 5, False),
    "index_fill_": lambda t, x, k: x.index_fill_(0, k, x[1, 1]),
    "masked_fill_ of a part": lambda t, x, k: (lambda m: m[:2].masked_fill_(m[1:3], value=True))(
        x > 5
    ),
    "scatter_add out": lambda t, x, k: t.scatter_add(x * 1, 0, k.expand(1, 4), x, out=x),
    "index_add out is itself": lambda t, x, k: t.index_add(x, 0, k, t.ones(1, 4), out=x),
    "gather out": lambda t, x, k: t.gather(x, 0, k.expand(1, 4), out=x[1:2]),
    "index_select out": lambda t, x, k: t.index_select(x, 0, k, out=x[:1]),
    "take out": lambda t, x, k: t.take(x, k, out=x[0, :1]),
    "cat out": lambda t, x, k: t.cat([x[:1], x[1:2]], out=x[:2]),
    "stack out": lambda t, x, k: t.stack([x[0], x[1]], out=x[1:3]),
    "cumsum out": lambda t, x, k: t.cumsum(x[:2], 0, out=x[1:3]),
    "cumsum out is itself": lambda t, x, k: t.cumsum(x, 0, out=x),
    "sort out": lambda t, x, k: t.sort(x[:2], 0, out=(x[1:3], k.new_empty(2, 4))),
    "topk out": lambda t, x, k: t.topk(x, 2, 0, out=(x[:2], k.new_empty(2, 4))),
    "max out": lambda t, x, k: t.max(x, 0, out=(x[0], k.new_empty(4))),
    "outer out": lambda t, x, k: t.outer(x[0], x[1], out=x),
    "addmm out": lambda t, x, k: t.addmm(x[:2], x[:2, :2], x[:2], out=x[1:3]),
    "nan_to_num out": lambda t, x, k: t.nan_to_num(x[:2], out=x[1:3]),
}


@pytest.mark.parametrize("name", WRITES_TO_ITSELF)
@pytest.mark.filterwarnings("ignore:index_reduce")
def test_where_an_argument_lies(name: str) -> None:
    def script(t: Any) -> Any:
        x, first = t.arange(16.0).reshape(4, 4), t.tensor([0])
        return result_or_error(lambda: WRITES_TO_ITSELF[name](t, x, first)), x

    both(script)


# ------------------------------------------------------------------ views


def without_grad_mode(t: Any, base: Any) -> Any:
    with t.no_grad():
        return base[1]


VIEWS: dict[str, Callable[[Any, Any], Any]] = {
    "select": lambda t, base: base[1],
    "slice of a slice": lambda t, base: base[:, ...][1:].squeeze(0),
    "permuted": lambda t, base: base.mT.mT[1] if base.dim() > 2 else base.t()[..., 1],
    "strided": lambda t, base: base.as_strided(base.shape[1:], base.stride()[1:], base.stride(0)),
    "reshaped": lambda t, base: base.view(2, -1)[1].view(base.shape[1:]),
    "unbound": lambda t, base: base.unbind()[1],
    "part of a split": lambda t, base: base.split(1)[1][0],
    "without grad mode": without_grad_mode,
}
"""Views of a base of two rows: of its second row."""

BASES: dict[str, Callable[[Any], Any]] = {
    "computed": lambda leaf: leaf * 1,
    "leaf": lambda leaf: leaf,
    "plain": lambda leaf: leaf.detach(),
}

HAS_NONE_IN_PLACE = r"the derivative for 'inplace version of \w+' is not implemented"
"""PyTorch's asinh_, acosh_ and atanh_ have no derivative; pygrad's are those of the functions."""

APART = {
    "conj_physical": "PyTorch has a node for what changes nothing",
    "alpha_dropout": "PyTorch counts two writes",
    "feature_alpha_dropout": "PyTorch counts two writes",
    "floor_divide": "PyTorch's node lets the engine leave it out, where no input needs it",
}
"""Why these differ for good."""


def in_place_name(entry: Entry) -> str | None:
    """The op's in-place form, as users call it."""
    if entry.name.endswith("_"):
        return entry.id
    if entry.name + "_" in {op.name for op in functions.TABLE}:
        return None
    where = {"method": "Tensor.", "torch": "", "nn": "nn.functional."}
    found = (where[space] for space in where if entry.name + "_" in functions.SPACES[space])
    return next((prefix + entry.name + "_" for prefix in found), None)


def find(t: Any, path: str) -> Any:
    return reduce(lambda value, name: getattr(value, name, None), path.split("."), t)


def is_compared(entry: Entry) -> bool:
    path = None if entry.space == "internal" else in_place_name(entry)
    return path is not None and entry.name not in UNINITIALISED and find(torch, path) is not None


def traces_of(t: Any, path: str, sample: Call, view_of: Any, base_of: Any) -> Iterator[Any]:
    """What a write to a view leaves of it, of another view and of their base: values, versions,
    nodes, gradients.
    """
    leaves: list[Any] = []

    def make(values: Array) -> Any:
        made = t.from_numpy(values.copy() if leaves else np.stack([values, values]))
        leaves.append(made.requires_grad_(made.is_floating_point()))
        return made

    args, kwargs = build(sample, "float64", make, t)
    base = base_of(args[0])
    other = base.view_as(base)
    view = view_of(t, base)
    t.default_generator.manual_seed(0)
    yield result_or_error(lambda: find(t, path)(view, *args[1:], **kwargs) is view)
    wanted = [each for each in leaves if each.requires_grad]

    def gradients(of: Any) -> Any:
        weights = t.arange(1.0, of.numel() + 1, dtype=t.float64).reshape(of.shape)
        total = (of * weights).sum()
        return t.autograd.grad(total, wanted, retain_graph=True, allow_unused=True)

    for each in (view, other, base):
        yield each.detach().clone()
        yield each._version
        yield result_or_error(lambda each=each: each.grad_fn and each.grad_fn.name())
        yield result_or_error(lambda each=each: gradients(each) if each.requires_grad else None)


@sweep_entries(is_compared)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("base", BASES)
@pytest.mark.parametrize("view", VIEWS)
def test_write_to_a_view(entry: Entry, sample: Call, view: str, base: str) -> None:
    path = in_place_name(entry)
    assert path is not None
    if entry.name in APART or not all(sample.tensors()[0].shape):
        pytest.skip("PyTorch differs, or the base would be empty")

    def run(t: Any) -> Any:
        said = traces_of(t, path, sample, VIEWS[view], BASES[base])
        return [normalize_message(each) if isinstance(each, str) else each for each in said]

    theirs = outcome(lambda: run(torch))
    if re.search(HAS_NONE_IN_PLACE, str(theirs.values)):
        pytest.skip("PyTorch has no derivative")
    assert_same_outcome(outcome(lambda: run(pygrad)), theirs)
