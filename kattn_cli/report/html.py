"""The page as one HTML file that needs nothing beside it: pictures, tables to save and style are all inside."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from jinja2 import Environment, PackageLoader
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from kattn_cli.report.page import OWN, slug, unique

TEMPLATE = "page.html.jinja"
TYPES = {".png": "image/png", ".csv": "text/csv", ".tex": "text/plain"}
"""What is put inside, from the folders of the report alone; whatever has another address is left out."""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
"""What a browser is to let the page do, which is to show itself: no scripts, nothing from elsewhere."""

LONG = 32
"""Letters in a cell from which on it is long."""


@dataclass
class Heading:
    """A line of the table of contents."""

    id: str
    text: str
    below: list[Heading] = field(default_factory=list)


def render(markdown: str, folder: Path) -> str:
    """Return the HTML of a page in Markdown; its pictures and tables are read from ``folder``.

    Its title is the first heading; its table of contents has the headings of the second and third level.
    """
    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.add_render_rule("table_open", _table_open)
    reader.add_render_rule("table_close", _table_close)
    tokens = reader.parse(markdown)
    contents = _headings(tokens)
    _mark_long_cells(tokens)
    for token in tokens:
        for child in token.children or []:
            _embed(child, folder)
    environment = Environment(loader=PackageLoader("kattn_cli.report", "."), autoescape=True, trim_blocks=True)
    body = Markup(reader.renderer.render(tokens, reader.options, {}))
    return environment.get_template(TEMPLATE).render(policy=POLICY, title=_title(tokens), contents=contents, body=body)


def _headings(tokens: Sequence[Token]) -> list[Heading]:
    """Return the table of contents, and give each heading an id of its own."""
    taken: set[str] = set()
    found: list[Heading] = []
    for token, inline in pairwise(tokens):
        if token.type != "heading_open":
            continue
        text = _text(inline)
        one = Heading(unique(slug(text), taken), text)
        taken.add(one.id)
        token.attrSet("id", one.id)
        if token.tag == "h2":
            found.append(one)
        elif token.tag == "h3" and found:
            found[-1].below.append(one)
    return found


def _mark_long_cells(tokens: Sequence[Token]) -> None:
    """Mark long cells, so that a narrow screen does not break them into a word a line."""
    for token, inline in pairwise(tokens):
        if token.type == "td_open" and len(inline.content) > LONG:
            token.attrSet("class", "long")


def _title(tokens: Sequence[Token]) -> str:
    pairs = pairwise(tokens)
    return next((_text(inline) for token, inline in pairs if token.type == "heading_open"), "")


def _text(inline: Token) -> str:
    return "".join(child.content for child in inline.children or [])


def _embed(token: Token, folder: Path) -> None:
    """Put a file of the folder in the place of its address."""
    key = {"image": "src", "link_open": "href"}.get(token.type)
    if key is None:
        return
    path = (folder / unquote(str(token.attrGet(key)))).resolve()
    own = any(path.is_relative_to((folder / one).resolve()) for one in OWN)
    if not own or path.suffix not in TYPES or not path.is_file():
        token.attrSet(key, "#")
        return
    data = base64.b64encode(path.read_bytes()).decode()
    token.attrSet(key, f"data:{TYPES[path.suffix]};base64,{data}")
    if token.type == "link_open":
        token.attrSet("download", path.name)


def _table_open(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    """Begin a box of its own to scroll in, which the keyboard reaches."""
    return '<div class="scroll" tabindex="0">\n<table>\n'


def _table_close(renderer: Any, tokens: Sequence[Token], index: int, options: Any, env: Any) -> str:
    return "</table>\n</div>\n"
