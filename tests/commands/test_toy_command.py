"""A command costs one folder and one line: here ``kattn toy``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import kattn

import kattn_cli.commands
from kattn_cli.cli import COMMANDS

CLI = '''
"""``kattn toy``."""

from typing import Annotated

import typer

from kattn_cli.commands.options import QuietOption
from kattn_cli.errors import KattnError

EXAMPLE = "Example:  kattn toy 3"


def toy(number: Annotated[int, typer.Argument(help="What to double.")], quiet: QuietOption = False) -> None:
    """Twice a number."""
    if number < 0:
        raise KattnError(f"{number}: expected a number that is not negative")
    typer.echo(f"twice {number} is {2 * number}")
'''


@pytest.fixture(autouse=True)
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The folder, as if it lay under ``kattn_cli/commands``, and the line."""
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "cli.py").write_text(CLI)
    monkeypatch.setattr(kattn_cli.commands, "__path__", [*kattn_cli.commands.__path__, str(tmp_path)])
    for name in ("toy", "toy.cli"):
        monkeypatch.delitem(sys.modules, f"kattn_cli.commands.{name}", raising=False)
    monkeypatch.setitem(COMMANDS, "toy", "toy.cli:toy")


def test_it_runs_and_its_errors_become_exit_codes(capfd: pytest.CaptureFixture[str]) -> None:
    assert kattn(capfd, "toy", "3") == (0, "twice 3 is 6\n", "")
    assert kattn(capfd, "toy", "--", "-1") == (2, "", "-1: expected a number that is not negative\n")


def test_it_is_in_the_help(capfd: pytest.CaptureFixture[str]) -> None:
    assert "toy          Twice a number." in kattn(capfd, "--help").out
    page = kattn(capfd, "toy", "--help").out
    assert "What to double." in page
    assert "Example:  kattn toy 3" in page
