"""A report's figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

from kattn_cli.commands.plot.plot import draw_runs
from kattn_cli.commands.report.sources import CostTable
from kattn_cli.errors import NothingToDraw
from kattn_cli.figures.registry import draw_cost_table
from kattn_cli.figures.style import use
from kattn_cli.report.groups import Group
from kattn_cli.report.page import FIGURES, Picture

DOTS_PER_INCH = 130
"""Enough for a screen of twice the usual density, since all figures are in one page."""


def draw_group(group: Group, output: Path) -> list[Picture]:
    """Draw every figure that the runs allow, into ``<output>/figures/<group>``."""
    return _drawn(lambda folder: draw_runs(group.runs, folder), group.slug, group.name, output)


def draw_table(cost: CostTable, stem: str, output: Path) -> list[Picture]:
    """Draw a table of costs; nothing where nothing in it went well."""
    return _drawn(lambda folder: draw_cost_table(cost.kind, cost.table, folder, stem), stem, cost.name, output)


def _drawn(draw: Callable[[Path], Sequence[Path]], slug: str, name: str, output: Path) -> list[Picture]:
    use("paper", ["png"])
    try:
        with mpl.rc_context({"savefig.dpi": DOTS_PER_INCH}):
            paths = draw(output / FIGURES / slug)
    except NothingToDraw:  # its tables say so
        return []
    return [Picture(path.relative_to(output).as_posix(), f"{name}: {path.stem.replace('_', ' ')}") for path in paths]
