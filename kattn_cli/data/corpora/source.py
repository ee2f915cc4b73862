"""Sources: plain text files, or stretches of them, read piece by piece, so that no text must fit into memory."""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

from kattn_cli.data.vocabulary.vocabulary import last_cut
from kattn_cli.errors import DataError

CHUNK = 1 << 20
LONGEST = 4 << 20
"""Characters without a place to cut, after which a text is cut anywhere."""

_LOOK_FOR_LINE_END = 1 << 16


@dataclass(frozen=True)
class Span:
    """The bytes ``start … stop - 1`` of a file, which begin and end with whole characters."""

    path: Path
    start: int
    stop: int


Source = tuple[Span, ...]
"""A text: its stretches, one after the other."""


def files_at(given: str) -> list[Path]:
    """Return the file ``given``, all ``.txt`` below that folder, or the files that match that pattern, sorted."""
    path = Path(given).expanduser()
    if path.is_dir():
        return sorted(file for file in path.rglob("*.txt") if file.is_file())
    if path.exists():
        return [path]
    return sorted(Path(file) for file in glob.glob(str(path), recursive=True) if os.path.isfile(file))


def missing_files(given: str) -> str:
    """Return an empty string if :func:`files_at` finds any files; else where it looked, in one line."""
    if files_at(given):
        return ""
    path = Path(given).expanduser()
    if path.is_dir():
        return f"{path} has no .txt files"
    return f"no file matches {path}" if glob.has_magic(given) else f"there is no file {path}"


def source_at(given: str) -> Source:
    """Return the whole of the files at ``given``, for which see :func:`files_at`.

    Raises:
        DataError: if there are none, or there is nothing in them.
    """
    if missing := missing_files(given):
        raise DataError(f"{missing}; give a UTF-8 text file, a folder of .txt files, or a pattern with *")
    try:
        source = tuple(Span(path, 0, path.stat().st_size) for path in files_at(given))
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from None
    if not length(source):
        raise DataError(f"{given}: is empty; give a text")
    return source


def length(source: Source) -> int:
    """Return the length of a source in bytes."""
    return sum(span.stop - span.start for span in source)


def cut(source: Source, shares: Sequence[float]) -> list[Source]:
    """Cut ``source`` in order into as many parts as there are ``shares`` of its bytes, which add up to 1.

    A part ends with a line, or where a line is longer than 64 KiB with a character.

    Raises:
        DataError: if a file cannot be read.
    """
    ends = [round(share * length(source)) for share in accumulate(shares)][:-1]
    parts = []
    try:
        for end in reversed(ends):
            source, part = _split(source, end)
            parts.append(part)
    except OSError as error:
        raise DataError(f"{error.filename}: cannot be read: {error.strerror}") from None
    return [source, *reversed(parts)]


def chunks(source: Source) -> Iterator[str]:
    """Yield the text in pieces of about 1 MiB, cut as :func:`~.vocabulary.vocabulary.parts` does, and between files.

    Raises:
        DataError: if a file cannot be read, or is not UTF-8, with where in it.
    """
    for span in source:
        try:
            yield from _chunks(span)
        except OSError as error:
            raise DataError(f"{span.path}: cannot be read: {error.strerror}") from None


def _chunks(span: Span) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    carried = ""
    with span.path.open("rb") as file:
        file.seek(span.start)
        at = span.start
        while at < span.stop:
            data = file.read(min(CHUNK, span.stop - at))
            last = at + len(data) >= span.stop
            if not data:
                raise DataError(f"{span.path}: became shorter while it was read; start again")
            # The decoder holds the start of a character that the last piece cut through.
            begin = at - len(decoder.getstate()[0])
            try:
                text = carried + decoder.decode(data, last)
            except UnicodeDecodeError as error:
                found = f"byte 0x{error.object[error.start]:02x} at offset {begin + error.start:,}"
                raise DataError(f"{span.path}: is not UTF-8: {found}; convert it, for instance with iconv") from None
            at += len(data)
            place = len(text) if last else last_cut(text)
            if not place and len(text) > LONGEST:
                place = len(text)
            if place:
                yield text[:place]
            carried = text[place:]


def _split(source: Source, at: int) -> tuple[Source, Source]:
    before: list[Span] = []
    for number, span in enumerate(source):
        size = span.stop - span.start
        if at < size:
            place = _place_to_cut(span, span.start + at)
            first = (*before, Span(span.path, span.start, place))
            second = (Span(span.path, place, span.stop), *source[number + 1 :])
            return _some(first), _some(second)
        before.append(span)
        at -= size
    return source, ()


def _some(source: Source) -> Source:
    return tuple(span for span in source if span.start < span.stop)


def _place_to_cut(span: Span, at: int) -> int:
    """Return ``at``, or where the line that goes on there ends."""
    if at == span.start:
        return at
    with span.path.open("rb") as file:
        file.seek(at - 1)
        ahead = file.read(min(_LOOK_FOR_LINE_END, span.stop - at + 1))
    end = ahead.find(b"\n")
    if end >= 0:
        return at + end
    rest = ahead[1:]
    # Bytes 10xxxxxx continue a character of UTF-8; any other begins one.
    return at + next((i for i, byte in enumerate(rest) if byte & 0xC0 != 0x80), len(rest))
