"""The page as Markdown, with tables as GitHub has them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kattn_cli.report.page import Block, Page, Part, Picture, Table

_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&]|(?<!\w)_|_(?!\w)")
TABLES = "tables"
"""The folder of the tables' files, beside the page."""


def escaped(text: str) -> str:
    """Plain text for a line of Markdown: nothing in it means anything, and line breaks are spaces."""
    return _SPECIAL.sub(lambda found: f"\\{found.group()}", " ".join(text.split()))


def code(text: str) -> str:
    """Text as it would be typed, whatever backticks are in it."""
    fence = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{room}{text}{room}{fence}"


def bullets(lines: Sequence[str]) -> str:
    """One paragraph: a list."""
    return "\n".join(f"- {line}" for line in lines)


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
    rule = ["---" if table.is_words(column) else "---:" for column in range(len(table.columns))]
    rows = [
        [_cell(text, (at, column) in table.bold) for column, text in enumerate(row)]
        for at, row in enumerate(table.rows)
    ]
    lines = [_line(list(map(escaped, table.columns))), _line(rule), *map(_line, rows)]
    files = f"[CSV]({TABLES}/{table.name}.csv) · [LaTeX]({TABLES}/{table.name}.tex)"
    return "\n\n".join([f"{escaped(table.caption)}", "\n".join(lines), files])


def _cell(text: str, bold: bool) -> str:
    return f"**{escaped(text)}**" if bold and text else escaped(text)


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
