"""``kattn eval``, from the runs to what is printed of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from kattn_cli.console import console
from kattn_cli.data.corruptions import alexnet_errors
from kattn_cli.figures.corruptions import corruption_frame, draw_corruptions
from kattn_cli.runs.run import Run
from kattn_cli.tables.corruption_errors import errors_by_type
from kattn_cli.tables.frames import frame
from kattn_cli.tables.summary import print_summary
from kattn_cli.tasks.images.corruption_report import ERRORS_CSV, report_corruptions
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.images.evaluation import EVAL_CSV, Evaluated, Settings, evaluate_runs
from kattn_cli.tasks.images.out_of_distribution import OtherFolder
from kattn_cli.tasks.images.reference import Reference, find_reference, usual_reference


def evaluate_and_report(
    runs: Sequence[Run],
    settings: Settings,
    *,
    corruptions: Corruptions | None,
    folders: Sequence[OtherFolder],
    reference: str | None,
    results: Path,
    figures: Path,
) -> None:
    """Measure, print a line or a table of everything, and draw the errors under corruption into ``figures``.

    Raises:
        RunError: if there is no such reference, or it does not go with the runs.
    """
    parts: list[Corruptions | OtherFolder] = [*([corruptions] if corruptions else []), *folders]
    chosen = find_reference(reference, runs, results, corruptions.parameters if corruptions else None)
    own = {run.folder.resolve() for run in runs}
    others = [run for run in chosen.runs if run.folder.resolve() not in own] if chosen else []
    evaluated = evaluate_runs([*runs, *others], settings, parts)
    ours = evaluated[: len(runs)]
    for one in ours:
        _print_clean(one)
        for folder in folders:
            _print_folder(one, folder)
    for part in parts:
        for one in ours:
            _report(one, part, chosen, evaluated)
    if corruptions:
        console.print(f"\n{draw_corruptions(corruption_frame(frame(runs, EVAL_CSV)), figures)}")
    if len(runs) > 1:
        print_summary(runs)


def _print_clean(one: Evaluated) -> None:
    row = one.clean
    console.print(
        f"{one.run.folder}  {row['split']}  {_accuracy(row)}  loss {row['loss']:.4f}  ece {row['ece']:.4f}  "
        f"({row['images']} {one.data.unit})",
        markup=False,
    )
    if one.experts:
        console.print(f"  {one.experts}", markup=False)


def _print_folder(one: Evaluated, folder: OtherFolder) -> None:
    for row in folder.measured(one.run, one.clean["checkpoint"], one.clean["weights"]):
        if row["corruption"]:
            continue
        parts = [f"{one.run.folder}  {folder.name}"]
        parts += [f"{_accuracy(row)}  among {row['classes']} classes"] if row["top1"] else []
        aupr = f"AUPR {float(row['aupr']):.2f} % (without skill {float(row['aupr_chance']):.2f} %)"
        console.print("  ".join([*parts, aupr, f"({row['images']} images)"]), markup=False)


def _accuracy(row: Mapping[str, Any]) -> str:
    top1, low, high, top5 = (float(row[name]) for name in ("top1", "top1_low", "top1_high", "top5"))
    return f"top-1 {top1:.2f} [{low:.1f}, {high:.1f}]  top-5 {top5:.2f}"


def _report(
    one: Evaluated, part: Corruptions | OtherFolder, reference: Reference | None, evaluated: Sequence[Evaluated]
) -> None:
    rows = part.errors(one)
    if rows.empty:
        return
    if isinstance(part, Corruptions):
        making = part.making(one.image_data.image_size)
        title = f"{one.clean['images']} test images, parameters {making.parameters}, seed {making.seed}"
        table, parameters = ERRORS_CSV, part.parameters
    else:
        parameters = None
        title, table = part.name, f"{Path(ERRORS_CSV).stem}_{part.name}.csv"
    used = reference or usual_reference(one.recipe, one.image_data, parameters)
    errors = _reference_errors(used, part, evaluated) if used else {}
    name = used.name if used else ""
    clean = one.clean["top1"]
    report_corruptions(one.run, rows, title, clean=clean, reference=name, reference_errors=errors, table_name=table)


def _reference_errors(
    reference: Reference, part: Corruptions | OtherFolder, evaluated: Sequence[Evaluated]
) -> Mapping[str, float]:
    """Of each type in %: AlexNet's, or the mean over the reference's runs that have it."""
    if not reference.runs:
        return alexnet_errors()
    folders = {run.folder.resolve() for run in reference.runs}
    theirs = [errors_by_type(part.errors(one)) for one in evaluated if one.run.folder.resolve() in folders]
    return {
        str(name): float(value) for name, value in pd.concat(theirs, axis=1).mean(axis=1, skipna=False).dropna().items()
    }
