"""Misuses beside PyTorch: what it refuses and takes, and in which words."""

from __future__ import annotations

import pytest
from misuses.run import PARTS, in_a_process, record

LIBRARY = {
    "custom no ns": "a namespace that is missing is named",
    "custom ns": "a namespace that is missing is named",
    "autograd aten": "a limit: no rules for the autograd of PyTorch's own operators",
    "triton op": "a limit: Triton",
    "wrapped triton": "a limit: Triton",
    "ctx": "it says that there is none, instead of returning None",
    "ctx in meta": "tensors of the device meta know sizes that depend on data",
    "function for a key": "a limit: functions for PyTorch's own operators are for CPU and Meta",
    "function for a whole": "a limit: functions for operators that are made of others",
    "kernel for sparse": "a limit: kernels for CPU and Meta",
    "tag of a write": "a limit: tags that mark arguments",
    "opcheck compiled": "a limit: torch.compile",
    "no pair": "the words of a binding to C++",
    "no list": "the words of a binding to C++",
    "no list in a pair": "the words of a binding to C++",
    "boxed": "the words of a binding to C++",
    "fallback": "the words of an assertion in C++",
}
NESTED = {
    "on meta": "a limit: no nested tensors on the device meta",
    "masked select of a cube": "a limit: selections from matrices",
    "padding to other dimensions": "PyTorch does not count the sizes",
    "attention of other offsets": "PyTorch does not compare offsets",
    "offsets of nothing": "PyTorch does not check them",
    "negative offsets": "PyTorch does not check them",
    "cat of other offsets": "PyTorch does not compare offsets",
    "function of another package": "a limit: functions that pygrad does not know",
    **dict.fromkeys(
        [
            "ragged size times a fraction",
            "permute of too few",
            "expand to fewer",
            "flatten backwards",
            "chunk of holes",
            "contiguous in another format",
            "copy of a plain one",
            "gradient in batches",
            "strided all over the batch",
            "places of holes",
            "places of entries alone",
            "matmul into",
            "strided matmul into",
            "bags of a plain one",
            "convolution",
            "strided on meta",
            "fractions as offsets",
            "result of elements into",
            "write to a slice",
            "function of a program",
        ],
        "another type of error",
    ),
    **dict.fromkeys(
        [
            "narrow in a layout that is none",
            "mask of numbers",
            "mask of one dimension",
            "mask of a matrix",
            "mask of another size",
            "ragged size times itself",
            "complex of nested parts",
            "squeeze of all",
            "view without sizes",
            "view as a dtype",
            "view of another ragged size",
            "view with another size before",
            "view that moves the ragged size",
            "expand of the ragged size",
            "unflatten of the batch",
            "index by a mask",
            "index by too many",
            "strided split by a number",
            "cat into",
            "strided cat into",
            "strided cat with a plain one",
            "strided cat of turned entries",
            "strided cat of ranks",
            "strided cat of batches",
            "copy of other lengths",
            "gradient that is not nested",
            "two layouts",
            "complex numbers of parts",
            "op that has no rule",
            "strided op that has no rule",
            "max",
            "softmax of holes",
            "padding of a plain one",
            "masked select into",
            "masked select of another",
            "linear of the ragged dimension",
            "strided linear of a plain one",
            "matmul of holes",
            "matmul by another batch",
            "matmul of a plain one by another batch",
            "strided bmm into",
            "layer norm of the batch",
            "attention beside plain ones",
            "vmap of entries that returns nested tensors",
            "vmap to another structure",
            "numbers that require gradients",
            "ragged dimension that is none",
            "offsets that run backwards",
            "places of rows in holes",
            "parts of a file",
            "buffer of two dimensions",
            "strides of fewer entries",
            "strides of fewer dimensions",
            "entry beyond the buffer",
            "strided slice",
            "gradient of other lengths",
            "view that puts the ragged size first",
            "strided turned quotient",
            "attention with holes",
            "view of negative sizes",
        ],
        "other words",
    ),
}
FX = {
    "lint of a name": "PyTorch does not see it",
    "attribute of None": "the attribute that is absent is named",
    "function that writes": "the op has no schema in the message",
    "function that writes to out": "the op has no schema in the message",
    "arguments of what writes": "the op has no schema in the message",
    "tensor of no trace": "other words",
    "too few proxies": "other words",
    "attributes of no module": "other words",
    "pictures": "a limit: pictures of graphs",
    "fake shapes": "a limit: fake tensors",
    "mode of fake tensors": "a limit: fake tensors",
    "trace of modules": "a limit: traces above autograd",
}

OTHERWISE = {"library": LIBRARY, "nested": NESTED, "fx": FX}
"""Misuses that pygrad answers otherwise, and why."""


@pytest.mark.parametrize("part", PARTS)
def test_misuses_are_refused_and_taken_as_by_torch(part: str) -> None:
    mine, theirs = in_a_process("pygrad", part), in_a_process("torch", part)
    assert mine == record(part)
    differing = {name for name in theirs if mine[name] != theirs[name]}
    assert differing == set(OTHERWISE[part]), {
        n: (mine[n], theirs[n]) for n in differing ^ set(OTHERWISE[part])
    }
