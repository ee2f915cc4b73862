"""``kattn judge`` from a mechanism's file to its page, on small studies of the shipped kind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from command_line import Said, kattn

from kattn_cli.commands.judge import battery, growth
from kattn_cli.commands.judge.candidate import Candidate
from kattn_cli.experiment import recipes
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.find import snapshots
from kattn_cli.studies.study import Arm, find_study, load_study

TOYS = Path(__file__).parent / "toys"
MEAN = f"{TOYS / 'mean_attention.py'}:MeanAttention"
RENAMED = f"{TOYS / 'cheats.py'}:Renamed"
RECIPE = """\
name: tiny
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 1, heads: 2}
attention: softmax
train: {epochs: 1, batch_size: 256, lr: 5e-3}
"""
STUDY = """\
question: How does the candidate compare with softmax attention on digits?
seeds: [0, 1, 2]
arms:
  candidate: {folder}/tiny.yaml name=tiny/linear attention.name=linear
  softmax: {folder}/tiny.yaml name=tiny/softmax
measures:
  clean: {{run: eval, where: {{split: test}}, margin: 2}}
  pgd: {{run: attack --pgd --fgsm --epsilon 16/255 --no-checks, where: {{attack: pgd, epsilon: 16/255}}, margin: 5}}
  fgsm: {{run: attack --pgd --fgsm --epsilon 16/255 --no-checks, where: {{attack: fgsm, epsilon: 16/255}}, margin: 5}}
  effective_rank: {{run: spectrum --inputs 8, value: effective_rank, margin: 1, unit: of 5}}
comparisons:
  - {{first: candidate, second: softmax, primary: true}}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "tiny.yaml").write_text(RECIPE, encoding="utf-8")
    (tmp_path / "digits.yaml").write_text(STUDY.format(folder=tmp_path), encoding="utf-8")
    monkeypatch.setattr(battery, "STUDIES", ("judge/digits",))
    monkeypatch.setattr(battery, "find_study", lambda name: tmp_path / "digits.yaml")
    monkeypatch.setattr(growth, "FEWER_LENGTHS", (8, 16))
    monkeypatch.setattr(growth, "FIT_FROM", 8)
    monkeypatch.setattr(growth, "BESIDE", ("softmax",))
    return tmp_path


def loaded(arm: Arm) -> Recipe:
    (source,) = find_recipes(arm.reference)
    return recipes.load(source, overrides=arm.overrides)


def judged(capfd: pytest.CaptureFixture[str], folder: Path, *words: str) -> Said:
    return kattn(capfd, "judge", *words, "--results", folder / "results", "--device", "cpu", "--jobs", "2")


