"""Serves the page to this machine alone: `make web`, or `make web PORT=9000`.

Nothing but the page's own files is there to be had, and no folder is listed.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import sys
import urllib.parse
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "web"
DATA = {"/pygrad/core.wasm", "/pygrad/datasets/digits.npz"}
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".json": "application/json",
    ".wasm": "application/wasm",
    ".npz": "application/octet-stream",
}
FIRST, TRIED = 8000, 100
"""The port, and how many from there on are tried when nobody named one."""


def is_served(path: str) -> bool:
    """Whether the page has a file of this address."""
    if path in DATA:
        return True
    try:
        file = (ROOT / path.lstrip("/")).resolve()
    except (OSError, ValueError):
        return False  # no name that a file can have
    return PAGE in file.parents and file.suffix in TYPES


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = TYPES

    def send_head(self) -> Any:
        path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
        if path in ("/", "/web"):
            self.send_response(302)
            self.send_header("Location", "/web/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return None
        if path != "/web/" and not is_served(path):
            self.send_error(404)
            return None
        return super().send_head()

    def list_directory(self, path: Any) -> None:
        self.send_error(404)

    def end_headers(self) -> None:
        self.send_header("Cache-Control", "no-cache")  # what was edited is seen
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = os.name != "nt"  # where it would share a port with others

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that leaves before a file is whole is no error; all else is."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def bound(wanted: str) -> Server:
    """A server at the port that is wanted, or without one at the first that is free."""
    if wanted and not (wanted.isdecimal() and int(wanted) < 65536):
        sys.exit(f"PORT is a number below 65536, not {wanted!r}")
    ports = [int(wanted)] if wanted else range(FIRST, FIRST + TRIED)
    handler = functools.partial(Handler, directory=str(ROOT))
    why = ""
    for port in ports:
        try:
            return Server(("127.0.0.1", port), handler)
        except OSError as error:
            why = f"port {port} cannot be had: {error.strerror}. Name another: make web PORT=9000"
    sys.exit(why)


def main() -> None:
    with contextlib.suppress(KeyboardInterrupt), bound(os.environ.get("PORT", "")) as server:
        print(f"http://127.0.0.1:{server.server_port}/web/", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
