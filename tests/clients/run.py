"""Programs that use packages written for torch, under torch and under pygrad: what each prints.

    make clients                                                    # the programs
    make clients CLIENTS_ARGS='--only gpt2 --show'
    make clients CLIENTS_ARGS='--suites --table web/docs/clients.md'  # packages' own tests too

A program of `programs/` is as a user of the package would write it; it imports torch. It is run
twice by the same interpreter, the second time with `pygrad` installed as torch, and what it prints
is compared: words exactly, numbers to a tolerance. `suites.py` runs the packages' own tests so.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from suites import Share

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PROGRAMS: Final = HERE / "programs"
RELATIVE, ABSOLUTE = 2e-3, 2e-4
"""What printed numbers may differ by: PyTorch prints tensors with four digits."""
_NUMBER: Final = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\binf\b|\bnan\b", re.I)


ENVIRONMENT: Final = {
    "PYTHONHASHSEED": "0",
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TQDM_DISABLE": "1",
}


@dataclass
class Run:
    """How a program ended."""

    printed: str
    error: str
    """The last line of its traceback; empty if it went well."""
    seconds: float


def run(program: Path, *, under_pygrad: bool, timeout: float) -> Run:
    """Runs a program in a process of its own."""
    way = ["-m", "pygrad"] if under_pygrad else [str(HERE / "control.py")]
    environment = {
        **{k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        **ENVIRONMENT,
    }
    if under_pygrad:
        environment["PYTHONPATH"] = str(ROOT)
    begun = time.monotonic()
    try:
        done = subprocess.run(
            [sys.executable, *way, str(program)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Run("", f"not done after {timeout:.0f} s", timeout)
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    error = "" if done.returncode == 0 else lines[-1]
    return Run(done.stdout, error, time.monotonic() - begun)


def difference(wanted: str, got: str) -> str:
    """The first line in which two outputs differ; empty if none does."""
    left, right = wanted.strip().splitlines(), got.strip().splitlines()
    for a, b in zip(left, right, strict=False):
        if not _same_output(a, b):
            return f"{a.strip()} | {b.strip()}"
    if len(left) != len(right):
        return f"{len(left)} lines | {len(right)} lines"
    return ""


def _same_output(a: str, b: str) -> bool:
    words = [_NUMBER.sub("#", each).split() for each in (a, b)]
    if words[0] != words[1]:
        return False
    pairs = zip(_NUMBER.findall(a), _NUMBER.findall(b), strict=True)
    return all(_close(float(x), float(y)) for x, y in pairs)


def _close(x: float, y: float) -> bool:
    if x == y or (x != x and y != y):
        return True
    return abs(x - y) <= ABSOLUTE + RELATIVE * abs(x)


BEGIN, END = "<!-- make clients -->\n", "<!-- end of make clients -->\n"


@dataclass
class Verdict:
    """A row of the table."""

    program: str
    what: str
    outcome: str
    """"same", or how it went otherwise."""
    torch_seconds: float
    pygrad_seconds: float


def judge(program: Path, timeout: float, show: bool) -> Verdict:
    """Runs a program both ways."""
    what = program.read_text().split('"""')[1].split("\n")[0]
    wanted = run(program, under_pygrad=False, timeout=timeout)
    if wanted.error:
        outcome = f"torch: {wanted.error}"
        got = Run("", "", 0.0)
    else:
        got = run(program, under_pygrad=True, timeout=timeout)
        found = "" if got.error else difference(wanted.printed, got.printed)
        outcome = got.error or (f"differs: {found}" if found else "same")
    if show:
        print(wanted.printed, "-" * 40, got.printed, got.error, sep="\n")
    return Verdict(program.stem, what, outcome, wanted.seconds, got.seconds)


def missing() -> list[str]:
    """The packages of `packages.txt` that are not here."""
    here = {(each.name, each.version) for each in metadata.distributions()}
    wanted = (HERE / "packages.txt").read_text().split()
    return [each for each in wanted if tuple(each.split("==")) not in here]


