"""Decoding: what one more token costs as the context grows, and whether that is flat."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.errors import NothingToDraw
from kattn_cli.figures.lines import FILLED, HOLLOW
from kattn_cli.figures.style import Palette, legend_above, panels, save


def draw_decoding(costs: pd.DataFrame, folder: Path, name: str) -> Path:
    """Draw time a token, with its quartiles, and memory over the context, log-log, a line for each mechanism.

    Raises:
        NothingToDraw: if no measurement went well.
    """
    rows = costs[costs["status"] == "ok"].sort_values("context")
    if rows.empty:
        raise NothingToDraw(f"{name}.csv: has no measurement that went well, so there is nothing to draw")
    figure, (time, memory) = panels(2, height=3.2)
    palette = Palette()
    for attention, part in rows.groupby("attention", sort=False):
        line = palette.line(str(attention).partition("#")[0], str(attention))
        middle = part["milliseconds"]
        bars = [middle - part["milliseconds_low"], part["milliseconds_high"] - middle]
        time.errorbar(part["context"], middle, yerr=bars, fmt="none", color=line["color"], elinewidth=0.8)
        time.plot(part["context"], middle, marker="o", label=str(attention), **line)
        memory.plot(part["context"], part["state_mib"], marker="o", **line)
        memory.plot(part["context"], part["peak_mib"], marker="^", markerfacecolor="white", linewidth=0.8, **line)
    for axes, title in ((time, "time (ms a token)"), (memory, "memory (MiB)")):
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xlabel("context (tokens)")
        axes.set_ylabel(title)
    memory.set_title(f"{FILLED} kept   {HOLLOW} for one step")
    legend_above(figure, time)
    first = costs.iloc[0]
    caption = (
        f"One more token, {first['device']}, {first['dtype']}, C = {first['dim']}, {first['heads']} heads, batch "
        f"{first['batch']}; medians over {rows['rounds'].max():.0f} rounds in which the contexts take turns, bars: "
        "quartiles"
    )
    return save(figure, folder, name, caption)
