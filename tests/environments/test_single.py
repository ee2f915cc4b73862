"""One environment: whose it is, when it ends, and what is refused."""

from __future__ import annotations

import pytest

pytest.importorskip("gymnasium")

import gymnasium
from gymnasium.spaces import Box

from kattn_cli.environments.make import LONGEST, make_environment
from kattn_cli.environments.names import CORRIDOR
from kattn_cli.environments.scripted import Corridor
from kattn_cli.errors import KattnError


def test_short_names_are_those_of_the_papers() -> None:
    pytest.importorskip("mujoco")
    assert make_environment("hopper").spec.id == "Hopper-v5"  # type: ignore[union-attr]


def test_an_environment_without_an_end_ends_as_d4rls_do() -> None:
    gymnasium.register("kattn/Endless-v0", entry_point=f"{Corridor.__module__}:Corridor")
    assert make_environment("kattn/Endless-v0").spec.max_episode_steps == LONGEST  # type: ignore[union-attr]


def test_what_is_unknown_or_takes_no_vectors_is_refused() -> None:
    with pytest.raises(KattnError, match=r"^kattn/Coridor-v0: gymnasium has no such environment: .*Corridor"):
        make_environment("kattn/Coridor-v0")
    with pytest.raises(KattnError, match=r"^CartPole-v1: its actions are Discrete\(2\), and .* takes vectors \(Box\)$"):
        make_environment("CartPole-v1")


def test_the_corridor_takes_vectors() -> None:
    environment = make_environment(CORRIDOR)
    assert isinstance(environment.action_space, Box)
