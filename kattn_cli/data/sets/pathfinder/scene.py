"""Sizes of what the pictures are made of: the values that Long-Range Arena gives for its own.

They stand in its ``pathfinder.py``, as changes to the defaults of Linsley's program (``snakes2_wrapper.py``).

From a scene follow tables of where paddles lie and what they take up, by their direction: whole numbers, so that
machines agree. Positions are in 1/64 of a pixel, directions in 1/256 of a full turn, and vectors are (y, x). A set of
cells is a bitmap: a Python integer with a bit for each cell of the picture and of the apron around it, row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import ceil

import numpy as np


@dataclass(frozen=True)
class Scene:
    """Lengths are in pixels of the finished picture.

    Args:
        size: height and width.
        paddle_length: of the dashes that contours are made of.
        paddle_width: of their lines.
        gaps: half of what lies between two paddles of a straight contour; one of these is drawn for each picture.
        marker_radius: of the two discs.
        continuity: how straight contours are; see :func:`~kattn_cli.data.sets.pathfinder.scene.turns`.
        seed_distance: between the beginnings of the two long contours.
        distractor_paddles: about how many paddles all distractors have together.
        contrast: of the paddles, before they are cut off at white; that of the markers is 1.
        cells: to a pixel, of the grid on which room is kept (ours).
    """

    size: int
    paddle_length: int
    paddle_width: float
    gaps: tuple[int, ...]
    marker_radius: float
    continuity: float
    seed_distance: int
    distractor_paddles: int
    contrast: float
    cells: int


SCENES = {
    32: Scene(32, 2, 0.5, (1,), 1.5, 1.0, 7, 20, 2 * 0.75, 4),
    64: Scene(64, 5, 1.0, (1,), 2.5, 1.8, 12, 22, 0.8, 2),
    128: Scene(128, 5, 1.5, (2, 3), 3.0, 1.8, 20, 35, 0.9, 2),
}


UNITS = 64
DIRECTIONS = 256
_TURN_WEIGHTS_TO = 4096
_EDGE = 1


@dataclass(frozen=True)
class Moves:
    """For pictures of one size whose contours have gaps of one width.

    Args:
        to_end: by direction, from the middle of a paddle to its end.
        to_pivot: by direction, from there to where the contour may turn, and from there to the next paddle's middle.
        turns: changes of direction, each as often as it is likely.
        line: by direction, the cells of a paddle's middle line.
        around: by direction, all cells nearer to that line than another paddle may come.
        marker: the cells that no distractor's middle line may have near a marker.
        walls: the cells where no middle line may be, for being outside or at the edge.
        ahead: by how much, in 1/64 pixel, a paddle's middle is at most away from the pivot before it.
        window: the bitmap of all rows that the paddles after one pivot may touch.
        columns: cells in a row.
        origin: the cell that bitmaps are shifted by for a paddle in the upper left corner, whose middle is theirs.
        units_of_cell: how many 1/64 pixel a cell is.
    """

    to_end: list[tuple[int, int]]
    to_pivot: list[tuple[int, int]]
    turns: list[int]
    line: list[int]
    around: list[int]
    marker: int
    walls: int
    ahead: int
    window: int
    columns: int
    origin: int
    units_of_cell: int


@cache
def moves(scene: Scene, gap: int) -> Moves:
    """Return the tables for gaps of twice ``gap``."""
    angles = np.arange(DIRECTIONS) * (2 * np.pi / DIRECTIONS)
    ahead = np.stack((np.sin(angles), np.cos(angles)), axis=1)
    half = scene.paddle_length / 2
    apart = 2 * gap + scene.paddle_width
    to_marker = scene.marker_radius + scene.paddle_width / 2 + 1
    reach = ceil((half + max(apart, to_marker)) * scene.cells)
    apron = reach + (scene.paddle_length + 2 * gap + 1) * scene.cells
    columns = scene.size * scene.cells + 2 * apron
    edge = apron + ceil((_EDGE + scene.paddle_width / 2) * scene.cells)
    walls = np.ones((columns, columns), dtype=bool)
    walls[edge:-edge, edge:-edge] = False
    ahead_units = ceil((half + gap) * UNITS)
    y, x = np.mgrid[-reach : reach + 1, -reach : reach + 1] / scene.cells

    def bitmap(cells: np.ndarray) -> int:
        return _bitmap(np.pad(cells, ((0, 0), (0, columns - cells.shape[1]))))

    def distance(half_line: np.ndarray) -> np.ndarray:
        along = np.clip((y * half_line[0] + x * half_line[1]) / half**2, -1, 1)
        return np.hypot(y - along * half_line[0], x - along * half_line[1])

    return Moves(
        to_end=_units(ahead * half),
        to_pivot=_units(ahead * (half + gap)),
        turns=turns(scene.continuity),
        line=[bitmap(_line(vector * half, reach, scene)) for vector in ahead],
        around=[bitmap(distance(vector * half) < apart) for vector in ahead],
        marker=bitmap(np.hypot(y, x) < to_marker),
        walls=_bitmap(walls),
        ahead=ahead_units,
        window=(1 << columns * 2 * (reach + ceil(ahead_units * scene.cells / UNITS) + 2)) - 1,
        columns=columns,
        origin=(apron - reach) * (columns + 1),
        units_of_cell=UNITS // scene.cells,
    )


def turns(continuity: float) -> list[int]:
    """Return turns of at most a right angle, about as often as Linsley's weight has it: cos² of ``continuity`` × it.

    The greater ``continuity``, the straighter the contours; where the product passes a right angle the weight is 0.
    """
    steps = np.arange(-DIRECTIONS // 4, DIRECTIONS // 4 + 1)
    angles = np.minimum(np.abs(steps) * (2 * np.pi / DIRECTIONS) * continuity, np.pi / 2)
    weights = np.cos(angles) ** 2
    return np.repeat(steps, np.rint(weights / weights.sum() * _TURN_WEIGHTS_TO).astype(np.int64)).tolist()


def _units(vectors: np.ndarray) -> list[tuple[int, int]]:
    return [(y, x) for y, x in np.rint(vectors * UNITS).astype(np.int64).tolist()]


def _line(half: np.ndarray, reach: int, scene: Scene) -> np.ndarray:
    """Return the cells on the line between ``-half`` and ``half``, the middle cell being ``reach``, ``reach``."""
    cells = np.zeros((2 * reach + 1, 2 * reach + 1), dtype=bool)
    along = np.linspace(-1, 1, 2 * scene.paddle_length * scene.cells + 1)
    points = np.rint(along[:, None] * half * scene.cells).astype(np.int64) + reach
    cells[points[:, 0], points[:, 1]] = True
    return cells


def _bitmap(cells: np.ndarray) -> int:
    return int.from_bytes(np.packbits(cells, bitorder="little").tobytes(), "little")
