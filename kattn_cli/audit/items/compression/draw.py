"""The coding rate that each layer of TSSA descends (ToST paper, eq. 4 and Figure 4a)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.lines import FILLED, HOLLOW, audit_caption, mean_lines, means_caption, name_x, views
from kattn_cli.figures.style import Palette, grid, legend_above, save

SPLITS = ("train", "validation", "test")


def draw_compression(rates: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw the rate before and after each layer, and the change by the layer's own update; one column a split."""
    splits = [split for split in SPLITS if split in set(rates["split"])]
    along = views(rates)
    figure, axes = grid(len(along) + 1, len(splits), sharey="row")
    palette = Palette()
    for row, (x, rows) in zip(axes, along, strict=False):
        for one, split in zip(row, splits, strict=True):
            part = rows[rows["split"] == split]
            mean_lines(one, part[part["stage"] == "after"], x, "rate", palette)
            mean_lines(one, part[part["stage"] == "before"], x, "rate", palette, hollow=True)
            one.set_title(f"{split}   {FILLED} after   {HOLLOW} before")
            name_x(one, x)
        row[0].set_ylabel("coding rate\n$R^{var}$ (nats)")
    changes = _changes(*along[-1])
    for one, split in zip(axes[-1], splits, strict=True):
        mean_lines(one, changes[changes["split"] == split], along[-1][0], "change", palette)
        one.axhline(0, color="0.6", zorder=0.5)
        one.set_title(f"{split}, after less before")
        name_x(one, along[-1][0])
    axes[-1, 0].set_ylabel("change of\n$R^{var}$ (nats)")
    legend_above(figure, axes[0, 0])
    caption = audit_caption(rates, "before and after attention", means_caption(rates))
    return [save(figure, folder, "compression", caption)]


def _changes(x: str, rates: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each seed, split and place on ``x``, ``change`` being the rate after less that before."""
    key = ["label", "mechanism", "run_seed", "split", x]
    wide = rates.pivot_table(index=key, columns="stage", values="rate").reset_index()
    return wide.assign(change=wide["after"] - wide["before"])
