"""Which run a training goes on with, and whether its recipe allows it."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from kattn_cli.errors import KattnError, RunError
from kattn_cli.experiment import recipes
from kattn_cli.recipe.schema import Recipe, flat
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.find import all_runs
from kattn_cli.runs.run import CHANGES_NOTHING, MANIFEST, RECIPE, Run
from kattn_cli.runs.weights import FOLDER, weights_path
from kattn_cli.training.checkpoint import STATE, has_state

HARMLESS = (*(key for key in CHANGES_NOTHING if "." in key), "train.on_nonfinite")
"""Keys that may change between two halves of a training; ``train.epochs`` may grow."""


_UNREADABLE = "its recipe cannot be read"


@dataclass(frozen=True)
class Resumption:
    """A run to go on with; ``changes`` says in what its recipe is another now. ``done``: nothing is left to do."""

    run: Run
    changes: tuple[str, ...] = ()
    done: bool = False


def find_unfinished(
    recipe: Recipe, path: Path, results: Path, *, force: bool, tell: Callable[[str], object] = lambda line: None
) -> Resumption | None:
    """Return the run at ``path``, if that is a run's recipe; else the newest run of ``recipe`` and its seed.

    An unfinished run of this very recipe comes first, then a finished one (nothing is left to do), then the newest
    unfinished one or one that wants only more epochs. None where there is no such run; if there is one of another
    recipe, ``tell`` is called with a line on it.

    Raises:
        RunError: if the run is being trained, is finished, cannot be read, has lost its state, or was begun with
            another recipe and ``force`` is not given.
    """
    if os.path.lexists(path.parent / MANIFEST):
        named = Run(path.parent)
        return _judge(named, _changes(named, recipe), force)
    folder = results / recipe.name
    runs = [run for run in reversed(all_runs(folder)) if _is_of(run, recipe)]
    changed = [(run, _changes(run, recipe)) for run in runs]
    for finished in (False, True):
        for run, changes in changed:
            if changes != {}:
                continue
            if _is_trained_here(run):
                return _judge(run, changes, force)
            if (run.status == "finished") == finished:
                return Resumption(run if finished else _with_state(run), done=finished)
    for run, changes in changed:
        # One that is trained on, to more epochs, still has the recipe of before for a moment.
        if changes is None or (_is_trained_here(run) and not _harmless(changes)):
            continue
        if run.status != "finished" or _harmless(changes):
            return _judge(run, changes, force)
    _require_readable(folder, recipe)
    if changed:
        run, changes = changed[0]
        other = f"is {run.status} with another recipe: {'; '.join(_words(changes))}" if changes else _UNREADABLE
        tell(f"{run.folder}: {other}; a new run begins")
    return None


def find_same(recipe: Recipe, runs: Sequence[Run]) -> Resumption | None:
    """Return of ``runs``, oldest first, one of this very recipe and seed: a finished one, else the newest one.

    Raises:
        RunError: if that one has lost its state.
    """
    same = [run for run in reversed(runs) if _is_of(run, recipe) and _changes(run, recipe) == {}]
    done = next((run for run in same if run.status == "finished"), None)
    return Resumption(done or _with_state(same[0]), done=done is not None) if same else None


def _judge(run: Run, changes: dict[str, tuple[Any, Any]] | None, force: bool) -> Resumption:
    finished = run.manifest["status"] == "finished"
    if _is_trained_here(run):
        raise RunError(f"{run.folder}: is running; there is nothing to resume")
    if changes is None:
        raise RunError(f"{run.folder}: {_UNREADABLE}")
    if not changes and finished:
        raise RunError(f"{run.folder}: is finished; there is nothing to resume (train.epochs=… trains on)")
    words = _words(changes)
    if not force and not _harmless(changes):
        raise RunError(
            f"{run.folder}: was begun with another recipe: {'; '.join(words)}. "
            "--force goes on with the new one; without --resume a new run begins"
        )
    return Resumption(_with_state(run), words)


def _words(changes: dict[str, tuple[Any, Any]]) -> tuple[str, ...]:
    return tuple(f"{key} was {_show(was)} and is {_show(now)}" for key, (was, now) in changes.items())


def _with_state(run: Run) -> Run:
    """Return the run, if there is what its training goes on from, or it was still in its first epoch.

    Raises:
        RunError: if it had more and has lost it: it must not be trained anew over its own rows and weights.
    """
    if has_state(run.folder):
        return run
    second = any(row.get("epoch") not in ("", "1") for row in read_rows(run.folder / "metrics.csv"))
    if run.status != "finished" and not second:
        return run
    weights = f" (init_from={run.folder} from its weights)" if weights_path(run.folder, "best").is_file() else ""
    raise RunError(
        f"{run.folder}: its state, {FOLDER}/{STATE}, is gone, so its training cannot go on. Put the file back, or move "
        f"the run away, or leave out --resume: a new run begins{weights}"
    )


def _require_readable(folder: Path, recipe: Recipe) -> None:
    """Raises:
    RunError: if there is a run of this seed whose manifest cannot be read: it may be the one that is meant.
    """
    for run in all_runs(folder, unreadable=True):
        if re.fullmatch(rf"{recipe.seed}(-\d+)?", run.folder.name):
            _ = run.manifest


def _is_of(run: Run, recipe: Recipe) -> bool:
    return (run.name, run.seed) == (recipe.name, recipe.seed)


def _is_trained_here(run: Run) -> bool:
    """Return whether a process of this host trains it; whether one of another host lives, the run's lock says."""
    return run.status == "running" and run.manifest.get("host") == socket.gethostname()


def _harmless(changes: dict[str, tuple[Any, Any]]) -> bool:
    return all(key in HARMLESS or (key == "train.epochs" and now > was) for key, (was, now) in changes.items())


def _changes(run: Run, recipe: Recipe) -> dict[str, tuple[Any, Any]] | None:
    """Return what each changed key was and is; None where the run's recipe cannot be read."""
    path = run.folder / RECIPE
    before = _keys(path, path.stat().st_mtime_ns) if path.is_file() else None
    if before is None:
        return None
    after = flat(recipe.model_dump())
    keys = dict.fromkeys([*before, *after])
    return {key: (before.get(key), after.get(key)) for key in keys if before.get(key) != after.get(key)}


@cache
def _keys(path: Path, changed: int) -> dict[str, Any] | None:
    """Return a recipe's keys; read once for each time ``changed`` that the file was written."""
    try:
        return flat(recipes.load(path, weights=False).model_dump())
    except KattnError:
        return None


def _show(value: Any) -> str:
    return "not set" if value is None else str(value)
