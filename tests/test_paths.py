"""Each fast path of a kernel is taken where it should be: counted, not timed."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext

import numpy as np
import numpy.typing as npt
import pytest

import pygrad
from pygrad import _C, Tensor
from pygrad.nn import functional as F


def ramp(*shape: int, low: float = -2.0, high: float = 2.0, dtype: type = np.float32) -> Tensor:
    """Numbers from low to high in a tensor of that shape."""
    return pygrad.from_numpy(
        np.linspace(low, high, int(np.prod(shape))).astype(dtype).reshape(shape)
    )


def cross_entropy_backward() -> None:
    logits = ramp(8, 50).requires_grad_()
    F.cross_entropy(logits, pygrad.arange(8)).backward()


def hooked_cross_entropy_backward() -> None:
    """Who packs what is saved wants it elsewhere: nothing is kept beside it."""
    with pygrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        cross_entropy_backward()


def layer_norm_backward(rows: int) -> None:
    weight = pygrad.ones(20, requires_grad=True)
    F.layer_norm(ramp(rows, 20), (20,), weight).sum().backward()


def convolve(
    image: tuple[int, ...],
    weight: tuple[int, ...],
    *wanted: int,
    dtype: type = np.float32,
    **options: int,
) -> None:
    """A convolution, or the gradients of its input (0) and weight (1) alone."""
    x, w = ramp(*image, dtype=dtype), ramp(*weight, dtype=dtype)
    if not wanted:
        F.conv2d(x, w, **options)
    for k in wanted:
        (x, w)[k].requires_grad_()
        pygrad.autograd.grad(F.conv2d(x, w, **options).sum(), (x, w)[k])


TAKEN: list[tuple[str, int, Callable[[], object]]] = [
    ("GELU_NEAR", 2, lambda: F.gelu(ramp(512, low=-1.99, high=1.99))),
    ("GELU_NEAR", 1, lambda: F.gelu(ramp(512, low=-2.0, high=1.99))),
    ("GELU_NEAR", 1, lambda: F.gelu(ramp(512, low=-3.0, high=1.0))),
    ("GELU_NEAR", 0, lambda: F.gelu(ramp(512, dtype=np.float64))),
    ("GELU_SLOPE_NEAR", 2, lambda: gradient(F.gelu, ramp(512, low=-4.0, high=4.0))),
    ("GELU_SLOPE_NEAR", 1, lambda: gradient(F.gelu, ramp(512, low=-8.0, high=4.0))),
    ("SIGMOID_NEAR", 2, lambda: pygrad.sigmoid(ramp(512, low=-80.0, high=80.0))),
    ("SIGMOID_NEAR", 1, lambda: pygrad.sigmoid(ramp(512, low=-80.0, high=88.0))),
    ("SOFTMAX_ROW", 8, lambda: F.softmax(ramp(8, 50), dim=1)),
    ("SOFTMAX_ROW", 8, lambda: F.log_softmax(ramp(8, 50), dim=-1)),
    ("SOFTMAX_ROW", 8, cross_entropy_backward),
    ("SOFTMAX_KEPT", 8, cross_entropy_backward),
    ("SOFTMAX_ROW", 16, hooked_cross_entropy_backward),
    ("SOFTMAX_KEPT", 0, hooked_cross_entropy_backward),
    ("SOFTMAX_ROW", 0, lambda: F.softmax(ramp(8, 50), dim=0)),
    ("TRANSPOSE_VECTORS", 1, lambda: ramp(33, 18).t().contiguous()),
    ("TRANSPOSE_VECTORS", 1, lambda: ramp(33, 18, dtype=np.float64).t().contiguous()),
    ("TRANSPOSE_VECTORS", 0, lambda: ramp(33, 18).contiguous()),
    ("LAYER_COLUMNS", 1, lambda: layer_norm_backward(4)),
    ("LAYER_COLUMNS", 0, lambda: layer_norm_backward(3)),
    ("GATHER_ROWS", 1, lambda: F.embedding(pygrad.tensor([3, 1, 1]), ramp(5, 16))),
    ("GATHER_ROWS", 1, lambda: ramp(5, 16).index_select(0, pygrad.tensor([4, 0]))),
    ("GATHER_ROWS", 1, lambda: ramp(5, 16)[pygrad.tensor([4, -1])]),
    ("EACH_SPLAT", 2, lambda: ramp(2, 512) + ramp(2, 1)),
    ("EACH_SPLAT", 0, lambda: ramp(2, 512, dtype=np.float64) + ramp(2, 1, dtype=np.float64)),
    ("GATHER_ELEMENTS", 1, lambda: pygrad.gather(ramp(2, 2), 1, pygrad.tensor([[0], [1]]))),
    ("GATHER_ELEMENTS", 0, lambda: pygrad.gather(ramp(2).bool(), 0, pygrad.tensor([0]))),
    ("GATHER_ROWS", 0, lambda: ramp(5, 16).index_select(1, pygrad.tensor([4, 0]))),
    ("FOLD_ROWS", 1, lambda: ramp(30, 1024).sum(1)),
    ("FOLD_ROWS", 1, lambda: ramp(30, 1000)[::2, :999].amax(1)),
    ("FOLD_ROWS", 0, lambda: ramp(3, 1025).sum(1)),
    ("SUM_BLOCKS", 2, lambda: ramp(2, 8200).sum()),
    ("SUM_BLOCKS", 2, lambda: ramp(2, 8200).sum(1)),
    ("SUM_COLUMNS", 2, lambda: ramp(1000, 600).sum(0)),
    ("SUM_COLUMNS", 0, lambda: ramp(1000, 600).t().sum(0)),
    ("CONV_BOXES", 1, lambda: convolve((1, 3, 8, 8), (4, 3, 3, 3))),
    ("CONV_TILES", 1, lambda: convolve((1, 3, 10, 10), (4, 3, 3, 3))),
    ("CONV_TILES", 2, lambda: convolve((1, 3, 10, 10), (8, 3, 3, 3))),
    ("CONV_TILES", 0, lambda: convolve((1, 3, 10, 10), (4, 3, 3, 3), dtype=np.float64)),
    ("CONV_TILES", 0, lambda: convolve((1, 3, 10, 5), (4, 3, 3, 3))),
    ("CONV_TILES", 3, lambda: convolve((1, 3, 10, 10), (3, 1, 3, 3), groups=3)),
    ("CONV_TILES", 0, lambda: convolve((1, 3, 4, 10), (3, 1, 3, 3), groups=3)),
    ("CONV_LINES", 3, lambda: convolve((1, 3, 8, 8), (3, 1, 3, 3), groups=3)),
    ("CONV_LINES", 0, lambda: convolve((1, 3, 8, 8), (3, 3, 3, 3))),
    ("CONV_PRODUCTS", 0, lambda: convolve((1, 3, 8, 8), (4, 3, 3, 3))),
    ("CONV_PRODUCTS", 1, lambda: convolve((1, 3, 8, 8), (4, 3, 1, 1))),
    ("CONV_PRODUCTS", 4, lambda: convolve((1, 3, 8, 8), (4, 3, 1, 1), 0, 1)),
    ("CONV_PRODUCTS", 1, lambda: convolve((1, 3, 8, 8), (4, 3, 8, 8), 0)),
    ("CONV_PRODUCTS", 1, lambda: convolve((1, 3, 9, 9), (24, 3, 3, 3), 1)),
    ("CONV_PRODUCTS", 0, lambda: convolve((1, 3, 10, 10), (24, 3, 3, 3), 1)),
    ("CONV_MASKED", 1, lambda: convolve((1, 3, 9, 9), (4, 3, 3, 3), 1)),
    ("CONV_MASKED", 0, lambda: convolve((1, 3, 10, 10), (4, 3, 3, 3), 1)),
]


@pytest.mark.parametrize(("name", "times", "run"), TAKEN)
def test_path_is_taken(name: str, times: int, run: Callable[[], object]) -> None:
    before = _C._path_count(name)
    run()
    assert _C._path_count(name) - before == times


EACH = ("EACH_PLAIN", "EACH_SIMPLE", "EACH_WALKED", "EACH_ROWS", "GRADIENT_FUSED")
GEMM = ("GEMM_TINY", "GEMM_VECTOR", "GEMM_PACKED", "GEMM_BATCHED", "LINEAR_PLAIN")


def paths_taken(
    names: tuple[str, ...], run: Callable[..., object], *operands: object
) -> dict[str, int]:
    """How often each of those paths was taken by run(*operands), those that never were left out."""
    before = [_C._path_count(name) for name in names]
    run(*operands)
    after = [_C._path_count(name) for name in names]
    return {n: b - a for n, a, b in zip(names, before, after, strict=True) if b != a}


def gradient(f: Callable[..., Tensor], *operands: Tensor, create_graph: bool = False) -> int:
    """How many loops of its own a backward pass through f ran, other than those of ops."""
    y = f(*(x.requires_grad_() for x in operands))
    g = pygrad.ones_like(y)
    run = lambda: pygrad.autograd.grad(y, operands, g, create_graph=create_graph)  # noqa: E731
    return paths_taken(("GRADIENT_FUSED",), run).get("GRADIENT_FUSED", 0)


def test_elementwise_paths() -> None:
    """Contiguous and of one shape; single elements, other types, results in place; long rows one
    by one; short ones together.
    """
    x, y, row, column = ramp(6, 8), ramp(6, 8, low=1.0), ramp(8), ramp(6, 1)
    plain, simple, walked, rows = ({name: 1} for name in EACH[:4])
    add = pygrad.add
    assert paths_taken(EACH, add, x, y) == plain
    assert paths_taken(EACH, pygrad.relu, x) == plain
    assert paths_taken(EACH, pygrad.tanh, x[2:5]) == plain
    assert paths_taken(EACH, lambda: x + 1.5) == simple
    assert paths_taken(EACH, add, x, ramp(1, 1)) == simple
    assert paths_taken(EACH, add, x, y.double()) == simple
    assert paths_taken(EACH, add, x, pygrad.ones(()).expand(6, 8)) == simple
    assert paths_taken(EACH, lambda: x.clone().add_(y)) == simple
    assert paths_taken(EACH, add, x, row) == rows
    assert paths_taken(EACH, add, column, x) == rows
    assert paths_taken(EACH, add, ramp(6, 256), column) == walked
    assert paths_taken(EACH, add, x.t(), y.t()) == walked
    assert paths_taken(EACH, pygrad.exp, x[:, ::2]) == walked


def test_gradients_are_one_loop_each() -> None:
    """Of first order; of an activation also one that is itself differentiated."""
    assert gradient(pygrad.tanh, ramp(6, 8)) == 1
    assert gradient(F.silu, ramp(6, 8)) == 1
    assert gradient(pygrad.mul, ramp(6, 8), ramp(6, 8)) == 2
    assert gradient(pygrad.add, ramp(6, 8), ramp(6, 8)) == 0
    assert gradient(pygrad.tanh, ramp(6, 8), create_graph=True) == 1
    assert gradient(pygrad.sin, ramp(6, 8)) == 1
    assert gradient(pygrad.sin, ramp(6, 8), create_graph=True) == 0


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_matrix_product_paths(dtype: type) -> None:
    square, small, vector = (
        ramp(64, 64, dtype=dtype),
        ramp(4, 4, dtype=dtype),
        ramp(64, dtype=dtype),
    )
    batch = ramp(3, 64, 64, dtype=dtype)
    assert paths_taken(GEMM, pygrad.mm, small, small) == {"GEMM_TINY": 1}
    assert paths_taken(GEMM, pygrad.mm, square, square) == {"GEMM_PACKED": 1}
    assert paths_taken(GEMM, pygrad.mm, square.t(), square[:, ::2]) == {"GEMM_PACKED": 1}
    assert paths_taken(GEMM, pygrad.mv, square, vector) == {"GEMM_VECTOR": 1}
    assert paths_taken(GEMM, pygrad.mm, vector[None], square) == {"GEMM_VECTOR": 1}
    assert paths_taken(GEMM, pygrad.bmm, batch, batch) == {"GEMM_BATCHED": 1, "GEMM_PACKED": 3}
    assert paths_taken(GEMM, pygrad.bmm, batch[:1], batch[:1]) == {"GEMM_PACKED": 1}
    assert paths_taken(GEMM, pygrad.matmul, batch, square) == {"GEMM_PACKED": 1}
    assert paths_taken(GEMM, F.linear, batch, square) == {"GEMM_PACKED": 1, "LINEAR_PLAIN": 1}
    assert paths_taken(GEMM, F.linear, batch, square.requires_grad_()) == {"GEMM_PACKED": 1}


def test_integer_products_take_no_path_of_floats() -> None:
    assert (
        paths_taken(GEMM, pygrad.mm, ramp(8, 8, dtype=np.int64), ramp(8, 8, dtype=np.int64)) == {}
    )


def test_norm_and_sort_paths() -> None:
    assert paths_taken(("LAYER_ROWS",), lambda: F.layer_norm(ramp(4, 20), (20,))) == {
        "LAYER_ROWS": 1
    }
    assert paths_taken(("LAYER_ROWS",), lambda: F.rms_norm(ramp(4, 20), (20,))) == {}
    assert paths_taken(("SORT_RADIX",), lambda: ramp(3, 1000).sort(1)) == {"SORT_RADIX": 3}
    assert paths_taken(("SORT_RADIX",), lambda: ramp(1000).argsort()) == {"SORT_RADIX": 1}
    assert paths_taken(("SORT_RADIX",), lambda: ramp(3, 1000).sort(0)) == {}
    assert paths_taken(("SORT_RADIX",), lambda: ramp(100).sort()) == {}


@pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW"])
def test_step_paths(name: str) -> None:
    """A parameter that lies in memory as its gradient does is one loop, any other is walked."""
    flat, turned = ramp(4, 6).requires_grad_(), ramp(4, 6).t().detach().requires_grad_()
    gaps = ramp(4, 6)[:, ::2].detach().requires_grad_()
    for p in (flat, turned, gaps):
        p.grad = pygrad.empty_like(p).fill_(1.0)
    step = getattr(pygrad.optim, name)([flat, turned, gaps], lr=0.1).step
    assert paths_taken(("STEP_FLAT",), step) == {"STEP_FLAT": 2}


@pytest.mark.parametrize("fold", ["sum", "nansum", "prod", "amax", "amin", "var", "mean"])
@pytest.mark.parametrize("n", [2, 3, 31, 33, 100, 1000, 1024, 1027, 2048, 8200, 20000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layouts_give_the_same_bits(fold: str, n: int, dtype: type) -> None:
    """A reduction's order follows from the shape alone: rows, columns and scattered ones agree."""
    values = np.cos(np.arange(21 * n)).reshape(n, 21).astype(dtype)
    down = pygrad.from_numpy(values)
    along = down.t().contiguous()
    wide = pygrad.zeros(n, 42, dtype=down.dtype)
    wide[:, ::2] = down
    rows = getattr(along, fold)(1).tolist()
    for other in (
        getattr(down, fold)(0),
        getattr(wide[:, ::2], fold)(0),
        getattr(along.t(), fold)(0),
    ):
        assert other.tolist() == rows


