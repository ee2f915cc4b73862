"""The page as Markdown, with tables as GitHub has them."""

from __future__ import annotations

from collections.abc import Iterator

from kattn_cli.report.page import Block, Page, Part, Picture
from kattn_cli.tables.text import Table, escaped

TABLES = "tables"
"""The folder of the tables' files, beside the page."""


def render(page: Page) -> str:
    """All of the page."""
    blocks = [f"# {escaped(page.title)}", *map(_block, page.blocks)]
    blocks += [text for part in page.parts for text in _part(part, 2)]
    return "\n\n".join(blocks) + "\n"


def _part(part: Part, level: int) -> Iterator[str]:
    yield f"{'#' * level} {escaped(part.heading)}"
    yield from map(_block, part.blocks)
    for one in part.parts:
        yield from _part(one, min(level + 1, 6))


def _block(block: Block) -> str:
    if isinstance(block, Table):
        return _table(block)
    return f"![{escaped(block.text)}]({block.path})" if isinstance(block, Picture) else block


def _table(table: Table) -> str:
    files = f"[CSV]({TABLES}/{table.name}.csv) · [LaTeX]({TABLES}/{table.name}.tex)"
    return "\n\n".join([escaped(table.caption), table.to_markdown(), files])
