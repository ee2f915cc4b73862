"""The policies that data are collected with: stable-baselines3's, with the usual settings for MuJoCo."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from kattn_cli.commands.data.collect.episodes import Recorder
from kattn_cli.environments.make import make_environment
from kattn_cli.errors import KattnError, did_you_mean

ALGORITHMS: dict[str, type[BaseAlgorithm]] = {"sac": SAC, "td3": TD3, "ppo": PPO}
OURS = ("policy", "env", "seed", "device", "verbose", "tensorboard_log", "stats_window_size", "action_noise")
"""Arguments that are no hyperparameters, or that are not the user's to give."""
MODEL, REPLAY, NORMALISER = "model.zip", "replay.pkl", "normaliser.pkl"


class Learner:
    """A policy in training: ``model`` acts in ``recorders``, and PPO sees observations and rewards normalised."""

    def __init__(self, algorithm: str, environment: str, steps: int, given: Mapping[str, Any], seed: int) -> None:
        self.algorithm, self.environment, self.steps, self.given = algorithm, environment, steps, given
        self.recorders: list[Recorder] = []
        cls = ALGORITHMS[algorithm]
        set_random_seed(seed)
        try:
            self.model = cls("MlpPolicy", self._environments(), device="cpu", **self._arguments())
        except (TypeError, ValueError, AssertionError) as error:
            raise KattnError(f"--algorithm {algorithm}: {' '.join(str(error).split())}") from None

    @property
    def hyperparameters(self) -> dict[str, Any]:
        """All hyperparameters of the algorithm, as plain data."""
        defaults = {name: one.default for name, one in _parameters(self.algorithm).items()}
        chosen = {**defaults, **self._arguments(), "environments": len(self.recorders)}
        return {key: _plain(value) for key, value in chosen.items()}

    @property
    def bounds(self) -> dict[str, str]:
        """The bounds of an action, as JSON: the attributes ``action_low`` and ``action_high`` of a file."""
        space = self.recorders[0].action_space
        return {f"action_{name}": json.dumps(getattr(space, name).tolist()) for name in ("low", "high")}

    def begin(self, seed: int) -> None:
        """Begin new episodes, and draw all that is random anew from ``seed``."""
        self.model.set_random_seed(seed)
        self.model._last_obs = None  # so that learn() resets the environments
        for recorder in self.recorders:
            recorder.taken()

    def act(self, observation: np.ndarray) -> np.ndarray:
        """Return an action of the policy as it is trained: drawn where the policy is a distribution."""
        normaliser = self.model.get_vec_normalize_env()
        seen = normaliser.normalize_obs(observation) if normaliser else observation
        return self.model.predict(np.asarray(seen), deterministic=False)[0]

    def save(self, folder: Path) -> None:
        """Save all that is needed to go on training."""
        self.model.save(folder / MODEL)
        if isinstance(self.model, OffPolicyAlgorithm):
            self.model.save_replay_buffer(folder / REPLAY)
        if normaliser := self.model.get_vec_normalize_env():
            normaliser.save(str(folder / NORMALISER))

    def load(self, folder: Path) -> None:
        """Restore what :meth:`save` left; without a replay buffer there, fit for acting only."""
        self.model = ALGORITHMS[self.algorithm].load(folder / MODEL, env=self._environments(folder), device="cpu")
        if isinstance(self.model, OffPolicyAlgorithm) and (folder / REPLAY).exists():
            self.model.load_replay_buffer(folder / REPLAY)

    def _arguments(self) -> dict[str, Any]:
        """Return a copy of the arguments, since stable-baselines3 adds to what it is given."""
        return {**_usual(self.algorithm, self.environment, self.steps), **deepcopy(dict(self.given))}

    def _environments(self, folder: Path | None = None) -> VecEnv:
        count = 4 if self.algorithm == "ppo" else 1
        self.recorders = [Recorder(make_environment(self.environment)) for _ in range(count)]
        alone = DummyVecEnv([partial(_itself, recorder) for recorder in self.recorders])
        if self.algorithm != "ppo":
            return alone
        return VecNormalize.load(str(folder / NORMALISER), alone) if folder else VecNormalize(alone)


def _itself(recorder: Recorder) -> Recorder:
    return recorder


def unknown_hyperparameters(algorithm: str, given: Mapping[str, Any]) -> list[str]:
    """Return a line for each of ``given`` that the algorithm does not have."""
    known = _parameters(algorithm)
    return [
        f"{key}: no hyperparameter of stable-baselines3's {algorithm.upper()}{did_you_mean(key, known)}"
        for key in given
        if key not in known
    ]


def _parameters(algorithm: str) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(ALGORITHMS[algorithm]).parameters
    return {name: one for name, one in parameters.items() if name not in OURS and not name.startswith("_")}


def _usual(algorithm: str, environment: str, steps: int) -> dict[str, Any]:
    """Return arguments for which stable-baselines3's defaults are unusual for MuJoCo, or need a larger training."""
    if algorithm == "ppo":
        return {"n_steps": 512, "batch_size": 128, "n_epochs": 8}
    buffers = {"learning_starts": min(10_000, steps // 10), "buffer_size": min(1_000_000, steps)}
    if algorithm == "sac":
        return buffers
    space = make_environment(environment).action_space
    deviation = 0.1 * (space.high - space.low) / 2  # type: ignore[attr-defined]
    return {**buffers, "action_noise": NormalActionNoise(np.zeros_like(deviation), deviation)}


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | float | str | dict) else str(value)
