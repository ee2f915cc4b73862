"""The run folder: recipe, manifest, and the CSV tables of :mod:`kattn_cli.runs.csv_rows`. Never imports torch.

``<results>/<recipe name>/<seed>/`` holds one run; a second run of the same name and seed gets ``<seed>-2``.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import count
from pathlib import Path
from typing import Any

from kattn_cli.errors import RunError
from kattn_cli.runs.csv_rows import read_records
from kattn_cli.runs.lock import holding, writing
from kattn_cli.runs.manifest import read_manifest
from kattn_cli.runs.process import NO_PROCESS, is_here, may_be_alive, this_process
from kattn_cli.runs.provenance import now
from kattn_cli.runs.whole_file import (
    being_made,
    faults_as,
    folders_to_disk,
    names_to_disk,
    remove_stale,
    to_disk,
    write_text,
)

MANIFEST = "manifest.json"
FORWARD_FLOPS = "forward_flops_per_sample"
"""The manifest's key of the operations of its model on one sample."""
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
"""Overrides that mean another run, which is named by its recipe's own name and its seed, and once."""


@dataclass(frozen=True)
class Run:
    """One run's folder."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """Return the manifest as it stands on disk.

        Raises:
            RunError: if it is not there, not JSON, or not a run's.
        """
        try:
            return read_manifest(self.folder / MANIFEST)
        except (OSError, ValueError) as error:
            raise self._damaged(str(error)) from None

    def _damaged(self, what: str) -> RunError:
        """Return the fault of a manifest that cannot be read, with the line that is enough of one, if that is known."""
        advice = "mend it or put back a copy of it"
        with suppress(RunError):
            recipe = self.recipe
            if isinstance(recipe.get("name"), str) and isinstance(recipe.get("seed"), int):
                line = json.dumps({"name": recipe["name"], "seed": recipe["seed"], "status": "interrupted"})
                again = shlex.join(["kattn", "train", str(self.folder), "--resume"])
                advice += f", or write {line} there, which is enough to measure the run, and {again} adds the rest"
        return RunError(f"{self.folder / MANIFEST}: cannot be read as a manifest ({what}); {advice}")

    @property
    def recipe(self) -> Mapping[str, Any]:
        """Return the resolved recipe as it stands on disk: plain data, shared and not to be changed; empty if none.

        Raises:
            RunError: if it cannot be read.
        """
        path = self.folder / RECIPE
        try:
            changed = path.stat().st_mtime_ns
        except OSError:
            return {}
        return _read_recipe(path, changed)

    def records(self, table: str) -> list[list[str]]:
        """Return the header and the rows of a CSV of the run; not to be changed.

        See :func:`~kattn_cli.runs.csv_rows.read_records`.
        """
        return read_records(self.folder / table, complete=True)

    @property
    def name(self) -> str:
        """Return the recipe's name."""
        return str(self.manifest["name"])

    @property
    def seed(self) -> int:
        return int(self.manifest["seed"])

    @property
    def label(self) -> str:
        """Return the recipe's name, the overrides by which this run differs from it, and how its epoch was chosen."""
        manifest = self.manifest
        chosen = ["(chosen on test)"] if manifest.get("chosen_on") == "test" else []
        return " ".join([self.name, *_named(manifest.get("overrides", [])), *chosen])

    @property
    def reads(self) -> str:
        """Return its model's input: ``images``, ``images with masks``, ``sequences``, ``text`` or ``trajectories``."""
        return str(self.manifest.get("reads", "images"))

    @property
    def status(self) -> str:
        """Return ``running``, ``finished``, ``interrupted``, ``failed``, or ``died`` where its process is gone.

        ``unreadable`` where the manifest cannot be read.
        """
        try:
            manifest = self.manifest
        except RunError:
            return "unreadable"
        status = str(manifest["status"])
        return "died" if status == "running" and is_here(manifest) and not may_be_alive(manifest) else status

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold the run as the only process that trains it, until the block is left (see :mod:`kattn_cli.runs.lock`).

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
        path = self.folder / MANIFEST
        with writing(path):
            write_text(path, json.dumps({**self.manifest, **changes}, indent=2) + "\n")

    def begin(self, **changes: Any) -> None:
        """Mark the run as running in this process."""
        self.update(status="running", **this_process(), end=None, **changes)

    def end(self, status: str, **changes: Any) -> None:
        """Mark the run as over."""
        self.update(status=status, end=now(), **NO_PROCESS, **changes)

    def try_end(self, status: str, **changes: Any) -> bool:
        """Mark the run as over while an error is on its way that a full disk must not hide; return whether it was.

        If it did not, the manifest still says ``running``, which reads as ``died`` once this process is gone.
        """
        with suppress(RunError):
            self.end(status, **changes)
            return True
        return False

    def add_measurement(self, record: Mapping[str, Any]) -> None:
        """Note in the manifest that a later command measured this run."""
        with writing(self.folder / MANIFEST):
            self.update(measurements=[*self.manifest.get("measurements", []), {**record, "end": now()}])


