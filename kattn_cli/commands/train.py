"""``kattn train``: one run for each recipe and seed."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from kattn_cli.commands import recipes
from kattn_cli.commands.loading import build, data_of, identity
from kattn_cli.commands.parallel import in_parallel
from kattn_cli.console import console, progress_bar
from kattn_cli.device import device_name
from kattn_cli.errors import KattnError, Stopped
from kattn_cli.provenance import provenance
from kattn_cli.recipe import Recipe, find_recipes
from kattn_cli.results import Run, all_runs, append_rows, create_run, read_rows, write_rows
from kattn_cli.training.checkpoint import load_state, save_state, save_weights, weights_path
from kattn_cli.training.loop import Hooks, Interrupted, Progress, Trainer, Update
from kattn_cli.training.seed import Stream, seed_torch

METRICS_CSV = "metrics.csv"


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

    All recipes are read before any work, so a fault of one stops all. Returns the runs in the recipes' order.
    """
    paths = [path for reference in references for path in find_recipes(reference)]
    per_seed = [[f"seed={seed}"] for seed in seeds] or [[]]
    loaded = [recipes.load(path, [*overrides, *seed]) for path in paths for seed in per_seed]
    tasks = [(_run_for(recipe, overrides, results, device, resume), recipe, device) for recipe in loaded]
    if jobs == 1:
        with progress_bar("epoch") as bar:
            for task in tasks:
                _train_one(*task, bar)
    else:
        with progress_bar("run") as bar:
            overall = bar.add_task(f"{jobs} at a time", total=len(tasks), count=f"0/{len(tasks)}", note="")
            for done, note in enumerate(in_parallel(_train_quietly, tasks, jobs), 1):
                bar.console.print(note)
                bar.update(overall, completed=done, count=f"{done}/{len(tasks)}")
    return [run for run, _, _ in tasks]


def _train_quietly(run: Run, recipe: Recipe, device: torch.device) -> str:
    """Train without a bar; returns a line that says how it went."""
    console.quiet = True
    with progress_bar("epoch") as bar:
        _train_one(run, recipe, device, bar)
    done = run.manifest
    return (
        f"{recipe.name} · seed {recipe.seed}: {recipe.train.epochs} epochs in {done['train_seconds']:.0f} s, "
        f"best validation top-1 {done['best_validation_top1']:.1f}"
    )


def _run_for(recipe: Recipe, overrides: Sequence[str], results: Path, device: torch.device, resume: bool) -> Run:
    unfinished = _unfinished(recipe, results) if resume else None
    return unfinished or _new_run(recipe, overrides, results, device)


def _new_run(recipe: Recipe, overrides: Sequence[str], results: Path, device: torch.device) -> Run:
    manifest = {
        "status": "waiting",
        "overrides": list(overrides),
        "mechanism": recipe.attention.characteristic,
        **provenance(device_name(device)),
    }
    return create_run(results, recipe.name, recipe.seed, recipe.to_yaml(), manifest)


def _unfinished(recipe: Recipe, results: Path) -> Run | None:
    """The newest run of this very recipe that was begun and not finished."""
    folder = results / recipe.name
    for run in reversed(all_runs(folder) if folder.is_dir() else []):
        same = (run.folder / "recipe.yaml").read_text(encoding="utf-8") == recipe.to_yaml()
        if same and run.status not in ("finished", "running"):
            return run
    return None


def _train_one(run: Run, recipe: Recipe, device: torch.device, bar: Any) -> None:
    run.begin(threads=torch.get_num_threads())
    label = f"{recipe.name} · seed {recipe.seed}"
    task = bar.add_task(label, total=None, count="", note="")
    try:
        seed_torch(recipe.seed, Stream.INITIALISATION)
        data = data_of(recipe)
        model = build(recipe, data).to(device)
        hooks = _hooks(run, recipe, model, bar, task)
        trainer = Trainer(model, data, recipe.train, recipe.seed, hooks)
        if (run.folder / "checkpoints" / "resume.pt").is_file():
            _restore(trainer, run)
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
    console.print(f"{run.folder}: going on from step {step:,} of {trainer.steps:,}; the recipe is unchanged")


def _hooks(run: Run, recipe: Recipe, model: torch.nn.Module, bar: Any, task: Any) -> Hooks:
    def on_step(update: Update) -> None:
        if bar.disable:
            return
        due = update.step % 10 == 0
        if not due:
            bar.update(task, completed=update.step)
            return
        top1 = "" if update.validation_top1 is None else f"val top-1 {update.validation_top1:5.1f}  "
        note = f"loss {update.loss.item():5.2f}  {top1}{update.images_per_second:7,.0f} img/s"
        count = f"{update.epoch}/{recipe.train.epochs}"
        bar.update(task, completed=update.step, count=count, note=note)

    def save(which: str, state: dict[str, Any]) -> None:
        save_weights(weights_path(run.folder, which), model, identity(recipe), step=state["progress"]["step"])
        if which == "last":
            save_state(run.folder, state)

    return Hooks(on_step, lambda rows: append_rows(run.folder / METRICS_CSV, rows), save)
