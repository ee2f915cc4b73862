"""Spectra of attention: explained variance, and effective rank over layers and epochs (Primal-Attention, Figure 1)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes

from kattn_cli.figures.lines import audit_caption, mean_lines
from kattn_cli.figures.style import Palette, band, from_zero, integer_ticks, leftmost, legend_above, panels, save
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import chosen_weights, frame, seeds_caption, shared_epochs
from kattn_cli.tables.measurements import told_apart

QUANTITIES = {"effective_rank": "effective rank", "rank_90": "rank for 90 % of Σσ²"}


def draw_spectra(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw explained variance, effective rank over layers, and that over the kept epochs where there are several."""
    spectra, ranks = (told_apart(frame(runs, f"{name}.csv")) for name in ("spectrum", "effective_rank"))
    pictures = [draw_spectrum(spectra, folder)] if len(spectra) else []
    if len(ranks):
        pictures.append(draw_effective_rank(ranks, folder))
        if shared_epochs(ranks)["epoch"].nunique() > 1:
            pictures.append(draw_spectrum_epochs(ranks, folder))
    return pictures


def draw_spectrum(spectra: pd.DataFrame, folder: Path) -> Path:
    """Draw explained variance, a panel for each layer: mean ± one standard deviation over heads and seeds.

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
    """Return the rows with ``of``, which earlier tables lack, and ``position``: the index, or its share in %."""
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


def draw_effective_rank(ranks: pd.DataFrame, folder: Path) -> Path:
    """Draw over layers the effective rank of the chosen weights, and how many values hold 90 % of the variance."""
    chosen, unit = _in_shares(chosen_weights(ranks))
    figure, axes_row = panels(len(QUANTITIES))
    palette = Palette()
    for axes, (column, title) in zip(axes_row, QUANTITIES.items(), strict=True):
        mean_lines(axes, chosen, "layer", column, palette)
        axes.set_xlabel("layer")
        axes.set_ylabel(f"{title}{unit}")
        from_zero(axes)
    legend_above(figure, axes_row[0])
    return save(figure, folder, "effective_rank", _ranks_caption(chosen))


def draw_spectrum_epochs(ranks: pd.DataFrame, folder: Path) -> Path:
    """Draw the effective rank over the epochs that were kept, one panel a layer."""
    shares, unit = _in_shares(shared_epochs(ranks))
    layers = sorted(shares["layer"].unique())
    figure, axes_row = panels(len(layers), sharey=True)
    palette = Palette()
    for axes, layer in zip(axes_row, layers, strict=True):
        _over_epochs(axes, shares[shares["layer"] == layer], palette)
        axes.set_title(f"layer {layer}")
    from_zero(axes_row[0])
    for axes in leftmost(axes_row):
        axes.set_ylabel(f"effective rank{unit}")
    legend_above(figure, *axes_row)
    return save(figure, folder, "spectrum_epochs", _ranks_caption(shares))


def _over_epochs(axes: Axes, rows: pd.DataFrame, palette: Palette) -> None:
    mean_lines(axes, rows, "epoch", "effective_rank", palette)
    axes.set_xlabel("epoch")


def _in_shares(ranks: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """Return ranks in % of how many values there are, where that differs; and the unit for an axis's name."""
    if ranks["of"].nunique() == 1:
        return ranks, f"\n(of {ranks['of'].iloc[0]:.0f})"
    shares = {column: 100 * ranks[column] / ranks["of"] for column in QUANTITIES}
    return ranks.assign(**shares), "\n(% of their number)"


def _ranks_caption(ranks: pd.DataFrame) -> str:
    return audit_caption(ranks, "effective rank: exp of the entropy of σ/Σσ", "mean over heads")
