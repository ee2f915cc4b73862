"""Small pictures as files and bytes, some of them broken."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import numpy as np
from PIL import Image


def picture(number: int, height: int = 12, width: int = 12, mode: str = "RGB") -> Image.Image:
    """Noise of its own for each ``number``, in blocks, so that crops and resizing can be told apart."""
    shape = (height, width, 3) if mode == "RGB" else (height, width)
    return Image.fromarray(np.random.default_rng(number).integers(0, 256, shape, dtype=np.uint8))


def encoded(image: Image.Image, kind: str = "PNG") -> bytes:
    """The bytes of a file."""
    buffer = BytesIO()
    image.save(buffer, kind)
    return buffer.getvalue()


def truncated(number: int) -> bytes:
    """The first half of a PNG file."""
    whole = encoded(picture(number))
    return whole[: len(whole) // 2]


def write_picture(path: Path, number: int, height: int = 12, width: int = 12) -> Path:
    """A PNG file, whatever its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(encoded(picture(number, height, width)))
    return path


def write_classes(folder: Path, counts: dict[str, int], first: int = 0) -> None:
    """``counts`` pictures a class folder, numbered on from ``first``."""
    for name, count in counts.items():
        for index in range(count):
            write_picture(folder / name / f"{index}.JPEG", first)
            first += 1
