"""A report's files: figures, then tables, then the page in Markdown, then in HTML with all of them inside."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

import matplotlib as mpl

from kattn_cli.commands.plot.plot import draw_runs
from kattn_cli.commands.report.sources import PAGE, CostTable
from kattn_cli.errors import NothingToDraw
from kattn_cli.figures.registry import draw_cost_table
from kattn_cli.figures.style import use
from kattn_cli.report import html
from kattn_cli.report.groups import Group
from kattn_cli.report.page import FIGURES, TABLES, Page, Picture, as_markdown, tables
from kattn_cli.runs.whole_file import write_text
from kattn_cli.tables import latex
from kattn_cli.tables.text import defused, write_frame

DOTS_PER_INCH = 130
"""Enough for a screen of twice the usual density, since all figures are in one page."""
HTML = "report.html"
_OWN = re.compile(rf"\]\(((?:{FIGURES}|{TABLES})/[^)]+)\)")
"""Where the page names a file of its own."""


def draw_group(group: Group, output: Path) -> list[Picture]:
    """Draw every figure that the runs allow, into ``<output>/figures/<group>``."""
    return _drawn(lambda folder: draw_runs(group.runs, folder), group.slug, group.name, output)


def draw_table(cost: CostTable, stem: str, output: Path) -> list[Picture]:
    """Draw a table of costs; nothing where nothing in it went well."""
    return _drawn(lambda folder: draw_cost_table(cost.kind, cost.table, folder, stem), stem, cost.name, output)


def _drawn(draw: Callable[[Path], Sequence[Path]], slug: str, name: str, output: Path) -> list[Picture]:
    use("paper", ["png"])
    try:
        with mpl.rc_context({"savefig.dpi": DOTS_PER_INCH}):
            paths = draw(output / FIGURES / slug)
    except NothingToDraw:  # its tables say so
        return []
    return [Picture(path.relative_to(output).as_posix(), f"{name}: {path.stem.replace('_', ' ')}") for path in paths]


def write_page(page: Page, output: Path) -> list[Path]:
    """Write all but the figures, which are there; remove files that an earlier page named and this one does not.

    Raises:
        RunError: if a file cannot be written.
    """
    folder = output / TABLES
    for table in tables(page.parts):
        write_text(folder / f"{table.name}.csv", table.to_csv())
        write_text(folder / f"{table.name}.tex", latex.render(table))
    for name, data in page.attached.items():
        write_frame(folder / f"{name}.csv", defused(data))
    before = _named(output / PAGE)
    text = as_markdown(page)
    write_text(output / PAGE, text)
    write_text(output / HTML, html.render(text, output))
    for name in before - {unquote(name) for name in _OWN.findall(text)}:
        with suppress(OSError):
            (output / name).unlink()
    return [output / PAGE, output / HTML]


def _named(path: Path) -> set[str]:
    """Return the files of an earlier page."""
    with suppress(OSError, ValueError):
        named = _OWN.findall(path.read_text(encoding="utf-8"))
        return {unquote(name) for name in named if ".." not in unquote(name)}
    return set()
