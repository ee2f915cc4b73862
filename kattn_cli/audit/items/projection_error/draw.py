"""The projection error J of kernel PCA and its two terms (RPC-Attention paper, eq. 13 and Figure 1)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures import style
from kattn_cli.figures.lines import FILLED, HOLLOW, audit_caption, mean_lines, means_caption, name_x, views
from kattn_cli.figures.style import Palette, grid, legend_above, save

LINEAR, WIDE = 10, 1000
"""Where J goes beyond the second, its axis is logarithmic beyond the first."""


def draw_projection_error(errors: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw, of the paper convention, both terms on a logarithmic axis and J on a linear one; of the reference, ln J.

    ln J is the authors' number: the logarithm of each layer's J, averaged over layers, with gaps where a layer's J is
    not positive.
    """
    conventions = set(errors["convention"])
    panels = [
        *([_terms, _difference] if "paper" in conventions else []),
        *([_logarithm] if "reference" in conventions else []),
    ]
    along = views(errors)
    figure, axes = grid(len(along), len(panels))
    palette = Palette()
    for row, (x, rows) in zip(axes, along, strict=True):
        for one, panel in zip(row, panels, strict=True):
            panel(one, rows, x, palette)
            name_x(one, x)
    legend_above(figure, *axes.flat)
    caption = audit_caption(
        errors,
        means_caption(errors),
        "terms: geometric mean over seeds",
        "ln J has gaps where J ≤ 0 in a layer of any seed",
    )
    return [save(figure, folder, "projection_error", caption)]


def _terms(axes: Axes, rows: pd.DataFrame, x: str, palette: Palette) -> None:
    paper = rows[rows["convention"] == "paper"]
    mean_lines(axes, paper, x, "feature_norm", palette, log=True)
    mean_lines(axes, paper, x, "projection_norm", palette, log=True, hollow=True)
    axes.set_yscale("log")
    axes.set_ylabel("squared norm")
    axes.set_title(f"paper: {FILLED} ‖φ(q)‖²   {HOLLOW} ‖h‖²")


def _difference(axes: Axes, rows: pd.DataFrame, x: str, palette: Palette) -> None:
    axes.axhline(0, color="0.6", linewidth=style.look.thin)
    paper = rows[rows["convention"] == "paper"]
    mean_lines(axes, paper, x, "j_proj", palette)
    wide = paper["j_proj"].abs().max() > WIDE
    if wide:
        axes.set_yscale("symlog", linthresh=LINEAR)
    axes.set_ylabel(f"J (linear within ±{LINEAR})" if wide else "J")
    axes.set_title("paper: J = ‖φ(q)‖² − ‖h‖²")


def _logarithm(axes: Axes, rows: pd.DataFrame, x: str, palette: Palette) -> None:
    mean_lines(axes, log_j(rows[rows["convention"] == "reference"], x), x, "ln_j", palette)
    axes.set_ylabel("ln J")
    axes.set_title("reference: ln J")


def log_j(rows: pd.DataFrame, x: str) -> pd.DataFrame:
    """Return ``ln_j`` of each run and ``x``: of the mean over heads, averaged over layers; nan where one has J ≤ 0."""
    run: list[str] = ["label", "mechanism", "run_seed"]
    by_layer = rows.groupby([*run, "epoch", "layer"], as_index=False)["j_proj"].mean()
    by_layer["ln_j"] = np.log(by_layer["j_proj"].where(by_layer["j_proj"] > 0))
    means: Any = by_layer.groupby([*run, x])["ln_j"].agg(lambda values: values.mean(skipna=False))
    return means.reset_index()
