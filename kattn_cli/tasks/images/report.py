"""``kattn eval`` of what is classified, from the runs to what is printed and drawn of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import torch

from kattn_cli.console import console, print_wide
from kattn_cli.data.corruptions import SEVERITIES, alexnet_errors
from kattn_cli.data.images import ImageData, MemorySplit, Split
from kattn_cli.data.loaded import LoadedData
from kattn_cli.data.sequences import SequenceData
from kattn_cli.errors import DataError
from kattn_cli.figures.contact_sheet import draw_contact_sheet
from kattn_cli.figures.corruptions import corruption_frame, draw_corruptions
from kattn_cli.runs.csv_rows import changing, write_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.corruption_errors import ALL_TYPES, Summary, corruption_errors, errors_by_type, summary
from kattn_cli.tables.frames import frame
from kattn_cli.tables.summary import print_summary
from kattn_cli.tasks.images.corruptions import Corruptions
from kattn_cli.tasks.images.evaluation import EVAL_CSV, Evaluated, evaluate_runs
from kattn_cli.tasks.images.out_of_distribution import OtherFolder
from kattn_cli.tasks.images.reference import Reference, find_reference, usual_reference
from kattn_cli.tasks.images.sensitivity import Sensitivity
from kattn_cli.tasks.task import Asked, Opener
from kattn_cli.training.corrupted import CorruptedSplit
from kattn_cli.training.evaluate import Batched
from kattn_cli.training.opened import as_image_data

ERRORS_CSV = "corruption_errors.csv"
_TRIED = 10


def evaluate_and_report(
    runs: Sequence[Run],
    asked: Asked,
    *,
    corruptions: Corruptions | None = None,
    folders: Sequence[OtherFolder] = (),
    figures: Path,
) -> None:
    """Measure, print a line or a table of everything, and draw the errors under corruption into ``figures``.

    Raises:
        RunError: if there is no such reference, or it does not go with the runs.
    """
    parts: list[Corruptions | OtherFolder] = [*([corruptions] if corruptions else []), *folders]
    chosen = find_reference(asked, runs)
    own = {run.folder.resolve() for run in runs}
    others = [run for run in chosen.runs if run.folder.resolve() not in own] if chosen else []
    sensitivity = Sensitivity() if asked.sensitivity else None
    evaluated = evaluate_runs([*runs, *others], asked, [*parts, *([sensitivity] if sensitivity else [])])
    ours = evaluated[: len(runs)]
    for one in ours:
        _print_clean(one)
        for folder in folders:
            _print_folder(one, folder)
    if sensitivity:
        sensitivity.print()
    for part in parts:
        for one in ours:
            with changing(one.run.folder / ERRORS_CSV):
                _report(one, part, chosen, evaluated)
    if asked.run_as:
        return  # figures and summaries are of the runs' own attention
    if corruptions:
        console.print(f"\n{draw_corruptions(corruption_frame(frame(runs, EVAL_CSV)), figures)}")
    if len(runs) > 1:
        print_summary(runs)


def _print_clean(one: Evaluated) -> None:
    row = one.clean
    console.print(
        f"{_what(one)}  {row['split']}  {_accuracy(row)}  loss {row['loss']:.4f}  ece {row['ece']:.4f}  "
        f"({row['images']} {_unit(one.data)})"
    )
    if one.experts:
        console.print(f"  {one.experts}")


def _unit(data: LoadedData) -> str:
    """Return what was counted; of queries with the share that a guess gets right, since it is no usual data set's."""
    if isinstance(data, SequenceData) and data.queries:
        return f"queries, chance {100 / data.classes:.1f} %"
    return data.unit


def _print_folder(one: Evaluated, folder: OtherFolder) -> None:
    for row in folder.measured(one.run, one.clean):
        if row["corruption"]:
            continue
        parts = [f"{_what(one)}  {folder.name}"]
        parts += [f"{_accuracy(row)}  among {row['classes']} classes"] if row["top1"] else []
        aupr = f"AUPR {float(row['aupr']):.2f} % (without skill {float(row['aupr_chance']):.2f} %)"
        console.print("  ".join([*parts, aupr, f"({row['images']} images)"]))


def _what(one: Evaluated) -> str:
    run_as = one.clean["run_as"]
    return f"{one.run.folder} as {run_as}" if run_as else str(one.run.folder)


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
    path = None if one.clean["run_as"] else one.run.folder / table
    report_corruptions(_what(one), rows, title, clean=clean, reference=name, reference_errors=errors, table=path)


