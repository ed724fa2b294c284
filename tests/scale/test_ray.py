"""Training in workers of a Ray cluster on this host: the loss of one costs no bit of the result."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from launch import ROOT, environment
from test_same_bits import PROGRAMS, RECORDED

import pygrad as torch
from pygrad import distributed
from pygrad.distributed import ray as workers

ray = pytest.importorskip("ray", reason="the extra ray is not installed")

STEPS = 8
Kills = tuple[tuple[int, int], ...]
"""Who is killed when: the rank and the step, each once."""


@pytest.fixture(autouse=True)
def _needs_mpi() -> None:
    """These tests do not."""


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Two processors, and functions of this file that are carried whole."""
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


def digest(*states: Any) -> str:
    """The SHA-256 of all numbers in states, in order of their names."""
    found = hashlib.sha256()

    def add(name: str, value: Any) -> None:
        if isinstance(value, dict):
            for key in sorted(value, key=str):
                add(f"{name}.{key}", value[key])
        elif isinstance(value, list):
            add(name, dict(enumerate(value)))
        else:
            found.update(name.encode())
            is_tensor = isinstance(value, torch.Tensor)
            found.update(value.numpy().tobytes() if is_tensor else repr(value).encode())

    for index, state in enumerate(states):
        add(str(index), state)
    return found.hexdigest()


