"""A report's files: tables first, then the page in Markdown, then in HTML with all of them inside."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from kattn_cli.commands.report.pictures import FIGURES
from kattn_cli.commands.report.sources import PAGE
from kattn_cli.errors import RunError
from kattn_cli.report import html, markdown
from kattn_cli.report.page import Page, tables
from kattn_cli.runs.whole_file import faults_as, write_text
from kattn_cli.tables import latex

HTML = "report.html"
_OWN = re.compile(rf"\]\(((?:{FIGURES}|{markdown.TABLES})/[^)]+)\)")
"""Where the page names a file of its own."""


def write_page(page: Page, output: Path) -> list[Path]:
    """Write all but the figures, which are there; files that an earlier page named and this one does not are removed.

    Raises:
        RunError: if a file cannot be written.
    """
    folder = output / markdown.TABLES
    with faults_as(RunError, folder):
        folder.mkdir(parents=True, exist_ok=True)
    for table in tables(page.parts):
        write_text(folder / f"{table.name}.csv", table.to_csv())
        write_text(folder / f"{table.name}.tex", latex.render(table))
    for name, data in page.attached.items():
        write_text(folder / f"{name}.csv", data.to_csv(index=False, lineterminator="\n"))
    before = _named(output / PAGE)
    text = markdown.render(page)
    write_text(output / PAGE, text)
    write_text(output / HTML, html.render(text, output))
    for name in before - set(_OWN.findall(text)):
        with suppress(OSError):
            (output / name).unlink()
    return [output / PAGE, output / HTML]


def _named(path: Path) -> set[str]:
    """The files of an earlier page."""
    with suppress(OSError, ValueError):
        named = _OWN.findall(path.read_text(encoding="utf-8"))
        return {name for name in named if ".." not in name}
    return set()