class Snapshot(Run):
    """A run as it is when it is first asked: each of its files is read once, however often it is asked.

    For what reads many runs, or must not see a run change on the way; what changes a run takes a :class:`Run`.
    """

    @classmethod
    def of(cls, run: Run) -> Snapshot:
        """Return the run itself if it is one."""
        return run if isinstance(run, cls) else cls(run.folder)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """See :class:`Run`."""
        return super().manifest

    @cached_property
    def recipe(self) -> Mapping[str, Any]:
        """See :class:`Run`."""
        return super().recipe

    def records(self, table: str) -> list[list[str]]:
        """See :class:`Run`."""
        if table not in self._tables:
            self._tables[table] = super().records(table)
        return self._tables[table]

    @cached_property
    def _tables(self) -> dict[str, list[list[str]]]:
        return {}

    def update(self, **changes: Any) -> None:
        """Refuse: it would put back what others changed since."""
        raise TypeError("a snapshot is not written; take a Run")

    def __reduce__(self) -> tuple[type[Snapshot], tuple[Path]]:
        """Go to another process without what was read."""
        return type(self), (self.folder,)


def _named(overrides: Sequence[str]) -> list[str]:
    """Return the overrides that a run is called after, in short."""
    given = dict(one.partition("=")[::2] for one in overrides)
    if given.get(FROM_RUNS[0]) == given.get(FROM_RUNS[1]):
        given.pop(FROM_RUNS[1], None)
    short = {key: Path(given[key]).parts[-2:] for key in FROM_RUNS if key in given}
    given |= {key: "/".join(parts) for key, parts in short.items()}
    return [f"{key}={value}" for key, value in given.items() if key not in UNNAMED]


_SEED = re.compile(r"^seed: (\d+)$", re.MULTILINE)
"""The line in which recipes of several seeds differ, as kattn writes it: all else is parsed once."""


@lru_cache(maxsize=1 << 16)
def _read_recipe(path: Path, changed: int) -> dict[str, Any]:
    """Return a recipe as it stands on disk. A report asks for each often; ``changed`` is when the file was."""
    import yaml

    try:
        text = path.read_text(encoding="utf-8")
        seeds = _SEED.findall(text)
        recipe = _parsed(_SEED.sub("seed: 0", text) if len(seeds) == 1 else text)
    except (OSError, ValueError, RecursionError, yaml.YAMLError) as error:
        raise RunError(f"{path}: cannot be read as a recipe ({' '.join(str(error).split())})") from None
    if not isinstance(recipe, dict):
        raise RunError(f"{path}: cannot be read as a recipe (it is no mapping)")
    return {**recipe, "seed": int(seeds[0])} if len(seeds) == 1 else recipe


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Any:
    import yaml

    return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def create_run(results: Path, name: str, seed: int, recipe_yaml: str, manifest: Mapping[str, Any]) -> Run:
    """Make a new folder that no other run shares, with its recipe and manifest.

    It gets its name when all of it is on disk, so that there is never a run without a manifest.

    Raises:
        RunError: if the folder or its files cannot be made; neither is left behind.
    """
    first = results / name / str(seed)
    try:
        folders_to_disk(first.parent)
    except FileExistsError:
        raise RunError(f"{first.parent}: is in the way of the results; it is not a folder") from None
    except OSError as error:
        raise RunError(f"{first}: cannot be made: {error.strerror}") from None
    files = {RECIPE: recipe_yaml, MANIFEST: json.dumps({"name": name, "seed": seed, **manifest}, indent=2) + "\n"}
    with faults_as(RunError, first), _one_at_a_time, being_made(first) as new:
        new.mkdir()
        for file, text in files.items():
            (new / file).write_text(text, encoding="utf-8", newline="")
            to_disk(new / file)
        names_to_disk(new)
        return Run(_take_name(new, first))


_one_at_a_time = threading.Lock()
"""For threads that make runs, since what a process makes under one name lies in one place."""


def _take_name(new: Path, first: Path) -> Path:
    """Give a folder the name ``first``, or ``first-2`` and so on where that is taken; return its path.

    A folder in which there is nothing gives way: a process of an earlier version that died left it.
    """
    for attempt in count(1):
        folder = first if attempt == 1 else first.with_name(f"{first.name}-{attempt}")
        for file in (RECIPE, MANIFEST):
            remove_stale(folder / file)
        try:
            os.replace(new, folder)
        except OSError:
            if not os.path.lexists(folder):
                raise
        else:
            break
    names_to_disk(folder.parent)
    return folder
