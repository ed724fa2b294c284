"""Who may know whom: wasmtime in one file, the allocator in one, each layer of the engine only
those below, fronts through pg.h.
"""

from __future__ import annotations

import ast
import functools
import posixpath
import re
import subprocess
from pathlib import Path

import declare
import layers
import pytest

import pygrad
from pygrad._table import functions as _ops

ROOT = Path(__file__).parent.parent
ENGINE = ROOT / "wasm_core"
FRONT = ROOT / "pygrad"
SOURCES = sorted([*ENGINE.rglob("*.c"), *ENGINE.rglob("*.h")])
MODULES = sorted(FRONT.rglob("*.py"))
FOLDERS = [
    "ground",  # memory, texts, dtypes, failures
    "kernels",  # loops over raw memory
    "tensor",  # tensors, their storages, iteration over them
    "call",  # rows of the op table, arguments and results of a call
    "tape",  # nodes, saved values, histories, modes, the way to the host
    "ops",  # each family with its rows
    "report",  # texts of tensors and profiles
    "walk",  # walks back, forward mode, hooks, custom functions
    "transforms",  # vmap
    "boundary",  # the exports: what a host calls
]
"""The engine's folders from the bottom up: a file uses those of its own folder, in no circle, and
of lower ones.
"""
UPWARD: dict[tuple[str, str], str] = {}
"""Arrows up that are there all the same, by the two files, each with its reason."""


TOP = set(
    "pygrad tests wasm_core web Makefile pyproject.toml README.md ARCHITECTURE.md CONTRIBUTING.md "
    "CHANGELOG.md LICENSE".split()
)
"""What stands at the top, beside files for tools, whose names begin with a dot."""


def includes(path: Path) -> list[str]:
    """The names, without their folders, of the headers that a file includes."""
    found = re.findall(r'^#include "([^"]+\.h)"', path.read_text(), re.MULTILINE)
    return [Path(name).name for name in found]


@functools.cache
def imports(path: Path) -> set[str]:
    """The absolute names that a module imports, at any depth of it."""
    found = set()
    for node in layers.nodes(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
    return found


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)


def users_of(package: str) -> set[str]:
    return {
        str(p.relative_to(FRONT))
        for p in MODULES
        if any(name.split(".")[0] == package for name in imports(p))
    }


def test_wasmtime_is_known_to_the_host_and_what_it_shares_with_others() -> None:
    shared = {"_boundary/process.py", "_boundary/compiled.py"}
    assert users_of("wasmtime") == {"_boundary/host.py", "_boundary/raw_calls.py"} | shared


def test_addresses_are_known_to_the_host_alone() -> None:
    starts_mpi = "distributed/_mpi.py"  # it calls a function of that library, no address of ours
    assert users_of("ctypes") == {"_boundary/host.py", "_boundary/raw_calls.py", starts_mpi}


VIEWS = {"memory", "words", "ints", "unsigned", "doubles", "floats"}
"""Of linear memory, as the host has them."""


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FRONT)))
def test_linear_memory_is_indexed_at_the_boundary_alone(path: Path) -> None:
    if path.parent.name == "_boundary":
        return
    for node in layers.nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            assert node.value.id not in ("_boundary", "host") or node.attr not in VIEWS
        elif isinstance(node, ast.ImportFrom) and "_boundary" in (node.module or ""):
            assert not VIEWS & {alias.name for alias in node.names}


BELOW_BOUNDARY = {f"_ground/{name}.py" for name in ("dtypes", "errors", "wanted", "warnings")}


def test_boundary_needs_nothing_above_it() -> None:
    arrows = layers.module_imports()
    boundary = {name for name in arrows if name.startswith("_boundary/")}
    assert {t for name in boundary for t in arrows[name]} - boundary == BELOW_BOUNDARY


def test_package_does_not_import_torch() -> None:
    assert not [p for p in MODULES if any(n.split(".")[0] == "torch" for n in imports(p))]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FRONT)))
def test_package_imports_its_own_modules_by_relative_names(path: Path) -> None:
    if path.name == "demo.py":  # a program that uses the package
        return
    absolute = {n for n in imports(path) if n.split(".")[0] == "pygrad"}
    assert not absolute - ({"pygrad"} if path.name == "package.py" else set())


