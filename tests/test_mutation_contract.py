"""The contract of saved tensors: no later write changes a gradient, through whatever route.

Every combination of a way to save, a route of a write, a moment of the write and a dtype, in both
modes. In snapshot mode the gradients are those of the program without the write, bit for bit. In
"check" mode they are so too, or PyTorch's error comes; and it does come where an op saved what a
counted write changed.

`make contract` runs all of them, `make test` some.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers import leaves_nothing
from test_snapshots import MODIFIED, memory_of

import pygrad

pytestmark = pytest.mark.filterwarnings("ignore")

F = pygrad.nn.functional
REAL = ["float64", "float32", "bfloat16"]
COMPLEX = ["complex128", "complex64"]
DTYPES = [*REAL, *COMPLEX]


def numbers(dtype: str, *shape: int, start: int = 1) -> Any:
    """Some numbers of a dtype, none of them zero, no two alike."""
    count = int(np.prod(shape, dtype=int))
    flat = (pygrad.arange(float(count)) + start).mul(0.37).sin().add(1.5)
    if dtype.startswith("complex"):
        flat = pygrad.complex(flat, (flat * 3).cos())
    return flat.to(getattr(pygrad, dtype)).reshape(shape)


def total(y: Any) -> Any:
    """A real number that every element has its own weight in."""
    if y.is_complex():
        y = pygrad.view_as_real(y)
    weights = (pygrad.arange(float(y.numel())) + 1).div(7).cos().to(y.dtype).reshape(y.shape)
    return (y * weights).sum()


# ------------------------------------------------------------------ kinds of saving

Watch = Callable[[Any], Any]
"""Receives each tensor that will be written to, before anything saves it; returns it."""


class Program(NamedTuple):
    """A program of one kind of saving: its outputs, and the leaves whose gradients are compared."""

    outputs: list[Any]
    wanted: list[Any]


class Twice(pygrad.autograd.Function):
    """Saves an input, an output and a tensor of its own."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y, own = x * x, x + 1
        ctx.save_for_backward(x, y, own)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        x, y, own = ctx.saved_tensors
        return g * (x * 2 + y - y.detach() + own - x - 1).conj()


def operands(dtype: str, watch: Watch) -> tuple[Any, Any, Any]:
    """A leaf, and two tensors of its graph that may be written to: views of larger ones."""
    leaf = numbers(dtype, 3, 4).requires_grad_()
    x = watch((leaf * 1).unsqueeze(0).repeat(2, 1, 1)[0])
    other = watch(numbers(dtype, 2, 3, 4, start=5)[1])
    return leaf, x, other


def saving(function: Callable[[Any, Any], Any]) -> Callable[[str, Watch], Program]:
    """The kind that saves what a function of two tensors saves."""

    def kind(dtype: str, watch: Watch) -> Program:
        leaf, x, other = operands(dtype, watch)
        return Program([function(x, other)], [leaf])

    return kind


def saving_output(function: Callable[[Any], Any]) -> Callable[[str, Watch], Program]:
    """The kind that saves an output, to which the write goes."""

    def kind(dtype: str, watch: Watch) -> Program:
        leaf = numbers(dtype, 3, 4).requires_grad_()
        y = watch(function(leaf * 1))
        return Program([y * 1], [leaf])

    return kind


def slices(dtype: str, watch: Watch) -> Program:
    """Parts of one buffer, of all layouts."""
    leaf = numbers(dtype, 3, 4).requires_grad_()
    x = watch((leaf * 1).unsqueeze(0).repeat(2, 1, 1)[0])
    parts = [x[1], x[:, 2], x[1:, 1:3], x.t(), x[0, 1], x[::2], x.as_strided((2, 2), (1, 4), 1)]
    return Program([p * p for p in parts], [leaf])


def buffer_of_rows(dtype: str, watch: Watch) -> Program:
    """A recurrence that reads one row of a buffer and writes the next."""
    w = numbers(dtype, 4, 4).mul(0.1).requires_grad_()
    rows = watch(numbers(dtype, 4, 4))
    for t in range(3):
        rows[t + 1] = pygrad.tanh(rows[t] @ w)
    return Program([rows * rows], [w])


