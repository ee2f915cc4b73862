"""Paddles put where there is room for them."""

from __future__ import annotations

from typing import NamedTuple

from kattn_cli.data.sets.pathfinder.dice import Dice
from kattn_cli.data.sets.pathfinder.moves import DIRECTIONS, UNITS, moves
from kattn_cli.data.sets.pathfinder.scene import Scene

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
        """Lose the last paddle, and more the more often it was of no avail; never the first."""
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
        """Where a paddle begins and ends: ``(y, x, y, x)`` in 1/64 pixel."""
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
