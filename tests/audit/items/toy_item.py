"""An item of the audit in one file, for ``test_toy_item.py``: the norm of the tokens that enter each layer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from kattn_cli.figures.lines import mean_lines
from kattn_cli.figures.style import Palette, panels, save
from kattn_cli.runs.csv_rows import Row

if TYPE_CHECKING:
    from kattn_cli.audit.view import View


def norms(view: View) -> Iterator[Row]:
    """Yield a row a layer."""
    for layer, x in enumerate(view.entering):
        yield {"epoch": view.epoch, "layer": layer, "norm": x.norm(dim=-1).mean().item(), "inputs": len(x)}


def draw_norms(rows: pd.DataFrame, folder: Path) -> list[Path]:
    """Draw a line a label."""
    figure, (axes,) = panels(1)
    mean_lines(axes, rows, "layer", "norm", Palette())
    return [save(figure, folder, "norms", "the norm of tokens")]
