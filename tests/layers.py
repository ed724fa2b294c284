"""Which file of the engine uses which, and which module of the Python front imports which: arrows
derived from the sources, without running or compiling them.

A file is `folder/name`, with its header. It uses whatever it names that another file defines: what
headers declare and one file defines, be it a function or a variable.
"""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ENGINE = Path(__file__).parent.parent / "wasm_core"
FRONT = Path(__file__).parent.parent / "pygrad"
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)")
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
TEXT = re.compile(r'"(?:\\.|[^"\\\n])*"')
WORD = re.compile(r"(?<!\.)(?<!->)\b[A-Za-z_]\w*")

Arrows = dict[str, dict[str, set[str]]]
"""The names that a file (the first key) uses of another (the second)."""


def file_of(path: Path) -> str:
    return str(path.relative_to(ENGINE).with_suffix(""))


def bare(text: str) -> str:
    """The code alone: no comments, texts, attributes, nor lines of includes."""
    code = ATTRIBUTE.sub("", TEXT.sub('""', COMMENT.sub("", text)))
    return re.sub(r"^#\s*include.*$", "", code, flags=re.MULTILINE)


def without_directives(code: str) -> str:
    return re.sub(r"^#(?:.*\\\n)*.*$", "", code, flags=re.MULTILINE)


def statements(code: str) -> Iterator[str]:
    """What stands outside of all braces, each with a `{` for its body, if it has one."""
    depth, start = 0, 0
    for m in re.finditer(r"[{};]", code):
        if m[0] == "{":
            depth += 1
            if depth == 1:
                yield code[start : m.end()]
        elif m[0] == "}":
            depth -= 1
            start = m.end()
        elif depth == 0:
            yield code[start : m.end()]
            start = m.end()


def declared_names() -> set[str]:
    """The names that headers declare: functions without a body, and variables."""
    names = set()
    for path in ENGINE.rglob("*.h"):
        for s in statements(without_directives(bare(path.read_text()))):
            if s.endswith("{") or re.match(r"\s*(static|typedef|enum|struct \w+;|union)", s):
                continue
            if m := re.match(
                r"\s*extern\b[^;]*?(?:\(\*)?\b(\w+)\b\)?(?:\[[^;]*\]|\([^;]*\))?(?:,[^;]*)?;$", s
            ):
                names |= set(
                    re.findall(r"(\w+)\s*(?:\[\w*\])?\s*(?=[,;])", re.sub(r"\([^()]*\);", ";", s))
                )
                names.add(m[1])
            elif m := re.search(r"\b([a-z]\w*)\s*\(", s):
                names.add(m[1])
    return names


def declared_functions() -> set[str]:
    headers = [bare(path.read_text()) for path in ENGINE.rglob("*.h")]
    found = (
        re.search(r"\b([a-z]\w*)\s*\(", s)
        for text in headers
        for s in statements(without_directives(text))
        if not re.match(r"\s*(static|typedef|extern|enum|union)\b", s) and not s.endswith("{")
    )
    return {m[1] for m in found if m}


def owner_of(statement: str, names: set[str]) -> set[str]:
    """Which of the names a statement of a source defines."""
    s = statement.strip()
    if re.match(r"(\w+ )*(static|typedef|extern|enum|union)\b|struct \w+ \{", s):
        return set()
    if not s.endswith("{") or "=" in s:  # variables
        head = s.split("=")[0] if "{" in s else re.sub(r"=[^,;]*", "", s)
        return {w for w in WORD.findall(head) if w in names and "(" not in head.split(w)[1][:1]}
    before = s.split("(")[0].split()
    last = before[-1].lstrip("*") if before else ""
    if last in names:
        return {last}
    return {w for w in WORD.findall(s) if w in names and last.isupper()}


def owners() -> dict[str, str]:
    """The file that defines each of what headers declare."""
    names = declared_names()
    found: dict[str, str] = {}
    for path in sorted(ENGINE.rglob("*.c")):
        for s in statements(without_directives(bare(path.read_text()))):
            for name in owner_of(s, names):
                found.setdefault(name, file_of(path))
    return found


def arrows() -> Arrows:
    """What each file uses of each other. A name that a file makes itself, such as a static function
    or a local variable of that name, is its own.
    """
    owner = owners()
    found: Arrows = defaultdict(lambda: defaultdict(set))
    for path in sorted([*ENGINE.rglob("*.c"), *ENGINE.rglob("*.h")]):
        code, source = bare(path.read_text()), file_of(path)
        own = own_names(code)
        for name in set(WORD.findall(code)):
            if (target := owner.get(name, source)) != source and name not in own:
                if path.suffix != ".h" or not is_declaration(code, name):
                    found[source][target].add(name)
    return found


