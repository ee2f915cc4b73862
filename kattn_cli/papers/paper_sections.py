"""A paper's table with ours in it, as text: for Markdown and for the console."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pandas as pd

from kattn_cli.tables.text import markdown_table, mean_and_half


@dataclass(frozen=True)
class Section:
    """One table: its cells, of which the first ``names`` columns are no numbers, and what is to be said of it.

    ``notes``: what to know before reading it; ``sentences``: what it says.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    notes: Sequence[str] = field(default_factory=list)
    sentences: Sequence[str] = field(default_factory=list)


def as_markdown(sections: Sequence[Section]) -> str:
    """Each with its title, table and sentences."""
    parts: list[str] = []
    for one in sections:
        parts += [f"### {one.title}", ""]
        parts += [*(f"- {note}" for note in one.notes), ""] if one.notes else []
        table = markdown_table(one.columns, one.rows, range(one.names))
        parts += [table, "", *(f"- {sentence}" for sentence in one.sentences), ""]
    return "\n".join(parts)


def from_high(mean: float, high: float, decimals: int = 1) -> str:
    """Return ``71.9 ± 0.4`` from the upper end of the interval; see :func:`~kattn_cli.tables.text.mean_and_half`."""
    return mean_and_half(mean, high - mean, decimals)


def as_printed(number: float, digits: int) -> str:
    """A number of the paper, with the decimals that it has there, and no fewer than ``digits``."""
    short = f"{number:.{digits}f}"
    return short if abs(float(short) - number) < 1e-6 else f"{round(number, 6):g}"


def signed(number: str) -> str:
    """``+0.3`` or ``−0.3``."""
    return number.replace("-", "−") if number.startswith("-") else f"+{number}"


def differing(table: pd.DataFrame) -> list[str]:
    """One line for each ``setting`` that is not the paper's, with what of all its rows ``differs``."""
    told = []
    for setting, rows in table[table["differs"] != ""].groupby("setting", sort=False):
        pieces = dict.fromkeys(piece for one in rows["differs"] for piece in one.split("; "))
        told.append(f"`{setting}` is not the paper's setting: {'; '.join(pieces)}.")
    return told
