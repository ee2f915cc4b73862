"""Time and memory over the number of tokens, log-log."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.analysis.statistics import power_law_exponent
from kattn_cli.figures.style import Palette, panels, save

QUANTITIES = {"milliseconds": "time (ms)", "peak_mib": "peak memory (MiB)"}


def exponents(costs: pd.DataFrame) -> pd.DataFrame:
    """Slopes of log cost over log N on the upper half of the sizes that fitted, for each mechanism and pass."""
    rows = []
    for (attention, what), part in costs[costs["status"] == "ok"].groupby(["attention", "pass"], sort=False):
        upper = part.sort_values("n").tail(max(2, (len(part) + 1) // 2))
        row = {"attention": attention, "pass": what, "from_n": upper["n"].min(), "to_n": upper["n"].max()}
        for quantity in (*QUANTITIES, "forward_flops"):
            row[f"{quantity}_exponent"] = power_law_exponent(upper["n"].tolist(), upper[quantity].tolist())
        rows.append(row)
    return pd.DataFrame(rows)


def draw_complexity(costs: pd.DataFrame, folder: Path, name: str) -> Path:
    """Forward + backward: time and memory of each mechanism, fitted exponents in the legends."""
    what = "forward+backward"
    rows = costs[(costs["status"] == "ok") & (costs["pass"] == what)]
    fitted = exponents(costs).query("`pass` == @what").set_index("attention")
    figure, axes_row = panels(len(QUANTITIES), height=2.8 + 0.08 * rows["attention"].nunique())
    palette = Palette()
    for axes, (quantity, title) in zip(axes_row, QUANTITIES.items(), strict=True):
        for attention, part in rows.groupby("attention", sort=False):
            label = f"{attention}  $\\propto N^{{{fitted.loc[attention, f'{quantity}_exponent']:.2f}}}$"
            line = palette.line(str(attention).partition("#")[0], str(attention))
            axes.plot(part["n"], part[quantity], marker="o", markersize=3, label=label, **line)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("tokens N")
        axes.set_ylabel(title)
        axes.legend(fontsize=7, loc="upper left", bbox_to_anchor=(0, -0.24), ncols=2, handlelength=2.6, columnspacing=1)
    first = costs.iloc[0]
    caption = (
        f"{what}, {first['device']}, {first['dtype']}, C = {first['dim']}, {first['heads']} heads, "
        f"batch {first['batch']}; exponents fitted on the upper half of the sizes"
    )
    return save(figure, folder, name, caption)