def buffer_of_columns(dtype: str, watch: Watch) -> Program:
    """A recurrence that reads one column of a buffer and writes the next."""
    w = numbers(dtype, 4, 4).mul(0.1).requires_grad_()
    columns = watch(numbers(dtype, 4, 4))
    for t in range(3):
        columns[:, t + 1] = pygrad.tanh(w @ columns[:, t])
    return Program([columns.exp()], [w])


def custom(dtype: str, watch: Watch) -> Program:
    leaf = numbers(dtype, 3, 4).requires_grad_()
    x = watch(leaf * 1)
    return Program([watch(Twice.apply(x)) * 1], [leaf])


def subscripts(dtype: str, watch: Watch) -> Program:
    leaf, x, _ = operands(dtype, watch)
    index = watch(pygrad.tensor([[2, 0], [1, 1]])[0])
    return Program([x[index], x.gather(0, index.reshape(2, 1)), x.index_select(0, index)], [leaf])


def masks(dtype: str, watch: Watch) -> Program:
    leaf, x, other = operands(dtype, watch)
    mask = watch(pygrad.tensor([[True, False, True, True]] * 3))
    return Program([x.masked_fill(mask, 2), pygrad.where(mask, x, other), x[mask]], [leaf])


def linear_layer(dtype: str, watch: Watch) -> Program:
    leaf = numbers(dtype, 3, 4).requires_grad_()
    weight = pygrad.nn.Parameter(numbers(dtype, 4, 4))
    bias = pygrad.nn.Parameter(numbers(dtype, 4))
    x = watch(leaf * 1)
    watch(weight.detach())
    y = F.linear(x, weight, bias)
    return Program([y * 1, watch(F.linear(y, weight) * 1).mul(2)], [leaf, weight])


def norms(dtype: str, watch: Watch) -> Program:
    leaf, x, other = operands(dtype, watch)
    weight = watch(numbers(dtype, 4))
    mean, var = watch(numbers(dtype, 4)), watch(numbers(dtype, 4, start=3))
    return Program(
        [
            F.layer_norm(x, (4,), weight),
            F.batch_norm(x, mean, var, weight, training=False),
            F.batch_norm(x * other, mean, var, training=True),
        ],
        [leaf],
    )


def maps(dtype: str, watch: Watch) -> Program:
    leaf = numbers(dtype, 1, 2, 4, 4).requires_grad_()
    x = watch(leaf * 1)
    kernel = watch(numbers(dtype, 2, 2, 2, 2))
    return Program([F.conv2d(x, kernel), F.max_pool2d(x, 2)], [leaf])


def embeddings(dtype: str, watch: Watch) -> Program:
    leaf = numbers(dtype, 3, 4).requires_grad_()
    table = watch(leaf * 1)
    index = watch(pygrad.tensor([2, 0, 2]))
    return Program([F.embedding(index, table).exp(), F.embedding(index, table).mul(table)], [leaf])


def attention(dtype: str, watch: Watch) -> Program:
    leaf, x, other = operands(dtype, watch)
    return Program([F.scaled_dot_product_attention(x[None], other[None], x[None])], [leaf])


def losses(dtype: str, watch: Watch) -> Program:
    leaf, x, _ = operands(dtype, watch)
    target = watch(pygrad.tensor([1, 0, 3]))
    return Program([F.cross_entropy(x, target), F.mse_loss(x, x.detach() * 2)], [leaf])


def sorts(dtype: str, watch: Watch) -> Program:
    leaf, x, _ = operands(dtype, watch)
    values, places = x.sort(dim=1)
    watch(places)
    top = x.topk(2, dim=0)
    watch(top.indices)
    return Program([values * 1, top.values * 1, x.cummax(0).values], [leaf])


def sparse_products(dtype: str, watch: Watch) -> Program:
    leaf, x, other = operands(dtype, watch)
    places = pygrad.tensor([[0, 1, 2], [1, 0, 2]])
    values = watch((leaf * 1)[:, 0].clone())
    matrix = pygrad.sparse_coo_tensor(places, values, (3, 3))
    outputs = [pygrad.sparse.mm(matrix, x), (matrix * matrix).to_dense()]
    if dtype in ("float64", "float32"):
        outputs.append(matrix.to_sparse_csr() @ other)
    return Program(outputs, [leaf])


def nested_products(dtype: str, watch: Watch) -> Program:
    leaf = numbers(dtype, 3, 4).requires_grad_()
    values = watch(leaf * 1)
    offsets = pygrad.tensor([0, 1, 3])
    nested = pygrad.nested.nested_tensor_from_jagged(values, offsets)
    return Program([(nested * nested).values(), nested.exp().values()], [leaf])


