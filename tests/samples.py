"""The sample calls of every op in the table.

Most follow from the schema (`sampling.derive`). `ROWS` has calls for ops whose inputs a schema
cannot suggest, `DOMAIN` the element-wise ops that need special numbers, `EXEMPT` the ops that are
tested elsewhere. test_ops.py fails for an op that has none of them.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sampling import (
    WIDER,
    Call,
    Dtype,
    X,
    call,
    checkered,
    constant,
    derive,
    index,
    mask,
    parts,
    permutation,
    x,
)

from pygrad._table import functions
from pygrad.optim._builtin import BuiltinOptimizer

PREFIXES = {
    "torch": "",
    "method": "Tensor.",
    "nn": "nn.functional.",
    "special": "special.",
    "linalg": "linalg.",
    "fft": "fft.",
    "windows": "signal.windows.",
    "masked": "masked.",
    "internal": "_C.",
    "only_aten": "ops.aten.",
}


@dataclass(frozen=True)
class Entry:
    """An op as the first namespace that offers it has it."""

    id: str
    name: str
    space: str
    words: frozenset[str]
    schemas: tuple[str, ...]
    function: Callable[..., Any]

    @property
    def mutates(self) -> bool:
        """Whether the op itself writes to its first argument."""
        return self.name.endswith("_")


def entries() -> list[Entry]:
    """Every op that some namespace offers, in table order; a kernel behind other ops is none of
    them.
    """
    found = []
    for op in functions.TABLE:
        space = next((space for space in PREFIXES if op.names(space)), None)
        if space:
            function = functions.SPACES[space][op.name]
            name, words = PREFIXES[space] + op.name, frozenset(op.words)
            found.append(Entry(name, op.name, space, words, tuple(op.schemas), function))
    return found


SOURCES = Path(__file__).parents[1] / "wasm_core" / "ops"
WIDER_ROWS = ("elementwise/elementwise.def",)
"""The files whose rows are sampled in half and complex dtypes too."""


@functools.cache
def _wider_names() -> frozenset[str]:
    row = re.compile(r"^(?:UNARY|BINARY|COMPARE|PREDICATE|OPX?)\w*\([^,]*, (\w+),", re.M)
    return frozenset(
        name for path in WIDER_ROWS for name in row.findall((SOURCES / path).read_text("utf-8"))
    )


def wider(entry: Entry) -> tuple[str, ...]:
    """The dtypes beside `DTYPES` in which an op's samples are worth calling."""
    return WIDER if entry.name in _wider_names() else ()


def samples(entry: Entry) -> list[Call]:
    """The sample calls of an op; none for an op in EXEMPT."""
    if entry.id in EXEMPT:
        return []
    calls = ROWS.get(entry.id) or ROWS.get(entry.name)
    if calls is None:
        kind = DOMAIN.get(entry.name, "real")
        calls = [each for schema in entry.schemas for each in derive(schema, kind)]
    return list({str(each): each for each in calls}.values())


def _exempt(reason: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), reason)


EXEMPT = {
    **_exempt("counts what others do: test_paths.py", "_C._path_count"),
    **_exempt("sets when loops poll: test_polls.py", "_C._poll_every"),
    **_exempt("makes pages for a file: test_mapped_files.py", "_C._mapped"),
    **_exempt(
        "takes or gives a sparse tensor: test_sparse.py, parity/test_sparse.py",
        "_C._sparse_coo_tensor _C._sparse_coo_empty _C._sparse_compressed_tensor"
        " _C._sparse_mm _C._sparse_addmm _C._sparse_sum _C._sparse_softmax"
        " Tensor._nnz Tensor._dimI Tensor._dimV Tensor.is_coalesced Tensor.indices"
        " Tensor.values Tensor._indices Tensor._values Tensor.crow_indices"
        " Tensor.col_indices Tensor.ccol_indices Tensor.row_indices Tensor.coalesce"
        " Tensor._coalesced_ Tensor.sparse_mask Tensor.sparse_resize_"
        " Tensor.sparse_resize_and_clear_ Tensor.to_sparse Tensor.to_sparse_coo"
        " Tensor.to_sparse_csr Tensor.to_sparse_csc Tensor.to_sparse_bsr Tensor.to_sparse_bsc"
        " _validate_sparse_coo_tensor_args _validate_sparse_compressed_tensor_args"
        " _validate_sparse_csr_tensor_args _validate_sparse_csc_tensor_args"
        " _validate_sparse_bsr_tensor_args _validate_sparse_bsc_tensor_args"
        " _sparse_broadcast_to smm hspmm hsmm sspaddmm saddmm"
        " _convert_indices_from_coo_to_csr _convert_indices_from_csr_to_coo"
        " _C._sparse_sampled_addmm",
    ),
    **_exempt(
        "the forward mode's own entry points: test_forward.py",
        "_C._enter_dual_level _C._exit_dual_level _C._is_fwd_grad_enabled _C._set_fwd_grad_enabled"
        " _make_dual _unpack_dual _C._custom_tangents _C._custom_carry",
    ),
    **_exempt(
        "autograd's own entry points: test_autograd.py",
        "_C._backward_of _C._backward_resume _C._grad _C._hook_add _C._hook_remove"
        " Tensor.retain_grad",
    ),
    **_exempt(
        "unpacks a file: test_random.py, parity/test_quasirandom.py",
        "_C._sobol_engine_initialize_state_",
    ),
    **_exempt("tells the Graph room of backwards: web/record.test.mjs", "_C._watch_walks"),
    **_exempt(
        "what functional and gradcheck demand: parity/test_functional.py, test_gradcheck.py",
        "_C._functional_points _C._functional_answer _C._functional_units _C._functional_columns"
        " _C._gradcheck _C._gradcheck_note _C._numerical_jacobian"
        " _C._analytical_jacobian",
    ),
    **_exempt(
        "behind autograd.profiler: test_profiler.py",
        "_C._profile_start _C._profile_stop _C._profile_begin _C._profile_begin_async"
        " _C._profile_end _C._profile_event _C._profile_toggle _C._profile_clear"
        " _C._profile_quantity _C._profile_table _C._profile_trace",
    ),
    **_exempt(
        "behind an attribute of Tensor: test_autograd.py, test_memory.py",
        "_C._set_requires_grad _C.data _C._set_data _C._set_grad _C._base _C.retains_grad"
        " _C.requires_grad _C.is_leaf _C._increment_version _C._version Tensor.type Tensor.dim"
        " Tensor.size Tensor.stride numel is_inference is_floating_point is_signed is_complex"
        " is_conj is_neg get_device"
        " Tensor.data_ptr _C._export _C._memory _C._reset_peak_memory _C._empty _C._snapshot"
        " _C.grad_dtype _C._set_grad_dtype _C._set_version",
    ),
    **_exempt(
        "behind an attribute of Node: test_autograd.py, test_snapshots.py, parity/test_graph.py",
        "_C._node_of _C._node_name _C._node_sequence _C._node_set_sequence _C._node_next"
        " _C._node_variable _C._node_fields _C._node_saved"
        " _C._node_saved_data _C._node_packed _C._node_field"
        " _C._node_saved_hooks _C._node_metadata _C._node_output _C._node_call"
        " _C._node_kind _C._node_hook_add _C._node_hook_remove _C._edge_of _C._running_node"
        " _C._task_id _C._task_order _C._task_retains _C._will_run _C._queue_callback"
        " _C._several_hooks_add _C._several_hooks_remove _C._set_warn_always",
    ),
    **_exempt(
        "a switch of the engine: test_autograd.py, test_python.py",
        "_C._save_tensor _C._is_checkpoint_valid _C._saved_hooks_push _C._saved_hooks_pop"
        " _C._saved_hooks_disable"
        " _C._set_saved_mode _C._set_default_dtype _C._autocast_forget"
        " _C._repr _C._printoptions is_grad_enabled is_anomaly_enabled"
        " is_anomaly_check_nan_enabled set_anomaly_enabled _C._undefined_grad",
    ),
    **_exempt(
        "parts of custom functions and of pickling: test_function.py, parity/test_graph.py",
        "_C._save_tensor _C._delayed_error _C._backward_abort _C._custom_begin _C._custom_finish"
        " _C._custom_saved _C._custom_type _C._node_saves",
    ),
    **_exempt("what the garbage collector is shown: test_cycles.py", "_C._owned"),
    **_exempt("makes tensors of classes with handlers: test_dispatch.py", "_C._hosted"),
    **_exempt(
        "switches and marks of tensors: test_sparse.py, parity/test_engine_names.py",
        "_C._sparse_invariants _C._set_caching _C._set_cached _C._is_cached _C._hooks_of",
    ),
    **_exempt("takes an encoded subscript: test_indexing.py", "_C._getitem _C._setitem"),
    **_exempt(
        "behind Generator: test_random.py",
        "_C._generator_new _C._generator_free _C._generator_seed _C._generator_initial_seed"
        " _C._generator_state _C._generator_set_state",
    ),
    **_exempt(
        "behind vmap: test_vmap.py",
        "_C._vmap_enter _C._vmap_exit _C._vmap_level _C._vmap_dim _C._vmap_add _C._vmap_remove",
    ),
    **_exempt(
        "writes to lists of parameters: test_optim.py",
        "_C._fused_sgd_ _C._fused_adam_ _C._fused_adamw_ _C._zero_grads _C._grad_norm"
        " _C._clip_grads_ "
        + " ".join(f"_C.{cls._row}" for cls in BuiltinOptimizer.__subclasses__()),
    ),
    **_exempt("a part of Muon: parity/test_optimizer_forms.py", "_C._newton_schulz"),
    **_exempt(
        "float32 and halves of aligned strides alone: parity/test_apart.py",
        "_grouped_mm nn.functional.grouped_mm",
    ),
    **_exempt(
        "takes functions of its other arguments: test_backward_ops.py",
        "ops.aten.log_sigmoid_backward ops.aten.convolution_backward"
        " ops.aten.avg_pool2d_backward ops.aten.avg_pool3d_backward"
        " ops.aten.max_pool2d_with_indices_backward ops.aten.max_pool3d_with_indices_backward"
        " ops.aten._adaptive_avg_pool2d_backward ops.aten._adaptive_avg_pool3d_backward"
        " ops.aten.adaptive_max_pool2d_backward ops.aten.adaptive_max_pool3d_backward"
        " ops.aten.reflection_pad1d_backward ops.aten.reflection_pad2d_backward"
        " ops.aten.reflection_pad3d_backward ops.aten.replication_pad1d_backward"
        " ops.aten.replication_pad2d_backward ops.aten.replication_pad3d_backward"
        " ops.aten.nll_loss_forward ops.aten.nll_loss2d_forward ops.aten.nll_loss_backward"
        " ops.aten.nll_loss2d_backward ops.aten.embedding_dense_backward"
        " ops.aten.native_layer_norm_backward ops.aten.native_batch_norm_backward"
        " ops.aten.native_group_norm_backward ops.aten.native_dropout_backward",
    ),
    **_exempt("deprecated, warns on every call: test_errors.py", "range"),
}
"""Op -> why it has no samples, and where it is tested."""

