"""The page: parts with paragraphs, tables and pictures, and how it is written in Markdown."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import pandas as pd

from kattn_cli.tables.text import Table, escaped


@dataclass(frozen=True)
class Picture:
    """``path``: of a PNG, from the page's folder."""

    path: str
    text: str


Block = str | Table | Picture
"""A paragraph (in Markdown), a table, a picture."""


@dataclass(frozen=True)
class Part:
    """A heading with what stands below it."""

    heading: str
    blocks: Sequence[Block] = ()
    parts: Sequence[Part] = field(default_factory=list)


@dataclass(frozen=True)
class Page:
    """The whole page; ``attached``: tables that are not shown, by the names of their CSVs."""

    title: str
    blocks: Sequence[Block]
    parts: Sequence[Part]
    attached: Mapping[str, pd.DataFrame] = field(default_factory=dict)


def tables(parts: Sequence[Part]) -> Iterator[Table]:
    """Yield every table, in the order of the page."""
    for part in parts:
        yield from (block for block in part.blocks if isinstance(block, Table))
        yield from tables(part.parts)


def slug(text: str) -> str:
    """Return ``lra/small: listops`` as ``lra-small-listops``: fit for a file's name and a link."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "table"


def unique(name: str, taken: Collection[str]) -> str:
    """Return the name, or ``name-2`` and so on where that is taken."""
    count, free = 1, name
    while free in taken:
        count += 1
        free = f"{name}-{count}"
    return free


TABLES, FIGURES = OWN = ("tables", "figures")
"""The folders of the files that the page shows, beside it."""


def as_markdown(page: Page) -> str:
    """Return the whole page in Markdown."""
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
    return f"![{escaped(block.text)}]({quote(block.path)})" if isinstance(block, Picture) else block


def _table(table: Table) -> str:
    files = f"[CSV]({TABLES}/{table.name}.csv) · [LaTeX]({TABLES}/{table.name}.tex)"
    return "\n\n".join([escaped(table.caption), table.to_markdown(), files])
