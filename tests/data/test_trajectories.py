"""D4RL's files and Minari's folders as windows: against a loop over steps; what is wrong with a file, in one line."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_trajectories import LENGTHS, arrays, write

from kattn_cli.commands.data.command import check_data
from kattn_cli.console import console
from kattn_cli.data import TrajectoryData
from kattn_cli.data.sets.d4rl import D4rl, read_d4rl
from kattn_cli.data.sets.minari import Minari
from kattn_cli.data.trajectories import TrajectoryFacts
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import TrajectorySection
from kattn_cli.tasks import load_data

pytestmark = pytest.mark.skipif(find_spec("h5py") is None, reason="the extra control is not installed")
needs_minari = pytest.mark.skipif(find_spec("minari") is None, reason="the extra control is not installed")


@pytest.fixture(autouse=True)
def _nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "shared"))


def section(**options: Any) -> TrajectorySection:
    return TrajectorySection(**{"name": "d4rl", **options})


def loaded(path: Path, **options: Any) -> TrajectoryData:
    data = load_data(section(path=str(path), **options))
    assert isinstance(data, TrajectoryData)
    return data


def test_windows_are_what_a_loop_over_the_steps_gives(tmp_path: Path) -> None:
    given = arrays()
    data = loaded(write(tmp_path / "hopper_medium-v2.hdf5", given), context=4, validation=0.2)
    bounds = np.cumsum((0, *LENGTHS))
    kept, held_out = [0, 1, 3, 4], [2]
    for name, episodes in (("train", kept), ("validation", held_out), ("test", held_out)):
        split = data.splits[name]  # type: ignore[index]
        windows, told = split.take(slice(None))
        row = 0
        for episode in episodes:
            first, last = bounds[episode], bounds[episode + 1]
            for start in range(first, last):
                steps = range(start, min(start + 4, last))
                count = len(steps)
                assert windows.mask[row].tolist() == [True] * count + [False] * (4 - count)
                togo = [given["rewards"][step:last].astype(np.float64).sum() for step in steps]
                assert windows.returns[row, :count, 0].tolist() == pytest.approx(togo, abs=1e-6)
                assert np.array_equal(windows.states[row, :count], given["observations"][steps])
                assert np.array_equal(windows.actions[row, :count], given["actions"][steps])
                assert windows.timesteps[row].tolist() == [step - first for step in steps] + [0] * (4 - count)
                for padding in (windows.returns, windows.states, windows.actions):
                    assert not padding[row, count:].any()
                row += 1
        assert row == len(split)
        assert torch.equal(told.values, windows.actions)
        assert told.mask is not None
        assert torch.equal(told.mask, windows.mask)
    assert windows.returns.dtype == windows.states.dtype == windows.actions.dtype == torch.float32
    assert (windows.timesteps.dtype, windows.mask.dtype) == (torch.int64, torch.bool)


def test_what_the_model_must_know(tmp_path: Path) -> None:
    given = arrays()
    data = loaded(write(tmp_path / "hopper_medium-v2.hdf5", given), validation=0.2, return_scale=10.0)
    bounds = np.cumsum((0, *LENGTHS))
    rows = np.concatenate([np.arange(bounds[one], bounds[one + 1]) for one in (0, 1, 3, 4)])
    returns = [given["rewards"][bounds[one] : bounds[one + 1]].sum() for one in (0, 1, 3, 4)]
    assert (data.environment, data.states, data.actions, data.context, data.longest) == ("hopper", 4, 2, 20, 6)
    assert data.mean == pytest.approx(given["observations"][rows].mean(0), abs=1e-6)
    assert data.std == pytest.approx(given["observations"][rows].std(0) + 1e-6, abs=1e-6)
    assert (data.action_low, data.action_high, data.return_scale) == ((-1, -1), (1, 1), 10.0)
    assert data.best_return == pytest.approx(max(returns))
    assert data.worst_return == pytest.approx(min(returns))
    assert data.unreadable() == []


def test_parts_of_a_split(tmp_path: Path) -> None:
    split = loaded(write(tmp_path / "hopper_medium-v2.hdf5", arrays()), context=4).splits["train"]
    whole, _ = split.take(slice(None))
    chosen = torch.tensor([7, 0, 3])
    for part in (split.subset(chosen).take(slice(None))[0], split.to(torch.device("cpu")).take(chosen)[0]):
        assert all(torch.equal(one, other[chosen]) for one, other in zip(part, whole, strict=True))
    assert len(split.first(5)) == 5
    assert len(split.first(None)) == len(split) == sum(LENGTHS) - LENGTHS[2]
    batches = [windows.states for windows, _ in split.batches(4)]
    assert torch.equal(torch.cat(batches), whole.states)
    assert {len(states) for states in batches[:-1]} == {4}


def test_five_percent_of_the_episodes_are_held_out_whole(tmp_path: Path) -> None:
    data = loaded(write(tmp_path / "hopper_medium-v2.hdf5", arrays((2,) * 40)))
    assert [len(data.splits[name]) for name in ("train", "validation", "test")] == [76, 4, 4]
    assert data.chosen_on == "validation"


def test_without_timeouts_an_episode_has_a_thousand_steps(tmp_path: Path) -> None:
    given = arrays((1200,), left=1500)
    del given["timeouts"]
    read = read_d4rl(write(tmp_path / "walker2d_medium-v0.hdf5", given), None)
    assert read.ends.tolist() == [999, 1199, 2199]
    assert read.left_out == 500


def test_rewards_may_have_a_second_axis_of_one(tmp_path: Path) -> None:
    given = arrays()
    flat = read_d4rl(write(tmp_path / "a.hdf5", given), "hopper")
    for name in ("rewards", "terminals", "timeouts"):
        given[name] = given[name][:, None]
    assert np.array_equal(read_d4rl(write(tmp_path / "b.hdf5", given), "hopper").returns, flat.returns)


def test_bounds_of_the_actions(tmp_path: Path) -> None:
    given = arrays()
    unknown = loaded(write(tmp_path / "a.hdf5", given, environment="Pendulum-v1"))
    assert unknown.environment == "Pendulum-v1"
    assert unknown.action_low == pytest.approx(given["actions"][: sum(LENGTHS)].min(0))
    said = loaded(
        write(tmp_path / "b.hdf5", given, environment="Pendulum-v1", action_low="[-2, -2]", action_high="[2, 3]")
    )
    assert (said.action_low, said.action_high) == ((-2, -2), (2, 3))


def changed(name: str, change: Callable[[np.ndarray], np.ndarray]) -> dict[str, np.ndarray]:
    given = arrays()
    return {**given, name: change(given[name])}


def put(array: np.ndarray, value: float) -> np.ndarray:
    array[3], array[5] = value, value
    return array


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {{"rewards": "reward"}.get(name, name): array for name, array in arrays().items()},
            'has no rewards, but actions, observations, reward, terminals, timeouts; did you mean "reward"?',
        ),
        (
            {"observations": arrays()["observations"]},
            "has no actions and no rewards and no terminals, but observations",
        ),
        ({}, "has no observations and no actions and no rewards and no terminals, but nothing"),
        (changed("rewards", lambda x: x[:-1]), "rewards: has 20 steps, and observations 21"),
        (changed("observations", lambda x: x[:, 0]), "observations: has shape (21,), expected (steps, observations)"),
        (changed("actions", lambda x: x[:, :0]), "actions: has shape (21, 0), expected (steps, actions)"),
        (changed("rewards", lambda x: np.stack([x, x], 1)), "rewards: has shape (21, 2), expected (steps,)"),
        (changed("actions", lambda x: x.astype("S4")), "actions: holds |S4, expected numbers"),
        (
            changed("rewards", lambda x: put(x, np.nan)),
            "rewards: 2 of 21 steps are not finite numbers, the first is step 3",
        ),
        (
            changed("observations", lambda x: put(x, np.inf)),
            "observations: 2 of 21 steps are not finite numbers, the first is step 3",
        ),
        (
            changed("actions", lambda x: put(x, 1.5)),
            "actions: 2 of 19 are out of the environment's bounds, the first is step 3",
        ),
        (
            {**arrays(), "terminals": np.zeros(21, bool), "timeouts": np.zeros(21, bool)},
            "holds no whole episode: none of its 21 steps ends one",
        ),
        (arrays((21,), left=0), "has one whole episode, and none can be held out to choose the best epoch by"),
    ],
)
def test_a_file_at_fault_is_refused_in_one_line(given: dict[str, np.ndarray], expected: str, tmp_path: Path) -> None:
    path = write(tmp_path / "hopper_medium-v2.hdf5", given)
    with pytest.raises(DataError) as refused:
        loaded(path)
    assert str(refused.value) == f"{path}: {expected}"


def test_bounds_of_another_width_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.hdf5", arrays(), environment="Pendulum-v1", action_low="[-2]", action_high="[2]")
    with pytest.raises(DataError, match=r"actions: have 2 dimensions, and the environment's bounds 1$"):
        loaded(path)


def test_what_is_no_hdf5_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hopper_medium-v2.hdf5"
    path.write_bytes(b"not at all" * 100)
    with pytest.raises(DataError, match=r"hopper_medium-v2.hdf5: cannot be read as HDF5: .*signature not found"):
        loaded(path)
    whole = write(tmp_path / "whole.hdf5", arrays()).read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"hopper_medium-v2.hdf5: cannot be read as HDF5: .*truncated file"):
        loaded(path)


def test_a_damaged_file_is_refused_wherever_the_damage_lies(tmp_path: Path) -> None:
    """Or read, where it lies in numbers or in padding."""
    path = tmp_path / "hopper_medium-v2.hdf5"
    whole = write(tmp_path / "whole.hdf5", arrays()).read_bytes()
    draw = random.Random(0)
    told = []
    for _ in range(150):
        damaged = bytearray(whole)
        for _ in range(draw.choice((1, 20))):
            damaged[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        path.write_bytes(damaged)
        try:
            read_d4rl(path, None)
        except DataError as error:
            told.append(str(error))
    assert len(told) > 20
    assert all(one.startswith(f"{path}: ") and "\n" not in one for one in told)


def test_an_unknown_environment_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "mine.hdf5", arrays())
    with pytest.raises(DataError, match=r"data.environment: neither an attribute nor the name of .*; give it, such as"):
        loaded(path)
    assert loaded(path, environment="Pendulum-v1").environment == "Pendulum-v1"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"choose_on": "test"}, "data.choose_on: trajectories have no test split: the test is to act"),
        ({"classes": 3}, "data.classes: d4rl holds trajectories, which have none; leave this out"),
        ({"level": "medium"}, "d4rl: data.path: names the file; leave out level"),
        ({"root": "/x"}, "d4rl: data.path: names the file; leave out root"),
    ],
)
def test_a_section_without_meaning_is_refused(options: dict[str, Any], expected: str, tmp_path: Path) -> None:
    path = write(tmp_path / "hopper_medium-v2.hdf5", arrays())
    with pytest.raises(DataError, match=f"^{re.escape(expected)}"):
        loaded(path, **options)


def test_files_are_found_by_environment_and_level(tmp_path: Path) -> None:
    source = D4rl(root=str(tmp_path), environment="hopper", level="medium_replay")
    assert source.missing().startswith(
        f"there is no hopper_medium_replay-v2.hdf5 or hopper_medium_replay.hdf5 in {tmp_path}; kattn data collect"
    )
    with pytest.raises(DataError, match=r"^d4rl: there is no hopper_medium_replay-v2.hdf5"):
        source.facts()
    write(tmp_path / "hopper_medium_replay.hdf5", arrays())
    assert source.missing() == ""
    assert source.facts() == TrajectoryFacts(states=4, actions=2, context=20)
    assert source.load().where == tmp_path / "hopper_medium_replay.hdf5"
    write(tmp_path / "hopper_medium_replay-v2.hdf5", arrays())
    assert source.load().where == tmp_path / "hopper_medium_replay-v2.hdf5"
    assert D4rl(root=str(tmp_path)).missing().startswith("data.environment: is missing; give hopper, halfcheetah or")
    assert D4rl(path=str(tmp_path / "x")).missing().startswith(f"data.path: there is no file {tmp_path / 'x'}; kattn")


def test_check_tells_episodes_and_score(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    given = arrays()
    given["rewards"][:] = 100.0
    path = write(tmp_path / "hopper_medium-v2.hdf5", given)
    check_data("d4rl", [f"path={path}"])
    assert capsys.readouterr().out.splitlines() == [
        f"{path}  no checksum known  {path.stat().st_size:,} bytes  states of 4 numbers, actions of 2",
        "d4rl: hopper, 5 episodes, 19 steps; states of 4 numbers, actions of 2; mean return 380.0 (100.0 to 600.0); "
        "normalised score 12.3; 2 steps of an unfinished last episode left out",
    ]
    path.write_bytes(b"x" * 999)
    with pytest.raises(
        DataError, match=r"d4rl: 1 file is damaged; remove what is and get it again: kattn data collect"
    ):
        check_data("d4rl", [f"path={path}"])
    assert "wrong checksum" in capsys.readouterr().out
    assert not console.quiet


def test_a_missing_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kattn_cli.data.trajectories import trajectory_set

    monkeypatch.setattr(trajectory_set, "find_spec", lambda name: None)
    path = write(tmp_path / "hopper_medium-v2.hdf5", arrays())
    expected = "d4rl: name: d4rl is read by h5py, which is not installed: pip install 'kattn[control]'"
    with pytest.raises(DataError, match=f"^{re.escape(expected)}$"):
        loaded(path)


def minari_folder(root: Path, monkeypatch: pytest.MonkeyPatch, lengths: tuple[int, ...], unfinished: int = 0) -> Path:
    """A data set that Minari itself writes; the last ``unfinished`` episodes neither end nor run out of time."""
    import minari
    from gymnasium.spaces import Box
    from minari.data_collector import EpisodeBuffer

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(root))
    draw = np.random.default_rng(0)
    buffers = []
    for number, steps in enumerate(lengths):
        ended = number < len(lengths) - unfinished
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations=draw.normal(size=(steps + 1, 3)).astype(np.float32),
                actions=draw.uniform(-2, 2, size=(steps, 1)).astype(np.float32),
                rewards=draw.normal(size=steps).tolist(),
                terminations=[False] * (steps - 1) + [ended and number % 2 == 0],
                truncations=[False] * (steps - 1) + [ended and number % 2 == 1],
            )
        )
    spaces = {"observation_space": Box(-np.inf, np.inf, (3,)), "action_space": Box(-2, 2, (1,))}
    minari.create_dataset_from_buffers("tiny/pendulum-v0", buffers, env="Pendulum-v1", **spaces)
    return root / "tiny" / "pendulum-v0"


@needs_minari
@pytest.mark.filterwarnings("ignore")
def test_minaris_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import minari

    folder = minari_folder(tmp_path, monkeypatch, (4, 6, 3, 5), unfinished=1)
    data = load_data(section(name="minari", root=str(folder), context=5))
    assert isinstance(data, TrajectoryData)
    assert (data.environment, data.states, data.actions, data.longest) == ("Pendulum-v1", 3, 1, 6)
    assert (data.action_low, data.action_high) == ((-2,), (2,))
    train = data.splits["train"].take(slice(None))[0]
    assert len(data.splits["train"]) == 4 + 3
    episodes = list(minari.load_dataset("tiny/pendulum-v0").iterate_episodes())
    assert np.array_equal(train.states[0, :4], episodes[0].observations[:-1])
    assert np.array_equal(train.actions[4, :3], episodes[2].actions)
    assert float(train.returns[4, 0]) == pytest.approx(episodes[2].rewards.sum(), abs=1e-6)
    source = Minari(root=str(folder), context=5)
    assert source.load().left_out == 5
    assert source.facts() == TrajectoryFacts(states=3, actions=1, context=5)
    assert source.missing() == ""


@needs_minari
@pytest.mark.filterwarnings("ignore")
def test_minaris_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Minari(root=str(tmp_path)).missing().startswith(f"there is no {tmp_path / 'data' / 'metadata.json'} or ")
    folder = minari_folder(tmp_path, monkeypatch, (4, 6), unfinished=2)
    with pytest.raises(DataError, match=r"holds no whole episode: none of its 10 steps ends one"):
        Minari(root=str(folder)).load()
    (folder / "data" / "main_data.hdf5").write_bytes(b"x")
    with pytest.raises(DataError, match=f"^{folder}: Minari cannot read it: "):
        Minari(root=str(folder)).load()
    (folder / "data" / "metadata.json").write_text("{}")
    with pytest.raises(DataError, match=f"^{folder}: Minari cannot read it"):
        Minari(root=str(folder)).facts()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda file: file.__delitem__("rewards"), "has no rewards, but "),
        (lambda file: replaced(file, "rewards", np.zeros(3, np.float32)), "rewards: has 3 steps, and observations 21"),
        (lambda file: replaced(file, "actions", np.array([b"a"] * 21)), "actions: holds |S1, expected numbers"),
        (
            lambda file: file.attrs.update(action_low="[", action_high="[1, 1]"),
            "action_low: expected a list of numbers",
        ),
        (lambda file: file.attrs.update(action_low="[0, 0]", action_high="[1]"), "actions: have 2 dimensions"),
        (
            lambda file: endless(file, "observations"),
            "observations: has shape (2000000000, 4), more than a file of this",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_line_with_its_key(change: Any, expected: str, tmp_path: Path) -> None:
    import h5py

    path = write(tmp_path / "hopper.hdf5", arrays())
    with h5py.File(path, "a") as file:
        change(file)
    with pytest.raises(DataError) as error:
        read_d4rl(path, "hopper")
    assert str(error.value).startswith(f"{path}: {expected}")
    assert len(str(error.value).splitlines()) == 1


def replaced(file: Any, name: str, array: np.ndarray) -> None:
    del file[name]
    file[name] = array


def endless(file: Any, name: str) -> None:
    """An array of 32 GB of which nothing is written."""
    del file[name]
    file.create_dataset(name, shape=(2_000_000_000, 4), dtype=np.float32, chunks=(1000, 4))
