"""``kattn report``: what it finds, writes, replaces and refuses."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest
from command_line import kattn
from files_opened import files_opened
from report.runs import write_accuracy, write_all
from sequence_runs import write_language

from kattn_cli.commands.report import run as report_run
from kattn_cli.commands.report.run import report
from kattn_cli.commands.report.sources import Sources, find_sources
from kattn_cli.errors import RunError
from kattn_cli.papers import PAPERS
from kattn_cli.runs.csv_rows import write_rows

EPOCH = {"split": "train", "epoch": 1, "step": 5, "loss": 0.5}
ACCURACIES = {"a/softmax": (80.0, 81.0, 79.0, 80.0), "a/tssa": (90.0, 91.0, 89.5, 90.0)}


@pytest.fixture(autouse=True)
def _here(monkeypatch: pytest.MonkeyPatch) -> None:
    """No processes for a figure or two."""
    monkeypatch.setattr(report_run, "cpu_count", lambda: 1)


def found(*arguments: Path | str, results: Path) -> Sources:
    return find_sources([str(one) for one in arguments], results)


def benchmark_table(path: Path) -> Path:
    row = {
        "item": "tssa", "says": "faster", "quantity": "time", "ours": "tssa", "against": "slow", "value": 2.0,
        "low": 1.5, "high": 2.5, "bound": 1.0, "relation": "at least", "holds": "yes", "device": "cpu",
        "dtype": "float32",
    }  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    write_rows(path, [row])
    return path


def test_a_folder_is_all_runs_and_tables_of_costs_below_it(tmp_path: Path) -> None:
    write_all(tmp_path / "r", ACCURACIES)
    benchmark_table(tmp_path / "r" / "deep" / "cpu.csv")
    benchmark_table(tmp_path / "r" / "deep" / "cpu.ratios.csv")
    (tmp_path / "r" / "deep" / "other.csv").write_text("a,b\n1,2\n")
    sources = found(tmp_path / "r", results=tmp_path)
    assert [(run.name, run.seed) for run in sources.runs] == [(name, seed) for name in ACCURACIES for seed in range(4)]
    assert [(one.name, one.kind) for one in sources.tables] == [("deep/cpu", "benchmark")]
    assert [run.seed for run in found("a/tssa", "a/tssa/2", results=tmp_path / "r").runs] == [0, 1, 2, 3]
    assert len(found(results=tmp_path / "r").runs) == 8


def test_a_report_opens_each_file_of_its_runs_once(tmp_path: Path) -> None:
    runs = write_all(tmp_path / "r", {"a/softmax": [80.0] * 10, "a/tssa": [90.0] * 10}, forward_flops_per_sample=1)
    for run in runs:
        attack = {"attack": "pgd", "epsilon": 4 / 255, "clean_top1": 80.0, "top1": 40.0, "images": 200}
        write_rows(run.folder / "attacks.csv", [attack])
        write_rows(run.folder / "metrics.csv", [{**EPOCH, "images_per_second": 9.0}])
    with files_opened(tmp_path / "r") as opened:
        report(found(tmp_path / "r", results=tmp_path), tmp_path / "page", figures=False)
    names = ("manifest.json", "recipe.yaml", "metrics.csv", "eval.csv", "attacks.csv")
    folders = [run.folder.relative_to(tmp_path / "r") for run in runs]
    assert opened == {folder / name: 1 for folder in folders for name in names}


def test_unfinished_unreadable_and_older_runs_are_named_and_left_out(tmp_path: Path) -> None:
    write_accuracy(tmp_path, "a/softmax", 0, 80.0)
    failed = write_accuracy(tmp_path, "a/tssa", 0, 80.0, status="failed")
    newer = write_accuracy(tmp_path, "a/softmax", 0, 90.0, start="2026-02-01")
    torn = write_accuracy(tmp_path, "a/xca", 0, 80.0)
    (torn.folder / "manifest.json").write_text("{")
    wrong = write_accuracy(tmp_path, "a/rpc", 0, 80.0)
    (wrong.folder / "recipe.yaml").write_text("a: [")
    sources = found(tmp_path, results=tmp_path)
    assert [run.folder for run in sources.runs] == [newer.folder]
    assert sorted(sources.left_out) == sorted(
        [
            f"{failed.folder} (failed)",
            f"{torn.folder} (unreadable)",
            f"{wrong.folder} (its recipe cannot be read)",
            "1 of which a newer run has the same label and seed",
        ]
    )


def test_faults_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"No run under .* yet\. Make one with: kattn train quickstart/softmax"):
        found(results=tmp_path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="empty: has no run and no table of costs below it"):
        found(tmp_path / "empty", results=tmp_path)
    write_accuracy(tmp_path, "a/softmax", 0, 80.0, status="interrupted")
    with pytest.raises(RunError, match=r"no finished run is among these; left out: .*a/softmax/0 \(interrupted\)"):
        found(tmp_path, results=tmp_path)
    with pytest.raises(RunError, match='did you mean "a/softmax"'):
        found("a/sofmax", results=tmp_path)
    with pytest.raises(RunError, match="No such file"):
        found(tmp_path / "absent.csv", results=tmp_path)
    bare = write_accuracy(tmp_path, "b/softmax", 0, 80.0)
    (bare.folder / "eval.csv").unlink()
    with pytest.raises(RunError, match="nothing was measured in these runs; kattn eval and kattn attack measure them"):
        report(found("b/softmax", results=tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_pages_and_tables_are_written_and_say_the_same_again(tmp_path: Path) -> None:
    write_all(tmp_path / "r", ACCURACIES)
    output = tmp_path / "r" / "report"

    def written() -> dict[str, bytes]:
        pages = report(found(tmp_path / "r", results=tmp_path), output, title="Mine")
        assert pages == [output / "report.md", output / "report.html"]
        return {str(path.relative_to(output)): path.read_bytes() for path in output.rglob("*") if path.is_file()}

    first = written()
    assert written() == first
    assert first["report.md"].startswith(b"# Mine\n")
    assert b"| tssa | **90.1 \xc2\xb1 1.0** | 4 |" in first["report.md"]
    named = set(re.findall(r"\]\(((?:tables|figures)/[^)]+)\)", first["report.md"].decode()))
    assert named == set(first) - {"report.md", "report.html"}
    results = pd.read_csv(output / "tables" / "a-digits-results.csv")
    assert results.set_index("label")["mean"].to_dict() == {"softmax": 80.0, "tssa": 90.125}
    assert (output / "tables" / "a-digits-tests.tex").read_text().count(r"\\") == 2


def test_what_an_earlier_page_named_goes_and_other_files_stay(tmp_path: Path) -> None:
    write_all(tmp_path / "r", ACCURACIES)
    benchmark_table(tmp_path / "r" / "cpu.csv")
    output = tmp_path / "out"
    report(found(tmp_path / "r", results=tmp_path), output)
    (output / "tables" / "mine.csv").write_text("kept")
    assert (output / "tables" / "cpu-benchmark.csv").is_file()
    assert (output / "figures" / "cpu" / "cpu.png").is_file()
    (tmp_path / "r" / "cpu.csv").unlink()
    report(found(tmp_path / "r", results=tmp_path), output, figures=False)
    assert not list(output.rglob("cpu*.*"))
    assert (output / "tables" / "mine.csv").is_file()


def test_a_table_of_costs_alone(tmp_path: Path) -> None:
    sources = found(benchmark_table(tmp_path / "cpu.csv"), results=tmp_path)
    report(sources, tmp_path / "out", figures=False)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| tssa: faster | 2 | \\[1.5, 2.5\\] | ≥ 1 | yes |" in text
    assert "## Costs: cpu" in text


def test_a_single_run_and_a_paper(tmp_path: Path) -> None:
    for name, perplexity in (("text/softmax", 5.0), ("text/rpc", 5.5)):
        write_language(tmp_path / "r", name, 0, perplexity, parameters=7, end="2026-01-01T10:00:00")
    report(found(tmp_path / "r", results=tmp_path), tmp_path / "out", papers=[PAPERS["rpc"]], figures=False)
    text = (tmp_path / "out" / "report.md").read_text()
    assert "1 seed is too few to tell two mechanisms apart; it takes three." in text
    assert "## The RPC-Attention paper" in text
    assert "| rpc | 5.50 |" in text
    numbers = pd.read_csv(tmp_path / "out" / "tables" / "rpc-numbers.csv")
    assert set(numbers["paper_name"]) == {"rpc"}
    assert "**Claims of the RPC-Attention paper:**" in text


def test_figures_drawn_in_processes_are_those_drawn_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for one in ("one", "two"):
        benchmark_table(tmp_path / "r" / f"{one}.csv")
    sources = found(tmp_path / "r", results=tmp_path)
    report(sources, tmp_path / "here")
    monkeypatch.setattr(report_run, "cpu_count", lambda: 2)
    report(sources, tmp_path / "there")
    drawn = [[path.read_bytes() for path in sorted((tmp_path / one).rglob("*.png"))] for one in ("here", "there")]
    assert drawn[0] == drawn[1]
    assert len(drawn[0]) == 2


def test_as_it_is_typed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_all(tmp_path, {"a/softmax": (80.0, 81.0), "a/tssa": (82.0, 83.0)})
    said = kattn(capfd, "report", "a", "--no-figures", "--title", "Two", "--results", tmp_path)
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [str(tmp_path / "report" / f"report.{one}") for one in ("md", "html")]
    assert (tmp_path / "report" / "report.md").read_text(encoding="utf-8").startswith("# Two\n")
    said = kattn(capfd, "report", "b", "--results", tmp_path)
    assert (said.code, said.out) == (2, "")
    assert said.err.startswith(f"b: no such run under {tmp_path}")


def test_the_choice_of_a_test_is_gone_and_says_so(capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "report", "--test", "wilcoxon")
    assert said.code == 2
    assert "--test wilcoxon: there is one way to a verdict now, which pools the variance; leave it out" in said.err
