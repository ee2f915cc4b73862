"""``kattn train``, ``eval`` and ``plot`` of a Decision Transformer in the corridor: what is run, and when."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("gymnasium")
pytest.importorskip("h5py")

import h5py
import torch
from command_line import Said, kattn

from kattn_cli.environments.names import CORRIDOR
from kattn_cli.environments.scripted import STEPS
from kattn_cli.runs.csv_rows import append_rows, read_rows, write_rows
from kattn_cli.runs.run import Run
from kattn_cli.runs.weights import fingerprint, weights_path
from kattn_cli.tables.values import ROLLOUTS_CSV
from kattn_cli.tasks.control import rollouts

CPU = torch.device("cpu")
RECIPE = """\
name: corridor
seeds: [0, 1]
data: {{name: d4rl, path: {path}, context: 3, return_scale: 20.0}}
model: {{name: decision_transformer, dim: 16, depth: 2, heads: 2, mlp_ratio: 1.0, dropout: 0.1}}
attention: {{name: softmax, layers: {{-1: {{name: primal, s: 4, eta: 0.05, projection: data-independent}}}}}}
train: {{epochs: 1, batch_size: 64, lr: 1e-2, warmup_epochs: 0, label_smoothing: 0.0}}
"""
FEW = ("--target-return", 19, "--target-return=-19", "--episodes", 3)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the data and the runs of two seeds in ``results``. Not to be changed."""
    from kattn_cli.commands.data.collect.scripted import collect_scripted
    from kattn_cli.commands.train.train import train

    folder = tmp_path_factory.mktemp("control")
    path = collect_scripted(CORRIDOR, folder, 40 * STEPS, seed=0)
    (folder / "corridor.yaml").write_text(RECIPE.format(path=path), encoding="utf-8")
    train([str(folder / "corridor.yaml")], [], [], results=folder / "results", device=CPU)
    return folder


@pytest.fixture
def results(trained: Path, tmp_path: Path) -> Path:
    """A copy of the runs to write into."""
    return Path(shutil.copytree(trained / "results", tmp_path / "results"))


def acted(
    capfd: pytest.CaptureFixture[str], results: Path, *arguments: str | int, run: str = "corridor/0", code: int = 0
) -> Said:
    said = kattn(capfd, "eval", results / run, *arguments, "--device", "cpu")
    assert said.code == code, said.err
    return said


def rows(results: Path, seed: int = 0) -> list[dict[str, str]]:
    return read_rows(results / "corridor" / str(seed) / ROLLOUTS_CSV)


def numbers(found: list[dict[str, str]]) -> dict[tuple[str, str], str]:
    return {(row["target_return"], row["episode"]): row["return"] for row in found}


