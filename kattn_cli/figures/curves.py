"""Training curves: loss and accuracy over epochs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.frames import over_seeds, seeds_caption
from kattn_cli.figures.style import Palette, band, integer_ticks, legend_above, panels, save


def draw_curves(metrics: pd.DataFrame, folder: Path) -> Path:
    """Training loss and validation accuracy of each label, mean and 95 % interval over seeds."""
    figure, (left, right) = panels(2)
    palette = Palette()
    training = metrics["split"] == "train"
    for axes, rows, column in ((left, metrics[training], "loss"), (right, metrics[~training], "top1")):
        chosen = over_seeds(rows, ("label", "mechanism", "epoch"), column)
        for (label, mechanism), part in chosen.groupby(["label", "mechanism"]):
            line = palette.line(str(mechanism), str(label))
            axes.plot(part["epoch"], part["mean"], label=label, **line)
            band(axes, part["epoch"], part["low"], part["high"], line["color"], metrics["label"].nunique())
        axes.set_xlabel("epoch")
        integer_ticks(axes)
    left.set_ylabel("training loss (nats)")
    right.set_ylabel(f"{' and '.join(sorted(metrics[~training]['split'].unique()))} top-1 (%)")
    right.set_ylim(max(0.0, right.get_ylim()[0]), 101)
    legend_above(figure, left)
    return save(figure, folder, "curves", f"{seeds_caption(metrics)}; bands: 95 % over seeds")
