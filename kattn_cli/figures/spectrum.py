"""Cumulative explained variance of attention matrices (Primal-Attention paper, Figure 1)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.frames import seeds_caption
from kattn_cli.figures.style import COLUMNS, Palette, band, integer_ticks, legend_above, panels, save


def draw_spectrum(spectra: pd.DataFrame, folder: Path) -> Path:
    """One panel a layer; mean over heads and seeds, the band one standard deviation of them."""
    layers = sorted(spectra["layer"].unique())
    figure, axes_row = panels(len(layers), sharey=True)
    palette = Palette()
    for axes, layer in zip(axes_row, layers, strict=True):
        rows = spectra[spectra["layer"] == layer]
        for (label, mechanism), part in rows.groupby(["label", "mechanism"]):
            line = palette.line(str(mechanism), str(label))
            by_index = part.groupby("index")["cumulative_explained_variance"]
            mean, deviation = by_index.mean(), by_index.std().fillna(0)
            axes.plot(mean.index, mean, label=label, **line)
            low, high = mean - deviation, (mean + deviation).clip(upper=1)
            band(axes, mean.index, low, high, line["color"], spectra["label"].nunique())
        axes.set_title(f"layer {layer}", fontsize=9)
        axes.set_xlabel("index of the singular value")
        integer_ticks(axes)
    axes_row[0].set_ylim(top=1.02)
    for axes in axes_row[::COLUMNS]:
        axes.set_ylabel("cumulative explained\nvariance (of σ²)")
    legend_above(figure, *axes_row)
    inputs = ", ".join(map(str, sorted(spectra["inputs"].unique())))
    caption = f"{seeds_caption(spectra)}; {inputs} validation images; bands: ± 1 s.d. over heads and seeds"
    return save(figure, folder, "spectrum", caption)
