"""``kattn eval`` of clean images: the rows it writes and replaces."""

from __future__ import annotations

import csv
import shutil
from pathlib import Path

import pytest
import torch
from command_line import kattn
from safetensors import safe_open

from kattn_cli.commands.options import Checkpoint
from kattn_cli.data.images import SplitName
from kattn_cli.experiment.run import Opener, open_run
from kattn_cli.runs.bits import unpacked
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.runs.weights import CHOICES, fingerprint, weights_path
from kattn_cli.tasks.images.evaluation import EVAL_CSV, evaluate_runs
from kattn_cli.tasks.task import Asked
from kattn_cli.training.corrupted import CORRUPTED_BATCH, CorruptedSplit, Making
from kattn_cli.training.evaluate import Batched
from kattn_cli.training.opened import as_image_run

BEFORE = ["split", "severity", "images", "top1", "top1_low", "top1_high", "top5", "loss", "ece", "checkpoint"]
"""The columns of an earlier version."""


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of the trained run, to write into."""
    return Run(Path(shutil.copytree(trained, tmp_path / "results")) / "tiny" / "0")


def test_a_row_says_what_it_is_of(run: Run) -> None:
    evaluate_runs([run], Asked(Opener(torch.device("cpu"))))
    (row,) = read_rows(run.folder / EVAL_CSV)
    assert (row["split"], row["corruption"], row["severity"], row["parameters"], row["seed"]) == (
        "test",
        "",
        "0",
        "",
        "",
    )
    assert (row["images"], row["classes"], row["checkpoint"]) == ("355", "10", "best")
    assert row["weights"] == fingerprint(weights_path(run.folder, "best"))


@pytest.mark.parametrize(("asked", "named"), [("best", "last"), ("best.previous", "best.previous")])
def test_a_row_names_the_weights_that_were_measured(run: Run, asked: str, named: str) -> None:
    """Of a run that was stopped in its first epoch, which has no best; and of weights that were asked for."""
    if asked == "best":
        for path in [*(run.folder / "checkpoints").glob("best*"), run.folder / "metrics.csv"]:
            path.unlink()
    evaluate_runs([run], Asked(Opener(torch.device("cpu"), asked)))
    (row,) = read_rows(run.folder / EVAL_CSV)
    with safe_open(weights_path(run.folder, named), framework="pt") as file:
        step = file.metadata()["step"]
    found = (row["checkpoint"], row["step"], row["weights"])
    assert found == (named, step, fingerprint(weights_path(run.folder, named)))


@pytest.mark.parametrize("split", ["test", "validation"])
def test_rows_say_which_images_were_right(run: Run, split: SplitName, capfd: pytest.CaptureFixture[str]) -> None:
    """Image by image in the order of the split, clean and under a corruption; nothing that is printed shows them."""
    fog = ("--corruption", "fog", "--severity", "2") if split == "test" else ()
    code, out, _ = kattn(capfd, "eval", run.folder, "--split", split, "--device", "cpu", *fog)
    assert code == 0
    opened = as_image_run(open_run(run, torch.device("cpu")), "a test")
    images = opened.data.splits[split]
    parts: dict[str, Batched] = {"": images, "fog": CorruptedSplit(images, "fog", 2, Making("cifar-c"))}
    rows = read_rows(run.folder / EVAL_CSV)
    assert [row["corruption"] for row in rows] == ["", *fog[1:2]]
    for row in rows:
        batches = parts[row["corruption"]].batches(CORRUPTED_BATCH)
        right = [opened.model(pixels).argmax(-1) == labels for pixels, labels in batches]
        found = unpacked(row["correct"], int(row["images"]))
        assert found.tolist() == torch.cat(right).tolist()
        assert float(row["top1"]) == pytest.approx(100 * found.mean())
        assert row["correct"] not in out
        assert list(row)[-1] == "correct"


def test_weights_may_be_asked_for_that_a_refusal_names() -> None:
    assert tuple(one.value for one in Checkpoint) == CHOICES


def test_a_clean_row_of_an_earlier_version_gives_way(run: Run) -> None:
    path = run.folder / EVAL_CSV
    rows = [
        ["test", 0, 355, 1.0, 0, 2, 3, 4, 5, "best"],
        ["validation", 0, 185, 1.0, 0, 2, 3, 4, 5, "best"],
        ["test", 0, 355, 1.0, 0, 2, 3, 4, 5, "last"],
    ]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([BEFORE, *rows])
    evaluate_runs([run], Asked(Opener(torch.device("cpu"))))
    found = {(row["split"], row["checkpoint"]): row["top1"] for row in read_rows(path)}
    assert len(read_rows(path)) == 3
    assert found["validation", "best"] == found["test", "last"] == "1.0"
    assert float(found["test", "best"]) > 20


def test_a_quick_look_stands_beside_the_whole(run: Run) -> None:
    for limit in (None, 20, 20):
        evaluate_runs([run], Asked(Opener(torch.device("cpu")), limit=limit))
    assert [row["images"] for row in read_rows(run.folder / EVAL_CSV)] == ["355", "20"]


def test_several_runs_are_compared(run: Run, capfd: pytest.CaptureFixture[str]) -> None:
    other = Run(Path(shutil.copytree(run.folder, run.folder.parent / "1")))
    other.update(seed=1)
    said = kattn(capfd, "eval", "tiny", "--results", run.folder.parents[1], "--device", "cpu")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines() if "355 images" in line] == [
        str(run.folder),
        str(other.folder),
    ]
    assert "clean" in said.out
