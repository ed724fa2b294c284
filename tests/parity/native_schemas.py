"""Writes pygrad/_table/native_schemas.txt: PyTorch's own description of all its ops.

    python tests/parity/native_schemas.py

Ops that pygrad has not are among them: libraries look them up in tables of what they handle.
A line for each overload: its words, or -, and its schema. The words are its tags, ``composite`` if
autograd sees the ops within, and ``view``. Almost all ops have the tag pt2_compliant_tag, so its
absence is the word, ``not_pt2_compliant_tag``.
"""

from __future__ import annotations

import pathlib
import re

PLACE = pathlib.Path(__file__).parents[2] / "pygrad" / "_table" / "native_schemas.txt"
_USUAL = "pt2_compliant_tag"


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
        words = known - {_USUAL}
        if torch._C._dispatch_has_kernel_for_dispatch_key(full, "CompositeImplicitAutograd"):
            words.add("composite")
        if _USUAL not in known:
            words.add(f"not_{_USUAL}")
        if op.is_view:
            words.add("view")
        made.append(f"{','.join(sorted(words)) or '-'} {re.sub('^aten::', '', str(schema))}")
    return sorted(made, key=lambda line: line.partition(" ")[2])


def _is_dispatched(name: str) -> bool:
    import torch

    return bool(torch._C._dispatch_has_kernel(name))


if __name__ == "__main__":
    PLACE.write_text("".join(f"{line}\n" for line in lines()))
