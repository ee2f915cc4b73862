"""The policies that data are collected with: stable-baselines3's, with the usual settings for MuJoCo."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from stable_baselines3 import PPO, SAC, TD3
from stable_baselines3.common.base_class import BaseAlgorithm, recursive_getattr
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from kattn_cli.commands.data.collect.episodes import Recorder
from kattn_cli.commands.data.collect.kept import Kept
from kattn_cli.environments.make import make_environment
from kattn_cli.errors import CheckpointError, KattnError, did_you_mean

ALGORITHMS: dict[str, type[BaseAlgorithm]] = {"sac": SAC, "td3": TD3, "ppo": PPO}
OURS = ("policy", "env", "seed", "device", "verbose", "tensorboard_log", "stats_window_size", "action_noise")
"""Arguments that are no hyperparameters, or that are not the user's to give."""
POLICY, REPLAY = "policy", "replay"
"""The names of kept arrays."""


class Learner:
    """A policy in training: ``model`` acts in ``recorders``, and PPO sees observations and rewards normalised."""

    def __init__(self, algorithm: str, environment: str, steps: int, given: Mapping[str, Any], seed: int) -> None:
        self.algorithm, self.environment, self.steps, self.given = algorithm, environment, steps, given
        self.seed = seed
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

    def facts(self) -> dict[str, Any]:
        """Return the counts that are needed to go on training."""
        replay = {"pos": self._replay.pos, "full": self._replay.full} if self._replay else None
        counts = {"steps": self.model.num_timesteps, "updates": self.model._n_updates}
        return {**counts, "episodes": self.model._episode_num, "replay": replay}

    def arrays(self) -> dict[str, dict[str, np.ndarray]]:
        """Return the arrays that are needed to go on training; those of :data:`REPLAY` are not needed to act."""
        policy = {
            f"{name}/{key}": tensor.detach().numpy()
            for name, state in self.model.get_parameters().items()
            for key, tensor in _tensors_of(state).items()
        }
        variables = {name: recursive_getattr(self.model, name).detach().numpy() for name in self._variables}
        arrays = {POLICY: {**policy, **variables, **self._normaliser}}
        return {**arrays, REPLAY: dict(self._remembered())} if self._replay else arrays

    def load(self, kept: Kept, *, to_train: bool) -> None:
        """Restore :meth:`facts` and :meth:`arrays`; without ``to_train``, what acting needs.

        Raises:
            CheckpointError: if a file is damaged, or not of a policy like this one.
        """
        policy = kept.arrays(POLICY)
        replay = kept.arrays(REPLAY) if to_train and self._replay else {}
        # Whatever is drawn on the way depends on the seed alone, and not on what was drawn before.
        set_random_seed(self.seed)
        try:
            self._load_policy(policy)
            self.model.num_timesteps = int(kept.facts["steps"])
            self.model._n_updates = int(kept.facts["updates"])
            self.model._episode_num = int(kept.facts["episodes"])
            if to_train and self._replay:
                self._load_replay(replay, **kept.facts["replay"])
        except (KeyError, ValueError, TypeError, RuntimeError, IndexError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise CheckpointError(f"{kept.folder}: is not of such a training: {reason}") from None

    def _load_policy(self, arrays: Mapping[str, np.ndarray]) -> None:
        states = self.model.get_parameters()
        for name, state in states.items():
            prefix = f"{name}/"
            found = {key.removeprefix(prefix): one for key, one in arrays.items() if key.startswith(prefix)}
            states[name] = _with_tensors(state, {key: torch.from_numpy(one) for key, one in found.items()})
        self.model.set_parameters(states, exact_match=True, device="cpu")  # type: ignore[arg-type]
        for name in self._variables:
            variable = recursive_getattr(self.model, name)
            variable.data = torch.from_numpy(arrays[name]).view_as(variable)
        for name, one in self._normaliser.items():
            statistics, _, moment = name.partition(".")
            new = arrays[name].reshape(one.shape)
            setattr(getattr(self.model.get_vec_normalize_env(), statistics), moment, new if new.ndim else float(new))
        if self.model.use_sde:
            self.model.policy.reset_noise()  # type: ignore[operator]

    @property
    def _variables(self) -> list[str]:
        """The names of tensors that no module has, such as the weight of SAC's entropy."""
        return self.model._get_torch_save_params()[1]

    @property
    def _normaliser(self) -> dict[str, np.ndarray]:
        """The moments of observations and returns by which PPO's are normalised."""
        if (normaliser := self.model.get_vec_normalize_env()) is None:
            return {}
        return {
            f"{statistics}.{moment}": np.asarray(getattr(getattr(normaliser, statistics), moment))
            for statistics in ("obs_rms", "ret_rms")
            for moment in ("mean", "var", "count")
        }

    @property
    def _replay(self) -> ReplayBuffer | None:
        return self.model.replay_buffer if isinstance(self.model, OffPolicyAlgorithm) else None

    def _remembered(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield the replay buffer's arrays as far as they are filled."""
        assert self._replay is not None
        # One row more: where observations are not kept twice, it holds what followed the last step.
        used = self._replay.buffer_size if self._replay.full else self._replay.pos + 1
        for name, array in vars(self._replay).items():
            if isinstance(array, np.ndarray):
                yield name, array[:used]

    def _load_replay(self, arrays: Mapping[str, np.ndarray], pos: int, full: bool) -> None:
        assert self._replay is not None
        if not 0 <= pos < self._replay.buffer_size:
            raise ValueError(f"the replay buffer has no place {pos}")
        self._replay.pos, self._replay.full = pos, full
        for name, mine in self._remembered():
            if (mine.shape, mine.dtype) != (arrays[name].shape, arrays[name].dtype):
                raise ValueError(f"{name} of the replay buffer are {arrays[name].shape}, expected {mine.shape}")
            mine[:] = arrays[name]

    def _arguments(self) -> dict[str, Any]:
        """Return a copy of the arguments, since stable-baselines3 adds to what it is given."""
        return {**_usual(self.algorithm, self.environment, self.steps), **deepcopy(dict(self.given))}

    def _environments(self) -> VecEnv:
        count = 4 if self.algorithm == "ppo" else 1
        self.recorders = [Recorder(make_environment(self.environment)) for _ in range(count)]
        alone = DummyVecEnv([partial(_itself, recorder) for recorder in self.recorders])
        return VecNormalize(alone) if self.algorithm == "ppo" else alone


def _itself(recorder: Recorder) -> Recorder:
    return recorder


def _tensors_of(state: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """Return the tensors of a module, or of an optimizer, whose settings come from the hyperparameters."""
    if "param_groups" not in state:
        return dict(state)
    return {f"{index}/{key}": one for index, moments in state["state"].items() for key, one in moments.items()}


def _with_tensors(state: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """Return a state like ``state`` with ``tensors`` as :func:`_tensors_of` gives them."""
    if "param_groups" not in state:
        return dict(tensors)
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, one in tensors.items():
        index, _, key = name.partition("/")
        moments.setdefault(int(index), {})[key] = one
    return {**state, "state": moments}


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
