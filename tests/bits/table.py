"""One table: run x host, what each host computes, and whether all agree, also with the record. The
exit code says so too.

python tests/bits/table.py             compare
python tests/bits/table.py --record    compare, and record what all hosts agree on
"""

from __future__ import annotations

import functools
import http.server
import itertools
import json
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
RECORDED = HERE / "recorded.json"
SECONDS = 300
Found = dict[str, Any]

PREFERENCES = """
user_pref("browser.shell.checkDefaultBrowser", false);
user_pref("browser.aboutwelcome.enabled", false);
user_pref("datareporting.policy.dataSubmissionEnabled", false);
user_pref("toolkit.telemetry.reportingpolicy.firstRun", false);
user_pref("app.normandy.enabled", false);
user_pref("network.captive-portal-service.enabled", false);
user_pref("network.connectivity-service.enabled", false);
"""
"""What keeps a fresh profile of Firefox from asking others for things."""


# ------------------------------------------------------------------ hosts


def run_program(command: list[str]) -> Found:
    """Runs a program and parses the last line of its output; a training prints progress before."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
    if done.returncode:
        raise SystemExit(f"bits: {' '.join(command)} failed\n{done.stderr[-4000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


class Handler(http.server.SimpleHTTPRequestHandler):
    """The repository, and a place where a page leaves its answer."""

    answers: queue.Queue[Found]

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.answers.put(json.loads(body))


def run_browser(command: Callable[[str], list[str]]) -> Found:
    """Opens browser.html in a browser with a new profile; returns the results that it sends."""
    answers: queue.Queue[Found] = queue.Queue()
    kind = type("Handler", (Handler,), {"answers": answers})
    handler = functools.partial(kind, directory=str(ROOT))
    with (
        http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server,
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (Path(profile) / "user.js").write_text(PREFERENCES)
        page = f"http://127.0.0.1:{server.server_port}/tests/bits/browser.html"
        browser = subprocess.Popen(
            [*command(profile), page],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            answer = answers.get(timeout=SECONDS)
        except queue.Empty:
            raise SystemExit(f"bits: no answer from {command('')[0]}") from None
        finally:
            os.killpg(browser.pid, signal.SIGKILL)  # its helpers too
            browser.wait()
            server.shutdown()
    if "error" in answer:
        raise SystemExit(f"bits: {command('')[0]} failed\n{answer['error']}")
    return answer


HOSTS: dict[str, tuple[str, Callable[[str], Found]]] = {
    "wasmtime": (sys.executable, lambda path: run_program([path, str(HERE / "runs.py")])),
    "Node": ("node", lambda path: run_program([path, str(HERE / "node.mjs")])),
    "Chromium": (
        "chromium",
        lambda path: run_browser(
            lambda profile: [
                path,
                "--headless",
                "--no-sandbox",
                "--no-first-run",
                "--disable-gpu",
                f"--user-data-dir={profile}",
            ]
        ),
    ),
    "Firefox": (
        "firefox-esr",
        lambda path: run_browser(
            lambda profile: [path, "--headless", "--no-remote", "--profile", profile]
        ),
    ),
}
"""Name -> the program, and how it is asked."""


def ask_all() -> dict[str, Found]:
    """What each host computes that this machine has, two at a time."""
    present = {}
    for name, (program, _) in HOSTS.items():
        if path := shutil.which(program):
            present[name] = path
        else:
            print(f"bits: there is no {program} here, so {name} is missing (apt-get install)")
    with ThreadPoolExecutor(2) as pool:
        answers = pool.map(lambda name: HOSTS[name][1](present[name]), present)
        return dict(zip(present, answers, strict=True))


# ------------------------------------------------------------------ the table


def family(id: str) -> str:
    return id.rpartition(".")[0] or "torch"


def rows(found: Found) -> dict[str, list[str]]:
    """The lines of the table: the hashes of each run, and those of each family of ops."""
    families: dict[str, list[str]] = defaultdict(list)
    ops = sorted(found["ops"].items())  # in whatever order the op table has them
    for id, digest in ops:
        families[f"ops of {family(id)}"].append(digest)
    return {
        **found["runs"],
        **families,
        "all": [*itertools.chain(*found["runs"].values()), *(digest for _, digest in ops)],
    }


def total(hashes: list[str]) -> str:
    return sha256(" ".join(hashes).encode()).hexdigest()[:16]


def differing(found: Found, other: Found) -> list[str]:
    """The runs and steps, and the ops, whose hashes are not the same."""
    names = []
    for name, hashes in found["runs"].items():
        theirs = other["runs"].get(name, [])
        pairs = zip(hashes, theirs, strict=False)
        if hashes != theirs:
            names.append(f"{name}[{next((i for i, (a, b) in enumerate(pairs) if a != b), 'end')}]")
    ids = sorted({*found["ops"], *other["ops"]})
    return names + [id for id in ids if found["ops"].get(id) != other["ops"].get(id)]


def show(answers: dict[str, Found]) -> bool:
    """Prints the table; whether all columns are equal."""
    columns = {host: rows(found) for host, found in answers.items()}
    lines = next(iter(columns.values()))
    print(f"\n{'run':22}{'hashes':>7}  " + "".join(f"{host:18}" for host in columns))
    for name, hashes in lines.items():
        cells = [total(column.get(name, [])) for column in columns.values()]
        verdict = "equal" if len(set(cells)) == 1 else "DIFFERENT"
        print(f"{name:22}{len(hashes):7}  {''.join(f'{cell:18}' for cell in cells)}{verdict}")
    return len({json.dumps(found, sort_keys=True) for found in answers.values()}) == 1


def main() -> int:
    sys.path[:0] = [str(ROOT), str(HERE.parent)]
    import sweep

    calls = ROOT / "build" / "bits" / "calls.json"
    calls.parent.mkdir(parents=True, exist_ok=True)
    calls.write_text(json.dumps(sweep.describe()), encoding="utf-8")
    answers = ask_all()
    recording = "--record" in sys.argv
    first = answers["wasmtime"]
    if not recording:
        answers["recorded"] = json.loads(RECORDED.read_text(encoding="utf-8"))
    equal = show(answers)
    for host, found in answers.items():
        if names := differing(first, found):
            print(f"bits: wasmtime and {host} differ in {', '.join(names[:40])}")
    if not equal:
        if all(found == first for host, found in answers.items() if host != "recorded"):
            print("bits: the hosts agree; if the change of the numbers is meant: table.py --record")
        return 1
    if recording:
        RECORDED.write_text(json.dumps(first, indent=0) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
