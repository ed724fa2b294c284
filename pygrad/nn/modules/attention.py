"""Attention: each position of a sequence averages the values of another, weighted by similarity."""

from __future__ import annotations

from ..._ground.package import submodule
from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .. import init
from .._types import DeviceLike, DTypeLike
from ..parameter import Parameter
from .linear import NonDynamicallyQuantizableLinear
from .module import Module

__all__ = ["MultiheadAttention"]


class MultiheadAttention(Module):
    """Multi-head attention; each head has its share of the features.

    Args:
        embed_dim: features of the query and of the output.
        num_heads: the number of heads; divides `embed_dim`.
        dropout: the probability of zeroing a weight in training.
        bias: whether the projections have biases.
        add_bias_kv: append a learnt position to key and value.
        add_zero_attn: append a position of zeros to key and value.
        kdim: features of the key, by default `embed_dim`.
        vdim: features of the value, by default `embed_dim`.
        batch_first: the batch is the first dimension.

    Shape: query (L, N, embed_dim), key (S, N, kdim) and value (S, N, vdim), or all without N
        -> (L, N, embed_dim), and the weights (N, L, S) or None.

    Raises:
        ValueError: a size that is not positive.
        AssertionError: `num_heads` does not divide `embed_dim`; incompatible shapes.
        RuntimeError: a mask of another shape.

    Example:
        >>> import pygrad
        >>> x = pygrad.ones(5, 2, 8)
        >>> output, weights = pygrad.nn.MultiheadAttention(8, 2)(x, x, x)
        >>> tuple(output.shape), tuple(weights.shape)
        ((5, 2, 8), (2, 5, 5))
    """

    in_proj_weight: Parameter | None
    in_proj_bias: Parameter | None
    q_proj_weight: Parameter | None
    k_proj_weight: Parameter | None
    v_proj_weight: Parameter | None
    bias_k: Parameter | None
    bias_v: Parameter | None

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                "embed_dim and num_heads must be greater than 0, got "
                f"embed_dim={embed_dim} and num_heads={num_heads} instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        whole = self._qkv_same_embed_dim
        for name, shape in (
            ("q_proj_weight", None if whole else (embed_dim, embed_dim)),
            ("k_proj_weight", None if whole else (embed_dim, self.kdim)),
            ("v_proj_weight", None if whole else (embed_dim, self.vdim)),
            ("in_proj_weight", (3 * embed_dim, embed_dim) if whole else None),
            ("in_proj_bias", (3 * embed_dim,) if bias else None),
        ):
            self._make(name, shape, device, dtype)
        self.out_proj = NonDynamicallyQuantizableLinear(
            embed_dim, embed_dim, bias=bias, device=device, dtype=dtype
        )
        for name in ("bias_k", "bias_v"):
            self._make(name, (1, 1, embed_dim) if add_bias_kv else None, device, dtype)
        self.add_zero_attn = add_zero_attn
        self._reset_parameters()

    def _make(
        self, name: str, shape: tuple[int, ...] | None, device: DeviceLike, dtype: DTypeLike
    ) -> None:
        empty = None if shape is None else pygrad.empty(shape, device=device, dtype=dtype)
        self.register_parameter(name, None if empty is None else Parameter(empty))

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)  # type: ignore[arg-type]
        for added in (self.bias_k, self.bias_v):
            if added is not None:
                init.xavier_normal_(added)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """The attention output, and the attention weights or ``None``.

        Args:
            query: the queries; for shapes see the class.
            key: the keys, which are compared with the queries.
            value: the values, which the output averages.
            key_padding_mask: (N, S), True at padding; or floats, which are added to the scores.
            need_weights: also return the weights.
            attn_mask: (L, S) or (N * heads, L, S), likewise, for pairs of positions.
            average_attn_weights: average the weights over the heads; else (N, heads, L, S).
            is_causal: a hint that `attn_mask` is causal.
        """
        if query.is_nested or key.is_nested or value.is_nested:
            masks = (key_padding_mask, attn_mask)
            self._check_nested(query, key, value, any(mask is not None for mask in masks))
            return self._attend_entries(query, need_weights, average_attn_weights)
        transposed = self.batch_first and query.dim() == 3
        if transposed:
            query, key, value = (each.transpose(0, 1) for each in (query, key, value))
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return output.transpose(0, 1) if transposed else output, weights

    def _check_nested(self, query: Tensor, key: Tensor, value: Tensor, masked: bool) -> None:
        """Raises AssertionError where PyTorch does not support nested tensors: with gradients, in
        training, for keys that differ from the queries, and with masks.
        """
        weights = (self.in_proj_weight, self.in_proj_bias, *self.out_proj.parameters())
        recorded = any(w is not None and w.requires_grad for w in (query, *weights))
        kinds = {str(w.dtype) for w in weights if w is not None}
        reasons = {
            f"input not batched; expected query.dim() of 3 but got {query.dim()}": (
                query.dim() != 3
            ),
            "non-self attention was used (query, key, and value are not the same Tensor)": (
                query is not key or key is not value
            ),
            f"dtypes of query ({query.dtype}) and self.in_proj_bias ({', '.join(kinds)}) don't "
            "match": kinds != {str(query.dtype)},
            "in_proj_weight was None": self.in_proj_weight is None,
            "training is enabled": self.training,
            "self.num_heads is not even": self.num_heads % 2 == 1,
            "batch_first was not True": not self.batch_first,
            "self.bias_k was not None": self.bias_k is not None,
            "self.bias_v was not None": self.bias_v is not None,
            "add_zero_attn was enabled": self.add_zero_attn,
            "_qkv_same_embed_dim was not True": not self._qkv_same_embed_dim,
            "supplying both src_key_padding_mask and src_mask at the same time"
            f"{' ' * 33} is not supported with NestedTensor input": masked,
            "autocast is enabled": submodule("amp._state").is_autocast_enabled(),
            "some Tensor argument has_torch_function": query.layout is not pygrad.strided,
            "grad is enabled and at least one of query or the input/output projection weights or "
            "biases requires_grad": recorded and pygrad.is_grad_enabled(),
        }
        for reason, holds in reasons.items():
            if holds:
                raise AssertionError(
                    "MultiheadAttention does not support NestedTensor outside of its fast path. "
                    f"The fast path was not hit because {reason}"
                )

    def _attend_entries(
        self, query: Tensor, need_weights: bool, average: bool
    ) -> tuple[Tensor, Tensor | None]:
        """Self-attention of each entry of a nested tensor. The weights are zero beyond the end of
        an entry.
        """
        outputs, weights = [], []
        for entry in query.unbind():
            batch = entry.unsqueeze(0)
            output, weight = self(
                batch, batch, batch, need_weights=need_weights, average_attn_weights=average
            )
            outputs.append(output.squeeze(0))
            weights.append(weight)
        made: Tensor = submodule("nested").as_nested_tensor(outputs)
        if not need_weights:
            return made, None
        most = max(weight.size(-1) for weight in weights)
        padded = [
            F.pad(weight, (0, most - weight.size(-1), 0, most - weight.size(-2)))
            for weight in weights
        ]
        return made, pygrad.cat(padded)
