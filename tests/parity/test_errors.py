"""The saved words of ../test_errors.py are PyTorch's."""

from __future__ import annotations

import warnings
from array import array
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from oracle import result_or_error, torch
from test_errors import CASES

import pygrad


@pytest.mark.parametrize(("run", "error", "message"), CASES)
def test_saved_words_are_pytorchs(run: Callable[[Any], Any], error: Any, message: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(error) as caught:
            run(torch)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    "call",
    [
        'x.max("a")',
        "x.max(None)",
        "x.max(1.5)",
        "x.max(foo=1)",
        'x.max(dim="a")',
        'x.min("a")',
        'torch.max(x, 0, "a")',
        "torch.max(x, 0, 1.5)",
        "torch.max(x, x, x)",
        "torch.max(x, 0, torch.float32)",
        "torch.max(1, 0, x)",
        'torch.max(x, 1, "a", 4, 5)',
        'torch.min(x, 0, "a")',
        'x.sort("a")',
        "x.sort(1, 2, 3, 4)",
        'x.sort(stable="a")',
        'x.argsort(0, "a")',
        'x.sum("a")',
        'x.sum(dim="a")',
        "x.sum(foo=1)",
        'x.prod("a")',
    ],
)
def test_whole_message_of_overloads(call: str) -> None:
    """PyTorch says of each overload with as many parts as arguments why it did not match."""
    texts = [
        result_or_error(lambda t=t: eval(call, {"torch": t, "x": t.ones(2, 3)}))
        for t in (pygrad, torch)
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "call",
    [
        "nn.Conv2d(3, 8, 3)(image.double())",
        "nn.Conv2d(3, 8, 3)(image.long())",
        "nn.Conv2d(3, 8, 3, bias=False)(image.double())",
        "nn.Conv2d(3, 8, 3).double()(image)",
        "nn.Conv2d(3, 8, 3, bias=False).double()(image)",
        "nn.Conv1d(3, 8, 3)(image[:, :, 0].double())",
        "nn.ConvTranspose2d(3, 8, 3)(image.double())",
        "nn.BatchNorm2d(3)(image.double())",
        "nn.BatchNorm2d(3).double()(image)",
        "nn.LayerNorm(16)(image.double())",
        "nn.LayerNorm(16).double()(image)",
        "nn.GroupNorm(1, 3)(image.double())",
        "nn.functional.unfold(image[:, :0], 2)",
        "nn.functional.fold(image[0, :, :0], (4, 4), 2)",
        "image.repeat_interleave(torch.tensor([1, 2]), dim=-1)",
        "torch.unravel_index(torch.tensor([1]), (2, 0))",
    ],
)
def test_words_of_layers_for_other_inputs(call: str) -> None:
    texts = [
        result_or_error(
            lambda t=t: eval(call, {"torch": t, "nn": t.nn, "image": t.ones(4, 3, 16, 16)})
        )
        for t in (pygrad, torch)
    ]
    assert isinstance(texts[1], str)
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "call",
    [
        "nn.Linear(2, 3)(array)",
        "nn.functional.max_pool2d(array, 2)",
        "torch.matmul(x, array)",
        "torch.mean(array)",
        "torch.zeros(array)",
        "torch.from_numpy(array[0])",
        "torch.cat([array, array])",
        "torch.cat([1, 2])",
        "torch.cat([x, 2.0])",
        "torch.cat(tensors=[x, [1]])",
        'torch.cat(["a", "b"])',
        "torch.stack([True, False])",
        "torch.vstack([x, [1]])",
        "torch.meshgrid([x, 3])",
        "torch.zeros(3, 4 / 2)",
        "torch.zeros(2, None)",
        'torch.zeros(2, "a")',
        "torch.ones(2, [3])",
        "torch.zeros([[2]])",
        "torch.zeros((2, (3,)))",
        "x.reshape(-1, 4 / 2)",
        "x.expand(2, 2.0)",
        "x.repeat(1, 2.0)",
        'x.flip([0, "a"])',
        'nn.functional.pad(x, [1, "a"])',
        'nn.functional.pad(x, 1, "a")',
        'x.permute("a")',
    ],
)
def test_words_of_arrays_and_of_odd_items_of_lists(call: str) -> None:
    names = {"array": np.ones(2)}
    texts = [
        result_or_error(lambda t=t: eval(call, {"torch": t, "nn": t.nn, "x": t.ones(2), **names}))
        for t in (pygrad, torch)
    ]
    assert isinstance(texts[1], str)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("dtype", [None, "float32", "int64", "uint8"])
