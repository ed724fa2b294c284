"""Writers of logs: `SummaryWriter` for programs, `FileWriter` for one file of events."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from google.protobuf import text_format
from tensorboard.compat.proto.event_pb2 import Event, SessionLog, TaggedRunMetadata
from tensorboard.plugins.projector.projector_config_pb2 import ProjectorConfig
from tensorboard.summary.writer.event_file_writer import EventFileWriter

from . import summary
from ._convert_np import make_np
from ._embedding import get_embedding_info, make_mat, make_sprite, make_tsv, write_pbtxt
from ._module_graph import module_graph
from ._utils import figure_to_image

if TYPE_CHECKING:
    from ...nn import Module

__all__ = ["FileWriter", "SummaryWriter"]


class FileWriter:
    """Writes events to a file in a folder, in a separate thread.

    Args:
        log_dir: the folder, which is created if it does not exist.
        max_queue: the number of waiting events at which `add_event` blocks.
        flush_secs: the interval in seconds between writes to the disk.
        filename_suffix: appended to the file's name.
    """

    def __init__(
        self, log_dir: Any, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str = ""
    ) -> None:
        folder = str(log_dir)
        self.event_writer = EventFileWriter(folder, max_queue, flush_secs, filename_suffix)

    def get_logdir(self) -> str:
        """The folder."""
        folder: str = self.event_writer.get_logdir()
        return folder

    def add_event(self, event: Any, step: Any = None, walltime: float | None = None) -> None:
        """Adds an event with the current time or `walltime`, in seconds since 1970."""
        event.wall_time = time.time() if walltime is None else walltime
        if step is not None:
            event.step = int(step)
        self.event_writer.add_event(event)

    def add_summary(
        self, summary: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds a summary."""
        self.add_event(Event(summary=summary), global_step, walltime)

    def add_graph(self, graph_profile: Any, walltime: float | None = None) -> None:
        """Adds a graph: a pair of a ``GraphDef`` and the ``RunMetadata`` of one run of it."""
        graph, metadata = graph_profile
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)
        run = TaggedRunMetadata(tag="step1", run_metadata=metadata.SerializeToString())
        self.add_event(Event(tagged_run_metadata=run), None, walltime)

    def add_onnx_graph(self, graph: Any, walltime: float | None = None) -> None:
        """Adds a ``GraphDef``."""
        self.add_event(Event(graph_def=graph.SerializeToString()), None, walltime)

    def flush(self) -> None:
        """Writes all events to the disk."""
        self.event_writer.flush()

    def close(self) -> None:
        """Writes all events to the disk and closes the file."""
        self.event_writer.close()

    def reopen(self) -> None:
        """Begins a new file in the folder, after `close`."""
        self.event_writer.reopen()


