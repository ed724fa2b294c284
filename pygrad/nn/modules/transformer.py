"""Transformers: layers of attention and feed-forward blocks, and stacks of layers."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from typing import Any

from ..._tensor import namespace as pygrad
from ..._tensor.tensor import Tensor
from .. import functional as F
from .. import init
from .._attention_parts import _canonical_mask, _none_or_dtype
from .._types import DeviceLike, DTypeLike
from .activation import GELU, ReLU
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]

Activation = str | Callable[[Tensor], Tensor]


def _get_activation_fn(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return F.relu if activation == "relu" else F.gelu


def _get_clones(module: Module, N: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(N)])


def _additive_mask(
    mask: Tensor | None, name: str, like: Tensor, other: Tensor | None = None, other_name: str = ""
) -> Tensor | None:
    """Converts a mask to numbers to add, with the dtype of `like`."""
    return _canonical_mask(mask, name, _none_or_dtype(other), other_name, like.dtype)


def _detect_is_causal_mask(
    mask: Tensor | None, is_causal: bool | None = None, size: int | None = None
) -> bool:
    """Whether a mask is causal, with its own size or `size`. A given `is_causal` takes
    precedence.
    """
    if is_causal is not None or mask is None:
        return is_causal is True
    size = mask.size(-2) if size is None else size
    causal = Transformer.generate_square_subsequent_mask(size, mask.device, mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _length(x: Tensor, layers: ModuleList) -> int:
    """The number of positions of x, in the layout of the first layer."""
    if x.is_nested:
        return 0  # sequences differ in length, and masks are not supported
    first = layers[0] if len(layers) else None
    batch_first = getattr(getattr(first, "self_attn", None), "batch_first", False)
    return int(x.size(1 if x.dim() == 3 and batch_first else 0))


def _attention_output(
    attention: Module, x: Tensor, source: Tensor, padding: Any, mask: Any, is_causal: bool
) -> Tensor:
    """The attention of x to the source."""
    found, _ = attention(
        x, source, source, padding, need_weights=False, attn_mask=mask, is_causal=is_causal
    )
    return found  # type: ignore[no-any-return]


class _Layer(Module):
    """The base class of encoder and decoder layers: self-attention, and the feed-forward block (two
    linear maps with an activation between them).
    """

    _attentions: tuple[str, ...]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        factory: Any = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout=dropout, batch_first=batch_first, **factory
            )
            self.add_module(name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, **factory)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **factory)
        self.norm_first = norm_first
        parts = [str(k + 1) for k in range(len(self._attentions) + 1)]
        for part in parts:
            self.add_module(f"norm{part}", LayerNorm(d_model, eps=layer_norm_eps, **factory))
        for part in parts:
            self.add_module(f"dropout{part}", Dropout(dropout))
        self.activation = _get_activation_fn(activation)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _apply_parts(self, x: Tensor, parts: list[Callable[[Tensor], Tensor]]) -> Tensor:
        """Applies each part with a residual connection, normalised before or after."""
        for number, part in enumerate(parts, 1):
            norm = getattr(self, f"norm{number}")
            x = x + part(norm(x)) if self.norm_first else norm(x + part(x))
        return x

    def _sa_block(
        self,
        x: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """Self-attention of x, with dropout."""
        found = _attention_output(self.self_attn, x, x, key_padding_mask, attn_mask, is_causal)
        return self.dropout1(found)  # type: ignore[no-any-return]

    def _ff_block(self, x: Tensor) -> Tensor:
        """The feed-forward block, with dropout."""
        result = self.linear2(self.dropout(self.activation(self.linear1(x))))
        last = len(self._attentions) + 1
        return getattr(self, f"dropout{last}")(result)  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a feed-forward block of two linear maps, both with residual connections.

    Args:
        d_model: features.
        nhead: the number of heads; divides `d_model`.
        dim_feedforward: features between the linear maps.
        dropout: the probability of zeroing an element in training.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variances.
        batch_first: the batch is the first dimension.
        norm_first: normalise the input of each part, not its output.
        bias: whether linear maps and norms have biases.

    Shape: (S, N, d_model), unchanged; (N, S, d_model) if `batch_first`; (S, d_model).

    Raises:
        RuntimeError: an unknown activation.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> tuple(layer(pygrad.rand(5, 3, 8)).shape)
        (5, 3, 8)
    """

    _attentions = ("self_attn",)
    _derived = ("activation_relu_or_gelu",)
    self_attn: MultiheadAttention

    @property
    def activation_relu_or_gelu(self) -> int:
        """1 for relu, 2 for gelu, 0 for any other activation."""
        if self.activation is F.relu or isinstance(self.activation, ReLU):
            return 1
        return 2 if self.activation is F.gelu or isinstance(self.activation, GELU) else 0

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Encodes a sequence.

        Args:
            src: the sequence.
            src_mask: (S, S), marks pairs of positions that must not attend.
            src_key_padding_mask: (N, S), marks padding.
            is_causal: a hint that `src_mask` is causal.
        """
        padding = _additive_mask(
            src_key_padding_mask, "src_key_padding_mask", src, src_mask, "src_mask"
        )
        mask = _additive_mask(src_mask, "src_mask", src)

        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, mask, padding, is_causal=is_causal)

        return self._apply_parts(src, [attend, self._ff_block])

    def _why_not_nested(self) -> str:
        """The reason why PyTorch would not omit padding from the computation; empty if it would."""
        attention = self.self_attn
        reasons = {
            "norm_first was True": self.norm_first,
            "self_attn.batch_first was not True(use batch_first for better inference "
            "performance)": not attention.batch_first,
            "self_attn was passed bias=False": attention.in_proj_bias is None,
            "activation_relu_or_gelu was not True": not self.activation_relu_or_gelu,
            "norm1.eps was not equal to encoder_layer.norm2.eps": (
                self.norm1.eps != self.norm2.eps
            ),
            "self_attn.num_heads is odd": attention.num_heads % 2 == 1,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to the encoder's output, then a feed-forward block.

    Args: as for :class:`TransformerEncoderLayer`.

    Shape: (T, N, d_model) and a memory (S, N, d_model) -> (T, N, d_model).

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.TransformerDecoderLayer(d_model=8, nhead=2, dim_feedforward=16)
        >>> tuple(layer(pygrad.rand(4, 3, 8), pygrad.rand(5, 3, 8)).shape)
        (4, 3, 8)
    """

    _attentions = ("self_attn", "multihead_attn")
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Decodes a sequence.

        Args:
            tgt: the sequence.
            memory: the output of the encoder.
            tgt_mask: (T, T), marks pairs of positions that must not attend.
            memory_mask: (T, S), likewise.
            tgt_key_padding_mask: (N, T), marks padding.
            memory_key_padding_mask: (N, S), likewise.
            tgt_is_causal: a hint that `tgt_mask` is causal.
            memory_is_causal: a hint that `memory_mask` is causal.
        """

        def attend(x: Tensor) -> Tensor:
            return self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal)

        def remember(x: Tensor) -> Tensor:
            padding = memory_key_padding_mask
            return self._mha_block(x, memory, memory_mask, padding, memory_is_causal)

        return self._apply_parts(tgt, [attend, remember, self._ff_block])

    def _mha_block(
        self,
        x: Tensor,
        mem: Tensor,
        attn_mask: Tensor | None,
        key_padding_mask: Tensor | None,
        is_causal: bool = False,
    ) -> Tensor:
        """The attention of x to the memory, with dropout."""
        attention = self.multihead_attn
        found = _attention_output(attention, x, mem, key_padding_mask, attn_mask, is_causal)
        return self.dropout2(found)  # type: ignore[no-any-return]


class TransformerEncoder(Module):
    """Encoder layers, one after the other.

    Args:
        encoder_layer: the layer, which is copied with its parameters.
        num_layers: the number of copies.
        norm: a module applied to the last output.
        enable_nested_tensor: in evaluation without gradients, return zeros at padding, as PyTorch
            does, which then omits padding from the computation.
        mask_check: do so only if sequences are padded at their end.

    Shape: as for the layer.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        >>> encoder = pygrad.nn.TransformerEncoder(layer, num_layers=2)
        >>> tuple(encoder(pygrad.rand(3, 5, 8)).shape)
        (3, 5, 8)
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check
        reason = " was not TransformerEncoderLayer"
        if isinstance(encoder_layer, TransformerEncoderLayer):
            reason = encoder_layer._why_not_nested()
            reason = f".{reason}" if reason else ""
        self.use_nested_tensor = enable_nested_tensor and not reason
        if enable_nested_tensor and reason:
            warnings.warn(
                "enable_nested_tensor is True, but self.use_nested_tensor is False because "
                f"encoder_layer{reason}",
                stacklevel=2,
            )

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        """Passes the sequence through all layers.

        Args:
            src: as for the layer.
            mask: (S, S), marks pairs of positions that must not attend.
            src_key_padding_mask: (N, S), marks padding.
            is_causal: whether `mask` is causal; None: test it.
        """
        padded = self._omitted_padding(src, mask, src_key_padding_mask)
        padding = _additive_mask(src_key_padding_mask, "src_key_padding_mask", src, mask, "mask")
        mask = _additive_mask(mask, "mask", src)
        causal = _detect_is_causal_mask(mask, is_causal, _length(src, self.layers))
        output = src
        for layer in self.layers:
            output = layer(output, src_mask=mask, is_causal=causal, src_key_padding_mask=padding)
        if padded is not None:
            output = output.masked_fill(padded.unsqueeze(-1), 0.0)
        return output if self.norm is None else self.norm(output)

    def _omitted_padding(
        self, src: Tensor, mask: Tensor | None, padding: Tensor | None
    ) -> Tensor | None:
        """The padding mask if PyTorch would omit padding from the computation; else None."""
        if padding is None or mask is not None or not self.use_nested_tensor or self.training:
            return None
        if src.dim() != 3 or padding.is_floating_point():
            return None
        recorded = src.requires_grad or any(p.requires_grad for p in self.parameters())
        if recorded and pygrad.is_grad_enabled():
            return None
        ends = bool((padding[:, 1:] | ~padding[:, :-1]).all())
        return padding if ends or not self.mask_check else None


