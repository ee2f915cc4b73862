"""Segmentation from a recipe to its tables: training, resuming, evaluation clean and corrupted, what is refused."""

from __future__ import annotations

import shutil
from copy import deepcopy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from ade_files import write_ade
from command_line import kattn

from kattn_cli.commands.train.train import train
from kattn_cli.data import MaskSplit
from kattn_cli.data.corruptions import CORRUPTIONS
from kattn_cli.experiment import recipes
from kattn_cli.experiment.build import build, data_of
from kattn_cli.experiment.run import Opener, open_run
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import best_epoch
from kattn_cli.tasks import objective_of
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.masks.evaluate import evaluate_masks
from kattn_cli.tasks.masks.evaluation import CLASSES_CSV, SEGMENTATION_CSV, evaluate_segmenters
from kattn_cli.tasks.masks.report import differences
from kattn_cli.tasks.task import Asked
from kattn_cli.training.loop import Hooks, Trainer

RECIPE = """\
name: shapes
data: {{name: ade20k, root: {root}, image_size: 16, stride: 12, classes: 3, validation: 0.2, workers: 0}}
model: {{name: segmenter, patch_size: 4, dim: 16, depth: 2, heads: 2, decoder_depth: 1}}
attention: {{name: symmetric, layers: {{0: {{name: rpc, iterations: 2}}}}}}
train: {{epochs: 3, batch_size: 4, lr: 5e-3, label_smoothing: 0.0, flip: 0.5}}
"""
CPU = torch.device("cpu")
SETTINGS = Asked(Opener(CPU))