def pack_snapshot(dtype: str, watch: Watch) -> Program:
    """Hooks whose pack hook keeps a snapshot in its turn, by an op that saves."""
    leaf, x, other = operands(dtype, watch)

    def pack(t: Any) -> Any:
        return t.clone()

    with pygrad.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        return Program([x * other, x.exp()], [leaf])


def handed_out(dtype: str, watch: Watch) -> Program:
    """Writes go to the tensors that a node shows as its saved ones."""
    leaf, x, other = operands(dtype, watch)
    y = x * other
    saved = [y.grad_fn._saved_self, y.grad_fn._saved_other]
    for each in saved:
        if each is not None and not any(each is t for t in (x, other)):
            watch(each.detach())
    return Program([y], [leaf])


def products(x: Any, other: Any) -> Any:
    return pygrad.cat([x * other, x / other, x * x, pygrad.addcmul(x, x, other)])


KINDS: dict[str, tuple[Callable[[str, Watch], Program], list[str]]] = {
    "products": (saving(products), DTYPES),
    "powers": (saving(lambda x, other: x**other), DTYPES),
    "functions": (
        saving(lambda x, other: pygrad.cat([x.sin(), x.log(), other.atan() * x])),
        DTYPES,
    ),
    "matrix products": (saving(lambda x, other: x @ other.t() @ x), DTYPES),
    "affine maps": (saving(lambda x, other: pygrad.addmm(x, x @ other.t(), other) * x), DTYPES),
    "reductions": (saving(lambda x, other: (x * other).prod(1) + x.norm(dim=1)), DTYPES),
    "running products": (saving(lambda x, other: x.cumprod(1) * other), DTYPES),
    "inverses": (
        saving_output(lambda x: pygrad.linalg.inv(x[:, :3] + pygrad.eye(3, dtype=x.dtype))),
        [d for d in DTYPES if d != "bfloat16"],
    ),
    "exp": (saving_output(pygrad.exp), DTYPES),
    "tanh": (saving_output(pygrad.tanh), DTYPES),
    "softmax": (saving_output(lambda x: x.softmax(1)), REAL),
    "root": (saving_output(pygrad.sqrt), DTYPES),
    "slices": (slices, DTYPES),
    "buffer of rows": (buffer_of_rows, DTYPES),
    "buffer of columns": (buffer_of_columns, DTYPES),
    "custom function": (custom, DTYPES),
    "subscripts": (subscripts, DTYPES),
    "masks": (masks, DTYPES),
    "linear layers": (linear_layer, DTYPES),
    "norms": (norms, ["float64", "float32"]),
    "maps": (maps, ["float64", "float32"]),
    "embeddings": (embeddings, REAL),
    "attention": (attention, ["float64", "float32"]),
    "losses": (losses, REAL),
    "sorts": (sorts, REAL),
    "sparse": (sparse_products, ["float64", "float32", *COMPLEX]),
    "nested": (nested_products, ["float64", "float32"]),
    "packed by hooks": (pack_snapshot, DTYPES),
    "handed out": (handed_out, DTYPES),
}

# ------------------------------------------------------------------ routes


class Route(NamedTuple):
    """A way to write."""

    write: Callable[[Any, Any], None]
    """Writes to a tensor; the second argument is the result of `before`."""
    before: Callable[[Any], Any] = lambda t: None
    """Receives the tensor before it is saved."""
    counted: bool = True
    """Whether the tensor's version counts the write, so that "check" mode sees it."""


def spoilt(tensor: Any) -> Any:
    """Other values of the same form; places and masks remain ones."""
    if tensor.dtype is pygrad.bool:
        return tensor.logical_not()
    return tensor * 3 + 2 if tensor.dtype.is_floating_point or tensor.is_complex() else tensor * 0


def unrecorded_route(write: Callable[[Any], Any]) -> Route:
    """A write that leaves the graph alone."""

    def run(tensor: Any, _: Any) -> None:
        with pygrad.no_grad():
            write(tensor)

    return Route(run)


def uncounted_route(write: Callable[[Any], Any]) -> Route:
    return unrecorded_route(write)._replace(counted=False)


