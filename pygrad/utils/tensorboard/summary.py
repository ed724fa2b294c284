"""Summaries: the records of a log, in the form that TensorBoard's plugins read.

Each function returns a protocol buffer ``Summary`` with one value. The forms are those of
``tensorboard.compat.proto`` and of the plugins under ``tensorboard.plugins``.
"""

from __future__ import annotations

import io
import json
import logging
import wave
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from tensorboard.compat.proto.summary_pb2 import HistogramProto, Summary, SummaryMetadata
from tensorboard.compat.proto.tensor_pb2 import TensorProto
from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import api_pb2, plugin_data_pb2
from tensorboard.plugins.hparams import metadata as hparams_metadata
from tensorboard.plugins.mesh import metadata as mesh_metadata
from tensorboard.plugins.mesh.plugin_data_pb2 import MeshPluginData
from tensorboard.plugins.pr_curve.plugin_data_pb2 import PrCurvePluginData

from ..._ground import dtypes as _dtypes
from ..._tensor.tensor import Tensor
from ._convert_np import make_np
from ._utils import Array, _prepare_video, convert_to_HWC

_logger: Final = logging.getLogger(__name__)
_LEAST_COUNT: Final = 1e-7
"""Replaces a divisor of zero."""
_MOST_THRESHOLDS: Final = 127


def _metadata(plugin: str, content: bytes = b"", **more: Any) -> Any:
    data = SummaryMetadata.PluginData(plugin_name=plugin, content=content)
    return SummaryMetadata(plugin_data=data, **more)


def _shape(sizes: Sequence[int]) -> Any:
    return TensorShapeProto(dim=[TensorShapeProto.Dim(size=size) for size in sizes])


def _floats(values: Array) -> Any:
    return TensorProto(
        dtype="DT_FLOAT", float_val=values.reshape(-1).tolist(), tensor_shape=_shape(values.shape)
    )


def _one(**fields: Any) -> Any:
    return Summary(value=[Summary.Value(**fields)])


# ------------------------------------------------------------------ numbers and tensors


def scalar(
    name: str,
    tensor: Any,
    collections: Any = None,
    new_style: bool = False,
    double_precision: bool = False,
) -> Any:
    """One number.

    Args:
        name: its tag.
        tensor: a number, or a tensor or array of one element.
        collections: ignored.
        new_style: write a tensor of the plugin "scalars" instead of a ``simple_value``.
        double_precision: with `new_style`, keep float64.
    """
    array = make_np(tensor).squeeze()
    if array.ndim != 0:
        raise AssertionError(
            "Tensor should contain one element (0 dimensions). "
            f"            Was given size: {array.size} and {array.ndim} dimensions."
        )
    value = float(array)
    if not new_style:
        return _one(tag=name, simple_value=value)
    proto = (
        TensorProto(double_val=[value], dtype="DT_DOUBLE")
        if double_precision
        else TensorProto(float_val=[value], dtype="DT_FLOAT")
    )
    return _one(tag=name, tensor=proto, metadata=_metadata("scalars"))


def _complex_parts(tensor: Tensor) -> list[float]:
    parts = np.stack([make_np(tensor.real), make_np(tensor.imag)], -1)
    return [float(part) for part in parts.reshape(-1)]


def _halves(tensor: Tensor) -> list[int]:
    bits: list[int] = make_np(tensor.reshape(-1).view(_dtypes.int16)).view(np.uint16).tolist()
    return bits


def _elements(tensor: Tensor) -> list[Any]:
    elements: list[Any] = tensor.reshape(-1).tolist()
    return elements


_FIELDS: Final = {
    _dtypes.float16: ("half_val", "DT_HALF", _halves),
    _dtypes.bfloat16: ("half_val", "DT_BFLOAT16", _halves),
    _dtypes.float32: ("float_val", "DT_FLOAT", _elements),
    _dtypes.float64: ("double_val", "DT_DOUBLE", _elements),
    _dtypes.int8: ("int_val", "DT_INT8", _elements),
    _dtypes.uint8: ("uint32_val", "DT_UINT8", _elements),
    _dtypes.int16: ("int_val", "DT_INT16", _elements),
    _dtypes.int32: ("int_val", "DT_INT32", _elements),
    _dtypes.int64: ("int64_val", "DT_INT64", _elements),
    _dtypes.complex64: ("scomplex_val", "DT_COMPLEX64", _complex_parts),
    _dtypes.complex128: ("dcomplex_val", "DT_COMPLEX128", _complex_parts),
    _dtypes.bool_: ("bool_val", "DT_BOOL", _elements),
}
"""For each dtype: the field of a TensorProto, its type name, and the conversion of values."""


