"""The figures of `make size`: functions found in C, and their lengths in lines and tokens."""

from __future__ import annotations

from pathlib import Path

import pytest
import report


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("a->b += 0x1p-3f; // a comment", 6),
        ('f("a \\" b", \'x\'); /* and\nanother */', 7),
        ("x <<= y && !z", 6),
        ("int a[2] = {1.5e-3, .5};", 12),
        ("", 0),
    ],
)
def test_tokens_are_those_of_c(text: str, count: int) -> None:
    assert report.tokens(text) == count


def test_functions_are_measured_with_their_heads(tmp_path: Path) -> None:
    source = tmp_path / "some.c"
    source.write_text(
        "static int declared(int x);\n"
        "static int one(int x) { return x; }\n"
        "\n"
        "/* a comment */\n"
        "int two(int x,\n"
        "        int y) {\n"
        "  if (x) return y;\n"
        "  return x;\n"
        "}\n"
        "static const int table[] = {1, 2};\n"
    )
    assert [(lines, tokens) for lines, tokens, _ in report.functions(source)] == [(1, 12), (5, 21)]
