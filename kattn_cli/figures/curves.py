"""Training curves: loss and accuracy over epochs."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.style import Palette, band, integer_ticks, legend_above, panels, save
from kattn_cli.tables.frames import over_seeds, seeds_caption
from kattn_cli.tables.measures import MEAN_IOU, TOP1, measure_named


def several_epochs(metrics: pd.DataFrame) -> pd.DataFrame:
    """Return all rows, or none where a single epoch makes no curve."""
    return metrics if metrics.empty or metrics["epoch"].nunique() > 1 else metrics.iloc[:0]


def draw_curves(metrics: pd.DataFrame, folder: Path, name: str = "curves") -> Path:
    """Draw training loss, validation loss and accuracy of each label, mean and 95 % interval over seeds.

    Of segmenters mean IoU in place of accuracy; of what tells actions nothing; of other kinds of data their first
    measure.
    """
    known = [one for one in (TOP1.name, MEAN_IOU.name) if one in metrics and metrics[one].notna().any()]
    measures = [measure_named(one) for one in known or _own_measures(metrics)[:1]]
    figure, every = panels(2 + len(measures))
    palette = Palette()
    unit = " (nats)" if known else "" if measures else " (mean squared error)"
    training, checked = metrics[metrics["split"] == "train"], metrics[metrics["split"] != "train"]
    split = " and ".join(sorted(checked["split"].unique()))
    drawn = (
        (training, "loss", f"training loss{unit}"),
        (checked, "loss", f"{split} loss{unit}"),
        *((checked, one.name, f"{split} {one.label}{f' ({one.unit})' if one.unit else ''}") for one in measures),
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
    for axes, measure in zip(every[2:], measures, strict=True):
        if measure.name in known:
            low, high = axes.get_ylim()
            axes.set_ylim(max(0.0, low), 101 if measure is TOP1 else min(high, 101))
    legend_above(figure, every[0])
    return save(figure, folder, name, f"{seeds_caption(metrics)}; bands: 95 % over seeds")


def _own_measures(metrics: pd.DataFrame) -> list[str]:
    """Return the columns that an objective writes beside the losses, which lie between them and the learning rate."""
    columns = list(metrics.columns)
    return columns[columns.index("auxiliary_loss") + 1 : columns.index("lr")] if "auxiliary_loss" in columns else []
