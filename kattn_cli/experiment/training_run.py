"""One training from its recipe to its finished run, in one process or as one of several."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress as RichProgress
from rich.progress import TaskID
from torch import Tensor

from kattn_cli.console import console
from kattn_cli.data import ImageData, LoadedData
from kattn_cli.data.vocabulary import VOCABULARY_FILE
from kattn_cli.device import device_name
from kattn_cli.errors import KattnError, Stopped
from kattn_cli.experiment.experts import note_epoch
from kattn_cli.experiment.loading import build, data_of, identity, vocabulary_of
from kattn_cli.experiment.resume import Resumption
from kattn_cli.experiment.tensorboard import Board
from kattn_cli.kernels.choice import version
from kattn_cli.models import AttentionModel, Classifier
from kattn_cli.models.initial import initialise_from
from kattn_cli.models.pretrained import load_pretrained
from kattn_cli.models.transfer import Transfer
from kattn_cli.recipe.model import TimmModel
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.csv_rows import append_rows, read_rows, write_rows
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import RECIPE, Run, create_run
from kattn_cli.runs.whole_file import write_text
from kattn_cli.tasks.objectives import LOSS, objective_of
from kattn_cli.training.checkpoint import has_state, load_state, save_state, save_weights, weights_path
from kattn_cli.training.distributed import World
from kattn_cli.training.loop import Hooks, Interrupted, Progress, Trainer, Update
from kattn_cli.training.seed import Stream, seed_torch

METRICS_CSV = "metrics.csv"
SHORT = {"images": "img", "sequences": "seq", "windows": "win"}
SHOWN_EVERY = 10
"""Steps between two looks at the loss, each of which waits for the device."""


@dataclass(frozen=True)
class Job:
    """One training to be done: what a worker needs to know."""

    recipe: Recipe
    overrides: tuple[str, ...]
    results: Path
    device: torch.device
    resumed: Resumption | None


class _Follower(Run):
    """The run as the other processes of its training see it: they write nothing."""

    def update(self, **changes: Any) -> None:
        """Nothing: the first process does."""

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Nothing, too."""
        yield


def train_one(job: Job, bar: RichProgress, world: World | None = None) -> Run:
    """Train; of the processes of ``world`` the first one writes, and each returns the run.

    Raises:
        Stopped: if the user stopped it, with what was kept and how to go on.
        KattnError: if it cannot go on; the run's folder stands first in its text.
    """
    world = world or World()
    run = world.on_main(lambda: _run_of(job))
    run = run if world.main else _Follower(run.folder)
    with run.hold():
        return _train_held(job, run, bar, world)


def _train_held(job: Job, run: Run, bar: RichProgress, world: World) -> Run:
    recipe = job.recipe
    run.begin(threads=torch.get_num_threads(), processes=world.size, operators=version())
    task = bar.add_task(f"{recipe.name}/{recipe.seed}", total=None, count="", note="")
    try:
        trainer = _trainer(job, run, bar, task, world)
        bar.update(task, total=trainer.steps, completed=trainer.progress.step)
        done = trainer.run()
    except Interrupted as stop:
        bar.stop()
        run.try_end("interrupted", reason=str(stop))
        raise Stopped(
            f"{run.folder}: {stop}; kept in checkpoints/last.safetensors.\n"
            f"Go on from there with: kattn train {run.folder} --resume",
            128 + stop.signal,
        ) from None
    except KeyboardInterrupt:
        run.try_end("interrupted", reason="stopped at once")
        raise Stopped(f"{run.folder}: stopped at once; the last whole epoch is kept", 128 + signal.SIGINT) from None
    except BaseException as error:
        run.try_end("failed", reason=f"{type(error).__name__}: {error}")
        if isinstance(error, KattnError) and str(run.folder) not in str(error):
            raise type(error)(f"{run.folder}: {error}") from None
        raise
    run.end("finished", **_summary(done), **_memory(trainer))
    world.barrier()
    return run


def _run_of(job: Job) -> Run:
    """The run to go on with, or a new one."""
    return job.resumed.run if job.resumed else _new_run(job)


def _new_run(job: Job) -> Run:
    manifest = {
        "status": "created",
        "overrides": list(job.overrides),
        "mechanism": job.recipe.attention.characteristic,
        **provenance(device_name(job.device)),
    }
    return create_run(job.results, job.recipe.name, job.recipe.seed, job.recipe.to_yaml(), manifest)


def _trainer(job: Job, run: Run, bar: RichProgress, task: TaskID, world: World) -> Trainer:
    """All that training needs, restored where the run had begun."""
    recipe = job.recipe
    seed_torch(recipe.seed, Stream.INITIALISATION)
    data = data_of(recipe)
    model = build(recipe, data).to(job.device)
    state = _state(run, world)
    if state is None:
        _begin_from(model, recipe, run)
    logged = recipe.train.tensorboard and world.main
    board = Board(run.folder, state["progress"]["step"] if state else 0) if logged else None
    hooks = _hooks(run, recipe, model, data, bar, task, board)
    trainer = Trainer(model, data, recipe.train, recipe.seed, hooks, world)
    if state is not None:
        trainer.restore(state)
    if job.resumed and world.main:
        _go_on(trainer, job, job.resumed, run)
    if world.main and (vocabulary := vocabulary_of(data)):
        write_text(run.folder / VOCABULARY_FILE, json.dumps(vocabulary.to_json()) + "\n")
    run.update(
        chosen_on=data.chosen_on,
        chosen_by=trainer.objective.chosen_by,
        reads=data.reads,
        parameters=sum(one.numel() for one in model.parameters()),
    )
    return trainer