def test_modules_import_each_other_in_no_circle() -> None:
    assert layers.circles(layers.module_imports()) == []  # within functions neither


CIRCLES_BY_ALL_WAYS = {
    "a group's methods are the functions of the package, which take a group": "distributed/"
    "__init__ _barriers _call _exchanges _group _group_calls _objects _point_to_point _reductions "
    "_sparse",
    "a call of the engine runs callbacks and asks types, and these call the engine": "_boundary/"
    "__init__ arguments blocks callbacks calls hosting old_forms overriding shapes",
    "the host asks whose turn it is; the lock and the modes are in its memory": "_boundary/"
    "constants frame host modes ownership",
    "_engine_run_backward is a name of graph in PyTorch": "autograd/_backward _walk graph variable",
    "a file of nested tensors names a function of rebuild": "_tensor/rebuild ../nested/_make "
    "../nested/_strided",
}
"""The modules in each circle, counted by all ways in which a module reaches another (imports, names
of submodules, the package itself, variables that another module fills), by the reason for it. The
list only shrinks.
"""
MOST_IN_A_CIRCLE = 10


def circle_recorded(names: str) -> list[str]:
    folder, _, names = names.partition("/")
    files = [f"{folder}/{name}.py" for name in names.split()]
    return sorted(re.sub(r"\w+/\.\./", "", file) for file in files)


def test_circles_by_all_ways_only_shrink() -> None:
    found = layers.circles(layers.ways_of_every_kind())
    assert found == sorted(map(circle_recorded, CIRCLES_BY_ALL_WAYS.values()))
    assert max(map(len, found)) <= MOST_IN_A_CIRCLE


PARTS = "_tensor/base _tensor/subclassing _tensor/operators _tensor/index _tensor/host_data "
PARTS += "_tensor/memory _tensor/printing autograd/_methods"
"""The modules of the class Tensor that `_tensor/tensor.py` puts together."""


def test_tensor_is_put_together_of_its_parts_alone() -> None:
    kinds = {kind.__module__: kind for kind in pygrad.Tensor.__mro__[1:-1]}
    assert kinds.keys() == {f"pygrad.{name.replace('/', '.')}" for name in PARTS.split()}
    assert {f"{name}.py" for name in PARTS.split()} <= layers.module_imports()["_tensor/tensor.py"]
    assert all(not vars(kind).get("__slots__") for kind in pygrad.Tensor.__mro__[:-2])


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FRONT)))
def test_modules_below_tensor_use_its_base_for_annotations_and_checks_alone(path: Path) -> None:
    """There `Tensor` is the base class: only `isinstance` and `issubclass` mean the same for it."""
    names = {(name, file) for name, file, _ in layers.imports_of(path)}
    if ("Tensor", "_tensor/base.py") not in names:
        return
    free: set[ast.AST] = set()
    for node in layers.nodes(path):
        for field in ("annotation", "returns"):
            if isinstance(note := getattr(node, field, None), ast.AST):
                free |= {*ast.walk(note)}
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").startswith("is"):
            free |= {*ast.walk(node.args[-1])}
        if isinstance(node, ast.BinOp):  # of a type: Tensor | None
            free |= {*ast.walk(node)}
    used = [n for n in layers.nodes(path) if isinstance(n, ast.Name) and n.id == "Tensor"]
    assert [node.lineno for node in used if node not in free] == []


OF_THE_WHOLE_PACKAGE = {
    "fx/_names.py": "generated code finds any name of torch",
    "fx/node.py": "generated code finds any name of torch",
    "overrides.py": "lists the functions of all namespaces",
    "serialization/_globals.py": "files name anything",
}
"""The modules, outside of `torch`, that use the package itself, each with its reason. All others
use `_tensor/namespace.py`.
"""


def test_whole_package_is_used_by_those_alone_that_need_any_name_of_it() -> None:
    users = {
        name
        for name, modules in layers.module_imports().items()
        if "_ground/package.py" in modules and "pygrad" in layers.names_imported(FRONT / name)
    }
    assert {name for name in users if not name.startswith("torch/")} == OF_THE_WHOLE_PACKAGE.keys()