@pytest.mark.parametrize(
    "data",
    [
        ["a"],
        ["a", 1],
        [1, "a"],
        [[1, 2], ["a", "b"]],
        [1, b"a"],
        [1, None],
        [[1], None],
        [1, [2]],
        [1.0, (2,)],
        [[1], 2],
        [1, {}],
        [1, object],
        [range(2), range(2)],
        [deque([1, 2]), (3, 4.5)],
        [array("i", [1, 2])],
        [[], [1]],
    ],
    ids=repr,
)
def test_tensor_of_odd_data(data: Any, dtype: str | None) -> None:
    texts = [
        result_or_error(lambda t=t: repr(t.tensor(data, dtype=dtype and getattr(t, dtype))))
        for t in (pygrad, torch)
    ]
    assert texts[0] == texts[1]


@pytest.mark.parametrize(
    "call",
    [
        "nn.GRUCell(3, 4)(x(2, 5))",
        "nn.GRUCell(3, 4)(x(2, 3), x(3, 4))",
        "nn.GRUCell(3, 4)(x(2, 3), x(2, 5))",
        "nn.GRUCell(3, 4)(x(2, 3), x(4))",
        "nn.GRUCell(3, 4)(x(3), x(5))",
        "nn.RNNCell(3, 4)(x(5))",
        "nn.RNNCell(3, 4)(x(3), x(2, 4))",
        "nn.RNNCell(3, 4)(x(2, 3), x(2, 2, 4))",
        "nn.LSTMCell(3, 4)(x(2, 3), x(2, 4))",
        "nn.LSTMCell(3, 4)(x(2, 3), (x(2, 4), x(3, 4)))",
        "nn.LSTMCell(3, 4)(x(2, 3), (x(2, 4), x(2, 5)))",
        "nn.LSTMCell(3, 4)(x(2, 3), (x(4), x(4)))",
        "attention(3, 2)",
        "attention(2, 4)",
        "attention(2, 4, need_weights=False)",
        "nn.TransformerEncoderLayer(8, 2)(x(3, 2, 8), src_key_padding_mask=x(3, 2).bool())",
        "nn.MSELoss(x(2), x(2))",
        "nn.CrossEntropyLoss(x(4, 3), x(4).long())",
        "nn.BCELoss(x(2), x(2))",
        "nn.Linear(1, 1).to(dtype='float')",
        "nn.Linear(1, 1).to(dtype=3)",
        "nn.L1Loss(0).reduction",
        "nn.L1Loss(1, 0).reduction",
        "nn.L1Loss(None, False).reduction",
    ],
)
def test_words_of_layers_for_what_does_not_fit(call: str) -> None:
    def run(t: Any) -> Any:
        def attention(*shape: int, **options: Any) -> Any:
            x = t.ones(3, 2, 8)
            mask = t.zeros(*shape).bool()
            return t.nn.MultiheadAttention(8, 2)(x, x, x, key_padding_mask=mask, **options)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return result_or_error(
                lambda: eval(call, {"nn": t.nn, "x": t.ones, "attention": attention})
            )

    texts = [run(t) for t in (pygrad, torch)]
    assert isinstance(texts[1], str)
    assert texts[0] == texts[1]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("shape", [(1, 2), (2, 1), (3,)])
@pytest.mark.parametrize("which", [0, 1])
def test_running_statistics_are_vectors(which: int, shape: tuple[int, ...], training: bool) -> None:
    def run(t: Any) -> Any:
        statistics = [t.zeros(2), t.ones(2)]
        statistics[which] = t.ones(shape)
        normalised = t.nn.functional.batch_norm
        return result_or_error(lambda: normalised(t.ones(3, 2), *statistics, training=training))

    texts = [str(run(t)).split("\n")[0] for t in (pygrad, torch)]
    assert texts[0] == texts[1]


@pytest.mark.parametrize("name", ["index_add_", "index_reduce_"])
@pytest.mark.parametrize("shape", [(), (3,), (3, 2)])
def test_order_of_what_index_add_looks_at(shape: tuple[int, ...], name: str) -> None:
    def run(t: Any) -> Any:
        told = []
        more = () if name == "index_add_" else ("prod",)
        for index in (t.tensor([0, 1]), t.tensor(0)):
            for source in ((), (1,), (2,), (1, 1), (3, 2), (2, 3), (3, 1)):
                for dim in (0, -1, len(shape) - 1):
                    x, y = t.zeros(shape), t.ones(source)
                    told.append(
                        str(
                            result_or_error(
                                lambda x=x, y=y, d=dim, i=index: getattr(x, name)(d, i, y, *more)
                            )
                        )
                    )
        return told

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert run(pygrad) == run(torch)
