"""Primal-Attention's objective over training, and how far its scores are from solving the kernel SVD."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.lines import FILLED, HOLLOW, audit_caption, grey_line, mean_lines, means_caption, name_x, views
from kattn_cli.figures.style import Palette, grid, legend_above, log_if_wide, save


def draw_duality(gaps: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw ``|J|`` in each run's own convention, the dual equations' residuals, the overlap with singular vectors."""
    data = gaps.assign(size=gaps["objective"].abs())
    conventions = f" ({' and '.join(sorted(gaps['convention'].unique()))})" if "convention" in gaps else ""
    along = views(data)
    figure, axes = grid(len(along), 3)
    palette = Palette()
    for row, (x, rows) in zip(axes, along, strict=True):
        objective, residual, overlap = row
        mean_lines(objective, rows, x, "size", palette)
        log_if_wide(objective, rows["size"])
        objective.set_ylabel(f"|J|{conventions}")
        for one, column in ((residual, "residual"), (overlap, "overlap")):
            mean_lines(one, rows, x, f"{column}_e", palette)
            if rows[f"{column}_r"].notna().any():
                mean_lines(one, rows, x, f"{column}_r", palette, hollow=True)
            one.set_title(f"{FILLED} e   {HOLLOW} r")
        if "overlap_chance" in rows:
            grey_line(overlap, rows.groupby(x)["overlap_chance"].mean(), "overlap by chance")
        log_if_wide(residual, pd.concat([rows["residual_e"], rows["residual_r"]]))
        residual.set(ylabel="relative residual")
        overlap.set(ylabel="overlap with\nsingular vectors", ylim=(-0.03, 1.03))
        for one in row:
            name_x(one, x)
    legend_above(figure, *axes[0])
    caption = audit_caption(gaps, means_caption(gaps), "residual 0: e = K r Λ, r = Kᵀ e Λ; overlap 1: the same space")
    return [save(figure, folder, "duality", caption)]
