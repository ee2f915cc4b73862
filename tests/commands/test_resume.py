"""What a training goes on with, and what it refuses to go on with."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import torch

from kattn_cli.commands.list.listing import LISTS
from kattn_cli.commands.train.train import train
from kattn_cli.errors import RunError
from kattn_cli.runs.csv_rows import read_rows, write_rows
from kattn_cli.runs.find import all_runs
from kattn_cli.runs.run import Run

CPU = torch.device("cpu")


@pytest.fixture
def interrupted(trained: Path, tiny_recipe: Path, tmp_path: Path) -> tuple[Path, Run]:
    """A run that is complete but for its status, as a kill after the last epoch leaves it; and the results folder."""
    results = tmp_path / "results"
    shutil.copytree(trained, results)
    run = Run(results / "tiny" / "0")
    run.update(status="interrupted")
    return results, run


def resume(recipe: object, results: Path, *overrides: str, force: bool = False) -> list[Run]:
    return train([str(recipe)], overrides, [], results=results, device=CPU, resume=True, force=force)


def test_unchanged(interrupted: tuple[Path, Run], tiny_recipe: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results, run = interrupted
    (resumed,) = resume(tiny_recipe, results)
    assert resumed == run
    assert resumed.status == "finished"
    assert "going on from step 10 of 10; the recipe is unchanged" in capfd.readouterr().out


def test_a_run_from_before_an_option_is_unchanged_by_its_default(
    interrupted: tuple[Path, Run], tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, run = interrupted
    path = run.folder / "recipe.yaml"
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    older = [line for line in lines if not line.strip().startswith("standardise:")]
    assert len(older) < len(lines)
    path.write_text("".join(older), encoding="utf-8")
    with pytest.raises(RunError, match=r"another recipe: attention\.standardise was False and is True\."):
        resume(tiny_recipe, results, "attention.standardise=true")
    resume(tiny_recipe, results)
    assert "the recipe is unchanged" in capfd.readouterr().out


def test_changed_keys_are_named_and_refused(interrupted: tuple[Path, Run], tiny_recipe: Path) -> None:
    results, run = interrupted
    words = (
        rf"{run.folder}: was begun with another recipe: attention.layers.0.iterations was 2 and is 3; "
        r"train.lr was 0.005 and is 0.01\. --force goes on with the new one; without --resume a new run begins"
    )
    for named in (tiny_recipe, run.folder):
        with pytest.raises(RunError, match=words):
            resume(named, results, "train.lr=0.01", "attention.layers.0.iterations=3")
    assert run.status == "interrupted"


def test_force_goes_on_and_writes_down_what_changed(
    interrupted: tuple[Path, Run], tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, run = interrupted
    resume(tiny_recipe, results, "train.lr=0.01", force=True)
    assert "changed in the recipe: train.lr was 0.005 and is 0.01" in capfd.readouterr().out
    assert run.manifest["resumptions"][-1]["changes"] == ["train.lr was 0.005 and is 0.01"]
    assert "lr: 0.01\n" in (run.folder / "recipe.yaml").read_text()


@pytest.mark.parametrize("status", ["interrupted", "finished"])
def test_more_epochs_are_harmless(interrupted: tuple[Path, Run], tiny_recipe: Path, status: str) -> None:
    results, run = interrupted
    run.update(status=status)
    (resumed,) = resume(tiny_recipe, results, "train.epochs=3")
    assert resumed == run
    assert [row["epoch"] for row in read_rows(run.folder / "metrics.csv")] == ["1", "1", "2", "2", "3", "3"]
    with pytest.raises(RunError, match=r"train\.epochs was 3 and is 2"):
        resume(run.folder, results, "train.epochs=2")


def test_a_run_without_a_checkpoint_goes_on_with_the_recipe_it_says(
    interrupted: tuple[Path, Run], tiny_recipe: Path
) -> None:
    """It died in its first epoch: rows of the new training alone, its recipe and what changed written down."""
    results, run = interrupted
    shutil.rmtree(run.folder / "checkpoints")
    write_rows(run.folder / "metrics.csv", read_rows(run.folder / "metrics.csv")[:2])
    resume(run.folder, results, "train.lr=0.001", force=True)
    assert "lr: 0.001\n" in (run.folder / "recipe.yaml").read_text()
    assert run.manifest["resumptions"][-1]["step"] == 0
    assert len(read_rows(run.folder / "metrics.csv")) == 4
    assert run.label == "tiny train.lr=0.001"


@pytest.mark.parametrize("status", ["interrupted", "finished"])
def test_what_has_lost_its_state_is_not_trained_anew(
    interrupted: tuple[Path, Run], tiny_recipe: Path, status: str
) -> None:
    """Over its own rows and weights."""
    results, run = interrupted
    run.update(status=status)
    (run.folder / "checkpoints" / "resume.pt").unlink()
    (run.folder / "checkpoints" / "resume.previous.pt").unlink()
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    words = (
        f"{run.folder}: its state, checkpoints/resume.pt, is gone, so its training cannot go on. Put the file back, or "
        f"move the run away, or leave out --resume: a new run begins (init_from={run.folder} from its weights)"
    )
    for named in (tiny_recipe, run.folder):
        for force in (False, True):
            with pytest.raises(RunError) as caught:
                resume(named, results, "train.epochs=3", force=force)
            assert str(caught.value) == words
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before


def test_a_finished_run_of_another_recipe_is_left_alone_which_is_said(
    interrupted: tuple[Path, Run], tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, run = interrupted
    run.update(status="finished")
    (fresh,) = resume(tiny_recipe, results, "train.epochs=1", "train.warmup_epochs=0", "train.lr=0.01")
    assert fresh.folder == results / "tiny" / "0-2"
    out = capfd.readouterr().out
    words = r"train\.epochs was 2 and is 1; train\.lr was 0\.005 and is 0\.01"
    assert re.search(rf"^{run.folder}: is finished with another recipe: {words}; .*a new run begins$", out, re.M)
    assert re.search(r"^tiny/0-2 +epoch 1/1 ", out, re.M), "the bar names the run's folder"


def test_a_damaged_manifest_and_the_line_that_mends_it(
    interrupted: tuple[Path, Run], tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, run = interrupted
    before = run.manifest
    path = run.folder / "manifest.json"
    path.write_text(path.read_text()[:100])
    for named in (tiny_recipe, run.folder):
        with pytest.raises(RunError) as caught:
            resume(named, results)
        assert str(caught.value).startswith(f"{path}: cannot be read as a manifest (")
    line = re.search(r"or write ({.*}) there", str(caught.value))
    assert line
    path.write_text(line[1])
    assert [row[:2] for row in LISTS["runs"](results)] == [("tiny/0", "interrupted")]
    (mended,) = resume(tiny_recipe, results)
    assert mended == run
    for key in ("best_epoch", "best_validation_top1", "parameters", "chosen_on", "reads"):
        assert run.manifest[key] == before[key]


def test_a_run_of_another_host_is_gone_on_with(interrupted: tuple[Path, Run], tiny_recipe: Path) -> None:
    results, run = interrupted
    run.update(status="running", host="another", pid=1)
    (resumed,) = resume(tiny_recipe, results)
    assert resumed == run


def test_finished_runs_are_not_trained_again(
    interrupted: tuple[Path, Run], tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, run = interrupted
    run.update(status="finished")
    (found,) = resume(tiny_recipe, results)
    assert found == run
    assert f"{run.folder}: is finished" in capfd.readouterr().out


def test_a_run_that_is_trained_on_is_not_begun_anew(interrupted: tuple[Path, Run], tiny_recipe: Path) -> None:
    """Its recipe is still that of before for a moment."""
    results, run = interrupted
    run.begin()
    with pytest.raises(RunError, match="is running; there is nothing to resume"):
        resume(tiny_recipe, results, "train.epochs=7")
    assert all_runs(results) == [run]


def test_a_run_that_is_being_trained_is_left_alone(interrupted: tuple[Path, Run]) -> None:
    results, run = interrupted
    run.begin()
    with pytest.raises(RunError, match="is running; there is nothing to resume"):
        resume(run.folder, results)


def test_a_new_run_begins_where_there_is_none(tiny_recipe: Path, tmp_path: Path) -> None:
    (run,) = resume(tiny_recipe, tmp_path / "results")
    assert run.status == "finished"


def test_a_damaged_state_gives_way_to_the_one_before(
    interrupted: tuple[Path, Run], tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results, run = interrupted
    before = [row for row in read_rows(run.folder / "metrics.csv")]
    state = run.folder / "checkpoints" / "resume.pt"
    state.write_bytes(state.read_bytes()[:-100])
    resume(tiny_recipe, results)
    out = capfd.readouterr().out
    assert "using the one before it, step 5" in out
    assert "going on from step 5 of 10" in out
    times = ("seconds", "images_per_second")
    after = read_rows(run.folder / "metrics.csv")
    for one, other in zip(before, after, strict=True):
        assert {key: one[key] for key in one if key not in times} == {
            key: other[key] for key in one if key not in times
        }
