"""Names of environments, and D4RL's normalised score."""

from __future__ import annotations

import pytest

from kattn_cli.environments.names import ENVIRONMENTS, environment_id, normalised_score, short_name, target_returns


@pytest.mark.parametrize(
    ("name", "short", "identity"),
    [
        ("hopper", "hopper", "Hopper-v5"),
        ("Hopper-v4", "hopper", "Hopper-v4"),
        ("HalfCheetah", "halfcheetah", "HalfCheetah-v5"),
        ("walker2d-medium-v2", "walker2d", "walker2d-medium-v2"),
        ("hopper_medium_replay-v2", "hopper", "hopper_medium_replay-v2"),
        ("Pendulum-v1", "Pendulum-v1", "Pendulum-v1"),
        ("corridor", "corridor", "kattn/Corridor-v0"),
        ("kattn/Corridor-v0", "kattn/Corridor-v0", "kattn/Corridor-v0"),
    ],
)
def test_names(name: str, short: str, identity: str) -> None:
    assert (short_name(name), environment_id(name)) == (short, identity)


@pytest.mark.parametrize(
    ("environment", "mean_return", "score"),
    [
        ("hopper", -20.272305, 0.0),
        ("hopper", 3234.3, 100.0),
        ("Hopper-v5", 3600.0, 111.2365),
        ("halfcheetah", 12135.0, 100.0),
        ("HalfCheetah-v5", 0.0, 2.2567),
        ("walker2d", 4592.3, 100.0),
        ("walker2d", 1.629008, 0.0),
    ],
)
def test_normalised_score(environment: str, mean_return: float, score: float) -> None:
    assert normalised_score(environment, mean_return) == pytest.approx(score, abs=1e-4)


def test_what_no_paper_measured_has_no_score() -> None:
    assert normalised_score("Pendulum-v1", -150.0) is None
    assert target_returns("Pendulum-v1") == ()


def test_decision_transformers_targets() -> None:
    assert {name: target_returns(name) for name in ENVIRONMENTS} == {
        "halfcheetah": (12000.0, 6000.0),
        "hopper": (3600.0, 1800.0),
        "walker2d": (5000.0, 2500.0),
    }
