"""Does Principal Attention Pursuit converge, and is its S sparse? (RPC-Attention paper, Algorithm 1)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures import looks
from kattn_cli.figures.lines import audit_caption, mean_lines
from kattn_cli.figures.style import Palette, from_zero, grid, legend_above, save

CONVENTIONS = ("paper", "reference", "textbook")


def draw_pursuit(traces: pd.DataFrame, folder: Path) -> Path:
    """Residual (above) and share of S that is not zero (below) after each iteration, one column a convention."""
    conventions = [one for one in CONVENTIONS if one in set(traces["convention"])]
    shares = traces.assign(nonzero_percent=100 * traces["nonzero_share"])
    figure, axes = grid(2, len(conventions), sharey="row")
    palette = Palette()
    for column, convention in zip(axes.T, conventions, strict=True):
        rows = shares[shares["convention"] == convention]
        mean_lines(column[0], rows, "iteration", "residual", palette)
        mean_lines(column[1], rows, "iteration", "nonzero_percent", palette)
        column[0].set_title(convention)
        for one in column:
            for own in rows["recipe_iterations"].unique() if "recipe_iterations" in rows else ():
                one.axvline(
                    own, color="0.45", linestyle=":", linewidth=looks.look.thin, label="the recipe's iterations"
                )
            one.set_xlabel("iteration")
    axes[0, 0].set_ylabel("residual\n‖k − L − S‖ / ‖k‖")
    from_zero(axes[0, 0])
    axes[1, 0].set(ylabel="non-zero in S (%)", ylim=(-2, 102))
    legend_above(figure, *axes[0])
    return save(figure, folder, "pursuit", audit_caption(traces, "mean over layers and heads; residual 0: converged"))
