"""``kattn plot`` as a user types it: formats, style, tables of costs."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import kattn

from kattn_cli.figures import looks
from kattn_cli.results import write_rows


@pytest.fixture(autouse=True)
def _usual_look() -> None:
    """As a fresh process has it."""
    looks.use()


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
