"""The page, in each browser: it trains to Python's hashes, classifies, mutates, and asks nobody
else for anything.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

RECORDED = json.loads(
    (Path(__file__).parents[2] / "web" / "recorded.json").read_text(encoding="utf-8")
)["hashes"]


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


def test_missing_engine_is_said(blank: Any, origin: str) -> None:
    blank.route("**/core.wasm", lambda route: route.fulfill(status=404))
    blank.goto(f"{origin}/web/index.html")
    blank.wait_for_function("document.getElementById('status').className === 'bad'")
    assert "no engine" in blank.text_content("#status")
    blank.complaints.clear()
