/** Functions of layers and losses that are no rows of the op table. */

/** @import { Given } from '../arguments.js' @import { Tensor } from '../tensor.js' */
/** @typedef {Tensor | null} Maybe */
/** @typedef {{training?: boolean, key_padding_mask?: Maybe, need_weights?: boolean, attn_mask?: Maybe, use_separate_proj_weight?: boolean,
 *   q_proj_weight?: Maybe, k_proj_weight?: Maybe, v_proj_weight?: Maybe, static_k?: Maybe, static_v?: Maybe,
 *   average_attn_weights?: boolean, is_causal?: boolean}} AttentionOptions */
/** @typedef {{multi_head_attention_forward(query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: number, num_heads: number,
 *   in_proj_weight: Maybe, in_proj_bias: Maybe, bias_k: Maybe, bias_v: Maybe, add_zero_attn: boolean, dropout_p: number,
 *   out_proj_weight: Tensor, out_proj_bias: Maybe, ...rest: Given<AttentionOptions>[]): [Tensor, Maybe]}} Attention */
/** @typedef {{prefix?: string, recurse?: boolean, remove_duplicate?: boolean}} WalkOptions */

/** The functions of torch.nn.functional.
 * @returns {Functional & Attention & Without<Functions, keyof Functional>} */
export function makeFunctional({ C, spaces, take }) {
  /** Multi-head attention as a function of its weights. It has more arguments than a call of the engine can take.
   * @param {any[]} given the arguments of Python's function
   * @returns {[Tensor, Tensor | null]} the output, and the attention weights if requested */
  function multi_head_attention_forward(...given) {
    const {
      embed_dim_to_check,
      num_heads,
      add_zero_attn,
      dropout_p,
      training,
      need_weights,
      use_separate_proj_weight,
      average_attn_weights,
      is_causal,
      ...tensors
    } = take('multi_head_attention_forward', given);
    const [output, weights = null] = C._multi_head_attention_forward(
      Object.values(tensors),
      embed_dim_to_check,
      num_heads,
      add_zero_attn,
      dropout_p,
      training,
      need_weights,
      use_separate_proj_weight,
      average_attn_weights,
      is_causal,
    );
    return [output, weights];
  }

  return { ...spaces.torch, ...spaces.nn, multi_head_attention_forward };
}