MOST_AT_THE_TOP = 45
"""Entries at the top of `pygrad`: it only shrinks."""


def entries_of_the_front() -> set[str]:
    listed = subprocess.check_output(["git", "ls-files", "pygrad"], cwd=ROOT, text=True)
    return {path.split("/")[1] for path in listed.splitlines()}


def test_top_of_the_front_is_small_and_on_the_map() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    entries, text = entries_of_the_front(), (ROOT / "ARCHITECTURE.md").read_text()
    assert len(entries) <= MOST_AT_THE_TOP
    private = {name for name in entries if re.match(r"_[a-z]", name)}
    assert private == {f"_{room}" for room in ROOMS}
    named = set(re.findall(r"`(?:pygrad/)?(\w+(?:\.\w+)*)/?`", text))
    assert {name for name in entries if not name.startswith("__")} - named == set()


ROOMS = ["ground", "boundary", "table", "tensor", "transforms", "dispatch", "install"]
"""The private rooms of the front."""


def test_rooms_do_not_import_what_only_torch_programs_ask_for() -> None:
    arrows = layers.module_imports()
    outside = {name: targets for name, targets in arrows.items() if not name.startswith("torch/")}
    assert [name for name, targets in outside.items() if any("torch/" in t for t in targets)] == []


def test_circles_of_imports_are_seen() -> None:
    graph = {
        "a": {"b"},
        "b": {"c"},
        "c": {"b"},
        "d": {"a", "e"},
        "e": {"f"},
        "f": {"e"},
        "g": set(),
    }
    assert layers.circles(graph) == [["b", "c"], ["e", "f"]]
    arrows = layers.module_imports()
    assert "autograd/graph.py" in arrows["autograd/__init__.py"]  # from . import graph
    assert "_boundary/calls.py" in arrows["_table/functions.py"]  # from .._boundary import calls
    assert "nn/modules/module.py" not in arrows["nn/_hooks.py"]  # for its type alone
    assert "storage.py" in arrows["_tensor/functions.py"]  # within a function


def test_allocator_is_called_in_one_file() -> None:
    calls = re.compile(r"\b(malloc|calloc|realloc|free|aligned_alloc|sbrk)\s*\(")
    users = {p.name for p in SOURCES if calls.search(without_comments(p.read_text()))}
    assert users == {"memory.c"}


@pytest.mark.parametrize("word", ["abort", "exit", "longjmp", "setjmp", "printf", "__builtin_trap"])
def test_engine_never_ends_or_prints(word: str) -> None:
    calls, guarded = re.compile(rf"\b{word}\s*\("), re.compile(r"#ifdef PG_GUARDED.*?#else", re.S)
    texts = {p.name: guarded.sub("", without_comments(p.read_text())) for p in SOURCES}
    assert not {name for name, text in texts.items() if calls.search(text)}


@functools.cache
def uses() -> layers.Arrows:
    return layers.arrows()


@functools.cache
def public_functions() -> set[str]:
    """The functions of op.h, the door of the ops: any file of ops/ may come in by it."""
    return set(re.findall(r"\b(t_\w+)\(", (ENGINE / "ops/op.h").read_text()))


def height(name: str) -> int:
    return FOLDERS.index(name.split("/")[0])