def test_unknown_path() -> None:
    with pytest.raises(ValueError, match="no path is called slow"):
        _C._path_count("slow")


def test_near_and_far_elements_do_not_see_each_other() -> None:
    """An element's bits are the same in a block that is near throughout and in one that is not."""
    near = ramp(256)
    mixed = pygrad.cat([near[:128], pygrad.full((128,), 5.0)])
    assert F.gelu(mixed)[:128].tolist() == F.gelu(near)[:128].tolist()


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (4, 4), (7, 8), (8, 33), (64, 64), (2, 9, 6)])
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.int64, np.float32, np.float64])
def test_transposing_copies(shape: tuple[int, ...], dtype: type) -> None:
    values: npt.NDArray[np.generic] = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    copied = pygrad.from_numpy(values).transpose(-1, -2).contiguous()
    np.testing.assert_array_equal(copied.numpy(), values.swapaxes(-1, -2))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 15, 255, 256, 257, 1003])
def test_softmax_rows_of_any_length(n: int) -> None:
    values = np.cos(np.arange(3 * n) * 1.7).reshape(3, n) * 30
    x = pygrad.from_numpy(values.astype(np.float32))
    exact = np.exp(values.astype(np.float32).astype(np.float64))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(F.softmax(x, dim=1).numpy(), exact, rtol=4e-6, atol=1e-30)
    np.testing.assert_allclose(F.log_softmax(x, dim=1).numpy(), np.log(exact), rtol=2e-6, atol=3e-6)


