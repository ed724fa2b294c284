"""Attention with scores and masks given as functions of positions.

PyTorch compiles a kernel from the functions. Here they are mapped over all positions, so the result
follows the definition, and gradients flow through it.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias, TypedDict

from ... import nn
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from ..._transforms.vmap import vmap

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "FlexKernelOptions",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]

_mask_mod_signature: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]
_score_mod_signature: TypeAlias = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's kernels, which are ignored."""


class AuxRequest(NamedTuple):
    """The auxiliary results to return from `flex_attention`."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The auxiliary results; None for each that was not requested."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


# ------------------------------------------------------------------ masks


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """The mask that lets every query see every key."""
    return batch.new_ones((), dtype=pygrad.bool)


def _identity(
    score: Tensor, batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> Tensor:
    return score


def _combine_masks(masks: tuple[Any, ...], all_of_them: bool) -> _mask_mod_signature:
    if not all(callable(mask) for mask in masks):
        raise RuntimeError(f"All inputs should be callable mask_mods: {masks}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), all_of_them, dtype=pygrad.bool)
        for each in masks:
            found = each(b, h, q_idx, kv_idx)
            result = result & found if all_of_them else result | found
        return result

    return mask


def or_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The union of masks.

    Raises:
        RuntimeError: an argument is no function.
    """
    return _combine_masks(mask_mods, False)


def and_masks(*mask_mods: _mask_mod_signature) -> _mask_mod_signature:
    """The intersection of masks.

    Raises:
        RuntimeError: an argument is no function.
    """
    return _combine_masks(mask_mods, True)


def _evaluate_at_positions(
    function: Callable[..., Tensor], scores: Tensor | None, sizes: list[int]
) -> Tensor:
    """Evaluates a function of positions (and scores) at all positions: (B, H, Q, KV)."""
    first = () if scores is None else (0,)
    for place in (3, 2, 1, 0):  # the last position is the innermost
        dims = (*first, *(0 if i == place else None for i in range(4)))
        function = vmap(function, in_dims=dims)
    positions = [pygrad.arange(size) for size in sizes]
    return function(*(() if scores is None else (scores,)), *positions)


def create_mask(
    mod_fn: Any,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
) -> Tensor:
    """The mask (B, H, Q_LEN, KV_LEN) of bools given by a function of positions.

    Args:
        mod_fn: a function of (batch, head, query, key), or of (score, batch, head, query, key),
            which returns minus infinity for hidden pairs.
        B, H: the numbers of batches and heads; None: one.

    Example:
        >>> from pygrad.nn.attention.flex_attention import create_mask
        >>> create_mask(lambda b, h, q, kv: q >= kv, None, None, 2, 2)
        tensor([[[[ True, False],
                  [ True,  True]]]])
    """
    sizes = [B or 1, H or 1, Q_LEN, KV_LEN]
    takes_scores = len(inspect.signature(mod_fn).parameters) == 5
    found = _evaluate_at_positions(mod_fn, pygrad.zeros(sizes) if takes_scores else None, sizes)
    if takes_scores:
        return ~found.isneginf()
    return found.expand(*sizes)


def _dense(counts: Tensor, indices: Tensor, columns: int) -> Tensor:
    """Converts lists of blocks by row to a matrix of ones and zeros."""
    places = pygrad.arange(indices.shape[-1])
    given = places < counts.unsqueeze(-1)
    where = pygrad.where(given, indices, columns).long()
    empty = pygrad.zeros(*indices.shape[:-1], columns + 1, dtype=pygrad.int32)
    return empty.scatter(-1, where, 1)[..., :columns]


def _dense_to_ordered(dense_mask: Tensor) -> tuple[Tensor, Tensor]:
    """The number of blocks of each row, and their columns first, then the others."""
    counts = dense_mask.sum(dim=-1).to(pygrad.int32)
    indices = dense_mask.argsort(dim=-1, descending=True, stable=True).to(pygrad.int32)
    return counts, indices


