"""A training step of a whole model at 224 × 224, with our operators and with the slow ones."""

from __future__ import annotations

from kattn_cli.commands.benchmark.item import Check, Outcome, Place, by_version
from kattn_cli.commands.model_costs.models import Measured, measured_models
from kattn_cli.costs.timing import Program
from kattn_cli.runs.csv_rows import Row
from kattn_cli.statistics.intervals import median_interval
from kattn_cli.training.seed import Stream, seed_torch

MODELS = ("imagenet/tost_small", "imagenet/rpc_symvit_tiny", "imagenet/rpc_all_symvit_tiny")
BATCH = {"cpu": 8, "cuda": 128}


def training_steps(place: Place) -> Outcome:
    """Measure forward, loss, backward and optimizer, as the recipe says, on synthetic images with float32 weights."""
    rows: list[Row] = []
    checks = []
    batch = BATCH[place.device.type]
    for model in measured_models(MODELS, ()):
        step = _step(model, place, batch)
        times = place.in_turns({version: by_version(step, version) for version in ("fast", "slow")})
        rows += [
            {"program": f"{model.name} {version}", "round": number, "milliseconds": round(value, 5), "batch": batch}
            for version, values in times.items()
            for number, value in enumerate(values, 1)
        ]
        ratios = [slow / fast for slow, fast in zip(times["slow"], times["fast"], strict=True)]
        says = f"{model.name}: times as fast a step, batch {batch}"
        checks.append(Check("time", model.name, "slow", *median_interval(ratios), "at least", None, says))
    return Outcome(rows, checks)


def _step(model: Measured, place: Place, batch: int) -> Program:
    seed_torch(0, Stream.COMPLEXITY, model.tokens)
    images = model.sample(batch, place.device)
    step = model.training_step(model.build().to(place.device), batch, str(place.dtype).removeprefix("torch."))
    return lambda: step(images)
