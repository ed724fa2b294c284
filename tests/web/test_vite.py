"""The npm package under Vite as it comes: server and build, without configuration."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ROOT / "build" / "node" / "node_modules"
PACKAGE = sorted((ROOT / "build").glob("pygrad-*.tgz"))
WITHOUT_A_NETWORK = ["--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]

GRADIENT = """
export async function gradient(load) {
  const torch = await load();
  const x = torch.tensor([1, 2, 3], { requires_grad: true });
  x.mul(x).sum().backward();
  return x.grad.tolist();
}
"""
MAIN = """
import { load } from 'pygrad';
import { library } from 'uses-pygrad';
import { gradient } from './gradient.js';

const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
const told = new Promise((resolve) => { worker.onmessage = ({ data }) => resolve(data); });
const found = await Promise.allSettled([gradient(load), library(gradient), told]);
document.title = JSON.stringify(found.map(({ value, reason }) => value ?? reason.message));
"""
WORKER = """
import { load } from 'pygrad';
import { gradient } from './gradient.js';
gradient(load).catch((error) => error.message).then(postMessage);
"""
LIBRARY = "import { load } from 'pygrad';\nexport const library = (gradient) => gradient(load);\n"


@pytest.fixture(params=["vite", "vite8"])
def vite(request: pytest.FixtureRequest) -> list[str]:
    """The command of the last Vite that bundles dependencies by esbuild, and of one by Rolldown."""
    program = TOOLS / request.param / "bin" / "vite.js"
    if not program.exists() or not PACKAGE:
        pytest.skip("there is no Vite, or no package: make npm")
    version = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True)
    if tuple(map(int, re.findall(r"\d+", version.stdout)[:2])) < (20, 19):
        pytest.skip(f"Vite needs Node 20.19, this is {version.stdout.strip()}")
    return ["node", str(program)]


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A page whose script, whose dependency and whose worker each take a gradient."""
    for name, text in {
        "package.json": json.dumps({"type": "module", "private": True}),
        "index.html": "<!doctype html><script type='module' src='main.js'></script>",
        "main.js": MAIN,
        "worker.js": WORKER,
        "gradient.js": GRADIENT,
        "node_modules/uses-pygrad/package.json": json.dumps(
            {"name": "uses-pygrad", "version": "1.0.0", "type": "module", "exports": "./index.js"}
        ),
        "node_modules/uses-pygrad/index.js": LIBRARY,
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    library = tmp_path / "node_modules" / "uses-pygrad"
    aside = shutil.move(library, tmp_path / "aside")  # npm removes what it did not install
    subprocess.run(
        ["npm", "install", *WITHOUT_A_NETWORK, str(PACKAGE[-1])], cwd=tmp_path, check=True
    )
    shutil.move(aside, library)
    return tmp_path


@contextlib.contextmanager
def running(command: list[str], app: Path) -> Iterator[str]:
    """A server of Vite's, by its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--strictPort"],
        cwd=app,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "NO_COLOR": "1"},
        text=True,
    )
    try:
        said = ""
        for line in server.stdout or ():
            said += line
            if address := re.search(r"http://127\.0\.0\.1:\d+/", line):
                yield address[0]
                break
        else:
            pytest.fail(f"Vite did not start: {said}")
    finally:
        server.terminate()
        server.communicate()


def gradients(browser: Any, address: str) -> Any:
    """What the page, its dependency and its worker found."""
    page = browser.new_page()
    page.goto(address)
    page.wait_for_function("document.title.startsWith('[')", timeout=60_000)
    found = json.loads(page.title())
    page.close()
    return found


EVERYWHERE = [[2, 4, 6]] * 3


def test_the_development_server_takes_it_as_it_is(browser: Any, vite: list[str], app: Path) -> None:
    with running(vite, app) as address:
        assert gradients(browser, address) == EVERYWHERE


def test_a_build_takes_it_as_it_is(browser: Any, vite: list[str], app: Path) -> None:
    built = subprocess.run([*vite, "build"], cwd=app, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    with running([*vite, "preview"], app) as address:
        assert gradients(browser, address) == EVERYWHERE
    binaries = list((app / "dist" / "assets").glob("core-*.wasm"))
    assert [each.read_bytes() for each in binaries] == [
        (ROOT / "pygrad" / "core.wasm").read_bytes()
    ]
