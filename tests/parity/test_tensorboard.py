"""`torch.utils.tensorboard`: the same calls write the same records as PyTorch's."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData
from torch.utils.tensorboard import SummaryWriter as TorchWriter

import pygrad
from pygrad.utils.tensorboard import SummaryWriter

_RANDOM = np.random.RandomState(0)
_IMAGE = _RANDOM.rand(3, 4, 5).astype(np.float32)
_IMAGES = _RANDOM.rand(10, 1, 4, 5).astype(np.float32)
_RGBA = _RANDOM.rand(4, 5, 4)
_LABELS, _SCORES = np.array([0, 1, 1, 0, 1]), np.array([0.1, 0.9, 0.4, 0.6, 0.8])
_VALUES = np.array([-3.0, -0.5, 0.0, 0.25, 0.25, 1e-13, 7.0])
_POINTS = np.arange(12.0).reshape(4, 3)

CALLS: dict[str, Callable[[Any, Any], None]] = {
    "scalar": lambda w, t: w.add_scalar("a", t.tensor([2.0]), 1),
    "scalar of Python": lambda w, t: w.add_scalar("a b/c", 3, 2),
    "scalar in new style": lambda w, t: w.add_scalar("a", 0.1, 1, new_style=True),
    "scalar in double": lambda w, t: w.add_scalar("a", 0.1, 1, None, True, True),
    "scalars": lambda w, t: w.add_scalars("run/x", {"p": 1, "q": t.tensor(2.0)}, 4),
    "tensor": lambda w, t: w.add_tensor("t", t.arange(6.0).reshape(2, 3), 1),
    "tensor of int64": lambda w, t: w.add_tensor("t", t.arange(3), 1),
    "tensor of uint8": lambda w, t: w.add_tensor("t", t.tensor(3, dtype=t.uint8)),
    "tensor of bool": lambda w, t: w.add_tensor("t", t.tensor([True, False])),
    "tensor of complex": lambda w, t: w.add_tensor("t", t.tensor([1 + 2j, 3.0])),
    "histogram": lambda w, t: w.add_histogram("h", t.tensor(_VALUES), 1),
    "histogram with automatic bins": lambda w, t: w.add_histogram("h", _VALUES, 1, bins="auto"),
    "histogram with given bins": lambda w, t: w.add_histogram("h", _VALUES, 1, [-1, 0, 0.5, 8, 9]),
    "histogram with few bins": lambda w, t: w.add_histogram("h", np.arange(1000.0), max_bins=7),
    "histogram of zeros": lambda w, t: w.add_histogram("h", t.zeros(4), 1),
    "histogram that is counted": lambda w, t: w.add_histogram_raw(
        "h", 0, 1, 3, 2, 5, [0.5, 1.0], [1, 2], 1
    ),
    "image": lambda w, t: w.add_image("i", t.tensor(_IMAGE), 1),
    "image without channels": lambda w, t: w.add_image("i", _IMAGE[0], 1, dataformats="WH"),
    "image of bytes": lambda w, t: w.add_image("i", np.uint8(_IMAGE * 255), 1),
    "image with alpha": lambda w, t: w.add_image("i", _RGBA, 1, dataformats="HWC"),
    "images": lambda w, t: w.add_images("i", t.tensor(_IMAGES), 1),
    "image with boxes": lambda w, t: w.add_image_with_boxes(
        "i", t.tensor(_IMAGES[0].repeat(9, 1).repeat(9, 2)), t.tensor([[3.0, 3, 20, 20]]), 1
    ),
    "audio": lambda w, t: w.add_audio("a", t.linspace(-1, 1, 30).reshape(1, -1), 1),
    "audio that is too loud": lambda w, t: w.add_audio("a", t.tensor([2.0, -3, 0.5]), 1, 8000),
    "text": lambda w, t: w.add_text("t", "**hello**", 1),
    "precision and recall": lambda w, t: w.add_pr_curve(
        "p", t.tensor(_LABELS), t.tensor(_SCORES), 1
    ),
    "precision and recall with weights": lambda w, t: w.add_pr_curve(
        "p", _LABELS, _SCORES, 1, num_thresholds=5, weights=np.arange(1.0, 6.0)
    ),
    "precision and recall that are counted": lambda w, t: w.add_pr_curve_raw(
        "p", [5, 3], [2, 1], [0, 1], [0, 2], [0.7, 0.75], [1.0, 0.6], 1, num_thresholds=2
    ),
    "chart of lines": lambda w, t: w.add_custom_scalars_multilinechart(["a", "b"]),
    "chart of a margin": lambda w, t: w.add_custom_scalars_marginchart(["a", "b", "c"]),
    "charts": lambda w, t: w.add_custom_scalars(
        {"T": {"x": ["Multiline", ["a"]], "y": ["Margin", ["a", "b", "c"]]}}
    ),
    "mesh": lambda w, t: w.add_mesh(
        "m",
        t.tensor(_POINTS).reshape(1, 4, 3),
        t.tensor([[[1, 2, 3]] * 4]),
        t.tensor([[[0, 1, 2], [1, 2, 3]]]),
        {"camera": {"fov": 75, "cls": "PerspectiveCamera"}},
        1,
    ),
    "hyperparameters": lambda w, t: w.add_hparams(
        {"lr": 0.1, "n": 3, "name": "x", "on": True, "t": t.tensor([2.0])},
        {"accuracy": 0.9, "loss": 1},
        run_name="run",
    ),
    "hyperparameters with domains": lambda w, t: w.add_hparams(
        {"lr": 0.1, "name": "x"}, {"a": 1}, {"lr": [0.1, 0.2], "name": ["x", "y"]}, "run", 3
    ),
    "embedding": lambda w, t: w.add_embedding(
        t.tensor(_POINTS), ["a", "b", "c", "d"], t.tensor(_IMAGES[:4, :, :, :4]), 1
    ),
    "embedding with a header": lambda w, t: w.add_embedding(
        _POINTS, [("a", 1)] * 4, tag="x/y%", metadata_header=["name", "number"]
    ),
}


def read_all(folder: Path) -> dict[str, Any]:
    """What is in each file below a folder; of events without their times."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        place = path.relative_to(folder)
        if "tfevents" in path.name:
            events = [Event.FromString(raw) for raw in RawEventFileLoader(str(path)).Load()]
            found[str(place.parent)] = [show(event) for event in events]
        elif path.is_file():
            found[str(place)] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def show(event: Any) -> str:
    event.ClearField("wall_time")
    event.ClearField("source_metadata")
    texts = []
    for value in event.summary.value:
        data = value.metadata.plugin_data
        if data.plugin_name == "hparams":  # its maps are written in any order
            texts.append(str(HParamsPluginData.FromString(data.content)))
            data.ClearField("content")
    return "\n".join([str(event), *texts])


