"""What the papers say of attention, measured on a run by ``kattn audit`` and drawn by ``kattn plot``.

An item is a table ``<run>/audit/<item>.csv``. Its folder holds ``measure.py``, from a
:class:`~kattn_cli.audit.view.View` of a run's weights to the table's rows (none where the model has nothing of the
kind) with the mathematics that only it uses, and ``draw.py``, from the table to its figure. To add one, write both and
give it a line in :data:`ITEMS`. Never imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Literal

import pandas as pd

from kattn_cli.audit.items.alignment.draw import draw_alignment
from kattn_cli.audit.items.coherence.draw import draw_coherence, draw_subspaces
from kattn_cli.audit.items.compression.draw import draw_compression
from kattn_cli.audit.items.duality.draw import draw_duality
from kattn_cli.audit.items.eigenvectors.draw import draw_eigenvectors
from kattn_cli.audit.items.maps.draw import draw_foreground, draw_maps
from kattn_cli.audit.items.projection_error.draw import draw_projection_error
from kattn_cli.audit.items.pursuit.draw import draw_planted, draw_pursuit
from kattn_cli.audit.items.scaled_curves import draw_scaled_curves
from kattn_cli.runs.csv_rows import Row
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import frame
from kattn_cli.tables.measurements import told_apart

if TYPE_CHECKING:
    from kattn_cli.audit.view import View

HERE = "kattn_cli.audit.items"


@dataclass(frozen=True)
class Item:
    """One table of the audit, and its figure.

    ``when``: measured at ``every`` kept epoch, at both ``ends`` (the first kept and the chosen one), or of the
    ``chosen`` weights. ``measure``: the ``module:function`` that makes the rows, imported only to measure, for it
    imports torch; empty where another command measures. ``draw``: makes pictures in a folder from the table, and
    from the item's that is named ``beside`` it; None where the table has no figure of its own. ``source``: the run's
    table, where it is not the item's own.
    """

    when: Literal["every", "ends", "chosen"]
    measure: str
    draw: Callable[..., list[Path]] | None = None
    beside: str = ""
    source: str = ""

    @property
    def rows(self) -> Callable[[View], Iterable[Row]]:
        """Return the function that :attr:`measure` names."""
        return resolve_name(self.measure)


ITEMS = {
    "projection_error": Item("every", f"{HERE}.projection_error.measure:projection_errors", draw_projection_error),
    "eigenvectors": Item("ends", f"{HERE}.eigenvectors.measure:eigenvectors", draw_eigenvectors),
    "alignment": Item("ends", f"{HERE}.alignment.measure:alignments", draw_alignment),
    "pursuit": Item("chosen", f"{HERE}.pursuit.measure:traces", draw_pursuit),
    "planted": Item("chosen", f"{HERE}.pursuit.measure:planted_outliers", draw_planted),
    "outliers": Item("chosen", f"{HERE}.outliers.measure:displacements"),
    "duality": Item("every", f"{HERE}.duality.measure:dualities", draw_duality),
    "compression": Item("ends", f"{HERE}.compression.measure:compressions", draw_compression),
    "coherence": Item("every", f"{HERE}.coherence.measure:coherences", draw_coherence),
    "foreground": Item("chosen", f"{HERE}.maps.measure:foregrounds", draw_foreground),
    "scaled_curves": Item("every", "", draw_scaled_curves, source="metrics.csv"),
    "subspaces": Item("chosen", f"{HERE}.coherence.measure:directions", draw_subspaces),
    "membership": Item("chosen", f"{HERE}.maps.measure:memberships", partial(draw_maps, "membership"), "images"),
    "class_attention": Item(
        "chosen", f"{HERE}.maps.measure:class_attentions", partial(draw_maps, "class_attention"), "images"
    ),
    "images": Item("chosen", f"{HERE}.maps.measure:pictures"),
}
"""In the order in which they are measured and drawn."""


def draw_audit(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw every figure that the audit's tables of these runs allow; return the pictures."""
    tables = {name: told_apart(frame(runs, item.source or f"audit/{name}.csv")) for name, item in ITEMS.items()}
    pictures = []
    for name, item in ITEMS.items():
        if item.draw and len(tables[name]):
            drawn: Sequence[pd.DataFrame] = [tables[name], *([tables[item.beside]] if item.beside else [])]
            pictures += item.draw(*drawn, folder)
    return pictures
