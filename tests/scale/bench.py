"""Milliseconds of a training step of mlp_big on one process and on two, and what the average over
two costs, beside torch's gloo if there is torch. Each is the least of several rounds, in turns.

    python tests/scale/bench.py --torch .venv-parity/bin/python
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

from launch import environment, mpiexec

PROGRAM = str(Path(__file__).parent / "programs" / "step_times.py")
Times = dict[str, float]


def time_pygrad(ranks: int, rounds: int) -> Times:
    command = mpiexec(ranks, [sys.executable, PROGRAM, "pygrad", str(rounds)])
    return json.loads(subprocess.run(command, env=environment(), stdout=-1, check=True).stdout)


def time_torch(python: str, ranks: int, rounds: int) -> Times:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(ranks)}
    processes = [
        subprocess.Popen(
            [python, PROGRAM, "torch", str(rounds)],
            env={**os.environ, **where, "RANK": str(rank), "OMP_NUM_THREADS": "1"},
            stdout=subprocess.PIPE,
        )
        for rank in range(ranks)
    ]
    said = [process.communicate()[0] for process in processes]
    return json.loads(said[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", help="a Python that has torch")
    parser.add_argument("--rounds", type=int, default=5, help="within a start (5)")
    parser.add_argument("--starts", type=int, default=2, help="of each program (2)")
    args = parser.parse_args()
    best: dict[tuple[str, int, str], float] = {}
    for _ in range(args.starts):
        for ranks in (1, 2):
            found = {"pygrad": time_pygrad(ranks, args.rounds)}
            if args.torch:
                found["torch"] = time_torch(args.torch, ranks, args.rounds)
            for kind, times in found.items():
                for name, time in times.items():
                    key = kind, ranks, name
                    best[key] = min(time, best.get(key, time))
    for kind in ("pygrad", "torch"):
        for name in dict.fromkeys(n for k, _, n in best if k == kind):
            row = [best.get((kind, ranks, name)) for ranks in (1, 2)]
            shown = "".join("        -" if t is None else f"{t:9.2f}" for t in row)
            print(f"{kind:8}{name:22}{shown} ms on 1 and 2 processes")


if __name__ == "__main__":
    main()
