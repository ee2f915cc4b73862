"""Vectors of environments: whose they are, when they end, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("gymnasium")

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from kattn_cli.environments.names import CORRIDOR
from kattn_cli.environments.parallel import LONGEST, make_environment, make_environments
from kattn_cli.environments.scripted import Corridor
from kattn_cli.errors import KattnError


def test_short_names_are_those_of_the_papers() -> None:
    pytest.importorskip("mujoco")
    environments = make_environments("hopper", 2)
    assert environments.num_envs == 2
    assert environments.single_observation_space.shape == (11,)
    assert environments.single_action_space.shape == (3,)
    assert make_environment("hopper").spec.id == "Hopper-v5"  # type: ignore[union-attr]


def test_an_episode_that_is_over_stays_so_until_it_is_reset() -> None:
    environments: Any = make_environments(CORRIDOR, 2)
    first = environments.reset(seed=[0, 1], options={"reset_mask": np.ones(2, bool)})[0]
    for _ in range(20):
        states, _, over, cut, _ = environments.step(np.zeros((2, 1), np.float32))
    assert not over.any()
    assert cut.all()
    again = environments.reset(seed=[0, 7], options={"reset_mask": np.array([True, False])})[0]
    assert np.array_equal(again[0], first[0])
    assert np.array_equal(again[1], states[1])


def test_an_environment_without_an_end_ends_as_d4rls_do() -> None:
    gymnasium.register("kattn/Endless-v0", entry_point=f"{Corridor.__module__}:Corridor")
    assert make_environment("kattn/Endless-v0").spec.max_episode_steps == LONGEST  # type: ignore[union-attr]


def test_what_is_unknown_or_takes_no_vectors_is_refused() -> None:
    with pytest.raises(KattnError, match=r"^kattn/Coridor-v0: gymnasium has no such environment: .*Corridor"):
        make_environments("kattn/Coridor-v0", 1)
    with pytest.raises(KattnError, match=r"^CartPole-v1: its actions are Discrete\(2\), and .* takes vectors \(Box\)$"):
        make_environments("CartPole-v1", 1)


def test_the_corridor_takes_vectors() -> None:
    environment = make_environment(CORRIDOR)
    assert isinstance(environment.action_space, Box)
