"""Contours of paddles: two long ones, whose ends may be marked, and short ones that distract.

As Linsley has them: the two long contours begin near the middle, ``seed_distance`` apart, and grow in turns; then short
ones are put wherever there is room, as many as find it. One end of a long contour at its beginning is marked, and the
far end of the same contour (label 1) or of the other (label 0), so that the paddles say nothing of the label, and the
distance between the markers little.

Ours: a contour that runs into a dead end goes back a few paddles.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np

from kattn_cli.data.sets.pathfinder.dice import Dice
from kattn_cli.data.sets.pathfinder.moves import DIRECTIONS, UNITS
from kattn_cli.data.sets.pathfinder.room import Room, Snake
from kattn_cli.data.sets.pathfinder.scene import Scene
from kattn_cli.errors import DataError

TRIES = 2_000
DEAD_ENDS = 100
_DISTRACTOR_TRIES = 5


@dataclass(frozen=True)
class Picture:
    """Where everything lies, in pixels, (y, x), the upper left corner being 0, 0.

    ``snakes``: for each contour its paddles ``(paddles, 2, 2)``, the beginning and the end of each in order; the two
    long ones are the first. ``markers``: ``(2, 2)``, the middles of the discs. ``gap``: see :class:`.scene.Scene`.
    """

    snakes: tuple[np.ndarray, ...]
    markers: np.ndarray
    gap: int
    label: int


def arranged(scene: Scene, contour_length: int, label: int, dice: Dice) -> Picture:
    """A random picture of this label.

    Raises:
        DataError: if two contours of ``contour_length`` paddles find no room.
    """
    for _ in range(TRIES):
        room = Room(scene, dice.one_of(scene.gaps), dice)
        long = _long_snakes(room, contour_length, dice)
        if long and _markable(long, scene):
            break
    else:
        raise DataError(
            f"pathfinder: two contours of {contour_length} paddles found no room in {scene.size} × {scene.size} pixels "
            f"in {TRIES:,} tries; give a smaller data.contour_length"
        )
    for snake in long:
        for y, x in (snake[0, 0], snake[-1, 1]):
            room.take_marker(int(y), int(x))
    length = contour_length // 3
    short = [_short_snake(room, length) for _ in range(scene.distractor_paddles // length)]
    first = dice.below(2)
    markers = np.stack((long[first][0, 0], long[first if label else 1 - first][-1, 1]))
    snakes = (*long, *(snake for snake in short if snake is not None))
    return Picture(tuple(snake / UNITS for snake in snakes), markers / UNITS, room.gap, label)


def _long_snakes(room: Room, length: int, dice: Dice) -> list[np.ndarray] | None:
    """Two contours ``(length, 2, 2)`` in 1/64 pixel, which the room then has; None if they got stuck."""
    edge, away = 2 * room.scene.seed_distance * UNITS, room.scene.seed_distance * UNITS
    y, x = (edge + dice.below(room.scene.size * UNITS - 2 * edge) for _ in range(2))
    angle = dice.below(DIRECTIONS) * (2 * pi / DIRECTIONS)
    one, other = Snake(), Snake()
    if not room.begin(one, at=(y, x)):
        return None
    if not room.begin(other, one.near, at=(y + round(away * sin(angle)), x + round(away * cos(angle)))):
        return None
    dead_ends = 0
    while len(one.paddles) < length:
        if room.extend(one, other.near):
            if len(one.paddles) > len(other.paddles):
                one, other = other, one
        elif (dead_ends := dead_ends + 1) > DEAD_ENDS:
            return None
        else:
            one.go_back()
    room.taken |= one.near | other.near
    return [_ends(room, one), _ends(room, other)]


def _short_snake(room: Room, length: int) -> np.ndarray | None:
    """A contour ``(length, 2, 2)`` in 1/64 pixel, which the room then has; None if there was no place for one."""
    for _ in range(_DISTRACTOR_TRIES):
        snake = Snake()
        if room.begin(snake) and all(room.extend(snake) for _ in range(length - 1)):
            room.taken |= snake.near
            return _ends(room, snake)
    return None


def _ends(room: Room, snake: Snake) -> np.ndarray:
    return np.array([room.ends(paddle) for paddle in snake.paddles]).reshape(-1, 2, 2)


def _markable(long: list[np.ndarray], scene: Scene) -> bool:
    """Whether discs at the four ends would touch no paddle but the one they are the end of, nor each other."""
    tips = np.stack([snake[place] for snake in long for place in ((0, 0), (-1, 1))])
    paddles = np.concatenate(long)
    distances = _distances(tips, paddles) / UNITS
    distances[np.arange(4), [0, len(long[0]) - 1, len(long[0]), len(paddles) - 1]] = np.inf
    between_tips = np.hypot(*np.moveaxis(tips[::2, None] - tips[1::2], -1, 0)) / UNITS
    radius = scene.marker_radius
    return bool(distances.min() >= radius + scene.paddle_width / 2 + 0.5 and between_tips.min() >= 2 * radius + 1)


def _distances(points: np.ndarray, paddles: np.ndarray) -> np.ndarray:
    """``(P, N)``: from each of ``points`` ``(P, 2)`` to each line of ``paddles`` ``(N, 2, 2)``."""
    begin, along = paddles[:, 0], paddles[:, 1] - paddles[:, 0]
    to_points = points[:, None] - begin
    share = np.clip((to_points * along).sum(-1) / (along**2).sum(-1), 0, 1)
    return np.hypot(*np.moveaxis(to_points - share[..., None] * along, -1, 0))