def test_from_the_file_to_the_page_and_again(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = judged(capfd, folder, MEAN, "gain=0.5", "--quick", "--seeds", "1")
    assert said.code == 0, said.err
    (label,) = [path.name for path in (folder / "results" / "judge").iterdir() if path.name.startswith("MeanAttention")]
    home = folder / "results" / "judge" / label
    page = (home / "judge.md").read_text(encoding="utf-8")
    assert page.startswith("# MeanAttention, judged\n")
    for part in ("## What it is", "## Against softmax attention", "## Facts", "## Beside the others", "](effects.png)"):
        assert part in page
    assert (home / "effects.png").is_file()
    rows = pd.read_csv(home / "judge.csv").set_index("question")
    assert rows.loc["clean against softmax", "verdict"] == "undecided"  # one seed says nothing of others
    assert rows.loc["Trained: is PGD the strongest attack on it?", "verdict"] in ("passed", "found")
    assert "images made for softmax" in rows.loc["Trained: is PGD the strongest attack on it?", "evidence"]
    assert rows.loc["effective rank", "verdict"] == "not asked"
    assert "in the model on digits, softmax" in rows.loc["parameters", "evidence"]
    assert "at N = 16 takes" in rows.loc["time over N", "evidence"]
    assert all(f"{question}" in said.out for question in rows.index)
    runs = {run.name: run.manifest["start"] for run in snapshots(folder / "results")}
    assert len(runs) == 2
    assert f"attention.name={TOYS / 'mean_attention.py'}" in str(
        (folder / "results" / "studies" / "judge" / label / "digits" / "registered.json").read_text(encoding="utf-8")
    )

    again = judged(capfd, folder, RENAMED, "--quick", "--seeds", "1")
    assert again.code == 0, again.err
    later = {run.name: run.manifest["start"] for run in snapshots(folder / "results")}
    assert {name: later[name] for name in runs} == runs  # the baseline is not trained again
    assert len(later) == 3
    assert "found out: Is it another mechanism under a new name?; " in again.out
    assert "too few seeds to decide anything." in again.out


def test_probes_alone_train_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = judged(capfd, folder, f"{TOYS / 'cheats.py'}:SeesTheFuture", "--probes")
    assert said.code == 0, said.err
    assert "found      Does its causal form see the future?" in said.out
    assert not (folder / "results").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["no.py:Mean"], "no.py:Mean: there is no file "),
        ([MEAN.replace("MeanA", "MeenA")], 'has no nn.Module named MeenAttention; did you mean "MeanAttention"?'),
        ([MEAN, "gian=2"], 'gian: unknown key; did you mean "gain"?'),
        (["sofmax"], 'did you mean "softmax"?'),
        ([f"{TOYS / 'cheats.py'}:Shortens"], "does not fit the contract: forward(x) for x (3, 25, 32) gives"),
    ],
)
def test_faults_are_one_line(words: list[str], message: str, folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = judged(capfd, folder, *words)
    assert said.code == 2
    assert message in said.err
    assert len(said.err.splitlines()) == 1


def test_a_label_changes_with_the_file_and_the_options(tmp_path: Path) -> None:
    path = Path(shutil.copy(TOYS / "mean_attention.py", tmp_path))
    name = f"{path}:MeanAttention"
    first, other = Candidate.of(name, ()), Candidate.of(name, ("gain=2",))
    assert first.label != other.label
    assert first == Candidate.of(name, ("gain=1",))  # which is the default
    path.write_text(path.read_text(encoding="utf-8") + "\n# changed\n", encoding="utf-8")
    changed = Candidate.of(name, ())
    assert changed.label != first.label
    assert {one.label.partition("-")[0] for one in (first, other, changed)} == {"MeanAttention"}
    assert other.overrides == [f"attention.name={name}", "attention.gain=2.0"]


def test_the_candidate_takes_the_place_of_the_shipped_one() -> None:
    candidate = Candidate.of("rpc", ("iterations=3",))
    for study in battery.battery(candidate, 2).studies:
        arm = study.arms["candidate"]
        recipe, softmax = loaded(arm), loaded(study.arms["softmax"])
        assert (recipe.attention.name, recipe.attention.options["iterations"]) == ("rpc", 3)
        assert recipe.name.endswith(f"/{candidate.label}")
        assert (recipe.train, recipe.model, recipe.data) == (softmax.train, softmax.model, softmax.data)
        assert study.seeds == [0, 1]
        assert "candidate" not in study.question


def test_what_has_no_matrix_is_left_out_of_the_spectrum_alone() -> None:
    for name, arms in (
        ("tssa", ["softmax", "symmetric", "primal"]),
        ("symmetric", ["candidate", "softmax", "symmetric", "primal"]),
        (MEAN, ["softmax", "symmetric", "primal"]),
    ):
        chosen = battery.battery(Candidate.of(name, ()), 5)
        assert chosen.studies[0].measures["effective_rank"].arms == arms
        assert bool(chosen.left_out) == ("candidate" not in arms)


@pytest.mark.parametrize("name", battery.STUDIES)
def test_shipped_studies_are_sound_by_themselves(name: str) -> None:
    study = load_study(find_study(name))
    assert study.seeds == [0, 1, 2, 3, 4]
    for arm in study.arms.values():
        recipe = loaded(arm)
        assert recipe.name == f"{name}/{recipe.attention.name}"
    assert [one.second for one in study.comparisons if one.primary] == ["softmax"]