DOMAIN = {
    **dict.fromkeys(
        ["log", "log2", "log10", "sqrt", "rsqrt", "log1p", "reciprocal", "entr"], "positive"
    ),
    **dict.fromkeys(["lgamma", "digamma", "gammaln", "psi"], "positive"),
    **dict.fromkeys(["asin", "acos", "atanh", "erfinv", "arcsin", "arccos", "arctanh"], "unit"),
    **dict.fromkeys(["logit", "ndtri"], "probability"),
    **dict.fromkeys(["acosh", "arccosh"], "above_one"),
    **dict.fromkeys(
        ["xlogy", "xlog1py", "igamma", "igammac", "gammainc", "gammaincc", "cumprod"], "positive"
    ),
}
"""Op -> where its elements must lie."""

ROWS: dict[str, list[Call]] = {}


def rows(names: str, *calls: Call) -> None:
    """These calls for the ops of these names."""
    for name in names.split():
        ROWS[name] = list(calls)


COMPLEX = parts(2, 3)
rows("real imag view_as_real", call(COMPLEX), call(parts()), call(parts(3)))
rows("view_as_real_copy", call(COMPLEX), call(parts()))
rows("view_as_complex", call(x(3, 2)), call(x(2)))
rows("conj conj_physical resolve_conj", call(x()), call(COMPLEX), call(parts()))
rows("resolve_neg _neg_view", call(x(2, 3)), call(COMPLEX))
rows("sgn", call(x(2, 3)), call(COMPLEX), call(parts()))

S = x(2, 3)
SQUARE = x(3, 3)
CUBE = x(2, 3, 4)
FLAT = x(6)


# ------------------------------------------------------------------ element-wise

INTEGERS = X((2, 3), "index", "int64", 9)
rows("gcd lcm", call(INTEGERS, INTEGERS), call(INTEGERS, index(9, 3)))
rows(
    "bitwise_and bitwise_or bitwise_xor",
    call(INTEGERS, INTEGERS),
    call(INTEGERS, 3),
    call(mask(2, 3), mask(2, 3)),
)
rows("bitwise_left_shift bitwise_right_shift", call(INTEGERS, index(5, 3)), call(INTEGERS, 2))
rows("bitwise_not", call(INTEGERS), call(mask(2, 3)))
rows("ldexp", call(S, index(4, 3)), call(S, x(3)))
rows(
    "pow float_power",
    call(x(2, 3, kind="positive"), x(3)),
    call(S, 2),
    call(S, 3),
    call(S, 0),
    call(x(2, 3, kind="positive"), -1.5),
    call(2.5, S),
    call(2, S),
)
rows(
    "clamp clip",
    call(S, -0.5, 0.5),
    call(S, x(3), None),
    call(S, None, x(2, 3)),
    call(S, max=1),
    call(S, min=0.25),
)
rows("clamp_min clamp_max", call(S, 0.5), call(S, x(3)))
rows(
    "where",
    call(mask(2, 3), S, x(3)),
    call(mask(2, 3), S, 0.5),
    call(mask(3), 1.5, S),
    call(mask(2, 3)),
)
rows("masked_fill", call(S, mask(3), 1.5), call(S, mask(2, 3), X((), "real")))
rows("lerp", call(S, S, 0.25), call(S, x(3), x(2, 3)), call(S, S, 0.75))
rows("addcmul", call(S, S, x(3)), call(S, x(2, 1), x(3), value=0.5))
rows(
    "addcdiv", call(S, S, x(3, kind="positive")), call(S, x(2, 1), x(3, kind="positive"), value=0.5)
)
rows("heaviside", call(S, x(3)), call(mask(2, 3), mask(3)))
rows(
    "div divide",
    *(
        call(S, other, rounding_mode=how)
        for other in (x(3, kind="positive"), 1.5)
        for how in (None, "floor", "trunc")
    ),
    call(S, 2),
)
rows("true_divide fmod _C._div", call(S, x(3, kind="positive")), call(S, 1.5), call(S, 2))
rows(
    "floor_divide remainder",
    call(S, x(3, kind="positive")),
    call(S, 1.5),
    call(2.5, x(2, 3, kind="positive")),
)
rows("round", call(S), call(S, decimals=1), call(S, decimals=-1))
rows(
    "logit",
    call(x(2, 3, kind="probability")),
    call(x(2, 3, kind="probability"), 0.2),
    call(x(2, 3, kind="probability"), eps=1e-6),
)
rows("polygamma", call(1, x(2, 3, kind="positive")), call(3, x(2, 3, kind="positive")))
rows("mvlgamma", call(x(2, 3, kind="above_one"), 2))
rows("special.multigammaln", call(x(2, 3, kind="above_one"), 2))
rows(
    "special.zeta",
    call(x(2, 3, kind="above_one"), x(3, kind="positive")),
    call(x(2, 3, kind="above_one"), 1.5),
)
rows("nan_to_num", call(S), call(S, 0.5, 1.0, -1.0), call(S, posinf=2.0))
rows("threshold", call(S, 0.3, -7.0))
rows("nn.functional.leaky_relu", call(S), call(S, 0.2))
rows("rrelu", call(S), call(S, 0.2, 0.4), call(S, training=True))
rows("prelu", call(x(2, 3), x(3)), call(CUBE, x(1)), call(CUBE, x(3)))
rows("nn.functional.glu", call(x(4, 6)), call(x(4, 6), 0))
rows("nn.functional.gelu", call(S), call(S, approximate="tanh"))
rows("isclose allclose equal", call(S, S), call(S, x(2, 3, kind="positive")))
rows("abs angle", call(S), call(x()))
rows("result_type", call(S, S), call(S, 2.5), call(INTEGERS, 2.5), call(INTEGERS, S))
rows(
    "promote_types can_cast",
    call(Dtype("float32"), Dtype("int64")),
    call(Dtype("int8"), Dtype("uint8")),
)
rows("get_default_dtype is_grad_enabled", call())

# ------------------------------------------------------------------ views and shapes