def _reference_errors(
    reference: Reference, part: Corruptions | OtherFolder, evaluated: Sequence[Evaluated]
) -> Mapping[str, float]:
    """Return errors by type in %: AlexNet's, or the mean over the reference's runs that have it."""
    if not reference.runs:
        return alexnet_errors()
    folders = {run.folder.resolve() for run in reference.runs}
    theirs = [errors_by_type(part.errors(one)) for one in evaluated if one.run.folder.resolve() in folders]
    return {
        str(name): float(value) for name, value in pd.concat(theirs, axis=1).mean(axis=1, skipna=False).dropna().items()
    }


def report_corruptions(
    run: str,
    rows: pd.DataFrame,
    title: str,
    *,
    clean: float,
    reference: str = "",
    reference_errors: Mapping[str, float] | None = None,
    table: Path | None = None,
) -> Summary:
    """Print the error of each type and severity, the mean error, and mCE; write one row a type.

    Args:
        run: what the run is called.
        rows: ``corruption``, ``severity``, ``top1`` in %.
        title: what the errors are of.
        clean: top-1 in % on the clean images.
        reference: see :func:`~kattn_cli.tables.corruption_errors.corruption_errors`.
        reference_errors: likewise.
        table: the file of the rows, if they are to be kept.
    """
    errors = corruption_errors(rows, reference, reference_errors)
    total = summary(errors)
    if table:
        write_rows(table, [_filled(row) for row in errors.to_dict("records")])
    console.print(f"\n{run}: {title}, top-1 error in %\n")
    _print_table(rows, errors)
    console.print()
    console.print(_mean_error(total, clean))
    console.print(_mce(total, reference))
    return total


def _filled(row: Mapping[object, object]) -> dict[str, object]:
    return {str(key): "" if isinstance(value, float) and math.isnan(value) else value for key, value in row.items()}


def _print_table(rows: pd.DataFrame, errors: pd.DataFrame) -> None:
    severities = sorted(rows["severity"].unique())
    by_type = errors.set_index("corruption")
    columns = ["error", *(["corruption_error"] if errors["corruption_error"].notna().any() else [])]
    headings = [*map(str, severities), "mean", "CE"][: len(severities) + len(columns)]
    lines = []
    for name, part in rows.groupby("corruption", sort=False):
        cells = (100 - part.set_index("severity")["top1"]).reindex(severities)
        means = [by_type[column].get(name, math.nan) for column in columns]
        lines.append([str(name), *(_cell(value) for value in [*cells, *means])])
    print_wide(["severity", *headings], lines)


def _cell(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.1f}"


def _mean_error(total: Summary, clean: float) -> str:
    if not total.types:
        return "mean error: left out, since no type has all five severities yet"
    return f"mean error {total.mean_error:.2f} % over {_types(total.types)} × 5 severities (clean {100 - clean:.2f} %)"


def _types(count: int) -> str:
    return f"{count} of {ALL_TYPES} types" if count < ALL_TYPES else f"{count} types"


def _mce(total: Summary, reference: str) -> str:
    if not reference:
        return "mCE: left out, since it needs a reference; --reference RUN names a run to compare with"
    if not total.mce_types:
        return f"mCE: left out, since {reference} has no error above 0 for any type that has all five severities"
    return f"mCE {total.mce:.2f} % over {_types(total.mce_types)}, against {reference}"


def save_sheets(runs: Sequence[Run], corruptions: Corruptions, opener: Opener) -> None:
    """Draw a contact sheet of what the corruptions look like for each run, and print its path."""
    for run in runs:
        _, data = opener.read(run)
        console.print(_save_images(run, as_image_data(data, str(run.folder), "--save-images"), corruptions))


def _save_images(run: Run, data: ImageData, corruptions: Corruptions) -> Path:
    """Draw ``figures/corruptions.png`` and ``.pdf`` in the run's folder: a row for each type, all of one image a row.

    Images from all over the test set, each corrupted by itself. No weights are needed. Returns the picture's path.
    """
    making = corruptions.making(data.image_size)
    test = data.splits["test"]
    pictures = {}
    for number, name in enumerate(corruptions.names):
        image = _one(test, number * len(test) // len(corruptions.names))
        parts: list[Batched] = [image, *(CorruptedSplit(image, name, severity, making) for severity in SEVERITIES)]
        row = [next(iter(part.batches(1)))[0][0] for part in parts]
        pictures[name] = [one.permute(1, 2, 0).cpu().numpy() for one in row]
    caption = f"{data.name}, {data.image_size} × {data.image_size}; parameters {making.parameters}, seed {making.seed}"
    return draw_contact_sheet(pictures, run.folder / "figures", caption)


def _one(test: Split, place: int) -> MemorySplit:
    """Return the image at ``place``, or the first after it that can be read."""
    following = torch.arange(place, len(test))[:_TRIED]
    for image, label in test.subset(following).batches(1):
        return MemorySplit(image, label)
    raise DataError(f"of the test images from number {place} on, {len(following)} in a row cannot be read")