class TransformerDecoder(Module):
    """Decoder layers, one after the other.

    Args:
        decoder_layer: the layer, which is copied with its parameters.
        num_layers: the number of copies.
        norm: a module applied to the last output.

    Shape: as for the layer.

    Example:
        >>> import pygrad
        >>> layer = pygrad.nn.TransformerDecoderLayer(8, 2, 16)
        >>> decoder = pygrad.nn.TransformerDecoder(layer, num_layers=2)
        >>> tuple(decoder(pygrad.rand(4, 3, 8), pygrad.rand(5, 3, 8)).shape)
        (4, 3, 8)
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Passes the sequence through all layers; arguments as for the layer."""
        causal = _detect_is_causal_mask(tgt_mask, tgt_is_causal, _length(tgt, self.layers))
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class Transformer(Module):
    """An encoder and a decoder, as in "Attention is all you need" (Vaswani and others, 2017).

    Args:
        d_model: features.
        nhead: the number of heads; divides `d_model`.
        num_encoder_layers: the number of layers of the encoder.
        num_decoder_layers: the number of layers of the decoder.
        custom_encoder: a module instead of the encoder.
        custom_decoder: a module instead of the decoder.
        dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias: see
            :class:`TransformerEncoderLayer`.

    Shape: (S, N, d_model) and (T, N, d_model) -> (T, N, d_model).

    Raises:
        RuntimeError: incompatible batches or features.

    Example:
        >>> import pygrad
        >>> model = pygrad.nn.Transformer(8, 2, 1, 1, dim_feedforward=16, batch_first=True)
        >>> tuple(model(pygrad.rand(3, 5, 8), pygrad.rand(3, 4, 8)).shape)
        (3, 4, 8)
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: DeviceLike = None,
        dtype: DTypeLike = None,
    ) -> None:
        super().__init__()
        factory: Any = {"bias": bias, "device": device, "dtype": dtype}
        sizes = (d_model, nhead, dim_feedforward, dropout, activation)
        more: Any = {"layer_norm_eps": layer_norm_eps, "norm_first": norm_first, **factory}
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer = TransformerEncoderLayer(*sizes, batch_first=batch_first, **more)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **factory)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            other = TransformerDecoderLayer(*sizes, batch_first=batch_first, **more)
            norm = LayerNorm(d_model, eps=layer_norm_eps, **factory)
            self.decoder = TransformerDecoder(other, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Encodes the source, and decodes the target with it; arguments as for the parts."""
        batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(batch) != tgt.size(batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal
        )
        output: Tensor = self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )
        return output

    @staticmethod
    def generate_square_subsequent_mask(
        sz: int, device: DeviceLike = None, dtype: DTypeLike = None
    ) -> Tensor:
        """The causal mask (sz, sz): minus infinity above the diagonal, zero elsewhere.

        Example:
            >>> import pygrad
            >>> pygrad.nn.Transformer.generate_square_subsequent_mask(2)
            tensor([[0., -inf],
                    [0., 0.]])
        """
        full = pygrad.full((sz, sz), -math.inf, dtype=dtype, device=device)
        return pygrad.triu(full, diagonal=1)


def _generate_square_subsequent_mask(
    sz: int, device: DeviceLike = None, dtype: DTypeLike = None
) -> Tensor:
    """The causal mask with a given size: minus infinity above the diagonal."""
    return Transformer.generate_square_subsequent_mask(sz, device, dtype)


def _get_seq_len(src: Tensor, batch_first: bool) -> int | None:
    """The number of positions of a sequence; None if it is unknown."""
    return int(src.size(1 if src.dim() == 3 and batch_first else 0))