rows("view", call(S, [3, 2]), call(S, [-1]), call(S, 6), call(x(2, 4), Dtype("int32")))
rows("view_as reshape_as", call(S, x(3, 2)))
rows("reshape", call(S, [3, 2]), call(S, [-1]), call(S, (1, 6)))
rows("flatten", call(CUBE), call(CUBE, 1), call(CUBE, 0, 1), call(X(())))
rows("unflatten", call(x(2, 6), 1, [2, 3]), call(x(6), 0, (-1, 2)))
rows(
    "squeeze", call(x(1, 3, 1)), call(x(1, 3, 1), 0), call(x(1, 3, 1), 1), call(x(1, 3, 1), [0, 2])
)
rows("squeeze_", call(x(1, 3, 1)), call(x(1, 3, 1), 0), call(x(1, 3, 1), [0, 2]))
rows("t t_", call(S), call(x(3)))
rows("_C.numpy_T _C.mT _C.mH _C.matrix_H adjoint", call(S), call(COMPLEX))
rows("permute", call(CUBE, [2, 0, 1]), call(CUBE, [1, 0, 2]), call(CUBE, (-1, 0, 1)))
rows("movedim moveaxis", call(CUBE, 0, 2), call(CUBE, [0, 1], [2, 0]))
rows("expand broadcast_to", call(x(1, 3), [2, 3]), call(x(3), [2, 3]), call(x(1, 3), [2, -1]))
rows("expand_as", call(x(1, 3), S))
rows("broadcast_tensors", call(S, x(3), x(2, 1)))
rows("_C._broadcast_shapes", call([2, 1, 3], [2, 1]), call([], []), call([2, 1], [1, 1]))
rows("select", call(S, 0, 1), call(S, -1, -2))
rows("narrow", call(S, 1, 1, 2), call(S, 0, -1, 1))
rows("diagonal", call(SQUARE), call(CUBE, 1, 1, 2), call(SQUARE, -1))
rows("unfold", call(x(7), 0, 3, 2), call(S, 1, 2, 1))
rows(
    "as_strided as_strided_",
    call(FLAT, [2, 2], [2, 1]),
    call(FLAT, [2, 2], [2, 1], 1),
    call(FLAT, [2, 3], [1, 1]),
    call(FLAT, [3], [0]),
)
rows(
    "split", call(x(5, 2), 2), call(x(5, 2), [1, 4]), call(x(2, 5), 3, 1), call(x(2, 5), [2, 3], -1)
)
rows("split_with_sizes", call(x(5, 2), [1, 4]), call(x(2, 5), [2, 3], 1))
rows("chunk", call(x(5, 2), 2), call(x(2, 5), 3, 1))
rows("tensor_split", call(x(5, 2), 2), call(x(5, 2), [1, 3]), call(x(2, 5), 3, -1))
rows("hsplit", call(x(2, 4), 2), call(x(2, 4), [1, 3]), call(x(4), 2))
rows("vsplit", call(x(4, 2), 2), call(x(4, 2), [1, 3]))
rows("dsplit", call(x(1, 2, 4), 2), call(x(1, 2, 4), [1]))
rows("unbind", call(S), call(S, 1))
rows("meshgrid", call([x(2), x(3)], indexing="ij"), call([x(2), x(3)], indexing="xy"))
rows(
    "cat concat concatenate",
    call([S, x(1, 3)]),
    call([S, x(2, 1)], 1),
    call([S, S, S], -1),
    call([x(0), S]),
)
rows("stack", call([S, S]), call([S, S, S], -1))
rows("hstack vstack row_stack dstack column_stack", call([S, S]), call([x(3), x(3)]))
rows("block_diag", call(S, x(1, 2), x(2)))
rows("cartesian_prod", call(x(2), x(3)), call(x(2)))
rows("combinations", call(x(4)), call(x(4), 3), call(x(3), 2, True))
rows("kron", call(S, x(2, 2)), call(x(2), x(3)))
rows("flip", call(S, [0]), call(S, [0, 1]), call(CUBE, (-1,)))
rows("roll", call(S, 1), call(S, 1, 0), call(S, [1, -1], [0, 1]), call(S, 5, 1))
rows("rot90", call(S), call(S, 2), call(CUBE, -1, [1, 2]))
rows("repeat", call(S, 2, 1), call(S, [2, 1, 2]))
rows("tile", call(S, [2]), call(S, (2, 1, 2)))
rows(
    "repeat_interleave",
    call(S, 2),
    call(S, 2, 1),
    call(S, index(3, 2), 0),
    call(index(3, 4)),
    call(S, X((1,), "sizes", "int64", 2), 1),
)
rows("tril triu", call(S), call(S, 1), call(CUBE, -1))
rows("trace", call(S), call(SQUARE))
rows("diag diagflat", call(x(3)), call(S), call(x(3), 1), call(S, -1))
rows("diag_embed", call(S), call(S, 1), call(S, 0, 0, 2))
rows("vander", call(x(3)), call(x(3), 4), call(x(3), 2, True))
rows("atleast_1d atleast_2d atleast_3d", call(X(())), call(x(3)), call(S), call([X(()), S]))
rows("unravel_index", call(index(6, 4), [2, 3]), call(index(6, 2, 2), (6,)))
rows("Tensor.where", call(S, mask(2, 3), x(3)), call(S, mask(3), 0.5))
rows("is_same_size is_set_to", call(S, S), call(S, x(3)))
rows("detach detach_ _is_view is_contiguous requires_grad_", call(S))
rows("item", call(X(())), call(x(1, 1)), call(index(5, 1)))
rows("data_ptr", call(S))
rows("sum_to_size", call(S, [1, 3]), call(S, 3), call(S, [2, 3]))

# ------------------------------------------------------------------ creation, copies, casts

rows(
    "zeros ones",
    call([2, 3]),
    call(2, 3),
    call([]),
    call([2], dtype=Dtype("int64")),
    call([2], requires_grad=True),
)
rows("empty", call([2, 3]), call(2, 3), call([0]), call([2], dtype=Dtype("bool")))
rows("full", call([2, 3], 1.5), call([2], 3), call([2], True), call([2], 1, dtype=Dtype("float64")))
rows("empty_strided", call([2, 3], [1, 2]))
rows("new_empty_strided", call(S, [2, 3], [1, 2]))
rows("empty_permuted", call([2, 3], [1, 0]))
rows("new_empty new_zeros new_ones", call(S, [3]), call(S, 2, 2), call(S, [2], dtype=Dtype("int8")))
rows("new_full", call(S, [2], 1.5))
rows("full_like", call(S, 1.5), call(INTEGERS, 3))
rows("scalar_tensor", call(1.5), call(2, dtype=Dtype("float64")))
rows(
    "arange",
    call(5),
    call(1, 4),
    call(0.5, 3.0, 0.5),
    call(5, 0, -2),
    call(3, dtype=Dtype("float64")),
    call(2.5),
)
rows(
    "linspace",
    call(0, 1, 5),
    call(-1.5, 2.5, 4),
    call(0.0, 1.0, 1),
    call(0, 10, 3, dtype=Dtype("int64")),
)
rows("logspace", call(0, 2, 3), call(0.0, 1.0, 4, base=2.0))
rows("eye", call(3), call(2, 3), call(2, dtype=Dtype("int64")))
rows("tril_indices triu_indices", call(3, 4), call(3, 3, 1), call(3, 3, -1))
rows(
    "to",
    call(S, Dtype("float32")),
    call(S, Dtype("float64")),
    call(S, "cpu"),
    call(S, X((1,), "real", "float32", constant=True)),
    call(S, Dtype("int64"), copy=True),
)
rows("type_as", call(S, X((1,), "real", "float32", constant=True)))
rows("copy_", call(S, S), call(S, x(3)), call(S, 1.5))
rows("fill_ fill", call(S, 1.5), call(S, X(())), call(S, 2))
rows("zero_", call(S))
rows("fill_diagonal_", call(SQUARE, 1.5), call(x(5, 2), 1, wrap=True))
rows("resize_", call(S, [3, 2]), call(S, [2]))
rows("resize_as_", call(S, x(3, 2)))
rows("set_", call(S), call(S, x(4)), call(S, x(4), 1, [2], [1]))

# ------------------------------------------------------------------ reductions, order