def tensor_proto(tag: str, tensor: Tensor) -> Any:
    """All elements of a tensor, with shape and dtype; half types as 16-bit words.

    Raises:
        ValueError: TensorProto has no such dtype, or the tensor has more than 2 GB.
    """
    if tensor.numel() * tensor.itemsize >= 2**31:
        raise ValueError("tensor is bigger than protocol buffer's hard limit of 2GB in size")
    if tensor.dtype not in _FIELDS:
        raise ValueError(f"{tag} has unsupported tensor dtype {tensor.dtype}")
    field, kind, convert = _FIELDS[tensor.dtype]
    detached = tensor.detach()
    fields = {field: convert(detached), "dtype": kind, "tensor_shape": _shape(tensor.shape)}
    return _one(tag=tag, tensor=TensorProto(**fields), metadata=_metadata("tensor"))


# ------------------------------------------------------------------ distributions


def histogram_raw(
    name: str,
    min: Any,
    max: Any,
    num: Any,
    sum: Any,
    sum_squares: Any,
    bucket_limits: Any,
    bucket_counts: Any,
) -> Any:
    """A histogram of given counts; `bucket_limits` are the upper limits of the buckets."""
    histo = HistogramProto(
        min=min,
        max=max,
        num=num,
        sum=sum,
        sum_squares=sum_squares,
        bucket_limit=bucket_limits,
        bucket=bucket_counts,
    )
    return _one(tag=name, histo=histo)


def histogram(name: str, values: Any, bins: Any, max_bins: int | None = None) -> Any:
    """A histogram of values; see `make_histogram`."""
    histo = make_histogram(make_np(values).astype(float), bins, max_bins)
    return _one(tag=name, histo=histo)


def make_histogram(values: Array, bins: Any, max_bins: int | None = None) -> Any:
    """Counts values in buckets; drops the empty ones at both ends.

    Args:
        values: any shape, at least one element.
        bins: an argument of `numpy.histogram`.
        max_bins: neighboring buckets are merged until about this number is left.

    Raises:
        ValueError: there are no elements, or none is in a bucket.
    """
    if values.size == 0:
        raise ValueError("The input has no element.")
    values = values.reshape(-1)
    counts, limits = np.histogram(values, bins=bins)
    if max_bins is not None and len(counts) > max_bins:
        joined = len(counts) // max_bins
        counts = np.add.reduceat(counts, np.arange(0, len(counts), joined))
        limits = np.append(limits[:-1:joined], limits[-1])
    filled = np.flatnonzero(counts)
    if filled.size == 0:
        raise ValueError("The histogram is empty, please file a bug report.")
    first, last = int(filled[0]), int(filled[-1])
    # The first bucket is empty: it only gives the lower limit of the next one.
    return HistogramProto(
        min=values.min(),
        max=values.max(),
        num=len(values),
        sum=values.sum(),
        sum_squares=values.dot(values),
        bucket_limit=limits[first : last + 2].tolist(),
        bucket=[0, *counts[first : last + 1].tolist()],
    )


# ------------------------------------------------------------------ images, video, sound


def _calc_scale_factor(tensor: Array) -> int:
    """The factor of pixels: 255, or 1 for uint8, whose range already is 0 to 255."""
    return 1 if tensor.dtype == np.uint8 else 255


def _pixels(tensor: Array) -> Array:
    scaled = tensor.astype(np.float32) * _calc_scale_factor(tensor)
    return scaled.clip(0, 255).astype(np.uint8)


def image(tag: str, tensor: Any, rescale: float = 1, dataformats: str = "NCHW") -> Any:
    """An image, or several in a grid, as PNG.

    Args:
        tag: its name.
        tensor: uint8 from 0 to 255, or any other dtype from 0 to 1. One, three or four channels.
        rescale: the factor of its height and width.
        dataformats: a letter for each dimension, of N, C, H and W.
    """
    pixels = _pixels(convert_to_HWC(make_np(tensor), dataformats))
    return _one(tag=tag, image=make_image(pixels, rescale))


