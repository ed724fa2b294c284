"""Writes the C declarations that are derived, a header each:

- `elementwise_functions.h`: the functions of elementwise.def, which their rows define;
- `FAMILY_rows.h`: the functions of a family that rows of the op table call and no header declares,
  as the family's C files define them.

So an op that no other C calls is a row and a function, and a header says what C calls.
"""

from __future__ import annotations

import functools
import re
import sys
from pathlib import Path

ENGINE = Path(__file__).parent
PARAMETERS = {
    "UNARY": "Tensor *x",
    "PREDICATE": "Tensor *x",
    "UNARY_P": "Tensor *x, double p0, double p1, double p2",
    "BINARY": "Tensor *a, Tensor *b",
    "COMPARE": "Tensor *a, Tensor *b",
}
"""By the kind of a row, what its function takes."""
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
FUNCTION = r"^((?!static\b|typedef\b)\w[\w ]*[ *]+)(\w+)(\([^;{}]*\))\s*"
DEFINED = re.compile(FUNCTION + r"\{", re.MULTILINE)
DECLARED = re.compile(FUNCTION + ";", re.MULTILINE)
TYPE = re.compile(r"(?:^typedef [^;{}]*?|\}\s*)(\w+);", re.MULTILINE)


def text(path: Path) -> str:
    return COMMENT.sub("", path.read_text(encoding="utf-8"))


def elementwise_functions() -> list[str]:
    words = r"[\w |]*(?:\([^()]*\)[\w |]*)*"
    row = re.compile(
        rf"^({'|'.join(PARAMETERS)})(?:\({words},|_AS\({words}, \w+,)\s+(\w+),", re.MULTILINE
    )
    rows = row.findall(text(ENGINE / "ops/elementwise/elementwise.def"))
    return [f"Tensor *t_{name}({PARAMETERS[kind]});" for kind, name in rows]


@functools.cache
def called_by_rows_alone() -> set[str]:
    called = {name for rows in ENGINE.rglob("*.def") for name in re.findall(r"\w+", text(rows))}
    headers = ENGINE.rglob("*.h")
    return called - {name for file in headers for _, name, _ in DECLARED.findall(text(file))}


def functions_of_rows(family: Path) -> list[str]:
    lines = [
        " ".join(f"{kind}{name}{parameters};".split()).replace("* ", "*")
        for file in sorted(family.glob("*.c"))
        for kind, name, parameters in DEFINED.findall(text(file))
        if name in called_by_rows_alone()
    ]
    used = set(re.findall(r"\w+", " ".join(lines)))
    headers = [ENGINE / "ops/op.h", *sorted(family.glob("*.h"))]
    return [
        *(
            f'#include "{header.relative_to(ENGINE)}"'
            for header in headers
            if header.name == "op.h" or used & set(TYPE.findall(text(header)))
        ),
        *lines,
    ]


def main(folder: Path) -> None:
    families = sorted(path for path in (ENGINE / "ops").iterdir() if path.is_dir())
    headers = {"elementwise_functions.h": elementwise_functions()}
    headers.update((f"{path.name}_rows.h", functions_of_rows(path)) for path in families)
    for name, lines in headers.items():
        whole = "\n".join(["#pragma once", *lines, ""])
        file = folder / name
        if not file.exists() or file.read_text() != whole:  # else who includes it is made again
            file.write_text(whole)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
