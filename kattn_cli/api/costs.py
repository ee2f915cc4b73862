"""What mechanisms cost as the number of tokens grows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kattn_cli.api.recorded import recorded
from kattn_cli.api.runs import RESULTS
from kattn_cli.device import resolve_device
from kattn_cli.errors import KattnError
from kattn_cli.runs.cost_table import read_cost_table

if TYPE_CHECKING:
    import pandas as pd

    from kattn_cli.costs.timing import Pass


@recorded
def complexity(
    *attentions: str,
    n: Sequence[int] = (64, 128, 256, 512, 1024, 2048),
    dim: int = 192,
    heads: int = 3,
    batch: int = 1,
    passes: Sequence[Pass] = ("forward",),
    causal: bool = False,
    dtype: str = "float32",
    seconds: float = 0.3,
    longest: float = 60.0,
    results: str | Path = RESULTS,
    device: str = "auto",
) -> pd.DataFrame:
    """Return time, memory and operations of mechanisms over N, a row each; softmax attention is always among them.

    Args:
        attentions: names, or names with options (``"rpc iterations=6"``); by default those of the papers.
        n: numbers of tokens.
        dim: the width; ``heads`` must divide it.
        passes: ``forward``, ``forward+backward``, or both.
        seconds: each row repeats its pass for so long at least.
        longest: a call that takes more seconds is the last of its mechanism.
        results: where the table is kept, in ``complexity/``.

    Raises:
        KattnError: if there is no such mechanism, with the nearest name, or heads do not divide the width.

    >>> kattn.complexity("tssa", "rpc iterations=2", n=[256, 1024, 4096])
    """
    from kattn_cli.commands.complexity.grid import Grid, competitors
    from kattn_cli.commands.complexity.measure import Bounds, measure_complexity
    from kattn_cli.commands.options import silence_profiler

    silence_profiler()
    if dim % heads:
        raise KattnError(f"complexity: heads={heads} does not divide dim={dim}")
    grid = Grid(tuple(sorted(set(n))), (dim,), (heads,), (batch,), tuple(passes), (causal,), (dtype,))
    chosen = competitors([], attentions, ["fast"], causal=causal)
    bounds = Bounds(seconds, longest)
    path = measure_complexity(chosen, grid, bounds, results=Path(results), device=resolve_device(device))
    return read_cost_table(path)[1]
