"""One small page as Markdown, HTML and LaTeX."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from kattn_cli.report import html
from kattn_cli.report.page import Page, Part, Picture, as_markdown, slug, unique
from kattn_cli.tables import latex, text
from kattn_cli.tables.text import Table

NASTY = "a|b_c *d* <i>e</i> & 50 % ~f $g$ [h](i) `j` \\k #l {m}"
TABLE = Table(
    "nasty", "Its caption & 5 %", ["", "top-1 (%)", "say"], [[NASTY, "1.0 ± 0.5", "yes"], ["x", "", "no"]],
    words=["say"], bold={(0, 1)},
)  # fmt: skip
PAGE = Page(
    f"Title {NASTY}",
    ["A paragraph."],
    [Part("First", [TABLE, Picture("figures/one.png", "a | picture")], [Part("Below")]), Part("First", ["- again"])],
)
VOID = {"meta", "link", "img", "br", "hr"}


class Checked(HTMLParser):
    """Tags are closed in their order; ids, addresses and the text are kept."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.open += [] if tag in VOID else [tag]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag: str) -> None:
        assert tag in VOID or self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "figures").mkdir()
    (tmp_path / "tables").mkdir()
    (tmp_path / "figures" / "one.png").write_bytes(b"\x89PNG picture")
    for suffix in ("csv", "tex"):
        (tmp_path / "tables" / f"nasty.{suffix}").write_text("content")
    return tmp_path


def test_markdown_tables_are_well_formed_and_say_what_they_were_given() -> None:
    text = as_markdown(PAGE)
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert lines[1] == "| --- | ---: | --- |"
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in lines} == {4}
    assert "| **1.0 ± 0.5** |" in text
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    cells = [token for token, before in zip(tokens[1:], tokens, strict=False) if before.type == "td_open"]
    assert "".join(child.content for child in cells[0].children or []) == NASTY
    assert [token.tag for token in tokens if token.type == "heading_open"] == ["h1", "h2", "h3", "h2"]


def test_code_holds_backticks() -> None:
    assert text.code("kattn train a") == "`kattn train a`"
    assert text.code("a `b` c") == "``a `b` c``"


def test_html_is_balanced_and_needs_nothing_beside_it(folder: Path) -> None:
    page = Checked(html.render(as_markdown(PAGE), folder))
    assert NASTY in page.text
    assert not {"script", "i", "iframe", "object"} & set(page.tags)
    assert all(address.startswith(("data:", "#")) for address in page.addresses)
    assert [one.partition(",")[0] for one in page.addresses if one.startswith("data:")] == [
        "data:", "data:text/csv;base64", "data:text/plain;base64", "data:image/png;base64",
    ]  # fmt: skip
    assert len(page.ids) == len(set(page.ids))
    assert {one[1:] for one in page.addresses if one.startswith("#")} == {"first", "below", "first-2"} & set(page.ids)


def test_html_looks_right_in_the_dark_on_a_phone_and_on_paper(folder: Path) -> None:
    text = html.render(as_markdown(PAGE), folder)
    for query in ("prefers-color-scheme: dark", "max-width: 40rem", "@media print"):
        assert query in text
    assert text.count('<div class="scroll"') == text.count("<table>") == 1
    assert "://" not in text


def test_latex_escapes_everything_and_is_balanced() -> None:
    text = latex.render(TABLE)
    assert r"\begin{tabular}{@{}p{5.5cm}rl@{}}" in text
    assert r"\caption{Its caption \& 5 \%}\label{tab:nasty}" in text
    assert r"\textbf{1.0 $\pm$ 0.5}" in text
    assert r"a\textbar{}b\_c *d* \textless{}i\textgreater{}" in text
    body = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(body) == 3
    for line in body:
        assert len(re.findall(r"(?<!\\)&", line)) == 2
        assert not re.search(r"(?<!\\)[%#_^~]", line)
    bare = re.sub(r"\\[{}]", "", text)
    assert bare.count("{") == bare.count("}")
    assert re.findall(r"\\begin{(\w+)}", text) == re.findall(r"\\end{(\w+)}", text)[::-1]


def test_latex_of_wide_and_of_tall_tables() -> None:
    wide = Table("wide", "", [f"column {one}" for one in range(20)], [["1"] * 20])
    assert r"\resizebox{\textwidth}{!}{%" in latex.render(wide)
    tall = latex.render(Table("tall", "", ["", "x"], [[str(one), "1"] for one in range(41)]))
    assert r"\begin{longtable}{@{}lr@{}}" in tall
    assert r"\begin{table}" not in tall


@pytest.mark.parametrize(
    ("plain", "told"),
    [
        ("λ ≤ 3", r"$\lambda$ $\leq$ 3"),
        ("10⁻²", "10$^{-}$$^{2}$"),
        ("ε", r"$\epsilon$"),
        ("−1 … +2", r"$-$1 \ldots{} +2"),
    ],
)
def test_latex_signs(plain: str, told: str) -> None:
    assert latex.escaped(plain) == told


def test_signs_of_our_captions_are_known_to_latex() -> None:
    told = latex.escaped("±×−≤≥≈→∞∝√‖·…–§ℓ∈ΣΠΛΔγσφρ²₂ᵢⱼ K\N{COMBINING TILDE}")
    assert told.isascii()
    assert told.endswith(r" $\tilde{K}$")


def test_a_table_s_csv_is_its_cells_where_it_has_no_data() -> None:
    assert Table("t", "", ["", "a"], [["x", "1.0 ± 2"]]).to_csv() == "name,a\nx,1.0 ± 2\n"


def test_names() -> None:
    assert slug("LRA/small: ListOps (τ)") == "lra-small-listops"
    assert unique("a", ["a", "a-2"]) == "a-3"
