"""The corridor: its closed forms are reached and never passed, and its behaviour has every skill."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")

import gymnasium
import numpy as np

from kattn_cli.commands.data.collect.scripted import collect_scripted
from kattn_cli.environments.scripted import (
    CORRIDOR,
    FARTHEST,
    NEAREST,
    STEPS,
    Corridor,
    best_return,
    scripted_trajectories,
    worst_return,
)


def distance(state: np.ndarray) -> float:
    return abs(float(state[1] - state[0]))


def played(seed: int, towards: float) -> tuple[float, float, int]:
    """Distance at the beginning, return and steps of always going ``towards`` the goal, or away from it."""
    environment = gymnasium.make(CORRIDOR)
    state, _ = environment.reset(seed=seed)
    began, reached, steps, over = distance(state), 0.0, 0, False
    while not over:
        _, reward, ended, over, _ = environment.step(np.array([towards * state[1]], np.float32))
        reached, steps = reached + float(reward), steps + 1
        assert not ended
    return began, reached, steps


@pytest.mark.parametrize("seed", range(8))
def test_the_closed_forms_are_reached(seed: int) -> None:
    began, best, steps = played(seed, 1.0)
    assert NEAREST <= began <= FARTHEST
    assert steps == STEPS
    assert best == pytest.approx(best_return(began), abs=1e-5)
    assert played(seed, -1.0)[1] == pytest.approx(worst_return(began), abs=1e-5)


def test_closed_forms_by_hand() -> None:
    """From 1 away five steps of 0.2 lead to the goal: 0.2 + 0.4 + 0.6 + 0.8 + 1, then 15 times 1."""
    assert best_return(1.0) == pytest.approx(18)
    assert worst_return(1.0) == pytest.approx(-18)
    assert best_return(0.5) == pytest.approx(0.7 + 0.9 + 18)


def test_nothing_is_better_than_best_or_worse_than_worst() -> None:
    draws = np.random.default_rng(0)
    for seed in range(50):
        environment = Corridor()
        state, _ = environment.reset(seed=seed)
        began = distance(state)
        reached = sum(environment.step(draws.uniform(-3, 3, 1).astype(np.float32))[1] for _ in range(STEPS))
        assert worst_return(began) < reached < best_return(began)


def test_the_environment_is_gymnasiums() -> None:
    from gymnasium.utils.env_checker import check_env

    check_env(Corridor(), skip_render_check=True)


def test_episodes_of_every_skill() -> None:
    arrays = scripted_trajectories(100, seed=1)
    assert {name: (values.shape, values.dtype.name) for name, values in arrays.items()} == {
        "observations": ((2000, 2), "float32"),
        "actions": ((2000, 1), "float32"),
        "rewards": ((2000,), "float32"),
        "next_observations": ((2000, 2), "float32"),
        "terminals": ((2000,), "bool"),
        "timeouts": ((2000,), "bool"),
    }
    assert np.flatnonzero(arrays["timeouts"]).tolist() == list(range(19, 2000, 20))
    towards = (arrays["actions"][:, 0] == arrays["observations"][:, 1]).reshape(100, STEPS).mean(1)
    assert (towards == 1).sum() == pytest.approx(20, abs=12)
    assert (towards == 0).sum() == pytest.approx(20, abs=12)
    inner = arrays["observations"].reshape(100, STEPS, 2)[:, 1:]
    assert np.array_equal(arrays["next_observations"].reshape(100, STEPS, 2)[:, :-1], inner)
    returns = arrays["rewards"].reshape(100, STEPS).sum(1)
    began = np.abs(np.subtract(*arrays["observations"].reshape(100, STEPS, 2)[:, 0].T))
    assert returns[towards == 1] == pytest.approx([best_return(one) for one in began[towards == 1]], abs=1e-4)
    assert returns[towards == 0] == pytest.approx([worst_return(one) for one in began[towards == 0]], abs=1e-4)


def test_a_seed_gives_the_same_episodes() -> None:
    one, two, other = (scripted_trajectories(5, seed)["observations"] for seed in (1, 1, 2))
    assert np.array_equal(one, two)
    assert not np.array_equal(one, other)


def test_the_file_names_its_environment(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = collect_scripted("corridor", tmp_path, transitions=3 * STEPS, seed=4)
    with h5py.File(path) as file:
        assert file.attrs["environment"] == CORRIDOR
        for name, values in scripted_trajectories(3, 4).items():
            assert np.array_equal(file[name][:], values)


def test_without_gymnasium_only_rollouts_are_missing() -> None:
    """The rest is imported, and one line says what to install."""
    code = (
        "import sys; sys.modules['gymnasium'] = None\n"
        "import importlib.util as u; found = u.find_spec\n"
        "u.find_spec = lambda name, *a: None if name == 'gymnasium' else found(name, *a)\n"
        "import kattn_cli.tasks.control.rollouts, kattn_cli.tasks.control.report, kattn_cli.models\n"
        "from kattn_cli.environments import make; make.find_spec = u.find_spec\n"
        "from kattn_cli.environments.make import make_environments\n"
        "try:\n    make_environments('hopper', 1)\nexcept Exception as error:\n    print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == (
        "KattnError to act in hopper needs gymnasium, which is not installed: pip install 'kattn[control]'"
    )
