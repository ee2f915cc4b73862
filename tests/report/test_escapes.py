"""Whatever a run's files hold, its report shows it as text, and shows and runs nothing that is not its own."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from markdown_it import MarkdownIt
from report.runs import write_all
from report.test_renderings import Checked

from kattn_cli.commands.report import run as report_run
from kattn_cli.commands.report.run import report
from kattn_cli.commands.report.sources import find_sources
from kattn_cli.report import html
from kattn_cli.report.page import Page, as_markdown
from kattn_cli.tables.text import Table, code, defused, escaped

EVIL = (
    "kattn `x`\n\n# Heading\n\n[link](https://example.org) ![remote](https://example.org/a.png) "
    "![file](../../../secret.csv) <script>alert(1)</script> [secret](../secret.csv)"
)
LINE_STARTS = ("# a", "- a", "+ a", "* a", "1. a", "12) a", "> a", "=== a", "---", "===", "- - -", "~~~", "| a |", "#")


@pytest.mark.parametrize("text", LINE_STARTS)
@pytest.mark.parametrize("before", ["", "- ", "A paragraph.\n"])
def test_no_text_begins_a_block(text: str, before: str) -> None:
    plain = [token.type for token in MarkdownIt("commonmark").enable("table").parse(f"{before}word")]
    tokens = MarkdownIt("commonmark").enable("table").parse(f"{before}{escaped(text)}")
    assert [token.type for token in tokens] == plain
    assert "".join(one.content for token in tokens for one in token.children or []).endswith(text)


@pytest.mark.parametrize("text", [EVIL, "a\nb", "a\r\n2. b", "`", "a``b\u2028c", "\n"])
def test_code_stays_in_its_span(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"1. {code(text)}\n2. `end`")
    spans = [child for token in tokens for child in token.children or []]
    assert [one.type for one in spans] == ["code_inline"] * len(spans)
    assert [one.content.strip() for one in spans] == [*filter(None, [" ".join(text.split())]), "end"]


def test_a_report_of_manifests_and_recipes_of_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_run, "cpu_count", lambda: 1)
    (tmp_path / "secret.csv").write_text("TOPSECRET")
    facts = {
        "command": EVIL, "commit": "](https", "device": EVIL, "end": EVIL, "start": EVIL, "dirty": True,
        "versions": {EVIL: EVIL}, "machine": {"processor": EVIL}, "mechanism": EVIL,
        "overrides": [f"train.lr={EVIL}"],
    }  # fmt: skip
    recipe = {"data": {"name": EVIL}, "attention": {"name": EVIL, EVIL: EVIL}}
    accuracies = {"a/softmax": (80.0, 81.0), "a/rpc": (82.0, 83.0)}
    write_all(tmp_path / "results", accuracies, **facts, recipe=recipe)
    found = find_sources([], tmp_path / "results")
    markdown, page = report(found, tmp_path / "out" / "report", title=EVIL, figures=False)
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown.read_text())
    children = [child for token in tokens for child in token.children or []]
    links = {str(one.attrGet("href")) for one in children if one.type == "link_open"}
    assert all(one.startswith("tables/") for one in links)
    assert not [one for one in children if one.type in ("image", "html_inline")]
    text = page.read_text()
    checked = Checked(text)
    assert all(address.startswith(("data:", "#")) for address in checked.addresses)
    assert "script" not in checked.tags
    assert "Heading" not in {token.content for token in tokens if token.type == "inline"}
    assert EVIL.partition("\n")[0] in checked.text


def test_only_what_lies_in_the_report_s_folders_is_put_inside(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "report"
    for name in ("tables", "figures", "tables_of_others"):
        (folder / name).mkdir(parents=True)
    (tmp_path / "secret.csv").write_text("TOPSECRET")
    (folder / "beside.csv").write_text("BESIDE")
    (folder / "tables_of_others" / "a.csv").write_text("OTHERS")
    (folder / "tables" / "link.csv").symlink_to(tmp_path / "secret.csv")
    (folder / "tables" / "own.csv").write_text("x\n1\n")
    addresses = (
        "../../secret.csv", "tables/../../../secret.csv", f"{tmp_path}/secret.csv", "beside.csv", "tables/link.csv",
        "tables_of_others/a.csv", "tables/none.csv", "https://example.org/tables/own.csv", "//example.org/x.png",
        "tables/%2e%2e/%2e%2e/%2e%2e/secret.csv",
    )  # fmt: skip
    text = "\n\n".join(f"[a]({one}) ![b]({one})" for one in addresses)
    checked = Checked(html.render(f"{text}\n\n[own](tables/own.csv)", folder))
    inside = [one for one in checked.addresses if one.startswith("data:text")]
    assert inside == ["data:text/csv;base64,eAoxCg=="]
    assert {one for one in checked.addresses if not one.startswith("data:")} == {"#"}


def test_a_browser_is_told_to_load_nothing(tmp_path: Path) -> None:
    text = html.render(as_markdown(Page("Title", ["a"], [])), tmp_path)
    policy = text.partition('http-equiv="Content-Security-Policy" content="')[2].partition('"')[0]
    rules = dict(one.strip().split(" ", 1) for one in policy.replace("&#39;", "'").split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert set(rules) <= {"default-src", "img-src", "style-src", "base-uri", "form-action"}
    assert text.index("Content-Security-Policy") < text.index("<style>")


FORMULAS = ("=1+1", "+cmd|' /C calc'!A0", "-2+3+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", '=HYPERLINK("x")', "- a")
HARMLESS = ("a=1", "", "−0.4 … +2.0", "+0.3", "-0.3 ± 0.1", "-1e-5", "1.0 ± 0.5", "rpc attention.iterations=6", "a\tb")


def test_text_in_tables_for_spreadsheets_is_no_formula() -> None:
    cells = [[one, "1.0"] for one in (*FORMULAS, *HARMLESS)]
    rows = list(csv.reader(StringIO(Table("t", "", ["=name", "top-1"], cells).to_csv())))
    assert rows[0] == ["'=name", "top-1"]
    assert [row[0] for row in rows[1:]] == [*(f"'{one}" for one in FORMULAS), *HARMLESS]
    numbers = pd.DataFrame({"x": [-1.0, 2.5], "y": [-1, 3], "z": [True, False]})
    pd.testing.assert_frame_equal(defused(numbers), numbers)
