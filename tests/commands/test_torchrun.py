"""``torchrun -m kattn_cli train``: one run of two processes, and none that hangs when the other dies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import kattn_cli
from kattn_cli.commands.train.train import train
from kattn_cli.runs.csv_rows import read_rows

TORCHRUN = (sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "kattn_cli")
DEADLY = """
import os, signal
from kattn_cli.attention.softmax import SoftmaxAttention

class Deadly(SoftmaxAttention):
    calls = 0
    def forward(self, x, mask=None):
        self.calls += self.training
        if self.calls > 7 and os.environ["RANK"] == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super().forward(x, mask)
"""


def torchrun(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(Path(kattn_cli.__file__).parents[1]), str(folder)])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    command = [*TORCHRUN, "train", *arguments, "--device", "cpu"]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )


def test_two_processes_make_one_run(tiny_recipe: Path, tmp_path: Path) -> None:
    done = torchrun(tmp_path, str(tiny_recipe))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("best validation top-1") == 1
    assert [folder.name for folder in (tmp_path / "results" / "tiny").iterdir()] == ["0"]
    together = tmp_path / "results" / "tiny" / "0"
    manifest = json.loads((together / "manifest.json").read_text())
    assert (manifest["status"], manifest["processes"]) == ("finished", 2)
    (alone,) = train([str(tiny_recipe)], [], [], results=tmp_path / "alone", device=torch.device("cpu"))
    curves = [[float(row["loss"]) for row in read_rows(folder / "metrics.csv")] for folder in (together, alone.folder)]
    assert curves[0] == pytest.approx(curves[1], abs=1e-5)


def test_a_process_that_dies_ends_the_other_with_a_message(tiny_recipe: Path, tmp_path: Path) -> None:
    """The second is killed in the second epoch; what the first epoch left can be gone on from, in one process."""
    (tmp_path / "deadly.py").write_text(DEADLY)
    died = torchrun(tmp_path, str(tiny_recipe), f"attention={tmp_path}/deadly.py:Deadly")
    assert died.returncode != 0
    assert "another process of this training is gone" in died.stderr
    run = tmp_path / "results" / "tiny" / "0"
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "failed"
    assert "is gone" in manifest["reason"]
    assert [row["epoch"] for row in read_rows(run / "metrics.csv")] == ["1", "1"]
    os.environ["RANK"] = "0"
    try:
        (resumed,) = train([str(run)], [], [], results=tmp_path / "results", device=torch.device("cpu"), resume=True)
    finally:
        del os.environ["RANK"]
    assert resumed.status == "finished"
