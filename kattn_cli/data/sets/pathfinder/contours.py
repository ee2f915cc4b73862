"""Contours of paddles: two long ones, whose ends may be marked, and short ones that distract.

As Linsley has them: the two long contours begin near the middle, ``seed_distance`` apart, and grow in turns; then short
ones are put wherever there is room, as many as find it. One end of a long contour at its beginning is marked, and the
far end of the same contour (label 1) or of the other (label 0), so that the paddles say nothing of the label, and the
distance between the markers little.

Ours: a contour that runs into a dead end goes back a few paddles.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import cos, pi, sin
from typing import NamedTuple, TypeVar

import numpy as np

from kattn_cli.data.sets.pathfinder.scene import DIRECTIONS, UNITS, Scene, moves
from kattn_cli.errors import DataError

T = TypeVar("T")
_BLOCK = 4096


class Dice:
    """The numbers of ``draw``, as fast as Python can use them."""

    def __init__(self, draw: np.random.Generator) -> None:
        self._draw = draw
        self._block: Iterator[int] = iter(())

    def below(self, count: int) -> int:
        """Return one of 0 … ``count - 1``, ``count`` being far less than 2³²."""
        number = next(self._block, None)
        if number is None:
            self._block = iter(self._draw.integers(0, 1 << 32, _BLOCK).tolist())
            number = next(self._block)
        # The upper bits of the product: number / 2³² · count, rounded down, without floats.
        return number * count >> 32

    def one_of(self, choices: Sequence[T]) -> T:
        """Return one of ``choices``."""
        return choices[self.below(len(choices))]


PLACES_TRIED = 16


class Paddle(NamedTuple):
    """A dash: its middle ``y``, ``x`` in 1/64 pixel, and its ``direction``; see :mod:`.moves`."""

    y: int
    x: int
    direction: int


class Snake:
    """A contour that grows: its paddles, and the bitmap of what is near any of them."""

    def __init__(self) -> None:
        self.paddles: list[Paddle] = []
        self._near = [0]
        self._longest = self._dead_ends = 0

    @property
    def near(self) -> int:
        """What is near any paddle."""
        return self._near[-1]

    @property
    def near_but_for_the_last(self) -> int:
        """What is near any paddle but the last."""
        return self._near[-2]

    def append(self, paddle: Paddle, near: int) -> None:
        """Grow by a paddle that has ``near`` around it."""
        self.paddles.append(paddle)
        self._near.append(self.near | near)
        if len(self.paddles) > self._longest:
            self._longest, self._dead_ends = len(self.paddles), 0

    def go_back(self) -> None:
        """Remove the last paddle, and more of them the more often that did not help; never the first."""
        length = max(len(self.paddles) - 1 - self._dead_ends // 3, 1)
        self._dead_ends += 1
        del self.paddles[length:], self._near[length + 1 :]


class Room:
    """Where paddles may be in one picture; ``taken`` is the bitmap of where none may."""

    def __init__(self, scene: Scene, gap: int, dice: Dice) -> None:
        self.scene, self.gap = scene, gap
        self.taken = (table := moves(scene, gap)).walls
        self._moves, self._dice = table, dice

    def take_marker(self, y: int, x: int) -> None:
        """Let no further paddle touch a marker there."""
        self.taken |= self._moves.marker << self._shift(y, x)

    def begin(self, snake: Snake, others: int = 0, at: tuple[int, int] | None = None) -> bool:
        """Give an empty contour its first paddle, anywhere or with its beginning ``at``; False if no place was free.

        ``others``: a bitmap of what else is taken.
        """
        taken = self.taken | others
        for _ in range(PLACES_TRIED):
            direction = self._dice.below(DIRECTIONS)
            if at is None:
                y, x = self._dice.below(self.scene.size * UNITS), self._dice.below(self.scene.size * UNITS)
            else:
                (y, x), (to_y, to_x) = at, self._moves.to_end[direction]
                y, x = y + to_y, x + to_x
            if self._put(snake, y, x, direction, taken):
                return True
        return False

    def extend(self, snake: Snake, others: int = 0) -> bool:
        """Let a contour grow by one paddle, near its last and no other; False if there is no room ahead."""
        taken = self.taken | others | snake.near_but_for_the_last
        y, x, last = snake.paddles[-1]
        to_pivot, turns = self._moves.to_pivot, self._moves.turns
        y, x = y + to_pivot[last][0], x + to_pivot[last][1]
        start = self._shift(y - self._moves.ahead, x - self._moves.ahead)
        window = taken >> start & self._moves.window
        for _ in range(PLACES_TRIED):
            direction = (last + self._dice.one_of(turns)) % DIRECTIONS
            to_y, to_x = to_pivot[direction]
            if self._put(snake, y + to_y, x + to_x, direction, window, start):
                return True
        return False

    def ends(self, paddle: Paddle) -> tuple[int, int, int, int]:
        """Return where a paddle begins and ends: ``(y, x, y, x)`` in 1/64 pixel."""
        y, x = self._moves.to_end[paddle.direction]
        return paddle.y - y, paddle.x - x, paddle.y + y, paddle.x + x

    def _put(self, snake: Snake, y: int, x: int, direction: int, taken: int, start: int = 0) -> bool:
        """Grow by this paddle if it is free; ``taken`` is the bitmap from the cell ``start`` on."""
        shift = self._shift(y, x)
        if taken >> shift - start & self._moves.line[direction]:
            return False
        snake.append(Paddle(y, x, direction), self._moves.around[direction] << shift)
        return True

    def _shift(self, y: int, x: int) -> int:
        cell = self._moves.units_of_cell
        return self._moves.origin + y // cell * self._moves.columns + x // cell


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
    """Return a random picture of this label.

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
    """Return two contours ``(length, 2, 2)`` in 1/64 pixel, which the room then has; None if they got stuck."""
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
    """Return a contour ``(length, 2, 2)`` in 1/64 pixel, which the room then has; None without a place for one."""
    for _ in range(_DISTRACTOR_TRIES):
        snake = Snake()
        if room.begin(snake) and all(room.extend(snake) for _ in range(length - 1)):
            room.taken |= snake.near
            return _ends(room, snake)
    return None


def _ends(room: Room, snake: Snake) -> np.ndarray:
    return np.array([room.ends(paddle) for paddle in snake.paddles]).reshape(-1, 2, 2)


def _markable(long: list[np.ndarray], scene: Scene) -> bool:
    """Return whether discs at the four ends would touch no other paddle, nor each other."""
    tips = np.stack([snake[place] for snake in long for place in ((0, 0), (-1, 1))])
    paddles = np.concatenate(long)
    distances = _distances(tips, paddles) / UNITS
    distances[np.arange(4), [0, len(long[0]) - 1, len(long[0]), len(paddles) - 1]] = np.inf
    between_tips = np.hypot(*np.moveaxis(tips[::2, None] - tips[1::2], -1, 0)) / UNITS
    radius = scene.marker_radius
    return bool(distances.min() >= radius + scene.paddle_width / 2 + 0.5 and between_tips.min() >= 2 * radius + 1)


def _distances(points: np.ndarray, paddles: np.ndarray) -> np.ndarray:
    """Return ``(P, N)``: from each of ``points`` ``(P, 2)`` to each line of ``paddles`` ``(N, 2, 2)``."""
    begin, along = paddles[:, 0], paddles[:, 1] - paddles[:, 0]
    to_points = points[:, None] - begin
    share = np.clip((to_points * along).sum(-1) / (along**2).sum(-1), 0, 1)
    return np.hypot(*np.moveaxis(to_points - share[..., None] * along, -1, 0))
