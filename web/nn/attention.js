/** Multi-head attention as a layer. */
import { AssertionError, MAKE, ValueError } from './python.js';

/** Definitions of layers, as in layers.js. */
export const attention = {
  _OutputProjection: ({ Linear }) => class NonDynamicallyQuantizableLinear extends Linear {},

  /** Attention of several heads, each with its share of the features. */
  MultiheadAttention: ({ F, Module, Parameter, _OutputProjection, init, take, torch }) =>
    class MultiheadAttention extends Module {
      [MAKE]({ embed_dim, num_heads, bias, add_bias_kv, device, dtype, ...options }) {
        if (embed_dim <= 0 || num_heads <= 0)
          throw new ValueError(
            `embed_dim and num_heads must be greater than 0, got embed_dim=${embed_dim} and num_heads=${num_heads} instead`,
          );
        const factory = { device, dtype };
        const { kdim, vdim, dropout, batch_first, add_zero_attn } = options;
        this.embed_dim = embed_dim;
        this.kdim = kdim ?? embed_dim;
        this.vdim = vdim ?? embed_dim;
        this._qkv_same_embed_dim = this.kdim === embed_dim && this.vdim === embed_dim;
        Object.assign(this, { num_heads, dropout, batch_first });
        this.head_dim = Math.floor(embed_dim / num_heads);
        if (this.head_dim * num_heads !== embed_dim)
          throw new AssertionError('embed_dim must be divisible by num_heads');
        this._makeProjections(bias, factory);
        this.out_proj = new _OutputProjection(embed_dim, embed_dim, bias, factory);
        for (const name of ['bias_k', 'bias_v'])
          this._make(name, add_bias_kv ? [1, 1, embed_dim] : null, factory);
        this.add_zero_attn = add_zero_attn;
        this._reset_parameters();
      }

      _make(name, sizes, factory) {
        const made = sizes && new Parameter(torch.empty(sizes, factory));
        this.register_parameter(name, made);
      }

      _makeProjections(bias, factory) {
        const { embed_dim, kdim, vdim, _qkv_same_embed_dim: isWhole } = this;
        this._make('q_proj_weight', isWhole ? null : [embed_dim, embed_dim], factory);
        this._make('k_proj_weight', isWhole ? null : [embed_dim, kdim], factory);
        this._make('v_proj_weight', isWhole ? null : [embed_dim, vdim], factory);
        this._make('in_proj_weight', isWhole ? [3 * embed_dim, embed_dim] : null, factory);
        this._make('in_proj_bias', bias ? [3 * embed_dim] : null, factory);
      }

      _reset_parameters() {
        for (const name of ['in_proj_weight', 'q_proj_weight', 'k_proj_weight', 'v_proj_weight'])
          if (this[name] !== null) init.xavier_uniform_(this[name]);
        if (this.in_proj_bias !== null) {
          init.constant_(this.in_proj_bias, 0);
          init.constant_(this.out_proj.bias, 0);
        }
        for (const added of [this.bias_k, this.bias_v])
          if (added !== null) init.xavier_normal_(added);
      }

      forward(...given) {
        const { query, key, value, ...masks } = take('MultiheadAttention.forward', given);
        const isTransposed = this.batch_first && query.dim() === 3;
        const turn = (x) => (isTransposed ? x.transpose(0, 1) : x);
        const [output, weights] = F.multi_head_attention_forward(
          ...[query, key, value].map(turn),
          this.embed_dim,
          this.num_heads,
          this.in_proj_weight,
          this.in_proj_bias,
          this.bias_k,
          this.bias_v,
          this.add_zero_attn,
          this.dropout,
          this.out_proj.weight,
          this.out_proj.bias,
          {
            training: this.training,
            ...masks,
            use_separate_proj_weight: !this._qkv_same_embed_dim,
            q_proj_weight: this.q_proj_weight,
            k_proj_weight: this.k_proj_weight,
            v_proj_weight: this.v_proj_weight,
          },
        );
        return [turn(output), weights];
      }
    },
};
