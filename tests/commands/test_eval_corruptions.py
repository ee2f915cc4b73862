"""``kattn eval --corruptions``: rows, resuming, references, the table and the contact sheet."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import kattn

from kattn_cli.data.corruptions import CORRUPTIONS
from kattn_cli.experiment.run import Opener, open_run
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.images.evaluation import EVAL_CSV, Subject, evaluate_runs
from kattn_cli.tasks.images.reference import Reference, usual_reference
from kattn_cli.tasks.task import Asked
from kattn_cli.training.corrupted import CorruptedSplit, Making
from kattn_cli.training.evaluate import evaluate
from kattn_cli.training.opened import as_image_run

SETTINGS = Asked(Opener(torch.device("cpu")), limit=40)
FOG = Corruptions(names=("fog",))


@pytest.fixture
def results(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained run, to write into."""
    return Path(shutil.copytree(trained, tmp_path / "results"))


@pytest.fixture
def run(results: Path) -> Run:
    return Run(results / "tiny" / "0")


def rows_of(run: Run) -> list[dict[str, str]]:
    return [row for row in read_rows(run.folder / EVAL_CSV) if row["corruption"]]


def watch(monkeypatch: pytest.MonkeyPatch, write: Callable[..., None]) -> list[dict[str, object]]:
    """Collects the rows that are written from now on."""
    written: list[dict[str, object]] = []

    def keep(subject: Subject, row: dict[str, object], measured: Sequence[str] = ()) -> None:
        written.append(row)
        write(subject, row, measured)

    monkeypatch.setattr(Subject, "write", keep)
    return written


def test_each_row_is_the_evaluation_of_that_type_and_severity(run: Run) -> None:
    evaluate_runs([run], SETTINGS, [Corruptions(names=("fog", "snow"), severities=(2, 5), seed=3)])
    rows = rows_of(run)
    asked = [("fog", 2), ("fog", 5), ("snow", 2), ("snow", 5)]
    assert [(row["corruption"], int(row["severity"])) for row in rows] == asked
    opened = as_image_run(open_run(run, torch.device("cpu")), "a test")
    for row, (name, severity) in zip(rows, asked, strict=True):
        corrupted = CorruptedSplit(opened.data.splits["test"].first(40), name, severity, Making("cifar-c", 3))
        expected = evaluate(opened.model, corrupted, 128)
        assert (float(row["top1"]), float(row["loss"])) == pytest.approx((expected.top1, expected.loss), abs=1e-12)
        assert (row["images"], row["parameters"], row["seed"], row["split"]) == ("40", "cifar-c", "3", "test")


def test_numbers_do_not_depend_on_which_were_asked_for(run: Run, results: Path) -> None:
    other = Run(Path(shutil.copytree(run.folder, results / "tiny" / "1")))
    evaluate_runs([run], SETTINGS, [Corruptions(names=("glass_blur",), severities=(5,))])
    evaluate_runs([other], SETTINGS, [Corruptions(names=("gaussian_noise", "glass_blur"))])
    assert rows_of(run)[0] == rows_of(other)[-1]


