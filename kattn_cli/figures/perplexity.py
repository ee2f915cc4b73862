"""Perplexity of language models over the share of swapped words."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.lines import mean_lines
from kattn_cli.figures.style import Palette, legend_above, panels, save
from kattn_cli.tables.frames import seeds_caption


def draw_perplexity(table: pd.DataFrame, folder: Path) -> Path:
    """Draw a panel for each split of the runs' own corpora, a line for each label: mean over seeds and draws of words.

    Splits of which only the clean text was measured are left out where there is another.

    Args:
        table: of :func:`~kattn_cli.tables.values.own_perplexities`, with a row at least.
    """
    own = table.assign(percent=100 * table["swap_share"])
    parts = {split: rows for split in ("test", "validation") if len(rows := own[own["split"] == split])}
    swapped = {split: rows for split, rows in parts.items() if rows["percent"].max() > 0}
    drawn = swapped or dict(list(parts.items())[:1])
    figure, every = panels(len(drawn))
    palette = Palette()
    for axes, (split, rows) in zip(every, drawn.items(), strict=True):
        mean_lines(axes, rows, "percent", "perplexity", palette)
        axes.set_ylabel(f"{split} perplexity")
        axes.set_xlabel("words swapped (%)" if swapped else "clean text")
        if not swapped:
            axes.set_xticks([])
    legend_above(figure, *every)
    return save(figure, folder, "perplexity", _caption(pd.concat(drawn.values())))


def _caption(rows: pd.DataFrame) -> str:
    windows = sorted({(int(window), int(stride)) for window, stride in rows[["window", "stride"]].to_numpy()})
    measured = [f"windows of {window:,} tokens, stride {stride:,}" for window, stride in windows]
    draws = rows.loc[rows["percent"] > 0, "swap_seed"].nunique()
    drawn = [f"mean over {draws} draws of the words"] if draws > 1 else []
    several = rows.groupby("label")["run_seed"].nunique().max() > 1
    intervals = ["95 % intervals over seeds (Student-t)"] if several else []
    return "; ".join([seeds_caption(rows), *measured, *drawn, *intervals])