def _state(run: Run, world: World) -> dict[str, Any] | None:
    """What an earlier half of the training left, read by the first process for all."""

    def read() -> dict[str, Any] | None:
        return load_state(run.folder, on_damage=partial(console.print, markup=False)) if has_state(run.folder) else None

    return world.on_main(read)


def _begin_from(model: AttentionModel, recipe: Recipe, run: Run) -> None:
    """Weights that the recipe says to begin from; what became of them goes to console and manifest."""
    transfer: Transfer | None = None
    if recipe.init_from:
        transfer = initialise_from(model, recipe.init_from)
    elif isinstance(recipe.model, TimmModel) and recipe.model.weights:
        assert isinstance(model, Classifier)
        transfer = load_pretrained(model, recipe.model.name, recipe.model.weights)
    if transfer:
        run.update(weights=asdict(transfer))
        console.print(f"{run.folder}: {transfer}", markup=False)


def _go_on(trainer: Trainer, job: Job, resumed: Resumption, run: Run) -> None:
    """Write down that the run goes on, from where, and with which recipe."""
    step = trainer.progress.step
    _forget_after(run.folder / METRICS_CSV, step)
    write_text(run.folder / RECIPE, job.recipe.to_yaml())
    manifest = run.manifest
    resumption = {**provenance(manifest["device"]), "step": step, "changes": list(resumed.changes)}
    given = {override.partition("=")[0] for override in job.overrides}
    kept = [override for override in manifest.get("overrides", []) if override.partition("=")[0] not in given]
    run.update(
        resumptions=[*manifest.get("resumptions", []), resumption],
        overrides=[*kept, *job.overrides] if resumed.changes else manifest.get("overrides", []),
    )
    what = f"changed in the recipe: {'; '.join(resumed.changes)}" if resumed.changes else "the recipe is unchanged"
    console.print(f"{run.folder}: going on from step {step:,} of {trainer.steps:,}; {what}", markup=False)


def _forget_after(path: Path, step: int) -> None:
    """Rows of steps that are to be made again."""
    if rows := [row for row in read_rows(path) if int(row["step"]) <= step]:
        write_rows(path, rows)
    else:
        path.unlink(missing_ok=True)


def _summary(done: Progress) -> dict[str, Any]:
    summary: dict[str, Any] = {
        "train_seconds": round(done.seconds, 2),
        "best_epoch": done.best_epoch,
        **{f"best_validation_{name}": value for name, value in done.best_measures.items()},
        "best_validation_loss": done.best_loss,
    }
    if done.skipped:
        summary["skipped_steps"] = done.skipped
    return summary


def _validated(update: Update, chosen_by: str) -> str:
    """What the last validation found, of what an epoch is chosen by."""
    found = update.validation
    if found is None:
        return ""
    return f"val loss {found.loss:.3f} " if chosen_by == LOSS else f"val {found.measures[chosen_by]:.1f} "


def _memory(trainer: Trainer) -> dict[str, float]:
    """The most memory that a step took; on a CPU of sequences alone, whose tables have it."""
    if trainer.model.device.type == "cpu" and trainer.unit == ImageData.unit:
        return {}
    return {"peak_memory_mib": round(trainer.peak_memory(), 1)}


def _hooks(
    run: Run,
    recipe: Recipe,
    model: AttentionModel,
    data: LoadedData,
    bar: RichProgress,
    task: TaskID,
    board: Board | None,
) -> Hooks:
    chosen_by = objective_of(data).chosen_by

    def on_step(update: Update) -> None:
        if update.step % SHOWN_EVERY and update.step != update.steps:
            return
        if board:
            board.step(update)
        if not bar.disable:
            rate = f"{update.samples_per_second:,.0f} {SHORT[data.unit]}/s"
            note = f"loss {update.loss.item():.2f} {_validated(update, chosen_by)}{rate}"
            bar.update(task, completed=update.step, count=f"{update.epoch}/{recipe.train.epochs}", note=note)

    def on_epoch(rows: list[dict[str, Any]]) -> None:
        append_rows(run.folder / METRICS_CSV, rows)
        note_epoch(run, model, rows[0]["epoch"])
        if board:
            board.epoch(rows)
        told = run.manifest.get("corrupt_images", []) if data.unreadable() else []
        if fresh := [name for name in data.unreadable() if name not in told]:
            run.update(corrupt_images=[*told, *fresh])
            for name in fresh:
                console.print(f"{run.folder}: skipped an image that cannot be read: {name}", markup=False)

    def save(which: str, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        save_weights(weights_path(run.folder, which), weights, identity(recipe), step=state["progress"]["step"])
        if which == "last":
            save_state(run.folder, state)
        if board:
            board.flush()

    return Hooks(on_step, on_epoch, save)