def image_boxes(
    tag: str,
    tensor_image: Any,
    tensor_boxes: Any,
    rescale: float = 1,
    dataformats: str = "CHW",
    labels: Any = None,
) -> Any:
    """An image with boxes drawn on it.

    Args:
        tag: its name.
        tensor_image: see `image`.
        tensor_boxes: [N, 4], each (xmin, ymin, xmax, ymax) in pixels.
        rescale: the factor of its height and width.
        dataformats: a letter for each dimension of the image.
        labels: a text for each box, or None.
    """
    scaled = convert_to_HWC(make_np(tensor_image), dataformats)
    scaled = scaled.astype(np.float32) * _calc_scale_factor(scaled)
    boxes = make_np(tensor_boxes)
    pixels = scaled.clip(0, 255).astype(np.uint8)
    return _one(tag=tag, image=make_image(pixels, rescale, rois=boxes, labels=labels))


def make_image(tensor: Array, rescale: float = 1, rois: Any = None, labels: Any = None) -> Any:
    """Pixels [H, W, C] of uint8 as an image of a summary, encoded as PNG."""
    from PIL import Image

    height, width, channels = tensor.shape
    picture: Any = Image.fromarray(tensor)
    if rois is not None:
        picture = draw_boxes(picture, rois, labels)
    size = int(width * rescale), int(height * rescale)
    if size != picture.size:
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    encoded = io.BytesIO()
    picture.save(encoded, format="PNG")
    return Summary.Image(
        height=size[1],
        width=size[0],
        colorspace=channels,
        encoded_image_string=encoded.getvalue(),
    )


def draw_boxes(disp_image: Any, boxes: Array, labels: Sequence[str] | None = None) -> Any:
    """Draws red boxes, with their labels, on a picture of Pillow's."""
    for number, box in enumerate(boxes):
        text = None if labels is None else f" {labels[number]}"
        xmin, ymin, xmax, ymax = box[:4]
        disp_image = _draw_single_box(disp_image, xmin, ymin, xmax, ymax, text, color="Red")
    return disp_image


def _draw_single_box(
    image: Any,
    xmin: float,
    ymin: float,
    xmax: float,
    ymax: float,
    display_str: str | None,
    color: str = "black",
    color_text: str = "black",
    thickness: int = 2,
) -> Any:
    from PIL import ImageDraw, ImageFont

    draw = ImageDraw.Draw(image)
    corners = [(xmin, ymin), (xmin, ymax), (xmax, ymax), (xmax, ymin), (xmin, ymin)]
    draw.line([(float(x), float(y)) for x, y in corners], width=thickness, fill=color)
    if display_str:
        font: Any = ImageFont.load_default()
        left, top, right, bottom = font.getbbox(display_str)
        width, height = right - left, bottom - top
        margin = int(np.ceil(0.05 * height))
        y = float(ymax) - height - 2 * margin
        draw.rectangle([(float(xmin), y), (float(xmin) + width, float(ymax))], fill=color)
        draw.text((float(xmin) + margin, y + margin), display_str, fill=color_text, font=font)
    return image


def video(tag: str, tensor: Any, fps: float = 4) -> Any:
    """Videos as a GIF that repeats.

    Args:
        tag: their name.
        tensor: [N, T, C, H, W]; uint8 from 0 to 255, or any other dtype from 0 to 1.
        fps: frames in a second.
    """
    frames = _pixels(_prepare_video(make_np(tensor)))
    return _one(tag=tag, image=make_video(frames, fps))


def make_video(tensor: Array, fps: float) -> Any:
    """Frames [T, H, W, C] of uint8 as an image of a summary, encoded as GIF."""
    from PIL import Image

    _, height, width, channels = tensor.shape
    pictures = [Image.fromarray(frame[..., 0] if channels == 1 else frame) for frame in tensor]
    encoded = io.BytesIO()
    pictures[0].save(
        encoded,
        format="GIF",
        save_all=True,
        append_images=pictures[1:],
        duration=round(1000 / fps),
        loop=0,
    )
    return Summary.Image(
        height=height, width=width, colorspace=channels, encoded_image_string=encoded.getvalue()
    )


