"""Decoding: what one more token costs as the context grows, and whether that is flat."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from kattn_cli.errors import RunError
from kattn_cli.figures.lines import FILLED, HOLLOW
from kattn_cli.figures.style import Palette, legend_above, panels, save

FLAT = 0.05
"""By what share of that behind the shortest context a cost may differ and still be called flat."""


def verdicts(costs: pd.DataFrame) -> pd.DataFrame:
    """One row a mechanism: how its costs behind the longest context compare with those behind the shortest.

    ``time_ratio`` with its interval, ``state_ratio`` and ``peak_ratio`` are of the longest context. ``time`` judges all
    contexts: ``flat`` if every interval lies within :data:`FLAT`, ``not flat`` if one lies outside, else ``cannot be
    told``. ``memory`` judges what is kept: ``flat`` or ``not flat``.
    """
    rows = []
    for attention, part in costs[costs["status"] == "ok"].groupby("attention", sort=False):
        part = part.sort_values("context")
        first, last, rest = part.iloc[0], part.iloc[-1], part.iloc[1:]
        if rest.empty:
            continue
        rows.append(
            {
                "attention": attention,
                "from_context": first["context"],
                "to_context": last["context"],
                "time": _time(rest),
                "time_ratio": last["ratio"],
                "time_low": last["ratio_low"],
                "time_high": last["ratio_high"],
                "memory": "flat" if _within(part["state_mib"] / first["state_mib"]) else "not flat",
                "state_ratio": last["state_mib"] / first["state_mib"],
                "peak_ratio": last["peak_mib"] / first["peak_mib"],
            }
        )
    return pd.DataFrame(rows)


def _time(rest: pd.DataFrame) -> str:
    low, high = rest["ratio_low"].astype(float), rest["ratio_high"].astype(float)
    if _within(low) and _within(high):
        return "flat"
    return "not flat" if (low > 1 + FLAT).any() or (high < 1 - FLAT).any() else "cannot be told"


def _within(ratios: pd.Series) -> bool:
    return bool(((ratios - 1).abs() <= FLAT).all())


def draw_decoding(costs: pd.DataFrame, folder: Path, name: str) -> Path:
    """Time a token, with its quartiles, and memory over the context, log-log, a line a mechanism.

    Raises:
        RunError: if no measurement went well.
    """
    rows = costs[costs["status"] == "ok"].sort_values("context")
    if rows.empty:
        raise RunError(f"{name}.csv: has no measurement that went well, so there is nothing to draw")
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
