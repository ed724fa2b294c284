/** Made by `make stubs` from the engine's description of itself. Do not edit. */
export const ABI = 3;

/** Tags of values that cross the boundary. */
export const TAG = Object.freeze({
  MISSING: 0,
  NONE: 1,
  TENSOR: 2,
  INT: 3,
  FLOAT: 4,
  BOOL: 5,
  STR: 6,
  DTYPE: 7,
  INTS: 8,
  FLOATS: 9,
  TENSORS: 10,
  INDEX: 11,
  OTHER: 12,
  BOOLS: 13,
  COMPLEX: 14,
  GENERATOR: 15,
});

/** Modes of a call, as bits. */
export const MODE = Object.freeze({
  INPLACE: 1,
  METHOD: 2,
  PREPARED: 4,
  LONG: 8,
});

/** Modes of a thread, as bits. */
export const MODES = Object.freeze({
  GRAD: 1,
  INFERENCE: 2,
  ANY_LAYOUT: 4,
  ONE_THREAD: 8,
  NO_FORWARD: 16,
  AUTOCAST: 32,
  FLOAT16: 64,
  CAST_ANEW: 128,
  META: 256,
  DISPATCH: 512,
  VIEW_REPLAY: 1024,
  LEVELS: 11,
});

/** Kinds of callbacks. */
export const HOST = Object.freeze({
  HOOK: 0,
  POST_HOOK: 1,
  NODE_PRE_HOOK: 2,
  NODE_HOOK: 3,
  FUNCTION: 4,
  PACK: 5,
  UNPACK: 6,
  SEVERAL: 7,
  APPLY: 8,
  WALK: 9,
  DISPATCH: 10,
  TRACE: 32,
  REPORT: 33,
  LINE: 34,
  NAME: 35,
  RETURNED: 36,
  POLL: 37,
  CLOCK: 100,
});

/** Flags of a tensor, as bits. */
export const FLAG = Object.freeze({
  REQUIRES_GRAD: 1,
  WRAPPED: 2,
  INFERENCE: 4,
  PARAMETER: 8,
  CACHED: 16,
  CONJ: 32,
  NEG: 64,
  BATCHED: 128,
});

/** Kinds of items in a subscript. */
export const ITEM = Object.freeze({
  NONE: 0,
  ELLIPSIS: 1,
  INT: 2,
  SLICE: 3,
  TENSOR: 4,
  BOOL: 5,
});

/** The functions of torch.autograd.functional. */
export const ANSWER = Object.freeze({
  vjp: 0,
  jvp: 1,
  vhp: 2,
  hvp: 3,
  jacobian: 4,
  hessian: 5,
});

/** Element types, by their names. */
export const CODE = Object.freeze({
  uint8: 0,
  int8: 1,
  int16: 2,
  int32: 3,
  int64: 4,
  float16: 5,
  float32: 6,
  float64: 7,
  complex32: 8,
  complex64: 9,
  complex128: 10,
  bool: 11,
  bfloat16: 15,
  uint16: 27,
  uint32: 28,
  uint64: 29,
});
