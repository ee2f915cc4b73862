"""A recipe for each kind of data, on a few samples that it writes itself; no two of them are the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from ade_files import write_pair
from image_files import encoded, picture
from tiny_data import write_mnist
from tiny_trajectories import arrays, write

RECIPE = """\
name: tiny
data: {data}
model: {model}
attention: {{name: softmax}}
train: {{epochs: 3, batch_size: 8, lr: 1e-2, keep_every: 1}}
"""


def _images(folder: Path) -> tuple[str, str]:
    write_mnist(folder / "mnist")
    return f"{{name: mnist, root: {folder / 'mnist'}}}", "{name: vit, patch_size: 7, dim: 8, depth: 1, heads: 2}"


def _masks(folder: Path) -> tuple[str, str]:
    draw, root = np.random.default_rng(0), folder / "ade"
    for split, count in (("training", 20), ("validation", 6)):
        for number in range(count):
            image = draw.integers(0, 256, (16, 16, 3), dtype=np.uint8)
            write_pair(root, split, number, image, draw.integers(1, 4, (16, 16), dtype=np.uint8))
    lines = ["Idx\tRatio\tTrain\tVal\tName", *(f"{n}\t0.1\t9\t9\tthing {n}, stuff" for n in range(1, 4))]
    (root / "objectInfo3.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    data = f"{{name: ade20k, root: {root}, image_size: 16, classes: 3, workers: 0}}"
    return data, "{name: segmenter, patch_size: 4, dim: 8, depth: 1, heads: 2, decoder_depth: 1}"


def _sequences(folder: Path) -> tuple[str, str]:
    for split, numbers in (("train", range(40)), ("test", range(40, 60))):
        rows = {
            "img": [encoded(picture(number, 32, 32)) for number in numbers],
            "label": [number % 10 for number in numbers],
        }
        pq.write_table(pa.table(rows), folder / f"{split}.parquet")
    return f"{{name: pixels, root: {folder}, size: 4}}", "{name: encoder, dim: 8, depth: 1, heads: 2}"


def _text(folder: Path) -> tuple[str, str]:
    draw = np.random.default_rng(0)
    lines = ["".join(draw.choice(list("abcdefgh "), 20)) for _ in range(100)]
    (folder / "letters.txt").write_text("\n".join(lines), encoding="utf-8")
    data = f"{{name: text, path: {folder / 'letters.txt'}, context: 8, shares: [0.7, 0.15, 0.15]}}"
    return data, "{name: decoder, dim: 8, depth: 1, heads: 2}"


def _control(folder: Path) -> tuple[str, str]:
    path = write(folder / "hopper_medium-v2.hdf5", arrays())
    return f"{{name: d4rl, path: {path}, context: 4}}", "{name: decision_transformer, dim: 8, depth: 1, heads: 2}"


WRITERS: dict[str, Callable[[Path], tuple[str, str]]] = {
    "images": _images,
    "masks": _masks,
    "sequences": _sequences,
    "text": _text,
    "control": _control,
}
"""By their names in ``TASKS``: write the samples into a folder, and return the sections ``data`` and ``model``."""


def write_tiny(task: str, folder: Path) -> Path:
    """Write samples and recipe of a task, and return the recipe; three epochs, whose weights are all kept."""
    assert task in WRITERS, f"tests/tiny_tasks.py has no samples for the task {task}: give it a writer in WRITERS"
    data, model = WRITERS[task](folder)
    path = folder / "tiny.yaml"
    path.write_text(RECIPE.format(data=data, model=model), encoding="utf-8")
    return path
