"""Episodes of an environment as a policy acts in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

import gymnasium
import numpy as np

from kattn_cli.data.trajectories.steps import Steps

Act = Callable[[np.ndarray], np.ndarray]
"""From an observation ``(S,)`` to an action ``(A,)``."""


class Purpose(IntEnum):
    """The purposes of random numbers."""

    weights = 0
    training = 1
    evaluation = 2
    recording = 3


def derived_seed(seed: int, purpose: Purpose, number: int = 0) -> int:
    """Return a seed of its own for each purpose, and for each ``number`` of one."""
    return int(np.random.SeedSequence([seed, purpose, number]).generate_state(1)[0])


class Recorder(gymnasium.Wrapper):
    """Keeps every step that is taken, as the environment itself gives it."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self._rows: list[tuple[Any, ...]] = []
        self._observation: np.ndarray | None = None

    def reset(self, **keys: Any) -> tuple[Any, dict[str, Any]]:
        """See :class:`gymnasium.Env`."""
        self._observation, info = self.env.reset(**keys)
        return self._observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """See :class:`gymnasium.Env`."""
        after, reward, terminated, truncated, info = self.env.step(action)
        # A step ends an episode in one way only: D4RL's terminals and timeouts exclude each other.
        ended = bool(terminated), bool(truncated and not terminated)
        self._rows.append((self._observation, np.array(action), reward, *ended, after))
        self._observation = after
        return after, reward, terminated, truncated, info

    def taken(self) -> Steps:
        """Return the steps since the last call."""
        rows, self._rows = self._rows, []
        columns = zip(*rows, strict=True) if rows else [[]] * len(Steps._fields)
        kinds = (np.float32, np.float32, np.float32, np.bool_, np.bool_, np.float32)
        return Steps(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))


def episodes(env: Recorder, act: Act, seed: int, stop: Callable[[], None]) -> Iterator[Steps]:
    """Yield episode after episode, without end; ``stop`` is called at every step, and may raise."""
    options = {"seed": seed}
    while True:
        observation, _ = env.reset(**options)
        # The first reset alone is seeded; later ones go on with the same generator.
        options, ended = {}, False
        while not ended:
            stop()
            observation, _, terminated, truncated, _ = env.step(act(observation))
            ended = terminated or truncated
        yield env.taken()