@pytest.mark.parametrize("width", [1, 5, 16, 17, 40, 128])
@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 12])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_gathered_rows(width: int, n: int, dtype: type) -> None:
    table = np.arange(9 * width).astype(dtype).reshape(9, width)
    index = np.arange(n) * 5 % 9
    x, at = pygrad.from_numpy(table), pygrad.from_numpy(index)
    np.testing.assert_array_equal(x.index_select(0, at).numpy(), table[index])
    for bad in (-1, 9):
        for where in range(n):
            wrong = index.copy()
            wrong[where] = bad
            with pytest.raises(IndexError, match="index out of range in self"):
                x.index_select(0, pygrad.from_numpy(wrong))


@pytest.mark.parametrize("n", [1, 3, 17, 256, 1003])
def test_log_softmax_gradient_from_powers_and_from_the_result(n: int) -> None:
    values = np.cos(np.arange(3 * n) * 1.7).reshape(3, n).astype(np.float32) * 30
    g = ramp(3, n)
    exact = np.exp(values - values.max(axis=1, keepdims=True), dtype=np.float64)
    exact = g.numpy() - exact / exact.sum(axis=1, keepdims=True) * g.numpy().sum(
        axis=1, keepdims=True, dtype=np.float64
    )
    for hooks in (False, True):
        x = pygrad.from_numpy(values).requires_grad_()
        with (
            pygrad.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t)
            if hooks
            else nullcontext()
        ):
            F.log_softmax(x, 1).backward(g)
        assert x.grad is not None
        np.testing.assert_allclose(x.grad.numpy(), exact, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 18, 255, 257, 1003])
