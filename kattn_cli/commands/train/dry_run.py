"""``kattn train --dry-run``: what a training would be, without training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from rich.table import Table
from torch import Tensor

from kattn_cli.console import console
from kattn_cli.costs.summary import Summary, summarise
from kattn_cli.data.loaded import LoadedData
from kattn_cli.experiment import recipes
from kattn_cli.experiment.build import build, data_of
from kattn_cli.models import AttentionModel, auxiliary_loss
from kattn_cli.recipe.schema import Recipe, per_seed
from kattn_cli.tasks import task_reading
from kattn_cli.training.plan import Plan


def dry_run(
    references: Sequence[str], overrides: Sequence[str], seeds: Sequence[int], *, results: Path, processes: int = 1
) -> None:
    """Print each recipe's data, model, steps and memory; nothing is trained or written."""
    for _, recipe in recipes.load_each(references, overrides):
        chosen = [one.seed for one in per_seed(recipe, seeds)]
        data = data_of(recipe)
        with torch.device("meta"):
            model = build(recipe, data)
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        rows = (
            ("data", _data(data)),
            *_model(recipe, data, model, processes),
            ("steps", _steps(recipe, data, processes)),
            ("writes", ", ".join(f"{results / recipe.name}/{seed}" for seed in chosen)),
        )
        for row in rows:
            table.add_row(*row)
        console.print(f"\n{recipe.name}: a dry run, nothing is trained")
        console.print(table)


def _data(data: LoadedData) -> str:
    counts = ", ".join(f"{len(split):,} {name}" for name, split in data.splits.items())
    chosen = "; the best epoch is chosen on the test set" if data.chosen_on == "test" else ""
    return f"{data.name}: {counts}; {task_reading(data.reads).shape(data)}{chosen}"


def _model(recipe: Recipe, data: LoadedData, model: AttentionModel, processes: int) -> Iterator[tuple[str, str]]:
    yield "model", f"{recipe.model.name}: {sum(one.numel() for one in model.parameters()):,} parameters"
    yield "attention", _attention(model)
    train = recipe.train
    model.set_grad_checkpointing(train.grad_checkpointing)
    shard = -(-train.batch_size // (processes * train.accumulate))

    def loss(inputs: Any) -> Tensor:
        return model(inputs).float().logsumexp(-1).mean() + auxiliary_loss(model)

    try:
        sample = partial(data.sample, device="meta")
        summary = summarise(model, loss, sample, shard=shard, ema=train.ema is not None)
    except Exception as error:
        yield "memory", f"cannot be estimated: a mechanism does not run without data ({type(error).__name__})"
        return
    yield "operations", f"{_scaled(summary.flops)}FLOP {_one(data)} forward, matrix products only"
    yield "memory", _memory(summary, f"{shard:,} {data.unit}", train.precision)


def _one(data: LoadedData) -> str:
    return f"{'an' if data.unit[0] in 'aeiou' else 'a'} {data.unit.removesuffix('s')}"


def _attention(model: AttentionModel) -> str:
    kinds = [type(mechanism).__name__ for mechanism in model.mechanisms()]
    parts, layer = [], 0
    for kind, group in groupby(kinds):
        count = len(list(group))
        parts.append(f"{kind} (layer {layer})" if count == 1 else f"{kind} (layers {layer}–{layer + count - 1})")
        layer += count
    return ", ".join(parts)


def _memory(summary: Summary, shard: str, precision: str) -> str:
    fixed = summary.memory - summary.activations
    note = "" if precision == "float32" else f", less in {precision}"
    return (
        f"about {_gib(summary.memory)} on each device: {_gib(summary.activations)} kept for the backward pass of "
        f"{shard} in float32{note}; {_gib(fixed)} weights, gradients and AdamW's moments"
    )


def _steps(recipe: Recipe, data: LoadedData, processes: int) -> str:
    train = recipe.train
    plan = Plan(len(data.splits["train"]), train, recipe.seed, processes=processes)
    parts = f", in {plan.shards} parts" if plan.shards > 1 else ""
    return (
        f"{plan.steps_per_epoch:,} an epoch × {train.epochs:,} epoch{'s' * (train.epochs > 1)} = {plan.steps:,}, "
        f"each of {train.batch_size:,} {data.unit}{parts}"
    )


def _gib(count: int) -> str:
    return f"{count / 2**30:.2f} GiB" if count >= 2**30 / 10 else f"{count / 2**20:.1f} MiB"


def _scaled(count: float) -> str:
    for unit in ("", "k", "M", "G"):
        if count < 1000:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:.3g} T"
