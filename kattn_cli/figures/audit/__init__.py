"""Figures of the audit: one file a table, one idea each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd

from kattn_cli.figures.audit.alignment import draw_alignment
from kattn_cli.figures.audit.coherence import draw_coherence
from kattn_cli.figures.audit.compression import draw_compression
from kattn_cli.figures.audit.duality import draw_duality
from kattn_cli.figures.audit.eigenvectors import draw_eigenvectors
from kattn_cli.figures.audit.foreground import draw_foreground
from kattn_cli.figures.audit.maps import KINDS, draw_maps
from kattn_cli.figures.audit.planted import draw_planted
from kattn_cli.figures.audit.projection_error import draw_projection_error
from kattn_cli.figures.audit.pursuit import draw_pursuit
from kattn_cli.figures.audit.scaled import draw_scaled
from kattn_cli.figures.audit.subspaces import draw_subspaces
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import frame

FIGURES: dict[str, Callable[[pd.DataFrame, Path], Path]] = {
    "projection_error": draw_projection_error,
    "eigenvectors": draw_eigenvectors,
    "alignment": draw_alignment,
    "pursuit": draw_pursuit,
    "planted": draw_planted,
    "duality": draw_duality,
    "compression": draw_compression,
    "coherence": draw_coherence,
    "foreground": draw_foreground,
}
"""By the name of the table, ``<run>/audit/<name>.csv``."""


def draw_audit(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Every figure that the audit's tables of these runs allow."""
    tables = {name: frame(runs, f"audit/{name}.csv") for name in (*FIGURES, *KINDS, "subspaces", "images")}
    pictures = [draw(tables[name], folder) for name, draw in FIGURES.items() if len(tables[name])]
    pictures += draw_scaled(frame(runs, "metrics.csv"), folder)
    if len(tables["subspaces"]):
        pictures += draw_subspaces(tables["subspaces"], folder)
    for kind in KINDS:
        if len(tables[kind]):
            pictures += draw_maps(kind, tables[kind], tables["images"], folder)
    return pictures
