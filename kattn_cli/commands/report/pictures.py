"""The figures of a report, below its folder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import matplotlib as mpl

from kattn_cli.commands.plot.plot import SINGLE, draw_runs
from kattn_cli.commands.report.sources import CostTable
from kattn_cli.errors import RunError
from kattn_cli.figures.complexity import draw_all
from kattn_cli.figures.looks import use
from kattn_cli.report.groups import Group
from kattn_cli.report.page import Picture

FIGURES = "figures"
DOTS_PER_INCH = 130
"""Enough for a screen of twice the usual density, since all figures are in one page."""


def draw_group(group: Group, output: Path) -> list[Picture]:
    """Every figure that the runs allow, into ``<output>/figures/<group>``."""
    return _drawn(lambda folder: draw_runs(group.runs, folder), group.slug, group.name, output)


def draw_table(cost: CostTable, stem: str, output: Path) -> list[Picture]:
    """That of a table of costs; none where nothing in it went well."""

    def draw(folder: Path) -> Sequence[Path]:
        if cost.kind != "complexity":
            return [SINGLE[cost.kind](cost.table, folder, stem)]
        return draw_all(cost.table, folder, stem) if (cost.table["status"] == "ok").any() else []

    return _drawn(draw, stem, cost.name, output)


def _drawn(draw: Callable[[Path], Sequence[Path]], slug: str, name: str, output: Path) -> list[Picture]:
    use("paper", ["png"])
    try:
        with mpl.rc_context({"savefig.dpi": DOTS_PER_INCH}):
            paths = draw(output / FIGURES / slug)
    except RunError:  # it has nothing that can be drawn, which its tables say
        return []
    return [Picture(path.relative_to(output).as_posix(), f"{name}: {path.stem.replace('_', ' ')}") for path in paths]
