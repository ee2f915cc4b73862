"""Time and memory over the number of tokens, log-log."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.analysis.statistics import power_law_exponent
from kattn_cli.figures.style import Palette, legend_above, panels, save

QUANTITIES = {"milliseconds": "time (ms)", "peak_mib": "peak memory (MiB)"}

DRAWN_PASS = "forward+backward"


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
    """Forward + backward: time and memory of each mechanism, both fitted exponents in the legend."""
    rows = costs[(costs["status"] == "ok") & (costs["pass"] == DRAWN_PASS)]
    fitted = exponents(costs).query("`pass` == @DRAWN_PASS").set_index("attention")
    figure, axes_row = panels(len(QUANTITIES), height=3.2)
    palette = Palette()
    for axes, (quantity, title) in zip(axes_row, QUANTITIES.items(), strict=True):
        for attention, part in rows.groupby("attention", sort=False):
            time, memory = (fitted.loc[attention, f"{one}_exponent"] for one in QUANTITIES)
            line = palette.line(str(attention).partition("#")[0], str(attention))
            label = f"{attention}  {time:.2f}, {memory:.2f}"
            axes.plot(part["n"], part[quantity], marker="o", label=label, **line)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("tokens N")
        axes.set_ylabel(title)
    legend_above(figure, axes_row[0])
    first = costs.iloc[0]
    caption = (
        f"{DRAWN_PASS}, {first['device']}, {first['dtype']}, C = {first['dim']}, {first['heads']} heads, batch "
        f"{first['batch']}; beside each name: exponents of time and memory in N, fitted on the upper half of the sizes"
    )
    return save(figure, folder, name, caption)
