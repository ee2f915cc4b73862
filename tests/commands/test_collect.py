"""``kattn data collect``: D4RL's levels of a policy, the same for one seed, also when stopped and gone on with."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import pickle
import shutil
import signal
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kattn_cli import cli
from kattn_cli.commands.data.collect.command import collect
from kattn_cli.commands.data.collect.settings import CollectionSettings, hyperparameters_of
from kattn_cli.errors import CheckpointError, KattnError, Stopped

NEEDED = ("gymnasium", "mujoco", "stable_baselines3", "h5py")
pytestmark = pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="the extra control is not installed")

SMALL = {"policy_kwargs": {"net_arch": [8]}, "batch_size": 16}
SAC = CollectionSettings("InvertedPendulum-v5", "sac", 200, 50, 80, 3, hyperparameters={**SMALL, "learning_starts": 20})
PPO = replace(SAC, algorithm="ppo", hyperparameters={**SMALL, "n_steps": 32, "n_epochs": 1})
TD3 = replace(SAC, algorithm="td3")


def sac(**given: Any) -> CollectionSettings:
    return replace(SAC, hyperparameters={**SAC.hyperparameters, **given})


LEAN = sac(optimize_memory_usage=True, replay_buffer_kwargs={"handle_timeout_termination": False}, ent_coef=0.1)
CIRCULAR = sac(buffer_size=50)
EXPLORING = sac(use_sde=True)
LEVELS = ("random", "medium", "expert", "medium_replay", "medium_expert")


def made(folder: Path, settings: CollectionSettings = SAC) -> dict[str, Path]:
    return dict(zip(LEVELS, collect(settings, output=folder, threads=1), strict=True))


def arrays(path: Path) -> dict[str, np.ndarray]:
    import h5py

    with h5py.File(path) as file:
        return {name: file[name][:] for name in file}


def attributes(path: Path) -> dict[str, Any]:
    import h5py

    with h5py.File(path) as file:
        return dict(file.attrs)


def returns(one: dict[str, np.ndarray]) -> list[float]:
    ends = np.flatnonzero(one["terminals"] | one["timeouts"]) + 1
    return [float(part.sum()) for part in np.split(one["rewards"], ends)[:-1]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Not to be changed."""
    return made(tmp_path_factory.mktemp("collected"))


@pytest.mark.parametrize("level", LEVELS)
def test_files_have_d4rls_layout_and_whole_episodes(files: dict[str, Path], level: str) -> None:
    one = arrays(files[level])
    steps = len(one["rewards"])
    assert {name: (array.dtype, array.shape) for name, array in one.items()} == {
        "observations": (np.float32, (steps, 4)),
        "actions": (np.float32, (steps, 1)),
        "rewards": (np.float32, (steps,)),
        "terminals": (np.bool_, (steps,)),
        "timeouts": (np.bool_, (steps,)),
        "next_observations": (np.float32, (steps, 4)),
    }
    ended = one["terminals"] | one["timeouts"]
    assert ended[-1]
    assert not (one["terminals"] & one["timeouts"]).any()
    assert np.array_equal(one["next_observations"][:-1][~ended[:-1]], one["observations"][1:][~ended[:-1]])
    assert not np.array_equal(one["next_observations"][:-1][ended[:-1]], one["observations"][1:][ended[:-1]])
    assert np.abs(one["actions"]).max() <= 3
    said = attributes(files[level])
    assert (said["environment"], said["level"]) == ("InvertedPendulum-v5", level)
    assert said["transitions"] == steps
    assert said["episodes"] == ended.sum()
    assert said["mean_return"] == pytest.approx(np.mean(returns(one)))


