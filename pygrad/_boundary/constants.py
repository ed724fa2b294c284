"""Numbers that Python and C share, read from the binary by name."""

from __future__ import annotations

from typing import Final

from .host import layout

# How a call is meant.
INPLACE: Final = layout["call_inplace"]
METHOD: Final = layout["call_method"]
PREPARED: Final = layout["call_prepared"]
LONG: Final = layout["call_long"]
"""The host lets other threads run during the call."""

# Flags of a result beside its handle: boundary/pg.h.
PENDING: Final = 1 << layout["bit_pending"]
DESCRIBED: Final = 1 << layout["bit_described"]
VIEW: Final = 1 << layout["bit_view"]
SELF: Final = 1 << layout["bit_self"]
FAILED: Final = 1 << layout["bit_failed"]
TOO_LONG: Final = 1 << layout["bit_too_long"]
HEAD: Final = 1 << layout["bit_head"]

# How a value travels.
MISSING: Final = layout["tag_missing"]
NONE: Final = layout["tag_none"]
TENSOR: Final = layout["tag_tensor"]
INT: Final = layout["tag_int"]
FLOAT: Final = layout["tag_float"]
BOOL: Final = layout["tag_bool"]
STR: Final = layout["tag_str"]
DTYPE: Final = layout["tag_dtype"]
INTS: Final = layout["tag_ints"]
FLOATS: Final = layout["tag_floats"]
TENSORS: Final = layout["tag_tensors"]
INDEX: Final = layout["tag_index"]
OTHER: Final = layout["tag_other"]
BOOLS: Final = layout["tag_bools"]
COMPLEX: Final = layout["tag_complex"]
GENERATOR: Final = layout["tag_generator"]

# Kinds of callbacks.
HOOK: Final = layout["host_hook"]
POST_HOOK: Final = layout["host_post_hook"]
NODE_PRE_HOOK: Final = layout["host_node_pre_hook"]
NODE_HOOK: Final = layout["host_node_hook"]
FUNCTION: Final = layout["host_function"]
PACK: Final = layout["host_pack"]
UNPACK: Final = layout["host_unpack"]
SEVERAL: Final = layout["host_several"]
APPLY: Final = layout["host_apply"]
TRACE: Final = layout["host_trace"]
REPORT: Final = layout["host_report"]
LINE: Final = layout["host_line"]
NAME: Final = layout["host_name"]
RETURNED: Final = layout["host_returned"]
POLL: Final = layout["host_poll"]
CLOCK: Final = layout["host_clock"]

# The modes of a thread, as bits.
GRAD: Final = layout["mode_grad"]
INFERENCE: Final = layout["mode_inference"]
ANY_LAYOUT: Final = layout["mode_any_layout"]
ONE_THREAD: Final = layout["mode_one_thread"]
NO_FORWARD: Final = layout["mode_no_forward"]
AUTOCAST: Final = layout["mode_autocast"]
FLOAT16: Final = layout["mode_float16"]
CAST_ANEW: Final = layout["mode_cast_anew"]
MADE_META: Final = layout["mode_meta"]
VIEW_REPLAY: Final = layout["mode_view_replay"]
LEVELS: Final = layout["mode_levels"] - 1
"""Level k of vmap is the bit k places above this one."""

# Bits of a tensor's byte of flags.
REQUIRES_GRAD: Final = layout["flag_requires_grad"]
IS_INFERENCE: Final = layout["flag_inference"]
CONJ: Final = layout["flag_conj"]
NEG: Final = layout["flag_neg"]
BATCHED: Final = layout["flag_batched"]
"""vmap has batched the tensor: the highest flag."""
# Bits of a tensor's byte of forms.
ABSENT: Final = layout["form_meta"]
"""The tensor has no elements in memory."""

# Further bits of the byte of forms.
SPARSE: Final = layout["form_sparse"]
HOSTED: Final = layout["form_hosted"]

# Codes of element types that Python uses by number.
CODE_INT64: Final = layout["dtype_int64"]
CODE_FLOAT32: Final = layout["dtype_float32"]
CODE_FLOAT64: Final = layout["dtype_float64"]
CODE_UINT64: Final = layout["dtype_uint64"]
CODE_BOOL: Final = layout["dtype_bool"]
CODE_COMPLEX128: Final = layout["dtype_complex128"]

# Kinds of items of an index.
ITEM_NONE: Final = layout["item_none"]
ITEM_ELLIPSIS: Final = layout["item_ellipsis"]
ITEM_INT: Final = layout["item_int"]
ITEM_SLICE: Final = layout["item_slice"]
ITEM_TENSOR: Final = layout["item_tensor"]
ITEM_BOOL: Final = layout["item_bool"]
ITEM_ABSENT: Final = -(1 << 63)
"""A bound of a slice that was left out."""
