"""PyTorch's names from before layouts: ``torch.sparse.FloatTensor`` and its like."""

from __future__ import annotations

from typing import Any

from .. import _legacy
from .._creation import _is_sequence
from .._dtypes import Size, dtype, sparse_coo
from .._legacy import tensortype
from .._tensor import Tensor
from ._make import sparse_coo_tensor


class _sparsetype(tensortype):
    """The class of ``torch.sparse.FloatTensor`` and its like."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Tensor:
        return _legacy_sparse(cls.dtype, *args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) and instance.layout is sparse_coo


def _legacy_sparse(kind: dtype, *args: Any, device: Any = None) -> Tensor:
    """``FloatTensor(indices, values[, size])``, and ``FloatTensor(2, 3)`` without elements."""
    if len(args) > 1 and all(isinstance(each, Tensor) for each in args[:2]):
        if len(args) > 3:
            raise TypeError(f"new() takes 3 positional arguments but {len(args)} were given")
        return sparse_coo_tensor(*args, device=device)
    if len(args) == 1 and isinstance(args[0], Tensor):
        raise _legacy._no_combination(args, {})
    if len(args) == 1 and not isinstance(args[0], Size) and _is_sequence(args[0]):
        raise TypeError(
            "torch.sparse.SparseTensor(sequence) only accepts sizes.  Please use "
            "torch.sparse_coo_tensor() or construct a strided tensor and convert it to sparse via "
            "to_sparse."
        )
    size = args[0] if args and isinstance(args[0], Size) else _legacy._sizes(args) or (0,)
    return sparse_coo_tensor(size=size, dtype=kind, device=device)


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


FloatTensor = _type(_legacy.FloatTensor)
DoubleTensor = _type(_legacy.DoubleTensor)
HalfTensor = _type(_legacy.HalfTensor)
BFloat16Tensor = _type(_legacy.BFloat16Tensor)
LongTensor = _type(_legacy.LongTensor)
IntTensor = _type(_legacy.IntTensor)
ShortTensor = _type(_legacy.ShortTensor)
CharTensor = _type(_legacy.CharTensor)
ByteTensor = _type(_legacy.ByteTensor)
