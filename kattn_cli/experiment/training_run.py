"""One training from its recipe to its finished run, in one process or as one of several."""

from __future__ import annotations

import json
import shlex
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.progress import Progress as RichProgress
from torch import Tensor

from kattn_cli.attention.user_file import faults_of_user_files
from kattn_cli.console import console
from kattn_cli.data.loaded import LoadedData
from kattn_cli.data.vocabulary import VOCABULARY_FILE
from kattn_cli.device import device_name
from kattn_cli.errors import KattnError, RunError, Stopped
from kattn_cli.experiment.build import build, data_of
from kattn_cli.experiment.operations import flops_without_running
from kattn_cli.experiment.resume import Resumption
from kattn_cli.kernels.choice import version
from kattn_cli.models import AttentionModel, Classifier
from kattn_cli.models.initial import initialise_from
from kattn_cli.models.pretrained import load_pretrained
from kattn_cli.models.transfer import Transfer
from kattn_cli.recipe.model import TimmModel
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.csv_rows import append_rows, changing, read_rows, write_rows
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import FORWARD_FLOPS, RECIPE, Run, create_run
from kattn_cli.runs.weights import weights_path
from kattn_cli.runs.whole_file import faults_as, write_text
from kattn_cli.tasks import task_reading
from kattn_cli.tasks.expert_loads import note_epoch
from kattn_cli.tasks.task import AnyTask
from kattn_cli.training.checkpoint import has_state, load_state, save_state, save_weights
from kattn_cli.training.distributed import World
from kattn_cli.training.loop import Hooks, Interrupted, Progress, Trainer, Update
from kattn_cli.training.objective import Objective
from kattn_cli.training.opened import identity
from kattn_cli.training.seed import Stream, seed_torch

METRICS_CSV = "metrics.csv"
TENSORBOARD = "tensorboard"
_NOT_DRAWN = ("epoch", "step", "split", "lr", "seconds")
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


