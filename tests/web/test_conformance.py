"""The Conformance room, in each browser: all is green, and what differs from PyTorch shows."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "web" / "conformance.json"
Room = Callable[[str], Any]


CANCEL_SOON = """() => {
    const go = document.getElementById('conformance-go');
    go.click();
    const watch = setInterval(() => {
        if (!document.querySelector('#conformance-rows td[data-kind=same]')) return;
        clearInterval(watch);
        go.click();
    }, 1);
}"""


def finish(page: Any) -> str:
    """Runs the sweep to its end; the verdict."""
    page.click("#conformance-go")
    page.wait_for_function(
        "document.getElementById('conformance-go').textContent === 'Run again'", timeout=120_000
    )
    return str(page.text_content("#conformance-verdict"))


def shorten(page: Any, change: Callable[[Any], None]) -> None:
    """Serves the calls of the first ops alone, and what `change` makes of them."""
    file = json.loads(FILE.read_text(encoding="utf-8"))
    file["ops"] = file["ops"][:12]
    change(file)
    page.route("**/conformance.json", lambda route: route.fulfill(json=file))


def test_file_is_short() -> None:
    assert len(gzip.compress(FILE.read_bytes(), 9)) <= 110_000


def test_every_case_is_as_pytorch_has_it(room: Room) -> None:
    page = room("conformance")
    verdict = finish(page)
    assert "All" in verdict
    assert "as PyTorch 2.13" in verdict
    assert page.text_content("#conformance-differ") == "0"
    done, cases = page.text_content("#conformance-done").split(" / ")
    assert done == cases
    assert int(cases.replace(",", "")) > 25_000
    assert page.locator("#conformance-rows td[data-kind=same]").count() > 7_000
    assert page.locator("#conformance-rows td[data-kind=differs]").count() == 0
    assert page.locator("#conformance-rows td:not([data-kind])").count() == 0
    assert page.text_content("#conformance-time").endswith(" s")


def test_what_differs_is_red_and_opens(blank: Any, room: Room) -> None:
    def spoil(file: Any) -> None:
        abs_ = next(i for i, op in enumerate(file["ops"]) if op["id"] == "abs")
        row = file["rows"][sum(len(op["calls"]) for op in file["ops"][:abs_])]
        file["values"][row][0] = [[2, 3], [1, 2, 3, 4, 5, 6.5]]

    shorten(blank, spoil)
    page = room("conformance")
    assert "differ from PyTorch" in finish(page)
    assert page.get_attribute("#conformance-verdict", "class") == "bad"
    page.wait_for_selector(".case .bad")
    assert page.text_content("#conformance-what").startswith("abs: forward, float64")
    shown = page.text_content("#conformance-cases")
    for part in ("torch.abs(x)", "x = [[1.479492", "[[1.479492, 0.6162109, 1.395508]", "6.5]]"):
        assert part in shown
    page.check("#conformance-wrong")
    assert page.locator("#conformance-rows tr:visible").count() == 1
    assert page.get_attribute("#conformance-rows tr.differs button", "aria-label").endswith(
        "differ"
    )


def test_cancelled_halfway_and_run_again(room: Room) -> None:
    page = room("conformance")
    page.evaluate(CANCEL_SOON)
    page.wait_for_function(
        "document.getElementById('conformance-verdict').textContent.startsWith('Cancelled')"
    )
    assert 0 < page.evaluate("document.getElementById('conformance-progress').value") < 1
    assert page.locator("#conformance-rows td:not([data-kind])").count() > 0


def test_ops_are_found_and_opened_by_keyboard(blank: Any, room: Room) -> None:
    shorten(blank, lambda file: None)
    page = room("conformance")
    page.fill("#conformance-find", "floo")
    assert page.locator("#conformance-rows tr:visible").count() == 1
    page.focus("#conformance-rows tr:visible button")
    page.keyboard.press("Enter")
    page.wait_for_selector(".case")
    page.select_option("#conformance-mode", label="in-place, int16")
    page.wait_for_function("document.querySelector('.case code').textContent.includes('floor_')")
    assert "int16" in page.text_content("#conformance-cases")
    assert page.locator(".case .good").count() == 1


@pytest.mark.parametrize("body", ["[]", "nonsense"])
def test_damaged_results_are_said(blank: Any, origin: str, body: str) -> None:
    blank.route("**/conformance.json", lambda route: route.fulfill(body=body))
    blank.goto(f"{origin}/web/index.html#conformance")
    blank.wait_for_selector("#problem:not(:empty)")
    assert blank.is_disabled("#conformance-go")
