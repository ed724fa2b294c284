"""Bad input: PyTorch's exception, state as before, no trap. The words are PyTorch's own, saved
here.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers import no_breakdown

import pygrad


def t(torch: Any, *shape: int, dtype: str = "float32") -> Any:
    """A tensor of ones."""
    return torch.ones(shape, dtype=getattr(torch, dtype))


SHAPES = [
    (
        lambda torch: t(torch, 2, 3) + t(torch, 2, 4),
        RuntimeError,
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
    ),
    (
        lambda torch: t(torch, 2, 3) @ t(torch, 2, 3),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    ),
    (
        lambda torch: t(torch, 2, 3).mv(t(torch, 2)),
        RuntimeError,
        "size mismatch, got input (2), mat (2x3), vec (2)",
    ),
    (
        lambda torch: t(torch, 3).dot(t(torch, 2)),
        RuntimeError,
        "inconsistent tensor size, expected tensor [3] and src [2] to have the same number of "
        "elements, but got 3 and 2 elements respectively",
    ),
    (lambda torch: t(torch, 2, 3).bmm(t(torch, 2, 3)), RuntimeError, "batch1 must be a 3D tensor"),
    (
        lambda torch: t(torch, 2, 3).view(4),
        RuntimeError,
        "shape '[4]' is invalid for input of size 6",
    ),
    (
        lambda torch: torch.einsum("i...,i...", t(torch, 3, 2, 2), t(torch, 3, 5, 2)),
        RuntimeError,
        "einsum(): dimension 1 covered by ellipsis in operand 1has size 5 which does not broadcast "
        "with previously seen ellipsis with size 2 for the respective dimension",
    ),
    (
        lambda torch: torch.linalg.norm(t(torch, 2, 3, 4), dim=(0, 1, 2)),
        RuntimeError,
        "linalg.norm: If dim is specified, it must be of length 1 or 2. Got [0, 1, 2]",
    ),
    (lambda torch: t(torch, 2, 3).view(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (
        lambda torch: t(torch, 2, 3).t().view(6),
        RuntimeError,
        "view size is not compatible with input tensor's size and stride",
    ),
    (
        lambda torch: t(torch, 2, 3).expand(4, 3),
        RuntimeError,
        "The expanded size of the tensor (4) must match the existing size (2) at non-singleton "
        "dimension 0.  Target sizes: [4, 3].  Tensor sizes: [2, 3]",
    ),
    (
        lambda torch: torch.cat([t(torch, 2, 3), t(torch, 2, 4)]),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for "
        "tensor number 1 in the list.",
    ),
    (lambda torch: torch.cat([]), ValueError, "torch.cat(): expected a non-empty list of Tensors"),
    (
        lambda torch: torch.stack([t(torch, 2), t(torch, 3)]),
        RuntimeError,
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
    ),
    (
        lambda torch: t(torch, 2, 3).split([1, 2], 0),
        RuntimeError,
        "split_with_sizes expects split_sizes to sum exactly to 2 (input tensor's size at "
        "dimension 0), but got split_sizes=[1, 2]",
    ),
    (
        lambda torch: t(torch, 3).t_().permute(0, 1),
        RuntimeError,
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length "
        "of the desired ordering of dimensions i.e. input.dim() = 1 is not equal to len(dims) = 2",
    ),
    (
        lambda torch: t(torch, 2, 2, 2).t(),
        RuntimeError,
        "t() expects a tensor with <= 2 dimensions, but self is 3D",
    ),
    (
        lambda torch: torch.nn.functional.linear(t(torch, 2, 3), t(torch, 4, 2)),
        RuntimeError,
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x4)",
    ),
    (
        lambda torch: torch.nn.functional.conv2d(t(torch, 1, 3, 4, 4), t(torch, 2, 2, 3, 3)),
        RuntimeError,
        "Given groups=1, weight of size [2, 2, 3, 3], expected input[1, 3, 4, 4] to have 2 "
        "channels, but got 3 channels instead",
    ),
    (
        lambda torch: torch.nn.functional.cross_entropy(t(torch, 2, 3), torch.tensor([0])),
        ValueError,
        "Expected input batch_size (2) to match target batch_size (1).",
    ),
]

INDICES = [
    (
        lambda torch: t(torch, 2, 3)[2],
        IndexError,
        "index 2 is out of bounds for dimension 0 with size 2",
    ),
    (
        lambda torch: t(torch, 2, 3)[0, 0, 0],
        IndexError,
        "too many indices for tensor of dimension 2",
    ),
    (
        lambda torch: t(torch, 2, 3)[torch.tensor([5])],
        IndexError,
        "index 5 is out of bounds for dimension 0 with size 2",
    ),
    (
        lambda torch: t(torch, 2, 3)[t(torch, 3, dtype="bool")],
        IndexError,
        "The shape of the mask [3] at index 0 does not match the shape of the indexed tensor [2, "
        "3] at index 0",
    ),
    (lambda torch: t(torch, 2)[::-1], ValueError, "step must be greater than zero"),
    (lambda torch: t(torch, 2)["a"], TypeError, "new(): invalid data type 'str'"),
    (
        lambda torch: t(torch, 2)[1.5],
        IndexError,
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid "
        "indices (got float)",
    ),
    (
        lambda torch: t(torch, 2, 3).sum(2),
        IndexError,
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    (
        lambda torch: t(torch, 2, 3).sum([0, 0]),
        RuntimeError,
        "dim 0 appears multiple times in the list of dims",
    ),
    (
        lambda torch: t(torch, 2, 3).select(0, 5),
        IndexError,
        "select(): index 5 out of range for tensor of size [2, 3] at dimension 0",
    ),
    (
        lambda torch: t(torch, 2, 3).narrow(0, 1, 5),
        RuntimeError,
        "start (1) + length (5) exceeds dimension size (2).",
    ),
    (
        lambda torch: t(torch, 2, 3).gather(0, torch.tensor([[9]])),
        RuntimeError,
        "index 9 is out of bounds for dimension 0 with size 2",
    ),
    (
        lambda torch: t(torch, 2, 3).index_select(0, torch.tensor([7])),
        IndexError,
        "index out of range in self",
    ),
    (
        lambda torch: torch.nn.functional.embedding(torch.tensor([4]), t(torch, 3, 2)),
        IndexError,
        "index out of range in self",
    ),
    (
        lambda torch: torch.nn.functional.nll_loss(t(torch, 2, 3), torch.tensor([0, 3])),
        IndexError,
        "Target 3 is out of bounds.",
    ),
    (
        lambda torch: torch.nn.functional.one_hot(torch.tensor([3]), 2),
        RuntimeError,
        "Class values must be smaller than num_classes.",
    ),
    (lambda torch: t(torch, 3).topk(4), RuntimeError, "selected index k out of range"),
    (
        lambda torch: t(torch, 2, 0).max(),
        RuntimeError,
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
        "reduction dim with the 'dim' argument.",
    ),
    (
        lambda torch: t(torch, 0).argmax(),
        IndexError,
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
]

TYPES = [
    (
        lambda torch: torch.exp(1),
        TypeError,
        "exp(): argument 'input' (position 1) must be Tensor, not int",
    ),
    (
        lambda torch: torch.exp("x"),
        TypeError,
        "exp(): argument 'input' (position 1) must be Tensor, not str",
    ),
    (
        lambda torch: torch.exp(None),
        TypeError,
        "exp(): argument 'input' (position 1) must be Tensor, not NoneType",
    ),
    (
        lambda torch: torch.exp([1.0]),
        TypeError,
        "exp(): argument 'input' (position 1) must be Tensor, not list",
    ),
    (
        lambda torch: torch.exp(t(torch, 2), bad=1),
        TypeError,
        "exp() got an unexpected keyword argument 'bad'",
    ),
    (
        lambda torch: torch.exp(t(torch, 2), t(torch, 2)),
        TypeError,
        "exp() takes 1 positional argument but 2 were given",
    ),
    (
        lambda torch: torch.exp(),
        TypeError,
        'exp() missing 1 required positional arguments: "input"',
    ),
    (
        lambda torch: t(torch, 2).sum(dim="a"),
        TypeError,
        "sum() received an invalid combination of arguments",
    ),
    (
        lambda torch: t(torch, 2) + "a",
        TypeError,
        "unsupported operand type(s) for +: 'Tensor' and 'str'",
    ),
    (
        lambda torch: t(torch, 2) + None,
        TypeError,
        "unsupported operand type(s) for +: 'Tensor' and 'NoneType'",
    ),
    (
        lambda torch: "a" - t(torch, 2),
        TypeError,
        "unsupported operand type(s) for -: 'str' and 'Tensor'",
    ),
    (
        lambda torch: t(torch, 2).view("a"),
        TypeError,
        "view() received an invalid combination of arguments",
    ),
    (
        lambda torch: t(torch, 2, dtype="bool") - t(torch, 2, dtype="bool"),
        RuntimeError,
        "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
        "`logical_xor()` operator instead.",
    ),
    (
        lambda torch: t(torch, 2, dtype="int64").mean(),
        RuntimeError,
        "mean(): could not infer output dtype. Input dtype must be either a floating point or "
        "complex dtype. Got: Long",
    ),
    (
        lambda torch: t(torch, 2, dtype="int64").add_(1.5),
        RuntimeError,
        "result type Float can't be cast to the desired output type Long",
    ),
    (
        lambda torch: t(torch, 2, 2) @ t(torch, 2, 2).double(),
        RuntimeError,
        "expected m1 and m2 to have the same dtype, but got: float != double",
    ),
    (
        lambda torch: t(torch, 2) & t(torch, 2),
        RuntimeError,
        "\"bitwise_and_cpu\" not implemented for 'Float'",
    ),
    (
        lambda torch: torch.nn.functional.softmax(t(torch, 2, dtype="int64"), 0),
        RuntimeError,
        "\"softmax_lastdim_kernel_impl\" not implemented for 'Long'",
    ),
    (
        lambda torch: torch.nn.functional.softmax(t(torch, 2, 2, dtype="int64"), 0),
        NotImplementedError,
        "\"softmax_kernel_impl\" not implemented for 'Long'",
    ),
    (
        lambda torch: torch.nn.functional.layer_norm(t(torch, 2, 2, dtype="int64"), (2,)),
        NotImplementedError,
        "\"LayerNormKernelImpl\" not implemented for 'Long'",
    ),
    (
        lambda torch: torch.nn.functional.batch_norm(
            t(torch, 2, 2, dtype="int64"), None, None, training=True
        ),
        NotImplementedError,
        "\"batch_norm\" not implemented for 'Long'",
    ),
    (
        lambda torch: torch.nn.functional.group_norm(t(torch, 2, 2, 2, dtype="int64"), 1),
        NotImplementedError,
        "\"GroupNormKernelImpl\" not implemented for 'Long'",
    ),
    (
        lambda torch: torch.where(t(torch, 2), t(torch, 2), t(torch, 2)),
        RuntimeError,
        "where expected condition to be a boolean tensor, but got a tensor with dtype Float",
    ),
    (
        lambda torch: t(torch, 2).gather(0, t(torch, 2)),
        RuntimeError,
        "gather(): Expected dtype int32/int64 for index",
    ),
    (
        lambda torch: bool(t(torch, 2)),
        RuntimeError,
        "Boolean value of Tensor with more than one value is ambiguous",
    ),
    (
        lambda torch: t(torch, 2).item(),
        RuntimeError,
        "a Tensor with 2 elements cannot be converted to Scalar",
    ),
    (lambda torch: len(t(torch)), TypeError, "len() of a 0-d tensor"),
    (lambda torch: list(t(torch)), TypeError, "iteration over a 0-d tensor"),
    (
        lambda torch: t(torch, 2).__index__(),
        TypeError,
        "only integer tensors of a single element can be converted to an index",
    ),
]

DATA = [
    (
        lambda torch: torch.tensor([[1, 2], [3]]),
        ValueError,
        "expected sequence of length 2 at dim 1 (got 1)",
    ),
    (lambda torch: torch.tensor([[1], 2]), TypeError, "not a sequence"),
    (lambda torch: torch.tensor([1, [2]]), TypeError, ""),
    (lambda torch: torch.tensor("abc"), TypeError, "new(): invalid data type 'str'"),
    (lambda torch: torch.tensor([None]), RuntimeError, "Could not infer dtype of NoneType"),
    (lambda torch: torch.tensor(object()), RuntimeError, "Could not infer dtype of object"),
    (
        lambda torch: torch.tensor([1], dtype="float"),
        TypeError,
        "tensor(): argument 'dtype' must be torch.dtype, not str",
    ),
    (lambda torch: torch.tensor(1 << 70), ValueError, "Overflow when unpacking long long"),
    (
        lambda torch: torch.ones(-1),
        RuntimeError,
        "Trying to create tensor with negative dimension -1: [-1]",
    ),
    (
        lambda torch: torch.ones(2, device="cuda"),
        (RuntimeError, AssertionError, NotImplementedError),
        "",
    ),
    (lambda torch: torch.arange(0, 5, 0), RuntimeError, "step must be nonzero"),
    (
        lambda torch: torch.arange(5, 0, 1),
        RuntimeError,
        "upper bound and lower bound inconsistent with step sign",
    ),
    (lambda torch: torch.linspace(0, 1, -1), RuntimeError, "number of steps must be non-negative"),
    (lambda torch: torch.full((2,), t(torch, 2)), TypeError, ""),
    (lambda torch: torch.range(0, 5, 0), RuntimeError, ""),
]

ARGUMENTS = [
    (
        lambda torch: torch.nn.functional.dropout(t(torch, 2), 1.5),
        ValueError,
        "dropout probability has to be between 0 and 1, but got 1.5",
    ),
    (
        lambda torch: torch.div(t(torch, 2), 2, rounding_mode="up"),
        RuntimeError,
        "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found 'up'",
    ),
    (
        lambda torch: torch.nn.functional.mse_loss(t(torch, 2), t(torch, 2), reduction="max"),
        ValueError,
        "max is not a valid value for reduction",
    ),
    (
        lambda torch: torch.nn.functional.gelu(t(torch, 2), approximate="x"),
        RuntimeError,
        "approximate argument must be either none or tanh.",
    ),
    (
        lambda torch: torch.clamp(t(torch, 2)),
        RuntimeError,
        "torch.clamp: At least one of 'min' or 'max' must not be None",
    ),
    (
        lambda torch: t(torch, 2).unfold(0, 3, 1),
        RuntimeError,
        "maximum size for tensor at dimension 0 is 2 but size is 3",
    ),
    (
        lambda torch: torch.nn.functional.max_pool2d(t(torch, 1, 1, 2, 2), 3),
        RuntimeError,
        "Given input size: (1x2x2). Calculated output size: (1x0x0). Output size is too small",
    ),
    (
        lambda torch: torch.multinomial(t(torch, 3), 4),
        RuntimeError,
        "cannot sample n_sample > prob_dist.size(-1) samples without replacement",
    ),
    (
        lambda torch: torch.bernoulli(t(torch, 2) * 2),
        RuntimeError,
        "Expected p_in >= 0 && p_in <= 1 to be true",
    ),
    (
        lambda torch: t(torch, 2).normal_(0, -1),
        RuntimeError,
        "normal expects std >= 0.0, but found std -1",
    ),
    (
        lambda torch: t(torch, 2).random_(5, 2),
        RuntimeError,
        "random_ expects 'from' to be less than 'to', but got from=5 >= to=2",
    ),
    (lambda torch: torch.optim.SGD([t(torch, 2)], lr=-1), ValueError, "Invalid learning rate: -1"),
    (lambda torch: torch.optim.SGD([], lr=1), ValueError, "optimizer got an empty parameter list"),
    (
        lambda torch: torch.nn.Linear(2, 3)(1),
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
def test_bad_input_raises(run: Callable[[Any], Any], error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        run(pygrad)
    assert not isinstance(caught.value, pygrad.EngineError)
    assert str(caught.value).startswith(message)
    assert t(pygrad, 2).sum().item() == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: pygrad.empty(1 << 33, dtype=pygrad.uint8),
        lambda: pygrad.empty(1 << 31, 1 << 31, 1 << 31),
        lambda: t(pygrad, 1).expand(1 << 33).contiguous(),
        lambda: t(pygrad, 1 << 14, 1) * t(pygrad, 1, 1 << 17),
        lambda: pygrad.arange(1 << 40),
        lambda: pygrad.eye(1 << 20),
        lambda: pygrad.randperm(1 << 33),
        lambda: t(pygrad, 10).repeat(1 << 30),
        lambda: pygrad.cat([t(pygrad, 1).expand(1 << 29)] * 4),
        lambda: pygrad.nn.functional.pad(t(pygrad, 1), (1 << 31, 0)),
        lambda: pygrad.nn.functional.one_hot(pygrad.tensor([0]), 1 << 40),
        lambda: t(pygrad, 4).resize_(1 << 40),
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
    assert t(pygrad, 3).sum().item() == 3


def test_imaginary_part_of_real_numbers_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="imag is not implemented for tensors with non-complex"):
        _ = t(pygrad, 2).imag


def test_range_is_deprecated() -> None:
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert pygrad.range(1, 3).tolist() == [1, 2, 3]


@pytest.mark.filterwarnings("ignore:This overload of add is deprecated")
@pytest.mark.parametrize("value", [None, 1, 1.5, "a", b"a", [], [1], {}, object(), float, int, ...])
@pytest.mark.parametrize(
    "name",
    ["add", "sum", "view", "cat", "softmax", "where", "gather", "zeros", "matmul", "to", "sort"],
)
def test_any_object_as_any_argument_is_no_breakdown(name: str, value: Any) -> None:
    x = t(pygrad, 2, 3)
    function = getattr(pygrad, name, None) or getattr(x, name)
    for args in ((value,), (x, value), (x, 0, value), (value, x), (x, x, value)):
        with no_breakdown():
            function(*args)
        with no_breakdown():
            function(*args, dim=value)


def test_handle_of_a_dead_tensor_is_refused_or_harmless() -> None:
    with pytest.raises((AttributeError, TypeError)):
        pygrad.exp(object.__new__(pygrad.Tensor))


def test_pytest_ends_the_traceback_of_a_comparison_at_the_callers_line(tmp_path: Path) -> None:
    (tmp_path / "test_of_a_user.py").write_text(
        "import pygrad as torch\n\n"
        "def test_values():\n    torch.testing.assert_close(torch.ones(2), torch.zeros(2))\n\n"
        "def test_kinds():\n    torch.testing.assert_close(torch.ones(2), 'text')\n\n"
        "def test_lengths():\n    torch.testing.assert_close([1], [1, 2])\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "test_of_a_user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "3 failed" in done.stdout
    assert "Tensor-likes are not close!" in done.stdout
    assert "_comparison.py" not in done.stdout
