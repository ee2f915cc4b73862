"""The run folder: recipe, manifest, and the CSV tables of :mod:`kattn_cli.runs.csv_rows`. Never imports torch.

``<results>/<recipe name>/<seed>/`` holds one run; a second run of the same name and seed gets ``<seed>-2``.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from kattn_cli.errors import RunError, did_you_mean
from kattn_cli.runs.lock import holding
from kattn_cli.runs.provenance import now
from kattn_cli.runs.whole_file import is_alive, start_of, write_text

MANIFEST = "manifest.json"
RECIPE = "recipe.yaml"
LOCK = ".lock"
CHANGES_NOTHING = (
    "name",
    "seed",
    "seeds",
    "data.root",
    "data.download",
    "data.workers",
    "data.max_corrupt",
    "train.checkpoint_steps",
    "train.keep_every",
    "train.tensorboard",
)
"""Keys that change where and how a run is made, and none of its numbers."""
UNNAMED = (*CHANGES_NOTHING, "data.path")
"""Overrides that a run is not called after."""
FROM_RUNS = ("init_from", "data.vocabulary_from")
"""Overrides that mean another run, which is told by its recipe's own name and its seed, and once."""


@dataclass(frozen=True)
class Run:
    """One run's folder."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it stands on disk.

        Raises:
            RunError: if it is not there, not JSON, or not a run's.
        """
        path = self.folder / MANIFEST
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(f"{path}: cannot be read as a manifest ({error})") from None
        wanted = {"name": str, "seed": int, "status": str}
        have = manifest if isinstance(manifest, dict) else {}
        if missing := [key for key, kind in wanted.items() if not isinstance(have.get(key), kind)]:
            raise RunError(f"{path}: cannot be read as a manifest (it has no {' and no '.join(missing)})")
        return have

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The resolved recipe as it stands on disk, as plain data that is shared and not to be changed; empty if none.

        Raises:
            RunError: if it cannot be read.
        """
        path = self.folder / RECIPE
        return _read_recipe(path, path.stat().st_mtime_ns) if path.is_file() else {}

    @property
    def name(self) -> str:
        """The recipe's name."""
        return str(self.manifest["name"])

    @property
    def seed(self) -> int:
        return int(self.manifest["seed"])

    @property
    def label(self) -> str:
        """The recipe's name, with the overrides that made this run differ from it, and how its epoch was chosen."""
        manifest = self.manifest
        chosen = ["(chosen on test)"] if manifest.get("chosen_on") == "test" else []
        return " ".join([self.name, *_named(manifest.get("overrides", [])), *chosen])

    @property
    def reads(self) -> str:
        """What its model reads: ``images``, ``images with masks``, ``sequences``, ``text`` or ``trajectories``."""
        return str(self.manifest.get("reads", "images"))

    @property
    def status(self) -> str:
        """``running``, ``finished``, ``interrupted``, ``failed``; ``died`` where its process is gone.

        ``unreadable`` where the manifest cannot be read.
        """
        try:
            manifest = self.manifest
        except RunError:
            return "unreadable"
        status, process = str(manifest["status"]), manifest.get("pid")
        here = manifest.get("host") == socket.gethostname()
        gone = not isinstance(process, int) or not is_alive(process, manifest.get("pid_start"))
        return "died" if status == "running" and here and gone else status

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Be the only process that trains this run, until the block is left (see :mod:`kattn_cli.runs.lock`).

        Raises:
            Held: if another process holds it.
            RunError: if the folder cannot be written to.
        """
        with holding(self.folder / LOCK, f"{self.folder}: is being trained"):
            yield

    def update(self, **changes: Any) -> None:
        """Change keys of the manifest.

        Raises:
            RunError: if it cannot be read or written; here and in what follows.
        """
        write_text(self.folder / MANIFEST, json.dumps({**self.manifest, **changes}, indent=2) + "\n")

    def begin(self, **changes: Any) -> None:
        """Mark the run as running in this process."""
        process = {"pid": os.getpid(), "pid_start": start_of(os.getpid()), "host": socket.gethostname()}
        self.update(status="running", **process, end=None, **changes)

    def end(self, status: str, **changes: Any) -> None:
        """Mark the run as over."""
        self.update(status=status, end=now(), pid=None, pid_start=None, host=None, **changes)

    def try_end(self, status: str, **changes: Any) -> bool:
        """As :meth:`end`, for while an error is on its way that a full disk must not hide; returns whether it did.

        If it did not, the manifest still says ``running``, which reads as ``died`` once this process is gone.
        """
        with suppress(RunError):
            self.end(status, **changes)
            return True
        return False

    def add_measurement(self, record: Mapping[str, Any]) -> None:
        """Note in the manifest that a later command measured this run."""
        self.update(measurements=[*self.manifest.get("measurements", []), {**record, "end": now()}])


def _named(overrides: Sequence[str]) -> list[str]:
    """The overrides that a run is called after, in short."""
    given = dict(one.partition("=")[::2] for one in overrides)
    if given.get(FROM_RUNS[0]) == given.get(FROM_RUNS[1]):
        given.pop(FROM_RUNS[1], None)
    short = {key: Path(given[key]).parts[-2:] for key in FROM_RUNS if key in given}
    given |= {key: "/".join(parts) for key, parts in short.items()}
    return [f"{key}={value}" for key, value in given.items() if key not in UNNAMED]


@lru_cache(maxsize=4096)
def _read_recipe(path: Path, changed: int) -> dict[str, Any]:
    """A report asks for each many times; ``changed`` is when the file was."""
    import yaml

    try:
        recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise RunError(f"{path}: cannot be read as a recipe ({' '.join(str(error).split())})") from None
    if not isinstance(recipe, dict):
        raise RunError(f"{path}: cannot be read as a recipe (it is no mapping)")
    return recipe


def create_run(results: Path, name: str, seed: int, recipe_yaml: str, manifest: Mapping[str, Any]) -> Run:
    """A new folder that no other run shares, with its recipe and manifest.

    Raises:
        RunError: if the folder or its files cannot be made; neither is left behind.
    """
    parent = results / name
    attempt = 1
    while True:
        folder = parent / (str(seed) if attempt == 1 else f"{seed}-{attempt}")
        try:
            parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
            break
        except FileExistsError:
            if not parent.is_dir():
                raise RunError(f"{parent}: is in the way of the results; it is not a folder") from None
            attempt += 1
        except OSError as error:
            raise RunError(f"{folder}: cannot be made: {error.strerror}") from None
    try:
        write_text(folder / RECIPE, recipe_yaml)
        write_text(folder / MANIFEST, json.dumps({"name": name, "seed": seed, **manifest}, indent=2) + "\n")
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Run(folder)


def all_runs(results: Path, *, unreadable: bool = False) -> list[Run]:
    """Every run below ``results``, oldest first; ``unreadable``: with those whose manifest cannot be read, before all.

    One broken manifest is no reason not to see the other runs.
    """
    starts: dict[Run, str] = {}
    for path in sorted(results.rglob(MANIFEST)):
        run = Run(path.parent)
        try:
            starts[run] = str(run.manifest.get("start"))
        except RunError:
            if unreadable:
                starts[run] = ""
    return sorted(starts, key=lambda run: (starts[run], str(run.folder)))


def own_runs(results: Path) -> list[Run]:
    """Every run below ``results`` but outside ``results/reference``, oldest first.

    Raises:
        RunError: if there is none, with the command that makes one.
    """
    own = [run for run in all_runs(results) if "reference" not in run.folder.relative_to(results).parts[:1]]
    if not own:
        raise RunError(f"No run under {results}/ yet. Make one with: kattn train quickstart/softmax")
    return own


def find_runs(results: Path, references: Sequence[str]) -> list[Run]:
    """The runs that ``references`` mean: a run's folder, or a folder (or name) with runs below it.

    Of several runs below it with one label and seed, the newest finished one is meant. Without references,
    the newest run outside ``results/reference``.

    Raises:
        RunError: if there is none, with the command that makes one or the nearest name.
    """
    if not references:
        return own_runs(results)[-1:]
    found: dict[Path, Run] = {}
    for reference in references:
        for run in _runs_of(results, reference):
            found[run.folder.resolve()] = run
    return list(found.values())


def _runs_of(results: Path, reference: str) -> list[Run]:
    for folder in (Path(reference), results / reference):
        if (folder / MANIFEST).is_file():
            return [Run(folder)]
        if folder.is_dir() and (runs := all_runs(folder)):
            return _newest_of_each(runs)
    runs = all_runs(results)
    known = {run.name for run in runs} | {run.folder.relative_to(results).as_posix() for run in runs}
    if not known:
        raise RunError(
            f"{reference}: no such run, and none under {results}/ yet. Make one with: kattn train {reference}"
        )
    hint = did_you_mean(reference, known) or f"; there are: {', '.join(sorted(known)[:8])}"
    raise RunError(f"{reference}: no such run under {results}/{hint}")


def _newest_of_each(runs: Sequence[Run]) -> list[Run]:
    """Of ``runs``, oldest first, the last finished one (or else the last) of each label and seed."""
    finished_last = sorted(runs, key=lambda run: run.status == "finished")
    chosen = {(run.label, run.seed): run for run in finished_last}
    return [run for run in runs if run in chosen.values()]


def figures_folder(results: Path, runs: Sequence[Run]) -> Path:
    """A single run's own folder for figures, or that of several."""
    return runs[0].folder / "figures" if len(runs) == 1 else results / "figures"