def uses_within(folder: str) -> dict[str, set[str]]:
    """The arrows between files of a folder, for ops/ without those through its door."""
    own = {source: targets for source, targets in uses().items() if source.split("/")[0] == folder}
    free = public_functions() if folder == "ops" else set()
    return {
        source: {t for t, names in targets.items() if t.split("/")[0] == folder and names - free}
        for source, targets in own.items()
    }


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The files that are left after every file on which none of the others depends was taken away,
    and every one that depends on none.
    """
    left = {*graph, *(t for targets in graph.values() for t in targets)}
    while True:
        used = {t for source in left for t in graph.get(source, ()) if t in left and t != source}
        inner = {n for n in left if n in used and (graph.get(n, set()) - {n}) & left}
        if inner == left:
            return sorted(left)
        left = inner


def test_every_folder_has_its_layer() -> None:
    assert {p.relative_to(ENGINE).parts[0] for p in SOURCES} == set(FOLDERS)


def test_arrows_are_found() -> None:
    assert {"node_release", "save"} <= {
        n for d in uses().values() for names in d.values() for n in names
    }
    assert {"t_cat", "t_clone"} <= public_functions()
    assert {"node_bare", "node_release"} <= uses()["tape/record"]["tape/node"]
    assert sum(len(targets) for targets in uses().values()) > 500


@pytest.mark.parametrize("folder", FOLDERS)
def test_file_uses_only_its_own_layer_and_lower_ones(folder: str) -> None:
    up = {
        (source, target): sorted(names)
        for source, targets in uses().items()
        for target, names in targets.items()
        if source.split("/")[0] == folder and height(target) > height(source)
    }
    assert {pair: names for pair, names in up.items() if pair not in UPWARD} == {}


def test_listed_arrows_up_are_there() -> None:
    assert [pair for pair in UPWARD if pair[1] not in uses()[pair[0]]] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_of_a_layer_use_each_other_in_no_circle(folder: str) -> None:
    assert circle(uses_within(folder)) == []


def test_circles_are_seen() -> None:
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == ["b", "c"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_file_includes_only_its_own_layer_and_lower_ones(folder: str) -> None:
    assert [
        (str(path.relative_to(ENGINE)), name)
        for path, name in layers.includes()
        if path.relative_to(ENGINE).parts[0] == folder
        and name != "elementwise_functions.h"  # made of the rows of ops/ for ops/op.h
        and not name.endswith("_rows.h")
        and height(name) > FOLDERS.index(folder)
    ] == []


def test_functions_that_no_header_declares_are_called_by_rows_alone() -> None:
    words = [
        set(re.findall(r"\w+", layers.bare(path.read_text()))) for path in ENGINE.rglob("*.[ch]")
    ]
    for family in (path for path in (ENGINE / "ops").iterdir() if path.is_dir()):
        users = {path for path, name in layers.includes() if name == f"{family.name}_rows.h"}
        assert {path.parent for path in users} == {family, ENGINE / "boundary"}
        lines = declare.functions_of_rows(family)
        for name in re.findall(r"\b(\w+)\(", " ".join(lines)):
            assert sum(name in each for each in words) == 1


KNOW_SPARSE = {
    "create/create.c": "reads layout=, and makes zeros of the layout that it names",
    "index/embedding.c": "embedding(sparse=True) has a sparse gradient",
    "index/index_dim.c": "gather(sparse_grad=True) has a sparse gradient",
    "optim/": "steps take or refuse sparse gradients, each in its own way",
}
"""The files and families outside of `ops/sparse` that name sparse tensors, each with the reason.
GRAD_SPARSE is a word of nodes whose functions pass sparse gradients on.
"""


def test_families_leave_sparse_tensors_to_their_own() -> None:
    found = set()
    for path in (ENGINE / "ops").glob("*/*.[ch]"):
        words = set(re.findall(r"\w+", layers.bare(path.read_text()))) - {"GRAD_SPARSE"}
        if path.parent.name != "sparse" and any("sparse" in word.lower() for word in words):
            name = str(path.relative_to(ENGINE / "ops"))
            found.add(name if name in KNOW_SPARSE else f"{path.parent.name}/")
    assert found == set(KNOW_SPARSE)


def test_what_ops_do_with_sparse_arguments_is_told_by_names_that_enter() -> None:
    rows = ENGINE / "ops/sparse/bodies.def"
    names = re.findall(r"^BODY\((\w+),", rows.read_text(), re.MULTILINE)
    functions = re.findall(r"t_(\w+)\(", " ".join(declare.elementwise_functions()))
    code = [p.read_text() for p in (ENGINE / "ops").glob("*/*.c") if p.parent.name != "sparse"]
    entries = re.findall(r"_ENTERED(?:_AS)?\([^;]*;", "".join(code).replace("\n  if", ";"))
    entered = set(re.findall(r'"(\w+)"', " ".join(entries)))
    assert len(names) == len(set(names)) > 40
    assert set(names) - entered - set(functions) == set()


ELSEWHERE = {
    "where": "an overload, beside the others: the indices where a condition is true",
    "max": "an overload, beside the others: the greater of two tensors",
    "min": "an overload, beside the others: the smaller of two tensors",
    "diagonal": "linalg's name for another default of the dimensions",
}
"""The rows whose function is in another family, each with the reason."""


def test_row_stands_in_the_family_of_its_function() -> None:
    families = [path for path in (ENGINE / "ops").iterdir() if path.is_dir()]
    functions = {
        family.name: {
            name
            for path in family.glob("*.c")
            for _, name, _ in declare.DEFINED.findall(layers.bare(path.read_text()))
        }
        for family in families
    }
    functions["elementwise"].update(re.findall(r"t_\w+", " ".join(declare.elementwise_functions())))
    elsewhere, count = set(), 0
    for path in (path for family in families for path in family.glob("*.def")):
        rows = re.split(r"^OPX?\(", layers.bare(path.read_text()), flags=re.MULTILINE)[1:]
        for row in rows:
            called = re.search(r"\b(t|op)_\w+(?=\()", row)
            homes = {name for name, own in functions.items() if called and called[0] in own}
            count += bool(homes)
            if called and homes and path.parent.name not in homes:
                elsewhere.add(re.findall(r"(\w+),\s*\"", row[: called.start()])[-1])
    assert count > 700
    assert elsewhere == set(ELSEWHERE)


KERNELS_MAY = {"ground/dtype.h", "ground/inline.h", "ground/paths.h", "ground/poll.h"}
"""The headers that kernels may include beside each other's: element types, inlining, the count of
paths taken, polls.
"""


THINGS = {
    "t": "an op",
    "op": "a service",
    "pg": "an export",
    **dict.fromkeys(["arg", "ret"], "arguments and results of a call"),
    **dict.fromkeys(["door", "row", "value", "layout", "vmap", "rule"], "parts of a call"),
    **dict.fromkeys(["tensor", "storage", "version", "pool"], "tensors and what they own"),
    **dict.fromkeys(["sizes", "shape", "dim"], "geometry"),
    **dict.fromkeys(["node", "saves", "saved", "task"], "parts of a graph and of a walk"),
    **dict.fromkeys(["mem", "scratch", "warn"], "memory and warnings"),
    **dict.fromkeys(["m", "complex", "gemm"], "maths on numbers, complex numbers and matrices"),
}
"""The first words of functions that several files define, or whose file has a longer name."""
WORDS_OF_OPS = {
    *("fail", "needs", "save", "save_output", "save_exchanged", "num_list", "num_list_at"),
    *("set_history", "set_history_at", "set_histories", "gradient_fit", "modes_enter", "textf"),
}
"""Functions that almost every op calls, or that ARCHITECTURE names."""


def test_shared_function_begins_with_its_file_its_folder_or_a_thing() -> None:
    functions, used = layers.declared_functions(), set()
    for name, place in layers.owners().items():
        parts = {word for part in place.split("/") for word in (part, *part.split("_"))}
        parts |= {part.removesuffix("s") for part in parts}
        if name in functions and not any(f"{name}_".startswith(f"{part}_") for part in parts):
            first = name.split("_")[0]
            used.add(name if name in WORDS_OF_OPS else first)
            assert name in WORDS_OF_OPS or first in THINGS, f"{name} of {place}"
    assert used == {*WORDS_OF_OPS, *THINGS}


def test_kernels_know_only_memory_that_they_are_given() -> None:
    kernels = [(path, name) for path, name in layers.includes() if path.parent.name == "kernels"]
    assert {name for _, name in kernels if not name.startswith("kernels/")} <= KERNELS_MAY
    used = {t for source, d in uses().items() if source.startswith("kernels/") for t in d}
    assert {t for t in used if not t.startswith("kernels/")} <= {
        "ground/dtype",
        "ground/paths",
        "ground/poll",
    }


BY_ONE_TYPE = re.compile(
    r"\[[^\[\];]*== DT_F(?:32|64)\b[^\[\];]*\]"  # loops[d == DT_F64]
    r"|== DT_F(?:32|64) \?\s*&?[a-z_]\w*_(?:f32|f64|float|double)\s*[:;,]"  # ? loop_f64 : loop_f32
)
"""A kernel chosen by whether the type is one of two: it would read a third as the other."""


def test_kernels_are_chosen_by_tables_of_dtypes() -> None:
    assert not {
        str(path.relative_to(ENGINE)): found
        for path in SOURCES
        if (found := BY_ONE_TYPE.findall(without_comments(path.read_text())))
    }
    for text in ("map[d == DT_F64](s);", "d == DT_F32 ? &one_f32 : &one_f64;"):
        assert BY_ONE_TYPE.search(text)
    assert not BY_ONE_TYPE.search("all = [DT_F64] = d == DT_F32 ? 24 : 53;")


KEPT = re.compile(r"\bstatic\b((?:_Alignas\(\w+\)|[^;{}()=\[])*)[;=\[]")
"""The words before a static object's initialiser, or its end."""


