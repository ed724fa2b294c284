"""Packages' own tests, under torch and under pygrad: which pass under both.

    make clients CLIENTS_ARGS='--suites --only einops'

The tests come with a package's source archive. They are run twice, the second time with `pygrad`
installed as torch; what counts is the share of those that pass under torch.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from run import ENVIRONMENT, HERE, ROOT

PLACE: Final = ROOT / "build" / "clients"


@dataclass(frozen=True)
class Suite:
    """Where a package has its tests, below the root of its source archive."""

    archive: str
    tests: str
    every: int = 1
    """Of many tests, each so manieth is run."""


@dataclass(frozen=True)
class Share:
    """A row of the table."""

    package: str
    every: int
    torch: int
    """How many tests pass under torch."""
    pygrad: int
    """How many of these pass under pygrad."""
    lost: dict[str, str]
    """The others, and why."""


SUITES: Final = {
    "backpack": Suite("backpack-for-pytorch==1.7.1", "test", every=80),
    "einops": Suite("einops==0.8.2", "einops/tests"),
    "gpytorch": Suite("gpytorch==1.15.2", "test", every=8),
    "linear_operator": Suite("linear_operator==0.6.1", "test", every=20),
    "nflows": Suite("nflows==0.14", "tests"),
    "opacus": Suite("opacus==1.6.0", "opacus/tests", every=16),
    "skorch": Suite("skorch==1.4.0", "skorch/tests", every=16),
    "torch_optimizer": Suite("torch-optimizer==0.3.0", "tests", every=4),
    "torchsde": Suite("torchsde==0.2.6", "tests", every=4),
}


def fetch_sources(name: str, suite: Suite) -> Path:
    """The folder of a package's source archive, brought here if it is not."""
    place = PLACE / name
    place.mkdir(parents=True, exist_ok=True)
    if not (found := [each for each in place.iterdir() if each.is_dir()]):
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
        package = suite.archive.partition("==")[0]
        options = ["--no-deps", "--no-binary", package, "--dest", str(place)]
        subprocess.run([*pip, *options, suite.archive], check=True)
        with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
            archive.extractall(place, filter="data")
        found = [each for each in place.iterdir() if each.is_dir()]
    return found[0]


def outcomes(name: str, suite: Suite, *, under_pygrad: bool, timeout: float) -> dict[str, str]:
    """Of each test why it did not pass; nothing if it did."""
    root = fetch_sources(name, suite)
    report = PLACE / f"{name}-{'pygrad' if under_pygrad else 'torch'}.xml"
    report.unlink(missing_ok=True)
    way = ["-m", "pygrad", "-m", "pytest"] if under_pygrad else ["-m", "pytest", "-p", "control"]
    # Without the settings of whatever folder this is, and those of the package.
    alone = ["-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-p", "part"]
    options = ["-q", "-n", "2", "--timeout", str(timeout), "--every", str(suite.every)]
    options += ["--hypothesis-seed", "0"]
    places = [str(ROOT), str(HERE)] if under_pygrad else [str(HERE)]
    environment = {
        **os.environ,
        **ENVIRONMENT,
        "EINOPS_TEST_BACKENDS": "numpy,torch",
        "PYTHONPATH": os.pathsep.join(places),
    }
    subprocess.run(
        [
            *[sys.executable, *way, *alone, *options],
            *["--continue-on-collection-errors", f"--junitxml={report}", suite.tests],
        ],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    if not report.exists():
        return {}
    return {
        f"{case.get('classname')}::{case.get('name')}": _reason(case)
        for case in ElementTree.parse(report).iter("testcase")
    }


def _reason(case: ElementTree.Element) -> str:
    """The first line of what a test failed with, or was left out for."""
    said = [each for each in case if each.tag in ("failure", "error", "skipped")]
    return (said[0].get("message") or said[0].tag).split("\n")[0] if said else ""


def share(name: str, timeout: float) -> Share:
    """How many of the tests that pass under torch pass here."""
    suite = SUITES[name]
    wanted = outcomes(name, suite, under_pygrad=False, timeout=timeout)
    got = outcomes(name, suite, under_pygrad=True, timeout=timeout)
    usable = [test for test, reason in wanted.items() if not reason]
    reasons = {test: got.get(test, "not run") for test in usable}
    lost = {test: reason for test, reason in reasons.items() if reason}
    return Share(name, suite.every, len(usable), len(usable) - len(lost), lost)
