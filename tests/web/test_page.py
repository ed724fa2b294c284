"""The page as a reader uses it, in each browser: it trains to Python's hashes, reads a drawn digit,
and mutates what was saved, without asking anybody else for anything.
"""

from __future__ import annotations

import gzip
import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pygrad._boundary import layout

ROOT = Path(__file__).parents[2]
RECORDED = json.loads((ROOT / "web" / "recorded.json").read_text(encoding="utf-8"))["hashes"]
ROOMS = ["train", "mutate", "graph", "conformance"]
ABI = layout["abi"]
Room = Callable[[str], Any]


def wait_for_epochs(page: Any, count: int) -> None:
    page.wait_for_function(
        f"parseInt(document.getElementById('train-epoch').textContent) >= {count}", timeout=120_000
    )


# ---------------------------------------------------------------- the shell


def test_paints_before_the_engine_is_there(blank: Any, origin: str) -> None:
    held: list[Any] = []
    blank.route("**/core.wasm", lambda route: held.append(route))
    blank.goto(f"{origin}/web/index.html")
    blank.wait_for_function("performance.getEntriesByName('first-contentful-paint').length > 0")
    assert blank.is_visible("#train-title")
    assert "Loading" in blank.text_content("#status")


@pytest.mark.parametrize("width", [360, 1280, 2560])
@pytest.mark.parametrize("name", ROOMS)
def test_nothing_is_wider_than_the_screen(blank: Any, origin: str, name: str, width: int) -> None:
    blank.set_viewport_size({"width": width, "height": 800})
    blank.goto(f"{origin}/web/index.html#{name}")
    blank.wait_for_timeout(600)
    assert blank.evaluate("document.documentElement.scrollWidth") <= width


def test_rooms_are_reached_by_keyboard(room: Room) -> None:
    page = room("train")
    for name in ROOMS[1:]:
        page.focus(f"nav a[href='#{name}']")
        page.keyboard.press("Enter")
        page.wait_for_selector(f"#{name}-title", state="visible")
        assert not page.is_visible("#train-title")
        page.wait_for_selector(f"nav a[href='#{name}'][aria-current='page']")
    page.go_back()
    page.wait_for_selector("#graph-title", state="visible")


def test_the_skip_link_leads_into_the_open_room(blank: Any, origin: str) -> None:
    for name in ROOMS:
        blank.goto("about:blank")
        blank.goto(f"{origin}/web/index.html#{name}")
        blank.wait_for_selector(f"nav a[href='#{name}'][aria-current='page']")
        blank.evaluate("document.querySelector('.skip').focus()")
        blank.keyboard.press("Enter")
        blank.wait_for_function(f"document.activeElement.id === '{name}'")
        assert blank.is_visible(f"#{name}-title")
        blank.keyboard.press("Tab")
        inside = f"document.activeElement.closest('#{name}') !== null"
        assert blank.evaluate(f"{inside} && document.activeElement.id !== '{name}'")


# ---------------------------------------------------------------- without a network

KEPT = """async () => {
    const names = await caches.keys();
    if (names.length !== 1) return [[], []];
    const cache = await caches.open(names[0]);
    const kept = (await cache.keys()).map(({ url }) => url);
    if (!kept.some((url) => url.endsWith('/web/'))) return [[], []];
    return [kept, await Promise.all(kept.map(async (url) => (await cache.match(url)).text()))];
}"""


def kept_files(page: Any, until: Callable[[dict[str, str]], bool] = bool) -> dict[str, str]:
    """What the page keeps, by address, once all of it is there."""
    end = time.monotonic() + 60
    while True:
        found = dict(zip(*page.evaluate(KEPT), strict=True))
        if found and until(found):
            return found
        assert time.monotonic() < end, list(found)
        page.wait_for_timeout(100)


def visit_all(page: Any) -> None:
    """Each room opens, and works."""
    page.click("nav a[href='#train']")
    page.wait_for_selector("#train-go:enabled", timeout=60_000)
    page.click("#train-go")
    wait_for_epochs(page, 1)
    page.click("nav a[href='#mutate']")
    page.wait_for_function("document.querySelector('#mutate-calm td').textContent !== ''")
    page.click("nav a[href='#graph']")
    page.wait_for_selector("#graph-view .node", timeout=60_000)
    page.click("nav a[href='#conformance']")
    page.wait_for_selector("#conformance-go:enabled", timeout=60_000)
    assert not page.text_content("#problem")


def test_all_of_it_is_light(blank: Any, origin: str) -> None:
    blank.goto(f"{origin}/web/index.html")
    files = [
        url.removeprefix(f"{origin}/").replace("web/", "web/index.html", url.endswith("/"))
        for url in kept_files(blank)
    ]
    assert {"pygrad/core.wasm", "web/index.html", "web/rooms/graph/record.js"} <= set(files)
    assert sum(len(gzip.compress((ROOT / file).read_bytes())) for file in files) < 1_000_000


