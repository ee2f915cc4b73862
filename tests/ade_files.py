"""Small pictures with annotations in ADE20K's folder layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

SIZES = ((16, 16), (16, 24), (20, 16))
"""Height and width, in turn."""


def annotated(number: int, classes: int, size: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """A picture whose shades tell its labels, ``(h, w, 3)`` and ``(h, w)``: 0 at the left border, then 1 … classes."""
    height, width = size
    rows, columns = np.mgrid[:height, :width]
    labels = 1 + (rows // 8 + columns // 8 + number) % classes
    labels[:, 0] = 0
    shades = np.repeat((labels * (200 // classes))[..., None], 3, axis=2)
    return shades.astype(np.uint8), labels.astype(np.uint8)


def write_pair(root: Path, folder: str, number: int, image: np.ndarray, labels: np.ndarray) -> Path:
    """One image, PNG whatever its name says, and its annotation; the image's path."""
    paths = [
        root / kind / folder / f"ADE_{number:04d}.{end}" for kind, end in (("images", "jpg"), ("annotations", "png"))
    ]
    for path, array in zip(paths, (image, labels), strict=True):
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(array).save(path, "PNG")
    return paths[0]


def write_ade(root: Path, classes: int = 3, train: int = 20, test: int = 6, sizes: tuple = SIZES) -> Path:
    """The whole layout, with its list of classes."""
    for folder, count in (("training", train), ("validation", test)):
        for number in range(count):
            write_pair(root, folder, number, *annotated(number, classes, sizes[number % len(sizes)]))
    lines = ["Idx\tRatio\tTrain\tVal\tName", *(f"{n}\t0.1\t9\t9\tthing {n}, stuff" for n in range(1, classes + 1))]
    (root / f"objectInfo{classes}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root
