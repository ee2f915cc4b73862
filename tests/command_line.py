"""``kattn`` as a user types it, in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple

import pytest


class Said(NamedTuple):
    """Exit code, standard output, standard error."""

    code: int
    out: str
    err: str


def kattn(capfd: pytest.CaptureFixture[str], *arguments: str | Path | int) -> Said:
    """Run one command."""
    from kattn_cli import cli

    before = sys.argv
    sys.argv = ["kattn", *map(str, arguments)]
    try:
        cli.main()
        code: int | str | None = 0
    except SystemExit as leaving:
        code = leaving.code
    finally:
        sys.argv = before
    captured = capfd.readouterr()
    return Said(int(code or 0), captured.out, captured.err)
