"""A whole training in two processes gives the numbers that it gives in one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from two_processes import Pair, two_processes

from kattn_cli.experiment.build import build, data_of
from kattn_cli.experiment.recipes import load
from kattn_cli.tasks import objective_of
from kattn_cli.training.distributed import World
from kattn_cli.training.loop import Hooks, Trainer
from kattn_cli.training.seed import Stream, seed_torch

RANDOM = [
    "train.crop_padding=1",
    "train.flip=0.5",
    "train.erasing=0.25",
    "train.mixup=0.8",
    "train.cutmix=1.0",
    "train.repeats=3",
    "train.clip_grad=1.0",
    "model.drop_path=0.2",
    "attention.attn_drop=0.1",
]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return two_processes()


def losses(world: World, recipe: Path, overrides: list[str]) -> tuple[list[float], dict[str, Tensor]]:
    """Train; the losses and accuracies of each epoch and split, and the last weights, which the first process keeps."""
    chosen = load(recipe, overrides)
    rows: list[dict[str, Any]] = []
    kept: dict[str, Tensor] = {}

    def save(which: str, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        kept.update({name: tensor.clone() for name, tensor in weights.items()})

    seed_torch(chosen.seed, Stream.INITIALISATION)
    data = data_of(chosen)
    hooks = Hooks(lambda update: None, rows.extend, save)
    Trainer(build(chosen, data), data, objective_of(data), chosen.train, chosen.seed, hooks, world).run()
    return [row[key] for row in rows for key in ("loss", "auxiliary_loss", "top1")], kept


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (["train.batch_size=256"], ["train.batch_size=256"]),
        (["train.ema=0.9"], ["train.ema=0.9", "train.accumulate=2"]),
        ([*RANDOM, "train.accumulate=2"], RANDOM),
        ([*RANDOM, "train.accumulate=4"], [*RANDOM, "train.accumulate=2"]),
        (["train.clip_grad=0.5"], ["train.clip_grad=0.5", "train.parallel=fsdp"]),
        (["attention={name: primal, s: 3, eta: 0.1}"], ["attention={name: primal, s: 3, eta: 0.1}"]),
    ],
    ids=["plain", "parts", "random", "random parts", "fsdp", "primal"],
)
def test_two_processes_equal_one(pair: Pair, tiny_recipe: Path, one: list[str], two: list[str]) -> None:
    """The same global batches: the same curves within 1e-5, random draws included where the shards are the same."""
    expected, weights = losses(World(), tiny_recipe, one)
    (found, together), (silent, nothing) = pair.run(losses, tiny_recipe, two)
    assert found == pytest.approx(expected, abs=1e-5)
    assert silent == []
    assert nothing == {}
    for name, tensor in weights.items():
        torch.testing.assert_close(together[name], tensor, rtol=0, atol=2e-4)
