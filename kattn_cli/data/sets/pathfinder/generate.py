"""Generation of a whole split of pictures, by all processors, and the file that it is kept in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed  # type: ignore[import-untyped]
from PIL import Image, ImageDraw

from kattn_cli.data.reading.storage import Damaged, reading_arrays
from kattn_cli.data.sets.pathfinder.contours import Dice, Picture, arranged
from kattn_cli.data.sets.pathfinder.scene import SCENES, Scene

FINER = 8


def drawn(picture: Picture, scene: Scene) -> np.ndarray:
    """Draw ``(size, size)`` uint8, white on black: drawn 8 times as fine by Pillow, then averaged."""
    side = scene.size * FINER
    paddles, markers = Image.new("L", (side, side)), Image.new("L", (side, side))
    pen = ImageDraw.Draw(paddles)
    for y1, x1, y2, x2 in (np.concatenate(picture.snakes) * FINER).reshape(-1, 4).tolist():
        pen.line((x1, y1, x2, y2), fill=255, width=round(scene.paddle_width * FINER))
    pen = ImageDraw.Draw(markers)
    radius = scene.marker_radius * FINER
    for y, x in (picture.markers * FINER).tolist():
        pen.ellipse((x - radius, y - radius, x + radius, y + radius), fill=255)
    grey = np.asarray(paddles.reduce(FINER)) * scene.contrast
    return np.maximum(np.minimum(np.rint(grey), 255).astype(np.uint8), np.asarray(markers.reduce(FINER)))


CHUNK = 500
"""Pictures that share a generator."""

_CHUNKS_ALONE = 4
"""Of so many, made sooner than other processes have started."""

VERSION = 1


@dataclass(frozen=True)
class Wanted:
    """All that decides which split of pictures is generated; ``split``: 0, 1, 2, for seeds of their own."""

    size: int
    contour_length: int
    count: int
    split: int
    seed: int


def write(path: Path, wanted: Wanted) -> None:
    """Generate the pictures into a ``.npy`` file; see :func:`write_rows`.

    Raises:
        DataError: if the contours are too long for the pictures.
    """
    chunks = [(start, min(CHUNK, wanted.count - start)) for start in range(0, wanted.count, CHUNK)]
    jobs = 1 if len(chunks) <= _CHUNKS_ALONE else -1
    made = Parallel(jobs, return_as="generator")(delayed(chunk)(wanted, *where) for where in chunks)
    write_rows(path, made, wanted.count, wanted.size)


def chunk(wanted: Wanted, start: int, count: int) -> np.ndarray:
    """Return the rows of :func:`pictures`, uint8 ``(count, size² + 1)``."""
    scene = SCENES[wanted.size]
    return np.stack([np.append(drawn(one, scene), np.uint8(one.label)) for one in pictures(wanted, start, count)])


def pictures(wanted: Wanted, start: int, count: int) -> Iterator[Picture]:
    """Return ``count`` pictures from number ``start`` on; half, or of an odd number the larger half, of class 1."""
    key = (wanted.size, wanted.contour_length, wanted.split, start)
    draw = np.random.default_rng(np.random.SeedSequence(wanted.seed, spawn_key=key))
    labels = draw.permutation(np.arange(1, count + 1) % 2)
    dice = Dice(draw)
    return (arranged(SCENES[wanted.size], wanted.contour_length, label, dice) for label in labels.tolist())


def write_rows(path: Path, parts: Iterator[np.ndarray], count: int, size: int) -> None:
    """Write ``count`` rows, which come in ``parts``, into a ``.npy`` file.

    A row is uint8 ``(size² + 1,)``: the pixels, row by row, and the label.
    """
    rows = np.lib.format.open_memmap(path, mode="w+", dtype=np.uint8, shape=(count, size**2 + 1))
    end = 0
    for part in parts:
        rows[end : end + len(part)] = part
        end += len(part)
    rows.flush()


def read_rows(path: Path, count: int, size: int) -> np.ndarray:
    """Return the rows of such a file, mapped; what is changed of them stays in memory.

    Raises:
        Damaged: if it is cut short, or not of ``count`` rows.
    """
    with reading_arrays():
        rows = np.load(path, mmap_mode="c", allow_pickle=False)
    if rows.shape != (count, size**2 + 1) or rows.dtype != np.uint8:
        raise Damaged
    return rows