def test_rooms_that_were_never_opened_work_without_a_network(browser: Any, passing: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    with passing() as origin:
        page.goto(f"{origin}/web/#train")
        kept_files(page)
    visit_all(page)
    page.goto(f"{origin}/web/index.html#mutate")
    visit_all(page)
    context.close()


def test_what_is_kept_is_of_one_time(browser: Any, passing: Any) -> None:
    context = browser.new_context()
    page = context.new_page()
    with passing() as origin:
        page.goto(f"{origin}/web/")
        old = kept_files(page)
    newer = {
        name: (ROOT / "web" / name).read_bytes() + b"// newer"
        for name in ("index.js", "rooms/sweep.js")
    }
    missing = {
        "rooms/sweep.js": newer["rooms/sweep.js"],
        "rooms/chart.js": b"import './missing.js';\n",
    }
    with passing(origin, **missing):
        page.reload()
        page.wait_for_timeout(3000)
        assert kept_files(page) == old
    with passing(origin, **newer):
        page.reload()
        found = kept_files(page, lambda now: now != old)
    changed = {url for url, text in found.items() if text != old[url]}
    assert changed == {f"{origin}/web/{name}" for name in newer}
    assert found.keys() == old.keys()
    context.close()


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_that_could_not_be_opened_opens_once_there_is_a_network(
    browser: Any, passing: Any, name: str
) -> None:
    context = browser.new_context()
    context.add_init_script("delete Navigator.prototype.serviceWorker")  # which keeps nothing, then
    page = context.new_page()
    with passing() as origin:
        page.goto(f"{origin}/web/index.html#" + ("mutate" if name == "train" else "train"))
        page.wait_for_function("document.getElementById('status').textContent === 'Engine ready.'")
    page.click(f"nav a[href='#{name}']")
    page.wait_for_selector("#problem:not(:empty)")
    with passing(origin):
        page.evaluate("dispatchEvent(new Event('online'))")
        page.wait_for_function("document.getElementById('status').textContent === 'Engine ready.'")
        visit_all(page)
    context.close()


def test_a_page_that_could_not_be_loaded_whole_says_so_until_it_is(
    browser: Any, passing: Any
) -> None:
    context = browser.new_context()
    page = context.new_page()
    with passing(**{"rooms/chart.js": b"import './missing.js';\n"}) as origin:
        page.goto(f"{origin}/web/index.html#graph")
        page.wait_for_selector("#problem:not(:empty)")
        assert not page.text_content("#status")
    with passing(origin):
        page.evaluate("dispatchEvent(new Event('online'))")
        page.wait_for_selector("#graph-view .node", timeout=60_000)
    context.close()


# ---------------------------------------------------------------- errors


def test_an_error_looks_like_one_and_goes_when_something_succeeds(room: Room) -> None:
    page = room("mutate")
    assert page.get_attribute("#problem", "role") == "alert"
    assert not page.is_visible("#problem")
    page.evaluate(
        "() => { const post = Worker.prototype.postMessage;"
        "Worker.prototype.postMessage = function (message) {"
        "  Worker.prototype.postMessage = post;"
        "  post.call(this, { ...message, name: 'nothing' });"
        "}; }"
    )
    page.fill("#mutate-w", "0.25")
    page.wait_for_selector("#problem:not(:empty)")
    colours = "(id) => getComputedStyle(document.getElementById(id)).color"
    assert page.evaluate(colours, "problem") != page.evaluate(colours, "status")
    red, green, blue = map(int, re.findall(r"\d+", page.evaluate(colours, "problem"))[:3])
    assert red > 2 * max(green, blue)
    page.fill("#mutate-w", "0.5")
    page.wait_for_selector("#problem", state="hidden")
    assert not page.text_content("#problem")


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("name", ROOMS)
def test_nothing_jumps_while_it_loads(blank: Any, origin: str, name: str, width: int) -> None:
    blank.set_viewport_size({"width": width, "height": 800})
    blank.goto(f"{origin}/web/index.html#{name}")
    if not blank.evaluate("PerformanceObserver.supportedEntryTypes.includes('layout-shift')"):
        pytest.skip("this browser does not tell of jumps")
    blank.wait_for_timeout(2500)
    shifts = blank.evaluate(
        "new Promise((told) => new PerformanceObserver((list) => "
        "told(list.getEntries().map((e) => e.value)))"
        ".observe({ type: 'layout-shift', buffered: true }) ?? setTimeout(told, 300, []))"
    )
    assert sum(shifts) < 0.02


@pytest.mark.parametrize("name", ["train", "mutate", "graph"])
def test_missing_engine_is_said(blank: Any, origin: str, name: str) -> None:
    blank.route("**/core.wasm", lambda route: route.fulfill(status=404))
    blank.goto(f"{origin}/web/index.html#{name}")
    blank.wait_for_selector("#problem:not(:empty)")
    assert "no engine" in blank.text_content("#problem")
    blank.complaints.clear()


def test_old_engine_is_said(blank: Any, origin: str) -> None:
    source = (ROOT / "web" / "enumerations.js").read_text(encoding="utf-8")
    newer = source.replace(f"const ABI = {ABI};", f"const ABI = {ABI + 1};")
    assert newer != source
    blank.route(
        "**/enumerations.js",
        lambda route: route.fulfill(body=newer, content_type="text/javascript"),
    )
    blank.goto(f"{origin}/web/index.html")
    blank.wait_for_selector("#problem:not(:empty)")
    assert f"speaks version {ABI}, this front {ABI + 1}" in blank.text_content("#problem")


def test_browser_without_simd_is_said(blank: Any, origin: str) -> None:
    blank.add_init_script("WebAssembly.validate = () => false")
    blank.goto(f"{origin}/web/index.html")
    blank.wait_for_selector("#problem:not(:empty)")
    assert "no WebAssembly SIMD" in blank.text_content("#problem")


# ---------------------------------------------------------------- Train


def test_trains_to_the_bits_that_python_recorded(room: Room) -> None:
    page = room("train")
    page.click("#train-go")
    wait_for_epochs(page, 30)
    rows = page.locator("#train-hashes tbody tr")
    assert [row.split("\t")[1] for row in rows.all_inner_texts()] == RECORDED
    assert page.locator("#train-hashes tr.equal").count() == 30
    assert page.text_content("#train-same") == "30 of 30"
    assert page.text_content("#train-accuracy") == "98.03 %"
    assert page.locator("#train-samples span.good").count() >= 57


def test_training_stops_when_told(room: Room) -> None:
    page = room("train")
    page.click("#train-go")
    wait_for_epochs(page, 1)
    page.click("#train-go")
    page.wait_for_function("document.getElementById('train-go').textContent === 'Train again'")
    count = page.text_content("#train-epoch")
    page.wait_for_timeout(500)
    assert page.text_content("#train-epoch") == count != "30 / 30"


def test_another_seed_has_no_record(room: Room) -> None:
    page = room("train")
    page.fill("#train-seed", "7")
    page.click("#train-go")
    wait_for_epochs(page, 1)
    assert page.text_content("#train-same") == "not recorded"
    assert RECORDED[0] not in page.text_content("#train-hashes")


def test_a_drawn_digit_is_read_after_every_epoch(room: Room) -> None:
    page = room("train")
    box = page.locator("#pad").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.1)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.9, steps=12)
    page.mouse.up()
    page.click("#train-go")
    page.wait_for_function("/Looks like/.test(document.getElementById('pad-verdict').textContent)")
    wait_for_epochs(page, 12)
    assert page.text_content("#pad-verdict").startswith("Looks like 1 ")
    page.click("#pad-clear")
    assert page.text_content("#pad-verdict") == "Nothing is drawn."


