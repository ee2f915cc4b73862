"""Cumulative explained variance of attention matrices (Primal-Attention paper, Figure 1)."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.figures.style import Palette, band, integer_ticks, leftmost, legend_above, panels, save
from kattn_cli.tables.frames import chosen_weights, seeds_caption


def draw_spectrum(spectra: pd.DataFrame, folder: Path) -> Path:
    """One panel a layer, each run with its chosen weights; mean over heads and seeds, bands ± one standard deviation.

    Where spectra differ in how many values they have, they are drawn over the share of them, on a logarithmic axis.
    """
    chosen = _with_position(chosen_weights(spectra))
    layers = sorted(chosen["layer"].unique())
    figure, axes_row = panels(len(layers), sharey=True)
    palette = Palette()
    shares = chosen["of"].nunique() > 1
    for axes, layer in zip(axes_row, layers, strict=True):
        rows = chosen[chosen["layer"] == layer]
        for (label, mechanism), part in rows.groupby(["label", "mechanism"]):
            line = palette.line(str(mechanism), str(label))
            by_index = part.groupby("position")["cumulative_explained_variance"]
            mean, deviation = by_index.mean(), by_index.std().fillna(0)
            axes.plot(mean.index, mean, label=label, **line)
            low, high = mean - deviation, (mean + deviation).clip(upper=1)
            band(axes, mean.index, low, high, line["color"], chosen["label"].nunique())
        axes.set_title(f"layer {layer}")
        axes.set_xlabel("index of the singular value\n(% of their number)" if shares else "index of the singular value")
        if shares:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter("{x:g}")
        else:
            integer_ticks(axes)
    axes_row[0].set_ylim(top=1.02)
    for axes in leftmost(axes_row):
        axes.set_ylabel("cumulative explained\nvariance (of σ²)")
    legend_above(figure, *axes_row)
    return save(figure, folder, "spectrum", _caption(chosen))


def _with_position(spectra: pd.DataFrame) -> pd.DataFrame:
    """With ``of``, which earlier tables lack, and ``position``: the index, or its share of ``of`` in %."""
    longest = spectra.groupby(["label", "run_seed", "layer"])["index"].transform("max")
    of = spectra["of"].fillna(longest) if "of" in spectra else longest
    position = spectra["index"] if of.nunique() == 1 else 100 * spectra["index"] / of
    return spectra.assign(of=of, position=position)


def _caption(spectra: pd.DataFrame) -> str:
    inputs = ", ".join(map(str, sorted(spectra["inputs"].unique())))
    numbers = sorted(spectra["of"].astype(int).unique())
    of = [f"of {', '.join(map(str, numbers))} singular values"] if len(numbers) > 1 else []
    error = spectra["error"].max() if "error" in spectra else 0
    randomised = [f"partly randomised, no σ off by more than {error:.1e}"] if error > 0 else []
    parts = [seeds_caption(spectra), f"{inputs} validation images", *of, *randomised]
    return "; ".join([*parts, "bands: ± 1 s.d. over heads and seeds"])
