"""Writes pygrad/_native_schemas.txt: PyTorch's own description of the ops that pygrad has.

    python tests/parity/native_schemas.py

A line an overload: letters, then the schema. The letters say what PyTorch knows beside it: ``c``
composite (autograd sees what it is made of), ``p`` pointwise, ``k`` core, ``r`` draws numbers,
``v`` a view, ``i`` changes a view in place, ``d`` its sizes depend on values.
"""

from __future__ import annotations

import pathlib
import re
import sys

PLACE = pathlib.Path(__file__).parents[2] / "pygrad" / "_native_schemas.txt"
_TAGS = {
    "pointwise": "p",
    "core": "k",
    "nondeterministic_seeded": "r",
    "inplace_view": "i",
    "dynamic_output_shape": "d",
}
_ALSO = (
    "_to_copy _softmax _log_softmax convolution _unsafe_view native_layer_norm native_group_norm "
    "native_batch_norm _native_batch_norm_legit log_sigmoid_forward max_pool2d_with_indices "
    "_adaptive_avg_pool2d nll_loss_forward nll_loss2d_forward linalg_vector_norm "
    "_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_flash_attention "
    "_scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention "
    "_efficient_attention_forward _flash_attention_forward native_dropout native_dropout_backward "
    "_safe_softmax cross_entropy_loss lift_fresh lift _local_scalar_dense is_nonzero alias detach "
    "scalar_tensor new_empty new_zeros new_ones new_full new_empty_strided _reshape_alias "
    "split_with_sizes upsample_nearest1d upsample_nearest2d upsample_nearest3d upsample_bilinear2d "
    "upsample_bicubic2d upsample_linear1d upsample_trilinear3d grid_sampler_2d grid_sampler_3d "
    "_trilinear _cdist_forward _pdist_forward sym_size sym_stride sym_numel sym_storage_offset "
    "size stride numel dim is_contiguous record_stream replication_pad1d"
).split()


def lines() -> list[str]:
    """All lines of the file, as the installed PyTorch and pygrad have them."""
    import torch

    from pygrad import _ops, ops

    names = {ops._name_of(op) for op in _ops.TABLE} | {op.name for op in _ops.TABLE}
    names |= {called.partition(".")[0] for called in ops._CALLED} | ops._COMPOSED.keys()
    names |= set(_ALSO) | set(ops._ELSEWHERE.split())
    names |= {f"{name}_backward" for name in names} | {f"{name}_backward_data" for name in names}
    names |= {f"{name}_copy" for name in names}
    names |= {f"{name}_" for name in names}
    made = []
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        if space != "aten" or name not in names or not _is_dispatched(full):
            continue
        op = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
        known = {str(tag).partition(".")[2] for tag in op.tags}
        letters = [letter for tag, letter in _TAGS.items() if tag in known]
        if torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
            letters.append("c")
        if op.is_view:
            letters.append("v")
        made.append(f"{''.join(sorted(letters)) or '-'} {re.sub('^aten::', '', str(schema))}")
    return sorted(made, key=lambda line: line.partition(" ")[2])


def _is_dispatched(name: str) -> bool:
    import torch

    return bool(torch._C._dispatch_has_kernel(name))


if __name__ == "__main__":
    sys.path.insert(0, str(PLACE.parents[1]))
    PLACE.write_text("".join(f"{line}\n" for line in lines()))
