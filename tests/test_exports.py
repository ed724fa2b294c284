"""The shipped binary offers what pg.h declares and asks for nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import wasmtime

from pygrad._boundary import process
from pygrad._table import functions as _ops

HEADER = (Path(__file__).parent.parent / "wasm_core" / "boundary" / "pg.h").read_text()
CODE = re.sub(r"/\*.*?\*/", "", HEADER, flags=re.DOTALL)
DECLARED = set(re.findall(r"^[a-zA-Z][\w *]*?\b(pg_\w+)\(", CODE, re.MULTILINE))
IMPORTED = set(re.findall(r"^PG_IMPORT\((\w+)\)", CODE, re.MULTILINE))
BUDGET = 2 << 20
TOOLCHAIN = {"_initialize", "stackSave", "stackRestore", "stackAlloc"}
TOOLCHAIN |= {"__errno_location", "htons", "ntohs"}
"""What emscripten 3.1.6 exports of its own accord."""


def test_imports_are_the_memory_and_the_callback() -> None:
    found = {(i.module, i.name) for i in process.module.imports}
    assert found == {("env", "memory"), *(("env", name) for name in IMPORTED)}


def test_exports_are_what_the_header_declares() -> None:
    functions = {e.name for e in process.module.exports if isinstance(e.type, wasmtime.FuncType)}
    assert functions - TOOLCHAIN == DECLARED - IMPORTED


def test_memory_is_not_exported() -> None:
    kinds = [e.type for e in process.module.exports]
    assert not [kind for kind in kinds if isinstance(kind, wasmtime.MemoryType)]


def test_binary_is_within_its_budget() -> None:
    assert process.BINARY.stat().st_size <= BUDGET


def test_binary_has_no_relaxed_simd() -> None:
    config = wasmtime.Config()
    config.wasm_relaxed_simd = False
    wasmtime.Module.from_file(wasmtime.Engine(config), str(process.BINARY))


@pytest.mark.parametrize("op", _ops.TABLE, ids=lambda op: op.name)
def test_schema_is_in_the_grammar(op: _ops.Op) -> None:
    name = r"\w+"
    type_ = r"[A-Z]?[A-Za-z]+(\|[A-Za-z]+)?(\?)?(\[\d?\])?(\|int\[\])?\??"
    default = r"(=[^,]+|=\[[^\]]*\])?"
    argument = rf"({type_} {name}{default}|\*)"
    one = rf"{type_}( {name})?"
    result = rf"(\(\)|{one}|\({one}(, {one})*\)|str)"
    for schema in op.schemas:
        assert re.fullmatch(rf"{name}\(({argument}(, {argument})*)?\) -> {result}", schema), schema


@pytest.mark.parametrize("op", _ops.TABLE, ids=lambda op: op.name)
def test_row_is_offered_where_a_host_looks(op: _ops.Op) -> None:
    direct_alone = {word for word in op.words if ":" not in word} <= {"direct"}
    assert "" not in op.words
    assert direct_alone or op.words & {*_ops.NAMESPACES, "nn_inplace"}
