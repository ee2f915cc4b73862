"""ListOps in the lengths of Long-Range Arena (Tay et al., 2021): generated, or from its own files.

As its generator has it: trees at most 10 deep, of 2 to 10 entries a list, a node being a list with probability ¼ (its
``VALUE_P``, in spite of the name); more than 500 and fewer than 2,000 tokens, counted without the round brackets that
its files add; 96,000 + 2,000 + 2,000 sequences, none twice. The closing bracket is a token, as in its reader of 2021;
the reader of 2020 lost it (its issues 6 and 14).

Ours: the seed, so that the sequences are others than its own, and the numbers of the tokens. They depend on the
options alone, whatever the machine, as long as numpy's generators stay as they are.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import numpy as np
import torch
from pydantic import Field

from kattn_cli.data.dataset import NOT_GENERATED, FileCheck, SequenceDataSet, SequenceFacts
from kattn_cli.data.images import SPLITS, SplitName
from kattn_cli.data.reading.storage import default_root, kept
from kattn_cli.data.sequences import SequenceSplit
from kattn_cli.data.sets.listops.expressions import CLASSES, TOKENS, Sequences, longest_possible, read_tokens
from kattn_cli.data.sets.listops.generate import Wanted, generate, read, write
from kattn_cli.errors import DataError

FILES: dict[SplitName, str] = {"train": "basic_train.tsv", "validation": "basic_val.tsv", "test": "basic_test.tsv"}
_HEADER = b"Source\tTarget"


def read_file(path: Path, max_length: int) -> Sequences:
    """Return all sequences of a file.

    Raises:
        DataError: if it cannot be read, is empty, or a line is no sequence of at most ``max_length`` tokens and its
            value; in one line, with its number.
    """
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    if not lines or lines[0].strip() != _HEADER:
        raise DataError(f"{path}: does not begin with the line Source<tab>Target")
    if len(lines) == 1:
        raise DataError(f"{path}: has no sequences")
    tokens, values = [], []
    for number, line in enumerate(lines[1:], 2):
        source, _, target = line.partition(b"\t")
        try:
            tokens.append(_source(source, max_length))
            values.append(_target(target))
        except ValueError as error:
            raise DataError(f"{path}, line {number}: {error}") from None
    lengths = np.array([len(one) for one in tokens], dtype=np.int64)
    return Sequences(np.concatenate(tokens), lengths, np.array(values, dtype=np.uint8))


def _source(text: bytes, max_length: int) -> np.ndarray:
    tokens = read_tokens(text)
    if len(tokens) > max_length:
        raise ValueError(f"has {len(tokens):,} tokens, more than data.max_length = {max_length:,}")
    return tokens


def _target(text: bytes) -> int:
    if not text.isdigit() or int(text) >= CLASSES:
        raise ValueError(f"has no value 0 … {CLASSES - 1} after a tab; it is cut short or no line of ListOps")
    return int(text)


Count = Annotated[int, Field(ge=1)]


class ListOps(SequenceDataSet):
    """Nested lists with operators, whose value 0 … 9 is the class; see :mod:`~kattn_cli.data.sets.listops.expressions`.

    Args:
        root: a folder with Long-Range Arena's ``basic_train.tsv``, ``basic_val.tsv`` and ``basic_test.tsv``. Then
            nothing is generated, and of the other options only ``max_length`` counts.
        min_length: sequences have more tokens than this,
        max_length: and fewer than this; from files at most as many.
        train: how many sequences to train on.
        choose_by: how many to choose the best epoch by.
        test: how many to report on.
        max_depth: lists within lists, digits counted as a level.
        max_args: the most entries of a list.
        seed: another one, other sequences.

    Raises:
        ValueError: if no tree has a length in between.
    """

    name = "listops"
    description = "nested lists with operators to evaluate, of Long-Range Arena, generated"
    how_to_get = "without root it is generated; Long-Range Arena's lra_release has its own files in listops-1000"

    def __init__(
        self,
        *,
        root: str | None = None,
        min_length: Annotated[int, Field(ge=0)] = 500,
        max_length: Annotated[int, Field(ge=2)] = 2000,
        train: Count = 96_000,
        choose_by: Count = 2_000,
        test: Count = 2_000,
        max_depth: Annotated[int, Field(ge=1, le=100)] = 10,
        max_args: Annotated[int, Field(ge=2, le=200)] = 10,
        seed: Annotated[int, Field(ge=0)] = 0,
    ) -> None:
        self.root = Path(root).expanduser() if root else None
        self.max_length = max_length
        self.wanted = Wanted(min_length, max_length, max_depth, max_args, (train, choose_by, test), seed)
        longest = longest_possible(max_depth, max_args)
        if root is None and not min_length < min(longest, max_length - 1):
            raise ValueError(
                f"data.max_length: no sequence has more than {min_length:,} (data.min_length) and fewer than "
                f"{max_length:,} tokens; with data.max_depth and data.max_args as they are the longest has {longest:,}"
            )

    def facts(self) -> SequenceFacts:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`."""
        return SequenceFacts(CLASSES, seq_len=self.max_length, vocabulary=len(TOKENS), own_validation=True)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root or default_root(self.name)]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`; nothing ever is that can be generated."""
        path = next((path for path in self._given().values() if not path.is_file()), None)
        return f"there is no file {path}; {self.how_to_get}" if path else ""

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if given := self._given().values():
            return [FileCheck(path, "ok" if path.is_file() else "missing") for path in given]
        return [FileCheck(self._cache, "ok" if self._cache.is_file() else NOT_GENERATED)]

    def load(self) -> dict[SplitName, SequenceSplit]:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`; generated first where that has not been done."""
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        if given := self._given():
            return {split: _split(read_file(path, self.max_length)) for split, path in given.items()}
        return dict(zip(SPLITS, _parts(self._generated(), self.wanted.counts), strict=True))

    def fetch(self) -> None:
        """Generate the data set and keep it."""
        if self.root is None:
            self._generated()

    def _generated(self) -> Sequences:
        count = sum(self.wanted.counts)
        return kept(self._cache, lambda path: read(path, count), lambda path: write(path, generate(self.wanted)))

    @property
    def _cache(self) -> Path:
        return default_root(self.name) / self.wanted.file_name

    def _given(self) -> dict[SplitName, Path]:
        return {split: self.root / name for split, name in FILES.items()} if self.root else {}


def _parts(sequences: Sequences, counts: tuple[int, ...]) -> list[SequenceSplit]:
    """Return the sequences cut into splits of ``counts``."""
    ends = np.cumsum(counts)
    lengths, values = np.split(sequences.lengths, ends[:-1]), np.split(sequences.values, ends[:-1])
    tokens = np.split(sequences.tokens, sequences.lengths.cumsum()[ends[:-1] - 1])
    return [_split(Sequences(*part)) for part in zip(tokens, lengths, values, strict=True)]


def _split(sequences: Sequences) -> SequenceSplit:
    values = np.zeros((len(sequences.lengths), sequences.lengths.max()), dtype=np.uint8)
    values[np.arange(values.shape[1]) < sequences.lengths[:, None]] = sequences.tokens
    labels = torch.from_numpy(sequences.values.astype(np.int64))
    return SequenceSplit(torch.from_numpy(values), torch.from_numpy(sequences.lengths), labels)
