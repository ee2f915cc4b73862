"""Find the runs that are meant: by folder, by name, or the newest. Never imports torch."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from kattn_cli.errors import RunError, did_you_mean
from kattn_cli.runs.run import MANIFEST, Run


def all_runs(results: Path, *, unreadable: bool = False) -> list[Run]:
    """Return every run below ``results``, oldest first.

    ``unreadable``: with those whose manifest cannot be read, before all. Else they are left out: one broken manifest is
    no reason not to see the other runs.
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
    """Return every run below ``results`` but outside ``results/reference``, oldest first.

    Raises:
        RunError: if there is none, with the command that makes one.
    """
    own = [run for run in all_runs(results) if "reference" not in run.folder.relative_to(results).parts[:1]]
    if not own:
        raise RunError(f"No run under {results}/ yet. Make one with: kattn train quickstart/softmax")
    return own


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
            f"{reference}: no such run, and none under {results}/ yet. Make one with: "
            f"kattn train {shlex.quote(reference)}"
        )
    hint = did_you_mean(reference, known) or f"; there are: {', '.join(sorted(known)[:8])}"
    raise RunError(f"{reference}: no such run under {results}/{hint}")


def _newest_of_each(runs: Sequence[Run]) -> list[Run]:
    """Return the last finished run (or else the last) of each label and seed of ``runs``, which stand oldest first."""
    finished_last = sorted(runs, key=lambda run: run.status == "finished")
    chosen = {(run.label, run.seed): run for run in finished_last}
    return [run for run in runs if run in chosen.values()]


def figures_folder(results: Path, runs: Sequence[Run]) -> Path:
    """Return a single run's own folder for figures, or that of several."""
    return runs[0].folder / "figures" if len(runs) == 1 else results / "figures"
