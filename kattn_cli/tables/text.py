"""How numbers, lists and tables are written: in sentences, in cells, in Markdown; :mod:`.latex` has the same tables."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from kattn_cli.runs.whole_file import write_text

_BLOCK = re.compile(r"^(\d*)([#+=-]+|(?<=\d)[.)])(?=\s|$)")
"""What would make a line a heading, a rule or an entry of a list."""
_FORMULA = re.compile(r"[=+\-@\t\r]")
_NUMBERS = re.compile(r"[-+−\d.,±…\[\] %]*(e[-+]?\d+)?")
_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&]|(?<!\w)_|_(?!\w)")


def mean_and_half(mean: float, half: float, decimals: int = 1, flags: str = "") -> str:
    """Return ``71.9 ± 0.4``, or ``71.9`` where there is no interval (a single seed); nothing where there is no mean.

    Args:
        half: half the width of the interval, nan if there is none.
        flags: of Python's number formats, for the mean: ``+`` writes its sign. ``,`` separates thousands in both.
    """
    if math.isnan(mean):
        return ""
    middle = f"{mean:{flags}.{decimals}f}"
    return middle if math.isnan(half) else f"{middle} ± {half:{flags.strip('+')}.{decimals}f}"


def signed(value: float, decimals: int) -> str:
    """Return ``+0.3``, ``−0.3`` or ``0.0``; nothing for nan."""
    if math.isnan(value):
        return ""
    text = f"{abs(value):.{decimals}f}"
    return text if not float(text) else f"{'+' if value > 0 else '−'}{text}"


def interval(low: float, high: float, decimals: int) -> str:
    """Return ``−0.4 … +2.0``; nothing for nan."""
    return "" if math.isnan(low) else f"{signed(low, decimals)} … {signed(high, decimals)}"


def p_value(p: float) -> str:
    """Return three decimals, ``< 0.001`` below; nothing for nan."""
    if math.isnan(p):
        return ""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def short(value: float) -> str:
    """Return four digits, with separators of thousands; nothing for nan."""
    if pd.isna(value):
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def counted(count: int, noun: str) -> str:
    """Return ``1 seed``, ``3 seeds``."""
    return f"{count:,} {noun}{'s' * (count != 1)}"


def listed(words: Iterable[str], most: int | None = None) -> str:
    """Return ``a, b and c``; beyond ``most``, ``a, b and 7 more``."""
    known: Sequence[str] = list(words)
    if most is not None and len(known) > most:
        known = [*known[:most], f"{len(known) - most} more"]
    return known[0] if len(known) == 1 else f"{', '.join(known[:-1])} and {known[-1]}" if known else ""


@dataclass(frozen=True)
class Table:
    """Cells as plain text; every rendering escapes them in its own way.

    Args:
        name: of its files, unique in the page.
        names: so many first columns are words, and go to the left; so do the columns in ``words``.
        bold: cells by row and column.
        data: what its CSV holds, tidy and not rounded; by default the cells.
    """

    name: str
    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    words: Collection[str] = ()
    bold: Collection[tuple[int, int]] = ()
    data: pd.DataFrame | None = None

    def is_words(self, column: int) -> bool:
        """Return whether a column holds words, not numbers."""
        return column < self.names or self.columns[column] in self.words

    def to_csv(self) -> str:
        """Return the text of its CSV, which is made for spreadsheets."""
        data = self.data
        if data is None:
            data = pd.DataFrame(self.rows, columns=[one or "name" for one in self.columns])
        return _as_csv(defused(data))

    def to_markdown(self) -> str:
        """Return its lines in Markdown, without caption."""
        rows = [
            [f"**{escaped(text)}**" if text and (at, column) in self.bold else escaped(text)
             for column, text in enumerate(row)]
            for at, row in enumerate(self.rows)
        ]  # fmt: skip
        words = [column for column in range(len(self.columns)) if self.is_words(column)]
        return markdown_table([escaped(one) for one in self.columns], rows, words)


def defused(data: pd.DataFrame) -> pd.DataFrame:
    """Return a table for spreadsheets: no text in it is a formula; those that would be begin with an apostrophe."""

    def defuse(cell: object) -> object:
        is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBERS.fullmatch(cell)
        return f"'{cell}" if is_formula else cell

    return data.map(defuse).rename(columns=defuse)


def write_frame(path: Path, data: pd.DataFrame) -> None:
    """Write a frame as a CSV, whole, without its index.

    Raises:
        RunError: if it cannot be written; what was there before stays.
    """
    write_text(path, _as_csv(data))


def _as_csv(data: pd.DataFrame) -> str:
    return data.to_csv(index=False, lineterminator="\n")


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]], words: Collection[int]) -> str:
    """Return a table as GitHub's Markdown has it, of cells that are Markdown already.

    Args:
        words: which columns go to the left; all others go to the right, as numbers do.
    """
    rule = ["---" if column in words else "---:" for column in range(len(columns))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (columns, rule, *rows))


def escaped(text: str) -> str:
    """Return plain text for a line of Markdown: nothing in it means anything, and line breaks are spaces."""
    line = _SPECIAL.sub(lambda found: f"\\{found.group()}", " ".join(text.split()))
    return _BLOCK.sub(lambda found: f"{found[1]}\\{found[2]}", line)


def code(text: str) -> str:
    """Return text as it would be typed, whatever backticks are in it, for Markdown; line breaks are spaces."""
    text = " ".join(text.split())
    if not text:
        return ""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def bullets(lines: Sequence[str]) -> str:
    """Return a list as one paragraph of Markdown."""
    return "\n".join(f"- {line}" for line in lines)