def killed_once(folder: Path, name: str, how: Any) -> None:
    """Kills this process unless it, or one before it, was killed for the same reason."""
    mark = folder / f"killed {name}"
    if not mark.exists():
        mark.touch()
        how()


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def train(folder: Path, steps: int, kills: Kills = (), in_save: int = -1) -> str:
    """A perceptron by Adam: gradients are averaged over the ranks, the state is saved at every
    other step.
    """
    rank, size = distributed.get_rank(), distributed.get_world_size()
    (folder / f"pid {os.getpid()}").touch()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    start = 0
    if (state := workers.checkpoint()) is not None:
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        start = state["step"]
    for step in range(start, steps):
        seed = torch.Generator().manual_seed(step * size + rank)
        x = torch.randn(12, 6, generator=seed)
        loss = ((model(x) - x.sin().sum(1, keepdim=True)) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        if (rank, step) in kills:
            killed_once(folder, f"{rank} at {step}", kill)
        for p in model.parameters():
            distributed.all_reduce(p.grad)
            p.grad /= size
        optimizer.step()
        if step == in_save and rank == 0:
            killed_once(folder, "in save", lambda: setattr(os, "fsync", lambda _: kill()))
        if step % 2:
            told = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            workers.save({**told, "step": step + 1})
    return digest(model.state_dict(), optimizer.state_dict())


def train_model(folder: Path, *more: Any, steps: int = STEPS, **options: Any) -> Any:
    folder.mkdir(exist_ok=True)
    arguments = [folder, steps, *more]
    return workers.run(train, arguments=arguments, checkpoints=folder / "checkpoints", **options)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The digest of the run in which nobody is killed."""
    return train_model(tmp_path_factory.mktemp("undisturbed"), restarts=0)


@pytest.mark.parametrize(
    "kills",
    [((1, 5),), ((0, 5),), ((1, 0),), ((1, 3), (0, 6))],
    ids=["a worker", "the one that saves", "before the first checkpoint", "twice"],
)
def test_run_with_kills_ends_with_the_bits_of_the_undisturbed_one(
    undisturbed: str, tmp_path: Path, kills: Kills
) -> None:
    assert train_model(tmp_path, kills, restarts=len(kills)) == undisturbed
    assert len(list(tmp_path.glob("killed*"))) == len(kills)


def test_worker_killed_while_it_saves_leaves_the_checkpoint_before(
    undisturbed: str, tmp_path: Path
) -> None:
    assert train_model(tmp_path, (), 5) == undisturbed
    assert (tmp_path / "killed in save").exists()
    assert sorted(p.name for p in (tmp_path / "checkpoints").iterdir()) == [
        "checkpoint-00000003.pt",
        "checkpoint-00000004.pt",
    ]


def test_run_goes_on_from_what_the_folder_holds(undisturbed: str, tmp_path: Path) -> None:
    assert train_model(tmp_path, steps=4) != undisturbed
    assert train_model(tmp_path, ((0, 1), (1, 3)), steps=STEPS) == undisturbed
    assert not list(tmp_path.glob("killed*"))  # those steps were not done again


def test_more_losses_than_restarts_are_an_error_that_says_so(tmp_path: Path) -> None:
    with pytest.raises(workers.WorkerLostError) as caught:
        train_model(tmp_path, ((1, 3), (1, 5)), restarts=1)
    text = str(caught.value)
    assert "rank 1" in text
    assert "It has been restarted 1 times, as often as it may be" in text
    assert "checkpoint-00000002.pt" in text


def digits(workers: int, folder: Path, *lost: int) -> subprocess.CompletedProcess[str]:
    """The program that trains a perceptron on digits, run as by hand."""
    words = [PROGRAMS / "digits_mlp_on_ray.py", workers, folder, *lost]
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        env=environment({"RAY_USAGE_STATS_ENABLED": "0"}),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.parametrize(
    ("count", "lost"),
    [(1, ()), (1, (0, 17)), (2, ()), (2, (0, 17)), (2, (1, 12))],
    ids=["one", "one, lost", "two", "two, the first lost", "two, the second lost"],
)
def test_program_ends_with_the_hash_that_it_has_under_mpi(
    tmp_path: Path, count: int, lost: tuple[int, ...]
) -> None:
    done = digits(count, tmp_path, *lost)
    assert done.stdout.split()[-1] == RECORDED["digits_mlp"]
    assert ("restart 1 of 3" in done.stderr) == bool(lost)


def test_program_goes_on_with_another_number_of_workers(tmp_path: Path) -> None:
    digits(2, tmp_path)
    max(tmp_path.iterdir()).unlink()  # as if all had been lost before the last checkpoint
    assert digits(3, tmp_path).stdout.split()[-1] == RECORDED["digits_mlp"]


class OddError(Exception):
    """One that its pickle does not make again."""

    def __init__(self, a: int, b: int) -> None:
        super().__init__(f"{a} and {b}")


def wrong(folder: Path, what: str) -> None:
    """Rank 1 does something wrong; the other waits for it."""
    rank = distributed.get_rank()
    (folder / f"{rank} by {os.getpid()}").touch()
    if rank == 1 and what == "raises":
        raise LookupError("no such word")
    if rank == 1 and what == "raises an odd one":
        raise OddError(1, 2)
    if rank == 1 and what == "exits":
        sys.exit(3)
    shape = [3, 4] if rank == 1 and what == "disagrees" else [12]
    if rank == 1 and what == "hangs":
        time.sleep(600)
    distributed.all_reduce(torch.ones(shape))


@pytest.mark.parametrize(
    ("what", "kind", "text"),
    [
        ("raises", LookupError, "no such word"),
        ("raises an odd one", RuntimeError, "the function ended with OddError"),
        ("exits", RuntimeError, r"the function ended with SystemExit\(3\)"),
        ("disagrees", distributed.DistBackendError, r"all_reduce SUM of float32 \[3, 4\]"),
        ("hangs", distributed.DistBackendError, "Timed out waiting .*ms for rank 1"),
    ],
)
def test_error_of_the_function_comes_with_its_type_and_ends_the_run(
    tmp_path: Path, what: str, kind: type[Exception], text: str
) -> None:
    seconds = 15 if what == "hangs" else 120
    with pytest.raises(kind, match=text) as caught:
        workers.run(wrong, arguments=[tmp_path, what], timeout=timedelta(seconds=seconds))
    ranks = [each.name.split()[0] for each in tmp_path.iterdir()]
    assert ranks  # of which one may have ended the run before the other began
    assert len(ranks) == len(set(ranks))  # the run was not restarted
    note = "\n".join(caught.value.__notes__)
    assert "In the worker of rank" in note
    assert "in wrong" in note  # its traceback


def place(matrix: torch.Tensor) -> Any:
    total = matrix * (distributed.get_rank() + 1)
    distributed.all_reduce(total)
    return total, distributed.get_backend(), distributed.get_world_size()


@pytest.mark.parametrize("count", [1, 2])
def test_function_finds_a_group_and_rank_0_gives_the_result(count: int) -> None:
    total, backend, size = workers.run(place, workers=count, arguments=[torch.eye(3)])
    assert torch.equal(total, torch.eye(3) * sum(range(count + 1)))
    assert (backend, size) == ("ray", count)


def test_more_workers_than_the_cluster_has_room_for_are_an_error() -> None:
    with pytest.raises(TimeoutError, match="had no room for 3 workers"):
        workers.run(place, workers=3, arguments=[torch.eye(1)], timeout=timedelta(seconds=1))


def save_without_a_folder() -> None:
    workers.save({})


def test_checkpoints_need_a_run_and_a_folder() -> None:
    for call in (workers.checkpoint, lambda: workers.save({})):
        with pytest.raises(RuntimeError, match=r"distributed\.ray\.run"):
            call()
    with pytest.raises(ValueError, match="checkpoints="):
        workers.run(save_without_a_folder, workers=1)


@pytest.mark.parametrize("wrong", [{"workers": 0}, {"restarts": -1}, {"keep": 0}])
def test_numbers_of_a_run_are_checked(wrong: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="run:"):
        workers.run(place, **wrong)  # type: ignore[arg-type]


def is_there(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


def are_gone(folder: Path) -> bool:
    """Waits until no process is there that noted itself in the folder."""
    pids = [int(path.name.split()[1]) for path in folder.glob("pid *")]
    stop = time.monotonic() + 60
    while any(map(is_there, pids)) and time.monotonic() < stop:
        time.sleep(0.1)
    return bool(pids) and not any(map(is_there, pids))


def test_no_process_is_left(tmp_path: Path) -> None:
    train_model(tmp_path, ((1, 3),))
    assert len(list(tmp_path.glob("pid *"))) == 4
    assert are_gone(tmp_path)


DRIVER = """
import os, signal, sys, time
from pathlib import Path
import ray
from pygrad.distributed import ray as workers

def endless(folder):
    Path(folder, f"pid {os.getpid()}").touch()
    time.sleep(600)

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent may have it ignored
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
workers.run(endless, arguments=[sys.argv[1]])
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_their_driver(tmp_path: Path, how: signal.Signals) -> None:
    path = os.pathsep.join([str(Path(torch.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    process = subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        text=True,
    )
    stop = time.monotonic() + 120
    while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < stop:
        time.sleep(0.1)
    process.send_signal(how)
    _, errors = process.communicate(timeout=120)
    assert process.returncode != 0
    assert how != signal.SIGINT or "KeyboardInterrupt" in errors
    assert are_gone(tmp_path)


def example(heading: str) -> dict[str, Any]:
    """What an example of web/docs/ray.md has made, which is run as a program is."""
    text = (ROOT / "web" / "docs" / "ray.md").read_text().partition(f"# {heading}\n")[2]
    code = text.partition("```python\n")[2].partition("```")[0]
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(code, "ray.md", "exec"), names)
    return names


def test_example_gives_the_same_weights_on_any_number_of_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = example("Training on a Ray cluster")
    assert len(list((tmp_path / "checkpoints").iterdir())) == 2
    alone = workers.run(names["train"], workers=1, arguments=[10], checkpoints=tmp_path / "alone")
    assert digest(alone) == digest(names["weights"])


@pytest.mark.filterwarnings("ignore")  # Ray's own
def test_example_reads_a_dataset_of_ray() -> None:
    pytest.importorskip("ray.data", reason="the extra ray is not installed")
    names = example("Data of Ray")
    alone = workers.run(
        names["train"], workers=1, arguments=[names["data"]], resources={"CPU": 0.5}
    )
    assert digest(alone) == digest(names["weights"])


@pytest.mark.filterwarnings("ignore")  # Tune's own
def test_sweep_of_eight_trials_has_the_same_best_one_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ray.tune", reason="the extra ray is not installed")
    monkeypatch.chdir(tmp_path)
    found = []
    for _ in range(2):
        names = example("Sweeps with Ray Tune")
        results, best = names["results"], names["best"]
        assert (len(results), results.num_errors) == (8, 0)
        losses = {(r.config["lr"], r.config["width"]): r.metrics["loss"] for r in results}
        assert losses[best["lr"], best["width"]] == min(losses.values())
        found.append((losses, best))
    assert found[0] == found[1]  # each loss to the last bit, whichever process had the trial
    assert len(set(losses.values())) == 8
    assert names["trial"](best) == {"loss": min(losses.values())}  # and in this one