def test_interrupted_and_started_again(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    both = Corruptions(names=("gaussian_noise", "fog"))
    evaluate_runs([run], SETTINGS, [both])
    whole = read_rows(run.folder / EVAL_CSV)
    (run.folder / EVAL_CSV).unlink()
    write = Subject.write
    written: list[dict[str, object]] = []

    def stop(subject: Subject, row: dict[str, object], measured: Sequence[str] = ()) -> None:
        if len(written) == 4:
            raise KeyboardInterrupt
        written.append(row)
        write(subject, row, measured)

    monkeypatch.setattr(Subject, "write", stop)
    with pytest.raises(KeyboardInterrupt):
        evaluate_runs([run], SETTINGS, [both])
    assert len(rows_of(run)) == 3
    written = watch(monkeypatch, write)
    capsys.readouterr()
    evaluate_runs([run], SETTINGS, [both])
    assert "3 of 10 corruptions were measured before (--again measures them anew)" in capsys.readouterr().out
    assert len(written) == 1 + 7
    key = ["corruption", "severity"]
    found = pd.DataFrame(read_rows(run.folder / EVAL_CSV)).sort_values(key, ignore_index=True)
    pd.testing.assert_frame_equal(found, pd.DataFrame(whole).sort_values(key, ignore_index=True))


@pytest.mark.parametrize("change", ["nothing", "again", "seed", "parameters", "images", "weights", "textures"])
def test_what_is_measured_anew(change: str, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    frost = Corruptions(names=("frost",), severities=(1,))
    evaluate_runs([run], SETTINGS, [frost])
    asked = {
        "again": Corruptions(names=("frost",), severities=(1,), again=[run.folder]),
        "seed": Corruptions(names=("frost",), severities=(1,), seed=1),
        "parameters": Corruptions(names=("frost",), severities=(1,), parameters="imagenet-c"),
        "textures": Corruptions(names=("frost",), severities=(1,), textures=[torch.rand(3, 9, 9)]),
    }.get(change, frost)
    if change == "weights":
        weights = run.folder / "checkpoints"
        shutil.copy(weights / "last.previous.safetensors", weights / "best.safetensors")
    settings = Asked(Opener(torch.device("cpu")), limit=41) if change == "images" else SETTINGS
    written = watch(monkeypatch, Subject.write)
    evaluate_runs([run], settings, [asked])
    assert [row["corruption"] for row in written] == ["", *["frost"] * (change != "nothing")]
    kept_beside = change in ("seed", "parameters", "images", "weights", "textures")
    assert len(rows_of(run)) == 1 + kept_beside


def test_the_table_and_the_mean_error(run: Run, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    at = ("--limit", 40, "--results", results, "--device", "cpu")
    said = kattn(capfd, "eval", "tiny", "--corruption", "fog", "--corruption", "contrast", *at)
    assert said.code == 0
    top1 = {(row["corruption"], row["severity"]): float(row["top1"]) for row in rows_of(run)}
    errors = {name: [100 - top1[name, str(k)] for k in range(1, 6)] for name in ("fog", "contrast")}
    lines = {line.split()[0]: line.split()[1:] for line in said.out.splitlines() if line}
    for name, values in errors.items():
        assert lines[name] == [f"{value:.1f}" for value in [*values, sum(values) / 5]]
    mean = sum(map(sum, errors.values())) / 10
    assert f"mean error {mean:.2f} % over 2 of 15 types × 5 severities (clean " in said.out
    assert "mCE: left out, since it needs a reference; --reference RUN names a run to compare with" in said.out
    table = pd.read_csv(run.folder / "corruption_errors.csv").set_index("corruption")
    assert table["error"].to_dict() == pytest.approx({name: sum(values) / 5 for name, values in errors.items()})
    assert table["corruption_error"].isna().all()
    assert str(run.folder / "figures" / "corruption_errors.png") in said.out
    assert (run.folder / "figures" / "corruption_errors.pdf").exists()


def test_a_severity_alone_has_no_mean(run: Run, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    at = ("--limit", 10, "--results", results, "--device", "cpu")
    said = kattn(capfd, "eval", "tiny", "--severity", 4, "--corruption", "pixelate", *at)
    assert said.code == 0
    assert "mean error: left out, since no type has all five severities yet" in said.out
    assert [row["severity"] for row in rows_of(run)] == ["4"]


def test_a_run_as_reference(run: Run, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Measured first, where it is not yet; of several seeds the mean error counts."""
    for seed, name in enumerate(("a", "b")):
        folder = Path(shutil.copytree(run.folder, results / "base" / name))
        Run(folder).update(name="base", seed=seed)
    weights = results / "base" / "b" / "checkpoints"
    shutil.copy(weights / "last.previous.safetensors", weights / "best.safetensors")
    at = ("--limit", 40, "--results", results, "--device", "cpu")
    said = kattn(capfd, "eval", "tiny", "--corruption", "fog", "--reference", "base", *at)
    assert said.code == 0
    errors = {}
    for folder in (run.folder, results / "base" / "a", results / "base" / "b"):
        top1 = [float(row["top1"]) for row in rows_of(Run(folder))]
        assert len(top1) == 5
        errors[folder.name] = 100 - sum(top1) / 5
    base = (errors["a"] + errors["b"]) / 2
    assert errors["a"] != errors["b"]
    (row,) = pd.read_csv(run.folder / "corruption_errors.csv").to_dict("records")
    assert row["reference"] == "base, seeds 0, 1"
    assert row["reference_error"] == pytest.approx(base)
    assert row["corruption_error"] == pytest.approx(100 * errors["0"] / base)
    assert f"mCE {100 * errors['0'] / base:.2f} % over 1 of 15 types, against base, seeds 0, 1" in said.out
    assert not (results / "base" / "a" / "corruption_errors.csv").exists()
    said = kattn(capfd, "eval", "tiny", "--corruption", "fog", "--reference", "tiny", *at)
    assert "mCE 100.00 % over 1 of 15 types, against tiny, seed 0" in said.out


def test_alexnet_goes_with_imagenet_alone(run: Run) -> None:
    opened = as_image_run(open_run(run, torch.device("cpu")), "a test")
    recipe = opened.recipe
    thousand = type(opened.data)(**{**vars(opened.data), "classes": 1000, "image_size": 224})
    assert usual_reference(recipe, opened.data) is None
    assert usual_reference(recipe, thousand) == Reference("alexnet")
    assert usual_reference(recipe, thousand, "cifar-c") is None


def test_the_contact_sheet_alone_evaluates_nothing(run: Run, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(run.folder / "checkpoints")
    said = kattn(capfd, "eval", "tiny", "--save-images", "--corruption", "fog", "--results", results)
    assert said.code == 2
    said = kattn(capfd, "eval", "tiny", "--save-images", "--results", results)
    assert (said.code, said.err) == (0, "")
    assert said.out.strip() == str(run.folder / "figures" / "corruptions.png")
    assert (run.folder / "figures" / "corruptions.pdf").stat().st_size > 5000
    assert not (run.folder / EVAL_CSV).exists()


def test_all_of_them_by_default() -> None:
    assert list(Corruptions().names) == list(CORRUPTIONS)
    assert len(CORRUPTIONS) == 15
    assert list(Corruptions().severities) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--corruption", "fgo"], '--corruption fgo: there is no such type; did you mean "fog"?'),
        (["--corruption", "fog", "--severity", "6"], "--severity 6: expected 1, 2, 3, 4 or 5"),
        (["--split", "train", "--corruptions"], "--split train: corruptions and other folders go with the test set"),
        (["--reference", "tiny"], "--reference: is for errors under corruption; add --corruptions"),
        (["--corruptions", "--reference", "alexnet"], "its errors are on ImageNet's 1,000 classes, and digits has 10"),
        (["--corruptions", "--reference", "tinny"], 'no such run under {results}/; did you mean "tiny"?'),
        (["--corruptions", "--reference", "larger"], "its data.image_size is 16, not 8"),
        (["--corruptions", "--reference", "{results}"], "means runs of several recipes, larger, tiny; name one"),
        (["--corruption", "frost", "--frost", "{results}/no"], "--frost: {results}/no: there is no such folder"),
    ],
)
def test_wrong_input(
    arguments: list[str], expected: str, run: Run, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    other = Run(Path(shutil.copytree(run.folder, results / "larger" / "0")))
    other.update(name="larger")
    recipe = other.folder / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("image_size: null", "image_size: 16"))
    filled = [argument.format(results=results) for argument in arguments]
    said = kattn(capfd, "eval", "tiny", *filled, "--results", results, "--device", "cpu")
    assert said.code == 2
    assert expected.format(results=results) in said.err
    assert len(said.err.splitlines()) == 1
    assert not (run.folder / EVAL_CSV).exists()
