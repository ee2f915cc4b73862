"""Runs that are opened again, and what is said of those that read something else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from kattn_cli.data.images import ImageData
from kattn_cli.errors import RunError
from kattn_cli.models import Classifier
from kattn_cli.training.opened import OpenImageRun, OpenRun, as_image_data, as_image_run


class TinyClassifier(Classifier):
    def __init__(self) -> None:
        nn.Module.__init__(self)


def opened(model: Any, data: Any, folder: Path) -> OpenRun:
    run: Any = SimpleNamespace(folder=folder)
    return OpenRun(run, SimpleNamespace(), model, data, "best", 12, "ab12")  # type: ignore[arg-type]


def test_a_run_on_images_is_the_same_run(tmp_path: Path) -> None:
    model, data = TinyClassifier(), ImageData.__new__(ImageData)
    run = opened(model, data, tmp_path)
    found = as_image_run(run, "PGD")
    assert isinstance(found, OpenImageRun)
    for name in ("run", "recipe", "model", "data", "checkpoint", "step", "weights"):
        assert getattr(found, name) is getattr(run, name)
    assert as_image_data(data, "run", "PGD") is data


def test_a_run_on_anything_else_is_refused(tmp_path: Path) -> None:
    series = SimpleNamespace(reads="sequences", name="listops")
    with pytest.raises(RunError) as caught:
        as_image_run(opened(TinyClassifier(), series, tmp_path), "PGD")
    assert str(caught.value) == f"{tmp_path}: reads sequences (listops); PGD is for runs on images"
    with pytest.raises(RunError, match=r"; PGD is for runs on images$"):
        as_image_run(opened(torch.nn.Identity(), series, tmp_path), "PGD")
    with pytest.raises(RunError) as caught:
        as_image_data(series, "a.yaml", "PGD")  # type: ignore[arg-type]
    assert str(caught.value) == "a.yaml: reads sequences (listops); PGD is for images that are classified"
