"""Are the subspaces that TSSA learns more incoherent than random ones?"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.lines import audit_caption, grey_band, mean_lines, means_caption, name_x, views
from kattn_cli.figures.style import Palette, from_zero, grid, legend_above, save


def draw_coherence(coherences: pd.DataFrame, folder: Path) -> Path:
    """Mean |cosine| between directions of different heads, with the null of random ones in grey; and the largest."""
    along = views(coherences)
    figure, axes = grid(len(along), 2)
    palette = Palette()
    for (mean, largest), (x, rows) in zip(axes, along, strict=True):
        mean_lines(mean, rows, x, "coherence", palette)
        grey_band(mean, rows, x, "null_mean", "null_low", "null_high", "random: mean, 95 %")
        mean.set_ylabel("mean |cosine|")
        from_zero(mean)
        mean_lines(largest, rows, x, "largest", palette)
        largest.set(ylabel="largest |cosine|", ylim=(0, 1.02))
        for one in (mean, largest):
            name_x(one, x)
    legend_above(figure, axes[0, 0])
    caption = audit_caption(coherences, "between the directions of different heads", means_caption(coherences))
    return save(figure, folder, "coherence", caption)
