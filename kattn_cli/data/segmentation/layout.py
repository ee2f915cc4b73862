"""ADE20K's folder layout: ``images/{training,validation}/*.jpg``, and ``annotations/…/*.png`` of the same names."""

from __future__ import annotations

import os
import re
from pathlib import Path

from torchvision.datasets.folder import IMG_EXTENSIONS

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.encoded import paths_of
from kattn_cli.data.segmentation.pairs import MOST_CLASSES, Pairs
from kattn_cli.errors import DataError

FOLDERS: dict[SplitName, str] = {"train": "training", "test": "validation"}
"""ADE20K's validation images are what is reported on; its own test images have no annotations."""

CLASS_LIST = "objectInfo*.txt"
_CELLS = re.compile(r"\t+|\s{2,}")


def missing_folder(root: Path) -> Path | None:
    """Return the first of the folders that is not there."""
    folders = [root / kind / name for kind in ("images", "annotations") for name in FOLDERS.values()]
    return next((folder for folder in folders if not folder.is_dir()), None)


def pairs_of(root: Path, split: SplitName, channels: int, classes: int) -> Pairs:
    """Return the images of a split, sorted by name, with their annotations.

    Raises:
        DataError: if there are none, or one has no annotation.
    """
    folder = root / "images" / FOLDERS[split]
    images = sorted(entry.path for entry in os.scandir(folder) if entry.name.lower().endswith(IMG_EXTENSIONS))
    if not images:
        raise DataError(f"{folder} has no images ({', '.join(IMG_EXTENSIONS)})")
    labels = root / "annotations" / FOLDERS[split]
    there = {entry.name for entry in os.scandir(labels)}
    names = [f"{Path(image).stem}.png" for image in images]
    lacking = [image for image, name in zip(images, names, strict=True) if name not in there]
    if lacking:
        more = f", nor have {len(lacking) - 1:,} others" if len(lacking) > 1 else ""
        raise DataError(f"{lacking[0]} has no annotation {labels / Path(lacking[0]).stem}.png{more}; add or remove it")
    annotations = [str(labels / name) for name in names]
    return Pairs(paths_of(images), paths_of(annotations), channels, classes)


def class_list(root: Path) -> tuple[str, ...] | None:
    """Return the names in ``objectInfo150.txt`` or its like, in the order of labels; None where there is no such file.

    Its lines begin with the label, 1 and so on, and end with the name, tabs between; a first line of titles is passed
    over.

    Raises:
        DataError: if it cannot be read, or does not count from 1 to at most 255.
    """
    found = sorted(root.glob(CLASS_LIST))
    if not found:
        return None
    try:
        lines = [_CELLS.split(line.strip()) for line in found[0].read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{found[0]} cannot be read as a list of classes: {error}") from None
    named = [(cells[0], cells[-1]) for cells in lines if cells[0].isdecimal()]
    numbers = [int(number) for number, _ in named]
    if numbers != list(range(1, len(named) + 1)) or not 2 <= len(named) <= MOST_CLASSES:
        raise DataError(
            f"{found[0]}: expected a line for each class, which begin with 1, 2, 3 and so on up to {MOST_CLASSES} at "
            "most and end with a name"
        )
    return tuple(name for _, name in named)


def checks(root: Path) -> list[FileCheck]:
    """Return a check of each folder, with how many images are in it."""
    return [_check(root / "images" / name) for name in FOLDERS.values()]


def _check(folder: Path) -> FileCheck:
    if not folder.is_dir():
        return FileCheck(folder, "missing")
    count = sum(entry.name.lower().endswith(IMG_EXTENSIONS) for entry in os.scandir(folder))
    return FileCheck(folder, "no checksum known", f"{count:,} images")
