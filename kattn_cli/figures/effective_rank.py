"""Effective rank of attention over layers and over training (Primal-Attention paper, Figure 1d)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures.lines import audit_caption, mean_lines
from kattn_cli.figures.style import Palette, from_zero, leftmost, legend_above, panels, save
from kattn_cli.tables.frames import chosen_weights, shared_epochs

QUANTITIES = {"effective_rank": "effective rank", "rank_90": "rank for 90 % of Σσ²"}


def draw_effective_rank(ranks: pd.DataFrame, folder: Path) -> Path:
    """Over layers, each run with its chosen weights: effective rank, and how many values hold 90 % of the variance."""
    chosen, unit = _in_shares(chosen_weights(ranks))
    figure, axes_row = panels(len(QUANTITIES))
    palette = Palette()
    for axes, (column, title) in zip(axes_row, QUANTITIES.items(), strict=True):
        mean_lines(axes, chosen, "layer", column, palette)
        axes.set_xlabel("layer")
        axes.set_ylabel(f"{title}{unit}")
        from_zero(axes)
    legend_above(figure, axes_row[0])
    return save(figure, folder, "effective_rank", _caption(chosen))


def draw_spectrum_epochs(ranks: pd.DataFrame, folder: Path) -> Path:
    """Effective rank over the epochs that were kept, one panel a layer."""
    shares, unit = _in_shares(shared_epochs(ranks))
    layers = sorted(shares["layer"].unique())
    figure, axes_row = panels(len(layers), sharey=True)
    palette = Palette()
    for axes, layer in zip(axes_row, layers, strict=True):
        _over_epochs(axes, shares[shares["layer"] == layer], palette)
        axes.set_title(f"layer {layer}")
    from_zero(axes_row[0])
    for axes in leftmost(axes_row):
        axes.set_ylabel(f"effective rank{unit}")
    legend_above(figure, *axes_row)
    return save(figure, folder, "spectrum_epochs", _caption(shares))


def _over_epochs(axes: Axes, rows: pd.DataFrame, palette: Palette) -> None:
    mean_lines(axes, rows, "epoch", "effective_rank", palette)
    axes.set_xlabel("epoch")


def _in_shares(ranks: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Ranks in % of how many values there are, where that differs; with the unit to write behind an axis's name."""
    if ranks["of"].nunique() == 1:
        return ranks, f"\n(of {ranks['of'].iloc[0]:.0f})"
    shares = {column: 100 * ranks[column] / ranks["of"] for column in QUANTITIES}
    return ranks.assign(**shares), "\n(% of their number)"


def _caption(ranks: pd.DataFrame) -> str:
    return audit_caption(ranks, "effective rank: exp of the entropy of σ/Σσ", "mean over heads")