def whole(tensor: Any) -> Any:
    return tensor if tensor._base is None else tensor._base


def write_by_optimizer(tensor: Any) -> None:
    if not (tensor.dtype.is_floating_point or tensor.is_complex()):
        tensor.zero_()
        return
    parameter = pygrad.nn.Parameter(tensor.data)
    parameter.grad = pygrad.ones_like(parameter)
    pygrad.optim.SGD([parameter], lr=0.5).step()
    tensor.add_(0)  # which counts the step


def in_parts(tensor: Any) -> None:
    flat = tensor.view(-1) if tensor.is_contiguous() else tensor
    for k in range(len(flat)):
        flat[k] = spoilt(flat[k])


def write_by_bytes(tensor: Any) -> None:
    storage = tensor.untyped_storage()
    for k in range(0, storage.nbytes(), 1 if tensor.dtype is pygrad.bool else tensor.itemsize):
        storage[k] = 0


def array_of_bits(tensor: Any) -> Any:
    """An array over the tensor's memory, of whatever type."""
    flat = tensor.detach()
    return (flat.view(pygrad.int16) if tensor.dtype is pygrad.bfloat16 else flat).numpy()


def write_by_array(tensor: Any, array: Any) -> None:
    (array_of_bits(tensor) if array is None else array)[...] = 0


def write_by_address(tensor: Any, memory: Any) -> None:
    memory = memory_of(tensor) if memory is None else memory
    memory[:] = bytes(len(memory))


def write_by_capsule(tensor: Any, _: Any) -> None:
    if tensor.dtype in (pygrad.bfloat16, pygrad.bool):
        tensor = tensor.detach().view(pygrad.uint8)
    np.from_dlpack(tensor.detach()).view()  # an export that ends before the write
    with pygrad.no_grad():
        tensor.zero_()


ROUTES: dict[str, Route] = {
    "in place": unrecorded_route(lambda t: t.copy_(spoilt(t))),
    "in place, recorded": Route(lambda t, _: t.mul_(0) if t.dtype.is_floating_point else t.zero_()),
    "its base": unrecorded_route(lambda t: whole(t).copy_(spoilt(whole(t)))),
    "a view": unrecorded_route(lambda t: t[..., :1].zero_()),
    "a row": unrecorded_route(lambda t: t[0].zero_() if t.dim() else t.zero_()),
    "parts, one by one": unrecorded_route(in_parts),
    "detach": unrecorded_route(lambda t: t.detach().copy_(spoilt(t))),
    "data": uncounted_route(lambda t: t.data.copy_(spoilt(t))),
    "new data": uncounted_route(lambda t: setattr(t.detach(), "data", spoilt(t))),
    "out": unrecorded_route(
        lambda t: pygrad.mul(t, t, out=t) if t.dtype is not pygrad.bool else t.zero_()
    ),
    "subscript": unrecorded_route(lambda t: t.__setitem__(slice(0, 1), 0)),
    "fill": unrecorded_route(lambda t: t.fill_(0)),
    "index_fill": unrecorded_route(lambda t: t.index_fill_(0, pygrad.tensor([0]), 0)),
    "foreach": unrecorded_route(
        lambda t: pygrad._foreach_mul_([t], 0) if t.dtype is not pygrad.bool else t.zero_()
    ),
    "an optimizer": unrecorded_route(write_by_optimizer),
    "its storage": uncounted_route(lambda t: t.untyped_storage().fill_(0)),
    "bytes of its storage": uncounted_route(write_by_bytes),
    "an array": Route(write_by_array, counted=False),
    "an array made before": Route(write_by_array, before=array_of_bits, counted=False),
    "its address": Route(write_by_address, counted=False),
    "an address known before": Route(write_by_address, before=memory_of, counted=False),
    "a capsule, then in place": Route(write_by_capsule),
}

# ------------------------------------------------------------------ moments

Spoil = Callable[[], None] | None
"""Writes to every watched tensor."""


def sum_of(outputs: list[Any], salt: int = 0) -> Any:
    return sum((total(y) * (k + 1 + salt) for k, y in enumerate(outputs)), start=0.0)


def grad(y: Any, wanted: list[Any], **options: Any) -> list[Any]:
    return list(pygrad.autograd.grad(y, wanted, materialize_grads=True, **options))


def spoil_before_backward(program: Program, spoil: Spoil) -> list[Any]:
    loss = sum_of(program.outputs)
    if spoil:
        spoil()
    return grad(loss, program.wanted)


