"""What Python and the engine's C agree on by number: the one place where it is typed by hand.

Each group names the file of `wasm_core/` that has it.
"""

from __future__ import annotations

from typing import Final

ABI: Final = 2

# boundary/pg.h: how a call is meant.
INPLACE: Final = 1
METHOD: Final = 2
PREPARED: Final = 4

# boundary/pg.h: what a result is, beside its handle.
PENDING: Final = 1 << 32
DESCRIBED: Final = 1 << 33
VIEW: Final = 1 << 34
SELF: Final = 1 << 35
FAILED: Final = 1 << 36
HEAD: Final = 1 << 62

# call/call.h, Tag: how a value travels.
(
    MISSING,
    NONE,
    TENSOR,
    INT,
    FLOAT,
    BOOL,
    STR,
    DTYPE,
    INTS,
    FLOATS,
    TENSORS,
    INDEX,
    OTHER,
    BOOLS,
    COMPLEX,
    GENERATOR,
) = range(16)

# tape/host.h, HostCall: what the engine asks of a callback.
HOOK, POST_HOOK, NODE_PRE_HOOK, NODE_HOOK, FUNCTION, PACK, UNPACK, SEVERAL, APPLY = range(9)
NAME, RETURNED = 35, 36
CLOCK: Final = 100

# boundary/pg.h, PG_MODE_: the modes of a thread.
GRAD, INFERENCE, ANY_LAYOUT, ONE_THREAD, NO_FORWARD = 1, 2, 4, 8, 16
LEVELS: Final = 7
"""Level k of vmap is the bit k places above this one."""

# tensor/tensor.h, FLAG_: what a tensor's byte of flags says.
REQUIRES_GRAD: Final = 1
IS_INFERENCE: Final = 4
BATCHED: Final = 128
"""vmap has batched the tensor: the highest flag."""

# ground/dtype.h: the codes of what Python's own types stand for.
CODE_INT64, CODE_FLOAT64, CODE_BOOL = 4, 7, 11
CODE_FLOAT32: Final = 6

# ops/index/index_subscript.c: what an item of an index is.
ITEM_NONE, ITEM_ELLIPSIS, ITEM_INT, ITEM_SLICE, ITEM_TENSOR, ITEM_BOOL = range(6)
ITEM_ABSENT: Final = -(1 << 63)
"""A bound of a slice that was left out."""
