"""Writes pygrad/_native_schemas.txt: PyTorch's own description of all its ops.

    python tests/parity/native_schemas.py

Ops that pygrad has not are among them: libraries look them up in tables of what they handle.
A line an overload: letters, then the schema. The letters say what PyTorch knows beside it: ``c``
composite (autograd sees what it is made of), ``v`` a view, ``u`` without the tag that almost all
have, and a letter for each other tag of it.
"""

from __future__ import annotations

import pathlib
import re

PLACE = pathlib.Path(__file__).parents[2] / "pygrad" / "_native_schemas.txt"
_TAGS = {
    "pointwise": "p",
    "core": "k",
    "nondeterministic_seeded": "r",
    "inplace_view": "i",
    "dynamic_output_shape": "d",
    "out": "o",
    "inplace": "w",
    "generated": "g",
    "view_copy": "y",
    "reduction": "e",
    "maybe_aliasing_or_mutating": "m",
    "needs_exact_strides": "x",
    "data_dependent_output": "a",
    "needs_fixed_stride_order": "f",
}


def lines() -> list[str]:
    """All lines of the file, as the installed PyTorch has them."""
    import torch

    made = []
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        full = f"{schema.name}.{schema.overload_name}" if schema.overload_name else schema.name
        if space != "aten" or not _is_dispatched(full):
            continue
        op = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
        known = {str(tag).partition(".")[2] for tag in op.tags}
        letters = [letter for tag, letter in _TAGS.items() if tag in known]
        if torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
            letters.append("c")
        if "pt2_compliant_tag" not in known:
            letters.append("u")
        if op.is_view:
            letters.append("v")
        made.append(f"{''.join(sorted(letters)) or '-'} {re.sub('^aten::', '', str(schema))}")
    return sorted(made, key=lambda line: line.partition(" ")[2])


def _is_dispatched(name: str) -> bool:
    import torch

    return bool(torch._C._dispatch_has_kernel(name))


if __name__ == "__main__":
    PLACE.write_text("".join(f"{line}\n" for line in lines()))
