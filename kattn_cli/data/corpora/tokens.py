"""Tokens of a text in files of their own, made once and then mapped into memory.

They lie in ``$KATTN_DATA/tokens`` or ``~/.cache/kattn/tokens``, named by the text's files (path, size, time of change),
the stretches of them, and the vocabulary; what is there no longer fits when one of these changes, and goes when nobody
used it for a month (:mod:`kattn_cli.cache`).
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from filelock import FileLock

from kattn_cli.cache import hold, sweep
from kattn_cli.data.corpora.source import Source, chunks, length, source_at
from kattn_cli.data.reading.storage import default_root, stamp_of
from kattn_cli.data.text import TokenSplit, windows_of
from kattn_cli.data.vocabulary import Vocabulary, build_vocabulary, vocabulary_from
from kattn_cli.data.vocabulary.vocabulary import VocabularyKind, smallest_type
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing


class EncodedText(NamedTuple):
    """``tokens`` ``(T,)`` of a text of ``bytes_`` bytes in UTF-8, of which the share ``unknown`` is the unknown token.

    Those that the text itself calls ``<unk>`` are among them.
    """

    tokens: np.ndarray
    bytes_: int
    unknown: float

    def split(self, context: int, what: str) -> TokenSplit:
        """Return the windows of ``context`` tokens.

        Raises:
            DataError: if there is not one; ``what`` is short of tokens.
        """
        if len(self.tokens) <= context:
            need = f"a window of context {context:,} needs {context + 1:,}"
            raise DataError(
                f"{what} has {len(self.tokens):,} tokens, and {need}; give a longer text, or a smaller context"
            )
        return windows_of(self.tokens, context, self.bytes_)


class EncodedFile(NamedTuple):
    """The windows of a text, and the share of its tokens that are the unknown one."""

    split: TokenSplit
    unknown: float


def encode_file(path: str | Path, vocabulary: Vocabulary, context: int) -> EncodedFile:
    """Return a user's text as windows for a model of ``vocabulary``; ``path``: a file, folder or pattern.

    Raises:
        DataError: if it is missing, empty, not UTF-8, or shorter than a window, in one line.
    """
    encoded = encode_source(source_at(str(path)), vocabulary)
    return EncodedFile(encoded.split(context, str(path)), encoded.unknown)


def encode_texts(texts: Iterable[str], vocabulary: Vocabulary) -> EncodedText:
    """Encode a text in pieces, in memory; they are cut as :func:`~kattn_cli.data.vocabulary.vocabulary.parts` would."""
    pieces, bytes_ = [np.empty(0, smallest_type(vocabulary.size))], 0
    for text in texts:
        pieces.append(vocabulary.encode(text))
        bytes_ += len(text.encode("utf-8", errors="replace"))
    tokens = np.concatenate(pieces)
    return EncodedText(tokens, bytes_, _unknowns(tokens, vocabulary) / max(len(tokens), 1))


def encode_source(source: Source, vocabulary: Vocabulary) -> EncodedText:
    """Return the tokens of ``source``, mapped from a file, which is written if it is not there.

    Raises:
        DataError: if the text cannot be read, or the tokens not be written.
    """
    path = default_root("tokens") / f"{_stamp(source, vocabulary.to_json())}.bin"
    if (there := _read(path, source, vocabulary)) is not None:
        return there
    with faults_as(DataError, path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(path.with_suffix(".lock")):
            # Looked for again behind the lock: another process may have written it meanwhile.
            if (there := _read(path, source, vocabulary)) is None:
                _write(path, source, vocabulary)
                sweep(path.parent)
                there = _read(path, source, vocabulary)
    if there is None:
        raise DataError(f"{path}: was removed while it was written; start again")
    return there


def vocabulary_of(source: Source, kind: str, options: Mapping[str, int]) -> VocabularyKind:
    """Return :func:`~kattn_cli.data.vocabulary.build_vocabulary` of ``source``, kept in a file.

    Raises:
        DataError: if the text cannot be read, or the vocabulary not be written.
        ValueError: if no vocabulary of that kind can have these options.
    """
    path = default_root("tokens") / f"{_stamp(source, [kind, dict(options)])}.vocabulary.json"
    try:
        found = vocabulary_from(json.loads(path.read_text(encoding="utf-8")))
        os.close(hold(path))
        return found
    except (OSError, ValueError, RecursionError, DataError):
        vocabulary = build_vocabulary(kind, options, chunks(source))
    with faults_as(DataError, path), replacing(path) as new:
        new.write_text(json.dumps(vocabulary.to_json()), encoding="utf-8")
    sweep(path.parent)
    return vocabulary


def _stamp(source: Source, options: object) -> str:
    spans = [[span.start, span.stop] for span in source]
    try:
        return stamp_of([span.path for span in source], spans, options)
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from None


def _read(path: Path, source: Source, vocabulary: Vocabulary) -> EncodedText | None:
    """Return what was written, or None if not all of it was."""
    try:
        facts = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
        tokens = np.memmap(path, smallest_type(vocabulary.size), mode="r")
        found, unknown = int(facts["tokens"]), float(facts["unknown"])
        weakref.finalize(tokens, os.close, hold(path))
    except (OSError, ValueError, RecursionError, KeyError, TypeError):
        return None
    return EncodedText(tokens, length(source), unknown) if len(tokens) == found else None


def _write(path: Path, source: Source, vocabulary: Vocabulary) -> None:
    count = unknown = 0
    with replacing(path) as new, new.open("wb") as file:
        for text in chunks(source):
            tokens = vocabulary.encode(text)
            tokens.tofile(file)
            count += len(tokens)
            unknown += _unknowns(tokens, vocabulary)
    # Written after the tokens: a file of tokens without its facts is taken for unfinished.
    facts = {"tokens": count, "unknown": unknown / max(count, 1), "text": [asdict(span) for span in source]}
    with replacing(path.with_suffix(".json")) as new:
        new.write_text(json.dumps(facts, default=str), encoding="utf-8")


def _unknowns(tokens: np.ndarray, vocabulary: Vocabulary) -> int:
    return 0 if vocabulary.unknown is None else int((tokens == vocabulary.unknown).sum())
