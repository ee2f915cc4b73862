"""Learned values against those of the RPC-Attention paper's Theorem 1, beside chance and published bounds."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures import style
from kattn_cli.figures.lines import audit_caption, grey_band, mean_lines, means_caption, name_x, views
from kattn_cli.figures.style import Palette, from_zero, grid, legend_above, save

MEASURES = {"cosine": "cosine\n(best assignment)", "linear_cka": "linear CKA", "kernel_cka": "kernel CKA"}


def draw_alignment(alignments: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw a panel a measure: each label, the null of permuted tokens in grey, the published bound dashed."""
    measures = [measure for measure in MEASURES if measure in set(alignments["measure"])]
    along = views(alignments)
    figure, axes = grid(len(along), len(measures), sharey="row")
    palette = Palette()
    for row, (x, rows) in zip(axes, along, strict=True):
        for one, measure in zip(row, measures, strict=True):
            part = rows[rows["measure"] == measure]
            mean_lines(one, part, x, "value", palette)
            grey_band(one, part, x, "null_mean", "null_mean", "null_high", "null: mean to 95 %")
            bound = part["published"].iloc[0]
            one.axhline(
                bound, color="0.3", linestyle=(0, (4, 3)), linewidth=style.look.thin, label="published upper bound"
            )
            one.set_ylabel(MEASURES[measure])
            name_x(one, x)
        from_zero(row[0])
    legend_above(figure, axes[0, 0])
    caption = audit_caption(
        alignments,
        means_caption(alignments),
        "null: permuted tokens, the widest of all labels; bound: arXiv 2505.07908",
    )
    return [save(figure, folder, "alignment", caption)]