def test_a_row_an_episode(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = acted(capfd, results, *FEW, "--seed", 5)
    found, folder = rows(results), results / "corridor" / "0"
    assert list(found[0]) == [
        *("environment", "target_return", "episode", "seed", "checkpoint", "step", "weights"),
        *("return", "normalised_score", "length", "seconds"),
    ]
    assert sorted((row["target_return"], row["episode"]) for row in found) == [
        (target, str(episode)) for target in ("-19.0", "19.0") for episode in range(3)
    ]
    for row in found:
        assert (row["environment"], row["seed"], row["checkpoint"]) == (CORRIDOR, "5", "best")
        assert row["weights"] == fingerprint(weights_path(folder, "best"))
        assert (row["length"], row["normalised_score"]) == (str(STEPS), "")
        assert -20 < float(row["return"]) < 20
    assert len(Run(folder).manifest["measurements"]) == 1
    told = [float(row["return"]) for row in found if row["target_return"] == "19.0"]
    assert f"{sum(told) / 3:,.1f} ± " in said.out
    assert "normalised score" not in said.out


def test_what_was_run_is_kept_and_the_rest_goes_on(
    results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of an evaluation that was cut short, only the missing episodes are run, and come to the same."""
    first = acted(capfd, results, *FEW).out
    whole = rows(results)
    path = results / "corridor" / "0" / ROLLOUTS_CSV
    kept = [row for row in whole if (row["target_return"], row["episode"]) in {("19.0", "1"), ("-19.0", "2")}]
    write_rows(path, [])
    append_rows(path, kept)
    ran: list[int] = []
    whole_run = rollouts.rollouts

    def counted(policy: object, environments: object, jobs: list[object], **settings: object) -> object:
        ran.append(len(jobs))
        return whole_run(policy, environments, jobs, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(rollouts, "rollouts", counted)
    assert acted(capfd, results, *FEW).out.split("Return")[1] == first.split("Return")[1]
    assert ran == [4]
    assert numbers(rows(results)) == numbers(whole)
    acted(capfd, results, *FEW)
    acted(capfd, results, *FEW, "--quiet")
    assert ran == [4]
    assert len(Run(results / "corridor" / "0").manifest["measurements"]) == 2
    acted(capfd, results, *FEW, "--again")
    assert ran == [4, 6]
    assert numbers(rows(results)) == numbers(whole)
    assert len(rows(results)) == len(whole)


def test_seeds_and_targets_are_rows_of_their_own(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    acted(capfd, results, "--target-return", 19, "--episodes", 2)
    acted(capfd, results, "--target-return", 19, "--episodes", 2, "--seed", 1)
    acted(capfd, results, "--target-return", 0, "--episodes", 1)
    acted(capfd, results, "--target-return", 19, "--episodes", 1, "--checkpoint", "last")
    found = [(row["target_return"], row["seed"], row["checkpoint"]) for row in rows(results)]
    assert sorted(found) == sorted(
        [("19.0", "0", "best")] * 2 + [("19.0", "1", "best")] * 2 + [("0.0", "0", "best"), ("19.0", "0", "last")]
    )


def test_by_default_the_best_return_of_the_data(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Where no paper names a target."""
    acted(capfd, results, "--episodes", 1)
    (row,) = rows(results)
    assert 18 < float(row["target_return"]) < 19.6


def test_several_seeds_are_compared(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Mean and standard deviation of the runs' means."""
    said = acted(capfd, results, *FEW, run="corridor")
    means = [
        sum(float(row["return"]) for row in rows(results, seed) if row["target_return"] == "19.0") / 3
        for seed in (0, 1)
    ]
    spread = abs(means[0] - means[1]) / 2**0.5
    assert "Return, mean ± standard deviation over seeds" in said.out
    assert f"{sum(means) / 2:,.1f} ± {spread:,.1f}" in said.out


def test_processes_of_their_own_come_to_the_same(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    few = ("--target-return", 19, "--episodes", 2)
    acted(capfd, results, *few)
    expected = numbers(rows(results))
    acted(capfd, results, *few, "--workers", "--again")
    assert numbers(rows(results)) == expected


@pytest.mark.parametrize(
    ("option", "kinds"),
    [
        (["--corruptions"], "images or images with masks"),
        (["--ood", "a=b"], "images"),
        (["--window", 3], "text"),
        (["--limit", 5], "images or images with masks or sequences or text"),
        (["--split", "test"], "images or images with masks or sequences or text"),
    ],
)
def test_options_of_other_kinds_are_refused(
    option: list[str | int], kinds: str, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = acted(capfd, results, *option, code=2)
    assert said.err.strip() == f"{results / 'corridor/0'}: reads trajectories; {option[0]} is for runs on {kinds}"


def test_the_environment_must_be_that_of_the_data(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mujoco")
    path = results / "corridor" / "0" / "recipe.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("environment: null", "environment: hopper"), encoding="utf-8")
    assert "environment: hopper" in path.read_text(encoding="utf-8")
    said = kattn(capfd, "eval", results / "corridor/0", "--episodes", 1, "--device", "cpu")
    assert said.code == 2
    assert len(said.err.strip().splitlines()) == 1


def test_what_has_no_meaning_for_trajectories_is_a_fault_of_the_recipe(
    trained: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recipe = trained / "corridor.yaml"
    said = kattn(capfd, "train", recipe, "--dry-run", "data.choose_on=test", "data.classes=2")
    assert said.code == 2
    assert "data.choose_on  trajectories have no test split: the test is to act, by kattn eval" in said.err
    assert "data.classes    d4rl holds trajectories, which have none; leave this out" in said.err
    said = kattn(capfd, "train", recipe, "--dry-run", "data.validation=0.25")
    assert said.code == 0, said.err
    assert "600 train, 200 validation" in said.out


def test_plotted(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    acted(capfd, results, *FEW, run="corridor")
    said = kattn(capfd, "plot", results / "corridor", "--output", results / "figures", "--format", "png")
    assert said.code == 0, said.err
    assert (results / "figures" / "rollouts.png").stat().st_size > 10_000
    assert not (results / "figures" / "curves.png").exists(), "a single epoch makes no curve"


def test_only_the_corridor_has_a_script(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "data", "collect", "hopper", "--algorithm", "scripted", "--output", tmp_path)
    assert said.code == 2
    assert said.err.strip() == "--algorithm scripted: is of corridor; hopper has no script, take sac, td3 or ppo"


@pytest.mark.parametrize("name", ["corridor", CORRIDOR])
def test_the_corridor_is_scripted_unless_told_otherwise(
    name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = kattn(capfd, "data", "collect", name, "--output", tmp_path)
    assert said.out.strip() == str(tmp_path / "corridor_mixed.hdf5")
    with h5py.File(tmp_path / "corridor_mixed.hdf5") as file:
        assert (len(file["rewards"]), file.attrs["environment"]) == (4000, CORRIDOR)
