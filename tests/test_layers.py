"""Who may know whom: wasmtime in one file, the allocator in one, headers downwards, fronts through
pg.h.
"""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "wasm_core"
FRONT = ROOT / "pygrad"
SOURCES = sorted([*ENGINE.rglob("*.c"), *ENGINE.rglob("*.h")])
HEADERS = [path for path in SOURCES if path.suffix == ".h"]
MODULES = sorted(FRONT.rglob("*.py"))
LEVELS = [
    {"status.h", "text.h", "simd.h", "maths32.h", "special.h"},
    {"maths.h"},
    {"memory.h"},
    {"dtype.h"},
    {"tensor.h"},
    {"graph.h"},
    {"row.h"},
    {"call.h"},
    {"op.h"},
]
"""Headers from the bottom up; a header may include those of lower levels. Others lie above all of
these.
"""


def level(name: str) -> int:
    return next((k for k, names in enumerate(LEVELS) if name in names), len(LEVELS))


def includes(path: Path) -> list[str]:
    """The names, without their folders, of the headers that a file includes."""
    found = re.findall(r'^#include "([^"]+\.h)"', path.read_text(), re.MULTILINE)
    return [Path(name).name for name in found]


@functools.cache
def imports(path: Path) -> set[str]:
    """The absolute names that a module imports, at any depth of it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def test_wasmtime_is_known_to_one_module() -> None:
    users = {p.name for p in MODULES if any(n.split(".")[0] == "wasmtime" for n in imports(p))}
    assert users == {"_engine.py"}


def test_addresses_are_known_to_one_module() -> None:
    users = {p.name for p in MODULES if any(n.split(".")[0] == "ctypes" for n in imports(p))}
    assert users == {"_engine.py"}


def test_package_does_not_import_torch() -> None:
    assert not [p for p in MODULES if any(n.split(".")[0] == "torch" for n in imports(p))]


def test_allocator_is_called_in_one_file() -> None:
    calls = re.compile(r"\b(malloc|calloc|realloc|free|aligned_alloc|sbrk)\s*\(")
    users = {p.name for p in SOURCES if calls.search(without_comments(p.read_text()))}
    assert users == {"memory.c"}


@pytest.mark.parametrize("word", ["abort", "exit", "longjmp", "setjmp", "printf", "__builtin_trap"])
def test_engine_never_ends_or_prints(word: str) -> None:
    calls, guarded = re.compile(rf"\b{word}\s*\("), re.compile(r"#ifdef PG_GUARDED.*?#else", re.S)
    texts = {p.name: guarded.sub("", without_comments(p.read_text())) for p in SOURCES}
    assert not {name for name, text in texts.items() if calls.search(text)}


@pytest.mark.parametrize("path", HEADERS, ids=lambda p: p.name)
def test_header_includes_only_downwards(path: Path) -> None:
    if level(path.name) == len(LEVELS):
        return
    assert all(level(name) < level(path.name) for name in includes(path))


def test_public_header_needs_no_other() -> None:
    assert includes(ENGINE / "boundary/pg.h") == []


def test_op_header_says_where_each_function_is() -> None:
    place = ""
    for line in (ENGINE / "ops/op.h").read_text().splitlines():
        if heading := re.match(r"/\* ---.*\((\w+\.c)\)", line):
            place = next(ENGINE.rglob(heading[1])).read_text()
        elif name := place and re.match(r"\w[^(=]*\b(\w+)\([^;]*\);", line):
            assert re.search(rf"^\w[^;=]*\b{name[1]}\([^;]*?\) \{{", place, re.M), line


@pytest.mark.parametrize(
    "path", [path for path in SOURCES if path.suffix == ".c"], ids=lambda p: p.name
)
def test_public_header_is_for_the_boundary_alone(path: Path) -> None:
    assert ("pg.h" in includes(path)) <= (path.stem in {"api", "bind", "host", "call", "walk"})


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_source_begins_with_what_it_is(path: Path) -> None:
    assert path.read_text().startswith("/* ")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FRONT)))
def test_module_begins_with_what_it_is(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text()))


def test_front_calls_only_what_the_public_header_exports() -> None:
    declared = set(
        re.findall(r"\b(pg_\w+)\(", without_comments((ENGINE / "boundary/pg.h").read_text()))
    )
    used = set(re.findall(r'"(pg_\w+)"', (FRONT / "_engine.py").read_text()))
    assert used <= declared


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FRONT)))
def test_all_names_nothing_twice(path: Path) -> None:
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            if isinstance(node.value, ast.List):
                names = [ast.literal_eval(item) for item in node.value.elts]
                assert len(names) == len(set(names))  # their order is ruff's to check


def by_kind(name: str) -> tuple[int, str]:
    """Constants, classes, functions: the order that ruff keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


@pytest.mark.parametrize("word", ["/tmp/", "/work/", "/root/", "/home/"])
def test_no_path_of_one_machine(word: str) -> None:
    assert not [p.name for p in (*SOURCES, *MODULES) if word in p.read_text()]


# ---------------------------------------------------------------- the JavaScript front


def javascript(module: str = "index.js", found: dict[str, str] | None = None) -> dict[str, str]:
    """The sources of a module of the front and of all that it imports, by name."""
    found = {} if found is None else found
    if module not in found:
        found[module] = (ROOT / "web" / module).read_text(encoding="utf-8")
        for name in re.findall(r"^(?:import|export) [^;]*? from '\./(.+?)';", found[module], re.M):
            javascript(name, found)
    return found


def test_javascript_module_begins_with_what_it_is() -> None:
    sources = javascript()
    assert {"engine.js", "tensor.js", "nn.js", "profiler.js"} <= sources.keys()
    assert not [name for name, text in sources.items() if not text.startswith("/**")]
