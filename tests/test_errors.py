"""Bad input: PyTorch's exception, state as before, no trap. The words are PyTorch's own, saved here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pygrad
import pytest
from helpers import no_breakdown

F = pygrad.nn.functional


def t(*shape: int, dtype: Any = None) -> Any:
    return pygrad.ones(shape, dtype=dtype)


SHAPES = [
    (
        lambda: t(2, 3) + t(2, 4),
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    (
        lambda: t(2, 3) @ t(2, 3),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    ),
    (lambda: t(2, 3).mv(t(2)), RuntimeError, "size mismatch, got input (2), mat (2x3), vec (2)"),
    (
        lambda: t(3).dot(t(2)),
        RuntimeError,
        "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of elements, but got 3 and 2 elements respectively",
    ),
    (lambda: t(2, 3).bmm(t(2, 3)), RuntimeError, "batch1 must be a 3D tensor"),
    (lambda: t(2, 3).view(4), RuntimeError, "shape '[4]' is invalid for input of size 6"),
    (lambda: t(2, 3).view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (
        lambda: t(2, 3).t().view(6),
        RuntimeError,
        "view size is not compatible with input tensor's size and stride",
    ),
    (
        lambda: t(2, 3).expand(4, 3),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (2) at non-singleton dimension 0.  Target sizes: [4, 3].  Tensor sizes: [2, 3]",
    ),
    (
        lambda: pygrad.cat([t(2, 3), t(2, 4)]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in the list.",
    ),
    (lambda: pygrad.cat([]), RuntimeError, "expected a non-empty list of Tensors"),
    (
        lambda: pygrad.stack([t(2), t(3)]),
        RuntimeError,
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
    ),
    (
        lambda: t(2, 3).split([1, 2], 0),
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at dimension 0), but got split_sizes=[1, 2]",
    ),
    (
        lambda: t(3).t_().permute(0, 1),
        RuntimeError,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired ordering of dimensions i.e. input.dim() = 1 is not equal to len(dims) = 2",
    ),
    (
        lambda: t(2, 2, 2).t(),
        RuntimeError,
        "t() expects a tensor with <= 2 dimensions, but self is 3D",
    ),
    (
        lambda: F.linear(t(2, 3), t(4, 2)),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)",
    ),
    (
        lambda: F.conv2d(t(1, 3, 4, 4), t(2, 2, 3, 3)),
        RuntimeError,
        "Given groups=1, weight of size [2, 2, 3, 3], expected input[1, 3, 4, 4] to have 2 channels, but got 3 channels instead",
    ),
    (
        lambda: F.cross_entropy(t(2, 3), pygrad.tensor([0])),
        ValueError,
        "Expected input batch_size (2) to match target batch_size (1).",
    ),
]

INDICES = [
    (lambda: t(2, 3)[2], IndexError, "index 2 is out of bounds for dimension 0 with size 2"),
    (lambda: t(2, 3)[0, 0, 0], IndexError, "too many indices for tensor of dimension 2"),
    (
        lambda: t(2, 3)[pygrad.tensor([5])],
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    (
        lambda: t(2, 3)[t(3, dtype=pygrad.bool)],
        IndexError,
        "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, 3] at index 0",
    ),
    (lambda: t(2)[::-1], ValueError, "step must be greater than zero"),
    (lambda: t(2)["a"], IndexError, "too many indices for tensor of dimension 1"),
    (
        lambda: t(2)[1.5],
        IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)",
    ),
    (
        lambda: t(2, 3).sum(2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (lambda: t(2, 3).sum([0, 0]), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (
        lambda: t(2, 3).select(0, 5),
        IndexError,
        "select(): index 5 out of range for tensor of size [2, 3] at dimension 0",
    ),
    (
        lambda: t(2, 3).narrow(0, 1, 5),
        RuntimeError,
        "start (1) + length (5) exceeds dimension size (2).",
    ),
    (
        lambda: t(2, 3).gather(0, pygrad.tensor([[9]])),
        RuntimeError,
        "index 9 is out of bounds for dimension 0 with size 2",
    ),
    (lambda: t(2, 3).index_select(0, pygrad.tensor([7])), IndexError, "index out of range in self"),
    (lambda: F.embedding(pygrad.tensor([4]), t(3, 2)), IndexError, "index out of range in self"),
    (lambda: F.nll_loss(t(2, 3), pygrad.tensor([0, 3])), IndexError, "Target 3 is out of bounds."),
    (
        lambda: F.one_hot(pygrad.tensor([3]), 2),
        RuntimeError,
        "Class values must be smaller than num_classes.",
    ),
    (lambda: t(3).topk(4), RuntimeError, "selected index k out of range"),
    (
        lambda: t(2, 0).max(),
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument.",
    ),
    (
        lambda: t(0).argmax(),
        IndexError,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
]

TYPES = [
    (
        lambda: pygrad.add(1, 2),
        TypeError,
        "add(): argument 'input' (position 1) must be Tensor, not int",
    ),
    (
        lambda: pygrad.exp("x"),
        TypeError,
        "exp(): argument 'input' (position 1) must be Tensor, not str",
    ),
    (
        lambda: pygrad.exp(None),
        TypeError,
        "exp(): argument 'input' (position 1) must be Tensor, not NoneType",
    ),
    (
        lambda: pygrad.exp([1.0]),
        TypeError,
        "exp(): argument 'input' (position 1) must be Tensor, not list",
    ),
    (lambda: pygrad.exp(t(2), bad=1), TypeError, "exp() got an unexpected keyword argument 'bad'"),
    (
        lambda: pygrad.exp(t(2), t(2)),
        TypeError,
        "exp() takes 1 positional argument but 2 were given",
    ),
    (lambda: pygrad.exp(), TypeError, 'exp() missing 1 required positional arguments: "input"'),
    (lambda: t(2).sum(dim="a"), TypeError, "sum() received an invalid combination of arguments"),
    (lambda: t(2) + "a", TypeError, "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    (lambda: t(2) + None, TypeError, "unsupported operand type(s) for +: 'Tensor' and 'NoneType'"),
    (lambda: t(2).view("a"), TypeError, "view() received an invalid combination of arguments"),
    (
        lambda: t(2, dtype=pygrad.bool) - t(2, dtype=pygrad.bool),
        RuntimeError,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.",
    ),
    (
        lambda: t(2, dtype=pygrad.int64).mean(),
        RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long",
    ),
    (
        lambda: t(2, dtype=pygrad.int64).add_(1.5),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
    ),
    (
        lambda: t(2, 2) @ t(2, 2).double(),
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    (lambda: t(2) & t(2), RuntimeError, "\"bitwise_and_cpu\" not implemented for 'Float'"),
    (
        lambda: F.softmax(t(2, dtype=pygrad.int64), 0),
        RuntimeError,
        "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'",
    ),
    (
        lambda: pygrad.where(t(2), t(2), t(2)),
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype Float",
    ),
    (lambda: t(2).gather(0, t(2)), RuntimeError, "gather(): Expected dtype int32/int64 for index"),
    (
        lambda: bool(t(2)),
        RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous",
    ),
    (lambda: t(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
    (lambda: len(t()), TypeError, "len() of a 0-d tensor"),
    (lambda: list(t()), TypeError, "iteration over a 0-d tensor"),
    (
        lambda: t(2).__index__(),
        TypeError,
        "only integer tensors of a single element can be converted to an index",
    ),
]

DATA = [
    (
        lambda: pygrad.tensor([[1, 2], [3]]),
        ValueError,
        "expected sequence of length 2 at dim 1 (got 1)",
    ),
    (lambda: pygrad.tensor([[1], 2]), TypeError, "not a sequence"),
    (lambda: pygrad.tensor([1, [2]]), TypeError, ""),
    (lambda: pygrad.tensor("abc"), TypeError, "new(): invalid data type 'str'"),
    (lambda: pygrad.tensor([None]), RuntimeError, "Could not infer dtype of NoneType"),
    (lambda: pygrad.tensor(object()), RuntimeError, "Could not infer dtype of object"),
    (
        lambda: pygrad.tensor([1], dtype="float"),
        TypeError,
        "tensor(): argument 'dtype' must be torch.dtype, not str",
    ),
    (lambda: pygrad.tensor(1 << 70), RuntimeError, "Overflow when unpacking long"),
    (
        lambda: pygrad.ones(-1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [-1]",
    ),
    (
        lambda: pygrad.ones(2, device="cuda"),
        (RuntimeError, AssertionError, NotImplementedError),
        "",
    ),
    (lambda: pygrad.arange(0, 5, 0), RuntimeError, "step must be nonzero"),
    (
        lambda: pygrad.arange(5, 0, 1),
        RuntimeError,
        "upper bound and lower bound inconsistent with step sign",
    ),
    (lambda: pygrad.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
    (lambda: pygrad.full((2,), t(2)), TypeError, ""),
    (lambda: pygrad.range(0, 5, 0), RuntimeError, ""),
]

ARGUMENTS = [
    (
        lambda: F.dropout(t(2), 1.5),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.5",
    ),
    (
        lambda: pygrad.div(t(2), 2, rounding_mode="up"),
        RuntimeError,
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
    ),
    (
        lambda: F.mse_loss(t(2), t(2), reduction="max"),
        ValueError,
        "max is not a valid value for reduction",
    ),
    (
        lambda: F.gelu(t(2), approximate="x"),
        RuntimeError,
        "approximate argument must be either none or tanh.",
    ),
    (
        lambda: pygrad.clamp(t(2)),
        RuntimeError,
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    ),
    (
        lambda: t(2).unfold(0, 3, 1),
        RuntimeError,
        "maximum size for tensor at dimension 0 is 2 but size is 3",
    ),
    (
        lambda: F.max_pool2d(t(1, 1, 2, 2), 3),
        RuntimeError,
        "Given input size: (1x1x2x2). Calculated output size: (1x0x0). Output size is too small",
    ),
    (
        lambda: pygrad.multinomial(t(3), 4),
        RuntimeError,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    ),
    (
        lambda: pygrad.bernoulli(t(2) * 2),
        RuntimeError,
        "Expected p_in >= 0 && p_in <= 1 to be true",
    ),
    (lambda: t(2).normal_(0, -1), RuntimeError, "normal expects std >= 0.0, but found std -1"),
    (
        lambda: t(2).random_(5, 2),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=2",
    ),
    (lambda: pygrad.optim.SGD([t(2)], lr=-1), ValueError, "Invalid learning rate: -1"),
    (lambda: pygrad.optim.SGD([], lr=1), ValueError, "optimizer got an empty parameter list"),
    (
        lambda: pygrad.nn.Linear(2, 3)(1),
        TypeError,
        "linear(): argument 'input' (position 1) must be Tensor, not int",
    ),
]

TABLE = {"shape": SHAPES, "index": INDICES, "type": TYPES, "data": DATA, "argument": ARGUMENTS}
CASES = [
    pytest.param(*case, id=f"{kind}-{k}")
    for kind, cases in TABLE.items()
    for k, case in enumerate(cases)
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("run", "error", "message"), CASES)
def test_bad_input_raises(run: Callable[[], Any], error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        run()
    assert not isinstance(caught.value, pygrad.EngineError)
    assert str(caught.value).startswith(message)
    assert t(2).sum().item() == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: pygrad.empty(1 << 33, dtype=pygrad.uint8),
        lambda: pygrad.empty(1 << 31, 1 << 31, 1 << 31),
        lambda: t(1).expand(1 << 33).contiguous(),
        lambda: t(1 << 14, 1) * t(1, 1 << 17),
        lambda: pygrad.arange(1 << 40),
        lambda: pygrad.eye(1 << 20),
        lambda: pygrad.randperm(1 << 33),
        lambda: t(10).repeat(1 << 30),
        lambda: pygrad.cat([t(1).expand(1 << 29)] * 4),
        lambda: F.pad(t(1), (1 << 31, 0)),
        lambda: F.one_hot(pygrad.tensor([0]), 1 << 40),
        lambda: t(4).resize_(1 << 40),
        lambda: pygrad.linspace(0, 1, 1 << 40),
        lambda: pygrad.zeros(1).as_strided((1 << 40,), (1,)),
    ],
)
def test_size_over_four_gibibytes_is_an_error(make: Callable[[], Any]) -> None:
    before = pygrad.pg_live_count()
    with pytest.raises(RuntimeError) as caught:
        make()
    assert not isinstance(caught.value, pygrad.EngineError)
    del caught
    import gc

    gc.collect()
    assert pygrad.pg_live_count() <= before
    assert t(3).sum().item() == 3


@pytest.mark.parametrize(
    "run",
    [
        lambda: t(2).half(),
        lambda: t(2).to(pygrad.complex64),
        lambda: pygrad.ones(2, dtype=pygrad.float16),
        lambda: t(2).imag,
    ],
)
def test_dtype_that_does_not_exist_is_an_error(run: Callable[[], Any]) -> None:
    with pytest.raises((NotImplementedError, RuntimeError, AttributeError)):
        run()


def test_range_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert pygrad.range(1, 3).tolist() == [1, 2, 3]


@pytest.mark.parametrize("value", [None, 1, 1.5, "a", b"a", [], [1], {}, object(), float, int, ...])
@pytest.mark.parametrize(
    "name",
    ["add", "sum", "view", "cat", "softmax", "where", "gather", "zeros", "matmul", "to", "sort"],
)
def test_any_object_as_any_argument_is_no_breakdown(name: str, value: Any) -> None:
    x = t(2, 3)
    function = getattr(pygrad, name, None) or getattr(x, name)
    for args in ((value,), (x, value), (x, 0, value), (value, x), (x, x, value)):
        with no_breakdown():
            function(*args)
        with no_breakdown():
            function(*args, dim=value)


def test_handle_of_a_dead_tensor_is_refused_or_harmless() -> None:
    with pytest.raises((AttributeError, TypeError)):
        pygrad.exp(object.__new__(pygrad.Tensor))
