"""Gross outliers among tokens: how far they move all others, by hand, and of mechanisms that know each other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import kattn

from kattn_cli.audit.items.outliers.measure import SIZES, displacement, with_outliers


def test_displacement_of_the_tokens_left_alone_by_hand() -> None:
    before = torch.tensor([[[3.0, 0.0], [0.0, 4.0], [9.0, 9.0]]])
    after = torch.tensor([[[3.0, 1.0], [0.0, 4.0], [0.0, 0.0]]])
    assert displacement(before, after, torch.tensor([[False, False, True]])).tolist() == pytest.approx([1 / 5])
    assert displacement(before, before, torch.tensor([[False, False, True]])).tolist() == [0.0]


def test_a_tenth_of_the_tokens_are_replaced_by_noise_of_that_size() -> None:
    x = torch.randn(4, 40, 64, dtype=torch.float64)
    replaced, mask = with_outliers(x, 16, torch.Generator().manual_seed(0))
    assert mask.sum(1).tolist() == [4] * 4
    assert torch.equal(replaced[~mask], x[~mask])
    assert replaced[mask].square().mean().sqrt().item() == pytest.approx(16, rel=0.1)
    twice, same = with_outliers(x, 32, torch.Generator().manual_seed(0))
    assert torch.equal(same, mask)
    assert torch.allclose(twice[mask], 2 * replaced[mask])
    assert with_outliers(x[:, :3], 1, torch.Generator())[1].sum(1).tolist() == [1] * 4


def test_every_mechanism_is_measured(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = Path(shutil.copytree(trained, tmp_path / "results"))
    said = kattn(capfd, "audit", "tiny/0", "--only", "outliers", "--inputs", 4, "--results", results)
    assert said.code == 0, said.err
    rows = pd.read_csv(results / "tiny" / "0" / "audit" / "outliers.csv")
    layers = rows["layer"].nunique()
    assert rows["size"].tolist() == [*SIZES] * layers
    assert rows["displacement"].gt(0).all()
