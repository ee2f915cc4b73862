"""Pictures as grey pixels."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw

from kattn_cli.data.sets.pathfinder.scene import Scene
from kattn_cli.data.sets.pathfinder.snakes import Picture

FINER = 8


def drawn(picture: Picture, scene: Scene) -> np.ndarray:
    """``(size, size)`` uint8, white on black: drawn 8 times as fine by Pillow, then averaged."""
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
