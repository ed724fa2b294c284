"""Sparse tensors: which ops take them and which refuse them, what their parts are, their gradients,
and how they accumulate.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from helpers import leaves_nothing, no_breakdown
from samples import Entry, entries, samples
from sampling import Call, fill_sample, numbers

import pygrad as torch
from pygrad.autograd import gradcheck, gradgradcheck

LAYOUTS = [
    torch.sparse_coo,
    torch.sparse_csr,
    torch.sparse_csc,
    torch.sparse_bsr,
    torch.sparse_bsc,
]
BLOCKS = (torch.sparse_bsr, torch.sparse_bsc)


def dense() -> torch.Tensor:
    return torch.tensor([[0.0, 2.0, 0.0, 0.0], [3.0, 0.0, 0.0, 4.0]], dtype=torch.float64)


def in_layout(x: torch.Tensor, layout: Any) -> torch.Tensor:
    return x.to_sparse(layout=layout, blocksize=(2, 2) if layout in BLOCKS else None)


def make_uncoalesced() -> torch.Tensor:
    """1 + 4 stand at the same place."""
    places = torch.tensor([[1, 0, 1], [2, 0, 2]])
    values = torch.tensor([1.0, 2.0, 4.0], dtype=torch.float64)
    return torch.sparse_coo_tensor(places, values, (2, 3))


# ------------------------------------------------------------------ every op

SWEPT = [entry for entry in entries() if samples(entry)]


def sparse_forms(tensor: Any) -> list[torch.Tensor]:
    """The COO form of a tensor, and the CSR form if it has one."""
    if not isinstance(tensor, torch.Tensor) or tensor.layout is not torch.strided:
        return []
    plain = tensor.detach()
    found = [plain.to_sparse()] if plain.ndim else []
    return found + ([plain.to_sparse_csr()] if plain.ndim == 2 else [])


def with_sparse(sample: Call) -> Iterator[Any]:
    """The arguments of a sample with one tensor at a time in each of its sparse forms."""
    plain = [
        torch.from_numpy(numbers(what, "float64", salt).copy())
        for salt, what in enumerate(sample.tensors(), 1)
    ]
    for at, tensor in enumerate(plain):
        for made in sparse_forms(tensor):
            yield fill_sample(sample, [*plain[:at], made, *plain[at + 1 :]])


@pytest.mark.parametrize("entry", SWEPT, ids=lambda entry: entry.id)
@leaves_nothing
def test_every_op_takes_a_sparse_argument_or_refuses_it(entry: Entry) -> None:
    """None reads memory that a sparse tensor does not have: no trap, and nothing is left."""
    for sample in filter(is_real, samples(entry)[:3]):
        for args, kwargs in with_sparse(sample):
            with no_breakdown():
                for result in leaves_of(entry.function(*args, **kwargs)):
                    (result if result.layout is torch.strided else result.to_dense()).clone()


def is_real(sample: Call) -> bool:
    return all(what.kind != "parts" for what in sample.tensors())


def leaves_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves_of(item)]
    return [value] if isinstance(value, torch.Tensor) else []


@pytest.mark.parametrize("name", ["cos", "exp", "view", "sort", "cumsum", "softmax", "matrix_exp"])
def test_op_without_sparse_form_says_so_in_words_of_pytorch(name: str) -> None:
    x = dense().to_sparse()
    arguments = {"view": (8,), "cumsum": (0,), "softmax": (0,)}.get(name, ())
    with pytest.raises(NotImplementedError, match=f"Could not run 'aten::{name}' with arguments"):
        getattr(x, name)(*arguments)


@leaves_nothing
def test_gradient_of_dense_op_refuses_a_sparse_gradient_it_cannot_read() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    y = x.cumsum(0)
    with pytest.raises(NotImplementedError, match="SparseCPU"):
        y.backward(torch.ones(3, 2).to_sparse())
    assert x.grad is None


@pytest.mark.parametrize("read", ["numpy", "tolist", "data_ptr", "untyped_storage"])
def test_memory_of_a_sparse_tensor_is_not_shown(read: str) -> None:
    x = torch.ones(1).to_sparse()
    with pytest.raises((RuntimeError, TypeError)):
        getattr(x, read)()


@pytest.mark.parametrize("first", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
@pytest.mark.parametrize("second", [torch.sparse_coo, torch.sparse_csr, torch.sparse_csc])
def test_products_of_matrices_of_other_sizes(first: Any, second: Any) -> None:
    a, b = torch.tensor([[1.0, 0, 2], [0, 3, 0]]), torch.tensor([[1.0], [0], [2]])
    product = a.to_sparse(layout=first) @ b.to_sparse(layout=second)
    assert product.layout is first
    assert product.to_dense().tolist() == (a @ b).tolist()


# ------------------------------------------------------------------ parts


def test_coalesce_sums_what_stands_at_one_place() -> None:
    x = make_uncoalesced()
    assert not x.is_coalesced()
    assert x.coalesce().is_coalesced()
    assert x.coalesce().indices().tolist() == [[0, 1], [0, 2]]
    assert x.coalesce().values().tolist() == [2.0, 5.0]
    assert x.to_dense().tolist() == [[2.0, 0.0, 0.0], [0.0, 0.0, 5.0]]


@pytest.mark.parametrize("name", ["indices", "values"])
def test_parts_of_an_uncoalesced_tensor_are_asked_for_by_other_names(name: str) -> None:
    with pytest.raises(RuntimeError, match=f"Cannot get {name} on an uncoalesced tensor"):
        getattr(make_uncoalesced(), name)()
    assert getattr(make_uncoalesced(), f"_{name}")().shape[-1] == 3


def test_rows_of_a_sparse_matrix_are_sparse() -> None:
    matrix = torch.tensor([[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]).to_sparse()
    rows = list(matrix)
    assert all(row.is_sparse for row in rows)
    assert [row.to_dense().tolist() for row in rows] == [[0.0, 1.0], [2.0, 0.0], [0.0, 0.0]]
    columns = matrix.unbind(1)
    assert [each.to_dense().tolist() for each in columns] == [[0.0, 2.0, 0.0], [1.0, 0.0, 0.0]]


def test_row_indices_are_compressed_and_found_again() -> None:
    rows, columns = torch.tensor([0, 0, 2, 3]), torch.tensor([1, 2, 0, 0])
    ends = torch._convert_indices_from_coo_to_csr(rows, 5)
    assert ends.tolist() == [0, 2, 2, 3, 4, 4]
    assert torch._convert_indices_from_coo_to_csr(rows[:0], 2, out_int32=True).tolist() == [0, 0, 0]
    back = torch._convert_indices_from_csr_to_coo
    assert back(ends, columns).tolist() == [rows.tolist(), columns.tolist()]
    assert back(ends, columns, transpose=True).tolist() == [columns.tolist(), rows.tolist()]
    assert back(ends, columns, out_int32=True).dtype is torch.int32
    batches = torch.tensor([[0, 1, 2], [0, 2, 2]]), torch.tensor([[0, 1], [0, 1]])
    assert back(*batches).tolist() == [[0, 0, 1, 1], [0, 1, 0, 0], [0, 1, 0, 1]]


def test_row_indices_that_cannot_be_compressed_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="csr_cpu\" not implemented for 'Float'"):
        torch._convert_indices_from_coo_to_csr(torch.ones(2), 2)
    with pytest.raises(RuntimeError, match="supposed to be a vector, but got 2 dimensional"):
        torch._convert_indices_from_coo_to_csr(torch.ones(1, 2).long(), 2)
    with pytest.raises(IndexError, match="index 3 of a sparse tensor is out of range"):
        torch._convert_indices_from_coo_to_csr(torch.tensor([3]), 2)
    with pytest.raises(RuntimeError, match="do not fit each other"):
        torch._convert_indices_from_csr_to_coo(torch.tensor([0, 1]), torch.tensor([[0]]))


def test_dimensions_behind_the_sparse_ones_are_dense() -> None:
    x = torch.sparse_coo_tensor([[0, 2]], [[1.0, 2.0], [3.0, 4.0]], (3, 2))
    assert (x.sparse_dim(), x.dense_dim(), x._nnz(), x.numel()) == (1, 1, 2, 6)
    assert x.to_dense().tolist() == [[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("other", LAYOUTS, ids=str)
def test_each_layout_becomes_each_other(layout: Any, other: Any) -> None:
    x = in_layout(dense(), layout)
    assert x.layout is layout
    assert x.is_sparse is (layout is torch.sparse_coo)
    assert in_layout(x, other).layout is other
    assert torch.equal(in_layout(x, other).to_dense(), dense())


BAD = {
    "negative index": lambda: torch.sparse_coo_tensor([[-1]], [1.0], (2,)),
    "index beyond the size": lambda: torch.sparse_coo_tensor([[2]], [1.0], (2,)),
    "other count": lambda: torch.sparse_coo_tensor([[0, 1]], [1.0], (2,)),
    "other rank": lambda: torch.sparse_coo_tensor([[0]], [1.0], (2, 2)),
    "flat indices": lambda: torch.sparse_coo_tensor([0], [1.0], (2,)),
    "huge": lambda: torch.sparse_coo_tensor([[0]] * 3, [1.0], (1 << 40,) * 3),
    "rows that turn back": lambda: torch.sparse_csr_tensor([0, 2, 1], [0], [1.0], (2, 2)),
    "rows to nowhere": lambda: torch.sparse_csr_tensor([0, 1, 9], [0], [1.0], (2, 2)),
    "column beyond": lambda: torch.sparse_csr_tensor([0, 1, 1], [5], [1.0], (2, 2)),
    "block": lambda: torch.ones(3, 3).to_sparse_bsr((2, 2)),
}


@pytest.mark.parametrize("make", BAD.values(), ids=BAD.keys())
@leaves_nothing
def test_parts_that_do_not_fit_are_refused(make: Any) -> None:
    with pytest.raises(RuntimeError):
        make()


def test_invariants_are_checked_in_a_scope() -> None:
    places = torch.tensor([[1, 0]])
    with torch.sparse.check_sparse_tensor_invariants(False):
        torch.sparse_coo_tensor(places, [1.0, 2.0], (2,), is_coalesced=True)
    with (
        torch.sparse.check_sparse_tensor_invariants(),
        pytest.raises(RuntimeError, match="cannot set is_coalesced to true"),
    ):
        torch.sparse_coo_tensor(places, [1.0, 2.0], (2,), is_coalesced=True)
    assert not torch.sparse.check_sparse_tensor_invariants.is_enabled()


@pytest.mark.parametrize("shape", [(2, 4), (4, 2), (3, 3)], ids=str)
def test_diagonals_lie_as_far_as_the_matrix_reaches(shape: tuple[int, int]) -> None:
    for offset in range(-4, 5):
        row = torch.arange(1.0, 7.0)
        made = torch.sparse.spdiags(row, torch.tensor(offset), shape).to_dense()
        for i in range(shape[0]):
            for j in range(shape[1]):
                assert made[i, j].item() == (row[j].item() if j - i == offset else 0)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@leaves_nothing
def test_copies_and_pickles_have_parts_of_their_own(layout: Any) -> None:
    x = in_layout(dense(), layout).requires_grad_()
    for made in (pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.detach().clone()):
        assert made.layout is layout
        assert torch.equal(made.detach().to_dense(), dense())
        made._values().zero_()
    assert torch.equal(x.detach().to_dense(), dense())


def test_text_shows_the_parts() -> None:
    x = torch.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    assert repr(x) == (
        "tensor(indices=tensor([[0, 1],\n                       [2, 0]]),\n"
        "       values=tensor([3., 4.]),\n"
        "       size=(2, 3), nnz=2, layout=torch.sparse_coo)"
    )


# ------------------------------------------------------------------ gradients


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("masked", [True, False])
def test_gradient_passes_through_layouts(layout: Any, masked: bool) -> None:
    x = dense().requires_grad_()
    in_layout(x, layout).to_dense(masked_grad=masked).square().sum().backward()
    assert torch.equal(x.grad.to_dense(), 2 * dense())


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@pytest.mark.parametrize("fast", [True, False])
def test_gradcheck_takes_sparse_inputs(layout: Any, fast: bool) -> None:
    x = in_layout(dense(), layout).requires_grad_()
    w = torch.linspace(1, 2, 8, dtype=torch.float64).reshape(2, 4)

    def function(x: torch.Tensor) -> torch.Tensor:
        return (x.to_dense() * w).sin()

    assert gradcheck(function, x, masked=True, fast_mode=fast)
    assert gradcheck(lambda x: (x.to_dense(masked_grad=False) * w).sin(), x, fast_mode=fast)
    if layout not in BLOCKS and not fast:  # of those some elements are left out
        assert not gradcheck(function, x, masked=False, raise_exception=False)


USES: dict[str, Any] = {
    "to_dense": lambda x: x.to_dense(),
    "coalesce": lambda x: x.coalesce(),
    "to_sparse_csr": lambda x: x.to_sparse_csr(),
    "product": lambda x: x.mm(x),
    "product with a dense one": lambda x: x.mm(torch.ones(2, 2)),
    "index_select": lambda x: x.index_select(0, torch.tensor([0, 1])).to_dense(),
    "square": lambda x: x * x,
    "sum with a dense one": lambda x: torch.ones(2, 2) + x,
    "mask": lambda x: torch.ones(2, 2).sparse_mask(x),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("dim", [0, 1])
@pytest.mark.parametrize("index", [1 << 40, 2, -1])
@leaves_nothing
def test_indices_that_were_written_to_are_no_way_out_of_memory(
    use: str, dim: int, index: int
) -> None:
    x = torch.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))
    x._indices()[dim].fill_(index)
    with pytest.raises(IndexError, match="out of range"):
        USES[use](x)


@pytest.mark.parametrize("layout", LAYOUTS[1:], ids=str)
def test_compressed_indices_keep_their_type_in_another_layout(layout: Any) -> None:
    ends, columns = (torch.tensor(row, dtype=torch.int32) for row in ([0, 2, 3], [1, 3, 0]))
    x = in_layout(torch.sparse_csr_tensor(ends, columns, [1.0, 2.0, 3.0], (2, 4)), layout)
    by_rows = layout in (torch.sparse_csr, torch.sparse_bsr)
    indices = (
        (x.crow_indices(), x.col_indices()) if by_rows else (x.ccol_indices(), x.row_indices())
    )
    assert [each.dtype for each in indices] == [torch.int32] * 2
    assert x.to_dense().tolist() == [[0, 1, 0, 2], [3, 0, 0, 0]]


@pytest.mark.parametrize("name", ["to_sparse_bsr", "to_sparse_bsc"])
@pytest.mark.parametrize("block", [(1, 2), (2, 1), (4, 4), (2, 2)])
def test_blocks_become_blocks_of_another_size(name: str, block: tuple[int, int]) -> None:
    plain = torch.arange(16.0).view(4, 4)
    made = getattr(getattr(plain, name)((2, 2)), name)(block)
    assert made.values().shape[1:] == block
    assert torch.equal(made.to_dense(), plain)


def test_parts_keep_their_shapes_when_those_given_are_resized() -> None:
    places, values = torch.tensor([[0], [1]]), torch.tensor([3.0])
    x = torch.sparse_coo_tensor(places, values, (2, 2))
    places.resize_(2, 3)
    values.resize_(4)
    assert x.to_dense().tolist() == [[0.0, 3.0], [0.0, 0.0]]


FUNCTIONS = {
    "values": lambda v, x: x.coalesce().values(),
    "sum": lambda v, x: x.sum(),
    "sum over rows": lambda v, x: torch.sparse.sum(x, 0).to_dense(),
    "sin": lambda v, x: x.sin().to_dense(),
    "neg": lambda v, x: (-x).to_dense(),
    "square": lambda v, x: (x * x).to_dense(),
    "power": lambda v, x: (x**3).to_dense(),
    "add": lambda v, x: (x + 2 * x).to_dense(),
    "to a dense one": lambda v, x: torch.ones(2, 4, dtype=v.dtype) - x,
    "scaled by a number of its own": lambda v, x: (x * v[0]).to_dense(),
    "quotient": lambda v, x: (x / 3).to_dense(),
    "product": lambda v, x: torch.sparse.mm(x, torch.ones(4, 2, dtype=v.dtype)),
    "product of two": lambda v, x: torch.sparse.mm(x, x.t()).to_dense(),
    "vector": lambda v, x: x.mv(torch.ones(4, dtype=v.dtype)),
    "addmm": lambda v, x: torch.sparse.addmm(v[:2].outer(v[:2]), x, x.t().to_dense(), beta=2),
    "transposed": lambda v, x: x.t().to_dense(),
    "softmax": lambda v, x: torch.sparse.softmax(x, 1).to_dense(),
    "log_softmax": lambda v, x: torch.sparse.log_softmax(x, 1).to_dense(),
    "select": lambda v, x: x[1].to_dense(),
    "slice": lambda v, x: x[:, 1:3].to_dense(),
    "cat": lambda v, x: torch.cat([x, x], 1).to_dense(),
    "stack": lambda v, x: torch.stack([x, -x], 1).to_dense(),
    "index_select": lambda v, x: x.index_select(1, torch.tensor([3, 1, 3])).to_dense(),
    "csr": lambda v, x: (x.to_sparse_csr() * 2).to_dense(),
    "bsr": lambda v, x: x.to_sparse_bsr((2, 2)).to_dense(),
    "mask": lambda v, x: x.to_dense().sparse_mask(x.detach().coalesce()).to_dense(),
}


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
@leaves_nothing
def test_gradients_by_the_values_are_right(function: Any) -> None:
    places = torch.tensor([[1, 0, 1], [3, 1, 0]])

    def apply_to_values(v: torch.Tensor) -> torch.Tensor:
        return function(v, torch.sparse_coo_tensor(places, v, (2, 4)))

    v = torch.tensor([0.3, -0.4, 0.7], dtype=torch.float64, requires_grad=True)
    assert gradcheck(apply_to_values, v)
    assert gradgradcheck(apply_to_values, v)


def test_check_of_sparse_functions_goes_by_their_values() -> None:
    check = torch.sparse.as_sparse_gradcheck(gradcheck)
    x = dense().to_sparse().requires_grad_()
    assert check(lambda x: x.to_sparse_csr(), x, masked=True)
    assert check(lambda x: x * 2, x)


@leaves_nothing
def test_saved_sparse_tensor_is_a_snapshot() -> None:
    x = dense().to_sparse().requires_grad_()
    y = (x * x).to_dense().sum()
    x._values().data.zero_()
    y.backward()
    assert torch.equal(x.grad.to_dense(), 2 * dense())


# ------------------------------------------------------------------ accumulation


def sparse_of(number: float) -> torch.Tensor:
    return torch.sparse_coo_tensor([[1]], [number], (2,))


@pytest.mark.parametrize(
    ("before", "comes", "same", "kind"),
    [
        (None, sparse_of, False, torch.sparse_coo),
        (sparse_of, sparse_of, True, torch.sparse_coo),
        (sparse_of, lambda n: torch.full((2,), n), False, torch.strided),
        (lambda n: torch.full((2,), n), sparse_of, True, torch.strided),
    ],
)
def test_gradient_accumulates_as_in_pytorch(before: Any, comes: Any, same: bool, kind: Any) -> None:
    x = torch.ones(2, requires_grad=True)
    x.grad = before(2.0) if before else None
    kept, version = x.grad, x.grad._version if before else 0
    x.backward(comes(3.0))
    assert (x.grad is kept) is same
    if same:
        assert kept._version == version + 1
    assert x.grad.layout is kind
    expected = (before(2.0).to_dense() if before else 0) + comes(3.0).to_dense()
    assert torch.equal(x.grad.to_dense(), expected)


@pytest.mark.parametrize("parts", ["values", "indices"])
def test_gradient_of_a_leaf_has_parts_of_its_own(parts: str) -> None:
    values, indices = torch.tensor([3.0, 4.0]), torch.tensor([[0, 2]])

    class Held(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
            return x.sum()

        @staticmethod
        def backward(ctx: Any, g: torch.Tensor) -> torch.Tensor:
            mine = values if parts == "values" else values.clone()
            places = indices if parts == "indices" else indices.clone()
            return torch.sparse_coo_tensor(places, mine, (3,))

    x = torch.zeros(3, requires_grad=True)
    Held.apply(x).backward()
    values.zero_()
    indices.fill_(1)
    assert x.grad.to_dense().tolist() == [3.0, 0.0, 4.0]


def test_gradients_of_both_kinds_meet_in_the_walk() -> None:
    x = torch.ones(3, 2, requires_grad=True)
    at = torch.tensor([[0, 1]])
    (x.gather(0, at, sparse_grad=True).sum() + (x * x).sum()).backward()
    assert x.grad.tolist() == [[3.0, 2.0], [2.0, 3.0], [2.0, 2.0]]


@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_has_a_row_for_each_index(padding: int | None) -> None:
    table = torch.nn.Embedding(4, 2, padding_idx=padding, sparse=True)
    table(torch.tensor([[1, 2], [1, 3]])).sum().backward()
    grad = table.weight.grad
    assert grad._indices().tolist() == [[1, 1, 3] if padding else [1, 2, 1, 3]]
    plain = torch.nn.Embedding(4, 2, padding_idx=padding)
    plain(torch.tensor([[1, 2], [1, 3]])).sum().backward()
    assert torch.equal(grad.to_dense(), plain.weight.grad)


@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_have_the_same_gradient_sparse(mode: str) -> None:
    found = []
    for sparse in (True, False):
        bag = torch.nn.EmbeddingBag(5, 3, mode=mode, sparse=sparse)
        bag(torch.tensor([1, 2, 4, 2]), torch.tensor([0, 3])).sum().backward()
        found.append(bag.weight.grad.to_dense())
    assert torch.equal(*found)


# ------------------------------------------------------------------ optimizers


def train(make: Any, sparse: bool) -> torch.Tensor:
    weight = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    optimizer = make([weight])
    for _ in range(3):
        optimizer.zero_grad()
        rows = torch.nn.functional.embedding(torch.tensor([0, 2, 2]), weight, sparse=sparse)
        rows.square().sum().backward()
        optimizer.step()
    return weight.detach()


STEPS = {
    "SGD": lambda p: torch.optim.SGD(p, lr=0.1),
    "momentum": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.5, nesterov=True, maximize=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, lr=0.1),
}


@pytest.mark.parametrize("make", STEPS.values(), ids=STEPS.keys())
def test_step_by_a_sparse_gradient_is_that_by_a_dense_one(make: Any) -> None:
    torch.testing.assert_close(train(make, sparse=True), train(make, sparse=False))


@pytest.mark.parametrize("name", ["Adam", "AdamW", "RMSprop", "Adadelta", "NAdam"])
@leaves_nothing
def test_other_optimizers_refuse_sparse_gradients(name: str) -> None:
    with pytest.raises(RuntimeError, match="does not support sparse gradients"):
        train(getattr(torch.optim, name), sparse=True)


def test_sparse_adam_moves_the_rows_of_the_gradient_alone() -> None:
    weight = train(lambda p: torch.optim.SparseAdam(p, lr=0.1), sparse=True)
    assert weight[1].tolist() == [1.0, 1.0]
    assert (weight[0] < 1).all()
    assert (weight[2] < 1).all()
    with pytest.raises(RuntimeError, match="SparseAdam does not support dense gradients"):
        train(torch.optim.SparseAdam, sparse=False)


@pytest.mark.parametrize("layout", LAYOUTS)
@leaves_nothing
def test_sparse_tensors_are_not_on_meta(layout: Any) -> None:
    """That is said, and the engine goes on."""
    x = in_layout(torch.eye(4), layout)
    with torch.device("meta"):
        ghost, places, values = torch.eye(4), torch.ones(5).long(), torch.ones(5)
    for call in (
        lambda: x.to("meta"),
        lambda: torch.empty_like(x, device="meta"),
        lambda: torch.zeros_like(x, device="meta"),
        lambda: torch.empty(4, 4, layout=layout, device="meta"),
        lambda: in_layout(ghost, layout),
        lambda: ghost * x,
        lambda: torch.sparse.mm(x, ghost),
        lambda: torch.sparse_coo_tensor(torch.ones(1, 5).long(), values),
        lambda: torch.sparse_csr_tensor(places, places, torch.ones(5)),
    ):
        with pytest.raises((NotImplementedError, RuntimeError), match="(?i)meta"):
            call()
    assert x.to_dense().sum() == 4


def test_old_constructors_make_sparse_tensors() -> None:
    kind, indices = torch.sparse.FloatTensor, torch.tensor([[0, 1], [2, 0]])
    x = kind(indices, torch.tensor([3.0, 4.0]), torch.Size([2, 3]))
    assert x.to_dense().tolist() == [[0, 0, 3], [4, 0, 0]]
    assert isinstance(x, kind)
    assert not isinstance(x, torch.sparse.DoubleTensor)
    assert not isinstance(torch.ones(2), kind)
    assert x.type() == "torch.sparse.FloatTensor"
    assert x.type("torch.sparse.DoubleTensor").dtype is torch.float64
    assert (kind.dtype, kind.layout) == (torch.float32, torch.sparse_coo)
    for empty in (kind(2, 3), kind(torch.Size([2, 3]))):
        assert empty._nnz() == 0
        assert empty.shape == (2, 3)
    assert kind().shape == (0,)
    assert kind(indices, torch.ones(2)).shape == (2, 3)


def test_old_constructors_of_sparse_tensors_take_no_data() -> None:
    kind, indices = torch.sparse.FloatTensor, torch.tensor([[0], [2]])
    with pytest.raises(TypeError, match="only accepts sizes"):
        kind([2, 3])
    with pytest.raises(TypeError, match="takes 3 positional arguments but 4 were given"):
        kind(indices, torch.ones(1), 2, 3)
    with pytest.raises(TypeError, match="invalid combination"):
        kind(torch.ones(2))


@pytest.mark.parametrize("name", ["dsmm", "spmm"])
def test_old_products_take_sparse_matrices(name: str) -> None:
    x = torch.eye(2).to_sparse().requires_grad_()
    y = getattr(torch, name)(x, torch.ones(2, 2))
    y.sum().backward()
    assert y.tolist() == [[1, 1], [1, 1]]
    assert x.grad.to_dense().tolist() == [[2, 2], [2, 2]]


@pytest.mark.parametrize(
    "turn",
    [
        lambda x: x.T,
        lambda x: x.mT,
        lambda x: x.H,
        lambda x: x.mH,
        lambda x: x.adjoint(),
        lambda x: x.movedim(0, 1),
    ],
    ids="T mT H mH adjoint movedim".split(),
)
@pytest.mark.parametrize("kind", [torch.float64, torch.complex128])
def test_transposes_of_all_names_take_sparse_matrices(turn: Any, kind: torch.dtype) -> None:
    x = (dense() * (1 + 2j if kind.is_complex else 1)).requires_grad_()
    y, wanted = turn(x.to_sparse()), turn(x)
    assert y.layout is torch.sparse_coo
    assert torch.equal(y.to_dense().detach(), wanted.detach().resolve_conj())
    weights = torch.arange(8.0, dtype=torch.float64).reshape(4, 2).to(kind)
    (found,) = torch.autograd.grad(y.to_dense(), x, weights)
    (expected,) = torch.autograd.grad(wanted, x, weights)
    assert torch.equal(found, expected * (x != 0))


@pytest.mark.parametrize("fast", [False, True])
def test_gradcheck_moves_a_place_that_is_there_twice_as_one(fast: bool) -> None:
    x = make_uncoalesced().requires_grad_()
    assert gradcheck(lambda x: torch.sparse.sum(x * x), (x,), masked=True, fast_mode=fast)
    assert gradcheck(
        lambda x: torch.sparse.mm(x, dense()[:, :3].T), (x,), masked=True, fast_mode=fast
    )


CROW = torch.tensor([0, 1, 2])
COL = torch.tensor([1, 0])
TWO = torch.tensor([1.0, 2.0])


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((CROW + 1, COL, TWO), "`crow_indices[..., 0] == 0` is not satisfied."),
        ((CROW, COL + 1, TWO), "`0 <= col_indices < ncols` is not satisfied."),
        ((CROW, COL - 1, TWO), "`0 <= col_indices < ncols` is not satisfied."),
        ((CROW[:2], COL, TWO), "crow_indices.shape[-1] must be equal to the number of rows + 1"),
        (
            (CROW, COL, TWO[:1]),
            "col_indices.shape[-1] must be equal to nnz (=1) as defined by values.shape[0], but "
            "got 2",
        ),
        (
            (CROW, COL.int(), TWO),
            "crow_indices and col_indices must have the same dtype, bot got Long and Int, "
            "respectively",
        ),
        (
            (torch.tensor([0, 2, 2]), COL, TWO),
            "`col_indices[..., crow_indices[..., i - 1]:crow_indices[..., i]] for all i = 1, ..., "
            "nrows are sorted and distinct along the last dimension values` is not satisfied.",
        ),
    ],
    ids="start beyond negative rows count dtype order".split(),
)
def test_parts_of_a_compressed_tensor_are_validated(parts: Any, said: str) -> None:
    parts_are_refused(parts, said)


def test_values_of_a_compressed_tensor_are_strided() -> None:
    said = "expected values to be a strided tensor but got Sparse tensor"
    parts_are_refused((CROW, COL, TWO.to_sparse()), said)


def parts_are_refused(parts: Any, said: str) -> None:
    torch._validate_sparse_csr_tensor_args(CROW, COL, TWO, (2, 2))
    for check in (
        lambda: torch._validate_sparse_csr_tensor_args(*parts, (2, 2)),
        lambda: torch._validate_sparse_compressed_tensor_args(
            *parts, (2, 2), layout=torch.sparse_csr
        ),
        lambda: torch.sparse_csr_tensor(*parts, (2, 2)),
    ):
        with pytest.raises(RuntimeError) as error:
            check()
        assert said in str(error.value)


def test_parts_of_a_coo_tensor_are_validated() -> None:
    places = torch.tensor([[1, 0]])
    torch._validate_sparse_coo_tensor_args(places, TWO, (2,))
    with pytest.raises(RuntimeError, match="cannot set is_coalesced to true if indices correspond"):
        torch._validate_sparse_coo_tensor_args(places, TWO, (2,), is_coalesced=True)
    with pytest.raises(RuntimeError, match="expected scalar type Long but found Int"):
        torch._validate_sparse_coo_tensor_args(places.int(), TWO, (2,))
    with pytest.raises(RuntimeError, match="for dim 0, size is 1 but found index 1"):
        torch._validate_sparse_coo_tensor_args(places, TWO, (1,))


def test_products_of_batches_have_gradients() -> None:
    x = torch.stack([dense(), dense() + 1]).to_sparse().requires_grad_()
    y = torch.ones(2, 4, 3, dtype=torch.float64, requires_grad=True)
    plain, other = x.detach().to_dense().requires_grad_(), y.detach().clone().requires_grad_()
    torch.bmm(x, y).sin().sum().backward()
    torch.bmm(plain, other).sin().sum().backward()
    assert torch.allclose(x.grad.to_dense(), plain.grad * (plain != 0))
    assert torch.allclose(y.grad, other.grad)


def test_norm_has_the_gradient_of_that_of_the_values() -> None:
    x = make_uncoalesced().requires_grad_()
    x.norm().backward()
    plain = x.detach().to_dense().requires_grad_()
    plain.norm().backward()
    assert torch.allclose(x.grad.to_dense(), plain.grad)


def test_sampled_product_has_gradients_of_all_its_arguments() -> None:
    places = dense().to_sparse_csr()

    def sample(values: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = torch.sparse_csr_tensor(
            places.crow_indices(), places.col_indices(), values, places.shape
        )
        return torch.sparse.sampled_addmm(x, a, b, beta=0.5, alpha=2.0).values()

    a = torch.linspace(-1, 1, 6, dtype=torch.float64).reshape(2, 3).requires_grad_()
    b = torch.linspace(0, 2, 12, dtype=torch.float64).reshape(3, 4).requires_grad_()
    assert gradcheck(sample, (places.values().requires_grad_(), a, b))


def test_a_sparse_tensor_broadcast_has_the_gradient_of_what_it_was_made_of() -> None:
    x = dense()[:, 1:2].to_sparse().requires_grad_()
    y = torch._sparse_broadcast_to(x, (3, 2, 4))
    assert torch.equal(y.detach().to_dense(), x.detach().to_dense().expand(3, 2, 4))
    weights = torch.arange(24.0, dtype=torch.float64).reshape(3, 2, 4)
    (grad,) = torch.autograd.grad((y.to_dense() * weights).sum(), x)
    expected = weights.sum((0, 2))[:, None] * (x.detach().to_dense() != 0)
    assert torch.equal(grad.to_dense(), expected)


@pytest.mark.parametrize(
    "call",
    [
        lambda n: torch.zeros(n),
        lambda n: torch.zeros([n]),
        lambda n: torch.ones(6).narrow(0, 0, n),
        lambda n: torch.ones(6).topk(n),
    ],
)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_sparse_tensors_are_no_sizes(call: Any, shape: tuple[int, ...]) -> None:
    with pytest.raises(TypeError, match="must be"):
        call(torch.full(shape, 3).to_sparse())
