"""TensorBoard's log of a run, where its recipe asks for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kattn_cli.training.loop import Update

FOLDER = "tensorboard"
_NOT_DRAWN = ("epoch", "step", "split", "lr", "seconds")


class Board:
    """Writes scalars into ``<run>/tensorboard``; what an interrupted run wrote beyond ``step`` is hidden."""

    def __init__(self, run: Path, step: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(run / FOLDER), purge_step=step + 1)

    def step(self, update: Update) -> None:
        """The loss and learning rate of one step."""
        self._writer.add_scalar("step/loss", update.loss.item(), update.step)
        self._writer.add_scalar("step/lr", update.lr, update.step)

    def epoch(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """The rows of ``metrics.csv``."""
        speed = next(name for name in rows[0] if name.endswith("_per_second"))
        for row in rows:
            for name, value in row.items():
                if name not in _NOT_DRAWN and name != speed:
                    self._writer.add_scalar(f"{row['split']}/{name}", value, row["step"])
        self._writer.add_scalar(speed, rows[0][speed], rows[0]["step"])

    def flush(self) -> None:
        """Write what is left."""
        self._writer.flush()
