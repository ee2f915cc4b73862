"""Measure training speed against timm's own model in a plain loop, and of real data against synthetic."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.console import progress_bar
from kattn_cli.data import ImageData
from kattn_cli.device import device_name, synchronise
from kattn_cli.experiment import recipes
from kattn_cli.experiment.build import build, data_of
from kattn_cli.models.vit import build_timm, build_vit
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.model import TimmModel, Vit
from kattn_cli.recipe.schema import Attention, Recipe
from kattn_cli.recipe.train import Train
from kattn_cli.runs.csv_rows import append_rows, new_csv, write_manifest_of
from kattn_cli.runs.provenance import provenance
from kattn_cli.tasks import objective_of
from kattn_cli.training.feed import SyntheticFeed, SyntheticSplit
from kattn_cli.training.loop import Hooks, Trainer
from kattn_cli.training.opened import as_image_data
from kattn_cli.training.seed import Stream, seed_torch
from kattn_cli.training.step import autocast, build_optimizer

FOLDER = "throughput"
PLAIN, SOFTMAX, SYNTHETIC, REAL = "timm, plain loop", "kattn, softmax", "kattn, synthetic input", "kattn, its data"
PAIRS = ((SOFTMAX, PLAIN), (REAL, SYNTHETIC))
"""What is compared with what: the loop with timm's own, and the recipe's data with input that costs nothing."""
Steps = Iterator[int]
"""Each ``next`` trains one step and says how many images it saw."""


@dataclass(frozen=True)
class Speeds:
    """Images a second of each program, ``{name: [one a round]}``."""

    rounds: dict[str, list[float]]

    def median(self, name: str) -> float:
        """Return the median over rounds."""
        return statistics.median(self.rounds[name])

    def ratio(self, name: str, to: str) -> tuple[float, float, float]:
        """Return median, least and greatest of the ratios of two programs in one round each."""
        ratios = [one / other for one, other in zip(self.rounds[name], self.rounds[to], strict=True)]
        return statistics.median(ratios), min(ratios), max(ratios)


def measure_speeds(
    programs: Mapping[str, Steps],
    device: torch.device,
    *,
    rounds: int,
    steps: int,
    on_round: Callable[[int], None],
) -> Speeds:
    """Train ``steps`` steps of each program in each of ``rounds`` rounds, after one that does not count."""
    speeds: dict[str, list[float]] = {name: [] for name in programs}
    for number in range(rounds + 1):
        order = list(programs) if number % 2 else list(programs)[::-1]
        for name in order:
            speed = _images_per_second(programs[name], device, steps)
            if number:
                speeds[name].append(speed)
        on_round(number)
    return Speeds(speeds)


def _images_per_second(program: Steps, device: torch.device, steps: int) -> float:
    synchronise(device)
    started = time.perf_counter()
    images = sum(next(program) for _ in range(steps))
    synchronise(device)
    return images / (time.perf_counter() - started)


@dataclass(frozen=True)
class Throughput:
    """Speeds in images a second, and where the table lies."""

    speeds: Speeds
    path: Path


def measure_throughput(
    reference: str, overrides: list[str], *, results: Path, device: torch.device, rounds: int, steps: int
) -> Throughput:
    """Measure the recipe's training in turns with its counterparts and write ``throughput/<device>.csv``.

    Raises:
        RecipeError: naming every fault of the recipe.
    """
    recipe = recipes.load(find_recipes(reference)[0], overrides)
    data = as_image_data(data_of(recipe), recipe.name, "kattn throughput")
    images, labels = _synthetic(recipe, data, device)
    fixed = SyntheticFeed(SyntheticSplit(images, labels, len(labels)))
    programs: dict[str, Steps] = {}
    if isinstance(recipe.model, Vit | TimmModel):
        programs[PLAIN] = _plain_loop(recipe, data, images, labels, device)
        bare = recipe.model_copy(update={"attention": Attention(name="softmax"), "train": _bare(recipe.train)})
        programs[SOFTMAX] = _training(bare, data, device, fixed)
    unmixed = recipe.train.model_copy(update={"mixup": 0.0, "cutmix": 0.0})
    unmixed_recipe = recipe.model_copy(update={"train": unmixed})
    programs[SYNTHETIC] = _training(unmixed_recipe, data, device, fixed)
    programs[REAL] = _training(recipe, data, device)
    record = provenance(device_name(device))
    with progress_bar("round") as bar:
        task = bar.add_task("throughput", total=rounds + 1, count="", note="warming up")

        def on_round(number: int) -> None:
            bar.update(task, completed=number + 1, count=f"{number}/{rounds}", note=recipe.name)

        speeds = measure_speeds(programs, device, rounds=rounds, steps=steps, on_round=on_round)
    return Throughput(speeds, _write(speeds, recipe, record, results / FOLDER, device, steps))


def _synthetic(recipe: Recipe, data: ImageData, device: torch.device) -> tuple[Tensor, Tensor]:
    draws = torch.Generator().manual_seed(0)
    shape = (recipe.train.batch_size, data.channels, data.image_size, data.image_size)
    labels = torch.randint(data.classes, shape[:1], generator=draws)
    return torch.rand(shape, generator=draws).to(device), labels.to(device)


def _bare(train: Train) -> Train:
    """Return the settings that a plain loop has, too."""
    kept = {"batch_size", "lr", "weight_decay", "label_smoothing", "clip_grad", "precision", "compile"}
    return Train(**train.model_dump(include=kept))


def _training(recipe: Recipe, data: ImageData, device: torch.device, feed: SyntheticFeed | None = None) -> Steps:
    seed_torch(recipe.seed, Stream.INITIALISATION)
    model = build(recipe, data).to(device)
    trainer = Trainer(model, data, objective_of(data), recipe.train, recipe.seed, _no_hooks())
    if feed:
        trainer.feed = feed
    model.train()
    for epoch in count():
        for shards in trainer.feed.shards(trainer.plan.batches(epoch)):
            trainer.step(shards, recipe.train.lr)
            trainer.progress.step += 1
            yield sum(len(targets) for _, _, targets in shards)


def _no_hooks() -> Hooks:
    return Hooks(lambda update: None, lambda rows: None, lambda which, weights, state: None)


def _plain_loop(recipe: Recipe, data: ImageData, images: Tensor, labels: Tensor, device: torch.device) -> Iterator[int]:
    """Train timm's vision transformer with timm's attention in a loop of the fewest lines."""
    seed_torch(recipe.seed, Stream.INITIALISATION)
    sizes: dict[str, Any] = {"image_size": data.image_size, "channels": data.channels, "classes": data.classes}
    if isinstance(recipe.model, TimmModel):
        names = {"img_size": data.image_size, "in_chans": data.channels, "num_classes": data.classes}
        model = build_timm(recipe.model.name, **names, drop_path_rate=recipe.model.drop_path).to(device)
    else:
        assert isinstance(recipe.model, Vit)
        model = build_vit(**sizes, **recipe.model.model_dump(exclude={"name", "causal"})).to(device)
    train = recipe.train
    optimizer = build_optimizer(model, train)
    forward = torch.compile(model) if train.compile else model
    model.train()
    while True:
        with autocast(train.precision, device):
            loss = F.cross_entropy(forward(images), labels, label_smoothing=train.label_smoothing)
        optimizer.zero_grad()
        loss.backward()
        if train.clip_grad:
            torch.nn.utils.clip_grad_norm_(model.parameters(), train.clip_grad)
        optimizer.step()
        yield len(labels)


def _write(
    speeds: Speeds, recipe: Recipe, record: dict[str, Any], folder: Path, device: torch.device, steps: int
) -> Path:
    path = new_csv(folder, device.type)
    rows = [
        {"program": name, "round": number, "images_per_second": round(speed, 2), "steps": steps}
        for name, found in speeds.rounds.items()
        for number, speed in enumerate(found, 1)
    ]
    append_rows(path, rows)
    manifest = {**record, "threads": torch.get_num_threads(), "recipe": recipe.model_dump()}
    write_manifest_of(path, manifest)
    return path
