"""``kattn plot`` as a user types it: formats, style, tables of costs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from command_line import kattn
from sequence_runs import write_language

from kattn_cli.runs.csv_rows import write_rows


def complexity_table(path: Path) -> Path:
    row = {
        "attention": "softmax", "pass": "forward+backward", "device": "cpu", "dtype": "float32", "dim": 8, "heads": 2,
        "batch": 1, "forward_flops": 10, "status": "ok",
    }  # fmt: skip
    write_rows(path, [{**row, "n": n, "milliseconds": n / 7, "peak_mib": n / 9} for n in (16, 32, 64)])
    return path


def test_formats_and_style(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for style in ("paper", "slides"):
        said = kattn(
            capfd, "plot", "tiny", "--results", trained, "--output", tmp_path / style, "--style", style,
            "--format", "svg",
        )  # fmt: skip
        assert said.code == 0, said.err
        assert [path.name for path in (tmp_path / style).glob("curves.*")] == ["curves.svg"]
        assert str(tmp_path / style / "curves.svg") in said.out
    assert (tmp_path / "paper" / "curves.svg").read_text() != (tmp_path / "slides" / "curves.svg").read_text()


def test_a_table_of_costs_is_drawn_beside_itself(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "plot", complexity_table(tmp_path / "mine.csv"))
    assert said.code == 0, said.err
    assert said.out.strip() == str(tmp_path / "mine.png")
    assert (tmp_path / "mine.pdf").read_bytes().startswith(b"%PDF")


def test_unknown_format_and_absent_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "plot", complexity_table(tmp_path / "mine.csv"), "--format", "gif")
    assert said.code == 2
    assert "'gif' is not one of 'pdf', 'png', 'svg'" in said.err
    said = kattn(capfd, "plot", tmp_path / "absent.csv")
    assert (said.code, said.err) == (2, f"{tmp_path / 'absent.csv'}: cannot be read: No such file or directory\n")


def test_a_paper_s_tables_of_sequences(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    for seed in range(3):
        for name, perplexity, scale in (("symmetric", 5.501, 0.999), ("rpc", 5.25, 1.0), ("softmax", 5.0, 1.0)):
            write_language(results, f"text/{name}", seed, perplexity + scale * seed, parameters=7)
    said = kattn(capfd, "plot", "text", "--paper", "rpc", "--results", results, "--output", tmp_path, "--format", "svg")
    assert said.code == 0, said.err
    assert "Perplexity on the test set, mean ± half of the 95 % interval" in said.out
    assert "6.25 ± 2.48 (1.00)" in said.out
    assert "RPC-Attention paper, Table 3: perplexity, clean and with swapped words" in said.out
    assert "perplexity of `rpc` less that of `symmetric`: in the paper −1.10; here −0.25 (95 %" in said.out
    written = [tmp_path / f"paper_rpc.{suffix}" for suffix in ("csv", "md")]
    assert all(str(path) in said.out for path in [*written, tmp_path / "perplexity.svg"])
    assert set(pd.read_csv(written[0])["table"]) == {"table3"}
    assert "|  | rpc | 6.25 ± 2.48 | 35.26 | −0.25 ± 0.00 (better) | −1.10 |" in written[1].read_text()


def test_runs_with_none_of_a_paper_s_numbers(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "plot", "tiny", "--results", trained, "--output", tmp_path, "--paper", "primal")
    assert said.code == 2
    assert "--paper primal: the runs have none of its numbers; kattn eval" in said.err
    said = kattn(capfd, "plot", "tiny", "--results", trained, "--paper", "crate")
    assert "'crate' is not one of 'rpc', 'primal', 'tost'" in said.err
