"""`torch.utils.tensorboard`: what is written is what TensorBoard reads."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import pygrad as torch
from pygrad.utils.tensorboard import SummaryWriter, summary


def read(folder: Path) -> Any:
    accumulator = EventAccumulator(str(folder), size_guidance={"images": 0, "graph": 0})
    accumulator.Reload()
    return accumulator


def test_scalars_have_their_steps_and_times(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalar("loss", torch.tensor([0.5], requires_grad=True), 3, walltime=7.0)
        writer.add_scalar("loss", 2, 4, walltime=8.0)
    events = [(e.value, e.step, e.wall_time) for e in read(tmp_path).Scalars("loss")]
    assert events == [(0.5, 3, 7.0), (2.0, 4, 8.0)]


def test_scalars_of_one_chart_are_runs_below(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_scalars("loss/part", {"train": 1, "test": 2}, 5)
    runs = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert runs == {"loss_part_train", "loss_part_test"}
    assert read(tmp_path / "loss_part_test").Scalars("loss/part")[0].value == 2


def test_a_histogram_counts_every_value(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_histogram("w", torch.tensor([-1.0, 0.0, 0.5, 0.5]), 1, bins=[-2, 0, 1, 5])
    (event,) = read(tmp_path).Histograms("w")
    histogram = event.histogram_value
    assert (histogram.min, histogram.max, histogram.num, histogram.sum) == (-1, 0.5, 4, 0)
    assert list(histogram.bucket_limit) == [-2, 0, 1]
    assert list(histogram.bucket) == [0, 1, 3]


@pytest.mark.parametrize(
    ("shape", "format"), [((3, 4, 5), "CHW"), ((4, 5, 3), "HWC"), ((4, 5), "HW")]
)
def test_an_image_is_a_png_of_its_pixels(
    tmp_path: Path, shape: tuple[int, ...], format: str
) -> None:
    pixels = torch.linspace(0, 1, int(np.prod(shape))).reshape(shape)
    with SummaryWriter(tmp_path) as writer:
        writer.add_image("picture", pixels, 1, dataformats=format)
    (event,) = read(tmp_path).Images("picture")
    found = np.asarray(Image.open(io.BytesIO(event.encoded_image_string)))
    expected = (pixels * 255).to(torch.uint8).numpy()
    if format == "CHW":
        expected = expected.transpose(1, 2, 0)
    if format == "HW":
        expected = expected[:, :, None].repeat(3, axis=2)
    assert (event.height, event.width) == (4, 5)
    assert (found == expected).all()


def test_a_video_is_a_gif_of_its_frames(tmp_path: Path) -> None:
    with SummaryWriter(tmp_path) as writer:
        writer.add_video("moves", torch.rand(1, 6, 3, 8, 10), 1, fps=10)
    (event,) = read(tmp_path).Images("moves")
    film: Any = Image.open(io.BytesIO(event.encoded_image_string))
    assert (film.format, film.n_frames, film.size, film.info["duration"]) == (
        "GIF",
        6,
        (10, 8),
        100,
    )


def test_a_graph_has_the_ops_by_the_modules_that_run_them(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
    x = torch.ones(4, 2)
    with SummaryWriter(tmp_path) as writer:
        writer.add_graph(model, x)
    nodes = {node.name: node for node in read(tmp_path).Graph().node}
    linear = "Sequential/Linear[0]"
    assert nodes[f"{linear}/addmm"].op == "aten::addmm"
    assert list(nodes[f"{linear}/addmm"].input) == [f"{linear}/bias", "input/0", f"{linear}/t"]
    assert list(nodes["Sequential/ReLU[1]/relu"].input) == [f"{linear}/addmm"]
    assert list(nodes["output/0"].input) == ["Sequential/ReLU[1]/relu"]
    (shape,) = nodes["output/0"].attr["_output_shapes"].list.shape
    assert [dimension.size for dimension in shape.dim] == [4, 3]
    assert not model._forward_hooks
    assert not model[0]._forward_pre_hooks


def test_a_model_that_raises_leaves_no_hook(tmp_path: Path) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    with SummaryWriter(tmp_path) as writer, pytest.raises(RuntimeError, match="mat1 and mat2"):
        writer.add_graph(model, torch.ones(4, 5))
    assert not model[0]._forward_hooks
    assert torch.ones(2).add(1).tolist() == [2, 2]


def test_half_types_are_written_by_their_bits() -> None:
    for dtype, bits in ((torch.float16, 0x3C00), (torch.bfloat16, 0x3F80)):
        (value,) = summary.tensor_proto("t", torch.ones(1, dtype=dtype)).value
        assert list(value.tensor.half_val) == [bits]


def test_after_close_a_writer_goes_on_in_another_file(tmp_path: Path) -> None:
    writer = SummaryWriter(tmp_path)
    writer.add_scalar("a", 1.0, 0)
    writer.close()
    writer.flush()
    writer.add_scalar("a", 2.0, 1)
    writer.close()
    assert [event.value for event in read(tmp_path).Scalars("a")] == [1, 2]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda w: w.add_scalar("a", torch.ones(2)), AssertionError, "contain one element"),
        (lambda w: w.add_scalar("a", [1]), NotImplementedError, "<class 'list'>"),
        (lambda w: w.add_histogram("a", torch.ones(0)), ValueError, "The input has no element."),
        (lambda w: w.add_histogram("a", torch.ones(1), bins=[2, 3]), ValueError, "is empty"),
        (lambda w: w.add_histogram_raw("a", 0, 1, 1, 1, 1, [1], []), ValueError, "bucket_limits"),
        (lambda w: w.add_image("a", torch.ones(2, 2)), AssertionError, "are different"),
        (
            lambda w: w.add_images("a", torch.ones(1, 2, 3, 3)),
            AssertionError,
            "a 4D numpy array with 3 channels",
        ),
        (lambda w: w.add_audio("a", torch.zeros(2, 3)), AssertionError, "1 dimensional"),
        (lambda w: w.add_embedding(torch.ones(3)), AssertionError, "should be 2D"),
        (lambda w: w.add_embedding(torch.ones(2, 2), [1]), AssertionError, "#labels"),
        (lambda w: w.add_hparams([], {}), TypeError, "should be dictionary"),
        (lambda w: w.add_hparams({"a": []}, {}), ValueError, "should be one of int"),
        (lambda w: w.add_hparams({"a": 1}, {}, {"a": ["x"]}), TypeError, "list of same type"),
        (lambda w: w.add_custom_scalars_marginchart(["a"]), AssertionError, "!= 3"),
        (lambda w: w.add_mesh("a", torch.ones(2, 3)), ValueError, "BxNx3"),
        (lambda w: w.add_onnx_graph("a"), NotImplementedError, "reads no ONNX files"),
        (lambda w: w.add_tensor("a", torch.ones(1).to(torch.uint16)), ValueError, "unsupported"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, call: Any, error: type, message: str) -> None:
    with SummaryWriter(tmp_path) as writer, pytest.raises(error, match=message):
        call(writer)