def test_the_pad_works_by_keyboard(room: Room) -> None:
    page = room("train")
    page.click("#train-go")
    wait_for_epochs(page, 12)
    page.focus("#pad")
    for key in [*["ArrowUp"] * 9, " ", *["ArrowDown"] * 18, " "]:
        page.keyboard.press(key)
    page.wait_for_function(
        "/Looks like 1/.test(document.getElementById('pad-verdict').textContent)"
    )


def test_a_test_image_goes_on_the_pad(room: Room) -> None:
    page = room("train")
    page.click("#train-go")
    wait_for_epochs(page, 12)
    page.locator("#train-samples button").nth(5).click()
    page.wait_for_function(
        "/Looks like 1/.test(document.getElementById('pad-verdict').textContent)"
    )


# ---------------------------------------------------------------- Mutate


def gradients(page: Any, row: str) -> list[str]:
    return page.locator(f"#mutate-{row} td").all_text_contents()


@pytest.mark.parametrize("tensor", ["w", "x", "h"])
def test_a_write_to_a_saved_tensor_leaves_the_gradient(room: Room, tensor: str) -> None:
    page = room("mutate")
    page.wait_for_function("document.querySelector('#mutate-calm td').textContent !== ''")
    page.uncheck("#mutate-on-h")
    page.wait_for_function(
        "/^No error/.test(document.getElementById('mutate-message').textContent)"
    )
    assert gradients(page, "aliased") == gradients(page, "calm")
    for value in ("-1.5", "0.5", "1.9"):
        page.fill(f"#mutate-to-{tensor}", value)
        page.wait_for_function(
            "(number) => [...document.querySelectorAll('#mutate-saved td')]"
            ".some((cell) => cell.textContent === number)",
            arg=f"{float(value):.6f}",
        )
        assert gradients(page, "pygrad") == gradients(page, "calm")
        assert gradients(page, "aliased") != gradients(page, "calm")
        assert page.text_content("#mutate-verdict") == "the same bits"
        assert "modified by an inplace operation" in page.text_content("#mutate-message")
