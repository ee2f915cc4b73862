"""Accuracy over the size of the perturbation."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.frames import over_seeds, seeds_caption
from kattn_cli.figures.style import Palette, band, integer_ticks, legend_above, panels, save


def draw_robustness(attacks: pd.DataFrame, folder: Path) -> Path:
    """One panel an attack; ε = 0 is the clean accuracy on the same images."""
    names = sorted(attacks["attack"].unique(), key=["pgd", "fgsm", "noise"].index)
    figure, axes_row = panels(len(names))
    palette = Palette()
    for axes, name in zip(axes_row, names, strict=True):
        rows = attacks[attacks["attack"] == name]
        clean = rows.drop_duplicates(["label", "run_seed"]).assign(epsilon=0.0, top1=lambda row: row["clean_top1"])
        clean = clean.drop(columns=["top1_low", "top1_high"])
        points = over_seeds(pd.concat([clean, rows]), ("label", "mechanism", "epsilon"), "top1").dropna(subset="mean")
        for (label, mechanism), part in points.groupby(["label", "mechanism"]):
            line = palette.line(str(mechanism), str(label))
            epsilon = 255 * part["epsilon"]
            low, high = part["low"].fillna(part["mean"]), part["high"].fillna(part["mean"])
            axes.plot(epsilon, part["mean"], marker="o", markersize=3, label=label, **line)
            band(axes, epsilon, low, high, line["color"], attacks["label"].nunique())
        axes.set_title(name.upper() if name != "noise" else "uniform noise", fontsize=9)
        axes.set_xlabel("ε (1/255 of the pixel range, ℓ∞)")
        axes.set_ylim(-2, 102)
        integer_ticks(axes)
    axes_row[0].set_ylabel("test top-1 (%)")
    legend_above(figure, axes_row[0])
    images = ", ".join(map(str, sorted(attacks["images"].unique())))
    caption = f"{seeds_caption(attacks)}; {images} test images; bands: 95 % (Student-t over seeds, Wilson for one)"
    return save(figure, folder, "robustness", caption)
