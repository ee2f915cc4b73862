"""Are the subspaces that TSSA learns more incoherent than random ones?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.image import AxesImage
from numpy.typing import NDArray

from kattn_cli.audit.items.maps.draw import first_seed, slug
from kattn_cli.figures.lines import audit_caption, grey_band, mean_lines, means_caption, name_x, views
from kattn_cli.figures.style import Palette, from_zero, grid, legend_above, panels, save


def draw_coherence(coherences: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw the mean |cosine| between directions of different heads, random ones in grey; and the largest."""
    along = views(coherences)
    figure, axes = grid(len(along), 2)
    palette = Palette()
    for (mean, largest), (x, rows) in zip(axes, along, strict=True):
        mean_lines(mean, rows, x, "coherence", palette)
        grey_band(mean, rows, x, "null_mean", "null_low", "null_high", "random: mean, 95 %")
        mean.set_ylabel("mean |cosine|")
        from_zero(mean)
        mean_lines(largest, rows, x, "largest", palette)
        largest.set(ylabel="largest |cosine|", ylim=(0, 1.02))
        for one in (mean, largest):
            name_x(one, x)
    legend_above(figure, axes[0, 0])
    caption = audit_caption(coherences, "between the directions of different heads", means_caption(coherences))
    return [save(figure, folder, "coherence", caption)]


def draw_subspaces(cosines: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw a picture for each label, of its lowest seed: one panel a layer, |cosine| in blocks of heads."""
    return [_draw(label, rows, folder) for label, rows in first_seed(cosines)]


def _draw(label: str, rows: pd.DataFrame, folder: Path) -> Path:
    layers = sorted(rows["layer"].unique())
    figure, every = panels(len(layers), height=3.1)
    for axes, layer in zip(every, layers, strict=True):
        image = _blocks(axes, rows[rows["layer"] == layer])
        axes.set_title(f"layer {layer}")
    figure.colorbar(image, ax=every, label="|cosine|", shrink=0.7, pad=0.02)
    caption = (
        f"{label}, seed {rows['run_seed'].iloc[0]}; |cosine| of up to four directions of each head, drawn at random"
    )
    return save(figure, folder, f"subspaces_{slug(label)}", caption)


def _blocks(axes: Axes, rows: pd.DataFrame) -> AxesImage:
    matrix, heads, width = cosine_matrix(rows)
    image = axes.imshow(matrix, vmin=0, vmax=1)
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    for edge in range(1, len(heads)):
        axes.axhline(edge * width - 0.5, color="white", linewidth=0.6)
        axes.axvline(edge * width - 0.5, color="white", linewidth=0.6)
    middles = [head * width + (width - 1) / 2 for head in range(len(heads))]
    axes.set_xticks(middles, [str(head) for head in heads])
    axes.set_yticks(middles, [str(head) for head in heads])
    axes.tick_params(length=0)
    axes.set(xlabel="head", ylabel="head")
    return image


def cosine_matrix(rows: pd.DataFrame) -> tuple[NDArray[np.floating], list[int], int]:
    """Return one layer's |cosine| ``(heads · width, heads · width)``, the heads and the width. A pair may come once."""
    heads = sorted({*rows["head_i"], *rows["head_j"]})
    width = int(max(rows["i"].max(), rows["j"].max())) + 1
    one, other = (
        rows[f"head_{side}"].map(heads.index).to_numpy() * width + rows[side].to_numpy(int) for side in ("i", "j")
    )
    matrix = np.full((len(heads) * width, len(heads) * width), np.nan)
    matrix[other, one] = rows["cosine"].abs()
    matrix[one, other] = rows["cosine"].abs()
    return matrix, heads, width
