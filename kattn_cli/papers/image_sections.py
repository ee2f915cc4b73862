"""The tables of images as text: cells, what differs from the paper, what held."""

from __future__ import annotations

import math

import pandas as pd

from kattn_cli.papers.image_lines import METRICS, by_label
from kattn_cli.papers.image_papers import IMAGE_PARTS
from kattn_cli.papers.image_part import ImagePart
from kattn_cli.papers.paper_rows import baselines_first
from kattn_cli.papers.paper_sections import Section, differing, from_high
from kattn_cli.papers.published import NAMES, PaperName
from kattn_cli.tables.comparison import UNDECIDED

LOWER_IS_BETTER = ("mce", "seconds_per_1k_steps", "memory_gb")


def image_sections(tables: pd.DataFrame, paper: PaperName) -> list[Section]:
    """Each table of each setting: ``ours (the paper's)`` in each cell, and what of its differences held, in words."""
    found = []
    for part in IMAGE_PARTS[paper] if len(tables) else []:
        of_part = tables[tables["table"].isin(part.tables)]
        for setting, table in of_part.groupby("setting", sort=False):
            found.append(_section(part, str(setting), table, paper))
    return found


def _section(part: ImagePart, setting: str, table: pd.DataFrame, paper: PaperName) -> Section:
    notes = [*([part.note] if part.note else []), *differing(table)]
    title = f"{NAMES[paper]} paper, {part.title}; {setting}"
    if part.transposed:
        return Section(title, *by_label(part, table), notes=notes)
    labels, rows = baselines_first(table), []
    for (row, metric, measured), cells in table.groupby(["row", "metric", "measured"], sort=False):
        of_label = {str(one["label"]): _cell(one) for _, one in cells.iterrows()}
        rows.append([f"{measured or row} {METRICS[str(metric)]}", *(of_label.get(label, "") for label in labels)])
    return Section(title, ["", *labels], rows, notes=notes, sentences=_sentences(table, part))


def _sentences(table: pd.DataFrame, part: ImagePart) -> list[str]:
    """For each of the paper's models but the baseline, how many of its differences were met."""
    told = []
    for label, rows in table.dropna(subset="paper_difference").groupby("label", sort=False):
        sign = rows["metric"].isin(LOWER_IS_BETTER).map({True: -1, False: 1})
        claimed = int((sign * rows["paper_difference"] > 0).sum())
        counts = rows["verdict"].value_counts()
        ours = ", ".join(f"{counts.get(word, 0)} {word}" for word in ("better", "worse", UNDECIDED))
        base = part.baselines(str(rows["model"].iloc[0]))[0]
        told.append(f"{label} against {base}: in the paper better in {claimed} of {len(rows)} numbers; here {ours}.")
    return told


def _cell(one: pd.Series) -> str:
    ours = from_high(one["mean"], one["high"])
    return ours if math.isnan(one["paper"]) else f"{ours} ({one['paper']:.2f})"
