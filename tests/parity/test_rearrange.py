"""func.rearrange: what patterns do, and what is wrong with others."""

from __future__ import annotations

from typing import Any

import pytest
from oracle import both, warnings_of

PATTERNS = (
    "a b c -> c b a",
    "a b c->(a b) c",
    "a b c -> (c b a)",
    "(a d) b c -> d a b c",
    "a  (d b) c -> (a d) c b",
    "a ... -> ... a",
    "... -> ...",
    "a ... -> (...) a",
    "... a -> a (...)",
    "... c -> c 1 ...",
    "a b c -> a () b 1 c",
    "a b c -> (a 1) b c",
    "(a 1) b c -> c a b",
    "1 b c -> c b",
    "A b2 long_name -> long_name A b2",
)
REFUSED = (
    "a b c -> a b",
    "a b -> b a",
    "a b ... c d -> a b ... c d",
    "a b c -> a b c e",
    "a b c -> a a b c",
    "a a c -> a c",
    "a b 2 -> a b",
    "a b c -> (a 2) b c",
    "a (b -> a b",
    "a b c) -> a b c",
    "a ((b) c) -> a b c",
    "a b c",
    "a b c -> a b c -> c",
    "a.. b -> b a..",
    "... a ... -> a ...",
    "... a -> a",
    "a b c -> a b c ...",
    "(a ...) b -> a b",
    "(...) -> ...",
    "a-b c -> c",
    "a_ b c -> a_ b c",
    "_a b c -> _a b c",
    "1a b c -> 1a b c",
    "a... b -> b",
    "(a e) b c -> a e b c",
    "a b (c e f) -> a b c e f",
    "",
)


def cube(t: Any) -> Any:
    return t.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_rearrange(pattern: str) -> None:
    sizes = {"d": 1} if "d" in pattern.split("->")[0].split("long")[0] else {}
    both(lambda t: t.func.rearrange(cube(t), pattern, **sizes))


@pytest.mark.parametrize("pattern", REFUSED)
def test_rearrange_refuses(pattern: str) -> None:
    both(lambda t: t.func.rearrange(cube(t), pattern))


@pytest.mark.parametrize(
    ("pattern", "sizes"),
    [
        ("a b c -> c b a", {"a": 2}),
        ("a b c -> c b a", {"a": 3}),
        ("a b c -> c b a", {"z": 3}),
        ("(a d) b c -> a b c d", {"a": 3}),
        ("a b (c d e) -> a b c d e", {"c": 2, "e": 2}),
        ("a (b d) c -> a b c d", {"b": 2, "d": 2}),
        ("a (b d) c -> a b c d", {"b": 3.0}),
    ],
    ids=str,
)
def test_rearrange_with_sizes(pattern: str, sizes: dict[str, Any]) -> None:
    both(lambda t: t.func.rearrange(cube(t), pattern, **sizes))


def test_rearrange_of_lists_and_in_transforms() -> None:
    def run(t: Any) -> Any:
        f, x = t.func.rearrange, cube(t)
        several = f([x, x + 1], "z ... -> ... z"), f((x[0], x[1]), "z a b -> (a z) b")
        mapped = t.vmap(lambda v: f(v, "a b -> b a"))(x)
        slope = t.func.grad(lambda v: (f(v, "a b c -> c (b a)")[0] ** 2).sum())(x)
        return several, mapped, slope, f(t.tensor(3.0), "... -> ...")

    both(run)


def test_keywords_as_names_warn() -> None:
    def run(t: Any) -> Any:
        return warnings_of(lambda: t.func.rearrange(cube(t)[0], "for in -> in for"))

    both(run)
