"""PyTorch's names from before layouts: ``torch.sparse.FloatTensor`` and its like."""

from __future__ import annotations

from typing import Any

from .._ground.dtypes import sparse_coo
from .._tensor import legacy
from .._tensor.legacy import legacy_sparse, tensortype
from .._tensor.tensor import Tensor


class _sparsetype(tensortype):
    """The class of ``torch.sparse.FloatTensor`` and its like."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return legacy_sparse(*args, kind=cls.dtype, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) and instance.layout is sparse_coo


def _type(like: tensortype) -> tensortype:
    return _sparsetype(
        like.__name__,
        (),
        {
            "__doc__": f"A sparse {like.dtype} tensor; PyTorch's legacy constructor.",
            "__module__": __package__,
            "dtype": like.dtype,
            "layout": sparse_coo,
            "is_sparse": True,
        },
    )


FloatTensor = _type(legacy.FloatTensor)
DoubleTensor = _type(legacy.DoubleTensor)
HalfTensor = _type(legacy.HalfTensor)
BFloat16Tensor = _type(legacy.BFloat16Tensor)
LongTensor = _type(legacy.LongTensor)
IntTensor = _type(legacy.IntTensor)
ShortTensor = _type(legacy.ShortTensor)
CharTensor = _type(legacy.CharTensor)
ByteTensor = _type(legacy.ByteTensor)
