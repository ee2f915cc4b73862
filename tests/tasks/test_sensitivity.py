"""Margins, the scale of logits and gradients by the image, by hand and from the command line."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import kattn
from torch import Tensor

from kattn_cli.data.images import MemorySplit
from kattn_cli.experiment.run import open_run
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import frame
from kattn_cli.tasks.images.sensitivity import gradient_norms, margins, measures
from kattn_cli.training.evaluate import Outputs, outputs_on
from kattn_cli.training.opened import as_image_run

LOGITS = torch.tensor([[2.0, 1.0, -3.0], [0.5, 1.5, 1.0], [0.0, 0.0, 0.0], [-1.0, 5.0, 2.0]])
LABELS = torch.tensor([0, 2, 1, 1])
OUTPUTS = Outputs(LOGITS, LABELS, torch.zeros(4))


def test_margins_and_scale_by_hand() -> None:
    assert margins(OUTPUTS).tolist() == [1.0, -0.5, 0.0, 3.0]
    found = measures(OUTPUTS, torch.tensor([0.0, 3.0, 1.0, 8.0]).double())
    assert found == {
        "margin_mean": 0.875,
        "margin_median": 0.5,
        "logit_scale": pytest.approx(np.std(LOGITS.numpy(), axis=1).mean()),
        "gradient_l1_mean": 3.0,
        "gradient_l1_median": 2.0,
        "zero_gradient_share": 0.25,
    }


@pytest.mark.parametrize(("scale", "flat"), [(1.0, 0), (1e4, 5)])
def test_gradients_of_a_linear_model(scale: float, flat: int) -> None:
    """(p − y) W by pixels of [0, 1]; of logits ten thousand times as large those of right images are exactly 0."""
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(8, 1, 2, 3, generator=draw)
    weights = scale * torch.randn(6, 4, generator=draw)
    logits = images.flatten(1) @ weights
    labels = torch.cat([logits[:5].argmax(1), logits[5:].argmin(1)])

    def model(pixels: Tensor) -> Tensor:
        return pixels.flatten(1) @ weights

    norms = gradient_norms(model, MemorySplit(images, labels), batch_size=3)
    p = logits.double().softmax(1).numpy()
    expected = np.abs((p - np.eye(4)[labels]) @ weights.double().numpy().T).sum(1)
    assert norms.numpy() == pytest.approx(expected, rel=1e-4, abs=1e-6)
    assert int((norms == 0).sum()) == flat


def test_from_the_command_line(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A row for each split, number of images and attention; measured again, it gives way."""
    run = Run(Path(shutil.copytree(trained, tmp_path / "results")) / "tiny" / "0")
    other = tmp_path / "other.yaml"
    model_section = "model: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}"
    other.write_text(f"name: other\ndata: {{name: digits}}\n{model_section}\nattention: symmetric\n")
    for options in ([], [], ["--limit", "40"], ["--split", "validation"], ["--run-as", other]):
        code, out, err = kattn(capfd, "eval", run.folder, "--sensitivity", "--device", "cpu", *options)
        assert code == 0, err
        assert f"\n{run.folder} " in out[out.index("zero gradient, %") :]
    rows = read_rows(run.folder / "sensitivity.csv", complete=True)
    assert [(row["split"], row["images"], row["run_as"]) for row in rows] == [
        ("test", "355", ""), ("test", "40", ""), ("validation", "185", ""), ("test", "355", "other"),
    ]  # fmt: skip
    opened = as_image_run(open_run(run, torch.device("cpu")), "a test")
    few = opened.data.splits["test"].first(40)
    found = measures(outputs_on(opened.model, few), gradient_norms(opened.model, few))
    assert {name: float(rows[1][name]) for name in found} == pytest.approx(found)
    assert found["gradient_l1_mean"] > 0
    assert frame([run], "sensitivity.csv")["images"].tolist() == [355, 40, 185], "the run's own"
    assert frame([run], "sensitivity.csv", run_as="other")["images"].tolist() == [355]
