"""Does Principal Attention Pursuit converge, and is its S sparse? (RPC-Attention paper, Algorithm 1)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures import style
from kattn_cli.figures.lines import audit_caption, mean_lines, whole_ticks
from kattn_cli.figures.style import Palette, from_zero, grid, legend_above, save

CONVENTIONS = ("paper", "reference", "textbook")
METHODS = ("paper", "reference", "textbook", "pcp")
TITLES = {"pcp": "PCP (yardstick)"}
QUANTITIES = ("precision", "recall")


def draw_pursuit(traces: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw the residual (above) and the share of S that is not 0 (below) by iteration, one column a convention."""
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
                    own, color="0.45", linestyle=":", linewidth=style.look.thin, label="the recipe's iterations"
                )
            one.set_xlabel("iteration")
    axes[0, 0].set_ylabel("residual\n‖k − L − S‖ / ‖k‖")
    from_zero(axes[0, 0])
    axes[1, 0].set(ylabel="non-zero in S (%)", ylim=(-2, 102))
    legend_above(figure, *axes[0])
    return [save(figure, folder, "pursuit", audit_caption(traces, "mean over layers and heads; residual 0: converged"))]


def draw_planted(recoveries: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw precision (above) and recall (below) over the outliers' size, one column a method; chance is finely dotted.

    Several numbers of iterations of one label and method, or several planted shares, are lines of their own.
    """
    methods = [one for one in METHODS if one in set(recoveries["method"])]
    figure, axes = grid(2, len(methods), sharey="all", height=2.6)
    palette = Palette()
    sizes = recoveries["size"]
    for column, method in zip(axes.T, methods, strict=True):
        rows = with_series(recoveries[recoveries["method"] == method], recoveries["share"].nunique() > 1)
        for one, quantity in zip(column, QUANTITIES, strict=True):
            mean_lines(one, rows, "size", quantity, palette)
            one.set_xlabel("outliers (mean |k|)")
            one.set_xscale("log", base=2)
            one.set_xlim(sizes.min() / 1.15, 1.15 * sizes.max())
            whole_ticks(one, sizes)
        for share in recoveries["share"].unique():
            name = "chance" if method == methods[-1] else None
            column[0].axhline(share, color="0.3", linestyle=(0, (1, 2)), linewidth=style.look.thin, label=name)
        column[0].set_title(TITLES.get(method, method))
    for one, quantity in zip(axes[:, 0], QUANTITIES, strict=True):
        one.set(ylabel=quantity, ylim=(-0.03, 1.03))
    legend_above(figure, *axes[0])
    shares = ", ".join(f"{100 * share:g} %" for share in sorted(recoveries["share"].unique()))
    caption = audit_caption(
        recoveries,
        f"{shares} of the keys' entries planted",
        "mean over layers and heads",
        "precision has gaps where nothing was found",
    )
    return [save(figure, folder, "planted", caption)]


def with_series(rows: pd.DataFrame, name_share: bool) -> pd.DataFrame:
    """Return one method's rows, labels naming iterations where a label has several, and the planted share."""
    counts = rows.groupby("label")["iterations"].transform("nunique")
    iterations = (", " + rows["iterations"].astype(str) + " iterations").where(counts > 1, "")
    shares = rows["share"].map(lambda share: f", {100 * share:g} % planted") if name_share else ""
    return rows.assign(label=rows["label"] + iterations + shares)