def own_names(code: str) -> set[str]:
    """Static functions and variables, parameters and local variables."""
    static = re.findall(r"\bstatic\b[^;={(]*?\b(\w+)\s*[\[;=(]", code)
    local = re.findall(r"\b[A-Za-z]\w*(?: const)? +\**(\w+)\s*(?=[;=,)\[])", code)
    more = re.findall(r", \**(\w+)\s*(?=[;=,]|\[)", code)
    pointers = re.findall(r"\(\*(?:const )?(\w+)\)\(", code)
    return {*static, *local, *more, *pointers}


def is_declaration(code: str, name: str) -> bool:
    """Whether a header only declares the name."""
    bodies = "".join(
        re.findall(r"\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}|^#define(?:.*\\\n)*.*$", code, re.M)
    )
    return not re.search(rf"\b{name}\b", bodies)


def includes() -> Iterator[tuple[Path, str]]:
    """Each source with the headers and tables that it includes."""
    for path in sorted([*ENGINE.rglob("*.c"), *ENGINE.rglob("*.h"), *ENGINE.rglob("*.def")]):
        for name in re.findall(r'^#\s*include "([^"]+)"', path.read_text(), re.MULTILINE):
            yield path, name


# ---------------------------------------------------------------- ways past the door

ENTERED = re.compile(r"\b(?:OP|VIEW|ANY)_ENTERED")
BODY = re.compile(r"^([A-Za-z_][\w ]*[ *]+)(\w+)(\([^;{}]*\)) \{", re.MULTILINE)
SHORT_FORM = re.compile(r"^[A-Z_]+\((t_\w+)\(([^()]*)\),(.*?)\)$(?!\n )", re.MULTILINE | re.DOTALL)
"""A function that a macro makes: its name, its parameters, its body."""
ADDRESS = re.compile(r"\b(?:tensor_data|words_of|words_in)\((\w*)")
PLAIN = r"tensor_empty|tensor_zeros|tensor_settled|sparse_index_words|tensor_number"
"""The functions that make tensors that are not lazy."""
ROW_KINDS = {
    "UNARY": "unary",
    "UNARY_P": "unary",
    "BINARY": "binary",
    "COMPARE": "compare",
    "PREDICATE": "predicate",
}
"""The calls of an element-wise row's function, by the row's kind."""

Functions = dict[str, tuple[str, str, bool]]
"""The parameters and the body of each function, and whether its file alone may call it."""


def bodies(code: str) -> Functions:
    """The functions of a source, after ``bare`` and ``without_directives``."""
    short = SHORT_FORM.findall(code)
    found: Functions = {name: (given, does, False) for name, given, does in short}
    for m in BODY.finditer(code):
        at, depth = m.end(), 1
        while depth:
            depth += {"{": 1, "}": -1}.get(code[at], 0)
            at += 1
        own = bool(re.search(r"\b(static|INLINE)\b", m[1]))
        found[m[2]] = (m[3], code[m.end() : at - 1], own)
    return found


class WaysPastTheDoor:
    """The calls that lead to an address of elements without an entry by the door."""

    def __init__(self, minded: frozenset[str]) -> None:
        """`minded`: functions that heed lazy tensors themselves."""
        self.minded = minded | {"words_of", "words_in"}  # which ADDRESS finds where they are used
        self.files = {
            path: bodies(without_directives(bare(path.read_text())))
            for path in (*ENGINE.rglob("*.c"), *ENGINE.rglob("*.h"))
        }
        self.place: dict[str, Path] = {}
        for path, found in self.files.items():
            for name, (_, _, own) in found.items():
                if not own or path.suffix == ".h":
                    self.place.setdefault(name, path)
        table = bare((ENGINE / "ops/elementwise/elementwise.def").read_text())
        row = rf"^({'|'.join(ROW_KINDS)})(_AS)?\((?:[^(),]|\([^()]*\))*,\s*(\w+),\s*(\w*)"
        for kind, other, first, second in re.findall(row, table, re.MULTILINE):
            path = ENGINE / "ops/elementwise/elementwise.c"
            name = f"t_{second if other else first}"
            self.files[path][name] = ("(Tensor *x)", ROW_KINDS[kind], False)
            self.place[name] = path

    def is_known(self, name: str) -> bool:
        return name in self.place

    def takes_tensors(self, name: str) -> bool:
        return bool(re.search(r"\b(Tensor|Tensors|Call)\b", self.files[self.place[name]][name][0]))

    def way_from(self, name: str) -> list[str]:
        """The calls from a function to an address; empty if there are none."""
        return self._way(self.place[name], name, set())

    def _way(self, path: Path, name: str, seen: set[tuple[Path, str]]) -> list[str]:
        path = path if name in self.files[path] else self.place[name]
        _, body, _ = self.files[path][name]
        if (path, name) in seen or name in self.minded or ENTERED.search(body):
            return []
        seen.add((path, name))
        for which in ADDRESS.findall(body):
            if not re.search(rf"\b{which or '-'} = [^;]*?\b(?:{PLAIN})", body):
                return [name]
        for word in dict.fromkeys(re.findall(r"(?<!->)(?<!\.)\b[A-Za-z_]\w*\b", body)):
            if word != name and (word in self.files[path] or word in self.place):
                if way := self._way(path, word, seen):
                    return [name, *way]
        return []


