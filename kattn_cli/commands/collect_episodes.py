"""Episodes of an environment as a policy acts in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any

import gymnasium
import numpy as np

from kattn_cli.data.trajectories.steps import Steps
from kattn_cli.environments.names import ENVIRONMENTS
from kattn_cli.errors import KattnError, did_you_mean

Act = Callable[[np.ndarray], np.ndarray]
"""From an observation ``(S,)`` to an action ``(A,)``."""


class Purpose(IntEnum):
    """What random numbers are drawn for."""

    weights = 0
    training = 1
    evaluation = 2
    recording = 3


def derived_seed(seed: int, purpose: Purpose, number: int = 0) -> int:
    """A seed of its own for each purpose, and for each of several of one."""
    return int(np.random.SeedSequence([seed, purpose, number]).generate_state(1)[0])


def make(environment: str) -> gymnasium.Env[np.ndarray, np.ndarray]:
    """The environment of that id in gymnasium.

    Raises:
        KattnError: if there is none; if observations or actions are other than a row of numbers; if it has no limit of
            time, so that an episode may never end.
    """
    try:
        made = gymnasium.make(environment)
    except gymnasium.error.UnregisteredEnv:
        hint = did_you_mean(environment, [*ENVIRONMENTS, *gymnasium.registry])
        known = f"expected {', '.join(ENVIRONMENTS)} or an id of gymnasium's"
        raise KattnError(f'{known}, not "{environment}"{hint}') from None
    except (gymnasium.error.Error, ImportError) as error:
        raise KattnError(f"{environment}: cannot be made: {' '.join(str(error).split())}") from None
    for what, space in (("observations", made.observation_space), ("actions", made.action_space)):
        if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
            raise KattnError(f"{environment}: its {what} are {space}; expected a Box of one axis")
    if made.spec is None or made.spec.max_episode_steps is None:
        raise KattnError(f"{environment}: has no limit of time (max_episode_steps), so that an episode may never end")
    return made


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
        ended = bool(terminated), bool(truncated and not terminated)
        self._rows.append((self._observation, np.array(action), reward, *ended, after))
        self._observation = after
        return after, reward, terminated, truncated, info

    def taken(self) -> Steps:
        """The steps since the last call."""
        rows, self._rows = self._rows, []
        columns = zip(*rows, strict=True) if rows else [[]] * len(Steps._fields)
        kinds = (np.float32, np.float32, np.float32, np.bool_, np.bool_, np.float32)
        return Steps(*(np.array(column, dtype=kind) for column, kind in zip(columns, kinds, strict=True)))


def episodes(env: Recorder, act: Act, seed: int, stop: Callable[[], None]) -> Iterator[Steps]:
    """Episode after episode, without end; ``stop`` is called at every step, and may raise."""
    options = {"seed": seed}
    while True:
        observation, _ = env.reset(**options)
        options, ended = {}, False
        while not ended:
            stop()
            observation, _, terminated, truncated, _ = env.step(act(observation))
            ended = terminated or truncated
        yield env.taken()