def test_kernels_keep_nothing_between_calls() -> None:
    """What they work in is an argument, so that each thread brings its own."""
    for path in SOURCES:
        if path.parent.name == "kernels":
            objects = KEPT.findall(without_comments(path.read_text()))
            assert [words for words in objects if "const" not in words.split()] == [], path.name
    assert KEPT.findall("static _Alignas(16) float part[3][PART];") == [" _Alignas(16) float part"]
    assert KEPT.findall("static inline float f(float x) { return x; }") == []


def test_public_header_needs_no_other() -> None:
    assert includes(ENGINE / "boundary/pg.h") == []


OPS = sorted({op.name for op in _ops.TABLE})
BODY = re.compile(
    r"^(?:Tensor \*|void |bool )t_(\w+)\([^{;]*\) \{\n(.*?)^\}", re.MULTILINE | re.DOTALL
)


ENTERS = re.compile(r"(  Floats [^;]*;\n)*  (OP|VIEW|ANY)_ENTERED(_AS)?\(")


ONE_LINE = re.compile(
    r"^(?:Tensor \*|void |bool )t_(\w+)\([^{;]*\) \{ (?:return )?(\w+)\([^;]*\); \}$", re.MULTILINE
)


def enters(text: str, called: str) -> bool:
    """Whether a function does, in this file or as one of the ops of others."""
    body = re.search(
        rf"^\w[^\n(;=]*\b{called}\([^{{;]*\) \{{\n(.*?)^\}}", text, re.MULTILINE | re.DOTALL
    )
    return bool(ENTERS.match(body[1])) if body else called.startswith("t_")


