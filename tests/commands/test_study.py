"""``kattn study`` from the file to the page."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from command_line import Said, kattn

from kattn_cli.runs.csv_rows import read_rows

RECIPE = """\
name: tiny
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 1, heads: 2}
train: {epochs: 1, batch_size: 256, lr: 5e-3}
variants:
  softmax: {attention: softmax}
  symmetric: {attention: symmetric}
  rpc: {attention: {name: rpc, iterations: 2, lambda: 4}}
"""
STUDY = """\
question: Does RPC-Attention beat softmax attention?
seeds: [0, 1, 2]
arms:
  softmax: {folder}/tiny.yaml/softmax
  rpc: {folder}/tiny.yaml/rpc
measures:
  clean: {{run: eval, where: {{split: test, severity: 0}}, margin: 20}}
  noise: {{run: attack --noise --epsilon 4/255 --no-checks, where: {{attack: noise}}, images: 50, margin: 20}}
comparisons:
  - {{first: rpc, second: softmax, primary: true}}
"""


def write_study(folder: Path, text: str = STUDY) -> Path:
    (folder / "tiny.yaml").write_text(RECIPE, encoding="utf-8")
    path = folder / "beat.yaml"
    path.write_text(text.format(folder=folder), encoding="utf-8")
    return path


def study(capfd: pytest.CaptureFixture[str], path: Path, *options: str) -> Said:
    return kattn(capfd, "study", path, "--results", path.parent / "results", "--device", "cpu", "--cpus", "1", *options)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that was run."""
    folder = tmp_path_factory.mktemp("study")
    path = write_study(folder)
    import subprocess
    import sys

    words = ["study", str(path), "--results", str(folder / "results"), "--device", "cpu", "--cpus", "1"]
    subprocess.run([sys.executable, "-m", "kattn_cli", *words], check=True)
    return folder


@pytest.fixture
def copy(done: Path, tmp_path: Path) -> Path:
    """The same, to be changed; the file of the study."""
    shutil.copytree(done / "results", tmp_path / "results")
    return write_study(tmp_path)


def test_the_page_answers_the_question(done: Path) -> None:
    page = (done / "results/studies/beat/study.md").read_text(encoding="utf-8")
    assert page.startswith("# Does RPC-Attention beat softmax attention?\n")
    assert "Registered 20" in page
    for heading in ("## Answer", "## Verdicts", "## Numbers", "## Power", "## What it took"):
        assert heading in page
    assert "Changed after" not in page
    assert (done / "results/studies/beat/effects.png").is_file()


def test_the_numbers_are_those_of_the_runs(done: Path) -> None:
    values = pd.read_csv(done / "results/studies/beat/values.csv")
    assert len(values) == 2 * 2 * 3
    for _, row in values[values["measure"] == "clean"].iterrows():
        (own,) = [one for one in read_rows(Path(row["folder"]) / "eval.csv") if one["split"] == "test"]
        assert float(own["top1"]) == pytest.approx(row["value"])


def test_the_verdicts_are_of_every_measure(done: Path) -> None:
    verdicts = pd.read_csv(done / "results/studies/beat/verdicts.csv")
    assert verdicts[["first", "second", "measure", "seeds"]].to_numpy().tolist() == [
        ["rpc", "softmax", "clean", 3],
        ["rpc", "softmax", "noise", 3],
    ]
    assert verdicts["images"].tolist() == [355, 50]
    values = pd.read_csv(done / "results/studies/beat/values.csv")
    means = values[values["measure"] == "clean"].groupby("arm")["value"].mean()
    assert verdicts["difference"][0] == pytest.approx(means["rpc"] - means["softmax"])


def test_again_it_trains_and_measures_nothing(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    runs = {path: path.stat().st_mtime_ns for path in copy.parent.rglob("manifest.json")}
    said = study(capfd, copy)
    assert said.code == 0, said.err
    assert {path: path.stat().st_mtime_ns for path in copy.parent.rglob("manifest.json")} == runs


def test_what_is_missing_is_listed_and_made(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(copy.parent / "results/tiny/rpc/2")
    (copy.parent / "results/tiny/rpc/1/eval.csv").unlink()
    said = study(capfd, copy, "--dry-run")
    assert "rpc: 3 runs, seeds 2 to train" in said.out
    assert "clean of rpc: to be measured of 1 run" in said.out
    incomplete = study(capfd, copy, "--judge-only")
    assert incomplete.code == 0, incomplete.err
    assert "**Not complete**: not trained are the seeds of rpc (2)." in page_of(copy)
    assert study(capfd, copy).code == 0
    assert "Not complete" not in page_of(copy)


def page_of(path: Path) -> str:
    return (path.parent / "results/studies/beat/study.md").read_text(encoding="utf-8")


def test_a_change_after_it_began_is_shown(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_study(copy.parent, STUDY.replace("margin: 20}}\n  noise", "margin: 10}}\n  noise"))
    assert study(capfd, copy, "--judge-only").code == 0
    page = page_of(copy)
    assert "**Changed afterwards 1 time**" in page
    assert "-    margin: 20.0\n+    margin: 10.0" in page


def test_judging_needs_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = study(capfd, write_study(tmp_path), "--judge-only")
    assert said.code == 2
    assert "beat: nothing is trained yet; without --no-train and --judge-only it is" in said.err


def test_two_arms_need_names_of_their_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_study(tmp_path, STUDY.replace("tiny.yaml/rpc", "tiny.yaml/softmax train.epochs=2"))
    said = study(capfd, path)
    assert said.code == 2
    assert "arms softmax and rpc: both have the runs of" in said.err
    assert "give one of the recipes a name of its own: name=…" in said.err


def test_an_arm_is_one_recipe(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = write_study(tmp_path, STUDY.replace("tiny.yaml/rpc", "tiny.yaml"))
    said = study(capfd, path)
    assert said.code == 2
    assert "means 3 recipes, and an arm is one of them" in said.err


def test_a_measure_that_no_row_fits_is_told(copy: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_study(copy.parent, STUDY.replace("{{attack: noise}}", "{{attack: nose}}"))
    said = study(capfd, copy)
    assert said.code == 2
    assert "measure noise: kattn attack --noise --epsilon 4/255 --no-checks --limit 50 leaves no row in" in said.err


def test_the_shipped_studies_are_listed(capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "study", "--list")
    assert "pursuit: Does the pursuit of RPC-Attention do anything?" in said.out
