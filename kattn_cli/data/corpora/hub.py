"""Texts of the Hugging Face hub, written to plain files once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kattn_cli.data.reading.parquet import first_line
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing

_ROWS = 1000


@dataclass(frozen=True)
class HubText:
    """Where a corpus is on the hub: one row a line, a passage or a document.

    ``column``: of the text. ``end``: what stands between rows, unless they end with it.
    """

    path: str
    config: str | None = None
    revision: str | None = None
    column: str = "text"
    end: str = "\n"

    def write(self, split: str, path: Path) -> None:
        """Download ``split`` through ``datasets``, which keeps a copy of its own, and write it to ``path``.

        Raises:
            DataError: in one line, if it cannot be downloaded or written.
        """
        import datasets

        try:
            rows = datasets.load_dataset(self.path, self.config, split=split, revision=self.revision)
        except Exception as error:  # datasets raises nearly anything, its own and its readers'
            raise DataError(
                f"{self.path} cannot be downloaded from the Hugging Face hub: {first_line(error)}"
            ) from None
        with faults_as(DataError, path), replacing(path) as new, new.open("w", encoding="utf-8", newline="") as file:
            file.writelines(self._texts(rows))

    def _texts(self, rows: Any) -> Iterator[str]:
        for batch in rows.iter(batch_size=_ROWS):
            for text in batch[self.column]:
                yield text if text.endswith(self.end) else text + self.end
