"""``kattn train``: one run for each recipe and seed."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress as RichProgress
from rich.progress import TaskID

from kattn_cli.commands import recipes
from kattn_cli.commands.loading import build, data_of, identity
from kattn_cli.commands.parallel import in_parallel
from kattn_cli.console import console, progress_bar
from kattn_cli.device import device_name
from kattn_cli.errors import KattnError, RunError, Stopped
from kattn_cli.models.pretrained import load_pretrained
from kattn_cli.provenance import provenance
from kattn_cli.recipe import Recipe
from kattn_cli.recipe_files import find_recipes
from kattn_cli.recipe_model import TimmModel
from kattn_cli.results import MANIFEST, RECIPE, Run, all_runs, append_rows, create_run, read_rows, write_rows
from kattn_cli.training.checkpoint import FOLDER, STATE, load_state, save_state, save_weights, weights_path
from kattn_cli.training.loop import Hooks, Interrupted, Progress, Trainer, Update
from kattn_cli.training.seed import Stream, seed_torch

METRICS_CSV = "metrics.csv"
SHOWN_EVERY = 10
"""Steps between two looks at the loss, each of which waits for the device."""


@dataclass(frozen=True)
class Job:
    """One training to be done: what a worker needs to know."""

    recipe: Recipe
    overrides: tuple[str, ...]
    results: Path
    device: torch.device
    resumed: Run | None


def train(
    references: Sequence[str],
    overrides: Sequence[str],
    seeds: Sequence[int],
    *,
    results: Path,
    device: torch.device,
    resume: bool = False,
    jobs: int = 1,
) -> list[Run]:
    """Train every recipe with every seed (by default the recipe's own), ``jobs`` at a time.

    All recipes are read before any work, so a fault of one stops all. Returns the runs as they finished.
    """
    paths = [path for reference in references for path in find_recipes(reference)]
    per_seed = [[f"seed={seed}"] for seed in seeds] or [[]]
    plan = []
    for path in paths:
        for seed in per_seed:
            recipe = recipes.load(path, [*overrides, *seed], weights=not resume)
            resumed = _unfinished(recipe, path, results) if resume else None
            plan.append(Job(recipe, tuple(overrides), results, device, resumed))
    if jobs == 1:
        with progress_bar("epoch") as bar:
            return [_train_one(job, bar) for job in plan]
    runs = []
    with progress_bar("run") as bar:
        overall = bar.add_task(f"{jobs} at a time", total=len(plan), count=f"0/{len(plan)}", note="")
        for run in in_parallel(_train_quietly, [(job,) for job in plan], jobs):
            runs.append(run)
            done = run.manifest
            console.print(
                f"{run.folder}: {done['train_seconds']:.0f} s, validation top-1 {done['best_validation_top1']:.1f}"
            )
            bar.update(overall, completed=len(runs), count=f"{len(runs)}/{len(plan)}")
    return runs


def _train_quietly(job: Job) -> Run:
    """In a worker: train without a bar."""
    console.quiet = True
    with progress_bar("epoch") as bar:
        return _train_one(job, bar)


def _unfinished(recipe: Recipe, path: Path, results: Path) -> Run | None:
    """The run whose recipe ``path`` is, or the newest run of this very recipe that was begun and not finished.

    Raises:
        RunError: if ``path`` belongs to a run that has nothing left to do, is being trained, or whose recipe
            the command line would change.
    """
    if (path.parent / MANIFEST).is_file():
        named = Run(path.parent)
        if named.status in ("finished", "running"):
            raise RunError(f"{named.folder}: is {named.status}; there is nothing to resume")
        if path.read_text(encoding="utf-8") != recipe.to_yaml():
            raise RunError(f"{named.folder}: cannot be resumed with another recipe; leave out the overrides and seeds")
        return named
    folder = results / recipe.name
    for run in reversed(all_runs(folder) if folder.is_dir() else []):
        same = (run.folder / RECIPE).read_text(encoding="utf-8") == recipe.to_yaml()
        if same and run.status not in ("finished", "running"):
            return run
    return None


def _new_run(job: Job) -> Run:
    manifest = {
        "status": "running",
        "overrides": list(job.overrides),
        "mechanism": job.recipe.attention.characteristic,
        **provenance(device_name(job.device)),
    }
    return create_run(job.results, job.recipe.name, job.recipe.seed, job.recipe.to_yaml(), manifest)


def _train_one(job: Job, bar: RichProgress) -> Run:
    run = job.resumed or _new_run(job)
    run.begin(threads=torch.get_num_threads())
    recipe = job.recipe
    task = bar.add_task(f"{recipe.name}/{recipe.seed}", total=None, count="", note="")
    try:
        seed_torch(recipe.seed, Stream.INITIALISATION)
        data = data_of(recipe)
        model = build(recipe, data).to(job.device)
        trainer = Trainer(model, data, recipe.train, recipe.seed, _hooks(run, recipe, model, bar, task))
        if (run.folder / FOLDER / STATE).is_file():
            _restore(trainer, run)
        elif isinstance(recipe.model, TimmModel) and recipe.model.weights:
            transfer = load_pretrained(model, recipe.model.name, recipe.model.weights)
            run.update(weights=asdict(transfer))
            console.print(f"{run.folder}: {transfer}", markup=False)
        bar.update(task, total=trainer.steps, completed=trainer.progress.step)
        done = trainer.run()
    except Interrupted as stop:
        bar.stop()
        run.end("interrupted", reason=str(stop))
        raise Stopped(
            f"{run.folder}: {stop}; kept in checkpoints/last.safetensors.\n"
            f"Go on from there with: kattn train {run.folder} --resume",
            128 + stop.signal,
        ) from None
    except KeyboardInterrupt:
        run.end("interrupted", reason="stopped at once")
        raise Stopped(f"{run.folder}: stopped at once; the last whole epoch is kept", 128 + signal.SIGINT) from None
    except BaseException as error:
        run.end("failed", reason=f"{type(error).__name__}: {error}")
        if isinstance(error, KattnError):
            raise type(error)(f"{run.folder}: {error}") from None
        raise
    parameters = sum(parameter.numel() for parameter in model.parameters())
    run.end("finished", parameters=parameters, **_summary(done))
    return run


def _summary(done: Progress) -> dict[str, Any]:
    return {
        "train_seconds": round(done.seconds, 2),
        "best_epoch": done.best_epoch,
        "best_validation_top1": done.best_top1,
    }


def _restore(trainer: Trainer, run: Run) -> None:
    trainer.restore(load_state(run.folder))
    step = trainer.progress.step
    path = run.folder / METRICS_CSV
    if rows := [row for row in read_rows(path) if int(row["step"]) <= step]:
        write_rows(path, rows)
    else:
        path.unlink(missing_ok=True)
    resumption = {**provenance(run.manifest["device"]), "step": step}
    run.update(resumptions=[*run.manifest.get("resumptions", []), resumption])
    console.print(f"{run.folder}: going on from step {step:,} of {trainer.steps:,}; the recipe is unchanged")


def _hooks(run: Run, recipe: Recipe, model: torch.nn.Module, bar: RichProgress, task: TaskID) -> Hooks:
    def on_step(update: Update) -> None:
        if bar.disable or (update.step % SHOWN_EVERY and update.step != update.steps):
            return
        top1 = "" if update.validation_top1 is None else f"val {update.validation_top1:.1f} "
        note = f"loss {update.loss.item():.2f} {top1}{update.images_per_second:,.0f} img/s"
        bar.update(task, completed=update.step, count=f"{update.epoch}/{recipe.train.epochs}", note=note)

    def save(which: str, state: dict[str, Any]) -> None:
        save_weights(weights_path(run.folder, which), model, identity(recipe), step=state["progress"]["step"])
        if which == "last":
            save_state(run.folder, state)

    return Hooks(on_step, lambda rows: append_rows(run.folder / METRICS_CSV, rows), save)
