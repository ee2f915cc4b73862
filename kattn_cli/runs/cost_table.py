"""A table of measurements that belongs to no run: filled row by row, a manifest beside it, and resumed later."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from kattn_cli.console import console
from kattn_cli.errors import RunError
from kattn_cli.runs.csv_rows import (
    append_rows,
    header_of,
    new_csv,
    read_frame,
    read_rows,
    replace_rows,
    write_manifest_of,
)
from kattn_cli.runs.process import NO_PROCESS, may_be_alive, this_process
from kattn_cli.runs.provenance import now

if TYPE_CHECKING:
    import pandas as pd

Manifest = dict[str, Any]
PLACES = ("machine", "device")
"""Times of different ones are not mixed: a table that was begun elsewhere is not resumed."""
Kind = Literal["complexity", "models", "decoding", "benchmark", "kernel-pca"]
"""What a table is of, known by its columns."""
COLUMNS: dict[Kind, set[str]] = {
    "models": {
        "model", "attention", "version", "pass", "n", "milliseconds_per_sample", "peak_mib", "held_mib", "status",
    },
    "decoding": {"attention", "context", "milliseconds", "ratio", "state_mib", "peak_mib", "status"},
    "complexity": {"attention", "pass", "n", "milliseconds", "peak_mib", "status"},
    "benchmark": {"item", "quantity", "ours", "against", "value", "bound"},
    "kernel-pca": {"task", "solver", "round", "seconds", "accuracy"},
}  # fmt: skip


FORGIVEN = 1
"""So many of the columns may be lacking of a table that is then refused as damaged, not as another one."""


class NoCostTable(RunError):
    """A file that is no table of costs at all."""


class CostTable:
    """Rows that their ``keys``, as text, tell apart; a ``with`` block around the filling keeps the manifest's status.

    The status is ``running``, then ``complete``, or ``interrupted`` where the block is left by an exception.
    """

    def __init__(self, path: Path, manifest: Manifest, keys: tuple[str, ...]) -> None:
        self.path = path
        self.keys = keys
        self._manifest = manifest
        self._rows = {self._key(row): row for row in read_rows(path)}

    @classmethod
    def open(
        cls,
        folder: Path,
        stem: str,
        settings: Mapping[str, Any],
        record: Mapping[str, Any],
        keys: tuple[str, ...],
        resume: bool,
    ) -> CostTable:
        """Return a new table ``<stem>.csv`` (or ``<stem>-2.csv``, …) or, to ``resume``, the newest unfinished one.

        Only a table of the same ``settings`` is resumed, and only where it was begun: on another machine or device a
        new one begins, and a message says so. Another commit or other packages are printed and noted in the manifest.

        Args:
            settings: whatever the numbers depend on, as JSON can hold it.
            record: of :func:`kattn_cli.runs.provenance.provenance`.

        Raises:
            RunError: if the table to go on with cannot be read.
        """
        wanted = json.loads(json.dumps(dict(settings)))
        if resume and (found := _unfinished(folder, stem, wanted, record)):
            path, manifest = found
            resumption = {key: record.get(key) for key in ("command", "commit", "dirty", "versions", "start")}
            manifest["resumptions"] = [*manifest.get("resumptions", []), resumption]
            table = cls(path, manifest, keys)
            rows = f"{len(table)} row{'' if len(table) == 1 else 's'}"
            console.print(f"{path}: going on after {rows}{_changes(manifest, record)}")
            return table
        return cls(new_csv(folder, stem), {**record, "settings": wanted}, keys)

    def __len__(self) -> int:
        return len(self._rows)

    def has(self, **key: object) -> dict[str, str] | None:
        """Return the row with this key, its values as text, or None."""
        return self._rows.get(self._key(key))

    def append(self, row: Mapping[str, Any]) -> None:
        """Write a row to disk in place of one with the same key.

        Raises:
            RunError: if it cannot be written.
        """
        if self._key(row) in self._rows:
            replace_rows(self.path, [row], measured=[column for column in row if column not in self.keys])
        else:
            append_rows(self.path, [row])
        self._rows[self._key(row)] = {column: _text(value) for column, value in row.items()}

    def __enter__(self) -> CostTable:
        self._write(status="running", end=None, **this_process())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        over: Manifest = {"end": now(), **NO_PROCESS}
        if kind is None:
            self._write(status="complete", **over)
            return
        with suppress(RunError):  # must not hide the error on its way; a status "running" without its process will do
            self._write(status="interrupted", **over)

    def _write(self, **changes: Any) -> None:
        self._manifest.update(changes)
        write_manifest_of(self.path, self._manifest)

    def _key(self, row: Mapping[str, Any]) -> tuple[str, ...]:
        return tuple(_text(row.get(column)) for column in self.keys)


def going_on(folder: Path) -> str:
    """Return where the rows are that Ctrl-C leaves, and the command that resumes, for ``errors.stoppable``."""
    words = [*sys.argv[1:], *([] if "--resume" in sys.argv else ["--resume"])]
    return f"the rows so far are under {folder}/. Go on with: {shlex.join(['kattn', *words])}"


def _text(value: object) -> str:
    return "" if value is None else str(value)


def _unfinished(folder: Path, stem: str, settings: Manifest, record: Mapping[str, Any]) -> tuple[Path, Manifest] | None:
    """Return the newest table of these settings that is neither complete nor being filled."""
    found = sorted(_manifests(folder, stem, settings), key=lambda one: (str(one[1].get("start")), str(one[0])))
    for path, manifest in reversed(found):
        if manifest["status"] == "complete" or (manifest["status"] == "running" and may_be_alive(manifest)):
            continue
        elsewhere = [place for place in PLACES if manifest.get(place) != record.get(place)]
        if not elsewhere:
            return path, manifest
        console.print(f"{path}: was begun on another {' and '.join(elsewhere)}, so a new table begins")
        return None
    state = "the one of these settings is complete" if found else "there is none of these settings"
    console.print(f"--resume: no unfinished table under {folder}/ ({state}), so a new one begins")
    return None


def _manifests(folder: Path, stem: str, settings: Manifest) -> Iterator[tuple[Path, Manifest]]:
    for path in folder.glob(f"{stem}*.json"):
        if not re.fullmatch(rf"{re.escape(stem)}(-\d+)?", path.stem):
            continue
        with suppress(OSError, ValueError):
            manifest = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(manifest, dict) and "status" in manifest and manifest.get("settings") == settings:
                yield path.with_suffix(".csv"), manifest


def _changes(manifest: Manifest, record: Mapping[str, Any]) -> str:
    words = {"commit": "another commit", "versions": "other packages"}
    changed = [word for key, word in words.items() if manifest.get(key) != record.get(key)]
    return f", which were measured with {' and '.join(changed)}" if changed else ""


def read_cost_table(path: Path) -> tuple[Kind, pd.DataFrame]:
    """Return a table and what it is of, which its columns tell.

    Raises:
        NoCostTable: if it is none of these.
        RunError: if it cannot be read, is damaged, or has no row.
    """
    if not path.exists():
        raise RunError(f"{path}: cannot be read: No such file or directory")
    header = header_of(path)
    for kind, columns in COLUMNS.items():
        if len(columns - set(header)) <= FORGIVEN:
            table = read_frame(path, kind)
            if table.empty:
                raise RunError(f"{path}: has no rows")
            return kind, table
    raise NoCostTable(
        f"{path}: is no table of kattn complexity, model-costs, decoding, benchmark or kernel-pca; those of a run are "
        "read by the run's folder or name"
    )
