"""A fourth paper is one folder and one line, a claim one function and one line; everything then shows them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pytest
from command_line import kattn
from papers.claim_tables import run_with
from papers.nimble import PAPER

from kattn_cli.commands.report import run as report_run
from kattn_cli.commands.report.run import report
from kattn_cli.commands.report.sources import find_sources
from kattn_cli.papers import PAPERS
from kattn_cli.papers.claim import Claim, Finding, against_bound
from kattn_cli.papers.costs import beside_the_papers
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.page import page
from kattn_cli.papers.rpc import claims as of_rpc
from kattn_cli.papers.verdict import findings
from kattn_cli.runs.run import Run

SENTENCE = "TSSA is nimbler than softmax."


@pytest.fixture(autouse=True)
def _a_fourth_paper(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PAPERS, "nimble", PAPER)
    monkeypatch.setattr(report_run, "cpu_count", lambda: 1)


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    return [
        run_with(
            tmp_path / "results",
            f"x/{name}",
            seed,
            {
                "eval": [{"split": "test", "severity": 0, "images": 9, "top1": top1 + scale * seed, "top5": 99.0}],
                "metrics": [
                    {"epoch": epoch, "step": epoch, "split": split, "loss": 1.0, "top1": 80.0, "seconds": epoch}
                    for epoch in (1, 2)
                    for split in ("train", "validation")
                ],
            },
            attention={"name": name},
            device="cpu",
        )
        for name, top1, scale in (("softmax", 80.0, 1.0), ("tssa", 82.99, 1.01))
        for seed in range(3)
    ]


def test_the_report_has_its_part(runs: Sequence[Run], tmp_path: Path) -> None:
    results = tmp_path / "results"
    report(find_sources([str(results)], results), tmp_path / "out", papers=[PAPER], figures=False)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "## The Nimble paper" in text
    assert "Nimble paper, Table 1: digits" in text
    assert "**Claims of the Nimble paper:** better 1." in text
    numbers = pd.read_csv(tmp_path / "out" / "tables" / "nimble-numbers.csv").set_index("label")
    assert numbers["paper"].to_dict() == {"softmax": 90.0, "tssa": 92.5}


def test_plot_lays_ours_beside_it(runs: Sequence[Run], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    where = ("--results", tmp_path / "results", "--output", tmp_path, "--format", "svg")
    said = kattn(capfd, "plot", *(str(run.folder) for run in runs), "--paper", "nimble", *where)
    assert said.code == 0, said.err
    line = "| tssa | 84.0 ± 2.5 | 92.5 | +3.0 ± 0.0 (better) | +2.5 | 3 |"
    assert line in (tmp_path / "paper_nimble.md").read_text()


def test_reproduce_lists_its_plan(capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "reproduce", "--list", "nimble")
    assert said.out.splitlines() == ["nimble/table1: Digits", "  --small  0.1 h of two cores    digits (shipped)"]


def test_the_audit_s_page_judges_its_claim(runs: Sequence[Run]) -> None:
    text = page(findings(Evidence(runs)), ["robustness.png"], "kattn audit")
    assert "## Nimble: Attention Without Regret" in text
    assert f"| {SENTENCE} | Table 1 | **better** | 1 | tssa 3 \\[2.98, 3.02\\] | 2.5 |" in text


def test_its_costs_stand_beside_ours() -> None:
    row = {"version": "fast", "pass": "forward", "dtype": "float32", "batch": 1, "n": 4, "status": "ok"}
    row |= {"held_mib": 1.0, "peak_mib": 1.0}
    costs = [{**row, "model": f"toy/{one}", "milliseconds_per_sample": 1.0} for one in ("softmax", "tssa")]
    assert beside_the_papers(pd.DataFrame(costs))["published_time_ratio"].tolist() == [1.0, 0.5]


def test_a_claim_is_a_function_and_a_line(runs: Sequence[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    def settled(evidence: Evidence) -> list[Finding]:
        return [against_bound(label, {0: 1.0, 1: 1.1, 2: 0.9}, above=0) for label, _ in evidence.labels("eval")]

    claim = Claim("§9", "All is settled.", "1; holds above 0", "kattn eval quickstart", settled)
    monkeypatch.setattr(of_rpc, "CLAIMS", [*of_rpc.CLAIMS, claim])
    text = page(findings(Evidence(runs)), [], "kattn audit")
    assert "| All is settled. | §9 | **holds** | 2 | softmax 1, tssa 1 |  |" in text