@pytest.mark.parametrize("name", CALLS)
def test_a_call_writes_what_it_writes_in_pytorch(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, printed = [], []
    for library, kind in ((torch, TorchWriter), (pygrad, SummaryWriter)):
        folder = tmp_path / library.__name__
        with kind(folder, purge_step=3) as writer:
            CALLS[name](writer, library)
        found.append(read_all(folder))
        printed.append(capsys.readouterr().out)
    assert found[0] == found[1]
    assert printed[0] == printed[1]
    assert len(found[0]["."]) > 2 or len(found[0]) > 1


def test_a_figure_is_the_same_image(tmp_path: Path) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="matplotlib is not installed")
    found = []
    for kind in (TorchWriter, SummaryWriter):
        figures = [pyplot.figure(figsize=(1, 1)) for _ in range(2)]
        for number, figure in enumerate(figures):
            figure.gca().plot([number, 1])
        with kind(tmp_path / kind.__module__) as writer:
            writer.add_figure("one", figures[0], 1, close=False)
            writer.add_figure("two", figures, 1)
        found.append(read_all(tmp_path / kind.__module__))
        assert not pyplot.get_fignums()
    assert found[0] == found[1]


def test_the_default_buckets_are_the_same(tmp_path: Path) -> None:
    with TorchWriter(tmp_path / "a") as theirs, SummaryWriter(tmp_path / "b") as ours:
        assert theirs.default_bins == ours.default_bins
