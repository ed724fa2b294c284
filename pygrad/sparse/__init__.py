"""torch.sparse: tensors that hold only some of their elements, in the layouts COO, CSR, CSC, BSR
and BSC, and functions of them.

The engine has the tensors (wasm_core/ops/sparse); this module gives them PyTorch's names.

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
from ._functions import addmm, log_softmax, mm, sampled_addmm, softmax, spdiags, sum
from ._gradcheck import as_sparse_gradcheck
from ._legacy import BFloat16Tensor as BFloat16Tensor
from ._legacy import ByteTensor as ByteTensor
from ._legacy import CharTensor as CharTensor
from ._legacy import DoubleTensor as DoubleTensor
from ._legacy import FloatTensor as FloatTensor
from ._legacy import HalfTensor as HalfTensor
from ._legacy import IntTensor as IntTensor
from ._legacy import LongTensor as LongTensor
from ._legacy import ShortTensor as ShortTensor

__all__ = [
    "addmm",
    "as_sparse_gradcheck",
    "check_sparse_tensor_invariants",
    "log_softmax",
    "mm",
    "sampled_addmm",
    "softmax",
    "spdiags",
    "sum",
]
