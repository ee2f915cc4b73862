"""Find the runs that are meant: by folder, by name, or the newest. Never imports torch."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kattn_cli.console import warn
from kattn_cli.errors import RunError, did_you_mean
from kattn_cli.runs.run import MANIFEST, Run, Snapshot


def all_runs(results: Path, *, unreadable: bool = False) -> list[Run]:
    """Return every run below ``results``, oldest first; what vanishes meanwhile is none.

    ``unreadable``: with those whose manifest cannot be read, before all. Else they are left out: one broken manifest is
    no reason not to see the other runs.
    """
    return [Run(run.folder) for run in snapshots(results, unreadable=unreadable)]


def snapshots(results: Path, *, unreadable: bool = False) -> list[Snapshot]:
    """Return the runs of :func:`all_runs` as they are now."""
    runs, faults = _read(results)
    return [*faults, *runs] if unreadable else runs


def _read(results: Path) -> tuple[list[Snapshot], dict[Snapshot, RunError]]:
    """Return the runs below ``results``, oldest first, and what is wrong with those that cannot be read."""
    starts: dict[Snapshot, str] = {}
    faults: dict[Snapshot, RunError] = {}
    for run in sorted(map(Snapshot, _folders(results)), key=lambda run: str(run.folder)):
        try:
            starts[run] = str(run.manifest.get("start") or "")
        except RunError as fault:
            if os.path.lexists(run.folder / MANIFEST):
                faults[run] = fault
    return sorted(starts, key=lambda run: starts[run]), faults


def _folders(results: Path) -> Iterator[Path]:
    """Yield every folder with a manifest below; in dotted ones lies what is not whole yet, or what a process left."""
    for where, folders, files in os.walk(results):
        if MANIFEST in files or MANIFEST in folders:
            yield Path(where)
        folders[:] = [name for name in folders if not name.startswith(".")]


def own_runs(results: Path) -> list[Run]:
    """Return every run below ``results`` but outside ``results/reference``, oldest first.

    Raises:
        RunError: if there is none, with the command that makes one, or none that can be read.
    """
    own = _usable(results, lambda run: "reference" not in run.folder.relative_to(results).parts[:1])
    if not own:
        raise RunError(f"No run under {results}/ yet. Make one with: kattn train quickstart/softmax")
    return [Run(run.folder) for run in own]


def _usable(folder: Path, meant: Callable[[Run], bool] = lambda run: True) -> list[Snapshot]:
    """Return the runs below ``folder`` that are ``meant``; a line says which of them cannot be read.

    Raises:
        RunError: if that is true of all.
    """
    found, damaged = _read(folder)
    runs, faults = list(filter(meant, found)), [fault for run, fault in damaged.items() if meant(run)]
    if faults and not runs:
        more = f" ({len(faults) - 1} more cannot be read either)" if len(faults) > 1 else ""
        raise RunError(f"{faults[0]}{more}")
    for fault in faults:
        warn(f"Left out: {fault}")
    return runs


def find_runs(results: Path, references: Sequence[str]) -> list[Run]:
    """Return the runs that ``references`` mean: a run's folder, or a folder (or name) with runs below it.

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
            found[run.folder.resolve()] = Run(run.folder)
    return list(found.values())


def _runs_of(results: Path, reference: str) -> list[Snapshot]:
    for folder in (Path(reference), results / reference):
        if os.path.lexists(folder / MANIFEST):
            return [Snapshot(folder)]
        if folder.is_dir() and (runs := _usable(folder)):
            return _newest_of_each(runs)
    runs = snapshots(results)
    known = {run.name for run in runs} | {run.folder.relative_to(results).as_posix() for run in runs}
    if not known:
        raise RunError(
            f"{reference}: no such run, and none under {results}/ yet. Make one with: "
            f"kattn train {shlex.quote(reference)}"
        )
    hint = did_you_mean(reference, known) or f"; there are: {', '.join(sorted(known)[:8])}"
    raise RunError(f"{reference}: no such run under {results}/{hint}")


def _newest_of_each(runs: Sequence[Snapshot]) -> list[Snapshot]:
    """Return the last finished run (or else the last) of each label and seed of ``runs``, which stand oldest first."""
    finished_last = sorted(runs, key=lambda run: run.status == "finished")
    chosen = set({(run.label, run.seed): run for run in finished_last}.values())
    return [run for run in runs if run in chosen]


def figures_folder(results: Path, runs: Sequence[Run]) -> Path:
    """Return a single run's own folder for figures, or that of several."""
    return runs[0].folder / "figures" if len(runs) == 1 else results / "figures"
