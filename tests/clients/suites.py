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


SUITES: Final = {
    "backpack": Suite("backpack-for-pytorch==1.7.1", "test", every=20),
    "einops": Suite("einops==0.8.2", "einops/tests"),
    "gpytorch": Suite("gpytorch==1.15.2", "test", every=4),
    "linear_operator": Suite("linear_operator==0.6.1", "test", every=20),
    "nflows": Suite("nflows==0.14", "tests"),
    "opacus": Suite("opacus==1.6.0", "opacus/tests", every=4),
    "skorch": Suite("skorch==1.4.0", "skorch/tests", every=4),
    "torch_optimizer": Suite("torch-optimizer==0.3.0", "tests", every=2),
    "torchsde": Suite("torchsde==0.2.6", "tests"),
}


def unpacked(name: str, suite: Suite) -> Path:
    """The folder of a package's source archive, brought here if it is not."""
    place = PLACE / name
    if not place.is_dir():
        place.mkdir(parents=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        options = ["--no-binary", ":all:", "--no-build-isolation", "--dest", str(place)]
        subprocess.run([*pip, *options, suite.archive], check=True)
        with tarfile.open(next(place.glob("*.tar.gz"))) as archive:
            archive.extractall(place, filter="data")
    return next(each for each in place.iterdir() if each.is_dir())


def passed(name: str, suite: Suite, *, under_pygrad: bool, timeout: float) -> set[str]:
    """The names of the tests that pass."""
    root = unpacked(name, suite)
    report = PLACE / f"{name}-{'pygrad' if under_pygrad else 'torch'}.xml"
    report.unlink(missing_ok=True)
    way = ["-m", "pygrad", "-m", "pytest"] if under_pygrad else ["-m", "pytest", "-p", "control"]
    # Without the settings of whatever folder this is, and those of the package.
    alone = ["-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-p", "part"]
    options = ["-q", "-n", "2", "--timeout", str(timeout), "--every", str(suite.every)]
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
        return set()
    cases = ElementTree.parse(report).iter("testcase")
    return {f"{case.get('classname')}::{case.get('name')}" for case in cases if not len(case)}


def share(name: str, timeout: float) -> tuple[int, int]:
    """How many of the tests that pass under torch pass here, and how many they are."""
    suite = SUITES[name]
    wanted = passed(name, suite, under_pygrad=False, timeout=timeout)
    got = passed(name, suite, under_pygrad=True, timeout=timeout)
    return len(wanted & got), len(wanted)
