"""What corruptions cost a run: its table on the console, and ``corruption_errors.csv`` in its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.corruption_errors import ALL_TYPES, Summary, corruption_errors, summary

ERRORS_CSV = "corruption_errors.csv"


def report_corruptions(
    run: Run,
    rows: pd.DataFrame,
    title: str,
    *,
    clean: float,
    reference: str = "",
    reference_errors: Mapping[str, float] | None = None,
    table_name: str = ERRORS_CSV,
) -> Summary:
    """Print the error of each type and severity, the mean error, and mCE; write one row a type.

    Args:
        run: whose folder the table goes to.
        rows: ``corruption``, ``severity``, ``top1`` in %.
        title: what the errors are of.
        clean: top-1 in % on the clean images.
        reference: see :func:`~kattn_cli.tables.corruption_errors.corruption_errors`.
        reference_errors: likewise.
        table_name: the file's.
    """
    errors = corruption_errors(rows, reference, reference_errors)
    total = summary(errors)
    write_rows(run.folder / table_name, [_filled(row) for row in errors.to_dict("records")])
    console.print(f"\n{run.folder}: {title}, top-1 error in %\n", markup=False)
    _print_table(rows, errors)
    console.print()
    console.print(_mean_error(total, clean), markup=False)
    console.print(_mce(total, reference), markup=False)
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
