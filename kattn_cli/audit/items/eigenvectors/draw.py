"""Are the learned values eigenvectors of the keys' Gram matrix? (RPC-Attention paper, Figures 2 and 5)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures.lines import FILLED, HOLLOW, audit_caption, mean_lines, means_caption, name_x, views
from kattn_cli.figures.style import Palette, from_zero, grid, legend_above, save


def draw_eigenvectors(checks: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw ``|γᵢ − γⱼ|`` of learned and of random values, on one scale with the eigenvalues; and the residual."""
    along = views(checks)
    figure, axes = grid(len(along), 3)
    palette = Palette()
    for row, (x, rows) in zip(axes, along, strict=True):
        learned, random = (rows[rows["values"] == kind] for kind in ("learned", "random"))
        differences, eigenvalues, residual = row
        eigenvalues.sharey(differences)
        _both(differences, learned, random, x, "difference_mean", palette, log=True)
        differences.set(yscale="log", ylabel="mean |γᵢ − γⱼ|", title=f"{FILLED} learned   {HOLLOW} random values")
        mean_lines(eigenvalues, learned, x, "eigenvalue_max", palette, log=True)
        mean_lines(eigenvalues, learned, x, "eigenvalue_mean", palette, log=True, hollow=True)
        eigenvalues.set(ylabel="eigenvalue of K̃/N", title=f"{FILLED} largest   {HOLLOW} mean")
        _both(residual, learned, random, x, "residual", palette)
        residual.set(ylabel="relative residual", title=f"{FILLED} learned   {HOLLOW} random values")
        from_zero(residual)
        for one in row:
            name_x(one, x)
    legend_above(figure, axes[0, 0])
    caption = audit_caption(
        checks,
        means_caption(checks),
        "left and middle: one scale, geometric means over seeds; residual: 0 for an eigenvector",
    )
    return [save(figure, folder, "eigenvectors", caption)]


def _both(
    axes: Axes, learned: pd.DataFrame, random: pd.DataFrame, x: str, column: str, palette: Palette, log: bool = False
) -> None:
    mean_lines(axes, learned, x, column, palette, log=log)
    if not random.empty:
        mean_lines(axes, random, x, column, palette, log=log, hollow=True)
