"""Numbers that the engine shares with its hosts, for the JavaScript front: ``web/enumerations.js``.

The binary has them by name (pg_layout in wasm_core/boundary/pg.h). Python reads them when it loads
the binary. The JavaScript front needs some before it has a binary, so `make stubs` writes them to a
file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pygrad._boundary import layout

FILE: Final = Path(__file__).parent.parent.parent / "web" / "enumerations.js"
_GROUPS: Final = {
    "tag": ("TAG", "Tags of values that cross the boundary."),
    "call": ("MODE", "Modes of a call, as bits."),
    "mode": ("MODES", "Modes of a thread, as bits."),
    "host": ("HOST", "Kinds of callbacks."),
    "flag": ("FLAG", "Flags of a tensor, as bits."),
    "item": ("ITEM", "Kinds of items in a subscript."),
    "answer": ("ANSWER", "The functions of torch.autograd.functional."),
    "dtype": ("CODE", "Element types, by their names."),
}
_HEAD: Final = "/** Made by `make stubs` from the engine's description of itself. Do not edit. */\n"


def enumerations() -> str:
    """The text of ``web/enumerations.js``."""
    parts = [_HEAD, f"export const ABI = {layout['abi']};\n"]
    for prefix, (name, says) in _GROUPS.items():
        members = {
            key.removeprefix(f"{prefix}_"): value
            for key, value in layout.items()
            if key.startswith(f"{prefix}_")
        }
        if prefix not in ("answer", "dtype"):
            members = {key.upper(): value for key, value in members.items()}
        body = "".join(f"  {key}: {value},\n" for key, value in members.items())
        parts.append(f"\n/** {says} */\nexport const {name} = Object.freeze({{\n{body}}});\n")
    return "".join(parts)