rows("logsumexp", call(S, 1), call(S, [0, 1]), call(S, 0, True))
rows(
    "softmax log_softmax",
    call(S, 1),
    call(S, 0),
    call(X(()), 0),
    call(S, -1, dtype=Dtype("float64")),
)
rows(
    "nn.functional.softmax nn.functional.log_softmax nn.functional.softmin",
    call(S, 1),
    call(S, dim=0),
    call(S, 1, dtype=Dtype("float64")),
)
rows("prod", call(S), call(S, 1), call(S, 0, True), call(S, dtype=Dtype("float64")))
rows(
    "var std var_mean std_mean",
    call(S),
    call(S, False),
    call(S, 1),
    call(S, [0, 1], False),
    call(S, 0, correction=0, keepdim=True),
    call(CUBE, (0, 2), correction=2),
)
rows(
    "norm",
    call(S),
    call(S, 1),
    call(S, 3, 1),
    call(S, "fro", [0, 1]),
    call(S, float("inf"), 0, True),
    call(S, 0),
    call(S, -1, 1),
    call(S, dtype=Dtype("float64")),
)
rows(
    "linalg.vector_norm",
    call(S),
    call(S, 1, 1),
    call(S, 3.5, [0, 1], True),
    call(S, float("-inf"), 0),
    call(S, 0, 1),
)
rows("dist", call(S, S), call(S, x(3), 1), call(S, S, 3))
rows("nn.functional.normalize", call(S), call(S, 1.0, 0), call(S, 2.0, 1, 1e-3))
rows(
    "cov",
    call(S),
    call(S, correction=0),
    call(x(4)),
    call(S, fweights=X((3,), "sizes", "int64", 4)),
    call(S, aweights=x(3, kind="positive")),
)
rows("corrcoef", call(S), call(x(4)))
rows("diff", call(S), call(S, 2), call(S, 1, 0), call(S, prepend=x(2, 1), append=x(2, 2)))
rows(
    "trapezoid trapz cumulative_trapezoid",
    call(S),
    call(S, x(3, kind="sorted")),
    call(S, dx=0.5, dim=0),
)
rows(
    "sort",
    call(S),
    call(S, 0),
    call(S, -1, True),
    call(S, stable=True),
    call(S, stable=True, dim=0, descending=True),
)
rows("argsort", call(S), call(S, 0), call(S, 1, True), call(S, stable=True))
rows("topk", call(S, 2), call(S, 1, 0), call(S, 2, -1, False))
rows("kthvalue", call(S, 2), call(S, 1, 0, True))
rows(
    "quantile nanquantile",
    call(S, 0.25),
    call(S, X((2,), "probability"), 1),
    *(
        call(S, 0.4, 0, True, interpolation=how)
        for how in ("lower", "higher", "midpoint", "nearest")
    ),
)
rows("aminmax", call(S), call(S, dim=1), call(S, dim=0, keepdim=True))
rows(
    "searchsorted",
    call(x(5, kind="sorted"), S),
    call(x(2, 5, kind="sorted"), x(2, 3), right=True),
    call(x(5, kind="sorted"), 0.5, side="right"),
)
rows(
    "bucketize",
    call(S, x(5, kind="sorted")),
    call(S, x(5, kind="sorted"), out_int32=True, right=True),
)
rows("bincount", call(index(5, 6)), call(index(5, 6), x(6)), call(index(5, 6), minlength=8))
rows("histc", call(S), call(S, 4, -2, 2))
rows(
    "unique",
    call(index(3, 6)),
    call(S),
    call(index(2, 3, 2), True, True, True),
    call(index(2, 4, 2), return_counts=True, dim=0),
)
rows(
    "unique_consecutive",
    call(index(2, 6)),
    call(index(2, 6), True, True),
    call(index(2, 4, 2), dim=0),
)

# ------------------------------------------------------------------ indexing

rows(
    "_C._index",
    call(S, [index(2, 4)]),
    call(S, [None, index(3, 2)]),
    call(S, [index(2, 2), index(3, 2)]),
    call(S, [mask(2, 3)]),
)
rows(
    "index_put",
    call(S, [index(2, 1)], x(3)),
    call(S, [index(2, 4), index(3, 4)], x(4), True),
    call(S, [mask(2, 3)], X(())),
)
rows("index_select", call(S, 0, index(2, 3)), call(S, 1, index(3, 2)))
rows("index_add", call(S, 0, index(2, 3), x(3, 3)), call(S, 1, index(3, 2), x(2, 2), alpha=2))
rows("index_copy", call(S, 0, permutation(2, 2), S), call(S, 1, permutation(3, 2), x(2, 2)))
rows("index_fill", call(S, 1, index(3, 2), 1.5), call(S, 0, index(2, 1), X(())))
rows(
    "index_reduce",
    *(
        call(S, 0, index(2, 3), x(3, 3, kind="positive"), how)
        for how in ("prod", "mean", "amax", "amin")
    ),
    call(S, 0, permutation(2, 2), S, "mean", include_self=False),
)
rows("gather", call(S, 1, index(3, 2, 2)), call(S, 0, index(2, 1, 3)))
rows(
    "scatter",
    call(S, 1, permutation(3, 1, 2), x(1, 2)),
    call(S, 0, index(2, 1, 3), 1.5),
    call(S, 1, permutation(3, 1, 2), 1.5),
)
rows("scatter_add", call(S, 1, index(3, 2, 2), x(2, 2)), call(S, 0, index(2, 1, 3), x(1, 3)))
rows(
    "scatter_reduce",
    *(
        call(S, 1, index(3, 2, 2), x(2, 2, kind="positive"), how)
        for how in ("sum", "prod", "mean", "amax", "amin")
    ),
    call(S, 1, index(3, 2, 2), x(2, 2), "amax", include_self=False),
)
rows("take", call(S, index(6, 4)), call(S, index(6, 2, 2)))
rows("put", call(S, permutation(6, 3), x(3)), call(S, index(6, 4), x(4), True))
rows("take_along_dim", call(S, index(3, 2, 2), 1), call(S, index(6, 4)))
rows("masked_select", call(S, mask(2, 3)), call(S, mask(3)))
rows("masked_scatter", call(S, mask(2, 3), x(6)), call(S, mask(3), x(6)))
rows("nonzero", call(mask(2, 3)), call(S, as_tuple=True))
rows("argwhere _C._where_nonzero", call(mask(2, 3)))
rows("select_scatter", call(S, x(3), 0, 1), call(S, x(2), 1, -1))
rows("slice_scatter", call(S, x(1, 3), 0, 1), call(S, x(2, 2), 1, 0, 3, 2))
rows("diagonal_scatter", call(SQUARE, x(3)), call(SQUARE, x(2), 1))
rows(
    "as_strided_scatter",
    call(FLAT, x(2, 2), [2, 2], [2, 1]),
    call(FLAT, x(2, 2), [2, 2], [2, 1], 1),
)
rows("nn.functional.one_hot", call(index(3, 4)), call(index(3, 2, 2), 5))
rows(
    "isin",
    call(index(5, 6), index(5, 2)),
    call(2, index(5, 4)),
    call(index(5, 4), 2),
    call(S, S, invert=True),
)
rows(
    "nn.functional.embedding",
    call(index(4, 3), x(4, 2)),
    call(index(4, 2, 2), x(4, 2), padding_idx=1),
    call(index(4, 6), x(4, 2), scale_grad_by_freq=True),
)
rows("embedding", call(x(4, 2), index(4, 3)), call(x(4, 2), index(4, 3), 1))
rows(
    "nn.functional.embedding_bag",
    *(call(index(4, 2, 3), x(4, 2), mode=how) for how in ("sum", "mean", "max")),
    call(index(4, 5), x(4, 2), index(1, 1)),
)
rows("embedding_renorm_", call(x(4, 2), index(4, 3), 0.5, 2.0))

# ------------------------------------------------------------------ products

MATRIX = x(3, 4)
TRIANGULAR = x(3, 3, kind="above_one")
BATCH = x(2, 3, 4)

rows("mm dsmm spmm", call(S, MATRIX))
rows("bmm", call(BATCH, x(2, 4, 2)))
rows("mv", call(S, x(3)))
rows("dot vdot", call(x(3), x(3)))
rows("linalg.vecdot vecdot", call(S, S), call(S, S, dim=0))
rows(
    "matmul ",
    call(S, MATRIX),
    call(x(3), x(3)),
    call(x(3), MATRIX),
    call(S, x(3)),
    call(BATCH, x(2, 4, 2)),
    call(BATCH, x(4)),
    call(x(2, 1, 2, 3), BATCH),
)
rows("inner", call(x(3), x(3)), call(S, x(4, 3)))
rows("outer ger", call(x(2), x(3)))
rows("addmm", call(x(4), S, MATRIX), call(x(2, 4), S, MATRIX, beta=0.5, alpha=2))
rows(
    "addbmm", call(x(3, 2), BATCH, x(2, 4, 2)), call(x(3, 2), BATCH, x(2, 4, 2), beta=0.5, alpha=2)
)
rows(
    "baddbmm",
    call(x(3, 2), BATCH, x(2, 4, 2)),
    call(x(2, 3, 2), BATCH, x(2, 4, 2), beta=0.5, alpha=2),
)
rows("addmv", call(x(2), S, x(3)), call(x(2), S, x(3), beta=0.5, alpha=2))
rows("addr", call(S, x(2), x(3)), call(S, x(2), x(3), beta=0.5, alpha=2))
rows(
    "nn.functional.linear",
    call(S, x(4, 3)),
    call(S, x(4, 3), x(4)),
    call(BATCH, x(2, 4), x(2)),
    call(x(3), x(2, 3)),
)
rows(
    "bilinear",
    call(S, x(2, 4), x(2, 3, 4)),
    call(S, x(2, 4), x(2, 3, 4), x(2)),
)
rows("einsum", call("ij,jk->ik", [S, MATRIX]), call("bij->bji", [BATCH]))
rows("tensordot", call(S, MATRIX, 1), call(BATCH, x(4, 3), ([1, 2], [1, 0])))
rows("chain_matmul", call(S, MATRIX, x(4, 2)))
rows("linalg.multi_dot", call([S, MATRIX, x(4, 2)]))
rows("matrix_power linalg.matrix_power", call(SQUARE, 2), call(SQUARE, 0), call(SQUARE, 3))
rows("cdist", call(S, x(4, 3)), call(S, x(4, 3), 1.0), call(CUBE, x(2, 4), 3.0))
rows("cross linalg.cross", call(S, S, dim=1), call(x(3, 2), x(3, 2), dim=0))
rows("det linalg.det logdet slogdet linalg.slogdet", call(x(3, 3, kind="definite")))
rows("inverse linalg.inv", call(x(3, 3, kind="definite")), call(x(2, 2, 2, kind="definite")))
rows(
    "linalg.solve_triangular",
    call(TRIANGULAR, x(3, 2), upper=True),
    call(TRIANGULAR, x(3, 2), upper=False, unitriangular=True),
    call(TRIANGULAR, x(2, 3), upper=False, left=False),
)
rows("linalg.svd", call(S, full_matrices=False), call(x(3, 2), False))
rows("cholesky linalg.cholesky", call(x(3, 3, kind="definite")))
rows(
    "linalg.eigh linalg.eigvalsh",
    call(x(3, 3, kind="definite")),
    call(x(2, 2, 2, kind="definite"), "U"),
)
# A loss of eigenvectors has a gradient only if it does not depend on their phases: see
# tests/parity/test_complex_linalg.py.
rows("linalg.eig", call(constant(3, 3)), call(constant(2, 2, 2)))
rows("linalg.eigvals", *(call(x(*shape, kind="definite")) for shape in ((3, 3), (2, 2, 2))))
rows("linalg.solve", call(x(3, 3, kind="definite"), x(3, 2)), call(x(3, 3, kind="definite"), x(3)))
rows("linalg.norm", call(S), call(S, 1), call(x(3), 3), call(S, 1, dim=-1))
rows("linalg.matrix_norm", call(S), call(S, 1), call(S, float("inf")))

