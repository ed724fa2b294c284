"""Every op of the table on the device meta, beside PyTorch's: what it infers is inferred here too,
with the same dtypes, shapes and strides.
"""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import sweep
import torch
from test_meta import DESCRIPTION, MetaCase

import pygrad

MODES = (("forward", "float32"), ("forward", "int64"), ("backward", "float32"))
STRIDES_APART = frozenset(
    "nonzero_static linalg.svd svd svd_lowrank pca_lowrank linalg.eig linalg.lu_solve "
    "triangular_solve orgqr ormqr linalg.householder_product fft.rfft2 fft.rfftn".split()
)
"""Where PyTorch infers other strides than those that its own CPU gives, which are those here."""
APART = {
    "nn.functional.ctc_loss": "refused: its sizes depend on lengths",
    "ctc_loss": "refused: its sizes depend on lengths",
    "native_batch_norm": "in evaluation PyTorch infers statistics, and its CPU gives none",
    "ops.aten._softmax_backward_data": "PyTorch infers the given dtype, which its CPU ignores",
    "ops.aten._log_softmax_backward_data": "ops.aten._softmax_backward_data",
    "normal": "PyTorch's overload for numbers minds no default device",
}


def outcome(
    library: Any, op: Any, call: Any, mode: str, dtype: str, device: str = "meta"
) -> list[Any] | None:
    """What came out: None for an error."""
    case = MetaCase if device == "meta" else sweep._Case
    with warnings.catch_warnings(), library.device(device):
        warnings.simplefilter("ignore")
        try:
            result = case(library, DESCRIPTION["tensors"], dtype, mode).run(op, call)
        except pygrad.EngineError:
            raise
        except Exception:
            return None
    return [each for each in sweep._flat(result) if sweep.is_tensor(each)]


def shapes(found: list[Any], strides: bool) -> list[Any]:
    return [
        (
            str(each.dtype),
            tuple(each.shape),
            each.is_meta,
            tuple(each.stride()) if strides and each.numel() else None,
        )
        for each in found
    ]


@pytest.mark.parametrize("op", DESCRIPTION["ops"], ids=lambda op: op["id"])
def test_an_op_infers_what_pytorch_does(op: Any) -> None:
    if sweep.find(op["id"], torch) is None or op["id"] in APART:
        return
    for call in op["calls"]:
        for mode, dtype in MODES:
            wanted = outcome(torch, op, call, mode, dtype)
            # It may refuse, or have no kernel for meta, which need not be so here; or it infers
            # what its CPU refuses, types above all.
            if wanted is None or outcome(torch, op, call, mode, dtype, "cpu") is None:
                continue
            found = outcome(pygrad, op, call, mode, dtype)
            assert found is not None, (call, mode, dtype)
            exact = op["id"] not in STRIDES_APART and mode == "forward"
            assert shapes(found, exact) == shapes(wanted, exact), (call, mode, dtype)