def circumstances() -> str:
    """Where and when the table was made."""
    versions = [f"{name} {metadata.version(name)}" for name in ("pygrad-wasm", "torch", "numpy")]
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    day = datetime.now(UTC).date()
    return f"Python {platform.python_version()}, {', '.join(versions)}; {machine}; {day}."


def table(verdicts: list[Verdict], shares: list[Share]) -> str:
    """The verdicts as Markdown."""
    same = sum(row.outcome == "same" for row in verdicts)
    lines = [circumstances(), "", f"Programs that print the same: {same} of {len(verdicts)}.", ""]
    lines += ["| program | what it does | outcome |", "|---|---|---|"]
    lines += [f"| {row.program} | {row.what} | {row.outcome[:120]} |" for row in verdicts]
    if shares:
        wanted, got = sum(each.torch for each in shares), sum(each.pygrad for each in shares)
        lines += ["", f"Packages' own tests that pass under torch: {wanted}; of these, under"]
        lines += [f"pygrad: {got}, {percentage(got, wanted)}.", ""]
        lines += ["| package | run, every | pass under torch | of these, under pygrad | share |"]
        lines += ["|---|---:|---:|---:|---:|"]
        for each in shares:
            part = percentage(each.pygrad, each.torch)
            counts = f"{each.every} | {each.torch} | {each.pygrad} | {part}"
            lines += [f"| {each.package} | {counts} |"]
    return "\n".join(lines) + "\n"


def percentage(part: int, whole: int) -> str:
    """Rounded down, so that only all is 100 %."""
    return f"{1000 * part // whole / 10:.1f} %" if whole else "none"


def write_table(path: Path, text: str) -> None:
    """Puts a table in its place in a document."""
    before, _, rest = path.read_text().partition(BEGIN)
    path.write_text(before + BEGIN + text + END + rest.partition(END)[2])


def note(chosen: argparse.Namespace, verdicts: list[Verdict], shares: list[Share]) -> None:
    """Writes what is known by now where it is wanted."""
    if chosen.json:
        found = {"programs": verdicts, "suites": shares}
        rows = {key: [asdict(row) for row in value] for key, value in found.items()}
        chosen.json.write_text(json.dumps(rows, indent=1))
    if chosen.table:
        write_table(chosen.table, table(verdicts, shares))


def main() -> int:
    """Runs the programs, and the packages' tests if asked to, and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", default="", help="a pattern of the names of programs, or suites")
    parser.add_argument("--show", action="store_true", help="what the programs print")
    parser.add_argument("--suites", action="store_true", help="the packages' own tests, too")
    parser.add_argument("--timeout", type=float, default=300.0, help="of a program, in seconds")
    parser.add_argument("--json", type=Path, help="where to write the verdicts")
    parser.add_argument("--table", type=Path, help="a document whose table to write")
    chosen = parser.parse_args()
    if absent := missing():
        print(f"missing: {' '.join(absent)} (make clients installs them)")
    verdicts = []
    for program in sorted(PROGRAMS.glob("*.py")):
        if re.search(chosen.only, program.stem):
            verdicts.append(judge(program, chosen.timeout, chosen.show))
            row = verdicts[-1]
            times = f"{row.torch_seconds:5.1f} s {row.pygrad_seconds:5.1f} s"
            print(f"{row.program:26} {times}  {row.outcome[:150]}", flush=True)
    same = sum(row.outcome == "same" for row in verdicts)
    print(f"{same} of {len(verdicts)} programs print the same under pygrad as under torch")
    shares: list[Share] = []
    note(chosen, verdicts, shares)
    if chosen.suites:
        import suites as packages  # which needs this module

        for name in packages.SUITES:
            if re.search(chosen.only, name):
                shares.append(packages.share(name, 60.0))
                found = shares[-1]
                print(f"{name:26} {found.pygrad} of {found.torch} tests", flush=True)
                note(chosen, verdicts, shares)
    return 0 if same == len(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
