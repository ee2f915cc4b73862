"""Training curves: loss and accuracy over epochs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.frames import over_seeds, seeds_caption
from kattn_cli.figures.style import Palette, band, integer_ticks, legend_above, panels, save


def draw_curves(metrics: pd.DataFrame, folder: Path, name: str = "curves") -> Path:
    """Training loss, validation loss and accuracy of each label, mean and 95 % interval over seeds."""
    figure, every = panels(3)
    palette = Palette()
    training, checked = metrics[metrics["split"] == "train"], metrics[metrics["split"] != "train"]
    split = " and ".join(sorted(checked["split"].unique()))
    drawn = (
        (training, "loss", "training loss (nats)"),
        (checked, "loss", f"{split} loss (nats)"),
        (checked, "top1", f"{split} top-1 (%)"),
    )
    for axes, (rows, column, quantity) in zip(every, drawn, strict=True):
        chosen = over_seeds(rows, ("label", "mechanism", "epoch"), column)
        for (label, mechanism), part in chosen.groupby(["label", "mechanism"]):
            line = palette.line(str(mechanism), str(label))
            axes.plot(part["epoch"], part["mean"], label=label, **line)
            band(axes, part["epoch"], part["low"], part["high"], line["color"], metrics["label"].nunique())
        axes.set_xlabel("epoch")
        axes.set_ylabel(quantity)
        integer_ticks(axes)
    every[-1].set_ylim(max(0.0, every[-1].get_ylim()[0]), 101)
    legend_above(figure, every[0])
    return save(figure, folder, name, f"{seeds_caption(metrics)}; bands: 95 % over seeds")
