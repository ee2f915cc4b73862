"""Which images each seed of several arms had right, laid side by side, for comparisons image by image.

Never imports torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from kattn_cli.errors import RunError
from kattn_cli.runs.bits import CORRECT, unpacked
from kattn_cli.runs.run import Run

Right = dict[int, NDArray[np.bool_]]
"""Seed → whether each image was right, ``(images,)``."""
OTHERWISE_TRAINED = frozenset({"validation", "choose_on", "classes", "in_memory", "validation_folder", "train"})
"""Keys of a recipe's data section that change no test image."""
OTHERWISE_READ = frozenset(
    {"root", "vocabulary_from", "download", "workers", "max_corrupt", "image_size", "crop_pct", "channels"}
)
"""Keys that change where and how images are read, and not which they are."""


def right_of(arms: Mapping[str, pd.DataFrame]) -> dict[str, Right]:
    """Return of each arm and seed whether each image was right, all of the same images in the same order.

    Args:
        arms: arm → its rows of one condition, one a seed, of ``eval.csv`` or ``attacks.csv`` by
            :func:`~kattn_cli.tables.frames.frame` with ``correct=True``.

    Raises:
        RunError: if a seed has several rows, a row of an earlier version does not say which images were right, or two
            rows are of different images.
    """
    found: dict[str, Right] = {}
    first: tuple[str, dict[str, object]] | None = None
    for arm, rows in arms.items():
        found[arm] = {}
        for row in rows.to_dict("records"):
            folder, seed = str(row["folder"]), int(row["run_seed"])
            if seed in found[arm]:
                raise RunError(f"{folder}: seed {seed} of {arm} has several rows of one condition, where one counts")
            if not isinstance(row.get(CORRECT), str):
                raise RunError(f"{folder}: its rows do not say which images were right; measure again with --again")
            images = images_of({str(column): cell for column, cell in row.items()})
            first = first or (folder, images)
            _require_same(*first, folder, images)
            found[arm][seed] = unpacked(row[CORRECT], int(row["images"]))
    return found


def images_of(row: Mapping[str, object]) -> dict[str, object]:
    """Return what makes the images of a row what they are, in words and values."""
    data = Run(Path(str(row["folder"]))).recipe.get("data") or {}
    split, path = (cell if isinstance(cell := row.get(column), str) else "" for column in ("split", "path"))
    split = split or "test"
    but = OTHERWISE_READ | (OTHERWISE_TRAINED if split == "test" else set())
    of_row = {"images": row["images"], "split": split, "path": path}
    return of_row | {f"data.{key}": value for key, value in data.items() if key not in but}


def differing(images: Mapping[str, object], others: Mapping[str, object]) -> str | None:
    """Return the first key in which two rows' images differ; None where they are the same.

    A key that one of them lacks came with a later version, whose default changes nothing.
    """
    return next((key for key in images if key in others and images[key] != others[key]), None)


def _require_same(folder: str, images: Mapping[str, object], other: str, others: Mapping[str, object]) -> None:
    """Raises:
    RunError: if they differ.
    """
    if key := differing(images, others):
        raise RunError(
            f"{other}: was measured on other images than {folder}: {key} is {others[key]}, not {images[key]}"
        )
