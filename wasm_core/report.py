"""What the binary is and what it weighs: `record` prints core.build.txt, `size` a page of figures.

Standard library only, and nothing that changes from one build to the next: no dates, no absolute
paths. Both read the binary's sections themselves.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Section ids and the kinds of import and export, from WebAssembly's binary format.
CUSTOM, IMPORT, EXPORT, CODE, DATA = 0, 2, 7, 10, 11
FUNCTION, TABLE, MEMORY, GLOBAL = range(4)


class Reader:
    """A cursor over bytes in WebAssembly's encoding."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def byte(self) -> int:
        self.at += 1
        return self.data[self.at - 1]

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def name(self) -> str:
        length = self.number()
        self.at += length
        return self.data[self.at - length : self.at].decode()


def sections(binary: bytes) -> Iterator[tuple[int, bytes]]:
    reader = Reader(binary)
    reader.at = 8
    while reader.at < len(binary):
        kind, length = reader.byte(), reader.number()
        yield kind, binary[reader.at : reader.at + length]
        reader.at += length


def imports(binary: bytes) -> list[str]:
    found = []
    for body in (body for kind, body in sections(binary) if kind == IMPORT):
        reader = Reader(body)
        for _ in range(reader.number()):
            found.append(f"{reader.name()}.{reader.name()}")
            kind = reader.byte()
            if kind == TABLE:
                reader.byte()
            if kind == GLOBAL:
                reader.at += 2
            elif kind == FUNCTION:
                reader.number()
            else:
                has_maximum = reader.number() & 1
                reader.number()
                if has_maximum:
                    reader.number()
    return sorted(found)


def exports(binary: bytes) -> list[str]:
    found = []
    for body in (body for kind, body in sections(binary) if kind == EXPORT):
        reader = Reader(body)
        for _ in range(reader.number()):
            found.append(reader.name())
            reader.byte()
            reader.number()
    return sorted(found)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def tools() -> dict[str, str]:
    emcc, clang = output("emcc", "--version"), output("emcc", "-v")
    emcc_version = re.search(r"\d+\.\d+\.\d+", emcc)
    clang_version = re.search(r".*clang version \S+", clang)
    assert emcc_version
    assert clang_version
    return {
        "emcc": emcc_version[0],
        "clang": clang_version[0],
        "wasm-opt": output("wasm-opt", "--version").strip(),
    }


def record(args: argparse.Namespace) -> int:
    binary = args.binary.read_bytes()
    unexpected = set(imports(binary)) - set(args.imports.split())
    if unexpected:
        print(f"the binary imports {', '.join(sorted(unexpected))}", file=sys.stderr)
        return 1
    print("What core.wasm was built from: written by `make wasm`, compared by `make repro`.\n")
    rows = tools() | {
        "compile": args.cflags,
        "link": args.ldflags,
        "imports": " ".join(imports(binary)),
        "exports": " ".join(exports(binary)),
        "bytes": str(len(binary)),
        "sha256": sha256(binary),
    }
    for name, value in rows.items():
        print(f"{name:9}{value}")
    print()
    for source in sorted(args.sources, key=Path.as_posix):
        print(f"{sha256(source.read_bytes())}  {source.as_posix()}")
    return 0


TOKEN = re.compile(
    r"""
      (?P<skip>/\*.*?\*/|//[^\n]*|\s+|\\\n)
    | "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'
    | [A-Za-z_]\w* | \.?\d(?:[eEpP][+-]|[\w.])*
    | \.\.\. | <<= | >>= | -> | \+\+ | -- | << | >> | [-+*/%&|^!=<>]= | && | \|\| | \#\# | .
    """,
    re.DOTALL | re.VERBOSE,
)


def tokens(text: str) -> int:
    """How many tokens C text has: names, numbers, texts, operators, brackets; comments are none."""
    return sum(m["skip"] is None for m in TOKEN.finditer(text))


def functions(source: Path) -> Iterator[tuple[int, int, str]]:
    """Lines, tokens and place of each function, its head included."""
    start, lines = None, source.read_text().splitlines()
    for i, line in enumerate(lines, 1):
        outside = line[:1] not in ("", " ", "\t", "/", "#")
        if re.match(r"[A-Za-z_].*\w\s?\(", line) and not line.rstrip().endswith((";", "\\")):
            start = i
        if start and outside and line.rstrip().endswith("}"):
            text = "\n".join(lines[start - 1 : i])
            yield i - start + 1, tokens(text), f"{source.as_posix()}:{start}"
        if outside and line.rstrip().endswith((";", "}")):
            start = None


def spread(values: list[int]) -> str:
    values = sorted(values)
    return f"median {values[len(values) // 2]}, 90th percentile {values[len(values) * 9 // 10]}"


def size(args: argparse.Namespace) -> int:
    binary = args.binary.read_bytes()
    weights = {kind: len(body) for kind, body in sections(binary)}
    packed = len(gzip.compress(binary, 9, mtime=0))
    print(f"{args.binary}: {len(binary):,} bytes of {args.budget:,}, gzip {packed:,}")
    print(f"  code {weights.get(CODE, 0):,}, data {weights.get(DATA, 0):,}\n")
    print(f"{'lines':>7} {'code':>9} {'data':>9}  file, code and data before linking, in bytes")
    n_lines = 0
    for source in args.sources:
        lines = len(source.read_text().splitlines())
        n_lines += lines
        built = Path("build/wasm", source.relative_to("wasm_core")).with_suffix(".o")
        parts = {}
        if source.suffix == ".c":
            parts = {kind: len(body) for kind, body in sections(built.read_bytes())}
        code, data = (f"{parts[k]:,}" if k in parts else "" for k in (CODE, DATA))
        print(f"{lines:7,} {code:>9} {data:>9}  {source}")
    print(f"{n_lines:7,} lines in all\n")
    every = [f for s in args.sources if s.suffix == ".c" for f in functions(s)]
    for k, unit in enumerate(("lines", "tokens")):
        print(f"{len(every):,} functions, in {unit}: {spread([f[k] for f in every])}; the longest:")
        for row in sorted(every, key=lambda f: f[k], reverse=True)[:10]:
            print(f"{row[k]:7,}  {row[2]}")
    if len(binary) > args.budget:
        print(f"\nthe binary is {len(binary) - args.budget:,} bytes over its budget")
        return 1
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    for action in (record, size):
        command = commands.add_parser(action.__name__)
        command.set_defaults(action=action)
        command.add_argument("binary", type=Path)
        command.add_argument("sources", type=Path, nargs="*")
        if action is record:
            for name in ("imports", "cflags", "ldflags"):
                command.add_argument(f"--{name}", required=True)
        else:
            command.add_argument("--budget", type=int, required=True)
    args = parser.parse_args()
    return int(args.action(args))


if __name__ == "__main__":
    raise SystemExit(main())
