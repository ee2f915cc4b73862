"""A report's files but its figures: tables, then the page in Markdown, then in HTML with all of them inside."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote

from kattn_cli.commands.report.sources import PAGE
from kattn_cli.report import html
from kattn_cli.report.page import FIGURES, TABLES, Page, as_markdown, tables
from kattn_cli.runs.whole_file import write_text
from kattn_cli.tables import latex
from kattn_cli.tables.text import defused, write_frame

HTML = "report.html"
_OWN = re.compile(rf"\]\(((?:{FIGURES}|{TABLES})/[^)]+)\)")
"""Where the page names a file of its own."""


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
