"""The tables of series, Long-Range Arena and language as text: cells, what differs from the paper, what held."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd

from kattn_cli.papers.paper_rows import baselines_first
from kattn_cli.papers.paper_sections import Section, as_printed, differing, from_high, signed
from kattn_cli.papers.published import NAMES, PaperName
from kattn_cli.papers.sequence_papers import ACCURACIES, PARTS, Part
from kattn_cli.tables.comparison import UNDECIDED
from kattn_cli.tables.frames import shared_folder

METRICS = {
    "top1": ("top-1 (%)", 1),
    "validation_top1": ("validation top-1 (%)", 1),
    "train_top1": ("training top-1 (%)", 1),
    "seconds_per_epoch": ("s an epoch", 2),
    "seconds_per_1k_steps": ("s for 1,000 steps", 1),
    "memory_gb": ("peak memory (GB)", 2),
    "perplexity": ("perplexity", 2),
    "swapped_perplexity": ("swapped", 2),
    "loss": ("loss (nats)", 3),
    "reward": ("normalised score", 1),
}
"""What a column is headed, and how many decimals its numbers have."""


def sequence_sections(tables: pd.DataFrame, paper: PaperName) -> list[Section]:
    """Each table with a row for each setting and label: ours, then the paper's own number in a column ``paper``."""
    found = []
    for part in PARTS[paper] if len(tables) else []:
        table = tables[tables["table"].isin(part.tables)]
        if not table.empty:
            columns, rows = _cells(part, table)
            notes = [*([part.note] if part.note else []), *differing(table)]
            title = f"{NAMES[paper]} paper, {part.title}"
            found.append(Section(title, columns, rows, 2, notes, list(_sentences(part, table))))
    return found


def _cells(part: Part, table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Headings and rows; a column that has nothing in any row is left out."""
    rows: list[dict[str, str]] = []
    labels = baselines_first(table)
    for (_, setting), group in table.groupby(["row", "setting"], sort=False):
        name, folder = str(setting), shared_folder(group["label"])
        for label in (one for one in labels if one in set(group["label"])):
            names = {"what was run": name, "mechanism": label.removeprefix(folder)}
            rows.append({**names, **_row(part, group[group["label"] == label])})
            name = ""
    kept = [heading for heading in _headings(part, table) if any(row.get(heading) for row in rows)]
    models = dict(zip(table["label"], table["model"], strict=True))
    bases = dict.fromkeys(models[base] for base in table["baseline"] if base)
    shown = {"difference": f"less {' or '.join(bases)}"}
    columns = ["paper" if heading.startswith("paper ") else shown.get(heading, heading) for heading in kept]
    return columns, [[row.get(heading, "") for heading in kept] for row in rows]


def _headings(part: Part, table: pd.DataFrame) -> Iterator[str]:
    yield from ("what was run", "mechanism")
    for metric in part.metrics:
        shares = sorted(table.loc[table["metric"] == metric, "share"].unique())
        yield from (_heading(metric, share) for share in shares)
        yield f"paper {metric}"
        if metric == part.metrics[0]:
            yield from ("difference", "paper difference")
    yield "seeds"


def _heading(metric: str, share: float) -> str:
    return f"{100 * share:g} % {METRICS[metric][0]}" if share else METRICS[metric][0]


def _row(part: Part, mine: pd.DataFrame) -> dict[str, str]:
    cells = {"seeds": str(mine["seeds"].max())}
    for _, one in mine.iterrows():
        metric, digits = one["metric"], METRICS[one["metric"]][1]
        cells[_heading(metric, one["share"])] = from_high(one["mean"], one["high"], digits)
        if not math.isnan(one["paper"]):
            cells[f"paper {metric}"] = as_printed(one["paper"], digits)
        if metric == part.metrics[0] and isinstance(one.get("verdict"), str):
            gain = from_high(one["difference"], one["difference_high"], digits)
            cells["difference"] = f"{signed(gain)} ({one['verdict']})"
        if metric == part.metrics[0] and not math.isnan(one["paper_difference"]):
            cells["paper difference"] = signed(as_printed(one["paper_difference"], digits))
    return cells


def _sentences(part: Part, table: pd.DataFrame) -> Iterator[str]:
    """For each number that the paper claims to be better than the baseline's: its difference, and ours."""
    for _, one in table[table["model"].isin(list(part.claims))].iterrows():
        metric, base = one["metric"], one["baseline"]
        if metric in part.claims[one["model"]] and base not in ("", one["label"]):
            swapped = f"perplexity with {100 * one['share']:g} % of the words swapped"
            what = swapped if one["share"] else METRICS[metric][0].removesuffix(" (%)")
            unit, digits = " points" if metric in ACCURACIES else "", METRICS[metric][1]
            theirs = one["paper_difference"]
            paper = "" if math.isnan(theirs) else f"in the paper {signed(as_printed(theirs, digits))}{unit}; "
            folder = shared_folder([one["label"], base])
            between = f"{what} of `{one['label'].removeprefix(folder)}` less that of `{base.removeprefix(folder)}`"
            yield f"{one['setting']}: {between}: {paper}{_ours(one, unit, digits)}."


def _ours(one: pd.Series, unit: str, digits: int) -> str:
    """Our difference with its interval, and what it tells."""
    if not isinstance(one.get("verdict"), str):
        return f"here nothing was measured of both with one seed, so {UNDECIDED}"
    mean, low, high = (signed(f"{one[key]:.{digits}f}") for key in ("difference", "difference_low", "difference_high"))
    interval = "one seed" if one["pairs"] == 1 else f"95 % interval {low} … {high}, {one['pairs']:.0f} seeds"
    return f"here {mean}{unit} ({interval}), {one['verdict']}"
