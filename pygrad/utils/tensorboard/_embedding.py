"""The files of TensorBoard's projector: vectors, labels and images of points."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from tensorboard.plugins.projector.projector_config_pb2 import EmbeddingInfo

from ._convert_np import make_np
from ._utils import make_grid


def make_tsv(
    metadata: Sequence[Any], save_path: str, metadata_header: Sequence[str] | None = None
) -> None:
    """Writes ``metadata.tsv``: a line of labels for each point, after a header with their names.

    Args:
        metadata: a label for each point, or with a header a tuple of labels.
        save_path: the folder.
        metadata_header: names of the labels.
    """
    lines = [str(label) for label in metadata]
    if metadata_header:
        if len(metadata_header) != len(metadata[0]):
            raise AssertionError("len of header must be equal to the number of columns in metadata")
        rows = [metadata_header, *metadata]
        lines = ["\t".join(str(label) for label in row) for row in rows]
    _write(save_path, "metadata.tsv", lines)


def make_sprite(label_img: Any, save_path: str) -> None:
    """Writes ``sprite.png``: images [N, C, H, W] between 0 and 1 as one square image."""
    from PIL import Image

    pictures = make_np(label_img)
    grid = make_grid(pictures, ncols=math.ceil(math.sqrt(len(pictures)))).transpose(1, 2, 0)
    side = max(grid.shape[:2])
    square = np.zeros((side, side, 3))
    square[: grid.shape[0], : grid.shape[1]] = grid
    Image.fromarray((square * 255).clip(0, 255).astype(np.uint8)).save(
        os.path.join(save_path, "sprite.png")
    )


def make_mat(matlist: np.ndarray[Any, Any], save_path: str) -> None:
    """Writes ``tensors.tsv``: a line of numbers for each point."""
    rows = matlist.tolist()
    _write(save_path, "tensors.tsv", ("\t".join(str(number) for number in row) for row in rows))


def get_embedding_info(
    metadata: Any, label_img: Any, subdir: str, global_step: int, tag: str
) -> Any:
    """The entry of these points in the projector's configuration."""
    info = EmbeddingInfo(tensor_name=f"{tag}:{global_step:05}", tensor_path=f"{subdir}/tensors.tsv")
    if metadata is not None:
        info.metadata_path = f"{subdir}/metadata.tsv"
    if label_img is not None:
        info.sprite.image_path = f"{subdir}/sprite.png"
        info.sprite.single_image_dim.extend([label_img.shape[3], label_img.shape[2]])
    return info


def write_pbtxt(save_path: str, contents: str) -> None:
    """Writes the projector's configuration."""
    with open(os.path.join(save_path, "projector_config.pbtxt"), "w", encoding="utf-8") as file:
        file.write(contents)


def _write(folder: str, name: str, lines: Iterable[str]) -> None:
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in lines)
