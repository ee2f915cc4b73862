"""Vectors of environments: when each ends."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("gymnasium")

import numpy as np

from kattn_cli.environments.make import make_environments
from kattn_cli.environments.names import CORRIDOR


def test_several_of_a_short_name() -> None:
    pytest.importorskip("mujoco")
    environments = make_environments("hopper", 2)
    assert environments.num_envs == 2
    assert environments.single_observation_space.shape == (11,)
    assert environments.single_action_space.shape == (3,)


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
