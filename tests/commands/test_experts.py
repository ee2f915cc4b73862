"""``experts.csv``: the load of an epoch, and of a split that was evaluated."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import nn

from kattn_cli.models import LanguageModel, build_language_model
from kattn_cli.models.experts import ExpertLoad
from kattn_cli.recipe.model import Decoder
from kattn_cli.recipe.schema import Attention
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run, create_run
from kattn_cli.tasks.expert_loads import EXPERTS_CSV, note_epoch, note_evaluation, rows, summary

TOKENS = 2 * 5


def mixture(**experts: float) -> LanguageModel:
    torch.manual_seed(0)
    sizes = {"dim": 8, "depth": 2, "heads": 2, "experts": {"count": 4, "top": 2, "capacity": 0.5, **experts}}
    model = build_language_model(
        Decoder.model_validate(sizes), Attention.model_validate({"name": "softmax"}), seq_len=5, vocabulary=7
    )
    for one in model.experts():
        nn.init.normal_(one.router.weight)
    return model


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return create_run(tmp_path, "moe", 0, "name: moe\n", {"status": "running"})


def test_an_epoch_of_training(run: Run) -> None:
    """Every choice of every token is there, ⌈0.5 · 10 · 2 / 4⌉ = 3 of each expert were served, the rest is dropped."""
    model = mixture().train()
    for _ in range(2):
        model(torch.randint(7, (2, 5)))
    note_epoch(run, model, epoch=1)
    found = read_rows(run.folder / EXPERTS_CSV)
    assert [(one["split"], one["epoch"], one["layer"], one["expert"]) for one in found] == [
        ("train", "1", str(layer), str(expert)) for layer in range(2) for expert in range(4)
    ]
    for layer in ("0", "1"):
        own = [one for one in found if one["layer"] == layer]
        assert sum(int(one["tokens"]) for one in own) == 2 * 2 * TOKENS
        assert sum(float(one["share"]) for one in own) == pytest.approx(1)
        assert sum(float(one["probability"]) for one in own) == pytest.approx(1)
        assert all(int(one["tokens"]) - int(one["dropped"]) <= 2 * 3 for one in own)
    dropped = sum(int(one["dropped"]) for one in found)
    assert dropped > 0
    assert run.manifest["dropped_by_experts"] == pytest.approx(dropped / (2 * 2 * 2 * TOKENS))


def test_each_epoch_by_itself(run: Run) -> None:
    """And an epoch that is made again takes the place of the first."""
    model = mixture().train()
    for epoch, batches in [(1, 1), (2, 3), (2, 2)]:
        for _ in range(batches):
            model(torch.randint(7, (2, 5)))
        note_epoch(run, model, epoch)
    found = read_rows(run.folder / EXPERTS_CSV)
    tokens = {epoch: sum(int(one["tokens"]) for one in found if one["epoch"] == epoch) for epoch in ("1", "2")}
    assert tokens == {"1": 2 * 2 * TOKENS, "2": 2 * 2 * 2 * TOKENS}


def opened(run: Run, model: Any) -> Any:
    return SimpleNamespace(run=run, model=model, checkpoint="best", step=3, weights="abc")


def test_evaluation_beside_training(run: Run) -> None:
    """Its rows stand for themselves; nothing is dropped, and the line says who had most."""
    model = mixture().train()
    model(torch.randint(7, (2, 5)))
    model.eval()(torch.randint(7, (1, 5)))
    line = note_evaluation(opened(run, model), "test")
    note_epoch(run, model, epoch=1)
    found = read_rows(run.folder / EXPERTS_CSV)
    test = [one for one in found if one["split"] == "test"]
    assert len(found) == 2 * len(test) == 16
    assert {(one["epoch"], one["checkpoint"], one["dropped"]) for one in test} == {("", "best", "0")}
    assert {(one["step"], one["weights"], one["asked"]) for one in test} == {("3", "abc", "all")}
    assert sum(int(one["tokens"]) for one in test) == 2 * 2 * 5
    most = max(test, key=lambda one: float(one["share"]))
    assert f"most loaded {100 * float(most['share']):.1f} % (layer " in line
    assert line.endswith("dropped 0.0 %")


def test_without_experts_nothing_is_written(run: Run) -> None:
    sizes = {"dim": 8, "depth": 1, "heads": 2}
    model = build_language_model(
        Decoder.model_validate(sizes), Attention.model_validate({"name": "softmax"}), seq_len=5, vocabulary=7
    )
    model(torch.randint(7, (2, 5)))
    note_epoch(run, model, 1)
    assert note_evaluation(opened(run, model), "test") == ""
    assert not (run.folder / EXPERTS_CSV).exists()
    assert "dropped_by_experts" not in run.manifest


def test_the_line_by_hand() -> None:
    loads = {0: ExpertLoad([6, 2], [2, 0], [0.7, 0.3]), 1: ExpertLoad([4, 4], [0, 0], [0.5, 0.5])}
    evenness = (1 - (0.75 * math.log2(0.75) + 0.25 * math.log2(0.25))) / 2
    assert summary(loads) == (
        "experts: most loaded 75.0 % (layer 0, expert 0), least 25.0 % (layer 0, expert 1), even 50.0 %; "
        f"evenness {evenness:.3f}; dropped 12.5 %"
    )
    first = rows(loads, split="train", epoch=3, checkpoint="")[0]
    assert first == {
        "split": "train",
        "epoch": 3,
        "checkpoint": "",
        "layer": 0,
        "expert": 0,
        "tokens": 6,
        "share": 0.75,
        "probability": 0.7,
        "dropped": 2,
        "dropped_share": pytest.approx(1 / 3),
    }
