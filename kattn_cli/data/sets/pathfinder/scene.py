"""What the pictures of each size are made of: the values that Long-Range Arena gives for its own.

They stand in its ``pathfinder.py``, as changes to the defaults of Linsley's program (``snakes2_wrapper.py``).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Scene:
    """Lengths are in pixels of the finished picture.

    Args:
        size: height and width.
        paddle_length: of the dashes that contours are made of.
        paddle_width: of their lines.
        gaps: half of what lies between two paddles of a straight contour; one of these is drawn for each picture.
        marker_radius: of the two discs.
        continuity: how straight contours are; see :func:`~kattn_cli.data.sets.pathfinder.moves.turns`.
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