# ------------------------------------------------------------------ networks

LABELS = index(3, 2)

rows(
    "nn.functional.mse_loss nn.functional.l1_loss nn.functional.smooth_l1_loss",
    *(call(S, S, reduction=how) for how in ("mean", "sum", "none")),
)
rows(
    "nn.functional.huber_loss",
    *(call(S, S, reduction=how, delta=0.6) for how in ("mean", "sum", "none")),
)
rows(
    "nn.functional.binary_cross_entropy",
    call(x(2, 3, kind="probability"), x(2, 3, kind="probability")),
    call(
        x(2, 3, kind="probability"),
        x(2, 3, kind="probability"),
        constant(3, kind="positive"),
        reduction="sum",
    ),
)
rows(
    "nn.functional.binary_cross_entropy_with_logits",
    call(S, x(2, 3, kind="probability")),
    call(
        S,
        x(2, 3, kind="probability"),
        constant(3, kind="positive"),
        pos_weight=constant(3, kind="positive"),
    ),
    call(S, x(2, 3, kind="probability"), reduction="none"),
)
rows(
    "nn.functional.nll_loss",
    call(S, LABELS),
    call(S, LABELS, constant(3, kind="positive"), reduction="sum"),
    call(S, LABELS, reduction="none"),
    call(S, LABELS, ignore_index=1),
    call(x(2, 3, 4), index(3, 2, 4)),
    call(x(3), index(3)),
)
rows(
    "nn.functional.linear_cross_entropy",
    call(x(3, 4), x(5, 4), index(5, 3)),
    call(x(3, 4), x(5, 4), index(5, 3), linear_bias=x(5), weight=constant(5, kind="positive")),
    call(x(3, 4), x(2, 3, 4), index(2, 3, 3), linear_bias=x(2, 3), reduction="sum"),
    call(x(4), x(5, 4), x(5, kind="distribution"), label_smoothing=0.2),
    call(x(3, 4), x(5, 4), index(5, 3), ignore_index=1, reduction="none"),
)
rows(
    "nn.functional.cross_entropy",
    call(S, LABELS),
    call(S, LABELS, constant(3, kind="positive")),
    call(S, x(2, 3, kind="distribution")),
    call(S, LABELS, label_smoothing=0.2, reduction="sum"),
    call(x(2, 3, 4), index(3, 2, 4), reduction="none"),
)
rows(
    "nn.functional.kl_div",
    call(S, x(2, 3, kind="distribution"), reduction="batchmean"),
    call(S, S, reduction="sum", log_target=True),
)
rows(
    "nn.functional.hinge_embedding_loss nn.functional.soft_margin_loss",
    call(S, constant(2, 3, kind="sign")),
)
rows("nn.functional.margin_ranking_loss", call(x(3), x(3), constant(3, kind="sign"), margin=0.3))
rows("nn.functional.cosine_embedding_loss", call(S, S, constant(2, kind="sign"), 0.1))
rows(
    "nn.functional.poisson_nll_loss",
    call(S, x(2, 3, kind="positive")),
    call(S, x(2, 3, kind="positive"), full=True),
)
rows("nn.functional.gaussian_nll_loss", call(S, S, x(2, 3, kind="positive")))
rows("nn.functional.triplet_margin_loss", call(S, S, S))

# the same in torch, with a number for the reduction
TARGET, SIGNS = x(2, 3, kind="distribution"), constant(2, 3, kind="sign")
rows("kl_div", call(S, TARGET), call(S, TARGET, 1), call(S, S, 2, log_target=True))
rows("hinge_embedding_loss", call(S, SIGNS), call(S, SIGNS, 0.7, 1))
rows("margin_ranking_loss", call(x(3), x(3), constant(3, kind="sign"), 0.3, 2))
rows("cosine_embedding_loss", call(S, S, constant(2, kind="sign"), 0.1, 1))
rows("poisson_nll_loss", call(S, x(2, 3, kind="positive"), True, False, 1e-8, 1))
rows("triplet_margin_loss", call(S, S, S), call(S, S, S, 1.5, 2, 1e-6, True, 1))
rows(
    "binary_cross_entropy_with_logits",
    call(S, x(2, 3, kind="probability")),
    call(S, x(2, 3, kind="probability"), reduction=1, pos_weight=constant(3, kind="positive")),
)
rows("norm_except_dim", call(x(2, 3, 4)), call(x(2, 3, 4), 2, -2), call(S, 1, -1), call(x(3)))

rows("cosine_similarity", call(S, S), call(S, x(3), 0))
rows("pairwise_distance", call(S, S), call(S, S, 1.0))
rows(
    "nn.functional.multi_margin_loss",
    call(S, LABELS),
    call(S, LABELS, 2, 0.5, constant(3, kind="positive"), reduction="none"),
)
rows("nn.functional.multilabel_margin_loss", call(S, index(3, 2, 3)))
rows("nn.functional.multilabel_soft_margin_loss", call(S, x(2, 3, kind="probability")))
rows(
    "conv1d",
    call(x(2, 2, 6), x(3, 2, 3)),
    call(x(2, 2, 6), x(3, 2, 3), x(3), 2, 1),
    call(x(2, 6), x(3, 2, 3)),
)
rows(
    "conv2d",
    call(x(2, 2, 4, 5), x(3, 2, 2, 3)),
    call(x(1, 2, 4, 4), x(3, 2, 3, 3), x(3), 2, 1),
    call(x(1, 4, 4, 4), x(4, 2, 2, 2), x(4), padding=1, groups=2),
    call(x(1, 2, 6, 6), x(2, 2, 3, 2), None, 1, 2, dilation=2),
    call(x(2, 4, 4), x(3, 2, 2, 2), padding="same"),
)
rows(
    "convolution",
    call(x(1, 2, 4), x(3, 2, 2), x(3), [1], [0], [1], False, [0], 1),
    call(x(1, 2, 3, 3), x(2, 3, 2, 2), x(3), [2, 1], [1, 0], [1, 1], True, [1, 0], 1),
)
rows(
    "_convolution",
    call(x(1, 2, 4), x(3, 2, 2), None, [1], [0], [1], False, [0], 1, False, False, False, False),
)
rows("conv_tbc", call(x(5, 2, 3), x(2, 3, 4), x(4)), call(x(5, 2, 3), x(3, 3, 2), x(2), 1))
rows("conv3d", call(x(1, 2, 3, 3, 3), x(2, 2, 2, 2, 2)))
rows(
    "conv_transpose2d",
    call(x(1, 2, 3, 3), x(2, 3, 2, 2)),
    call(x(1, 2, 3, 3), x(2, 3, 2, 2), x(3), 2, 1),
)
rows("conv_transpose1d", call(x(1, 2, 3), x(2, 3, 2)))
rows(
    "max_pool1d avg_pool1d",
    call(x(1, 2, 6), 2),
    call(x(2, 6), 3, 2, 1),
)
rows(
    "max_pool2d",
    call(x(1, 2, 4, 6), 2),
    call(x(2, 5, 5), 3, 2, 1),
    call(x(1, 1, 5, 5), 2, 1, dilation=2, ceil_mode=True),
)
rows(
    "nn.functional.avg_pool2d avg_pool2d",
    call(x(1, 2, 4, 6), 2),
    call(x(2, 5, 5), 3, 2, 1),
    call(x(1, 1, 5, 5), (2, 3), 2, 1, True, False),
    call(x(1, 1, 4, 4), 2, divisor_override=3),
)
rows("nn.functional.max_pool2d_with_indices max_pool2d_with_indices", call(x(1, 2, 4, 6), 2))
rows(
    "nn.functional.adaptive_avg_pool2d nn.functional.adaptive_max_pool2d adaptive_avg_pool2d",
    call(x(1, 2, 4, 5), (2, 3)),
    call(x(2, 5, 5), 1),
)
rows("adaptive_avg_pool1d", call(x(2, 5), 3))
rows(
    "nn.functional.batch_norm",
    call(x(3, 2), constant(2), constant(2, kind="positive"), x(2), x(2)),
    call(x(2, 2, 3, 2), None, None, x(2), x(2), True),
    call(x(3, 2), constant(2), constant(2, kind="positive"), training=True),
)
rows(
    "layer_norm",
    call(S, [3]),
    call(BATCH, [3, 4], x(3, 4), x(3, 4)),
    call(S, (3,), x(3), None, 1e-3),
)
rows("nn.functional.group_norm group_norm", call(x(2, 4, 3), 2), call(x(2, 4, 3), 2, x(4), x(4)))
rows("nn.functional.instance_norm", call(x(2, 2, 4)), call(x(2, 2, 4), weight=x(2), bias=x(2)))
rows("rms_norm", call(S, [3]), call(S, [3], x(3)))
rows("nn.functional.local_response_norm", call(x(1, 4, 3), 2))
rows(
    "nn.functional.pad",
    call(S, (1, 2)),
    call(S, [1, 0, 0, 2], "constant", 1.5),
    call(x(1, 2, 4), (1, 2), "reflect"),
    call(x(1, 2, 4), (1, 2), "replicate"),
    call(x(1, 2, 4), (1, 2), "circular"),
    call(S, (-1, 0)),
)
for _rank in (1, 2, 3):
    for _kind in ("replication", "reflection") if _rank < 3 else ("replication",):
        rows(f"_C.{_kind}_pad{_rank}d", call(x(1, 2, *[4] * _rank), [1, 2] * _rank))
