"""CSV tables that are never lost and never half read. Never imports torch.

A table is written whole and then renamed, or appended row by row and never read beyond the last whole row, so that a
full disk or a killed process costs no more than what was being written. Whatever changes one does so under
:func:`kattn_cli.runs.lock.writing`, so that several processes at once lose no row of each other.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from io import StringIO
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from kattn_cli.errors import RunError
from kattn_cli.runs.bits import CORRECT
from kattn_cli.runs.columns import MISSING, NOTHING, NUMBERS, TABLES, WHOLE, Needed, check, needed_of
from kattn_cli.runs.identity import FINGERPRINTS, OTHERWISE, WEIGHTS, identity
from kattn_cli.runs.lock import writing
from kattn_cli.runs.weights import fingerprints_now
from kattn_cli.runs.whole_file import faults_as, folders_to_disk, names_to_disk, write_text

if TYPE_CHECKING:
    import pandas as pd

Row = Mapping[str, Any]


def new_csv(folder: Path, stem: str) -> Path:
    """Return a new, empty ``<stem>.csv``, or ``<stem>-2.csv`` and so on where that is taken; make the folder.

    Raises:
        RunError: if it cannot be made.
    """
    with faults_as(RunError, folder / f"{stem}.csv"):
        folders_to_disk(folder)
        for attempt in count(1):
            path = folder / (f"{stem}.csv" if attempt == 1 else f"{stem}-{attempt}.csv")
            with suppress(FileExistsError):
                path.touch(exist_ok=False)  # at once, so that no other process takes the name before the first row
                break
    return path


def write_manifest_of(table: Path, manifest: Row) -> None:
    """Write the manifest of a table that belongs to no run beside it.

    Raises:
        RunError: if it cannot be written.
    """
    write_text(table.with_suffix(".json"), json.dumps(manifest, indent=2) + "\n")


def append_rows(path: Path, rows: Sequence[Row]) -> None:
    """Add rows to a CSV, with a header where it is new; half a row at its end is cut off first.

    The columns are the file's. Where it lacks some (a file of an earlier version), it is written anew with the columns
    of both; where the rows lack some, they stay empty.

    Raises:
        RunError: if they cannot be written; the file is then as it was, without the half row.
    """
    if not rows:
        return
    with changing(path):
        with faults_as(RunError, path):
            table = _whole_lines(path)
        there = next(_records(path, table), [])
        columns = _columns([dict.fromkeys(there), *rows])
        if there and columns != there:
            write_rows(path, [*read_rows(path), *rows])
            return
        lines = "".join(_csv_lines(columns, rows, header=not there))
        with faults_as(RunError, path):
            _append(path, len(table.encode()), lines.encode())


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Be alone in changing a file until the block is left; its folder is made.

    Each function here does so by itself. What reads rows, works with them and writes what follows needs it around all.

    Raises:
        RunError: as :func:`kattn_cli.runs.lock.writing`.
    """
    with faults_as(RunError, path):
        folders_to_disk(path.parent)
    with writing(path):
        yield


def _append(path: Path, length: int, data: bytes) -> None:
    """Cut the file to ``length``, then add ``data`` or nothing of it."""
    fresh = not path.exists()
    with path.open("ab", buffering=0) as file:
        try:
            if os.fstat(file.fileno()).st_size > length:
                file.truncate(length)
            while data:
                data = data[file.write(data) :]
            os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                file.truncate(length)
            if fresh:
                path.unlink(missing_ok=True)
            raise
    if fresh:
        names_to_disk(path.parent)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write a CSV whole, with every column that one of the rows has.

    Raises:
        RunError: if it cannot be written; what was there before stays.
    """
    with changing(path):
        write_text(path, "".join(_csv_lines(_columns(rows), rows, header=True)) if rows else "")


def _columns(rows: Iterable[Row]) -> list[str]:
    columns = dict.fromkeys(column for row in rows for column in row)
    return sorted(columns, key=CORRECT.__eq__)  # which is long, and last, so that a table can be read by eye


def _csv_lines(columns: Sequence[str], rows: Sequence[Row], *, header: bool) -> Iterator[str]:
    """Yield one line a row, also where a value has several, so that a row that was cut off is recognised."""
    for row in [dict(zip(columns, columns, strict=True)), *rows] if header else rows:
        buffer = StringIO()
        values = [row.get(column, "") for column in columns]
        csv.writer(buffer).writerow([" ".join(one.splitlines()) if isinstance(one, str) else one for one in values])
        yield buffer.getvalue()


def whole_rows(path: Path) -> str:
    """Return a CSV's text without the half row that a killed process may have left at its end.

    It is empty where there is no file.

    Raises:
        RunError: if it cannot be read.
    """
    try:
        return _whole_lines(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None


def _whole_lines(path: Path) -> str:
    """Return a file's whole lines: a last one without line break, or with too few fields, was cut off."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        data = file.read(os.fstat(file.fileno()).st_size)
    try:
        text = data[: data.rfind(b"\n") + 1].decode()
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise RunError(f"{path}: row {row}: text in UTF-8 was expected ({error.reason})") from None
    header, last = text.partition("\n")[0], text[:-1].rpartition("\n")[2]
    quoted = '"' in header or '"' in last
    return text if quoted or last.count(",") >= header.count(",") else text[: -len(last) - 1]