def audio(tag: str, tensor: Any, sample_rate: int = 44100) -> Any:
    """Sound of one channel as WAV of 16 bits.

    Args:
        tag: its name.
        tensor: [L] or [1, L], from -1 to 1; values beyond are clipped, with a printed warning.
        sample_rate: samples in a second.
    """
    array = make_np(tensor).squeeze()
    if abs(array).max() > 1:
        print("warning: audio amplitude out of range, auto clipped.")
        array = array.clip(-1, 1)
    if array.ndim != 1:
        raise AssertionError("input tensor should be 1 dimensional.")
    samples = (array * np.iinfo(np.int16).max).astype("<i2")
    encoded = io.BytesIO()
    with wave.open(encoded, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(sample_rate)
        file.writeframes(samples.tobytes())
    sound = Summary.Audio(
        sample_rate=sample_rate,
        num_channels=1,
        length_frames=len(samples),
        encoded_audio_string=encoded.getvalue(),
        content_type="audio/wav",
    )
    return _one(tag=tag, audio=sound)


# ------------------------------------------------------------------ texts and plugins


def text(tag: str, text: str) -> Any:
    """A text in Markdown."""
    proto = TensorProto(
        dtype="DT_STRING", string_val=[text.encode("utf-8")], tensor_shape=_shape([1])
    )
    return _one(tag=f"{tag}/text_summary", tensor=proto, metadata=_metadata("text"))


def pr_curve_raw(
    tag: str,
    tp: Any,
    fp: Any,
    tn: Any,
    fn: Any,
    precision: Any,
    recall: Any,
    num_thresholds: int = 127,
    weights: Any = None,
) -> Any:
    """A curve of precision and recall from its six rows, a number for each threshold.

    Args:
        tag: its name.
        tp: true positives.
        fp: false positives.
        tn: true negatives.
        fn: false negatives.
        precision: tp / (tp + fp).
        recall: tp / (tp + fn).
        num_thresholds: the number of thresholds, at most 127.
        weights: ignored.
    """
    rows = np.stack([np.asarray(row) for row in (tp, fp, tn, fn, precision, recall)])
    return _pr_curve(tag, rows, min(num_thresholds, _MOST_THRESHOLDS))


def pr_curve(
    tag: str, labels: Array, predictions: Array, num_thresholds: int = 127, weights: Any = None
) -> Any:
    """A curve of precision and recall.

    Args:
        tag: its name.
        labels: the true label of each element, as a bool.
        predictions: the predicted probability of each element.
        num_thresholds: the number of thresholds, at most 127.
        weights: the weight of each element; 1 if None.
    """
    num_thresholds = min(num_thresholds, _MOST_THRESHOLDS)
    rows = compute_curve(labels, predictions, num_thresholds, weights)
    return _pr_curve(tag, rows, num_thresholds)


def _pr_curve(tag: str, rows: Array, num_thresholds: int) -> Any:
    content = PrCurvePluginData(version=0, num_thresholds=num_thresholds).SerializeToString()
    return _one(tag=tag, tensor=_floats(rows), metadata=_metadata("pr_curves", content))


def compute_curve(
    labels: Array, predictions: Array, num_thresholds: Any = None, weights: Any = None
) -> Array:
    """True and false positives, true and false negatives, precision and recall at thresholds.

    Returns:
        [6, num_thresholds]. The thresholds lie evenly from 0 to 1.
    """
    weights = 1.0 if weights is None else weights
    places = np.int32(np.floor(predictions * (num_thresholds - 1)))
    true = labels.astype(float)

    def at_least(counts: Array) -> Array:
        in_place, _ = np.histogram(
            places, bins=num_thresholds, range=(0, num_thresholds - 1), weights=counts
        )
        return np.cumsum(in_place[::-1])[::-1]

    tp, fp = at_least(true * weights), at_least((1.0 - true) * weights)
    tn, fn = fp[0] - fp, tp[0] - tp
    precision = tp / np.maximum(_LEAST_COUNT, tp + fp)
    recall = tp / np.maximum(_LEAST_COUNT, tp + fn)
    return np.stack((tp, fp, tn, fn, precision, recall))


def custom_scalars(layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> Any:
    """A layout of charts, each for several scalars.

    Args:
        layout: by category and chart, ``["Multiline", tags]`` or ``["Margin", [value, lower,
            upper]]``.
    """

    def chart(title: str, kind: str, tags: Sequence[str]) -> Any:
        if kind != "Margin":
            return layout_pb2.Chart(
                title=title, multiline=layout_pb2.MultilineChartContent(tag=tags)
            )
        if len(tags) != 3:
            raise AssertionError("len(tags) != 3")
        series = layout_pb2.MarginChartContent.Series(value=tags[0], lower=tags[1], upper=tags[2])
        return layout_pb2.Chart(title=title, margin=layout_pb2.MarginChartContent(series=[series]))

    categories = [
        layout_pb2.Category(
            title=name, chart=[chart(title, *described[:2]) for title, described in charts.items()]
        )
        for name, charts in layout.items()
    ]
    content = layout_pb2.Layout(category=categories).SerializeToString()
    proto = TensorProto(dtype="DT_STRING", string_val=[content], tensor_shape=TensorShapeProto())
    return _one(tag="custom_scalars__config__", tensor=proto, metadata=_metadata("custom_scalars"))


def mesh(
    tag: str,
    vertices: Any,
    colors: Any,
    faces: Any,
    config_dict: Any,
    display_name: str | None = None,
    description: str | None = None,
) -> Any:
    """A cloud of points, with optional faces between them.

    Args:
        tag: its name.
        vertices: [B, N, 3].
        colors: [B, N, 3] from 0 to 255, or None.
        faces: [B, M, 3], indices of vertices, or None.
        config_dict: a configuration of three.js, or None.
        display_name: the name in TensorBoard.
        description: a text in Markdown.
    """
    kinds = MeshPluginData
    parts = [(vertices, kinds.VERTEX), (faces, kinds.FACE), (colors, kinds.COLOR)]
    given = [(part, kind) for part, kind in parts if part is not None]
    components = mesh_metadata.get_components_bitmask([kind for _, kind in given])
    config = json.dumps(config_dict or {}, sort_keys=True)
    summary = Summary()
    for part, kind in given:
        if part.ndim != 3 or part.shape[2] != 3:
            raise ValueError(f"Tensor shape should be of shape BxNx3, but got {part.shape}.")
        summary.value.add(
            tag=mesh_metadata.get_instance_name(tag, kind),
            tensor=_floats(make_np(part)),
            metadata=mesh_metadata.create_summary_metadata(
                tag,
                display_name,
                kind,
                components,
                list(part.shape),
                description,
                json_config=config,
            ),
        )
    return summary


# ------------------------------------------------------------------ hyperparameters


def hparams(
    hparam_dict: Any = None, metric_dict: Any = None, hparam_domain_discrete: Any = None
) -> tuple[Any, Any, Any]:
    """Hyperparameters and the names of metrics, as three summaries: experiment, start and end.

    Args:
        hparam_dict: numbers, texts, truth values or tensors of one element, by name.
        metric_dict: the keys are the names of metrics.
        hparam_domain_discrete: the allowed values of hyperparameters, by name.

    Raises:
        TypeError: one of the arguments is no dictionary, or a domain is not a list of values of
            its hyperparameter's type.
        ValueError: a hyperparameter has another type.
    """
    for name, given in (("hparam_dict", hparam_dict), ("metric_dict", metric_dict)):
        if not isinstance(given, dict):
            message = f"parameter: {name} should be a dictionary, nothing logged."
            _logger.warning(message)
            raise TypeError(message)
    domains = hparam_domain_discrete or {}
    if not isinstance(domains, dict):
        raise TypeError("parameter: hparam_domain_discrete should be a dictionary, nothing logged.")
    for name, values in domains.items():
        if (
            name not in hparam_dict
            or not isinstance(values, list)
            or not all(isinstance(value, type(hparam_dict[name])) for value in values)
        ):
            raise TypeError(
                f"parameter: hparam_domain_discrete[{name}] should be a list of same type as "
                f"hparam_dict[{name}]."
            )
    start, experiment = plugin_data_pb2.SessionStartInfo(), api_pb2.Experiment()
    for name, value in hparam_dict.items():
        if value is None:
            continue
        if isinstance(value, Tensor):
            value = float(make_np(value)[0])
        kind, field = _kind_of(value)
        setattr(start.hparams[name], field, value)
        info = experiment.hparam_infos.add(name=name, type=kind)
        if name in domains:
            for each in domains[name]:
                setattr(info.domain_discrete.values.add(), field, each)
    for name in metric_dict:
        experiment.metric_infos.add(name=api_pb2.MetricName(tag=name))
    end = plugin_data_pb2.SessionEndInfo(status="STATUS_SUCCESS")
    data = plugin_data_pb2.HParamsPluginData
    return (
        _hparams_summary(hparams_metadata.EXPERIMENT_TAG, data(experiment=experiment)),
        _hparams_summary(hparams_metadata.SESSION_START_INFO_TAG, data(session_start_info=start)),
        _hparams_summary(hparams_metadata.SESSION_END_INFO_TAG, data(session_end_info=end)),
    )


def _kind_of(value: Any) -> tuple[int, str]:
    """The type of a hyperparameter, and the field of its value."""
    if isinstance(value, str):
        return api_pb2.DATA_TYPE_STRING, "string_value"
    if isinstance(value, (int, float)):
        return api_pb2.DATA_TYPE_FLOAT64, "number_value"
    raise ValueError("value should be one of int, float, str, bool, or torch.Tensor")


def _hparams_summary(tag: str, data: Any) -> Any:
    content = data.SerializeToString()
    plugin = hparams_metadata.PLUGIN_NAME
    return _one(tag=tag, metadata=_metadata(plugin, content))
