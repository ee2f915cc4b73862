"""A disk that is full when a command writes what it drew and counted: one line, exit code 2, nothing half written."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from command_line import kattn
from report.runs import write_all

from kattn_cli.commands.report import run as report_run
from kattn_cli.costs.memory import peak_memory
from kattn_cli.errors import RunError
from kattn_cli.experiment.training_run import TENSORBOARD, Board
from kattn_cli.figures.style import panels, save
from kattn_cli.runs.cost_table import CostTable
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.whole_file import make_folder

ACCURACIES = {"a/softmax": (80.0, 81.0), "a/tssa": (90.0, 91.0)}
METRICS = [{"epoch": k, "step": k, "split": s, "loss": 1.0, "top1": 9.0} for k in (1, 2) for s in ("train", "test")]
"""Two epochs, so that there are curves to draw."""
COSTS = {
    "attention": "softmax",
    "device": "cpu",
    "pass": "forward",
    "dtype": "float32",
    "dim": 8,
    "heads": 2,
    "batch": 1,
    "forward_flops": 1,
}
COMMANDS = {
    "plot": ("plot", "a", "--format", "svg"),
    "plot of a table": ("plot", "costs.csv"),
    "report": ("report", "a"),
    "report without figures": ("report", "a", "--no-figures"),
    "audit": ("audit", "a", "--report"),
}


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_is_one_line(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(report_run, "cpu_count", lambda: 1)
    monkeypatch.chdir(tmp_path)
    for run in write_all(tmp_path / "results", ACCURACIES):
        write_rows(run.folder / "metrics.csv", METRICS)
    costs = [{**COSTS, "n": n, "milliseconds": n, "peak_mib": n, "status": "ok"} for n in (64, 128, 256)]
    write_rows(tmp_path / "costs.csv", costs)
    monkeypatch.setattr("os.fsync", full)
    code, _, err = kattn(capfd, *words, "--output", "out", "--quiet")
    (line,) = err.splitlines()
    assert code == 2
    assert line.startswith("out/")
    assert line.endswith(": cannot be written: No space left on device")
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


@pytest.mark.parametrize("suffix", ["pdf", "png", "svg"])
def test_a_picture_is_whole_or_as_it_was(suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kattn_cli.figures.style.formats", (suffix,))
    path = save(panels(1)[0], tmp_path, "a", "the first")
    before = path.read_bytes()
    monkeypatch.setattr("pathlib.Path.write_bytes", full)
    with pytest.raises(RunError, match=rf"{path}: cannot be written: No space left on device"):
        save(panels(1)[0], tmp_path, "a", "the second")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == [path.name]


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "deeper"
    with pytest.raises(RunError, match=rf"{folder}: cannot be written: Not a directory"):
        make_folder(folder)
    with (
        pytest.raises(RunError, match="cannot be written: Not a directory"),
        CostTable.open(folder, "cpu", {}, {}, (), resume=False),
    ):
        pass


def test_logs_of_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    board = Board(tmp_path, 0)
    update: Any = SimpleNamespace(loss=torch.tensor(1.0), lr=0.1, step=1)
    rows = [{"split": "train", "step": 1, "loss": 1.0, "images_per_second": 9.0}]
    for method in ("add_scalar", "flush"):
        monkeypatch.setattr(board._writer, method, full)
    for call in (lambda: board.step(update), lambda: board.epoch(rows), board.flush):
        with pytest.raises(RunError, match=rf"{tmp_path / TENSORBOARD}: cannot be written: No space left"):
            call()


def test_temporary_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.TemporaryDirectory", full)
    with pytest.raises(RunError, match="temporary files cannot be written: No space left on device; TMPDIR names"):
        peak_memory(lambda: torch.zeros(2), torch.device("cpu"))
