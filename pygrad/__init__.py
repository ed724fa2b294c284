"""PyTorch's autograd in one WebAssembly binary.

``import pygrad as torch`` runs PyTorch scripts that use tensors, autograd, ``nn`` and ``optim`` on
the CPU. One thing is different, and is why the package exists: a tensor saved for backward is a
snapshot, so mutating the original never raises and never changes a gradient.

Example:
    >>> import pygrad as torch
    >>> x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    >>> y = (x ** 2).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 4., 6.])
"""

from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING, Any

from . import _boundary
from ._boundary import calls
from ._boundary.limits import limits
from ._ground import names as _names
from ._ground.dtypes import (
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
from ._ground.dtypes import bool_ as bool
from ._ground.errors import EngineError, LimitExceeded, LinAlgError, OutOfMemoryError
from ._ground.package import submodule as _submodule
from ._ground.warnings import is_warn_always_enabled
from ._install.engines import Engine
from ._table import functions as _functions
from ._tensor.creation import (
    as_tensor,
    asarray,
    from_dlpack,
    from_numpy,
    frombuffer,
    get_default_device,
    set_default_device,
    tensor,
)
from ._tensor.legacy import (
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
from ._tensor.tensor import Tensor

__version__ = "0.1.0"

for _each in (Size, Tensor, device, dtype, finfo, iinfo, layout, memory_format):
    if _each.__module__.startswith(__name__ + "."):  # else it is shared with the first engine
        _each.__module__ = __name__  # the name that users know, which the classes' reprs show

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

_LATE = (
    "amp backends datasets distributed distributions futures fx hub library multiprocessing nested "
    "ops overrides profiler quasirandom serialization signal storage testing version"
).split()
_LATE_NAMES = {
    name: module
    for module, names in {
        "_higher_order_ops": "cond while_loop",
        "_install.way_in": "install uninstall",
        "_streams": "Event Stream",
        "_symbolic": "sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt "
        "sym_sum _sym_acos _sym_asin _sym_atan _sym_cos _sym_cosh _sym_log2 _sym_sin _sym_sinh "
        "_sym_sqrt _sym_tan _sym_tanh",
        "amp": "autocast GradScaler",
        "amp._state": "autocast_decrement_nesting autocast_increment_nesting clear_autocast_cache "
        "get_autocast_cpu_dtype get_autocast_dtype get_autocast_gpu_dtype "
        "is_autocast_cache_enabled is_autocast_cpu_enabled is_autocast_enabled "
        "set_autocast_cache_enabled set_autocast_cpu_dtype set_autocast_cpu_enabled "
        "set_autocast_dtype set_autocast_enabled set_autocast_gpu_dtype",
        "_lobpcg": "lobpcg",
        "functional": "_unique _unique2",
        "nn._recurrent": "gru gru_cell lstm lstm_cell rnn_relu rnn_relu_cell rnn_tanh "
        "rnn_tanh_cell",
        "_table.function_schema": "IntType ListType OptionalType TensorType",
        "nested._make": "_nested_compute_contiguous_strides_offsets _nested_from_padded "
        "_nested_from_padded_and_nested_example "
        "_nested_get_lengths _nested_get_offsets _nested_get_ragged_idx _nested_get_values "
        "_nested_tensor_from_mask _nested_tensor_from_mask_left_aligned "
        "_nested_tensor_from_tensor_list _nested_view_from_buffer",
        "nested._sizes": "SymInt",
        "ops": "Tag",
        "quasirandom": "_sobol_engine_draw _sobol_engine_ff_ _sobol_engine_initialize_state_ "
        "_sobol_engine_scramble_",
        "serialization": "load save",
        "storage": "BFloat16Storage BoolStorage ByteStorage CharStorage ComplexDoubleStorage "
        "ComplexFloatStorage DoubleStorage FloatStorage HalfStorage IntStorage LongStorage "
        "ShortStorage Storage StorageBase TypedStorage UntypedStorage from_file",
    }.items()
    for name in names.split()
}

if TYPE_CHECKING:
    from . import (
        amp,
        backends,
        datasets,
        distributed,
        distributions,
        futures,
        fx,
        hub,
        library,
        multiprocessing,
        ops,
        overrides,
        profiler,
        quasirandom,
        serialization,
        signal,
        storage,
        testing,
        version,
    )
    from ._install.way_in import install, uninstall
    from ._table.functions_table import *
    from ._table.functions_table import _dirichlet_grad as _dirichlet_grad
    from ._table.functions_table import _sample_dirichlet as _sample_dirichlet
    from ._table.functions_table import _standard_gamma as _standard_gamma
    from ._table.functions_table import _standard_gamma_grad as _standard_gamma_grad
    from .quasirandom import (
        _sobol_engine_draw,
        _sobol_engine_ff_,
        _sobol_engine_initialize_state_,
        _sobol_engine_scramble_,
    )
    from .serialization import load, save
    from .storage import (
        BFloat16Storage,
        BoolStorage,
        ByteStorage,
        CharStorage,
        ComplexDoubleStorage,
        ComplexFloatStorage,
        DoubleStorage,
        FloatStorage,
        HalfStorage,
        IntStorage,
        LongStorage,
        ShortStorage,
        Storage,
        StorageBase,
        TypedStorage,
        UntypedStorage,
        from_file,
    )
    from .torch import _C as _C
    from .torch import __future__ as __future__
    from .torch import (
        accelerator,
        compiler,
        cpu,
        cuda,
        functional,
        functorch,
        jit,
        mps,
        return_types,
        types,
        xpu,
    )
    from .torch._higher_order_ops import cond, while_loop
globals().update(_functions.namespace("torch"))

from ._tensor.casts import CASTS as _CASTS

globals().update(_CASTS)

from . import autograd, fft, func, linalg, masked, nn, optim, sparse, special, utils
from ._tensor import checks as _checks
from ._tensor.checks import *
from ._tensor.functions import (
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
from ._transforms.vmap import vmap
from .autograd.anomaly_mode import is_anomaly_detection_enabled
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from .random import (
    Generator,
    default_generator,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)
from .sparse._make import (
    sparse_bsc_tensor,
    sparse_bsr_tensor,
    sparse_compressed_tensor,
    sparse_coo_tensor,
    sparse_csc_tensor,
    sparse_csr_tensor,
)


def pg_live_count() -> Any:
    """The number of live tensors and nodes of the engine: returns to its former value when
    everything made since is freed.
    """
    return _boundary.live_count()


if not TYPE_CHECKING:

    def __getattr__(name):
        """Imports rarely used modules on first use: `datasets` needs NumPy, which takes long to
        import.
        """
        if name in _LATE or name in _names.OF_TORCH:
            return _submodule(name)
        if name in _LATE_NAMES:
            return getattr(_submodule(_LATE_NAMES[name]), name)
        if name.startswith("_foreach_"):
            found = getattr(_submodule("_table.foreach"), name, None)
            if found is not None:
                return found
        raise AttributeError(f"module 'pygrad' has no attribute '{name}'")


__all__ = [
    "BFloat16Storage",
    "BFloat16Tensor",
    "BoolStorage",
    "BoolTensor",
    "ByteStorage",
    "ByteTensor",
    "CharStorage",
    "CharTensor",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "DoubleTensor",
    "Engine",
    "EngineError",
    "FloatStorage",
    "FloatTensor",
    "Generator",
    "HalfStorage",
    "HalfTensor",
    "IntStorage",
    "IntTensor",
    "LimitExceeded",
    "LinAlgError",
    "LongStorage",
    "LongTensor",
    "OutOfMemoryError",
    "ShortStorage",
    "ShortTensor",
    "Size",
    "Storage",
    "StorageBase",
    "Tensor",
    "TypedStorage",
    "UntypedStorage",
    "are_deterministic_algorithms_enabled",
    "as_tensor",
    "asarray",
    "autograd",
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
    "fft",
    "finfo",
    "float",
    "float16",
    "float32",
    "float64",
    "from_dlpack",
    "from_file",
    "from_numpy",
    "frombuffer",
    "func",
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
    "install",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "is_anomaly_detection_enabled",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_nonzero",
    "is_storage",
    "is_tensor",
    "is_warn_always_enabled",
    "jagged",
    "layout",
    "legacy_contiguous_format",
    "limits",
    "linalg",
    "load",
    "long",
    "lu",
    "manual_seed",
    "masked",
    "memory_format",
    "nan",
    "nested",
    "nn",
    "no_grad",
    "optim",
    "pg_live_count",
    "pi",
    "preserve_format",
    "random",
    "return_types",
    "save",
    "seed",
    "serialization",
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
    "sparse",
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
    "special",
    "storage",
    "strided",
    "tensor",
    "tensordot",
    "typename",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "uninstall",
    "unravel_index",
    "use_deterministic_algorithms",
    "utils",
    "vmap",
]
__all__ += _checks.__all__
__all__ += [name for name in _functions.SPACES["torch"] if name not in __all__]
__all__.sort()