def twice_before_it(program: Program, spoil: Spoil) -> list[Any]:
    loss = sum_of(program.outputs)
    if spoil:
        spoil()
        spoil()
    return grad(loss, program.wanted)


def spoil_between_backwards(program: Program, spoil: Spoil) -> list[Any]:
    loss = sum_of(program.outputs)
    first = grad(loss, program.wanted, retain_graph=True)
    if spoil:
        spoil()
    return first + grad(loss, program.wanted)


def spoil_within_backward(program: Program, spoil: Spoil) -> list[Any]:
    loss = sum_of(program.outputs)
    if spoil:
        loss.register_hook(lambda _: spoil())
    return grad(loss, program.wanted)


def spoil_before_second_order(program: Program, spoil: Spoil) -> list[Any]:
    loss = sum_of(program.outputs)
    first = grad(loss, program.wanted, create_graph=True)
    again = [g for g in first if g.requires_grad]
    if spoil:
        spoil()
    return first + (grad(sum_of(again, 1), program.wanted) if again else [])


MOMENTS = {
    "before": spoil_before_backward,
    "before, twice": twice_before_it,
    "between": spoil_between_backwards,
    "within": spoil_within_backward,
    "between orders": spoil_before_second_order,
}

# ------------------------------------------------------------------ the sweep


def bits(tensors: list[Any]) -> list[bytes]:
    """The bytes of tensors, all NaNs alike."""
    with pygrad.no_grad():
        return [
            pygrad._C._elements(t).view(-1).view(pygrad.uint8).numpy().tobytes() for t in tensors
        ]


def outcome(kind: str, dtype: str, moment: str, mode: str, route: Route | None) -> Any:
    """The gradients of a program with a write; the error of "check" mode if it comes."""
    watched: list[tuple[Any, Any]] = []

    def watch(tensor: Any) -> Any:
        watched.append((tensor, route.before(tensor) if route else None))
        return tensor

    def spoil() -> None:
        assert route is not None
        for tensor, state in watched:
            route.write(tensor, state)

    with pygrad.autograd.graph.set_saved_tensor_mode(mode):
        try:
            program = KINDS[kind][0](dtype, watch)
            return bits(MOMENTS[moment](program, spoil if route else None))
        except RuntimeError as error:
            if mode == "check" and MODIFIED in str(error):
                return MODIFIED
            raise


MODES = ["snapshot", "check"]
RAISES_BY_ITSELF = {"buffer of rows", "buffer of columns"}
"""Kinds that "check" mode refuses without another write; the graph that is left is a cycle there,
as in PyTorch.
"""
NEVER_RAISES = {*RAISES_BY_ITSELF, "packed by hooks"}
"""Kinds whose saved tensors are not written to: those of the last are the hooks' own."""


def combinations() -> Iterator[tuple[str, str, str, str, str]]:
    for kind, (_, dtypes) in KINDS.items():
        modes = MODES[:1] if kind in RAISES_BY_ITSELF else MODES
        yield from itertools.product([kind], dtypes, MOMENTS, ROUTES, modes)


SHARE = int(os.environ.get("PYGRAD_CONTRACT_SHARE", "16"))
"""One combination of so many is run; 1: all."""


@pytest.mark.parametrize("kind", KINDS)
@leaves_nothing
def test_no_write_changes_a_gradient(kind: str) -> None:
    expected: dict[tuple[str, str, str], Any] = {}
    raised = False
    chosen = [c for k, c in enumerate(combinations()) if c[0] == kind and k % SHARE == 0]
    for _, dtype, moment, name, mode in chosen:
        key = dtype, moment, mode
        if key not in expected:
            expected[key] = outcome(kind, *key, None)
        try:
            got = outcome(kind, dtype, moment, mode, ROUTES[name])
        except Exception as error:
            error.add_note(f"{kind}, {dtype}, {moment}: {name}, {mode}")
            raise
        if got == MODIFIED and ROUTES[name].counted:
            raised = True
        else:
            assert got == expected[key], f"{kind}, {dtype}, {moment}: {name}, {mode}"
    assert raised == (kind not in NEVER_RAISES) or SHARE > 1


def test_sweep_has_8000_combinations() -> None:
    assert sum(1 for _ in combinations()) >= 8_000
