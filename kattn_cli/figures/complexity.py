"""Time and memory over the number of tokens, and over the width; log-log (after Figures 1, 6, 7 and 8 of ToST)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from kattn_cli.figures.style import Palette, legend_above, panels, save
from kattn_cli.tables.complexity import QUANTITIES, SETTING, completed, exponents, options_lines, varying, words

DRAWN_PASS = "forward+backward"
PASSES = {DRAWN_PASS: ("", "Training (forward + backward)"), "forward": ("_inference", "Inference (forward)")}
"""What each adds to the file's name, and its name in the caption."""
VERSION_DASHES = {"fast": "-", "plain": ":", "slow": "--"}
VARIANT_MARKERS = "os^Dv"
"""Of one mechanism with different options."""
TICKS = 9
FEW_DECADES = 200.0
"""Below this ratio of the largest value to the smallest, an axis has ticks between the powers of ten."""


def draw_complexity(costs: pd.DataFrame, folder: Path, name: str, fit_from: int | None = None) -> list[Path]:
    """Draw a figure for each setting and pass over N; over the width, if there are several, at the largest shared N.

    Beside each name stand the exponents of time and memory in N, fitted on sizes from ``fit_from`` on, by default on
    the upper half. ``name.png`` is of training, ``name_inference.png`` of the forward pass; with several settings their
    names are added.
    """
    table = completed(costs)
    table = table[table["status"] == "ok"]
    over_n, over_width = list(_over_tokens(table)), list(_over_width(table))
    lines = [one for one in over_n if one[2]["n"].nunique() > 1] or ([] if over_width else over_n)
    drawn = [(rows, "n", name + suffix, caption) for suffix, caption, rows in lines]
    drawn += [(rows, "dim", name + suffix, caption) for suffix, caption, rows in over_width]
    return [_draw(rows, x, folder, stem, caption, fit_from) for rows, x, stem, caption in drawn]


def _over_tokens(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Yield suffix of the file, caption and rows of each figure."""
    for key, part in table.groupby(SETTING, sort=False):
        setting = dict(zip(SETTING, key, strict=True))
        for what, (suffix, title) in PASSES.items():
            rows = part[part["pass"] == what]
            if len(rows):
                yield _suffix(table, setting) + suffix, _caption(title, rows, setting), rows


def _over_width(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    fixed = [column for column in SETTING if column != "dim"]
    for key, part in table.groupby(fixed, sort=False):
        setting = dict(zip(fixed, key, strict=True))
        shared = set.intersection(*(set(rows["n"]) for _, rows in part.groupby("dim")))
        if part["dim"].nunique() < 2 or not shared:
            continue
        for what, (suffix, title) in PASSES.items():
            rows = part[(part["pass"] == what) & (part["n"] == max(shared))]
            if len(rows):
                caption = f"{_caption(title, rows, setting)}, N = {max(shared):,}"
                yield f"_width{_suffix(table, setting)}{suffix}", caption, rows


def _suffix(table: pd.DataFrame, setting: dict[str, Any]) -> str:
    """Return what tells a file from those of the table's other settings: ``_dim384_causal``."""
    several = [column for column in varying(table) if column in setting]
    parts = {column: f"_{'' if column == 'dtype' else column}{setting[column]}" for column in several}
    if "causal" in parts:
        parts["causal"] = "_causal" if setting["causal"] == "yes" else ""
    return "".join(parts.values())


def _caption(title: str, rows: pd.DataFrame, setting: dict[str, Any]) -> str:
    said = [one for one in words(setting) if one != "not causal"]
    return ", ".join([title, *rows["device"].head(1), *said])


def _draw(rows: pd.DataFrame, x: str, folder: Path, name: str, caption: str, fit_from: int | None) -> Path:
    beside: dict[str, str] = dict.fromkeys(rows["label"], "")
    if x == "n":
        fitted = exponents(rows, fit_from).set_index("attention")
        for label, row in fitted.iterrows():
            time, memory = (row[f"{quantity}_exponent"] for quantity in QUANTITIES)
            beside[str(label)] = f"  {time:.2f}, {memory:.2f}"
        fit = f"N ≥ {fit_from:,}" if fit_from else "the upper half of the sizes"
        caption += f"; beside each name: exponents of time and memory in N, fitted on {fit}"
    caption += _legend_caption(rows)
    figure, axes_row = panels(len(QUANTITIES), height=3.2)
    palette = Palette()
    for axes, (quantity, title) in zip(axes_row, QUANTITIES.items(), strict=True):
        for label in beside:
            part = rows[rows["label"] == label].sort_values(x)
            axes.plot(part[x], part[quantity], label=label + beside[label], **_line(part.iloc[0], palette))
        _log_log(axes, sorted(rows[x].unique()))
        axes.set_xlabel("tokens N" if x == "n" else "width C")
        axes.set_ylabel(title)
    legend_above(figure, axes_row[0])
    return save(figure, folder, name, caption)


def _legend_caption(rows: pd.DataFrame) -> str:
    """Return what the names in the legend do not say."""
    parts = ["softmax: PyTorch's fused attention"] if (rows["label"] == "softmax").any() else []
    if (rows["version"] == "slow").any():
        parts.append("slow: the equations as they stand, softmax with its N × N matrix")
    parts += options_lines(rows)
    return "".join(f"; {part}" for part in parts)


def _line(row: pd.Series, palette: Palette) -> dict[str, Any]:
    """Return how a line looks: the mechanism's colour, the version's dashes, a marker for the options."""
    mechanism, _, number = str(row["attention"]).partition("#")
    colour = palette.line(mechanism, str(row["label"]))["color"]
    marker = VARIANT_MARKERS[(int(number or 1) - 1) % len(VARIANT_MARKERS)]
    return {"color": colour, "linestyle": VERSION_DASHES[row["version"]], "marker": marker}


def _log_log(axes: Axes, sizes: list[int]) -> None:
    """Make the axes log-log, with the sizes themselves below and plain numbers beside."""
    axes.set_xscale("log", base=2)
    ticks = sizes[:: -(-len(sizes) // TICKS)]
    axes.set_xticks(ticks, [f"{n // 1024}k" if n % 1024 == 0 else str(n) for n in ticks])
    axes.set_yscale("log")
    low, high = axes.dataLim.intervaly
    steps = (1.0, 2.0, 5.0) if high < FEW_DECADES * low else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=steps))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.xaxis.minorticks_off()