rows("constant_pad_nd", call(S, (1, 2)), call(S, [1, 0, 0, 2], 1.5))
rows(
    "nn.functional.unfold", call(x(1, 2, 4, 4), 2), call(x(1, 2, 4, 4), (2, 3), padding=1, stride=2)
)
rows("nn.functional.fold", call(x(1, 8, 9), (4, 4), 2))
rows("pixel_shuffle", call(x(1, 4, 2, 3), 2))
rows("pixel_unshuffle", call(x(1, 1, 4, 6), 2))
rows(
    "nn.functional.interpolate nn.functional.upsample",
    call(x(1, 2, 3, 3), scale_factor=2),
    call(x(1, 2, 3, 3), (5, 4), mode="bilinear"),
)
rows(
    "nn.functional.scaled_dot_product_attention",
    call(BATCH, BATCH, BATCH),
    call(BATCH, BATCH, BATCH, is_causal=True),
)
rows(
    "dropout nn.functional.dropout nn.functional.alpha_dropout",
    call(S, 0.5, True),
    call(S, 0.0, True),
    call(S, 1.0, True),
    call(S, 0.5, False),
)
rows("alpha_dropout feature_dropout native_dropout", call(S, 0.5, True), call(S, 0.5, False))
rows(
    "nn.functional.feature_alpha_dropout nn.functional.dropout1d nn.functional.dropout2d",
    call(x(2, 3, 4, 4), 0.5, True),
)

# ------------------------------------------------------------------ random numbers

rows("rand randn", call([2, 3]), call(2, 3), call([20], dtype=Dtype("float64")))
rows("rand_like randn_like", call(S))
rows("randint", call(7, [2, 3]), call(-3, 9, (20,)), call(2, [3], dtype=Dtype("float32")))
rows("randint_like", call(S, 5), call(S, -2, 5))
rows("randperm", call(7), call(0), call(3, dtype=Dtype("int32")))
rows("bernoulli", call(x(2, 3, kind="probability")), call(S, 0.3))
rows("bernoulli_", call(S), call(S, 0.3), call(S, x(2, 3, kind="probability")))
rows("normal_", call(S), call(S, 1.0, 0.5))
rows("uniform_", call(S), call(S, -1, 1))
rows("random_", call(S), call(S, 5), call(S, 2, 9))
rows("exponential_ cauchy_ log_normal_", call(S))
rows("geometric_", call(S, 0.4))
rows("normal", call(x(2, 3), x(2, 3, kind="positive")), call(0.0, 1.0, [2, 3]), call(x(2, 3), 0.5))
rows("multinomial", call(x(2, 3, kind="positive"), 2), call(x(4, kind="positive"), 5, True))
rows("poisson _standard_gamma _sample_dirichlet", call(x(2, 3, kind="positive")))
rows("_standard_gamma_grad", call(x(2, 3, kind="positive"), x(2, 3, kind="positive")))
rows(
    "_dirichlet_grad",
    call(x(2, 3, kind="probability"), x(3, kind="probability"), x(2, 1, kind="above_one")),
)
SOBOL = index(1 << 30, 3, 30)
rows("_C._sobol_engine_draw", call(index(1 << 30, 3), 4, SOBOL, 3, 5, Dtype("float64")))
rows("_C._sobol_engine_ff_", call(index(1 << 30, 3), 4, SOBOL, 3, 5))
rows("_C._sobol_engine_scramble_", call(SOBOL, index(2, 3, 30, 30), 3))
rows("nonzero_static", call(mask(2, 3), size=4), call(mask(2, 3), size=2, fill_value=-7))
rows("_C._is_all_true", call(mask(2, 3)), call(mask()))
rows("_C._tensordot", call(S, MATRIX, [1], [0]))
rows("native_layer_norm", call(S, [3], x(3), x(3), 1e-5), call(S, [3], None, None, 1e-5))
NORM = (x(3, 2), x(2), x(2), constant(2), constant(2, kind="positive"), False, 0.1, 1e-5)
rows(
    "_C._batch_norm_with_update",
    call(x(4, 2, 3), x(2), x(2), constant(2), constant(2, kind="positive"), 0.1, 1e-5),
    call(x(5, 2), None, None, constant(2), constant(2, kind="positive"), 0.3, 1e-3),
)
rows("native_batch_norm", call(*NORM), call(x(3, 2), x(2), None, None, None, True, 0.1, 1e-5))
rows(
    "batch_norm", call(*NORM, False), call(x(3, 2), x(2), None, None, None, True, 0.1, 1e-5, False)
)
rows("max_pool3d nn.functional.max_pool3d_with_indices", call(x(1, 2, 3, 4), 2))
rows("nn.functional.avg_pool3d", call(x(1, 2, 3, 4), 2))
rows("nn.functional.adaptive_avg_pool3d nn.functional.adaptive_max_pool3d", call(x(1, 2, 3, 4), 2))
rows("max_pool1d_with_indices", call(x(2, 6), 2))
rows("nn.functional.adaptive_max_pool1d", call(x(2, 5), 3))
rows("nn.functional.lp_pool1d", call(x(1, 2, 6), 2.0, 2))
rows("nn.functional.lp_pool2d", call(x(1, 2, 4, 4), 2.0, 2), call(x(1, 2, 4, 4), 3.0, (2, 1), 1))
rows("nn.functional.lp_pool3d", call(x(1, 2, 4, 4, 2), 2.0, 2))
rows("channel_shuffle native_channel_shuffle", call(x(1, 4, 2, 2), 2))
rows("nn.functional.dropout1d nn.functional.feature_alpha_dropout", call(x(2, 3, 4), 0.5, True))
rows("nn.functional.dropout2d", call(x(2, 3, 2, 2), 0.5, True))
rows("nn.functional.dropout3d", call(x(2, 3, 2, 2, 1), 0.5, True))
rows("conv_transpose3d", call(x(1, 2, 2, 2, 2), x(2, 1, 2, 2, 2)))
rows("instance_norm", call(x(2, 2, 4), x(2), x(2), None, None, True, 0.1, 1e-5, False))
rows("nn.functional.instance_norm", call(x(2, 2, 4)), call(x(2, 2, 4), weight=x(2), bias=x(2)))
rows("tensordot", call(S, MATRIX, 1), call(S, S, 2))
rows("adaptive_max_pool1d", call(x(2, 5), 3))
rows("nn.functional.hardtanh", call(S), call(S, -0.5, 0.75))
DEFINITE = x(3, 3, kind="definite")
rows("linalg.inv_ex linalg.cholesky_ex linalg.pinv pinverse", call(DEFINITE))
rows("linalg.solve_ex", call(DEFINITE, x(3, 2)))
MATRICES = (call(DEFINITE), call(x(2, 2, 3)), call(x(4, 2)))
PIVOTS = X((3,), "sizes", "int32", 3)
rows("linalg.lu_factor linalg.lu_factor_ex linalg.lu _lu_with_info", *MATRICES)
rows(
    "lu_unpack",
    call(DEFINITE, PIVOTS),
    call(x(2, 2, 3), X((2, 2), "sizes", "int32", 2)),
    call(DEFINITE, PIVOTS, unpack_pivots=False),
)
rows(
    "linalg.lu_solve",
    call(DEFINITE, PIVOTS, x(2, 3, 2)),
    call(DEFINITE, PIVOTS, x(3, 2), adjoint=True),
    call(DEFINITE, PIVOTS, x(2, 3), left=False),
    call(DEFINITE, PIVOTS, x(2, 3), left=False, adjoint=True),
)
rows("lu_solve", call(x(3, 2), DEFINITE, PIVOTS))
rows(
    "linalg.lstsq",
    call(x(5, 3), x(5, 2)),
    call(x(2, 5, 3), x(2, 5)),
    call(x(2, 3), x(2, 1), rcond=1e-3, driver="gelsd"),
)
rows(
    "linalg.matrix_rank",
    call(x(2, 4, 3)),
    call(x(3, 3), 0.5),
    call(DEFINITE, atol=1.5, rtol=0.1, hermitian=True),
)
rows(
    "linalg.cond",
    call(x(4, 3)),
    *(call(DEFINITE, p) for p in (-2, 1, float("-inf"), "fro", "nuc")),
)
rows("matrix_exp linalg.matrix_exp", call(x(3, 3)), call(x(2, 1, 1)), call(x(2, 2, 2)))
rows("orgqr linalg.householder_product", call(x(4, 3), x(2)), call(x(2, 3, 3), x(2, 3)))
rows("linalg.diagonal", call(x(2, 3, 4)), call(x(2, 3, 4), offset=1, dim1=0))
rows("linalg.vander", call(x(3)), call(x(2, 3), N=4), call(x(), N=2))
rows("linalg.tensorinv", call(x(2, 3, 6)), call(x(6, 2, 3), ind=1))
rows(
    "linalg.tensorsolve",
    call(x(2, 3, 6), x(2, 3)),
    call(x(6, 4, 4, 3, 2), x(4, 3, 2), dims=[0, 2]),
)
rows("svd", call(x(3, 2)), call(x(2, 3, 3), False))
rows("cholesky_inverse", *(call(DEFINITE, upper) for upper in (False, True)))
rows(
    "triangular_solve",
    *(call(x(3, 2), TRIANGULAR, *flags) for flags in itertools.product((False, True), repeat=3)),
)
rows("nuclear_norm", call(x(3, 2)), call(x(3, 2), True), call(x(2, 3, 2), (0, 2)))
rows("frobenius_norm", call(x(3, 2), (0, 1)), call(x(3, 2), 1, True))
rows("svd_lowrank", call(x(4, 6), 2), call(x(7, 5), 3, 1), call(x(2, 5, 4), 2, M=x(1, 4)))
rows("pca_lowrank", call(x(4, 6), 2), call(x(7, 5), center=False))
rows(
    "cholesky_solve",
    *(call(x(3, 2), constant(3, 3, kind="definite"), upper=upper) for upper in (False, True)),
    call(x(2, 1, 3, 2), constant(2, 3, 3, kind="definite")),
)

