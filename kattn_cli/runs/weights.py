"""The files of a run's weights: their names, their fingerprints, and which rows were measured on them still.

A run that is trained further gives a name such as ``best`` to other weights. Rows of those that it no longer has stay
in its tables, and are not read as the run's: see :func:`has_still`. Never imports torch.

The fingerprint of weights is the beginning of a SHA-256 of their tensors by name, so that equal weights have equal
ones: safetensors writes the facts of a file in any order. Earlier versions took that of the whole file; their rows are
still known as what they are, see :func:`fingerprints_now`.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO

from kattn_cli.runs.identity import WEIGHTS

FOLDER = "checkpoints"
CHOICES = ("best", "best.previous", "last", "last.previous")
"""The weights of a run that may be asked for; a ``previous`` is what had the name before."""
DIGITS = 12
_BLOCK = 1 << 20
_FACTS = "__metadata__"


def weights_path(run: Path, which: str) -> Path:
    """Return the path of a run's weights ``which``: ``best``, ``last``, those before (``best.previous``), or kept."""
    return run / FOLDER / f"{which}.safetensors"


def previous_path(path: Path) -> Path:
    """Return where the checkpoint that was at ``path`` before the newest is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def meant_weights(run: Path, which: str) -> str:
    """Return ``which``, or ``last`` where ``best`` is meant and the run was stopped before one could be chosen.

    That is so in its first epoch, with whose end ``metrics.csv`` is written. A best that is gone is not replaced.
    """
    best = weights_path(run, "best")
    none_yet = not (best.exists() or previous_path(best).exists() or (run / "metrics.csv").exists())
    return "last" if which == "best" and none_yet and weights_path(run, "last").exists() else which


def kept_name(epoch: int) -> str:
    """Return the name under which ``train.keep_every`` keeps an epoch's weights; 0 is before training."""
    return f"epoch-{epoch:04d}"


def fingerprint(path: Path) -> str:
    """Return the fingerprint of a file of weights: 12 hexadecimal digits. See :func:`fingerprint_of`."""
    return _of_file(path, fingerprint_of)


def fingerprint_of(file: BinaryIO) -> str:
    """Return 12 hexadecimal digits of the SHA-256 of names, types, shapes and bytes of the tensors, in order of names.

    Of a file that is not in the format of safetensors, or is cut short, of its bytes.
    """
    try:
        return _digest_of_tensors(file)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return _digest_of_bytes(file)


def _digest_of_tensors(file: BinaryIO) -> str:
    length = int.from_bytes(file.read(8), "little")
    whole = file.seek(0, io.SEEK_END)
    if length > whole:
        raise ValueError("no header")
    file.seek(8)
    tensors = {name: entry for name, entry in json.loads(file.read(length)).items() if name != _FACTS}
    digest = hashlib.sha256()
    for name, entry in sorted(tensors.items()):
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        if not begin <= end <= whole:
            raise ValueError("cut short")
        digest.update(json.dumps([name, entry["dtype"], entry["shape"]]).encode())
        file.seek(begin)
        while begin < end and (block := file.read(min(_BLOCK, end - begin))):
            digest.update(block)
            begin += len(block)
    return digest.hexdigest()[:DIGITS]


def _digest_of_bytes(file: BinaryIO) -> str:
    file.seek(0)
    digest = hashlib.sha256()
    while block := file.read(_BLOCK):
        digest.update(block)
    return digest.hexdigest()[:DIGITS]


def _of_file(path: Path, digest: Callable[[BinaryIO], str]) -> str:
    facts = path.stat()
    return _once(path, digest, (facts.st_ino, facts.st_size, facts.st_mtime_ns))


@lru_cache(maxsize=4096)
def _once(path: Path, digest: Callable[[BinaryIO], str], version: tuple[int, ...]) -> str:
    with path.open("rb") as file:
        return digest(file)


def fingerprints_now(run: Path, rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the fingerprint that each row of a run's table has of its weights; empty where it names none.

    One that an earlier version took of the whole file comes as that of the weights, if the run has the file still.
    """
    named = [(_checkpoint(row), str(row.get(WEIGHTS) or "")) for row in rows]
    now = {one: _now(weights_path(run, one[0]), one[1]) for one in set(named)}
    return [now[one] for one in named]


def _now(path: Path, weights: str) -> str:
    now = _if_readable(path) if weights else None
    return now if now and weights != now and weights == _of_file(path, _digest_of_bytes) else weights


def _if_readable(path: Path) -> str | None:
    """Return the fingerprint of a file of weights, or None where there is none that can be read."""
    try:
        return fingerprint(path)
    except OSError:
        return None


def has_still(run: Path, rows: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Return of each row of a run's table whether the run still has the weights that it was measured on.

    They are the file's of that name. Where there is no such file (tables are kept longer than weights), they are those
    of the last row of that name. A row that does not name its weights passes.
    """
    named = list(zip(map(_checkpoint, rows), fingerprints_now(run, rows), strict=True))
    now = {checkpoint: weights for checkpoint, weights in named if weights}
    now |= {one: found for one in now if (found := _if_readable(weights_path(run, one)))}
    return [not weights or now[checkpoint] == weights for checkpoint, weights in named]


def _checkpoint(row: Mapping[str, Any]) -> str:
    """Return the name of a row's file of weights; those kept along the way are called after their epoch."""
    name, epoch = str(row.get("checkpoint") or ""), str(row.get("epoch", "")).removesuffix(".0")
    return kept_name(int(epoch)) if name == "kept" and epoch.isdecimal() else name