def _records(path: Path, text: str) -> Iterator[list[str]]:
    try:
        yield from (reader := csv.reader(StringIO(text, newline="")))
    except csv.Error as error:
        raise RunError(f"{path}: row {reader.line_num}: cannot be read as a row of a table ({error})") from None


def header_of(path: Path) -> list[str]:
    """Return the names of a CSV's columns; none where there is no file.

    Raises:
        RunError: if it cannot be read.
    """
    return next(_records(path, whole_rows(path)), [])


def read_records(path: Path, *, complete: bool = False) -> list[list[str]]:
    """Return a CSV's header and rows as they stand there; nothing where there is no file.

    Half a row at its end is left out.

    Args:
        complete: whether it must have the columns that commands work with.

    Raises:
        RunError: if it cannot be read, or is not what :mod:`kattn_cli.runs.columns` says; here and in what follows.
    """
    records = [record for record in _records(path, whole_rows(path)) if record]
    check(path, records, needed_of(path) if complete else NOTHING)
    return records


def read_rows(path: Path, *, complete: bool = False) -> list[dict[str, str]]:
    """Return the rows of a CSV as text; none where there is no file. See :func:`read_records`.

    Fingerprints of weights are those of today: see :func:`~kattn_cli.runs.weights.fingerprints_now`.
    """
    records = read_records(path, complete=complete)
    rows = [dict(zip(records[0], record, strict=True)) for record in records[1:]]
    if records and {"checkpoint", WEIGHTS} <= set(records[0]):
        now = fingerprints_now(path.parent, rows)
        rows = [{**row, WEIGHTS: weights} for row, weights in zip(rows, now, strict=True)]
    return rows


def read_frame(path: Path, name: str = "") -> pd.DataFrame:
    """Return the rows of a CSV as a frame; without columns where there is no file. Half a row at its end is left out.

    Args:
        name: of the table in :data:`~kattn_cli.runs.columns.TABLES`, where its path does not tell.
    """
    import pandas as pd

    text = whole_rows(path)
    if not (records := [record for record in _records(path, text) if record]):
        return pd.DataFrame()
    needed = TABLES[name] if name else needed_of(path)
    check(path, records, needed)
    return parsed(StringIO(text), needed)


def parsed(text: TextIO, needed: Needed) -> pd.DataFrame:
    """Return the frame of a CSV that has been checked."""
    import pandas as pd

    words = [one for one in needed.filled if one not in WHOLE and one not in NUMBERS]
    kinds = dict.fromkeys((*FINGERPRINTS, *OTHERWISE, CORRECT, *words), str)
    return pd.read_csv(text, dtype=kinds, na_values=MISSING, keep_default_na=False, low_memory=False)


def replace_rows(path: Path, rows: Sequence[Row], measured: Collection[str] = ()) -> None:
    """Put rows into a CSV, each in the place of the row that is the same measurement, or at the end.

    See :mod:`kattn_cli.runs.identity` for which those are. A row that does not name its weights gives way to one that
    does.

    Args:
        measured: columns of values that only this table has.

    Raises:
        RunError: if they cannot be written; what was there before stays.
    """

    def key(row: Row) -> frozenset[tuple[str, str]]:
        return frozenset((column, text) for column, text in identity(row).items() if column not in measured)

    fresh = {key({**row, WEIGHTS: ""}): row for row in rows} | {key(row): row for row in rows}
    table: list[Row] = []
    placed: set[int] = set()
    with changing(path):
        for row in read_rows(path):
            new = fresh.get(key(row))
            if new is None:
                table.append(row)
            elif id(new) not in placed:
                table.append({**dict.fromkeys(row, ""), **new})  # the file's columns first, in their order
                placed.add(id(new))
        write_rows(path, [*table, *(row for row in rows if id(row) not in placed)])
