"""The run folder: recipe, manifest, CSV tables. Never imports torch.

``<results>/<recipe name>/<seed>/`` holds one run; a second run of the same name and seed gets ``<seed>-2``.
Every file is written whole and then renamed, or appended row by row, so that a reader never sees a half.
"""

from __future__ import annotations

import csv
import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from kattn_cli.errors import RunError, did_you_mean
from kattn_cli.provenance import now

MANIFEST = "manifest.json"
RECIPE = "recipe.yaml"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Run:
    """One run's folder."""

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest as it stands on disk.

        Raises:
            RunError: if it is not there or not JSON.
        """
        path = self.folder / MANIFEST
        try:
            return dict(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise RunError(f"{path}: cannot be read as a manifest ({error})") from None

    @property
    def name(self) -> str:
        """The recipe's name."""
        return str(self.manifest["name"])

    @property
    def seed(self) -> int:
        return int(self.manifest["seed"])

    @property
    def label(self) -> str:
        """The recipe's name, with the overrides that made this run differ from it."""
        changed = [override for override in self.manifest.get("overrides", []) if not override.startswith("seed=")]
        return " ".join([self.name, *changed])

    @property
    def status(self) -> str:
        """``running``, ``finished``, ``interrupted``, ``failed``; ``died`` where its process is gone."""
        manifest = self.manifest
        status = str(manifest["status"])
        if status == "running" and manifest.get("host") == socket.gethostname() and not _alive(manifest.get("pid")):
            return "died"
        return status

    def update(self, **changes: Any) -> None:
        """Change keys of the manifest."""
        write_text(self.folder / MANIFEST, json.dumps({**self.manifest, **changes}, indent=2) + "\n")

    def begin(self, **changes: Any) -> None:
        """Mark the run as running in this process."""
        self.update(status="running", pid=os.getpid(), host=socket.gethostname(), end=None, **changes)

    def end(self, status: str, **changes: Any) -> None:
        """Mark the run as over."""
        self.update(status=status, end=now(), pid=None, host=None, **changes)

    def add_measurement(self, record: Mapping[str, Any]) -> None:
        """Note in the manifest that a later command measured this run."""
        self.update(measurements=[*self.manifest.get("measurements", []), {**record, "end": now()}])


def _alive(pid: object) -> bool:
    if not isinstance(pid, int):
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def create_run(results: Path, name: str, seed: int, recipe_yaml: str, manifest: Row) -> Run:
    """A new folder that no other run shares, with its recipe and manifest.

    Raises:
        RunError: if the folder cannot be made.
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
    write_text(folder / RECIPE, recipe_yaml)
    write_text(folder / MANIFEST, json.dumps({"name": name, "seed": seed, **manifest}, indent=2) + "\n")
    return Run(folder)


def all_runs(results: Path) -> list[Run]:
    """Every run below ``results``, oldest first."""
    runs = [Run(path.parent) for path in sorted(results.rglob(MANIFEST))]
    return sorted(runs, key=lambda run: (str(run.manifest.get("start")), str(run.folder)))


def find_runs(results: Path, references: Sequence[str]) -> list[Run]:
    """The runs that ``references`` mean: a run's folder, or a folder (or name) with runs below it.

    Of several runs below it with one label and seed, the newest finished one is meant. Without references,
    the newest run outside ``results/reference``.

    Raises:
        RunError: if there is none, with the command that makes one or the nearest name.
    """
    if not references:
        own = [run for run in all_runs(results) if "reference" not in run.folder.relative_to(results).parts[:1]]
        if not own:
            raise RunError(f"No run under {results}/ yet. Make one with: kattn train quickstart/softmax")
        return own[-1:]
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


def write_text(path: Path, text: str) -> None:
    """Write ``text`` whole: to a neighbour first, then renamed into place."""
    path.parent.mkdir(parents=True, exist_ok=True)
    neighbour = path.with_name(f".{path.name}.{os.getpid()}")
    neighbour.write_text(text, encoding="utf-8")
    os.replace(neighbour, path)


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Add rows to a CSV, with a header where it is new."""
    fresh = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        if fresh:
            writer.writeheader()
        writer.writerows(rows)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write a CSV whole."""
    lines = [_csv_line(rows[0])] if rows else []
    lines += [_csv_line(row.values()) for row in rows]
    write_text(path, "".join(lines))


def _csv_line(values: Iterable[Any]) -> str:
    buffer = StringIO()
    csv.writer(buffer).writerow(values)
    return buffer.getvalue()


def read_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV as text; none where there is no file."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def replace_rows(path: Path, rows: Sequence[Row], key: Sequence[str]) -> None:
    """Add rows to a CSV; rows already there with the same ``key`` columns give way."""
    fresh = {tuple(str(row[column]) for column in key) for row in rows}
    kept = [row for row in read_rows(path) if tuple(row.get(column) for column in key) not in fresh]
    write_rows(path, [*kept, *rows])
