"""What misuses of a package raise, in pygrad and in PyTorch.

Each module beside this one lists misuses of the package of its name. The file ``.json`` of that
name is the record of what they raise in pygrad: a type and the beginning of a message, both empty
for a call that is taken.

PYTHONPATH=.:tests python -m misuses.run pygrad fx    prints what they raise; torch: in PyTorch
PYTHONPATH=.:tests python -m misuses.run record fx    writes the record
"""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent.parent
PARTS: Final = sorted(file.stem for file in HERE.glob("*.json"))
"""The packages of which there are misuses."""
WORDS: Final = 70
"""The number of letters of a message that are compared: the rest names files and types."""


def answers(t: Any, part: str) -> dict[str, tuple[str, str]]:
    """The type and the beginning of the error of each misuse; empty if it is accepted."""
    found = {}
    for name, call in importlib.import_module(f"misuses.{part}").misuses(t).items():
        try:
            call()
            found[name] = "", ""
        except Exception as error:
            text = str(error).replace("pygrad.", "torch.").replace("<class 'bytes'>", "bytes")
            found[name] = type(error).__name__, text[:WORDS].partition(" (with")[0]
    return found


def reached(files: list[Path], run: Callable[[], Any]) -> set[tuple[str, int]]:
    """The lines of some files that run in a call."""
    names, found = {str(each) for each in files}, set()

    def trace(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in names:
            return None
        found.add((frame.f_code.co_filename, frame.f_lineno))
        return trace

    was = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(was)
    return found


def in_a_process(*args: str) -> Any:
    """The output of this file as a program: misuses leave kernels of operators behind."""
    paths = [str(ROOT), str(HERE.parent), *filter(None, sys.path)]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, "-W", "ignore", "-m", "misuses.run", *args]
    result = subprocess.run(command, env=env, capture_output=True, text=True, timeout=600)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def record(part: str) -> dict[str, list[str]]:
    """The recorded error of each misuse."""
    return json.loads((HERE / f"{part}.json").read_text())  # type: ignore[no-any-return]


def sources(part: str) -> list[Path]:
    """The files of a package."""
    return sorted((ROOT / "pygrad" / part).rglob("*.py"))


def refusals(part: str) -> dict[tuple[str, int], str]:
    """The texts of all places in a package that raise an error of its own, by place."""
    return {
        (str(file), node.lineno): ast.unparse(node)
        for file in sources(part)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Raise) and node.exc is not None
    }


def main(what: str, part: str) -> None:
    """Prints the errors of a library, or the lines of the package that run ("reached")."""
    library = importlib.import_module("torch" if what == "torch" else "pygrad")
    if what == "reached":
        print(json.dumps(sorted(reached(sources(part), lambda: answers(library, part)))))
        return
    found = answers(library, part)
    if what == "record":
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in found.items()]
        (HERE / f"{part}.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
