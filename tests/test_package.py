"""The packages for installers: what they hold, what they say, the same bytes at each build."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
import sbom

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def build(folder: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
        env={name: text for name, text in os.environ.items() if name != "SOURCE_DATE_EPOCH"},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("dist")
    build(made)
    return made


@pytest.fixture(scope="module")
def wheel(folder: Path) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(folder.glob("*.whl")))


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    text = wheel.read(f"pygrad_wasm-{PROJECT['version']}.dist-info/METADATA")
    return Parser().parsestr(text.decode())


def test_same_bytes_at_each_build(folder: Path, tmp_path: Path) -> None:
    build(tmp_path)
    made = sorted(each.name for each in folder.iterdir())
    assert made == sorted(each.name for each in tmp_path.iterdir())
    assert len(made) == 2
    for name in made:
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_name_is_ours_and_the_import_is_pygrad(metadata: Message, wheel: zipfile.ZipFile) -> None:
    assert metadata["Name"] == "pygrad-wasm"
    assert {name.split("/")[0] for name in wheel.namelist()} == {
        "pygrad",
        f"pygrad_wasm-{PROJECT['version']}.dist-info",
    }


def test_each_bundled_part_comes_with_its_licence(
    metadata: Message, wheel: zipfile.ZipFile
) -> None:
    assert metadata["License-Expression"] == "MIT AND BSD-3-Clause AND CC-BY-4.0"
    files = metadata.get_all("License-File") or []
    assert set(files) == {
        "LICENSE",
        "pygrad/datasets/digits.LICENSE.txt",
        "pygrad/quasirandom/sobol.LICENSE.txt",
        "wasm_core/licenses/core.txt",
        "wasm_core/licenses/pytorch.txt",
    }
    base = f"pygrad_wasm-{PROJECT['version']}.dist-info/licenses"
    for file in files:
        assert wheel.read(f"{base}/{file}") == (ROOT / file).read_bytes()


def test_bill_of_materials_names_the_parts_and_the_binary(wheel: zipfile.ZipFile) -> None:
    base = f"pygrad_wasm-{PROJECT['version']}.dist-info/sboms"
    text = wheel.read(f"{base}/sbom.cdx.json")
    bill = json.loads(text)
    assert bill == sbom.bill(), "run make wasm"
    (binary,) = [each for each in bill["components"] if each["name"] == "pygrad/core.wasm"]
    digest = hashlib.sha256(wheel.read("pygrad/core.wasm")).hexdigest()
    assert binary["hashes"] == [{"alg": "SHA-256", "content": digest}]
    for kind, _, _, _, where in sbom.PARTS:
        if kind == "data":
            assert wheel.getinfo(where.split(",")[0])


def test_wheel_has_the_package_alone(wheel: zipfile.ZipFile) -> None:
    """No tool, no test, no cache; the engine, its record, types and data."""
    names = {name for name in wheel.namelist() if name.startswith("pygrad/")}
    for wanted in ("core.wasm", "core.build.txt", "py.typed", "fft/__init__.pyi", "__main__.py"):
        assert f"pygrad/{wanted}" in names
    kinds = {Path(name).suffix for name in names}
    assert kinds <= {".py", ".pyi", ".typed", ".wasm", ".txt", ".bin", ".npz", ""}


def test_source_holds_what_builds_and_tests(folder: Path) -> None:
    with tarfile.open(next(folder.glob("*.tar.gz"))) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    for wanted in ("Makefile", "wasm_core/ops/ops.def", "tests/conftest.py", "web/index.js"):
        assert wanted in names


def test_versions_of_python_are_named(metadata: Message) -> None:
    found = metadata.get_all("Classifier") or []
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(found)
    assert metadata["Requires-Python"] == ">=3.11"


def test_commands_in_messages_and_documents_install_this_package() -> None:
    """The name `pygrad` is another project's on PyPI."""
    documents = [*ROOT.glob("*.md"), *(ROOT / "web" / "docs").glob("*.md")]
    for file in [*documents, *(ROOT / "pygrad").rglob("*.py")]:
        for line in file.read_text().splitlines():
            if "pip install" in line:
                rest = line.partition("pip install")[2].partition("&&")[0]
                words = rest.replace("'", " ").replace("`", " ").split()
                assert not any(word == "pygrad" or word.startswith("pygrad[") for word in words), (
                    f"{file}: {line}"
                )