# ------------------------------------------------------------------ slopes, histograms, copies

rows(
    "gradient",
    call(x(4)),
    call(x(3, 4), edge_order=2),
    call(x(3, 4), spacing=2, dim=1),
    call(x(3, 4), spacing=0.5, dim=[0, -1], edge_order=2),
    call(x(3, 4), dim=[1]),
    call(x(3, 4), spacing=[0.5, 2.0]),
    call(x(3, 4), spacing=[2.0], dim=[1]),
    call(x(3, 4), spacing=[x(3), x(4)]),
    call(x(3, 4), spacing=[x(4, kind="positive")], dim=[-1], edge_order=2),
)
rows("renorm", call(x(3, 2, 4), 2, 0, 0.8), call(S, 1, -1, 1.5), call(S, float("inf"), 0, 0.5))
rows(
    "histogram",
    call(S, 5),
    call(x(9), x(5, kind="sorted")),
    call(S, 4, range=[0.0, 1.5], weight=S, density=True),
)
rows(
    "histogramdd",
    call(x(9, 2), 3),
    call(x(3, 3, 2), [2, 3], density=True),
    call(x(9, 2), [x(4, kind="sorted"), x(3, kind="sorted")], weight=x(9)),
)
rows("native_group_norm", call(x(2, 4, 3), x(4), x(4), 2, 4, 3, 2, 0.5))
rows("_C.slice slice_copy", call(x(4, 3)), call(x(4, 3), 1, 0, 9, 2), call(x(4), 0, -2))
rows("as_strided_copy", call(FLAT, [2, 2], [2, 1], 1))
rows("diagonal_copy", call(CUBE, 1, 1, 2))
rows("expand_copy", call(x(1, 3), [2, 3]))
rows("narrow_copy", call(S, 1, 1, 2))
rows("permute_copy", call(CUBE, [2, 0, 1]))
rows("select_copy", call(S, 0, 1))
rows("squeeze_copy", call(x(1, 3, 1)), call(x(1, 3, 1), 0), call(x(1, 3, 1), [0, 2]))
rows("t_copy", call(S))
rows("unfold_copy", call(x(7), 0, 3, 2))
rows("view_copy", call(S, [3, 2]), call(x(2, 4), Dtype("int32")))
_SYMMETRIC = [x(3, 3, kind="definite"), x(2, 4, 4, kind="definite")]
rows(
    "linalg.ldl_factor linalg.ldl_factor_ex",
    *map(call, _SYMMETRIC),
    call(parts(3, 3)),
    call(parts(2, 4, 4), hermitian=True),
)
rows(
    "linalg.ldl_solve",
    call(x(3, 3, kind="definite"), X((3,), "places", "int32"), x(3, 2)),
    call(x(2, 4, 4, kind="definite"), X((2, 4), "places", "int64"), x(4, 1)),
    call(parts(3, 3), X((3,), "places", "int32"), parts(3, 2)),
    call(parts(2, 4, 4), X((2, 4), "places", "int64"), parts(4, 1), hermitian=True),
)
rows("geqrf", call(x(4, 3)), call(x(2, 2, 4)))
rows(
    "ormqr",
    call(x(4, 3), x(3), x(4, 2)),
    call(x(2, 3, 3), x(2, 3), x(2, 3, 2), transpose=True),
    call(x(4, 2), x(2), x(3, 4), left=False),
    call(x(4, 2), x(2), x(3, 4), False, True),
)
_LENGTHS = X((2,), "halves", "int64", 4)
rows(
    "segment_reduce _segment_reduce",
    *(
        call(x(4, 2), how, lengths=_LENGTHS, initial=initial)
        for how in ("sum", "prod", "mean", "max", "min")
        for initial in (None, 0.75)
    ),
    call(x(2, 4, 2), "prod", offsets=X((2, 3), "bounds", "int64", 4), axis=1),
    call(x(4), "amax", offsets=X((3,), "bounds", "int32", 4), unsafe=True),
)
rows("hash_tensor", call(S), call(CUBE, 1), call(CUBE, [0, -1], keepdim=True))
rows("_chunk_cat", call([S, x(3, 2)], 0, 2), call([S, x(2, 4, 2)], 1, 3), call([CUBE], -2, 2))
_PICKS = [index(2, 4), index(3, 4)]
rows(
    "_unsafe_masked_index",
    call(S, checkered(4), _PICKS, 0.5),
    call(CUBE, checkered(4, 1), [index(2, 4), index(5, 4)], 0),
    call(S, checkered(2, 1), [index(9, 2)], -1.5),
)
rows(
    "_unsafe_masked_index_put_accumulate",
    call(S, checkered(4), _PICKS, x(4)),
    call(CUBE, checkered(4, 1), [index(2, 4), index(5, 4)], x(4, 4)),
)
rows(
    "_C._upsample_bilinear2d_aa _C._upsample_bicubic2d_aa",
    call(x(1, 2, 5, 6), (2, 3), False),
    call(x(1, 2, 3, 4), (5, 3), True),
    call(x(1, 2, 5, 6), None, False, (0.5, 0.7)),
)
rows("split_copy unsafe_split", call(x(5, 2), 2), call(x(2, 5), 3, 1))
rows("split_with_sizes_copy unsafe_split_with_sizes", call(x(5, 2), [1, 4]))
rows("unbind_copy", call(S, 1))
rows("unsafe_chunk", call(x(5, 2), 2), call(x(2, 5), 3, 1))
POLYNOMIALS = (
    "special.chebyshev_polynomial_t special.chebyshev_polynomial_u special.chebyshev_polynomial_v "
    "special.chebyshev_polynomial_w special.shifted_chebyshev_polynomial_t "
    "special.shifted_chebyshev_polynomial_u special.shifted_chebyshev_polynomial_v "
    "special.shifted_chebyshev_polynomial_w special.hermite_polynomial_h "
    "special.hermite_polynomial_he special.laguerre_polynomial_l special.legendre_polynomial_p"
)
rows(POLYNOMIALS, call(S, 4), call(S, index(7, 3)), call(0.5, index(7, 3)))

# ------------------------------------------------------------------ torch.masked

