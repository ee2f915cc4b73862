"""Differences with their intervals beside the margins within which they do not matter."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures import style
from kattn_cli.figures.style import grid, save

COLOURS = {True: "#0072B2", False: "#777777"}
"""Of primary comparisons, and of all others."""


def draw_effects(verdicts: pd.DataFrame, level: float, folder: Path) -> Path:
    """Draw a panel for each measure: a point and an interval for each comparison, the margin as a band.

    Args:
        verdicts: ``verdicts.csv`` of a study.
        level: of the tests; intervals are of 1 − level.
    """
    measures = list(dict.fromkeys(verdicts["measure"]))
    pairs = list(dict.fromkeys(zip(verdicts["first"], verdicts["second"], strict=True)))
    figure, axes = grid(1, len(measures), 1.1 + 0.32 * len(pairs))
    for place, (panel, measure) in enumerate(zip(axes[0], measures, strict=True)):
        rows = verdicts[verdicts["measure"] == measure]
        margin = rows["margin"].iloc[0]
        panel.axvspan(-margin, margin, color="#999999", alpha=0.15, linewidth=0)
        panel.axvline(0, color="0.4", linewidth=style.look.thin)
        for _, row in rows.iterrows():
            at = pairs.index((row["first"], row["second"]))
            colour = COLOURS[bool(row["primary"])]
            panel.plot([row["low"], row["high"]], [at, at], color=colour)
            panel.plot([row["difference"]], [at], "o", color=colour)
            if pd.notna(row["published"]):
                panel.plot([row["published"]], [at], marker="D", color="#D55E00", markerfacecolor="white", linestyle="")
        panel.set_ylim(len(pairs) - 0.5, -0.5)
        panel.set_yticks(range(len(pairs)), [f"{first} − {second}" for first, second in pairs] if not place else [])
        panel.set_xlabel(f"{measure} ({rows['unit'].iloc[0]})")
        panel.grid(axis="y", visible=False)
    least, most = verdicts["seeds"].min(), verdicts["seeds"].max()
    seeds = f"{most} seeds" if least == most else f"{least} to {most} seeds"
    caption = (
        f"First arm less second, {100 * (1 - level):.0f} % intervals, {seeds}; blue: primary; grey band: the margin"
    )
    if verdicts["published"].notna().any():
        caption += "; diamond: what the paper prints"
    return save(figure, folder, "effects", caption)
