"""A table of decoding on the console: every row, and whether each mechanism's costs are flat."""

from __future__ import annotations

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.figures.decoding import FLAT, verdicts


def print_decoding(costs: pd.DataFrame) -> None:
    """The costs of a token behind each context, then one line a mechanism: flat or not."""
    shortest = costs.loc[costs["status"] == "ok", "context"].min()
    compared = f"to {shortest:,.0f} (95 %)"
    print_wide(
        ("", "context", "ms a token (quartiles)", compared, "kept MiB", "a step's MiB", ""),
        [_cells(row) for _, row in costs.iterrows()],
    )
    for _, one in verdicts(costs).iterrows():
        interval = f"[{one['time_low']:.2f}, {one['time_high']:.2f}]"
        console.print(
            f"{one['attention']}, {one['from_context']:,} to {one['to_context']:,} tokens: time {one['time']} "
            f"(× {one['time_ratio']:.2f} {interval}), memory kept {one['memory']} (× {one['state_ratio']:.2f})",
            markup=False,
        )
    console.print(f"flat: within {100 * FLAT:.0f} % of that behind the shortest context", markup=False)


def _cells(row: pd.Series) -> list[str]:
    if row["status"] != "ok":
        return [row["attention"], f"{row['context']:,}", "", "", "", "", row["status"]]
    return [
        row["attention"],
        f"{row['context']:,}",
        f"{row['milliseconds']:.3f} [{row['milliseconds_low']:.3f}, {row['milliseconds_high']:.3f}]",
        f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]",
        f"{row['state_mib']:.4g}",
        f"{row['peak_mib']:.4g}",
        "",
    ]
