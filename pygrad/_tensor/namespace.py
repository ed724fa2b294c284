"""The names of torch that need no more than tensors and autograd: the functions of the op table,
dtypes, creation, random numbers. `pygrad` shows them, and the packages above use them from here,
because the package itself is complete only after all of them.
"""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING, Any, Final

from .._ground.dtypes import (
    Size,
    bfloat16,
    channels_last,
    channels_last_3d,
    complex32,
    complex64,
    complex128,
    contiguous_format,
    device,
    dtype,
    finfo,
    float16,
    float32,
    float64,
    iinfo,
    int8,
    int16,
    int32,
    int64,
    jagged,
    layout,
    legacy_contiguous_format,
    memory_format,
    preserve_format,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .._ground.dtypes import bool_ as bool
from .._ground.warnings import is_warn_always_enabled
from .._table import functions as _functions
from .creation import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_default_device,
    set_default_device,
    tensor,
)
from .legacy import (
    BFloat16Tensor,
    BoolTensor,
    ByteTensor,
    CharTensor,
    DoubleTensor,
    FloatTensor,
    HalfTensor,
    IntTensor,
    LongTensor,
    ShortTensor,
    set_default_tensor_type,
)
from .tensor import Tensor

if TYPE_CHECKING:
    from .._table.functions_table import *
    from .._table.functions_table import _dirichlet_grad as _dirichlet_grad
    from .._table.functions_table import _sample_dirichlet as _sample_dirichlet
    from .._table.functions_table import _standard_gamma as _standard_gamma
    from .._table.functions_table import _standard_gamma_grad as _standard_gamma_grad

_made = _functions.namespace("torch")
globals().update(_made)

from ..autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from ..random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from ..sparse._make import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)
from . import checks as _checks
from .casts import CASTS as _CASTS
from .checks import *
from .functions import (
    _assert,
    _assert_async,
    are_deterministic_algorithms_enabled,
    broadcast_shapes,
    compile,
    einsum,
    get_deterministic_debug_mode,
    get_device_module,
    get_float32_matmul_precision,
    get_num_interop_threads,
    get_num_threads,
    is_deterministic_algorithms_warn_only_enabled,
    is_nonzero,
    is_storage,
    is_tensor,
    lu,
    set_default_dtype,
    set_deterministic_debug_mode,
    set_float32_matmul_precision,
    set_flush_denormal,
    set_num_interop_threads,
    set_num_threads,
    set_printoptions,
    set_warn_always,
    tensordot,
    typename,
    unravel_index,
    use_deterministic_algorithms,
)

float = float32
double = float64
short = int16
int = int32
long = int64
half = float16
chalf = complex32
cfloat = complex64
cdouble = complex128
inf = _math.inf
nan = _math.nan
pi = _math.pi
e = _math.e
newaxis = None

PRIVATE: Final[dict[str, Any]] = {
    **{name: function for name, function in _made.items() if name.startswith("_")},
    **_CASTS,
    "_assert": _assert,
    "_assert_async": _assert_async,
}
"""Names with an underscore, which `pygrad` shows too."""

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "Generator",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "Size",
    "Tensor",
    "are_deterministic_algorithms_enabled",
    "as_tensor",
    "asarray",
    "bfloat16",
    "bool",
    "broadcast_shapes",
    "cdouble",
    "cfloat",
    "chalf",
    "channels_last",
    "channels_last_3d",
    "compile",
    "complex32",
    "complex64",
    "complex128",
    "contiguous_format",
    "default_generator",
    "device",
    "double",
    "dtype",
    "e",
    "einsum",
    "enable_grad",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_numpy",
    "frombuffer",
    "get_default_device",
    "get_deterministic_debug_mode",
    "get_device_module",
    "get_float32_matmul_precision",
    "get_num_interop_threads",
    "get_num_threads",
    "get_rng_state",
    "half",
    "iinfo",
    "inf",
    "inference_mode",
    "initial_seed",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_nonzero",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "jagged",
    "layout",
    "legacy_contiguous_format",
    "long",
    "lu",
    "manual_seed",
    "memory_format",
    "nan",
    "newaxis",
    "no_grad",
    "pi",
    "preserve_format",
    "seed",
    "set_default_device",
    "set_default_dtype",
    "set_default_tensor_type",
    "set_deterministic_debug_mode",
    "set_float32_matmul_precision",
    "set_flush_denormal",
    "set_grad_enabled",
    "set_num_interop_threads",
    "set_num_threads",
    "set_printoptions",
    "set_rng_state",
    "set_warn_always",
    "short",
    "sparse_bsc",
    "sparse_bsc_tensor",
    "sparse_bsr",
    "sparse_bsr_tensor",
    "sparse_compressed_tensor",
    "sparse_coo",
    "sparse_coo_tensor",
    "sparse_csc",
    "sparse_csc_tensor",
    "sparse_csr",
    "sparse_csr_tensor",
    "strided",
    "tensor",
    "tensordot",
    "typename",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unravel_index",
    "use_deterministic_algorithms",
]
__all__ += _checks.__all__
__all__ += [name for name in _functions.SPACES["torch"] if name not in __all__]
