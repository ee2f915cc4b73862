"""A sixth kind of data with sections of its own: one module and one line in ``TASKS``; every command works on it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from command_line import Said, kattn
from rich.console import Console
from tasks.tones import EXPLAINED, Tones

from kattn_cli.commands.sweep.sweep import plan
from kattn_cli.commands.sweep.view import SweepView, ranking
from kattn_cli.console import console
from kattn_cli.executors import EXECUTORS
from kattn_cli.executors.executor import Outcome, Request, Work, attempt
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tasks import TASKS
from kattn_cli.training.interrupt import Interruption

RECIPE = """\
name: tones
data: {name: tones, count: 48, loudness: 0.5}
model: {name: ear, hears: 1.5, dim: 8, depth: 1, heads: 2}
attention: softmax
train: {epochs: 2, batch_size: 16, lr: 1e-2, warmup_epochs: 0}
"""


class InThisProcess:
    """An executor that works here, where the toy is known."""

    def __init__(self, request: Request) -> None:
        pass

    def run(
        self, work: Work, tasks: Iterable[object], interruption: Interruption
    ) -> Iterator[tuple[int, Outcome] | None]:
        """Work on one task after the other."""
        quiet = console.quiet
        for number, task in enumerate(tasks):
            outcome = attempt(work, task)
            console.quiet = quiet
            yield number, outcome


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setitem(TASKS, "tones", Tones())  # the one line
    path = tmp_path / "tones.yaml"
    path.write_text(RECIPE, encoding="utf-8")
    return path


def run(capfd: pytest.CaptureFixture[str], command: str, *arguments: str | Path) -> Said:
    said = kattn(capfd, command, *arguments)
    assert said.code == 0, said
    return said


def test_a_sixth_kind_is_trained_evaluated_listed_plotted_and_reported(
    recipe: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    results = tmp_path / "results"
    where = ("--results", results)
    dry = run(capfd, "train", recipe, "--dry-run", *where)
    assert "waves of 16 steps" in dry.out
    assert "3 an epoch × 2 epochs = 6, each of 16 tones" in dry.out
    trained = run(capfd, "train", recipe, *where)
    resolved = (results / "tones" / "0" / "recipe.yaml").read_text(encoding="utf-8")
    assert all(key in resolved for key in ("  name: ear\n", "  hears: 1.5\n", "  loudness: 0.5\n"))
    mistyped = kattn(capfd, "train", recipe, "--dry-run", "model.heard=2", "data.loudness=loud", *where)
    assert "model.heard    unknown key; did you mean" in mistyped.err
    assert 'data.loudness  expected a number, not "loud"' in mistyped.err
    rows = read_rows(results / "tones" / "0" / "metrics.csv")
    assert list(rows[0])[:7] == ["epoch", "step", "split", "loss", "auxiliary_loss", "explained", "lr"]
    manifest = Run(results / "tones" / "0").manifest
    assert (manifest["reads"], manifest["chosen_by"]) == ("tones", "explained")
    best = max(float(row["explained"]) for row in rows if row["split"] == "validation")
    assert manifest["best_validation_explained"] == best
    shown = f"validation explained {best:.3f}"
    assert shown in trained.out
    assert "Next: kattn eval tones" in trained.out
    assert shown in " ".join(run(capfd, "list", "runs", *where).out.split())
    evaluated = run(capfd, "eval", "tones", "--split", "validation", *where)
    assert f"validation  {EXPLAINED.formatted(best)}" in evaluated.out
    (row,) = read_rows(results / "tones" / "0" / "tones.csv")
    assert float(row["explained"]) == pytest.approx(best, abs=1e-9)
    refused = kattn(capfd, "eval", "tones", "--corruptions", *where)
    assert refused.code == 2
    assert "reads tones; --corruptions is for runs on images or images with masks" in refused.err
    run(capfd, "plot", "tones", *where)
    assert list(results.rglob("curves.p*"))
    report = run(capfd, "report", "tones", "--output", tmp_path / "page", *where)
    assert "report.md" in report.out
    page = next(tmp_path.rglob("report.md")).read_text(encoding="utf-8")
    assert "best explained" in page
    assert f"{best:.3f}" in page
    assert "hears" in run(capfd, "list", "models").out
    assert "tones of a test" in run(capfd, "list", "data").out
    assert "train 64" in run(capfd, "data", "check", "tones").out


def test_a_sixth_kind_is_swept(
    recipe: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(EXECUTORS, "local", InThisProcess)
    results = tmp_path / "results"
    over = ["train.lr=[1e-2,1e-4]"]
    said = run(capfd, "sweep", recipe, "--over", over[0], "--results", results)
    rows = read_rows(results / "tones" / "sweep.csv")
    assert [(row["status"], row["split"], row["metric"]) for row in rows] == [
        ("finished", "validation", "explained")
    ] * 2
    assert "validation explained" in said.out
    (record,) = plan([str(recipe)], [], over, [], results)
    table = ranking(record)
    assert [column.header for column in table.columns] == ["train.lr", "validation explained", "seeds"]
    best = sorted((float(row["value"]) for row in rows), reverse=True)
    assert [str(cell) for cell in table.columns[1].cells] == [f"{value:.3f}" for value in best]
    for state in record.states:
        state.status = "running"
    view = Console(width=200, record=True, quiet=False, file=(tmp_path / "view.txt").open("w"))
    view.print(SweepView(record.states)._table())
    assert "2/2" in (text := view.export_text())
    assert "validation explained" in text
