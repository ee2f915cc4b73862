"""``kattn audit``: what the papers say of attention, measured on a run. One file for each kind of mechanism.

Each item is a table ``<run>/audit/<table>.csv``, and a function from a :class:`~kattn_cli.audit.view.View` of
a run's weights to its rows; no rows where the model has nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from kattn_cli.audit.items import kernel_view, maps, primal, pursuit, subspaces
from kattn_cli.audit.view import View
from kattn_cli.runs.csv_rows import Row


@dataclass(frozen=True)
class Item:
    """``when``: at ``every`` kept epoch, at both ``ends`` (the first kept and the chosen one), or the ``chosen``."""

    when: Literal["every", "ends", "chosen"]
    rows: Callable[[View], Iterable[Row]]


ITEMS = {
    "projection_error": Item("every", kernel_view.projection_errors),
    "eigenvectors": Item("ends", kernel_view.eigenvectors),
    "alignment": Item("ends", kernel_view.alignments),
    "pursuit": Item("chosen", pursuit.traces),
    "planted": Item("chosen", pursuit.planted_outliers),
    "duality": Item("every", primal.dualities),
    "compression": Item("ends", subspaces.compressions),
    "coherence": Item("every", subspaces.coherences),
    "subspaces": Item("chosen", subspaces.directions),
    "membership": Item("chosen", maps.memberships),
    "class_attention": Item("chosen", maps.class_attentions),
    "foreground": Item("chosen", maps.foregrounds),
    "images": Item("chosen", maps.pictures),
}
