"""Checks that the tests fail where the program is wrong: `make mutants`.

A mutant is a small error that is put into a copy of the program. The files beside this one list
the mutants of each part. The tests that are named with a mutant must fail with it, and pass
without.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import shutil
import subprocess
import sys
import threading
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
COPIED = (
    "pygrad",
    "tests",
    "wasm_core",
    "Makefile",
    "pyproject.toml",
    "build/wasm",
    "build/declared",
)
"""The parts of the tree that tests and the build of the engine need."""
LONGEST = 600
"""The seconds after which the tests of a mutant are ended."""
FAILED = 1
"""The exit status of pytest if tests fail; others mean that it did not run them all."""


@dataclass
class Mutant:
    """One error.

    Attributes:
        part: the part of the program: the name of the list.
        file: the source file, from the root of the tree.
        old: the text to replace; it occurs once in the file.
        new: the text in its place.
        breaks: a sentence about what goes wrong.
        tests: the test files that fail, without ``tests/test_`` and ``.py``.
    """

    part: str
    file: str
    old: str
    new: str
    breaks: str
    tests: list[str]

    def apply(self, root: Path) -> str:
        """Puts the error into a tree; returns the former text of the file.

        Raises: ValueError: the old text does not occur exactly once.
        """
        path = root / self.file
        text = path.read_text()
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {text.count(self.old)} times: {self.old}")
        path.write_text(text.replace(self.old, self.new))
        return text

    @property
    def is_in_c(self) -> bool:
        """Whether the engine must be built with it."""
        return self.file.startswith("wasm_core/")


def mutants() -> list[Mutant]:
    """All mutants of the lists, by part."""
    return [
        Mutant(path.stem, **each)
        for path in sorted(HERE.glob("*.toml"))
        for each in tomllib.loads(path.read_text())["mutant"]
    ]


class Tree:
    """A copy of the program in which mutants are tried one after the other."""

    def __init__(self, root: Path, ldflags: str) -> None:
        self.root, self.ldflags = root, ldflags
        self.catching: set[str] = set()
        """The tests that have caught mutants."""

    def copy_from(self, source: Path) -> None:
        """Makes the tree anew. Times stay, so that `make` and Python compile little."""
        shutil.rmtree(self.root, ignore_errors=True)
        for name in COPIED:
            if (source / name).is_dir():
                shutil.copytree(source / name, self.root / name)
            else:
                shutil.copy2(source / name, self.root / name)

    def build(self) -> str:
        """Builds the engine; returns the errors."""
        command = ["make", "-s", "wasm", f"WASM_LDFLAGS={self.ldflags}"]
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True)
        return done.stderr if done.returncode else ""

    def test(self, tests: list[str]) -> int:
        """Runs tests up to the first failure; returns the exit status, -1 if they hang."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", *tests]
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "1",  # else that of a mutant could outlive it
        }
        self.failures.unlink(missing_ok=True)
        with open(self.root / "log.txt", "w") as log:
            try:
                done = subprocess.run(
                    command, cwd=self.root, env=environment, stdout=log, stderr=log, timeout=LONGEST
                )
            except subprocess.TimeoutExpired:
                return -1
        return done.returncode

    @property
    def failures(self) -> Path:
        """The file in which pytest lists the tests that failed."""
        return self.root / ".pytest_cache" / "v" / "cache" / "lastfailed"

    def failure(self) -> str:
        """The test that failed; without any the last line of the log."""
        if self.failures.exists():
            return str(next(iter(json.loads(self.failures.read_text()))))
        return (self.root / "log.txt").read_text(errors="replace").rpartition("\n")[2]

    def try_mutant(self, mutant: Mutant) -> tuple[bool, str]:
        """Whether tests catch a mutant, and by what. The tree is as before."""
        path, engine = self.root / mutant.file, self.root / "pygrad" / "core.wasm"
        before, times = engine.read_bytes(), path.stat()
        text = mutant.apply(self.root)
        try:
            if mutant.is_in_c and (errors := self.build()):
                return False, f"does not compile: {errors.splitlines()[0]}"
            status = self.test([f"tests/test_{name}.py" for name in mutant.tests])
        finally:
            path.write_text(text)
            if mutant.is_in_c:
                engine.write_bytes(before)  # the object is compiled again with the next one
            else:
                os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
        if status == FAILED:
            self.catching.add(self.failure())
            return True, f"caught by {self.failure().removeprefix('tests/')}"
        if status == 0:
            return False, f"SURVIVED {' '.join(mutant.tests)}"
        return False, "hangs" if status < 0 else f"does not run: {self.failure()}"


def try_mutants(
    found: list[Mutant], trees: list[Tree]
) -> Iterator[tuple[Mutant, bool, str, float]]:
    """Tries mutants, one at a time in each tree; yields each with its result and seconds."""
    todo: queue.SimpleQueue[Mutant] = queue.SimpleQueue()
    done: queue.SimpleQueue[tuple[Mutant, bool, str, float]] = queue.SimpleQueue()
    for each in sorted(found, key=lambda mutant: not mutant.is_in_c):
        todo.put(each)

    def work(tree: Tree) -> None:
        while True:
            try:
                mutant = todo.get_nowait()
            except queue.Empty:
                return
            start = time.monotonic()
            try:
                caught, how = tree.try_mutant(mutant)
            except ValueError as error:
                caught, how = False, f"does not apply: {error}"
            done.put((mutant, caught, how, time.monotonic() - start))

    for tree in trees:
        threading.Thread(target=work, args=(tree,), daemon=True).start()
    for _ in found:
        yield done.get()


def main() -> int:
    """Tries all mutants, or some; the exit status is 1 if a mutant is not caught."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ldflags", required=True, help="flags to link the engine with")
    parser.add_argument("--only", default="", help="mutants whose part, file or sentence has this")
    parser.add_argument("--trees", type=int, default=2, help="how many are tried at a time")
    options = parser.parse_args()
    found = [m for m in mutants() if options.only in f"{m.part} {m.file} {m.breaks}"]
    start = time.monotonic()
    trees = [
        Tree(ROOT / "build" / "mutants" / str(i), options.ldflags) for i in range(options.trees)
    ]
    trees[0].copy_from(ROOT)
    if errors := trees[0].build():
        print(errors)
        return 1
    for tree in trees[1:]:
        tree.copy_from(trees[0].root)
    left = 0
    for mutant, caught, how, seconds in try_mutants(found, trees):
        left += not caught
        print(f"{mutant.part}: {mutant.breaks} {how} ({seconds:.0f} s)", flush=True)
    catching = sorted(set().union(*(tree.catching for tree in trees)))
    if catching and trees[0].test(catching):
        print(f"mutants: {trees[0].failure()} fails without a mutant too")
        return 1
    seconds = time.monotonic() - start
    print(f"mutants: {len(found) - left} of {len(found)} caught in {seconds:.0f} s")
    return left > 0


if __name__ == "__main__":
    sys.exit(main())