def test_functions_of_ops_enter_by_the_door() -> None:
    """All but those that say no more than another, which does."""
    outside = set()
    for path in SOURCES:
        if path.suffix == ".c" and "ops" in path.parts:
            text = path.read_text()
            for name, body in BODY.findall(text):
                if name in OPS and not ENTERS.match(body):
                    outside.add(name)
            for name, called in ONE_LINE.findall(text):
                if name in OPS and not enters(text, called):
                    outside.add(name)
    assert not outside


MIND_LAZY_TENSORS = {
    **dict.fromkeys(["tensor_copy_data", "tensor_fill_data", "tensor_settled"], "honour the flags"),
    "tensor_snapshot": "shares bytes and flags",
    "lists_run": "of optimizers: computes those that are lazy, and writes to them",
    "accumulate": "computes what is lazy, and writes to what is new",
    "divide_by_counts": "of what is new",
    **dict.fromkeys(
        ["sparse_structure", "in_order", "sparse_find_places"], "of places that the engine made"
    ),
    **dict.fromkeys(
        ["check_coo_places", "infer_sizes", "check_numbers"],
        "of sparse_index_words, which computes",
    ),
}
"""Functions that ask for addresses of elements outside of the door, each with its reason."""


def test_no_row_reaches_elements_but_by_the_door() -> None:
    """A row's function enters by the door, or what it calls does before an address of elements is
    asked for: so no op reads a lazy tensor's bytes as they lie.
    """
    ways = layers.WaysPastTheDoor(frozenset(MIND_LAZY_TENSORS))
    rows = [path for path in (ENGINE / "ops").rglob("*.def") if path.name != "ops.def"]
    texts = [layers.bare(path.read_text()) for path in rows]
    called = public_functions().union(*(re.findall(r"\b(\w+)\(", text) for text in texts))
    assert not {n for n in called if n.startswith(("t_", "op_")) and not ways.is_known(n)}
    functions = {name for name in called if ways.is_known(name) and ways.takes_tensors(name)}
    functions -= {
        name for name in public_functions() if name.startswith("t_sparse_")
    }  # behind doors
    assert len(functions) > 500
    assert {name: way for name in sorted(functions) if (way := ways.way_from(name))} == {}


