"""A small environment whose best and worst return are known, and scripted behaviour from the best to the worst.

Importing it registers ``kattn/Corridor-v0`` with gymnasium, which must be installed.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from kattn_cli.environments.names import CORRIDOR

STEPS = 20
STRIDE = 0.2
"""How far an action of 1 goes."""
NEAREST, FARTHEST = 0.5, 1.5
"""Between how far from the goal an episode begins; the other end is 2 from it."""

Step = tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]


class Corridor(gymnasium.Env[NDArray[np.float32], NDArray[np.float32]]):
    """A corridor from -1 to 1 with the goal at one of its ends; an episode is :data:`STEPS` steps.

    The state ``(2,)`` is the position and the goal's; the action ``(1,)``, in [-1, 1], moves by :data:`STRIDE` times
    itself; the reward is 1 less the distance from the goal after that. Beginning and goal are drawn, all else is
    determined.
    """

    def __init__(self) -> None:
        self.observation_space = Box(-1.0, 1.0, (2,), np.float32)
        self.action_space = Box(-1.0, 1.0, (1,), np.float32)
        self.position, self.goal = 0.0, 1.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        self.goal = float(self.np_random.choice([-1.0, 1.0]))
        self.position = self.goal * (1 - float(self.np_random.uniform(NEAREST, FARTHEST)))
        return self._state(), {}

    def step(self, action: NDArray[np.float32]) -> Step:
        move = STRIDE * float(np.clip(action[0], -1, 1))
        self.position = float(np.clip(self.position + move, -1, 1))
        return self._state(), 1 - abs(self.goal - self.position), False, False, {}

    def _state(self) -> NDArray[np.float32]:
        return np.array([self.position, self.goal], np.float32)


gymnasium.register(CORRIDOR, entry_point=f"{__name__}:Corridor", max_episode_steps=STEPS)


def best_return(distance: float) -> float:
    """Return the sum of rewards of going straight to the goal, ``distance`` away at first, and staying there."""
    return sum(1 - max(0.0, distance - STRIDE * step) for step in range(1, STEPS + 1))


def worst_return(distance: float) -> float:
    """Return the sum of rewards of going straight to the other end, and staying there."""
    return sum(1 - min(2.0, distance + STRIDE * step) for step in range(1, STEPS + 1))


def scripted_trajectories(count: int, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Return ``count`` whole episodes, in the arrays of a D4RL file.

    Each episode has a skill of its own, of 0, ¼, ½, ¾ and 1: with that probability a step goes towards the goal, else
    away from it, at full speed. So a fifth of them are best, and a fifth are worst.
    """
    environment = gymnasium.make(CORRIDOR)
    draws = np.random.default_rng(seed)
    columns: dict[str, list[Any]] = {name: [] for name in ("observations", "actions", "rewards", "next_observations")}
    for episode in range(count):
        state, _ = environment.reset(seed=seed * count + episode)
        skill = draws.integers(5) / 4
        for _ in range(STEPS):
            towards = 1.0 if draws.random() < skill else -1.0
            action = np.array([towards * state[1]], np.float32)
            following, reward, *_ = environment.step(action)
            for column, value in zip(columns.values(), (state, action, reward, following), strict=True):
                column.append(value)
            state = following
    environment.close()
    arrays = {name: np.array(values, np.float32) for name, values in columns.items()}
    ends = np.arange(1, count * STEPS + 1) % STEPS == 0
    return {**arrays, "terminals": np.zeros(count * STEPS, bool), "timeouts": ends}