@pytest.fixture(scope="session")
def segmented(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recipe, its images and ``results/shapes/0``. Not to be changed."""
    folder = tmp_path_factory.mktemp("segmented")
    write_ade(folder / "ade")
    (folder / "shapes.yaml").write_text(RECIPE.format(root=folder / "ade"), encoding="utf-8")
    train([str(folder / "shapes.yaml")], [], [], results=folder / "results", device=CPU)
    return folder


@pytest.fixture
def results(segmented: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(segmented / "results", tmp_path / "results"))


@pytest.fixture
def run(results: Path) -> Run:
    return Run(results / "shapes" / "0")


def rows_of(run: Run) -> list[dict[str, str]]:
    return read_rows(run.folder / SEGMENTATION_CSV)


def test_training_writes_the_measures_and_chooses_by_mean_iou(run: Run) -> None:
    rows = read_rows(run.folder / "metrics.csv")
    assert {"pixel_accuracy", "mean_accuracy", "mean_iou"} <= rows[0].keys()
    held_out = [float(row["mean_iou"]) for row in rows if row["split"] == "validation"]
    assert run.manifest["chosen_by"] == "mean_iou"
    assert run.manifest["best_validation_mean_iou"] == pytest.approx(max(held_out))
    assert held_out[-1] > 20
    assert best_epoch(run) == f"validation mean IoU {max(held_out):.1f}"


def test_a_training_goes_on_from_mid_epoch_as_if_it_had_not_stopped(segmented: Path) -> None:
    """Bit for bit, augmentation included."""
    recipe = recipes.load(segmented / "shapes.yaml", ["train.checkpoint_steps=3"])
    data = data_of(recipe)
    kept: dict[int, dict[str, Any]] = {}

    def keep(which: str, weights: dict[str, Any], state: dict[str, Any]) -> None:
        kept[state["progress"]["step"]] = deepcopy(state)

    def trainer() -> Trainer:
        torch.manual_seed(0)
        hooks = Hooks(lambda _: None, lambda _: None, keep)
        return Trainer(build(recipe, data), data, objective_of(data), recipe.train, recipe.seed, hooks)

    whole = trainer()
    whole.run()
    assert (whole.steps_per_epoch, sorted(kept)) == (4, [3, 4, 6, 8, 9, 12])
    resumed = trainer()
    resumed.restore(kept[6])
    resumed.run()
    ours, theirs = (one.model.state_dict() for one in (resumed, whole))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_rows_are_those_of_the_evaluation(run: Run) -> None:
    evaluate_segmenters([run], SETTINGS)
    (row,) = rows_of(run)
    opened = open_run(run, CPU)
    split = opened.data.splits["test"]
    assert isinstance(split, MaskSplit)
    found = evaluate_masks(opened.model, split, classes=3, window=16, stride=12)
    assert {name: float(row[name]) for name in found.measures} == found.measures
    assert (row["split"], row["images"], row["classes"], row["severity"]) == ("test", "6", "3", "0")
    classes = read_rows(run.folder / CLASSES_CSV)
    assert [one["class"] for one in classes] == [f"thing {number}, stuff" for number in (1, 2, 3)]
    assert sum(float(one["iou"]) for one in classes) / 3 == pytest.approx(found.measures["mean_iou"])
    assert sum(int(one["pixels"]) for one in classes) == found.sums[2].sum()


def test_corruptions_measured_before_stay(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    fog = Corruptions(names=("fog",), severities=(1, 5), seed=3)
    evaluate_segmenters([run], SETTINGS, fog)
    before = rows_of(run)
    assert [(row["corruption"], row["severity"]) for row in before] == [("", "0"), ("fog", "1"), ("fog", "5")]
    capfd.readouterr()
    evaluate_segmenters([run], SETTINGS, Corruptions(names=("fog", "contrast"), severities=(1, 5), seed=3))
    assert "2 of 4 corruptions were measured before (--again measures them anew)" in capfd.readouterr().out
    after = rows_of(run)
    assert len(after) == 5
    assert all(row in after for row in before)
    assert len(read_rows(run.folder / CLASSES_CSV)) == 15
    evaluate_segmenters([run], SETTINGS, Corruptions(names=("fog",), severities=(1,), seed=3, again=[run.folder]))
    assert "measured before" not in capfd.readouterr().out
    assert len(run.manifest["measurements"]) == 3


def test_the_table_and_the_figures(run: Run, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "eval", "shapes", "--corruption", "contrast", "--save-images", "--results", results)
    assert said.code == 0, said.err
    assert "corrupted: mean over 1 types × 5 severities" in said.out
    table = pd.read_csv(run.folder / SEGMENTATION_CSV)
    clean, corrupted = table[table["severity"] == 0], table[table["severity"] > 0]
    line = next(line for line in said.out.splitlines() if line.startswith("shapes "))
    expected = [one[name] for one in (clean, corrupted) for name in ("mean_accuracy", "mean_iou")]
    assert line.split()[1:] == [*(f"{values.mean():.2f}" for values in expected), "1"]
    assert (run.folder / "figures" / "segmentation.png").is_file()
    plotted = kattn(capfd, "plot", "shapes", "--format", "png", "--results", results)
    assert plotted.code == 0, plotted.err
    assert (run.folder / "figures" / "segmentation_severity.png").is_file()


def test_a_type_counts_once_all_its_severities_are_there(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "eval", "shapes", "--corruption", "fog", "--severity", 3, "--results", results)
    assert said.code == 0, said.err
    assert "means under corruption: left out, since no type has all five severities yet" in said.out
    assert "corrupted mean" not in said.out


def test_the_held_out_images_can_be_evaluated(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "eval", "shapes", "--split", "validation", "--results", results)
    assert said.code == 0, said.err
    assert ": validation, 4 images: mean acc. " in said.out


@pytest.mark.parametrize("command", [("attack", "--fgsm"), ("eval", "--ood", "a=b"), ("eval", "--window", "8")])
def test_what_is_for_other_runs_is_refused_in_one_line(
    results: Path, capfd: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    name, *options = command
    said = kattn(capfd, name, "shapes", *options, "--results", results)
    assert said.code == 2
    assert len(said.err.strip().splitlines()) == 1, said.err


def test_a_dry_run_tells_the_size(segmented: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "train", segmented / "shapes.yaml", "--dry-run")
    assert said.code == 0, said.err
    assert "16 × 16 × 3, 3 classes" in said.out


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("data.classes=4", "data.classes  ade20k has 3 classes, not 4"),
        ("data.stride=17", "data.stride  must be at most the window's size, 16, so that no pixel is left out"),
        ("model.patch_size=5", "model.patch_size  must divide the image size, 16, and 5 does not"),
        ("data.name=digits", "data.name  digits holds images"),
        ("model.name=vit", "take model.name: segmenter, or another data set"),
        ("data.image_size=null", "data.image_size  is missing: the images of ade20k vary in size; 512 is usual"),
    ],
)
def test_faults_of_a_recipe(segmented: Path, capfd: pytest.CaptureFixture[str], override: str, told: str) -> None:
    said = kattn(capfd, "train", segmented / "shapes.yaml", override, "--dry-run")
    assert said.code == 2
    assert told in said.err


def test_data_check_counts_the_images(segmented: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "data", "check", "ade20k", f"root={segmented / 'ade'}")
    assert said.code == 0, said.err
    assert "train 20, test 6 images with masks, 3 classes" in said.out


def test_gains_are_of_seeds_that_both_have() -> None:
    first = pd.DataFrame({"run_seed": [0, 1, 2], "images": [6, 6, 6], "mean_iou": [10.0, 20.0, 30.0]})
    second = pd.DataFrame({"run_seed": [2, 1, 3], "images": [6, 6, 6], "mean_iou": [31.0, 23.0, 99.0]})
    assert differences(first, second, "mean_iou") == [3.0, 1.0]


def test_there_are_15_corruptions() -> None:
    assert Corruptions().names == tuple(CORRUPTIONS)
    assert len(CORRUPTIONS) == 15