def test_ways_past_the_door_are_seen() -> None:
    ways = layers.WaysPastTheDoor(frozenset())
    for name in ("t_mul", "t_normal_", "t_interpolate"):
        assert ways.way_from(name) == []
    for name in ("tensor_fill_data", "elementwise_run_typed", "op_fused_sgd"):
        assert ways.way_from(name)[0] == name
    made = (
        "Tensor *t_f(Tensor *x) {\n  Tensor *y = tensor_empty(x);\n  g(tensor_data(y), h(x));\n}\n"
    )
    assert layers.bodies(made) == {"t_f": ("(Tensor *x)", made[made.index("{") + 1 : -2], False)}


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
    assert ("pg.h" in includes(path)) <= (path.stem in {"api", "bind", "host"})


@pytest.mark.parametrize("path", SOURCES, ids=lambda p: p.name)
def test_source_begins_with_what_it_is(path: Path) -> None:
    assert path.read_text().startswith("/* ")


def test_include_guard_is_the_name_of_its_header() -> None:
    for path in ENGINE.rglob("*.h"):
        if path.name == "formula.h":  # is included twice, each time with another meaning
            continue
        code, stem, folder = without_comments(path.read_text()), path.stem, path.parent.name
        guard = re.match(r"\s*#ifndef (\w+)\n#define \1\n", code)
        names = {"PG_H"} if stem == "pg" else {f"PG_{stem}_H", f"PG_{folder}_{stem}_H"}
        assert guard, path
        assert guard[1] in {name.upper() for name in names}


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FRONT)))
def test_module_begins_with_what_it_is(path: Path) -> None:
    assert ast.get_docstring(layers.parse(path))


def test_front_calls_only_what_the_public_header_exports() -> None:
    header = without_comments((ENGINE / "boundary/pg.h").read_text())
    declared = set(re.findall(r"\b(pg_\w+)\(", header))
    used = set(re.findall(r'"(pg_\w+)"', (FRONT / "_boundary" / "host.py").read_text()))
    assert used <= declared


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(FRONT)))
def test_all_names_nothing_twice(path: Path) -> None:
    for node in layers.parse(path).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            if isinstance(node.value, ast.List):
                names = [ast.literal_eval(item) for item in node.value.elts]
                assert len(names) == len(set(names))  # their order is ruff's to check


def sort_key(name: str) -> tuple[int, str]:
    """Constants, classes, functions: the order that ruff keeps."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_nothing_else_stands_at_the_top() -> None:
    """A program of the README that is run in the tree leaves its files there."""
    if not (ROOT / ".git").exists():
        pytest.skip("no repository")
    listed = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True).splitlines()
    names = {path.partition("/")[0] for path in listed}
    assert {name for name in names if name[0] != "."} == TOP


@pytest.mark.parametrize("word", ["/tmp/", "/work/", "/root/", "/home/"])
def test_no_path_of_one_machine(word: str) -> None:
    assert not [p.name for p in (*SOURCES, *MODULES) if word in p.read_text()]


# ---------------------------------------------------------------- the JavaScript front


def javascript(module: str = "index.js", found: dict[str, str] | None = None) -> dict[str, str]:
    """The sources of a module of the front and of all that it imports, by name."""
    found = {} if found is None else found
    if module not in found:
        found[module] = (ROOT / "web" / module).read_text(encoding="utf-8")
        for name in re.findall(r"^(?:import|export) [^;]*? from '(\..+?)';", found[module], re.M):
            javascript(posixpath.normpath(f"{posixpath.dirname(module)}/{name}").lstrip("/"), found)
    return found


def test_javascript_module_begins_with_what_it_is() -> None:
    sources = javascript()
    assert {"engine.js", "tensor.js", "nn/module.js", "profiler.js"} <= sources.keys()
    assert not [name for name, text in sources.items() if not text.startswith("/**")]