# ---------------------------------------------------------------- the Python front


def run_imports(node: ast.AST) -> Iterator[ast.ImportFrom]:
    """The relative imports of a module, those within functions too, but for those of types."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for other in child.orelse:
                yield from run_imports(other)
        elif isinstance(child, ast.ImportFrom) and child.level:
            yield child
        else:
            yield from run_imports(child)


@functools.cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a module's tree."""
    return tuple(ast.walk(parse(path)))


def module_at(*path: str, within: Path) -> Path | None:
    place = within.joinpath(*path)
    found = (place / "__init__.py", place.with_suffix(".py"))
    return next((file for file in found if file.is_file()), None)


def imports_of_module(path: Path) -> set[str]:
    """The modules that a module names in its imports: ``from .a import b`` is a's, unless b is a
    module. That a package comes before its modules is no arrow.
    """
    found = {name for _, name, _ in imports_of(path)}
    return found - {str(path.relative_to(FRONT))}


def imports_of(path: Path) -> Iterator[tuple[str, str, bool]]:
    """Each name that a module binds by an import, with the file of the module that it is of, and
    whether it is that module itself.
    """
    for node in run_imports(parse(path)):
        folder = path.parents[node.level - 1]
        inner = node.module.split(".") if node.module else []
        for alias in node.names:
            itself = module_at(*inner, alias.name, within=folder)
            file = itself or module_at(*inner, within=folder)
            assert file is not None, f"{path}: line {node.lineno}"
            name = str(file.relative_to(FRONT))
            yield alias.asname or alias.name, name, itself is not None


def names_imported(path: Path) -> set[str]:
    imports = run_imports(parse(path))
    return {alias.name for node in imports for alias in node.names}


@functools.cache
def module_imports() -> dict[str, set[str]]:
    """Which modules each module of the front imports, at any time of its life."""
    return {str(p.relative_to(FRONT)): imports_of_module(p) for p in sorted(FRONT.rglob("*.py"))}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected components that have several members: each reaches every other."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        found: set[str] = set()
        left = list(graph[start])
        while left:
            name = left.pop()
            if name not in found:
                found.add(name)
                left += graph.get(name, ())
        reached[start] = found
    groups = {
        tuple(sorted(other for other in found if start in reached.get(other, ())))
        for start, found in reached.items()
        if start in found
    }
    return [list(group) for group in sorted(groups) if len(group) > 1]


def modules_bound(path: Path) -> dict[str, str]:
    """The modules of the front that a module imports as such, by their names there."""
    return {name: file for name, file, itself in imports_of(path) if itself}


def ways_of_every_kind() -> dict[str, set[str]]:
    """Which module reaches which: by imports, by the name of a submodule, by the package itself,
    and by a variable that another module fills.
    """
    graph = {name: {*targets} for name, targets in module_imports().items()}
    for path in sorted(FRONT.rglob("*.py")):
        name, bound = str(path.relative_to(FRONT)), modules_bound(path)
        if any("_ground.package" in (n.module or "") for n in run_imports(parse(path))):
            graph[name] |= {"__init__.py"} if "pygrad" in names_imported(path) else set()
        for node in nodes(path):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "").endswith("submodule"):
                if node.args and isinstance(node.args[0], ast.Constant):
                    inner = str(node.args[0].value).split(".")
                    file = module_at(*inner, within=FRONT) or module_at(
                        "torch", *inner, within=FRONT
                    )
                    assert file is not None, f"{name}: line {node.lineno}"
                    graph[name].add(str(file.relative_to(FRONT)))
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Attribute):
                        filled = bound.get(getattr(target.value, "id", ""))
                        if filled is not None:
                            graph[filled].add(name)
    return {name: targets - {name} for name, targets in graph.items()}