def test_each_softmax_row_has_its_own_maximum(n: int) -> None:
    """It is found while the row before is made, wherever it stands."""
    values = np.zeros((n + 2, n), np.float32)
    levels = np.array([0, 3000, -3000, 100], np.float32)
    for i in range(n + 2):
        values[i] = levels[i % 4]
        values[i, i % n] += 2
    y = F.softmax(pygrad.from_numpy(values), dim=1).numpy()
    z = F.log_softmax(pygrad.from_numpy(values), dim=1).numpy()
    exact = np.exp(values.astype(np.float64) - values.max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(y, exact, rtol=2e-6)
    np.testing.assert_allclose(z, np.log(exact), rtol=2e-6, atol=1e-6)


def test_softmax_of_infinities() -> None:
    inf, nan = float("inf"), float("nan")
    x = pygrad.tensor(
        [
            [0.0, -inf, -inf],
            [-inf, -inf, -inf],
            [1.0, nan, 0.0],
            [inf, 0.0, 0.0],
            [0.0, -89.0, -200.0],
        ]
    )
    y = F.softmax(x, dim=1)
    assert y[0].tolist() == [1.0, 0.0, 0.0]
    assert all(y[1:3].isnan().flatten().tolist())
    assert y[3].isnan().tolist()[0]
    assert y[4].tolist() == [1.0, 0.0, 0.0]


@pytest.mark.parametrize("n", [2, 3, 4, 5, 17, 300])
@pytest.mark.parametrize("size", [1e4, 2.0**27, 5e8, 1e10, 1e30, 3.4e38])
def test_softmax_of_large_maxima(size: float, n: int) -> None:
    """A maximum beside which the limit of the exponential rounds away, of either sign."""
    for most, rest in [(size, 0.0), (0.0, -size), (-size / 2, -size), (-size, -math.inf)]:
        values = np.full((3, n), rest, np.float32)
        values[range(3), [0, n - 1, n // 2]] = most
        exact = (values == np.float32(most)).astype(np.float32)
        t, g = pygrad.from_numpy(values), ramp(3, n)
        for dim, x in [(1, t), (0, t.t().contiguous())]:
            turn = (lambda y: y) if dim else (lambda y: y.t())
            np.testing.assert_array_equal(turn(F.softmax(x, dim)).numpy(), exact)
            np.testing.assert_array_equal(turn(F.softmin(-x, dim)).numpy(), exact)
            kept = turn(F.log_softmax(x, dim)).numpy()
            np.testing.assert_array_equal(kept, values - np.float32(most))
            np.testing.assert_array_equal(x.logsumexp(dim).numpy(), np.float32(most))
            x = x.clone().requires_grad_()
            F.log_softmax(x, dim).backward(turn(g))
            assert x.grad is not None
            expected = g.numpy() - exact * g.numpy().sum(1, keepdims=True)
            np.testing.assert_allclose(turn(x.grad).numpy(), expected, atol=1e-4)
        hard = F.cross_entropy(t, pygrad.tensor([0, n - 1, n // 2]))
        assert hard.item() == 0
        one = pygrad.ones(3, 1, 1)
        keys, content = pygrad.ones(3, n, 1), pygrad.arange(3.0 * n).reshape(3, n, 1)
        found = F.scaled_dot_product_attention(one, keys, content, attn_mask=t[:, None])
        assert found.flatten().tolist() == [0, 2 * n - 1, 2 * n + n // 2]