def test_levels_are_what_their_names_say(files: dict[str, Path]) -> None:
    each = {level: arrays(path) for level, path in files.items()}
    folder = files["random"].parent
    record = json.loads((folder / "invertedpendulum-v5_collect.json").read_text())
    table = list(csv.DictReader((folder / "invertedpendulum-v5_collect.csv").open()))
    assert [int(row["step"]) for row in table] == [80, 160, 200]
    best = max(table, key=lambda row: float(row["mean_return"]))
    assert record["policies"]["expert"]["step"] == int(best["step"])
    random = record["files"]["invertedpendulum-v5_random.hdf5"]["mean_return"]
    least = min(random + 0.333 * (float(best["mean_return"]) - random), float(best["mean_return"]))
    medium = next(row for row in table if float(row["mean_return"]) >= least)
    assert record["policies"]["medium"]["step"] == int(medium["step"])
    for level in ("random", "medium", "expert"):
        ends = np.flatnonzero(each[level]["terminals"] | each[level]["timeouts"])
        assert ends[-2] + 1 < 50 <= ends[-1] + 1
    steps, cut = int(medium["step"]), sum(int(row["cut"]) for row in table[: table.index(medium) + 1])
    assert len(each["medium_replay"]["rewards"]) == steps - cut
    both = each["medium_expert"]
    half = np.flatnonzero(each["medium"]["terminals"])
    half = half[np.searchsorted(half, 24)] + 1
    assert np.array_equal(both["observations"][:half], each["medium"]["observations"][:half])
    rest = len(both["rewards"]) - half
    assert rest >= 25
    assert np.array_equal(both["observations"][half:], each["expert"]["observations"][:rest])


def test_the_record_says_where_the_files_come_from(files: dict[str, Path]) -> None:
    record = json.loads((files["random"].parent / "invertedpendulum-v5_collect.json").read_text())
    assert record["status"] == "finished"
    assert record["environment"] == "InvertedPendulum-v5"
    assert {"gymnasium", "mujoco", "stable-baselines3"} <= set(record["provenance"]["versions"])
    assert record["hyperparameters"]["batch_size"] == 16
    assert record["hyperparameters"]["gamma"] == 0.99
    assert record["provenance"]["versions"]["torch"]
    for path in files.values():
        assert record["files"][path.name]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    assert not (files["random"].parent / "invertedpendulum-v5_collect").exists()


def test_one_seed_one_set_of_files(files: dict[str, Path], tmp_path: Path) -> None:
    again = made(tmp_path / "again")
    assert all(again[level].read_bytes() == files[level].read_bytes() for level in LEVELS)
    other = made(tmp_path / "other", replace(SAC, seed=1))
    assert not any(np.array_equal(arrays(other[level])["rewards"], arrays(files[level])["rewards"]) for level in LEVELS)


def killed_after_a_stretch(folder: Path, settings: CollectionSettings) -> Path:
    """Return the folder of the one stretch that is kept."""
    from kattn_cli.commands.data.collect.training import Training

    with pytest.MonkeyPatch.context() as patch:
        evaluated = Training._evaluated

        def killed(self: Training, stop: Any) -> list[float]:
            if len(self.evaluations) == 1:
                raise MemoryError
            return evaluated(self, stop)

        patch.setattr(Training, "_evaluated", killed)
        with pytest.raises(MemoryError):
            made(folder, settings)
    return next((folder / "invertedpendulum-v5_collect").glob("[0-9]*"))


@pytest.mark.parametrize(
    "settings", [PPO, TD3, LEAN, CIRCULAR, EXPLORING], ids=["ppo", "td3", "lean", "circular", "exploring"]
)
def test_what_was_killed_goes_on_as_if_it_had_not_been(settings: CollectionSettings, tmp_path: Path) -> None:
    whole = made(tmp_path / "whole", settings)
    killed_after_a_stretch(tmp_path / "killed", settings)
    assert len(list((tmp_path / "killed" / "invertedpendulum-v5_collect").glob("[0-9]*"))) == 1
    assert not list((tmp_path / "killed").glob("*.hdf5"))
    gone_on = made(tmp_path / "killed", settings)
    assert all(gone_on[level].read_bytes() == whole[level].read_bytes() for level in LEVELS)


class Trap:
    """What runs code as soon as it is unpickled."""

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return os.mkdir, ("sprung",)


