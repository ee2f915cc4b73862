"""A new data set is one file and one line: it is listed, checked, trained on and evaluated like the others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from command_line import kattn

from kattn_cli.data import DATASETS
from kattn_cli.data.dataset import Facts, FileCheck, ImageDataSet
from kattn_cli.data.images import MemorySplit, Split, SplitName
from kattn_cli.recipe.data import ImageSection

COUNTS: dict[SplitName, int] = {"train": 40, "test": 12}


class Stripes(ImageDataSet):
    """Pictures of 8 × 8: lines that lie (class 0) or stand (class 1)."""

    description = "lines that lie or stand"
    how_to_get = "it is made when it is asked for"

    def facts(self) -> Facts:
        return Facts(classes=2, channels=1, image_size=8, own_validation=False)

    def missing(self) -> str:
        return ""

    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        lying = (torch.arange(8) % 2).float()[:, None].expand(8, 8)
        both = torch.stack((lying, lying.T))[:, None]
        labels = {name: torch.arange(count) % 2 for name, count in COUNTS.items()}
        return {name: MemorySplit(both[classes], classes) for name, classes in labels.items()}

    def files(self) -> list[FileCheck]:
        return []

    def fetch(self) -> None:
        """There is nothing to do."""


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DATASETS, "stripes", Stripes)


def test_it_is_listed(registered: None, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "list", "data")
    assert said.code == 0
    assert "stripes" in said.out
    assert Stripes.description in said.out


def test_it_is_trained_on_and_evaluated(registered: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "stripes.yaml"
    recipe.write_text(
        "name: stripes\nattention: softmax\ndata: {name: stripes}\n"
        "model: {name: vit, patch_size: 2, dim: 16, depth: 1, heads: 2}\ntrain: {epochs: 2, batch_size: 9}\n"
    )
    where = ("--results", tmp_path / "results", "--device", "cpu")
    trained = kattn(capfd, "train", recipe, *where)
    assert trained.code == 0, trained.err
    measured = kattn(capfd, "eval", "stripes", *where)
    assert measured.code == 0, measured.err
    assert (tmp_path / "results/stripes/0/eval.csv").read_text().splitlines()[1].startswith("test,")


def test_a_name_that_is_nearly_its_own_is_pointed_out(
    registered: None, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    recipe = tmp_path / "wrong.yaml"
    recipe.write_text("name: wrong\nattention: softmax\ndata: {name: strips}\n")
    said = kattn(capfd, "train", recipe, "--results", tmp_path, "--device", "cpu")
    assert said.code == 2
    assert 'did you mean "stripes"?' in said.err
