"""Long-Range Arena's own pictures: ``pathfinder32/curv_contour_length_14/{imgs,metadata}`` and their like.

The files in ``metadata`` are text, in spite of their ending ``.npy``: a line a picture, of which the first two words
are its folder and its name and the fourth its label. A picture of no bytes (its release has one) is left out, as there.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from kattn_cli.data.reading.encoded import Unreadable, open_image
from kattn_cli.errors import DataError

DIFFICULTIES = {6: "curv_baseline", 9: "curv_contour_length_9", 14: "curv_contour_length_14"}
"""The folders, by the paddles of a contour: easy, intermediate, and hard, which Long-Range Arena reports."""

_READ_AT_ONCE = 1000
_THREADS = 8


@dataclass(frozen=True)
class Listed:
    """A picture and its label, as the metadata have them."""

    path: Path
    label: int


def folder_of(root: Path, size: int, contour_length: int) -> Path:
    """Return where the pictures are: ``root`` holds ``pathfinder32``, or is that folder."""
    name = f"pathfinder{size}"
    return (root if root.name == name else root / name) / DIFFICULTIES[contour_length]


def metadata_files(folder: Path) -> list[Path]:
    """Return the lists of pictures, by their number."""
    found = (path for path in (folder / "metadata").glob("*.npy") if path.stem.isdecimal())
    return sorted(found, key=lambda path: int(path.stem))


def listed(folder: Path) -> list[Listed]:
    """Return all pictures that are not empty, in the order of the lists.

    Raises:
        DataError: if a line is not of that form, a picture is not there, or there are none.
    """
    found = [picture for path in metadata_files(folder) for picture in _lines(path, folder)]
    if len(found) < 10:
        raise DataError(f"{folder / 'metadata'}: lists {len(found)} pictures, too few to cut into three splits")
    return found


def rows(pictures: list[Listed], size: int) -> Iterator[np.ndarray]:
    """Yield the pixels of ``pictures``, row by row, and their labels, uint8 ``(n, size² + 1)``, some at a time.

    Raises:
        DataError: if one cannot be read, or is of another size.
    """
    with ThreadPoolExecutor(_THREADS) as threads:
        for start in range(0, len(pictures), _READ_AT_ONCE):
            some = pictures[start : start + _READ_AT_ONCE]
            yield np.stack(list(threads.map(partial(_row, size=size), some)))


def _lines(path: Path, folder: Path) -> Iterator[Listed]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: cannot be read as text: {error}") from None
    for number, line in enumerate(lines, 1):
        words = line.split()
        if len(words) < 4 or words[3] not in ("0", "1"):
            raise DataError(f"{path}, line {number}: expected folder, name, number and label (0 or 1) of a picture")
        picture = folder / words[0] / words[1]
        if not picture.is_file():
            raise DataError(f"{path}, line {number}: there is no file {picture}")
        if picture.stat().st_size:
            yield Listed(picture, int(words[3]))


def _row(picture: Listed, size: int) -> np.ndarray:
    try:
        pixels = np.asarray(open_image(str(picture.path), channels=1))
    except Unreadable as error:
        raise DataError(f"{picture.path}: cannot be read: {error}") from None
    if pixels.shape != (size, size):
        height, width = pixels.shape
        raise DataError(f"{picture.path}: has {width} × {height} pixels, not {size} × {size}")
    return np.append(pixels, np.uint8(picture.label))
