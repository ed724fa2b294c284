"""What `make web` serves: the page, and nothing else."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
SERVE = [sys.executable, str(ROOT / "web" / "serve.py")]


def heed_interrupts() -> None:
    """As a terminal's programs do; those that a shell runs in the background ignore them."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextlib.contextmanager
def serving(command: list[str], port: str = "") -> Iterator[tuple[str, int]]:
    """A server, by what it says and by its port; interrupted as by Ctrl-C, it says nothing more."""
    server = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PORT": port},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # whose processes all are interrupted
        preexec_fn=heed_interrupts,
    )
    assert server.stdout
    said = server.stdout.readline()
    found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/web/\n", said)
    try:
        assert found, (said, server.communicate(timeout=5)[1])
        yield said.strip(), int(found[1])
    finally:
        os.killpg(server.pid, signal.SIGINT)
        said, erred = server.communicate(timeout=10)
        assert not said
        assert re.fullmatch(r"(make.*\n)*", erred), erred


def answer(port: int, path: str) -> tuple[int, str, bytes]:
    """Status, type (or where to go instead) and body, of the path as it is written."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    headers = response.headers
    return response.status, headers["Location"] or headers["Content-Type"], response.read()


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    with serving(SERVE, "0") as (_, port):
        yield port


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("web/index.html", "text/html; charset=utf-8"),
        ("web/style.css", "text/css; charset=utf-8"),
        ("web/rooms/graph/draw.js", "text/javascript; charset=utf-8"),
        ("web/conformance.json", "application/json"),
        ("pygrad/core.wasm", "application/wasm"),
        ("pygrad/datasets/digits.npz", "application/octet-stream"),
    ],
)
def test_a_file_of_the_page_is_served_as_what_it_is(port: int, path: str, kind: str) -> None:
    assert answer(port, f"/{path}") == (200, kind, (ROOT / path).read_bytes())


def test_the_root_leads_to_the_page(port: int) -> None:
    index = (ROOT / "web" / "index.html").read_bytes()
    assert answer(port, "/") == (302, "/web/", b"")
    assert answer(port, "/web") == (302, "/web/", b"")
    assert answer(port, "/web/") == answer(port, "/web/?a#b") == answer(port, "/web/index.html")
    assert answer(port, "/web/")[2] == index


@pytest.mark.parametrize(
    "path",
    [
        "/.git/HEAD",
        "/.git/",
        "/README.md",
        "/Makefile",
        "/build/",
        "/pygrad/",
        "/pygrad/__init__.py",
        "/pygrad/datasets/",
        "/web/rooms",
        "/web/rooms/",
        "/web/serve.py",
        "/web/ops.d.ts",
        "/web/nothing.js",
        "/web/../.git/HEAD",
        "/web/%2e%2e/README.md",
        "/web/../tests/web/training.js",
        "/web//../../etc/passwd",
        "//etc/hosts.js",
        "/pygrad/core.wasm/",
        "/%00.js",
    ],
)
def test_nothing_else_is_served(port: int, path: str) -> None:
    status, _, body = answer(port, path)
    assert status == 404
    assert b"Directory listing" not in body


def test_make_says_one_address() -> None:
    with serving(["make", "web", f"PYTHON={sys.executable}"], "0") as (address, port):
        assert address == f"http://127.0.0.1:{port}/web/"
        assert answer(port, "/web/")[0] == 200


def test_a_port_that_is_named_is_that_or_one_line_of_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for wanted, why in [
            (str(port), f"port {port} cannot be had: Address already in use."),
            ("many", "PORT is a number"),
            ("70000", "PORT is a number"),
        ]:
            env = {**os.environ, "PORT": wanted}
            done = subprocess.run(SERVE, env=env, capture_output=True, text=True, timeout=30)
            assert done.returncode == 1
            assert done.stderr.startswith(why)
            assert done.stderr.count("\n") == 1
            assert done.stdout == ""
    with serving(SERVE, str(port)) as (_, found):
        assert found == port


def test_without_one_the_next_that_is_free_is_taken() -> None:
    with serving(SERVE) as (_, first), serving(SERVE) as (_, second):
        assert 8000 <= first < second


def test_the_page_needs_nothing_else(browser: Any, port: int) -> None:
    page = browser.new_page()
    missing: list[str] = []
    page.on("response", lambda r: missing.append(r.url) if r.status >= 400 else None)
    page.goto(f"http://127.0.0.1:{port}/")
    for name, ready in {
        "train": "#train-go:enabled",
        "mutate": "#mutate-plot circle",
        "graph": "#graph-view .node",
        "conformance": "#conformance-go:enabled",
    }.items():
        page.click(f"nav a[href='#{name}']")
        page.wait_for_selector(ready, timeout=60_000)
    page.close()
    assert not missing
