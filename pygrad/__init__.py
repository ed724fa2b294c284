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

import sys as _sys
from typing import TYPE_CHECKING, Any

from . import _boundary
from ._boundary import calls
from ._boundary.limits import limits
from ._ground import names as _names
from ._ground.errors import EngineError, LimitExceeded, LinAlgError, OutOfMemoryError
from ._ground.package import submodule as _submodule
from ._install.engines import Engine
from ._tensor import namespace as _namespace
from ._tensor.namespace import *

globals().update(_namespace.PRIVATE)
_boundary.callbacks.runners[_boundary.asked.ASKED] = lambda *question: _submodule(
    "_dispatch.answers"
).answer(*question)

__version__ = "0.1.0"

for _each in (Size, Tensor, device, dtype, finfo, iinfo, layout, memory_format):
    if _each.__module__.startswith(__name__ + "."):  # else it is shared with the first engine
        _each.__module__ = __name__  # the name that users know, which the classes' reprs show

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
    from ._tensor.functions import _assert as _assert
    from ._tensor.functions import _assert_async as _assert_async
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
from . import autograd, fft, func, linalg, masked, nn, optim, sparse, special, utils
from ._transforms.vmap import vmap
from .autograd.anomaly_mode import is_anomaly_detection_enabled


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
        raise AttributeError(
            f"module 'pygrad' has no attribute '{name}'", name=name, obj=_sys.modules[__name__]
        )

    def __dir__():
        """The public names, those of modules that are imported on first use too."""
        names = {*__all__, *_LATE, *_LATE_NAMES, *_names.OF_TORCH}
        special = {name for name in globals() if name.startswith("__")}
        return sorted(
            {name for name in names if not name.startswith("_")} - {"pg_live_count"} | special
        )


__all__ = [
    "BFloat16Storage",
    "BoolStorage",
    "ByteStorage",
    "CharStorage",
    "ComplexDoubleStorage",
    "ComplexFloatStorage",
    "DoubleStorage",
    "Engine",
    "EngineError",
    "FloatStorage",
    "HalfStorage",
    "IntStorage",
    "LimitExceeded",
    "LinAlgError",
    "LongStorage",
    "OutOfMemoryError",
    "ShortStorage",
    "Storage",
    "StorageBase",
    "TypedStorage",
    "UntypedStorage",
    "autograd",
    "fft",
    "from_file",
    "func",
    "install",
    "is_anomaly_detection_enabled",
    "limits",
    "linalg",
    "load",
    "masked",
    "nested",
    "nn",
    "optim",
    "pg_live_count",
    "random",
    "return_types",
    "save",
    "serialization",
    "sparse",
    "special",
    "storage",
    "uninstall",
    "utils",
    "vmap",
]
__all__ += _namespace.__all__
__all__.sort()
