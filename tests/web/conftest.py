"""The page in each browser that this machine has: Debian's Chromium and Firefox."""

from __future__ import annotations

import contextlib
import functools
import http.server
import importlib.metadata
import io
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
LAUNCH: dict[str, dict[str, Any]] = {
    "chromium": {"args": ["--no-sandbox"]},
    # Not Playwright's own build of Firefox but the stock one, over WebDriver BiDi.
    "firefox-esr": {"channel": "moz-firefox"},
}
TOO_NEW = (1, 62)
"""The first Playwright that asks more of Firefox than version 153 answers."""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves before a file is whole is no error; all else is."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextlib.contextmanager
def serve(address: str = "http://127.0.0.1:0", **changed: bytes) -> Iterator[str]:
    """The repository, served to this machine alone, at an address that was served before; some
    files of web/ are others, by name.
    """

    class Handler(Quiet):
        def send_head(self) -> Any:
            body = changed.get(self.path.removeprefix("/web/"))
            if body is None:
                return super().send_head()
            self.send_response(200)
            self.send_header("Content-Type", self.guess_type(self.path))
            self.end_headers()
            return io.BytesIO(body)

    handler = functools.partial(Handler, directory=str(ROOT))
    with bind_server(int(address.rpartition(":")[2]), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()


def bind_server(port: int, handler: Any) -> Server:
    """A server at a port, also if somebody's connection has it for a moment."""
    for _ in range(100):
        with contextlib.suppress(OSError):
            return Server(("127.0.0.1", port), handler)
        time.sleep(0.1)
    return Server(("127.0.0.1", port), handler)


@pytest.fixture(scope="session")
def origin() -> Iterator[str]:
    """A server for all tests."""
    with serve() as address:
        yield address


@pytest.fixture
def passing() -> Callable[..., contextlib.AbstractContextManager[str]]:
    """A server of one's own, which ends with its `with`."""
    return serve


@pytest.fixture(scope="session")
def driver() -> Iterator[Any]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: make web-test installs it"
    )
    with playwright.sync_playwright() as running:
        yield running


@pytest.fixture(scope="session")
def launched_browsers(driver: Any) -> Iterator[dict[str, Any]]:
    """The browsers that run, by name."""
    running: dict[str, Any] = {}
    yield running
    for each in running.values():
        each.close()


@pytest.fixture(params=LAUNCH)
def browser(request: pytest.FixtureRequest, driver: Any, launched_browsers: dict[str, Any]) -> Any:
    """One browser for all tests; each test opens pages in a context of its own."""
    name = request.param
    path = shutil.which(name)
    if path is None:
        pytest.skip(f"there is no {name}: make web-test installs it")
    version = tuple(map(int, importlib.metadata.version("playwright").split(".")[:2]))
    if name == "firefox-esr" and version >= TOO_NEW:
        pytest.skip("this Playwright cannot drive Firefox: make web-test installs one that can")
    if name not in launched_browsers:
        kind = getattr(driver, name.removesuffix("-esr"))
        launched_browsers[name] = kind.launch(executable_path=path, **LAUNCH[name])
    return launched_browsers[name]


@pytest.fixture
def blank(browser: Any, origin: str) -> Iterator[Any]:
    """An empty tab; what it logs as an error or asks of other servers fails the test, unless the
    test clears `blank.complaints`.
    """
    complaints: list[str] = []
    own = (origin, f"blob:{origin}", "data:")
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.complaints = complaints
    opened.on("console", lambda m: complaints.append(m.text) if m.type == "error" else None)
    opened.on("pageerror", lambda error: complaints.append(str(error)))
    opened.on(
        "request",
        lambda r: None if r.url.startswith(own) else complaints.append(r.url),
    )
    yield opened
    opened.close()
    assert not complaints


@pytest.fixture
def room(blank: Any, origin: str) -> Callable[[str], Any]:
    """Opens a room and waits for its engine."""

    def open_room(name: str) -> Any:
        blank.goto(f"{origin}/web/index.html#{name}")
        blank.wait_for_function(
            "document.getElementById('status').textContent.startsWith('Engine ready')",
            timeout=60_000,
        )
        return blank

    return open_room