rows(
    " ".join(f"masked.{name}" for name in "sum prod amax amin mean logsumexp var std".split()),
    call(CUBE, mask=checkered(2, 3, 4)),
    call(CUBE, 1, mask=checkered(3, 4)),
    call(CUBE, [0, -1], keepdim=True, mask=checkered(3, 4)),
    call(CUBE, 0, dtype=Dtype("float64")),
)
rows(
    "masked.argmax masked.argmin masked.median",
    call(CUBE, 1, mask=checkered(2, 3, 4)),
    call(CUBE, -1, keepdim=True, mask=checkered(4)),
    call(S, 0),
)
rows(
    "masked.norm",
    call(CUBE, mask=checkered(3, 4)),
    call(CUBE, float("inf"), 1, mask=checkered(2, 3, 4)),
    call(CUBE, 1, [0, 1], keepdim=True),
)
rows(
    "masked.cumsum masked.cumprod masked.softmax masked.softmin",
    call(CUBE, 1, mask=checkered(2, 3, 4)),
    call(x(2, 3, kind="positive"), -1, mask=checkered(3)),
    call(S, 0, dtype=Dtype("float64")),
)
rows(
    "masked.normalize",
    call(CUBE, 2.0, 1, mask=checkered(2, 3, 4)),
    call(S, 1.0, -1, eps=0.5),
)
# What these mask out is infinite, of which no difference quotient is: parity/test_masked.py.
rows("masked.log_softmax", call(CUBE, 1), call(S, 0, dtype=Dtype("float64")))
rows("masked.logaddexp", call(S, x(2, 3)), call(S, x(3)))

# ------------------------------------------------------------------ windows

WINDOWS = (
    "bartlett blackman cosine exponential gaussian general_hamming hamming hann kaiser nuttall"
)
rows(
    " ".join(f"signal.windows.{name}" for name in WINDOWS.split()),
    call(5, dtype=Dtype("float64")),
    call(4, sym=False, dtype=Dtype("float64")),
)
rows("signal.windows.general_cosine", call(5, a=[0.5, 0.3, 0.2]), call(1, a=[1.0], sym=False))
rows(
    "bartlett_window blackman_window hamming_window hann_window kaiser_window",
    call(5, dtype=Dtype("float64")),
)

# ------------------------------------------------------------------ Fourier transforms

rows("fft.fftfreq fft.rfftfreq", call(5, dtype=Dtype("float64")), call(4, 0.5), call(1, d=2.0))
rows(
    "fft.fft fft.ifft fft.rfft fft.irfft fft.hfft fft.ihfft",
    call(S),
    call(x(5)),
    call(S, 4, 0, "ortho"),
)
rows(
    "fft.fft2 fft.ifft2 fft.rfft2 fft.irfft2 fft.hfft2 fft.ihfft2 "
    "fft.fftn fft.ifftn fft.rfftn fft.irfftn fft.hfftn fft.ihfftn",
    call(S),
    call(S, (3, 2), norm="forward"),
    call(S, dim=(1, 0)),
)
rows(
    "stft",
    call(x(20), 8, window=x(8), return_complex=True),
    call(x(2, 20), 8, 3, 5, x(5), return_complex=True, center=False, normalized=True),
)
EXEMPT["istft"] = "takes complex numbers: parity/test_fft.py"
rows("fft.fftshift fft.ifftshift", call(S), call(x(5)), call(S, 1), call(S, dim=(-1, 0)))

# ------------------------------------------------------------------ layers composed of other ops

STEPS, WRITTEN = x(5, 2, 4), X((2, 2), "sizes", "int64", 2)
rows(
    "nn.functional.ctc_loss",
    call(STEPS, WRITTEN, (5, 4), (2, 1)),
    call(STEPS, WRITTEN, [5, 5], [0, 2], 3, "none", True),
    call(
        STEPS, WRITTEN, X((2,), "sizes", "int64", 5), X((2,), "sizes", "int64", 2), reduction="sum"
    ),
    call(x(5, 4), X((2,), "sizes", "int64", 2), (5,), (2,)),
)
rows("ctc_loss", call(STEPS, WRITTEN, (5, 4), (2, 1)), call(STEPS, WRITTEN, [5, 5], [1, 2], 3, 0))
for _n in (1, 2, 3):
    _places = (1, 2, *[1] * (_n - 1), 3)
    rows(
        f"nn.functional.max_unpool{_n}d",
        call(x(*_places), permutation(3, *_places), 2),
        call(x(*_places), permutation(3, *_places), 3, 2, 1),
        call(x(*_places[1:]), permutation(3, *_places[1:]), 2, output_size=[*[3] * (_n - 1), 7]),
    )
_DRAWN = constant(1, 2, 2, kind="probability")
rows(
    "nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool2d_with_indices",
    call(x(1, 2, 5, 6), 2, 3),
    call(x(1, 2, 5, 6), (2, 3), (3, 1), return_indices=True, _random_samples=_DRAWN),
    call(x(2, 5, 6), 2, output_ratio=(0.5, 0.6), _random_samples=_DRAWN),
)
_DRAWN_3D = constant(1, 2, 3, kind="probability")
rows(
    "nn.functional.fractional_max_pool3d nn.functional.fractional_max_pool3d_with_indices",
    call(x(1, 2, 4, 4, 5), 2, 2),
    call(x(1, 2, 4, 4, 5), (1, 2, 3), (3, 2, 2), _random_samples=_DRAWN_3D),
    call(x(2, 4, 6, 5), 2, output_ratio=(0.5, 0.7, 0.6), _random_samples=_DRAWN_3D),
)
MAPS = x(2, 2, 3)
rows(
    "nn.functional.affine_grid affine_grid_generator",
    call(MAPS, (2, 1, 3, 4), False),
    call(MAPS, [2, 3, 1, 2], True),
    call(x(1, 3, 4), (1, 1, 2, 1, 3), True),
)
IMAGE, PLACES = x(1, 2, 3, 4), x(1, 3, 2, 2)
rows(
    "nn.functional.grid_sample",
    call(IMAGE, PLACES, align_corners=False),
    call(IMAGE, PLACES, "nearest", "border", True),
    call(IMAGE, PLACES, "bicubic", "reflection", False),
    call(x(1, 1, 2, 3, 2), x(1, 2, 1, 2, 3), "bilinear", "zeros", True),
)
rows("grid_sampler_2d", call(IMAGE, PLACES, 0, 1, False), call(IMAGE, PLACES, 2, 0, True))
rows("grid_sampler_3d", call(x(1, 1, 2, 3, 2), x(1, 2, 1, 2, 3), 0, 2, True))
rows("grid_sampler", *ROWS["grid_sampler_2d"], *ROWS["grid_sampler_3d"])
rows("nn.functional.gumbel_softmax", call(S), call(S, 0.5, True), call(S, 2.0, False, dim=0))
rows(
    "nn.functional.upsample_nearest",
    call(x(1, 2, 3), 5),
    call(x(1, 2, 3, 2), scale_factor=2),
    call(x(1, 2, 3, 2), scale_factor=(2.5, 1.5)),
)
rows(
    "nn.functional.upsample_bilinear",
    call(x(1, 2, 3, 2), (4, 5)),
    call(x(1, 2, 3, 2), scale_factor=[1.5, 2.5]),
)


def attention(*, masks: tuple[Any, Any] = (None, None), parts: bool = False, **more: Any) -> Call:
    """A call of `_multi_head_attention_forward`: two heads of a width of 4."""
    added, width = more.get("added", (None, None)), x(4, 4)
    whole = (None, None) if parts else (x(12, 4), x(12))
    tensors = (
        *(x(3, 2, 4), x(5, 2, 4), x(5, 2, 4), *whole, *added, width, x(4), *masks),
        *([width] * 3 if parts else [None] * 3),
        *(None, None),
    )
    zeros, drawn, weights = (more.get(name, False) for name in ("zeros", "drawn", "weights"))
    return call(tensors, 4, 2, zeros, 0.4, drawn, weights, parts, more.get("mean", True), False)


rows(
    "_C._multi_head_attention_forward",
    attention(),
    attention(weights=True, masks=(x(2, 5), x(3, 5))),
    attention(weights=True, mean=False, added=(x(1, 1, 4), x(1, 1, 4)), zeros=True),
    attention(parts=True, masks=(None, mask(3, 5))),
)

# ------------------------------------------------------------------ ops of the dispatcher alone

rows("_softmax _log_softmax", call(S, 1, False), call(CUBE, 0, False))
rows("_safe_softmax", call(S, 1), call(CUBE, 0))
rows(
    "_softmax_backward_data _log_softmax_backward_data",
    call(S, x(2, 3, kind="probability"), 1, Dtype("float64")),
    call(CUBE, x(2, 3, 4, kind="probability"), -2, Dtype("float64")),
)
rows("select_backward", call(S, [2, 4, 3], 1, 2), call(X(()), [3], 0, -1))
rows("slice_backward", call(S, [2, 8], 1, 1, 7, 2), call(S, [4, 3], 0, 1, 3, 1))
rows("diagonal_backward", call(x(3), [3, 4], 0, 0, 1), call(x(4, 2), [2, 3, 4], 1, 0, 1))
rows("unfold_backward", call(x(3, 3), [7], 0, 3, 2), call(x(2, 2, 2), [2, 3], 1, 2, 1))
