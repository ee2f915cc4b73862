"""Long-Range Arena's own files of ListOps: a line a sequence, ``Source`` and ``Target`` with a tab between them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kattn_cli.data.images import SplitName
from kattn_cli.data.sets.listops.grammar import CLASSES, read_tokens
from kattn_cli.data.sets.listops.trees import Sequences
from kattn_cli.errors import DataError

FILES: dict[SplitName, str] = {"train": "basic_train.tsv", "validation": "basic_val.tsv", "test": "basic_test.tsv"}
_HEADER = b"Source\tTarget"


def read_file(path: Path, max_length: int) -> Sequences:
    """All sequences of a file.

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