class Board:
    """Writes scalars into ``<run>/tensorboard``; what an interrupted run wrote beyond ``step`` is hidden.

    Each method raises :class:`RunError` if they cannot be written.
    """

    def __init__(self, run: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._faults = partial(faults_as, RunError, run / TENSORBOARD)
        with self._faults():
            self._writer = SummaryWriter(str(run / TENSORBOARD), purge_step=step + 1)

    def step(self, update: Update) -> None:
        """The loss and learning rate of one step."""
        with self._faults():
            self._writer.add_scalar("step/loss", update.loss.item(), update.step)
            self._writer.add_scalar("step/lr", update.lr, update.step)

    def epoch(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """The rows of ``metrics.csv``."""
        speed = next(name for name in rows[0] if name.endswith("_per_second"))
        with self._faults():
            for row in rows:
                for name, value in row.items():
                    if name not in _NOT_DRAWN and name != speed:
                        self._writer.add_scalar(f"{row['split']}/{name}", value, row["step"])
            self._writer.add_scalar(speed, rows[0][speed], rows[0]["step"])

    def flush(self) -> None:
        """Write what is left."""
        with self._faults():
            self._writer.flush()


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

    Data, model and the weights to begin from are made before the run's folder is: what is wrong with them leaves none.

    Raises:
        Stopped: if the user stopped it, with what was kept and how to go on.
        KattnError: if it cannot go on; the run's folder stands first in its text, or the recipe where there is none.
    """
    world = world or World()
    what = str(job.resumed.run.folder) if job.resumed else job.recipe.name
    try:
        with faults_of_user_files():
            training = _Training(job, bar, world)
    except KeyboardInterrupt:
        raise Stopped(f"{what}: stopped before a step was made", 128 + signal.SIGINT) from None
    except KattnError as error:
        raise type(error)(f"{what}: {error}") from None
    run = world.on_main(lambda: _run_of(job))
    run = run if world.main else _Follower(run.folder)
    with run.hold():
        return _train_held(training, run, bar, world)


def _train_held(training: _Training, run: Run, bar: RichProgress, world: World) -> Run:
    run.begin(threads=torch.get_num_threads(), processes=world.size, operators=version())
    try:
        with faults_of_user_files():
            done = training.begun(run).run()
    except Interrupted as stop:
        bar.stop()
        run.try_end("interrupted", reason=str(stop))
        raise Stopped(
            f"{run.folder}: {stop}; kept in checkpoints/last.safetensors.\n"
            f"Go on from there with: {shlex.join(['kattn', 'train', str(run.folder), '--resume'])}",
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
    run.end("finished", **_summary(done), **training.memory())
    world.barrier()
    return run


def _run_of(job: Job) -> Run:
    """Return the run to go on with, or a new one."""
    if job.resumed:
        return job.resumed.run
    manifest = {
        "status": "created",
        "overrides": list(job.overrides),
        "mechanism": job.recipe.attention.characteristic,
        **provenance(device_name(job.device)),
    }
    return create_run(job.results, job.recipe.name, job.recipe.seed, job.recipe.to_yaml(), manifest)


class _Training:
    """One training under way: its task, data, model and loop, and what is kept and shown of each step and epoch."""

    run: Run
    board: Board | None

    def __init__(self, job: Job, bar: RichProgress, world: World) -> None:
        self.job, self.recipe, self.world = job, job.recipe, world
        self.bar = bar
        self.row = bar.add_task(self.recipe.name, total=None, count="", note="")
        recipe, begun = self.recipe, job.resumed
        self.goes_on = begun is not None and world.on_main(lambda: has_state(begun.run.folder))
        seed_torch(recipe.seed, Stream.INITIALISATION)
        self.data: LoadedData = data_of(recipe)
        self.task: AnyTask = task_reading(self.data.reads)
        self.objective: Objective = self.task.objective(self.data)
        self.model: AttentionModel = build(recipe, self.data).to(job.device)
        self.transfer = None if self.goes_on else self._initialised()
        hooks = Hooks(self._on_step, self._on_epoch, self._save)
        self.trainer = Trainer(self.model, self.data, self.objective, recipe.train, recipe.seed, hooks, world)

    def begun(self, run: Run) -> Trainer:
        """Return the loop for the run's folder, restored where the run had begun."""
        self.run, world = run, self.world
        self.bar.update(self.row, description=f"{self.recipe.name}/{run.folder.name}")
        if self.goes_on:
            self.trainer.restore(world.on_main(lambda: load_state(run.folder, on_damage=console.print)))
        if self.transfer:
            run.update(weights=asdict(self.transfer))
            console.print(f"{run.folder}: {self.transfer}")
        logged = self.recipe.train.tensorboard and world.main
        self.board = Board(run.folder, self.trainer.progress.step) if logged else None
        if self.job.resumed and world.main:
            self._go_on(self.job.resumed)
        if world.main and (vocabulary := self.task.vocabulary(self.data)):
            write_text(run.folder / VOCABULARY_FILE, json.dumps(vocabulary.to_json()) + "\n")
        flops = flops_without_running(self.recipe, run.folder) if world.main else None
        run.update(
            chosen_on=self.data.chosen_on,
            chosen_by=self.objective.measure.name,
            reads=self.data.reads,
            parameters=sum(one.numel() for one in self.model.parameters()),
            **({FORWARD_FLOPS: flops} if flops is not None else {}),
        )
        self.bar.update(self.row, total=self.trainer.steps, completed=self.trainer.progress.step)
        return self.trainer

    def memory(self) -> dict[str, float]:
        """Return the most memory that a step took, where the task's tables have it."""
        if self.model.device.type == "cpu" and not self.task.memory_on_cpu:
            return {}
        return {"peak_memory_mib": round(self.trainer.peak_memory(), 1)}

    def _initialised(self) -> Transfer | None:
        """Take the weights that the recipe says to begin from, and return what became of them."""
        recipe, model = self.recipe, self.model
        if recipe.init_from:
            return initialise_from(model, recipe.init_from)
        if isinstance(recipe.model, TimmModel) and recipe.model.weights:
            assert isinstance(model, Classifier)
            return load_pretrained(model, recipe.model.name, recipe.model.weights)
        return None

    def _go_on(self, resumed: Resumption) -> None:
        """Write down that the run goes on, from where, and with which recipe."""
        run, job, step = self.run, self.job, self.trainer.progress.step
        _forget_after(run.folder / METRICS_CSV, step)
        write_text(run.folder / RECIPE, job.recipe.to_yaml())
        manifest = run.manifest
        resumption = {
            **provenance(manifest.get("device", device_name(job.device))),
            "step": step,
            "changes": list(resumed.changes),
        }
        given = {override.partition("=")[0] for override in job.overrides}
        kept = [override for override in manifest.get("overrides", []) if override.partition("=")[0] not in given]
        run.update(
            resumptions=[*manifest.get("resumptions", []), resumption],
            overrides=[*kept, *job.overrides] if resumed.changes else manifest.get("overrides", []),
        )
        what = f"changed in the recipe: {'; '.join(resumed.changes)}" if resumed.changes else "the recipe is unchanged"
        console.print(f"{run.folder}: going on from step {step:,} of {self.trainer.steps:,}; {what}")

    def _on_step(self, update: Update) -> None:
        if update.step % SHOWN_EVERY and update.step != update.steps:
            return
        if self.board:
            self.board.step(update)
        if not self.bar.disable:
            checked = update.validation
            found = {"loss": checked.loss, **checked.measures} if checked else None
            note = self._note(update.loss.item(), found, update.samples_per_second)
            count = f"{update.epoch}/{self.recipe.train.epochs}"
            self.bar.update(self.row, completed=update.step, count=count, note=note)

    def _note(self, loss: float, found: Mapping[str, float] | None, samples_per_second: float) -> str:
        """Return the loss, what a validation ``found`` of what an epoch is chosen by, and the speed."""
        rate = f"{samples_per_second:,.0f} {self.task.short}/s"
        if found is None:
            return f"loss {loss:.2f} {rate}"
        value = self.objective.value(found["loss"], found)
        return f"loss {loss:.2f} val {self.objective.measure.formatted(value)} {rate}"

    def _tell_epoch(self, trained: Mapping[str, Any], found: Mapping[str, Any]) -> None:
        """Show what an epoch came to, in a line of its own where the bar is not drawn."""
        note = self._note(trained["loss"], found, trained[f"{self.data.unit}_per_second"])
        count = f"{trained['epoch']}/{self.recipe.train.epochs}"
        self.bar.update(self.row, completed=trained["step"], count=count, note=note)
        if not console.is_terminal:
            console.print(f"{self.run.folder}: epoch {count}  {note}")

    def _on_epoch(self, rows: list[dict[str, Any]]) -> None:
        run = self.run
        append_rows(run.folder / METRICS_CSV, rows)
        self._tell_epoch(*rows)
        note_epoch(run, self.model, rows[0]["epoch"])
        if self.board:
            self.board.epoch(rows)
        unreadable = self.data.unreadable()
        known = run.manifest.get("corrupt_images", []) if unreadable else []
        if fresh := [name for name in unreadable if name not in known]:
            run.update(corrupt_images=[*known, *fresh])
            for name in fresh:
                console.print(f"{run.folder}: skipped an image that cannot be read: {name}")

    def _save(self, which: str, weights: dict[str, Tensor], state: dict[str, Any]) -> None:
        step = state["progress"]["step"]
        save_weights(weights_path(self.run.folder, which), weights, identity(self.recipe), step=step)
        if which == "last":
            save_state(self.run.folder, state)
        if self.board:
            self.board.flush()


def _forget_after(path: Path, step: int) -> None:
    """Remove the rows of steps that are to be made again."""
    with changing(path):
        if rows := [row for row in read_rows(path, complete=True) if int(row["step"]) <= step]:
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