class SummaryWriter:
    """Writes logs for TensorBoard: scalars, images, histograms, texts and more.

    Args:
        log_dir: the folder of the events; by default a folder in ``runs/`` named by the time, the
            host's name and `comment`.
        comment: appended to that name; ignored if `log_dir` is given.
        purge_step: makes TensorBoard hide earlier events from this step on, for example after a
            crash.
        max_queue: the number of waiting events at which a call blocks.
        flush_secs: the interval in seconds between writes to the disk.
        filename_suffix: appended to the names of event files.

    The methods have PyTorch's arguments. ``tag`` is the name of the value in TensorBoard,
    ``global_step`` its step, and ``walltime`` its time in seconds since 1970, by default the
    current time.

    Example:
        >>> import tempfile
        >>> import pygrad as torch
        >>> from pygrad.utils.tensorboard import SummaryWriter
        >>> with tempfile.TemporaryDirectory() as folder, SummaryWriter(folder) as writer:
        ...     writer.add_scalar("loss", torch.tensor(0.5), 0)
        ...     writer.add_histogram("weights", torch.randn(100), 0)
        ...     writer.add_image("picture", torch.rand(3, 8, 8), 0)
    """

    def __init__(
        self,
        log_dir: Any = None,
        comment: str = "",
        purge_step: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str = "",
    ) -> None:
        if not log_dir:
            now = time.strftime("%b%d_%H-%M-%S")
            log_dir = os.path.join("runs", f"{now}_{socket.gethostname()}{comment}")
        self.log_dir = log_dir
        self.purge_step = purge_step
        self.max_queue = max_queue
        self.flush_secs = flush_secs
        self.filename_suffix = filename_suffix
        self.file_writer: FileWriter | None = None
        self.all_writers: dict[str, FileWriter] | None = None
        self.default_bins = _default_bins()
        self._projector_config = ProjectorConfig()
        self._get_file_writer()

    def _get_file_writer(self) -> FileWriter:
        """The writer of the folder's file; makes a new one after `close`."""
        if self.file_writer is None or self.all_writers is None:
            self.file_writer = self._open(str(self.log_dir))
            self.all_writers = {self.file_writer.get_logdir(): self.file_writer}
            if self.purge_step is not None:
                version = Event(file_version="brain.Event:2")
                start = Event(session_log=SessionLog(status=SessionLog.START))
                self.file_writer.add_event(version, self.purge_step)
                self.file_writer.add_event(start, self.purge_step)
                self.purge_step = None
        return self.file_writer

    def _open(self, folder: str) -> FileWriter:
        return FileWriter(folder, self.max_queue, self.flush_secs, self.filename_suffix)

    def _add(self, made: Any, global_step: Any, walltime: float | None) -> None:
        self._get_file_writer().add_summary(made, global_step, walltime)

    def get_logdir(self) -> Any:
        """The folder."""
        return self.log_dir

    # -------------------------------------------------------------- numbers

    def add_scalar(
        self,
        tag: str,
        scalar_value: Any,
        global_step: Any = None,
        walltime: float | None = None,
        new_style: bool = False,
        double_precision: bool = False,
    ) -> None:
        """Adds one number: a tensor or array of one element, or a number of Python.

        With `new_style` it is written as a tensor, which TensorBoard reads faster;
        `double_precision` then keeps float64.
        """
        made = summary.scalar(
            tag, scalar_value, new_style=new_style, double_precision=double_precision
        )
        self._add(made, global_step, walltime)

    def add_scalars(
        self,
        main_tag: str,
        tag_scalar_dict: Mapping[str, Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds several numbers to one chart. Each is written to its own folder."""
        walltime = time.time() if walltime is None else walltime
        folder = self._get_file_writer().get_logdir()
        assert self.all_writers is not None
        for tag, value in tag_scalar_dict.items():
            name = f"{folder}/{main_tag.replace('/', '_')}_{tag}"
            if name not in self.all_writers:
                self.all_writers[name] = self._open(name)
            made = summary.scalar(main_tag, value)
            self.all_writers[name].add_summary(made, global_step, walltime)

    def add_tensor(
        self, tag: str, tensor: Any, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds all elements of a tensor."""
        self._add(summary.tensor_proto(tag, tensor), global_step, walltime)

    def add_hparams(
        self,
        hparam_dict: dict[str, Any],
        metric_dict: dict[str, Any],
        hparam_domain_discrete: dict[str, list[Any]] | None = None,
        run_name: str | None = None,
        global_step: Any = None,
    ) -> None:
        """Adds hyperparameters and the resulting metrics, as a run in a subfolder.

        Args:
            hparam_dict: numbers, texts or truth values, by name.
            metric_dict: numbers, by name.
            hparam_domain_discrete: the allowed values of hyperparameters, by name.
            run_name: the folder; the time in seconds if None.
            global_step: the step.
        """
        if type(hparam_dict) is not dict or type(metric_dict) is not dict:
            raise TypeError("hparam_dict and metric_dict should be dictionary.")
        made = summary.hparams(hparam_dict, metric_dict, hparam_domain_discrete)
        folder = os.path.join(self._get_file_writer().get_logdir(), run_name or str(time.time()))
        with SummaryWriter(log_dir=folder) as writer:
            for each in made:
                writer._add(each, global_step, None)
            for name, value in metric_dict.items():
                writer.add_scalar(name, value, global_step)

    # -------------------------------------------------------------- distributions

    def add_histogram(
        self,
        tag: str,
        values: Any,
        global_step: Any = None,
        bins: Any = "tensorflow",
        walltime: float | None = None,
        max_bins: int | None = None,
    ) -> None:
        """Adds a histogram of values.

        Args:
            tag: its name.
            values: a tensor or an array.
            global_step: the step.
            bins: "tensorflow" (each bucket is a tenth wider than the previous one), or an argument
                of `numpy.histogram`.
            walltime: the time.
            max_bins: neighboring buckets are merged until about this number is left.
        """
        if isinstance(bins, str) and bins == "tensorflow":
            bins = self.default_bins
        self._add(summary.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(
        self,
        tag: str,
        min: Any,
        max: Any,
        num: Any,
        sum: Any,
        sum_squares: Any,
        bucket_limits: Sequence[Any],
        bucket_counts: Sequence[Any],
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a histogram of given counts.

        Raises:
            ValueError: the numbers of counts and of limits differ.
        """
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError("len(bucket_limits) != len(bucket_counts), see the document.")
        made = summary.histogram_raw(
            tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts
        )
        self._add(made, global_step, walltime)

    def add_pr_curve(
        self,
        tag: str,
        labels: Any,
        predictions: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a curve of precision and recall; see `summary.pr_curve`."""
        made = summary.pr_curve(tag, make_np(labels), make_np(predictions), num_thresholds, weights)
        self._add(made, global_step, walltime)

    def add_pr_curve_raw(
        self,
        tag: str,
        true_positive_counts: Any,
        false_positive_counts: Any,
        true_negative_counts: Any,
        false_negative_counts: Any,
        precision: Any,
        recall: Any,
        global_step: Any = None,
        num_thresholds: int = 127,
        weights: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a curve of precision and recall from given counts."""
        made = summary.pr_curve_raw(
            tag,
            true_positive_counts,
            false_positive_counts,
            true_negative_counts,
            false_negative_counts,
            precision,
            recall,
            num_thresholds,
            weights,
        )
        self._add(made, global_step, walltime)

    # -------------------------------------------------------------- images, video, sound

    def add_image(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "CHW",
    ) -> None:
        """Adds an image: uint8 from 0 to 255, or any other dtype from 0 to 1 (needs pillow)."""
        made = summary.image(tag, img_tensor, dataformats=dataformats)
        self._add(made, global_step, walltime)

    def add_images(
        self,
        tag: str,
        img_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        dataformats: str = "NCHW",
    ) -> None:
        """Adds several images, joined side by side in one image."""
        made = summary.image(tag, img_tensor, dataformats=dataformats)
        self._add(made, global_step, walltime)

    def add_image_with_boxes(
        self,
        tag: str,
        img_tensor: Any,
        box_tensor: Any,
        global_step: Any = None,
        walltime: float | None = None,
        rescale: float = 1,
        dataformats: str = "CHW",
        labels: Any = None,
    ) -> None:
        """Adds an image with boxes on it; see `summary.image_boxes`."""
        if labels is not None:
            labels = [labels] if isinstance(labels, str) else labels
            if len(labels) != box_tensor.shape[0]:
                labels = None
        made = summary.image_boxes(tag, img_tensor, box_tensor, rescale, dataformats, labels)
        self._add(made, global_step, walltime)

    def add_figure(
        self,
        tag: str,
        figure: Any,
        global_step: int | None = None,
        close: bool = True,
        walltime: float | None = None,
    ) -> None:
        """Adds a figure of matplotlib, or a list of figures; closes them by default."""
        formats = "NCHW" if isinstance(figure, list) else "CHW"
        self.add_image(tag, figure_to_image(figure, close), global_step, walltime, formats)

    def add_video(
        self,
        tag: str,
        vid_tensor: Any,
        global_step: Any = None,
        fps: float = 4,
        walltime: float | None = None,
    ) -> None:
        """Adds videos [N, T, C, H, W] as a GIF (needs pillow, where PyTorch needs moviepy)."""
        self._add(summary.video(tag, vid_tensor, fps), global_step, walltime)

    def add_audio(
        self,
        tag: str,
        snd_tensor: Any,
        global_step: Any = None,
        sample_rate: int = 44100,
        walltime: float | None = None,
    ) -> None:
        """Adds sound [1, L] or [L] from -1 to 1."""
        self._add(summary.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    # -------------------------------------------------------------- texts, graphs, points

    def add_text(
        self, tag: str, text_string: str, global_step: Any = None, walltime: float | None = None
    ) -> None:
        """Adds a text in Markdown."""
        self._add(summary.text(tag, text_string), global_step, walltime)

    def add_graph(
        self,
        model: Module,
        input_to_model: Any = None,
        verbose: bool = False,
        use_strict_trace: bool = True,
    ) -> None:
        """Adds the graph of the ops that a module runs for some input.

        Args:
            model: the module; it is called once, in its current mode (training or not).
            input_to_model: its argument, or a tuple of its arguments.
            verbose: print the graph.
            use_strict_trace: ignored, since ops are recorded as they run.
        """
        args = input_to_model if isinstance(input_to_model, tuple) else (input_to_model,)
        graph, metadata = module_graph(model, args)
        if verbose:
            print(graph)
        self._get_file_writer().add_graph((graph, metadata))

    def add_onnx_graph(self, prototxt: Any) -> None:
        """Raises NotImplementedError: pygrad reads no ONNX files."""
        raise NotImplementedError(
            "SummaryWriter.add_onnx_graph: pygrad reads no ONNX files; use add_graph(model, input)"
        )

    @staticmethod
    def _encode(rawstr: str) -> str:
        """A tag as a folder name: ``a/b`` becomes ``a%2fb``."""
        kept = "-_.~"
        return "".join(
            character
            if character.isalnum() or character in kept or character == " "
            else f"%{ord(character):02x}"
            for character in rawstr
        )

    def add_embedding(
        self,
        mat: Any,
        metadata: Any = None,
        label_img: Any = None,
        global_step: Any = None,
        tag: str = "default",
        metadata_header: Sequence[str] | None = None,
    ) -> None:
        """Adds points for TensorBoard's projector.

        Args:
            mat: [N, D], N points.
            metadata: N labels, or with a header N tuples of labels.
            label_img: [N, C, H, W], a picture for each point.
            global_step: the step.
            tag: the name of these points.
            metadata_header: names of the labels.
        """
        mat = make_np(mat)
        step = 0 if global_step is None else global_step
        subdir = f"{str(step).zfill(5)}/{self._encode(tag)}"
        log_dir = self._get_file_writer().get_logdir()
        folder = os.path.join(log_dir, subdir)
        if os.path.isdir(folder):
            print("warning: Embedding dir exists, did you set global_step for add_embedding()?")
        os.makedirs(folder, exist_ok=True)
        if metadata is not None:
            if len(mat) != len(metadata):
                raise AssertionError("#labels should equal with #data points")
            make_tsv(metadata, folder, metadata_header)
        if label_img is not None:
            if len(mat) != label_img.shape[0]:
                raise AssertionError("#images should equal with #data points")
            make_sprite(label_img, folder)
        if mat.ndim != 2:
            raise AssertionError("mat should be 2D, where mat.size(0) is the number of data points")
        make_mat(mat, folder)
        info = get_embedding_info(metadata, label_img, subdir, step, tag)
        self._projector_config.embeddings.extend([info])
        write_pbtxt(log_dir, text_format.MessageToString(self._projector_config))

    # -------------------------------------------------------------- charts, meshes

    def add_custom_scalars_multilinechart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a chart that shows several tags."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(
        self, tags: Sequence[str], category: str = "default", title: str = "untitled"
    ) -> None:
        """Adds a chart that shows a value between bounds: three tags, value, lower and upper."""
        if len(tags) != 3:
            raise AssertionError("len(tags) != 3")
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_custom_scalars(self, layout: Mapping[str, Mapping[str, Sequence[Any]]]) -> None:
        """Adds a layout of charts; see `summary.custom_scalars`."""
        self._add(summary.custom_scalars(layout), None, None)

    def add_mesh(
        self,
        tag: str,
        vertices: Any,
        colors: Any = None,
        faces: Any = None,
        config_dict: Any = None,
        global_step: Any = None,
        walltime: float | None = None,
    ) -> None:
        """Adds a cloud of points; see `summary.mesh`."""
        self._add(summary.mesh(tag, vertices, colors, faces, config_dict), global_step, walltime)

    # -------------------------------------------------------------- closing

    def flush(self) -> None:
        """Writes all events to the disk."""
        for writer in (self.all_writers or {}).values():
            writer.flush()

    def close(self) -> None:
        """Writes all events to the disk and closes the files."""
        for writer in (self.all_writers or {}).values():
            writer.flush()
            writer.close()
        self.file_writer = self.all_writers = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _default_bins() -> list[float]:
    """Bucket limits on both sides of 0, each a tenth farther than the previous one."""
    limit, limits = 1e-12, []
    while limit < 1e20:
        limits.append(limit)
        limit *= 1.1
    return [-limit for limit in reversed(limits)] + [0] + limits