@pytest.mark.parametrize("settings", [SAC, PPO], ids=["sac", "ppo"])
def test_no_pickle_in_a_folder_is_ever_read(
    settings: CollectionSettings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a pickle lies, also with its right checksum: the files of arrays, or those of a former format."""
    stretch = killed_after_a_stretch(tmp_path / "made", settings)
    monkeypatch.chdir(tmp_path)
    trap = pickle.dumps(Trap())
    held = io.BytesIO()
    np.savez(held, Trap())  # type: ignore[arg-type]
    assert not list(stretch.glob("*.pkl"))
    assert not list(stretch.glob("*.zip"))
    for path in stretch.glob("*.npz"):
        before = path.read_bytes(), (stretch / "facts.json").read_text()
        for content in (trap, held.getvalue()):
            facts = json.loads(before[1])
            facts["sha256"][path.name] = hashlib.sha256(content).hexdigest()
            path.write_bytes(content)
            (stretch / "facts.json").write_text(json.dumps(facts))
            with pytest.raises(
                CheckpointError, match=rf"{path}: is no file of plain arrays; remove .*_collect to begin"
            ):
                made(tmp_path / "made", replace(settings, steps=200))
        path.write_bytes(before[0])
        (stretch / "facts.json").write_text(before[1])
    for name in ("model.zip", "replay.pkl", "normaliser.pkl"):
        (stretch / name).write_bytes(trap)
    assert made(tmp_path / "made", settings)
    assert not (tmp_path / "sprung").exists()


def test_a_folder_of_the_former_format_is_refused(tmp_path: Path) -> None:
    stretch = killed_after_a_stretch(tmp_path, SAC)
    for path in stretch.iterdir():
        path.unlink()
    (stretch / "model.zip").write_bytes(pickle.dumps(Trap()))
    (stretch / "evaluation.json").write_text('{"step": 80}')
    with pytest.raises(
        CheckpointError, match=r"^\S+: was kept by an earlier version as pickles, which are not read"
    ) as e:
        made(tmp_path)
    assert f"remove {stretch.parent} to begin the training anew" in str(e.value)
    shutil.rmtree(stretch.parent)
    assert made(tmp_path)


def damages(content: bytes, seed: int = 0) -> list[bytes]:
    draw = np.random.default_rng(seed)
    flipped = [bytearray(content) for _ in range(4)]
    for one in flipped:
        one[int(draw.integers(len(one)))] ^= 1 << int(draw.integers(8))
    return [b"", content[: len(content) // 2], content[:-1], b"no such thing", *map(bytes, flipped)]


@pytest.mark.parametrize("name", ["policy.npz", "replay.npz", "steps.npz"])
def test_damaged_arrays_are_said_and_never_gone_on_with(name: str, tmp_path: Path) -> None:
    path = killed_after_a_stretch(tmp_path, SAC) / name
    content = path.read_bytes()
    for damaged in damages(content):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match=rf"^{path}: is damaged \(its checksum is another\); remove "):
            made(tmp_path)
    path.unlink()
    with pytest.raises(CheckpointError, match=rf"^{path}: cannot be read: No such file or directory; remove "):
        made(tmp_path)
    path.mkdir()
    with pytest.raises(CheckpointError, match=rf"^{path}: cannot be read: Is a directory; remove "):
        made(tmp_path)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ("", r"facts.json: is cut short or damaged"),
        ("[" * 100_000, r"facts.json: is cut short or damaged"),
        ('{"facts": 1}', r"facts.json: is cut short or damaged"),
        ({"evaluation": {"step": 80}}, r"facts.json: has no evaluation"),
        ({"number": 1}, r"000000080: a stretch before it is gone"),
        ({"replay": None}, r"000000080: is not of such a training"),
        (
            {"replay": {"pos": 10**6, "full": False}},
            r"000000080: is not of such a training: the replay buffer has no pl",
        ),
        ({"replay": {"pos": 3, "full": False}}, r"000000080: is not of such a training: observations of the replay "),
        ({"steps": "many"}, r"000000080: is not of such a training: invalid literal"),
    ],
)
def test_damaged_facts_are_said(change: str | dict[str, Any], expected: str, tmp_path: Path) -> None:
    path = killed_after_a_stretch(tmp_path, SAC) / "facts.json"
    if isinstance(change, dict):
        there = json.loads(path.read_text())
        change = json.dumps({**there, "facts": {**there["facts"], **change}})
    path.write_text(change)
    with pytest.raises(CheckpointError, match=expected) as error:
        made(tmp_path)
    assert len(str(error.value).splitlines()) == 1


def test_ctrl_c_keeps_what_there_is(files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kattn_cli.commands.data.collect.training import Training

    with monkeypatch.context() as patch:
        evaluated = Training._evaluated

        def interrupted(self: Training, stop: Any) -> list[float]:
            if len(self.evaluations) == 2:
                os.kill(os.getpid(), signal.SIGINT)
            return evaluated(self, stop)

        patch.setattr(Training, "_evaluated", interrupted)
        with pytest.raises(Stopped, match=r"keeps 160 steps, and the same command goes on") as stopped:
            made(tmp_path)
    assert stopped.value.code == 130
    gone_on = made(tmp_path)
    assert all(gone_on[level].read_bytes() == files[level].read_bytes() for level in LEVELS)


def test_what_is_finished_stays_and_other_settings_are_refused(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    folder = files["random"].parent
    before = {path: path.stat().st_mtime_ns for path in files.values()}
    assert made(folder) == files
    assert "is finished; there is nothing to do" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in files.values()} == before
    with pytest.raises(KattnError, match=r"was begun with steps 200 and not 300; take another --output, or remove it"):
        made(folder, replace(SAC, steps=300))


def test_files_of_unknown_origin_are_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "hopper_medium.hdf5").write_bytes(b"d4rl's own")
    with pytest.raises(KattnError, match=r"has hopper_medium.hdf5 already; take another --output"):
        made(tmp_path, replace(SAC, environment="hopper"))


def test_a_file_that_is_gone_is_said(tmp_path: Path) -> None:
    there = made(tmp_path, replace(SAC, steps=80))
    there["expert"].unlink()
    with pytest.raises(KattnError, match=r"was finished, and .*_expert.hdf5 is gone; get it back, or remove both"):
        made(tmp_path, replace(SAC, steps=80))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            ["hoper"],
            "hoper: gymnasium has no such environment: Environment `hoper` doesn't exist. Did you mean: `Hopper`?",
        ),
        (["CartPole-v1"], "CartPole-v1: its actions are Discrete(2), and a policy here takes vectors (Box)"),
        (["hopper", "learningrate=1"], 'SAC; did you mean "learning_rate"?'),
        (["hopper", "gamma"], "gamma: expected key=value, a hyperparameter such as learning_rate=1e-3"),
        (["hopper", "--algorithm", "ppo", "batch_size=0"], "--algorithm ppo: "),
    ],
)
def test_wrong_input(
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["kattn", "data", "collect", *arguments, "--output", str(tmp_path)])
    with pytest.raises(SystemExit) as left:
        cli.main()
    err = capfd.readouterr().err
    assert left.value.code == 2
    assert expected in err
    assert len(err.splitlines()) == 1
    assert not [path for path in tmp_path.iterdir() if not path.name.endswith(".lock")]


def test_a_stretch_in_which_no_episode_ends_is_refused_at_once(tmp_path: Path) -> None:
    with pytest.raises(KattnError, match=r"^--evaluate-every 1: no episode came to its end within so many steps$"):
        made(tmp_path, replace(SAC, evaluate_every=1))


def test_hyperparameters_are_yaml() -> None:
    given = hyperparameters_of(["learning_rate=1e-3", "policy_kwargs={net_arch: [8]}"])
    assert given == {"learning_rate": 1e-3, "policy_kwargs": {"net_arch": [8]}}


def test_a_missing_package_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kattn_cli.environments import make as extra

    monkeypatch.setattr(extra, "find_spec", lambda name: None if name == "stable_baselines3" else object())
    expected = r"kattn data collect needs stable_baselines3, which is not installed: pip install 'kattn\[control\]'"
    with pytest.raises(KattnError, match=expected):
        made(tmp_path)
