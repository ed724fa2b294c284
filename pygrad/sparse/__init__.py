"""torch.sparse: tensors that hold only some of their elements, in the layouts COO, CSR, CSC, BSR
and BSC, and functions of them.

The engine has the tensors (wasm_core/ops/sparse); what is here names them as PyTorch does.

Example:
    >>> import pygrad
    >>> x = pygrad.sparse_coo_tensor([[0, 1], [2, 0]], [3.0, 4.0], (2, 3))
    >>> x.to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    >>> pygrad.sparse.mm(x, pygrad.ones(3, 1))
    tensor([[3.],
            [4.]])
"""

from __future__ import annotations

from ._checks import check_sparse_tensor_invariants
from ._functions import addmm, log_softmax, mm, softmax, sum
from ._gradcheck import as_sparse_gradcheck

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "softmax",
    "sum",
]
