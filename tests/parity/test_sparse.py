"""Sparse tensors beside PyTorch's: numbers, parts, texts, gradients and errors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from oracle import both, result_or_error

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


def example(t: Any, dtype: Any = None) -> Any:
    """Uncoalesced, with one place twice."""
    places = t.tensor([[1, 0, 1, 1], [2, 0, 2, 0]])
    values = t.tensor([1.0, -2.0, 4.0, 0.5], dtype=dtype or t.float64)
    return t.sparse_coo_tensor(places, values, (2, 3))


def parts_of(x: Any) -> list[Any]:
    """A sparse tensor as numbers: its parts and what it says of itself."""
    kind = str(x.layout)
    if kind == "torch.strided":
        return [kind, x]
    found = [
        kind,
        list(x.shape),
        x.sparse_dim(),
        x.dense_dim(),
        x._nnz(),
        str(x.dtype),
        x.to_dense(),
    ]
    if kind == "torch.sparse_coo":
        return [*found, x.is_coalesced(), x._indices(), x._values()]
    if kind in ("torch.sparse_csr", "torch.sparse_bsr"):
        return [*found, x.crow_indices(), x.col_indices(), x.values()]
    return [*found, x.ccol_indices(), x.row_indices(), x.values()]


RESULTS: dict[str, Callable[[Any, Any], Any]] = {
    "itself": lambda t, x: x,
    "coalesce": lambda t, x: x.coalesce(),
    "clone": lambda t, x: x.clone(),
    "float": lambda t, x: x.float(),
    "complex": lambda t, x: x.to(t.complex128),
    "neg": lambda t, x: -x,
    "abs": lambda t, x: x.abs(),
    "sin": lambda t, x: x.sin(),
    "sign": lambda t, x: x.sign(),
    "relu": lambda t, x: t.relu(x),
    "square": lambda t, x: x.square(),
    "power": lambda t, x: x**2,
    "isnan": lambda t, x: x.isnan(),
    "twice": lambda t, x: x + x,
    "sum of coalesced": lambda t, x: x.coalesce() + (2 * x).coalesce(),
    "difference": lambda t, x: x - 2 * x,
    "alpha": lambda t, x: t.add(x, x, alpha=3),
    "by one of more dimensions": lambda t, x: x * t.ones(2, 2, 3, dtype=x.dtype),
    "by one that repeats it": lambda t, x: x.select(0, 1) * t.ones(2, 3, dtype=x.dtype),
    "without dimensions": lambda t, x: (
        t.sparse_coo_tensor(t.empty(0, 2), t.ones(2), ()) * t.ones(()).to_sparse()
    ),
    "without dimensions, swapped": lambda t, x: (
        t.ones(()).to_sparse() * t.sparse_coo_tensor(t.empty(0, 2), t.ones(2), ())
    ),
    "transpose of one element": lambda t, x: t.sparse_coo_tensor([[0], [1]], [1.0], (2, 3)).t(),
    "transpose of none": lambda t, x: t.zeros(2, 3).to_sparse().t(),
    "and none of another density": lambda t, x: (
        t.zeros(2, 3).to_sparse() + t.sparse_coo_tensor([[1]], t.ones(1, 3), (2, 3))
    ),
    "none of another density and": lambda t, x: (
        t.sparse_coo_tensor([[1]], t.ones(1, 3), (2, 3)) - t.zeros(2, 3).to_sparse()
    ),
    "on a dense one": lambda t, x: t.ones(2, 3, dtype=x.dtype) + x,
    "scaled": lambda t, x: x * 3,
    "scaled by a tensor": lambda t, x: x * t.tensor(3.0),
    "divided": lambda t, x: x / 4,
    "times a dense one": lambda t, x: x * t.arange(6.0).reshape(2, 3),
    "times itself": lambda t, x: x * x,
    "sum": lambda t, x: x.sum(),
    "sum of rows": lambda t, x: t.sparse.sum(x, 0),
    "sum of both": lambda t, x: t.sparse.sum(x, (0, 1)),
    "by a dense one": lambda t, x: x.mm(t.ones(3, 2, dtype=x.dtype)),
    "of a dense one": lambda t, x: t.ones(3, 2, dtype=x.dtype).mm(x),
    "by a vector": lambda t, x: x.mv(t.ones(3, dtype=x.dtype)),
    "matmul": lambda t, x: x @ t.ones(3, 2, dtype=x.dtype),
    "by its transposed": lambda t, x: t.sparse.mm(x, x.t()),
    "addmm": lambda t, x: t.addmm(t.ones(2, 2, dtype=x.dtype), x, t.ones(3, 2, dtype=x.dtype)),
    "t": lambda t, x: x.t(),
    "transpose": lambda t, x: x.transpose(0, 1),
    "permute": lambda t, x: x.permute(1, 0),
    "unsqueeze": lambda t, x: x.unsqueeze(1),
    "select": lambda t, x: x.select(0, 1).coalesce(),
    "row": lambda t, x: x[1].coalesce(),
    "cat": lambda t, x: t.cat([x, x], 1),
    "stack": lambda t, x: t.stack([x, x], 1),
    "index_select": lambda t, x: x.index_select(1, t.tensor([2, 0, 2])).coalesce(),
    "softmax": lambda t, x: t.sparse.softmax(x, 1),
    "log_softmax": lambda t, x: t.sparse.log_softmax(x, 0),
    "mask": lambda t, x: t.arange(6.0).reshape(2, 3).sparse_mask(x.coalesce()),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "zeros": lambda t, x: t.zeros(2, 3, layout=t.sparse_coo),
    "one sparse dimension": lambda t, x: x.to_dense().to_sparse(1),
    "csr": lambda t, x: x.to_sparse_csr(),
    "csc": lambda t, x: x.to_sparse_csc(),
    "bsr": lambda t, x: x.to_dense()[:, :2].to_sparse_bsr((2, 1)),
    "bsc": lambda t, x: x.to_dense()[:, :2].to_sparse_bsc((1, 2)),
    "csr transposed": lambda t, x: x.to_sparse_csr().t(),
    "batches": lambda t, x: t.stack([x.to_dense(), x.to_dense()]).to_sparse_csr(),
    "resized": lambda t, x: x.clone().sparse_resize_((4, 4), 2, 0),
    "cleared": lambda t, x: x.clone().sparse_resize_and_clear_((4, 4), 2, 0),
    "added in place": lambda t, x: x.clone().add_(x),
    "scaled in place": lambda t, x: x.clone().mul_(2),
    "added to a dense one": lambda t, x: t.zeros(2, 3, dtype=x.dtype).add_(x),
    "emptied": lambda t, x: x.clone().zero_(),
    "positive": lambda t, x: +x,
    "relu of functional": lambda t, x: t.nn.functional.relu(x),
    "nan_to_num": lambda t, x: (x.coalesce() * float("inf")).nan_to_num(1.0, 2.0, 3.0),
    "floor": lambda t, x: x // 2,
    "floor in place": lambda t, x: x.clone().floor_divide_(t.tensor(2.0, dtype=x.dtype)),
    "rounded quotient": lambda t, x: t.div(x, 3, rounding_mode="trunc"),
    "any": lambda t, x: x.any(),
    "any of none": lambda t, x: (x * 0).any(),
    "norm": lambda t, x: x.norm(),
    "norm 1": lambda t, x: x.norm(1),
    "norm inf": lambda t, x: x.norm(float("inf"), (0, 1)),
    "t_": lambda t, x: x.clone().t_(),
    "transpose_": lambda t, x: x.clone().transpose_(0, -1),
    "narrow_copy": lambda t, x: x.narrow_copy(1, 1, 2).coalesce(),
    "sum kept": lambda t, x: x.sum(0, keepdim=True).coalesce(),
    "sum of all kept": lambda t, x: x.sum((0, 1), keepdim=True),
    "sum of csr kept": lambda t, x: x.to_sparse_csr().sum(1, keepdim=True),
    "sum of ints": lambda t, x: x.to_dense().real.int().to_sparse().sum(0).coalesce(),
    "masked sum": lambda t, x: t.masked.sum(x),
    "times a sparse number": lambda t, x: x * t.tensor(2.0, dtype=x.dtype).to_sparse(),
    "times more dimensions": lambda t, x: (x * t.arange(4.0).reshape(4, 1, 1)).coalesce(),
    "times a dense row": lambda t, x: x.to_dense().to_sparse(1) * t.ones(2, 1).to_sparse(1),
    "dense times sparse": lambda t, x: t.ones(2, 3, dtype=x.dtype).mul_(x),
    "broadcast": lambda t, x: t._sparse_broadcast_to(x, (4, 2, 3)),
    "broadcast inside": lambda t, x: t._sparse_broadcast_to(
        x.to_dense()[:, :1].to_sparse(), (2, 3)
    ),
    "smm": lambda t, x: t.smm(x, t.ones(3, 2, dtype=x.dtype)),
    "hspmm": lambda t, x: t.hspmm(x, t.arange(6.0, dtype=x.dtype).reshape(3, 2)),
    "sspaddmm": lambda t, x: t.sspaddmm(
        t.eye(2, dtype=x.dtype).to_sparse(), x, t.ones(3, 2, dtype=x.dtype), beta=2, alpha=3
    ),
    "bmm": lambda t, x: t.bmm(t.stack([x, 2 * x]), t.arange(12.0, dtype=x.dtype).reshape(2, 3, 2)),
    "sampled_addmm": lambda t, x: t.sparse.sampled_addmm(
        x.to_sparse_csr(),
        t.arange(8.0, dtype=x.dtype).reshape(2, 4),
        t.ones(4, 3, dtype=x.dtype),
        beta=0.5,
        alpha=2.0,
    ),
    "spdiags": lambda t, x: t.sparse.spdiags(
        t.arange(9, dtype=x.dtype).reshape(3, 3), t.tensor([-1, 0, 2]), (3, 4)
    ),
    "spdiags in csc": lambda t, x: t.sparse.spdiags(
        t.ones(3, dtype=x.dtype), t.tensor(1), (3, 4), t.sparse_csc
    ),
    "resize_as_": lambda t, x: x.clone().resize_as_(t.ones(3, 4).to_sparse()),
    "new": lambda t, x: x.new(x._indices(), x._values(), (3, 3)),
    "new of sizes": lambda t, x: x.new(2, 3),
    "negative index": lambda t, x: x.index_select(1, t.tensor([-1, 0])).coalesce(),
    "int32": lambda t, x: t.sparse_csr_tensor(
        t.tensor([0, 1, 2], dtype=t.int32), t.tensor([1, 0], dtype=t.int32), x._values()[:2], (2, 2)
    ).to_sparse_bsc((1, 1)),
}


@pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS.keys())
@pytest.mark.parametrize("dtype", ["float64", "float32", "complex128"])
def test_results(make: Callable[[Any, Any], Any], dtype: str) -> None:
    def script(t: Any) -> Any:
        return result_or_error(lambda: parts_of(make(t, example(t, getattr(t, dtype)))))

    both(script, rtol=1e-6)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_texts(layout: str) -> None:
    def script(t: Any) -> Any:
        x = example(t, t.float32).to_dense()[:, :2]
        block = (2, 1) if layout in ("sparse_bsr", "sparse_bsc") else None
        made = x.to_sparse(layout=getattr(t, layout), blocksize=block)
        wide = (made * 1e5).double() if layout == "sparse_coo" else made
        empty = t.zeros(2, 4, layout=getattr(t, layout)) if block is None else made
        return [repr(each) for each in (made, made.detach().requires_grad_(), wide, empty)]

    both(script)


GRADIENTS: dict[str, Callable[[Any, Any], Any]] = {
    "to_dense": lambda t, x: x.to_dense().square().sum(),
    "not masked": lambda t, x: x.to_dense(masked_grad=False).cos().sum(),
    "sum": lambda t, x: x.sum(),
    "values": lambda t, x: x.values().sin().sum(),
    "square": lambda t, x: (x * x).to_dense().sum(),
    "scaled": lambda t, x: (x * 3).to_dense().sum(),
    "neg": lambda t, x: (-x).to_dense().sum(),
    "add": lambda t, x: (x + x).to_dense().sum(),
    "on a dense one": lambda t, x: (t.ones(2, 3, dtype=x.dtype) + x).sin().sum(),
    "mm": lambda t, x: x.mm(t.ones(3, 2, dtype=x.dtype)).sum(),
    "sparse.mm": lambda t, x: t.sparse.mm(x, t.ones(3, 2, dtype=x.dtype)).sum(),
    "sparse.sum": lambda t, x: t.sparse.sum(x, 0).to_dense().sum(),
    "t": lambda t, x: x.t().to_dense().square().sum(),
    "csr": lambda t, x: x.to_sparse_csr().to_dense().square().sum(),
}


@pytest.mark.parametrize("function", GRADIENTS.values(), ids=GRADIENTS.keys())
def test_gradients_and_their_layouts(function: Callable[[Any, Any], Any]) -> None:
    def script(t: Any) -> Any:
        x = example(t).coalesce().detach().requires_grad_()
        y = function(t, x)
        (grad,) = t.autograd.grad(y, x)
        if str(grad.layout) == "torch.sparse_coo":
            grad = grad.coalesce()
        return [y, *parts_of(grad)]

    both(script)


def test_functions_of_the_tables_have_the_same_sparse_gradients() -> None:
    def script(t: Any) -> Any:
        F, found = t.nn.functional, []
        at = t.tensor([[1, 3], [1, 2]])
        for make in (
            lambda w: F.embedding(at, w, sparse=True),
            lambda w: F.embedding(at, w, padding_idx=3, sparse=True),
            lambda w: F.embedding_bag(at, w, sparse=True),
            lambda w: F.embedding_bag(at, w, mode="sum", sparse=True),
            lambda w: F.embedding(at, w, scale_grad_by_freq=True, sparse=True),
            lambda w: F.embedding_bag(at, w, mode="max", sparse=True),
            lambda w: w.gather(0, at, sparse_grad=True),
        ):
            w = t.arange(10.0).reshape(5, 2).requires_grad_()

            def run(make: Any = make, w: Any = w) -> Any:
                make(w).sum().backward()
                return parts_of(w.grad)

            found.append(result_or_error(run))
        return found

    both(script)


WRONG: dict[str, Callable[[Any], Any]] = {
    "negative": lambda t: t.sparse_coo_tensor([[-1]], [1.0]),
    "counts": lambda t: t.sparse_coo_tensor([[0, 1]], [1.0], (2,)),
    "ranks": lambda t: t.sparse_coo_tensor([[0], [0]], [1.0], (2,)),
    "flat": lambda t: t.sparse_coo_tensor(t.tensor([0]), t.tensor([1.0]), (2,)),
    "not coalesced": lambda t: t.sparse_coo_tensor(
        [[1, 0]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True
    ),
    "values": lambda t: example(t).values(),
    "indices": lambda t: example(t).indices(),
    "values of dense": lambda t: t.ones(2).values(),
    "coalesce of dense": lambda t: t.ones(2).coalesce(),
    "rows of coo": lambda t: example(t).crow_indices(),
    "columns of csr": lambda t: example(t).to_sparse_csr().ccol_indices(),
    "indices of csr": lambda t: example(t).to_sparse_csr().indices(),
    "dense added": lambda t: example(t) + t.ones(2, 3),
    "sizes": lambda t: t.ones(2, 2) + example(t),
    "divisor": lambda t: example(t) / t.ones(2, 3),
    "mask": lambda t: t.ones(2, 2).sparse_mask(example(t)),
    "copied": lambda t: t.ones(2, 3).copy_(example(t)),
    "numpy": lambda t: example(t).numpy(),
    "data_ptr": lambda t: example(t).data_ptr(),
    "ranks permuted": lambda t: example(t).permute(0),
    "duplicate dims": lambda t: t.sparse.sum(example(t), (0, 0)),
    "floor divisor": lambda t: t.ones(2, 3) // example(t),
    "assigned": lambda t: example(t).__setitem__((0, 0), 1.0),
    "expanded": lambda t: example(t).expand(4, 2, 3),
    "reshaped": lambda t: example(t).reshape(3, 2),
    "uncoalesced in place": lambda t: example(t).relu_(),
    "norm of a dim": lambda t: example(t).norm(2, 0),
    "norm kept": lambda t: example(t).norm(2, (0, 1), keepdim=True),
    "norm with a dtype": lambda t: example(t).norm(dtype=t.float64),
    "intersection": lambda t: example(t) * t.ones(2, 1).to_sparse(),
    "transposed csr in place": lambda t: example(t).to_sparse_csr().t_(),
    "batches": lambda t: t.bmm(t.ones(2, 2, 3).to_sparse(), t.ones(1, 3, 2)),
    "batch of sparse": lambda t: t.bmm(t.ones(2, 2, 3), t.ones(2, 3, 2).to_sparse()),
    "diagonals": lambda t: t.sparse.spdiags(t.ones(2, 3), t.tensor([0]), (3, 3)),
    "same diagonal": lambda t: t.sparse.spdiags(t.ones(2, 3), t.tensor([0, 0]), (3, 3)),
    "sampled": lambda t: t.sparse.sampled_addmm(
        t.eye(2).to_sparse_csr(), t.ones(2, 2), t.ones(3, 2)
    ),
    "sampled sizes": lambda t: t.sparse.sampled_addmm(
        t.eye(2).to_sparse_csr(), t.ones(3, 2), t.ones(2, 2)
    ),
    "sspaddmm": lambda t: t.sspaddmm(t.ones(2, 3).to_sparse(), example(t, t.float32), t.ones(3, 2)),
    "three dimensions to csr": lambda t: t.ones(2, 3, 4).to_sparse().to_sparse_csr(),
    "a fold that is none": lambda t: t.sparse.mm(t.eye(2).to_sparse_csr(), t.eye(2), "prod"),
    "a fold of columns": lambda t: t.sparse.mm(t.eye(2).to_sparse_csc(), t.eye(2), "mean"),
    "a fold by a sparse one": lambda t: t.sparse.mm(*[t.eye(2).to_sparse_csr()] * 2, "mean"),
    "a fold of sizes": lambda t: t.sparse.mm(t.eye(2).to_sparse_csr(), t.eye(3), "mean"),
    "transpose of three": lambda t: t.ones(2, 2, 2).to_sparse().t(),
    "transpose of three, hybrid": lambda t: t.ones(2, 2, 2).to_sparse(2).t(),
    "permute": lambda t: t.sparse_coo_tensor([[1]], t.ones(1, 3), (2, 3)).permute(1, 0),
    "mv": lambda t: example(t).mv(t.ones(2, dtype=t.float64)),
}


@pytest.mark.parametrize("call", WRONG.values(), ids=WRONG.keys())
def test_errors(call: Callable[[Any], Any]) -> None:
    both(lambda t: result_or_error(lambda: parts_of(call(t))))


@pytest.mark.parametrize("layout", LAYOUTS[:3])
def test_complex_factors_of_a_product(layout: str) -> None:
    def script(t: Any) -> Any:
        a = t.tensor([[1 + 2j, 0], [0, 3]])
        b = a.to_sparse(layout=getattr(t, layout))
        ones = t.ones(2, 2) + 0j
        return t.addmm(ones, b, a, alpha=2j), t.addmm(ones, b, a, beta=1j), t.addmm(ones, b, a)

    both(script)


def test_differences_of_integers_are_those_of_the_common_type() -> None:
    def script(t: Any) -> Any:
        a = t.tensor([0, 200, 3], dtype=t.uint8).to_sparse()
        b = t.tensor([5, -100, 3], dtype=t.int8).to_sparse()
        found = a - b, b - a, t.sub(a, b, alpha=2), t.add(b, a, alpha=3)
        return *(each.to_dense() for each in found), t.ones(3, dtype=t.int8) - a

    both(script)


def test_one_element_is_a_number() -> None:
    def script(t: Any) -> Any:
        twice = t.sparse_coo_tensor([[0, 0]], [1.5, -1.0], (1,))
        none = t.sparse_coo_tensor(t.empty(1, 0), t.empty(0), (1,))
        return [twice.item(), bool(twice), twice.is_nonzero(), bool(none)]

    both(script)


@pytest.mark.parametrize("fold", ["sum", "mean", "amax", "amin", "max", "min"])
def test_products_by_a_fold(fold: str) -> None:
    def script(t: Any) -> Any:
        a = t.tensor([[1.0, 0, 2], [0, 0, 0], [3, -4, 5]]).to_sparse_csr().requires_grad_()
        b = t.tensor([[1.0, 2], [3, -4], [5, 6]], requires_grad=True)
        y = t.sparse.mm(a, b, fold)
        (y * t.tensor([[1.0, 2], [3, 4], [5, 6]])).sum().backward()
        return [y, *parts_of(a.grad), b.grad]

    both(script)


@pytest.mark.parametrize("name", ["SGD", "momentum", "Adagrad", "SparseAdam"])
def test_steps_of_optimizers(name: str) -> None:
    def script(t: Any) -> Any:
        w = t.linspace(-1, 1, 8, dtype=t.float64).reshape(4, 2).requires_grad_()
        options = {"momentum": {"momentum": 0.9}}.get(name, {})
        kind = getattr(t.optim, "SGD" if name == "momentum" else name)
        optimizer = kind([w], lr=0.1, **options)
        for i in range(4):
            optimizer.zero_grad()
            at = t.tensor([0, 2, i % 3])
            t.nn.functional.embedding(at, w, sparse=True).sin().sum().backward()
            optimizer.step()
        return w.detach()

    both(script, rtol=1e-12)
