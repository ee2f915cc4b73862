"""Pairs of papers of the ACL Anthology Network, byte by byte: does one cite the other? Long-Range Arena's Retrieval.

Source: Radev et al., "The ACL Anthology Network Corpus", 2013; Tay et al., "Long Range Arena", 2021, §2.2. Its files
``new_aan_pairs.{train,eval,test}.tsv`` have five columns and no header: label (0.0 or 1.0), two ids, two texts.
A text is what Python prints of bytes, ``b'…'`` with ``\\n`` in two letters; Long-Range Arena's program takes it as it
lies, and so does this.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, ClassVar

import numpy as np
import torch
from pydantic import Field

from kattn_cli.data.dataset import FileCheck, SequenceDataSet, SequenceFacts
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.storage import Damaged, default_root, kept, reading_arrays, stamp_of
from kattn_cli.data.sequences import SequenceSplit
from kattn_cli.errors import DataError

_FILES: dict[SplitName, str] = {
    "train": "new_aan_pairs.train.tsv",
    "validation": "new_aan_pairs.eval.tsv",
    "test": "new_aan_pairs.test.tsv",
}


class Aan(SequenceDataSet):
    """147,086 pairs to train on, 18,090 to choose by and 17,437 to test on; label 1 where one paper cites the other.

    They are read once and kept as an array under ``$KATTN_DATA/aan`` or ``~/.cache/kattn/aan`` (1.5 GB of bytes at
    ``seq_len: 4000``), of which only what is looked at is in memory.

    Args:
        root: the folder of the three files, by default the one where they are kept.
        seq_len: bytes of each text; what is longer is cut off at the end.
    """

    name: ClassVar[str] = "aan"
    description = "182,613 pairs of papers, of which one cites the other or not (Long-Range Arena's Retrieval)"
    how_to_get = (
        "unpack lra_release.gz of https://github.com/google-research/long-range-arena and give its tsv_data as root"
    )

    def __init__(self, *, root: str | None = None, seq_len: Annotated[int, Field(ge=1, le=1 << 20)] = 4000) -> None:
        self.root = Path(root).expanduser() if root else default_root(self.name)
        self.seq_len = seq_len

    def facts(self) -> SequenceFacts:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`."""
        return SequenceFacts(classes=2, seq_len=self.seq_len, vocabulary=256, pairs=True, own_validation=True)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        path = next((check.path for check in self.files() if check.status == "missing"), None)
        return f"there is no file {path}; {self.how_to_get}" if path else ""

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        paths = [self.root / name for name in _FILES.values()]
        return [FileCheck(path, "no checksum known" if path.is_file() else "missing") for path in paths]

    def fetch(self) -> None:
        """See :class:`~kattn_cli.data.dataset.DataSet`: there is nothing to fetch it from."""
        raise DataError(f"{self.name}: cannot be fetched; {self.how_to_get}")

    def load(self) -> dict[SplitName, SequenceSplit]:
        """Load pairs of uint8 ``(n, 2, N)``, mapped from a file, with lengths ``(n, 2)``.

        Raises:
            DataError: if a file is missing or empty, has a line of another form, or what is read cannot be kept.
        """
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        return {split: self._split(self.root / name) for split, name in _FILES.items()}

    def _split(self, file: Path) -> SequenceSplit:
        path = default_root(self.name) / f"{file.stem}-{stamp_of([file], self.seq_len)}.npy"
        rows = kept(path, self._read, partial(self._write, file))
        lengths, labels = (torch.from_numpy(rows[name].copy()) for name in ("lengths", "label"))
        return SequenceSplit(torch.from_numpy(rows["texts"]), lengths, labels)

    @property
    def _row(self) -> np.dtype:
        return np.dtype([("texts", np.uint8, (2, self.seq_len)), ("lengths", np.int64, 2), ("label", np.int64)])

    def _read(self, path: Path) -> np.ndarray:
        """Return the rows, copied on writing, since torch wants what can be written."""
        with reading_arrays():
            rows = np.load(path, mmap_mode="c", allow_pickle=False)
        if rows.dtype != self._row:
            raise Damaged
        return rows

    def _write(self, file: Path, path: Path) -> None:
        """Write row by row, so that no more than one is in memory."""
        count = sum(1 for _ in _lines(file))
        if not count:
            raise DataError(f"{file}: is empty")
        rows = np.lib.format.open_memmap(path, mode="w+", dtype=self._row, shape=(count,))
        for row, (label, *texts) in zip(rows, _pairs(file), strict=True):
            row["label"] = label
            for side, text in enumerate(texts):
                taken = np.frombuffer(text, np.uint8)[: self.seq_len]
                row["texts"][side, : len(taken)] = taken
                row["lengths"][side] = len(taken)
        rows.flush()


def _pairs(file: Path) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield label and texts of each line.

    Raises:
        DataError: if a line has not five columns, no label 0 or 1, or an empty text.
    """
    for number, line in enumerate(_lines(file), 1):
        columns = line.rstrip(b"\r\n").split(b"\t")
        if len(columns) != 5:
            raise DataError(
                f"{file}, line {number}: has {len(columns)} columns; expected 5 with tabs between: label, two ids, "
                "two texts"
            )
        label, _, _, first, second = columns
        if label not in _LABELS:
            shown = label[:20].decode(errors="replace")
            raise DataError(f'{file}, line {number}: expected a label 0 or 1 in the first column, not "{shown}"')
        if not first or not second:
            raise DataError(f"{file}, line {number}: the {'second' if first else 'first'} text is empty")
        yield _LABELS[label], first, second


def _lines(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as lines:
            yield from lines
    except OSError as error:
        raise DataError(f"{file}: cannot be read: {error.strerror or error}") from None


_LABELS = {b"0": 0, b"0.0": 0, b"1": 1, b"1.0": 1}
