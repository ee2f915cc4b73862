"""Pictures in rows and columns: what corruptions do to images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

from kattn_cli.figures import style
from kattn_cli.figures.style import save

INCHES = 0.85
"""Of each picture."""
GAP = 12
"""A picture is so many times as wide as the gap to the next."""


def draw_contact_sheet(pictures: Mapping[str, Sequence[NDArray[np.floating]]], folder: Path, caption: str) -> Path:
    """Draw a row for each type: the clean picture, then those of severity 1, 2 and so on.

    Args:
        pictures: by type, equally many ``(height, width, channels)`` in [0, 1]; one channel is shown as grey.
        folder: where ``corruptions.png`` and ``.pdf`` go.
        caption: what they are of.
    """
    height, width = next(iter(pictures.values()))[0].shape[:2]
    sheet = tiled(list(pictures.values()), gap := max(1, width // GAP))
    rows, columns = len(pictures), max(map(len, pictures.values()))
    size = style.look.size(INCHES * columns + 1.0, INCHES * rows + 0.5)
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    axes.imshow(sheet, extent=(0, sheet.shape[1], sheet.shape[0], 0))
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelsize="small", labeltop=True, labelbottom=False)
    names = [name.replace("_", " ").replace(" ", "\n", 1) for name in pictures]
    axes.set_yticks([row * (height + gap) + height / 2 for row in range(rows)], names)
    severities = ["clean", *(f"severity {severity}" for severity in range(1, columns))]
    axes.set_xticks([column * (width + gap) + width / 2 for column in range(columns)], severities)
    return save(figure, folder, "corruptions", caption)


def tiled(pictures: Sequence[Sequence[NDArray[np.floating]]], gap: int) -> NDArray[np.floating]:
    """Return all in one picture ``(height, width, 3)``, with ``gap`` pixels of white between them."""
    height, width = pictures[0][0].shape[:2]
    tall, wide = height + gap, width + gap
    sheet = np.ones((tall * len(pictures) - gap, wide * len(pictures[0]) - gap, 3))
    for row, parts in enumerate(pictures):
        for column, picture in enumerate(parts):
            top, left = row * tall, column * wide
            sheet[top : top + height, left : left + width] = picture
    return sheet
