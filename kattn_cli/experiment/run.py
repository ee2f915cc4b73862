"""From a run's folder back to its recipe, its data and its model, with the weights of any moment that were kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from rich.progress import Progress, TaskID

from kattn_cli.console import console
from kattn_cli.data.loaded import LoadedData
from kattn_cli.data.vocabulary import VOCABULARY_FILE, read_vocabulary
from kattn_cli.errors import CheckpointError, DataError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.build import build, data_of
from kattn_cli.experiment.run_as import OtherAttention
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import RECIPE, Run
from kattn_cli.runs.weights import FOLDER, kept_name, meant_weights, weights_path
from kattn_cli.tables.frames import KEPT
from kattn_cli.tasks import task_reading
from kattn_cli.training.checkpoint import kept_epochs, load_weights
from kattn_cli.training.opened import Moment, OpenRun, identity


@dataclass(frozen=True)
class Opener:
    """Opens runs on ``device``, with their ``best`` or ``last`` weights; as ``kattn eval`` is asked to."""

    device: torch.device
    checkpoint: str = "best"
    other: OtherAttention | None = None

    @property
    def run_as(self) -> str:
        """The recipe whose attention weights are run as; empty for each run's own."""
        return self.other.recipe if self.other else ""

    def open(self, run: Run) -> OpenRun:
        """Return a run as :func:`open_run` does."""
        return open_run(run, self.device, self.checkpoint, self.other)

    def read(self, run: Run) -> tuple[Recipe, Any]:
        """Return a run's recipe and data; its weights need not be there."""
        recipe = recipes.load(run.folder / RECIPE, weights=False)
        return recipe, data_of(recipe)


def open_run(run: Run, device: torch.device, checkpoint: str = "best", other: OtherAttention | None = None) -> OpenRun:
    """Load a run's ``best`` weights (chosen on validation), ``last``, those before, or those of an epoch, if kept.

    A run stopped in its first epoch has no best yet; its last is used, and that is said. Weights that are damaged or
    gone are never replaced by others.

    Args:
        other: the attention to run the weights as, in place of the run's own.

    Raises:
        RecipeError, DataError, CheckpointError: if the recipe, its data or the weights cannot be used, in one line.
    """
    recipe = recipes.load(run.folder / RECIPE, weights=False)
    checkpoint = which_weights(run, checkpoint, console.print)
    data = data_of(recipe)
    _require_same_vocabulary(run, data)
    used = other.in_place_of(run.folder / RECIPE) if other else recipe
    model = build(used, data)
    path = weights_path(run.folder, checkpoint)
    found = load_weights(path, model, identity(recipe), str(other or "the recipe"))
    run_as = other.recipe if other else ""
    return OpenRun(run, used, model.to(device).eval(), data, checkpoint, found.step, found.fingerprint, run_as)


def _require_same_vocabulary(run: Run, data: LoadedData) -> None:
    """Raises:
    DataError: if the run's tokens stood for something else when it was trained, or its vocabulary cannot be read.
    """
    vocabulary = task_reading(data.reads).vocabulary(data)
    if vocabulary and (run.folder / VOCABULARY_FILE).is_file():
        own = read_vocabulary(str(run.folder / VOCABULARY_FILE))
        if own.to_json() != vocabulary.to_json():
            raise DataError(
                f"{run.folder}: its vocabulary, of {own.size:,} tokens, is not that of its data now, of "
                f"{vocabulary.size:,}, whose text has changed; put it back, or train again"
            )


def which_weights(run: Run, checkpoint: str, tell: Callable[[str], object]) -> str:
    """Return ``checkpoint``, or ``last`` where the run was stopped before it had a best one, which is then told.

    Raises:
        CheckpointError: if it has none at all.
    """
    if not any((run.folder / FOLDER).glob("*.safetensors")):
        raise CheckpointError(f"{run.folder}: has no checkpoint (its training is {run.status})")
    meant = meant_weights(run.folder, checkpoint)
    if meant != checkpoint:
        tell(f"{run.folder}: has no {checkpoint} checkpoint yet; using the {meant}")
    return meant


def followed(run: Run, device: torch.device, checkpoint: str, bar: Progress) -> Iterator[tuple[TaskID, Moment]]:
    """:func:`moments_of` a run, each with the task in ``bar`` that counts those done."""
    total = max(1, len(kept_epochs(run.folder)))
    task = bar.add_task(f"{run.label} {run.folder.name}", total=total, count=f"0/{total}", note="")
    for number, moment in enumerate(moments_of(run, device, checkpoint), 1):
        yield task, moment
        total = max(number, total)  # one more where the chosen weights are not among those kept
        bar.update(task, completed=number, total=total, count=f"{number}/{total}", note="")


def moments_of(run: Run, device: torch.device, checkpoint: str) -> Iterator[Moment]:
    """In the order of epochs; the chosen weights once, whether or not they are among those kept.

    Args:
        checkpoint: the chosen ones, ``best`` or ``last``.

    Raises:
        RecipeError, DataError, CheckpointError: as :func:`~kattn_cli.experiment.run.open_run`.
    """
    chosen = open_run(run, device, checkpoint)
    at = _epoch_of(run, chosen.step)
    kept = [epoch for epoch in kept_epochs(run.folder) if epoch != at]
    for epoch in sorted([*kept, at]):
        if epoch == at:
            yield Moment(epoch, chosen.checkpoint, chosen)
        else:
            yield Moment(epoch, KEPT, open_run(run, device, kept_name(epoch)))


def _epoch_of(run: Run, step: int) -> int:
    """The epoch that ``step`` belongs to, by the run's metrics."""
    ends = {int(row["step"]): int(row["epoch"]) for row in read_rows(run.folder / "metrics.csv", complete=True)}
    later = [epoch for end, epoch in ends.items() if end >= step]
    return min(later, default=max(ends.values(), default=0) + bool(step))
