"""The page in Chromium: it trains to Python's hashes, classifies, mutates, and asks nobody else for
anything.
"""

from __future__ import annotations

import functools
import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "web" / "recorded.json").read_text(encoding="utf-8"))["hashes"]
playwright = pytest.importorskip(
    "playwright.sync_api", reason="playwright is not installed: make web-test installs it"
)
CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: make web-test")


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The repository, served to this machine alone."""
    handler = functools.partial(Quiet, directory=str(ROOT))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def page(origin: str) -> Iterator[Any]:
    """The page, ready; what it logs or asks of others fails the test."""
    complaints: list[str] = []
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page(viewport={"width": 1280, "height": 900})
        opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
        opened.on("pageerror", lambda error: complaints.append(str(error)))
        opened.on(
            "request",
            lambda r: None if r.url.startswith((origin, "data:")) else complaints.append(r.url),
        )
        opened.goto(f"{origin}/web/index.html")
        opened.wait_for_function("!document.getElementById('train').disabled", timeout=30_000)
        yield opened
        browser.close()
    assert not complaints


def test_trains_to_the_bits_that_python_recorded(page: Any) -> None:
    page.click("#train")
    page.wait_for_function("document.querySelectorAll('#hashes li').length >= 30", timeout=120_000)
    lines = page.locator("#hashes li").all_text_contents()
    assert [line.split(" ")[0] for line in lines] == RECORDED
    assert all(line.endswith("= Python") for line in lines)
    assert "98.03 %" in page.text_content("#accuracy")
    assert page.locator("#samples span.good").count() >= 22


def test_training_stops_when_told(page: Any) -> None:
    page.click("#train")
    page.wait_for_selector("#hashes li")
    page.click("#stop")
    page.wait_for_timeout(500)
    count = page.locator("#hashes li").count()
    page.wait_for_timeout(500)
    assert page.locator("#hashes li").count() == count < 30
    assert page.is_enabled("#train")


def test_a_drawn_digit_is_classified(page: Any) -> None:
    page.click("#train")
    page.wait_for_function("document.querySelectorAll('#hashes li').length >= 3")
    box = page.locator("#pad").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.1)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.9, steps=12)
    page.mouse.up()
    page.wait_for_function("document.getElementById('drawn').textContent.startsWith('Looks like')")
    page.click("#clear")
    assert page.text_content("#drawn") == ""


def test_a_write_to_a_saved_tensor_leaves_the_gradient(page: Any) -> None:
    page.wait_for_function("document.getElementById('mutated').textContent !== ''")
    for factor in ("-1.5", "0", "3"):
        page.locator("#factor").fill(factor)
        page.wait_for_function(
            f"document.querySelector('output[for=factor]').textContent === '{float(factor):.2f}'"
        )
        page.wait_for_timeout(100)
        assert page.text_content("#mutated") == page.text_content("#calm")
        assert page.text_content("#aliased") != page.text_content("#calm")
        assert "modified by an inplace operation" in page.text_content("#message")


@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_missing_engine_is_said(origin: str) -> None:
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_page()
        opened.route("**/core.wasm", lambda route: route.fulfill(status=404))
        opened.goto(f"{origin}/web/index.html")
        opened.wait_for_function("document.getElementById('status').className === 'bad'")
        assert "no engine" in opened.text_content("#status")
        browser.close()
