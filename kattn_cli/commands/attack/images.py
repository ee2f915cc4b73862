"""What an attack did to each image, in a CSV that grows batch by batch, so that a stopped attack goes on.

One row an image: ``batch`` and how many images are ``of`` it, ``image`` (its place in the split), ``clean``, ``top1``
and ``top5`` (1 if the answer was right), ``hit`` (1 if a targeted attack's class was reached), the norms of the
perturbation in the units of ε, ``seconds`` (the batch's share).
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from torch import Tensor

from kattn_cli.runs.csv_rows import append_rows, read_rows, write_rows

FOLDER = "attacked"
NORMS = ("linf", "l2", "l1")


class AttackedImages:
    """The rows of one measurement, those of batches that were not finished left out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        rows = {(row["batch"], row["image"]): row for row in read_rows(path)}
        sizes: dict[str, int] = {}
        for batch, _ in rows:
            sizes[batch] = sizes.get(batch, 0) + 1
        whole = [row for (batch, _), row in rows.items() if sizes[batch] == int(row["of"])]
        if path.exists() and len(whole) != len(read_rows(path)):
            write_rows(path, whole)
        self.done = {int(row["batch"]) for row in whole}
        self.images = len(whole)

    def clear(self) -> None:
        """Forget what was measured."""
        self.path.unlink(missing_ok=True)
        self.done, self.images = set(), 0

    def append(self, batch: int, first: int, seconds: float, **columns: Tensor) -> None:
        """Add one batch, whose images begin at ``first`` of the split; each column is ``(B,)``."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        values = {name: column.tolist() for name, column in columns.items()}
        size = len(next(iter(values.values())))
        rows = [
            {
                "batch": batch,
                "of": size,
                "image": first + k,
                **{name: f"{column[k]:.6g}" if name in NORMS else int(column[k]) for name, column in values.items()},
                "seconds": f"{seconds / size:.6g}",
            }
            for k in range(size)
        ]
        append_rows(self.path, rows)
        self.done.add(batch)
        self.images += size

    def table(self) -> pd.DataFrame:
        """All rows, in the order of the images."""
        return pd.read_csv(self.path).sort_values("image", ignore_index=True)
