"""One table: run x host, each host's hash, and whether all agree. The exit code says so too.

python tests/bits/table.py
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
NODE = shutil.which("node")


def hashes(command: list[str]) -> dict[str, list[str]]:
    """What one host prints."""
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    return dict(json.loads(done.stdout.splitlines()[-1]))  # before it: the progress of training


def main() -> int:
    hosts = {"wasmtime": hashes([sys.executable, str(HERE / "runs.py")])}
    if NODE:
        hosts["Node"] = hashes([NODE, str(HERE / "runs.mjs")])
    else:
        print("bits: no Node here, so its column is missing (apt-get install nodejs, 18 or newer)")
    print(f"{'run':18}" + "".join(f"{host:18}" for host in hosts))
    same = True
    for run in next(iter(hosts.values())):
        found = [host.get(run, []) for host in hosts.values()]
        agree = all(each == found[0] for each in found)
        same &= agree
        last = "".join(f"{each[-1][:16] if each else 'missing':18}" for each in found)
        print(f"{run:18}{last}{'equal' if agree else 'DIFFERENT'}")
    return 0 if same else 1


if __name__ == "__main__":
    raise SystemExit(main())
