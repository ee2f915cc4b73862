"""What a report is made from: runs and tables of costs, named one by one or by a folder above them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from kattn_cli.errors import RunError
from kattn_cli.runs.cost_table import Kind, NoCostTable, read_cost_table
from kattn_cli.runs.find import find_runs, own_runs, snapshots
from kattn_cli.runs.run import MANIFEST, Snapshot

PAGE = "report.md"
"""What tells a report's own folder, which is never read."""


@dataclass(frozen=True)
class CostTable:
    """``name``: of the file, with its folder where it was found below one."""

    name: str
    kind: Kind
    table: pd.DataFrame


@dataclass(frozen=True)
class Sources:
    """Finished runs, one a label and seed; tables; in words what was left out, and why."""

    runs: Sequence[Snapshot]
    tables: Sequence[CostTable]
    left_out: Sequence[str]


def find_sources(arguments: Sequence[str], results: Path) -> Sources:
    """Return all that the arguments mean: runs, by folder or name, tables, folders of both.

    Without an argument, every run below ``results`` but for the committed reference.

    Raises:
        RunError: if an argument means nothing, or no finished run and no table is left.
    """
    found: dict[Path, Snapshot] = {}
    tables: dict[Path, CostTable] = {}
    damaged: list[str] = []
    for argument in arguments:
        if argument.endswith(".csv"):
            path = Path(argument)
            tables[path.resolve()] = CostTable(path.stem, *read_cost_table(path))
            continue
        for run in _runs(argument, results):
            found[run.folder.resolve()] = run
        folder = _folder(argument, results)
        for path in _cost_tables(folder) if folder else ():
            try:
                if table := _read(path, folder or path):
                    tables.setdefault(path.resolve(), table)
            except RunError as error:
                damaged.append(str(error))
        if folder and not found and not tables and not damaged:
            raise RunError(f"{argument}: has no run and no table of costs below it")
    if not arguments:
        found = {run.folder.resolve(): Snapshot.of(run) for run in own_runs(results)}
    runs, left_out = _usable(list(found.values()))
    left_out = damaged + left_out
    if not runs and not tables:
        raise RunError(f"kattn report: no finished run is among these; left out: {'; '.join(left_out)}")
    return Sources(runs, list(tables.values()), left_out)


def _folder(argument: str, results: Path) -> Path | None:
    """Return the folder above runs or tables that is meant."""
    for folder in (Path(argument), results / argument):
        if folder.is_dir() and not (folder / MANIFEST).is_file():
            return folder
    return None


def _runs(argument: str, results: Path) -> list[Snapshot]:
    folder = _folder(argument, results)
    if folder:
        return snapshots(folder, unreadable=True)
    return list(map(Snapshot.of, find_runs(results, [argument])))


def _cost_tables(folder: Path) -> Iterator[Path]:
    """Yield every CSV below that is neither a run's nor a report's, nor drawn from another (``cpu.ratios.csv``)."""
    for where, folders, files in os.walk(folder):
        if MANIFEST in files or PAGE in files:
            folders.clear()
            continue
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(where, name) for name in sorted(files) if name.endswith(".csv") and name.count(".") == 1)


def _read(path: Path, above: Path) -> CostTable | None:
    """Return the table of costs, if it is one.

    Raises:
        RunError: if it is one that is damaged.
    """
    try:
        kind, table = read_cost_table(path)
    except NoCostTable:
        return None
    return CostTable(path.relative_to(above).with_suffix("").as_posix(), kind, table)


def _usable(runs: Sequence[Snapshot]) -> tuple[list[Snapshot], list[str]]:
    """Return the newest finished run of each label and seed, in the order of labels; in words what was left out."""
    chosen: dict[tuple[str, int], Snapshot] = {}
    left_out = []
    older = 0
    for run in runs:
        if (status := run.status) != "finished":
            left_out.append(f"{run.folder} ({status})")
            continue
        try:
            _ = run.recipe
        except RunError:
            left_out.append(f"{run.folder} (its recipe cannot be read)")
            continue
        key = (run.label, run.seed)
        before = chosen.get(key)
        older += before is not None
        if before is None or str(run.manifest.get("start")) >= str(before.manifest.get("start")):
            chosen[key] = run
    if older:
        left_out.append(f"{older} of which a newer run has the same label and seed")
    return [chosen[key] for key in sorted(chosen)], left_out
