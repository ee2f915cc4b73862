"""``kattn eval --ood``: other folders of images."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import kattn
from image_files import encoded, write_classes
from PIL import Image
from sklearn.metrics import average_precision_score
from torch import Tensor

from kattn_cli.data.corruptions import corrupt
from kattn_cli.experiment.run import open_run
from kattn_cli.runs.bits import unpacked
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tasks.images.evaluation import EVAL_CSV
from kattn_cli.training.opened import as_image_run

CPU = torch.device("cpu")


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of the trained run, to write into."""
    return Run(Path(shutil.copytree(trained, tmp_path / "results")) / "tiny" / "0")


@pytest.fixture
def test_images(run: Run) -> tuple[Tensor, Tensor]:
    """The test set's images, rounded to 8 bits as a file has them, and their labels."""
    (images, labels) = next(as_image_run(open_run(run, CPU), "a test").data.splits["test"].batches(1000))
    return (images * 255).round() / 255, labels


def write(folder: Path, images: Tensor, labels: Tensor) -> Path:
    """One folder a class."""
    for number, (image, label) in enumerate(zip(images, labels.tolist(), strict=True)):
        path = folder / str(label) / f"{number:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encoded(Image.fromarray((image[0] * 255).round().byte().numpy())))
    return folder


def evaluate(run: Run, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[str, list[dict[str, str]]]:
    said = kattn(capfd, "eval", run.folder, *arguments, "--device", "cpu")
    assert said.code == 0, said.err
    return said.out, [row for row in read_rows(run.folder / EVAL_CSV) if row["split"] not in ("test", "clean")]


def test_a_copy_of_the_test_set_gives_the_clean_accuracy(
    run: Run, test_images: tuple[Tensor, Tensor], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    images, labels = test_images
    _, (row,) = evaluate(run, capfd, "--ood", f"copy={write(tmp_path / 'copy', images, labels)}")
    with torch.no_grad():
        right = as_image_run(open_run(run, CPU), "a test").model(images).argmax(-1) == labels
    assert float(row["top1"]) == pytest.approx(100 * right.double().mean().item(), abs=1e-9)
    (clean,) = (row for row in read_rows(run.folder / EVAL_CSV) if row["split"] == "test")
    assert float(row["top1"]) == pytest.approx(float(clean["top1"]), abs=0.6), "8 bits change an image or two at most"
    assert (row["images"], row["classes"], row["aupr_chance"]) == ("355", "10", "50.0")
    assert float(row["aupr"]) == pytest.approx(50, abs=2)


def test_some_classes_only(
    run: Run, test_images: tuple[Tensor, Tensor], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Upside down, of classes 2, 4 and 7: logits by hand, and scikit-learn's AUPR against the clean ones of these."""
    images, labels = test_images
    classes = torch.tensor([2, 4, 7])
    some = torch.isin(labels, classes)
    turned, wanted = images[some].flip(-2), labels[some]
    out, (row,) = evaluate(run, capfd, "--ood", f"turned={write(tmp_path / 'turned', turned, wanted)}")
    opened = as_image_run(open_run(run, CPU), "a test")
    model, clean = opened.model, next(opened.data.splits["test"].batches(1000))[0]
    with torch.no_grad():
        ours, theirs = (model(one)[:, classes].softmax(-1) for one in (turned, clean[some]))
        free = model(turned).argmax(-1)
    right = classes[ours.argmax(-1)] == wanted
    assert float(row["top1"]) == pytest.approx(100 * right.double().mean().item(), abs=1e-9)
    assert unpacked(row["correct"], len(right)).tolist() == right[wanted.argsort(stable=True)].tolist()
    assert right.sum() > (free == wanted).sum()
    assert (row["classes"], row["images"], row["split"]) == ("3", str(int(some.sum())), "turned")
    scores = -np.concatenate([ours.amax(-1).numpy(), theirs.amax(-1).numpy()])
    expected = average_precision_score(np.arange(len(scores)) < len(ours), scores)
    assert float(row["aupr"]) == pytest.approx(100 * expected, abs=0.01)
    assert f"among 3 classes  AUPR {float(row['aupr']):.2f} % (without skill 50.00 %)" in out


def test_images_of_no_class(run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_classes(tmp_path / "noise", {"dots": 30, "stripes": 20})
    out, (row,) = evaluate(run, capfd, "--ood", f"noise={tmp_path / 'noise'}")
    assert row["top1"] == row["top1_low"] == row["top5"] == row["loss"] == row["ece"] == row["correct"] == ""
    assert float(row["aupr_chance"]) == pytest.approx(100 * 50 / (50 + 355))
    assert 0 < float(row["aupr"]) <= 100
    assert "noise  AUPR" in out


def test_imagenet_c_layout(
    run: Run, test_images: tuple[Tensor, Tensor], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    images, labels = (part[:60] for part in test_images)
    expected = {}
    model = as_image_run(open_run(run, CPU), "a test").model
    for severity in range(1, 6):
        corrupted = corrupt(images, "contrast", severity, torch.Generator(), "cifar-c")
        write(tmp_path / "c" / "contrast" / str(severity), corrupted, labels)
        with torch.no_grad():
            expected[str(severity)] = 100 * (model(corrupted).argmax(-1) == labels).double().mean().item()
    out, rows = evaluate(run, capfd, "--ood", f"c={tmp_path / 'c'}")
    assert {row["severity"]: float(row["top1"]) for row in rows} == pytest.approx(expected)
    assert {(row["corruption"], row["images"], row["aupr"]) for row in rows} == {("contrast", "60", "")}
    error = 100 - sum(expected.values()) / 5
    assert f"mean error {error:.2f} % over 1 of 15 types" in out
    assert (run.folder / "corruption_errors_c.csv").exists()
    out, again = evaluate(run, capfd, "--ood", f"c={tmp_path / 'c'}")
    assert "5 of 5 folders of c were measured before" in out
    assert again == rows


def test_images_that_cannot_be_read_are_told(
    run: Run, test_images: tuple[Tensor, Tensor], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = write(tmp_path / "a", *(part[:30] for part in test_images))
    (folder / "0" / "broken.png").write_bytes(b"no image")
    out, (row,) = evaluate(run, capfd, "--ood", f"a={folder}")
    assert row["images"] == "30"
    assert f"left out an image that cannot be read: {folder}/0/broken.png (not an image)" in out


def test_rows_are_replaced(
    run: Run, test_images: tuple[Tensor, Tensor], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    images, labels = test_images
    write(tmp_path / "a", images[:30], labels[:30])
    evaluate(run, capfd, "--ood", f"a={tmp_path / 'a'}")
    write(tmp_path / "a", images[:40], labels[:40])
    _, (row,) = evaluate(run, capfd, "--ood", f"a={tmp_path / 'a'}")
    assert row["images"] == "40"


@pytest.mark.parametrize(
    ("ood", "expected"),
    [
        ("{folder}", "--ood {folder}: expected NAME=PATH, such as imagenet-a=data/imagenet-a"),
        ("test={folder}", "--ood test: is the name of a split"),
        ("a b={folder}", "--ood a b: is no name"),
        ("a={folder}/no", "--ood a: {folder}/no is not a folder"),
        ("a={folder}/2", "--ood a: {folder}/2 has no class folders; expected <class>/* or <corruption>/<severity>/"),
        ("a={folder}", "--ood a: {folder}: has a folder two, which is no class of the data set (the nearest is "),
    ],
)
def test_wrong_input(ood: str, expected: str, run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_classes(tmp_path / "mixed", {"1": 1, "2": 1, "two": 1})
    asked = ood.format(folder=tmp_path / "mixed")
    said = kattn(capfd, "eval", run.folder, "--ood", asked, "--device", "cpu")
    assert said.code == 2
    assert expected.format(folder=tmp_path / "mixed") in said.err
    assert len(said.err.splitlines()) == 1


def test_folders_are_evaluated_whole(run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "eval", run.folder, "--ood", f"a={tmp_path}", "--limit", 5)
    assert (said.code, said.err) == (2, "--limit: other folders are evaluated whole; leave it or --ood out\n")
