"""The software bill of materials, in the form of CycloneDX 1.6: prints sbom.cdx.json.

It names the parts that the wheel has from elsewhere, their licences, and the hash of core.wasm.
`make wasm` writes it; nothing in it changes from one build of the same binary to the next.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parent.parent
PARTS: Final = (
    ("library", "musl", "1.2.2", "MIT", "linked into core.wasm"),
    (
        "library",
        "compiler-rt",
        "of emscripten 3.1.6",
        "Apache-2.0 WITH LLVM-exception",
        "linked into core.wasm",
    ),
    ("library", "emscripten", "3.1.6", "MIT", "start of core.wasm; its allocator is dlmalloc"),
    ("data", "new-joe-kuo-6.21201", "2008", "BSD-3-Clause", "pygrad/quasirandom/sobol.bin"),
    ("data", "optdigits", "1998", "CC-BY-4.0", "pygrad/datasets/digits.npz"),
    ("data", "pytorch", "2.13.0", "BSD-3-Clause", "pygrad/_table/native_schemas.txt, names.txt"),
)
"""Kind, name, version, licence, and where it is."""


def _licence(expression: str) -> list[dict[str, str]]:
    return [{"expression": expression}]


def bill() -> dict[str, Any]:
    """The bill as JSON has it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    record = dict(
        line.split(None, 1)
        for line in (ROOT / "pygrad" / "core.build.txt").read_text("utf-8").splitlines()
        if line.startswith(("sha256 ", "emcc "))
    )
    binary = {
        "type": "file",
        "name": "pygrad/core.wasm",
        "hashes": [{"alg": "SHA-256", "content": record["sha256"]}],
        "licenses": _licence("MIT"),
        "description": f"the engine, built from wasm_core/ by emcc {record['emcc']}",
    }
    parts = [
        {
            "type": kind,
            "name": name,
            "version": version,
            "licenses": _licence(licence),
            "description": where,
        }
        for kind, name, version, licence, where in PARTS
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "name": project["name"],
                "version": project["version"],
                "licenses": _licence(project["license"]),
                "purl": f"pkg:pypi/{project['name']}@{project['version']}",
            }
        },
        "components": [binary, *parts],
    }


if __name__ == "__main__":
    print(json.dumps(bill(), indent=2))