class BlockMask:
    """A mask by blocks of queries and keys, some of which are seen partly, some fully.

    Made by `create_block_mask`, or by `from_kv_blocks`.

    Attributes:
        kv_num_blocks, kv_indices: for each block of queries, the number and the indices of the
            blocks of keys that it sees partly.
        full_kv_num_blocks, full_kv_indices: likewise for blocks seen fully; or None.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: likewise for each block of keys.
        BLOCK_SIZE: the numbers of queries and keys of a block.
        mask_mod: the function of positions that decides within partly seen blocks.
        seq_lengths: the total numbers of queries and keys.
        dq_write_order, dq_write_order_full, dq_kv_order, dq_kv_order_spt: the order in which a
            device adds up gradients of queries; stored but ignored, since pygrad's order is fixed.

    Example:
        >>> from pygrad.nn.attention.flex_attention import create_block_mask
        >>> mask = create_block_mask(lambda b, h, q, kv: q >= kv, 1, 1, 4, 4, BLOCK_SIZE=2)
        >>> mask.to_dense()
        tensor([[[[1, 0],
                  [1, 1]]]], dtype=torch.int32)
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: _mask_mod_signature = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = BLOCK_SIZE
        self.mask_mod = mask_mod
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: _mask_mod_signature | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """Makes a mask from the key blocks of each query block; computes the inverse lists.

        Raises:
            RuntimeError: the indices have fewer than two dimensions.
            AssertionError: only one of `full_kv_num_blocks` and `full_kv_indices` is given.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError(
                "full_kv_num_blocks and full_kv_indices must be both provided or omitted"
            )
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        rows, columns = kv_indices.shape[-2:]
        if seq_lengths is None:
            seq_lengths = rows * size[0], columns * size[1]
        by_key: list[Tensor | None] = [None] * 4
        if compute_q_blocks:
            by_key[:2] = _dense_to_ordered(_dense(kv_num_blocks, kv_indices, columns).mT)
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                by_key[2:] = _dense_to_ordered(
                    _dense(full_kv_num_blocks, full_kv_indices, columns).mT
                )
        return cls(
            seq_lengths,
            kv_num_blocks,
            kv_indices,
            full_kv_num_blocks,
            full_kv_indices,
            by_key[0],
            by_key[1],
            by_key[2],
            by_key[3],
            size,
            mask_mod or noop_mask,
            dq_write_order=dq_write_order,
            dq_write_order_full=dq_write_order_full,
            dq_kv_order=dq_kv_order if isinstance(dq_kv_order, Tensor) else None,
            dq_kv_order_spt=dq_kv_order if isinstance(dq_kv_order, bool) else None,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(batches, heads, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """The number of pairs of query and key."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """The percentage of pairs in blocks that are not seen at all."""
        blocks = int(self.kv_num_blocks.sum())
        if self.full_kv_num_blocks is not None:
            blocks += int(self.full_kv_num_blocks.sum())
        return 100 * (1 - blocks * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to_dense(self) -> Tensor:
        """A matrix with one for each block seen partly or fully, and zero for the others."""
        columns = self.kv_indices.shape[-1]
        found = _dense(self.kv_num_blocks, self.kv_indices, columns)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            found = found + _dense(self.full_kv_num_blocks, self.full_kv_indices, columns)
        return found

    def __getitem__(self, index: Any) -> BlockMask:
        given = index if isinstance(index, tuple) else (index,)
        places = tuple(
            slice(i, i + 1 or None) if isinstance(i, int) else i
            for i in (*given, slice(None), slice(None), slice(None))[:3]
        )
        whole, which = self.full_kv_num_blocks, self.full_kv_indices
        return self.from_kv_blocks(
            self.kv_num_blocks[places],
            self.kv_indices[places],
            None if whole is None else whole[places],
            None if which is None else which[places],
            BLOCK_SIZE=self.BLOCK_SIZE,
            mask_mod=_sliced_mask_mod_error,
            seq_lengths=self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """The fields of the mask, in the order of the constructor."""
        sizes = (*self.seq_lengths,) if flatten else (self.seq_lengths,)
        block = (*self.BLOCK_SIZE,) if flatten else (self.BLOCK_SIZE,)
        return (
            *sizes,
            self.kv_num_blocks,
            self.kv_indices,
            self.full_kv_num_blocks,
            self.full_kv_indices,
            self.q_num_blocks,
            self.q_indices,
            self.full_q_num_blocks,
            self.full_q_indices,
            *block,
            self.mask_mod,
        )

    def to(self, device: Any) -> BlockMask:
        """The mask on a device."""
        pygrad.zeros(0).to(device)  # raises unless the device exists
        return self

    def __repr__(self) -> str:
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%)"


def _sliced_mask_mod_error(
    batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor
) -> Tensor:
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def create_block_mask(
    mask_mod: _mask_mod_signature,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Makes a mask by blocks from a function of (batch, head, query, key).

    Args:
        mask_mod: returns whether the query sees the key.
        B, H: the numbers of batches and heads; None: one, for all.
        Q_LEN, KV_LEN: the numbers of queries and keys.
        BLOCK_SIZE: the numbers of queries and keys of a block.
        separate_full_blocks: whether to record fully seen blocks separately.
        compute_dq_write_order: must be False.
        dq_kv_order: ignored without `compute_dq_write_order`.

    Raises:
        NotImplementedError: `compute_dq_write_order` is True.
    """
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask: compute_dq_write_order=True")
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN)
    rows, columns = -(-Q_LEN // size[0]), -(-KV_LEN // size[1])
    widths = (0, columns * size[1] - KV_LEN, 0, rows * size[0] - Q_LEN)
    blocks = nn.functional.pad(mask.int(), widths)
    blocks = blocks.reshape(*mask.shape[:2], rows, size[0], columns, size[1])
    seen = blocks.sum(dim=(3, 5))
    full = seen == size[0] * size[1]
    part = (seen > 0) & ~full if separate_full_blocks else seen > 0
    counts, indices = _dense_to_ordered(part.int())
    full_counts, full_indices = (
        _dense_to_ordered(full.int()) if separate_full_blocks else (None, None)
    )
    return BlockMask.from_kv_blocks(
        counts,
        indices,
        full_counts,
        full_indices,
        BLOCK_SIZE=size,
        mask_mod=mask_mod,
        seq_lengths=(Q_LEN, KV_LEN),
    )


# ------------------------------------------------------------------ attention


def _check(query: Tensor, key: Tensor, value: Tensor, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.size(-1) != key.size(-1):
        raise ValueError(
            "Expect query and key/value to have the same embedding dimension but got "
            f"E={query.size(-1)} and E={key.size(-1)}."
        )
    heads, of_keys = query.size(-3), key.size(-3)
    if not enable_gqa and heads != of_keys:
        raise ValueError(
            "Expect query and key/value to have the same number of heads but got "
            f"Hq={heads} and Hkv={of_keys}. Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % of_keys != 0:
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA but got "
            f"Hq={heads} and Hkv={of_keys}."
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: _score_mod_signature | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Attention with scores modified by a function, and with a mask by blocks.

    Args:
        query: (B, Hq, L, E).
        key, value: (B, H, S, E) and (B, H, S, Ev).
        score_mod: maps (score, batch, head, query, key) to the new score.
        block_mask: the mask.
        scale: the factor of the scores; 1 / sqrt(E) by default.
        enable_gqa: whether several heads of queries share one head of keys.
        return_lse: also return the logarithm of the sum of exponentials of each query's scores.
        kernel_options: ignored.
        return_aux: the auxiliary results to return, in an `AuxOutput`.

    Returns:
        (B, Hq, L, Ev), followed by the requested results. Queries that see no key get zeros.

    Raises:
        NotImplementedError, ValueError: incompatible sizes.

    Example:
        >>> import pygrad
        >>> from pygrad.nn.attention.flex_attention import create_block_mask, flex_attention
        >>> x = pygrad.arange(4.0).reshape(1, 1, 4, 1)
        >>> mask = create_block_mask(lambda b, h, q, kv: q == kv, None, None, 4, 4)
        >>> flex_attention(x, x, x, block_mask=mask).flatten()
        tensor([0., 1., 2., 3.])
    """
    _check(query, key, value, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    if enable_gqa:
        times = query.size(1) // key.size(1)
        key, value = (each.repeat_interleave(times, dim=1) for each in (key, value))
    exact = pygrad.float64 if query.dtype == pygrad.float64 else pygrad.float32
    factor = 1 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = (query.to(exact) @ key.to(exact).mT) * factor
    sizes = list(scores.shape)
    if score_mod is not None:
        scores = _evaluate_at_positions(score_mod, scores, sizes).to(exact)
    if block_mask is not None:
        _check_mask(block_mask, sizes)
        seen = _evaluate_at_positions(block_mask.mask_mod, None, sizes).expand(*sizes)
        scores = scores.masked_fill(~seen, -math.inf)
    blind = scores.isneginf().all(dim=-1, keepdim=True)
    weights = scores.softmax(dim=-1).masked_fill(blind, 0.0)
    output = weights.to(query.dtype) @ value
    asked = return_aux or AuxRequest(lse=return_lse)
    lse = scores.logsumexp(dim=-1) if asked.lse else None
    if return_lse:
        return output, lse
    if return_aux is not None:
        return output, AuxOutput(lse, scores.amax(dim=-1) if asked.max_scores else None)
    return output


def _check_mask(mask: BlockMask, sizes: list[int]) -> None:
    if mask.mask_mod is _sliced_mask_mod_error:
        raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")
    queries, keys = mask.seq_lengths
    if sizes[2] > queries or sizes[3] > keys:
        raise ValueError(
            f"block_mask was created for block_mask.shape={mask.shape} but got q_len={sizes[2]} "
            f"and kv_len={sizes[3]}. As the block mask was created for a smaller length than "
            "you're using it for, you likely need to create a new block mask."
        )
    if sizes[2] < queries or sizes[3] < keys:
        raise ValueError(
            f"block_mask was created for block_mask.shape={mask.shape} but got q_len={sizes[2]} "
            f"and kv_len={sizes[3]}. As the block mask was created for a larger length than "
            "you're using it for, you can either 1. create a new block mask with the correct "
            "length, or 2. 'adjust' the existing block mask to the correct length by calling "
            "block_mask._adjust(q_len, kv_len)."
        )
