"""How many lines of the newer parts their tests run, without PyTorch: `make coverage`.

Counts the lines that `TESTS` run, in subprocesses and threads too, prints a row for each part, and
fails if a part is below `LEAST`. ``--missing`` prints the lines that no test runs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from coverage import Coverage

ROOT: Final = Path(__file__).parent.parent.parent
DATA: Final = ROOT / "build" / "coverage"
PARTS: Final = ("library", "nested", "fx", "_dispatch", "ops.py")
"""Folders and modules of `pygrad/`."""
TESTS: Final = (
    *("misuses", "library", "dispatch", "operators", "fx", "fx_parts", "fx_make_fx"),
    *("nested", "nested_parts", "nested_dimensions"),
)
"""The test files of `make test` that belong to the parts, without ``tests/test_`` and ``.py``."""
LEAST: Final = 95
"""The percentage of its lines of which tests must run at least so many in each part."""
CONFIGURATION: Final = f"""
[run]
data_file = {DATA}/lines
parallel = true
patch = subprocess
include =
    {ROOT}/pygrad/*
[report]
exclude_also =
    if TYPE_CHECKING:
"""
"""Absolute paths, because programs of tests run in folders of their own."""


def measure() -> int:
    """Runs the tests; returns the exit status of pytest."""
    DATA.mkdir(parents=True, exist_ok=True)
    for old in DATA.glob("lines*"):
        old.unlink()
    (DATA / "configuration").write_text(CONFIGURATION)
    command = [sys.executable, "-m", "coverage", "run", "-m", "pytest", "-n", "2"]
    return subprocess.run(
        [*command, *(f"tests/test_{name}.py" for name in TESTS)],
        cwd=ROOT,
        env={**os.environ, "COVERAGE_RCFILE": str(DATA / "configuration")},
    ).returncode


def files_of(part: str) -> list[Path]:
    """The sources of a part."""
    place = ROOT / "pygrad" / part
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


def main() -> int:
    """Prints the table; the exit status is 1 if a part is below the least."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--missing", action="store_true", help="print lines that no test runs")
    parser.add_argument("--again", action="store_true", help="print the table of the last run")
    options = parser.parse_args()
    if not options.again and (status := measure()):
        return status
    coverage = Coverage(config_file=str(DATA / "configuration"))
    coverage.combine(keep=True)
    low = []
    for part in PARTS:
        lines = missing = 0
        for file in files_of(part):
            _, found, _, absent, numbers = coverage.analysis2(str(file))
            lines, missing = lines + len(found), missing + len(absent)
            if options.missing and absent:
                print(f"{file.relative_to(ROOT)}: {numbers}")
        percent = 100 * (lines - missing) / lines
        print(f"{part:12}{percent:6.1f} % of {lines} lines")
        if percent < LEAST:
            low.append(part)
    if low:
        print(f"coverage: less than {LEAST} % of {', '.join(low)}")
    return bool(low)


if __name__ == "__main__":
    sys.exit(main())
