"""The files of a run's weights: their names, their fingerprints, and which rows were measured on them still.

A run that is trained further gives a name such as ``best`` to other weights. Rows of those that it no longer has stay
in its tables, and are not read as the run's: see :func:`has_still`. Never imports torch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from kattn_cli.runs.identity import WEIGHTS

FOLDER = "checkpoints"
DIGITS = 12
_BLOCK = 1 << 20


def weights_path(run: Path, which: str) -> Path:
    """Return the path of a run's weights ``which``: ``best``, ``last`` or a :func:`kept_name`."""
    return run / FOLDER / f"{which}.safetensors"


def previous_path(path: Path) -> Path:
    """Return where the checkpoint that was at ``path`` before the newest is kept."""
    return path.with_name(f"{path.stem}.previous{path.suffix}")


def kept_name(epoch: int) -> str:
    """Return the name under which ``train.keep_every`` keeps an epoch's weights; 0 is before training."""
    return f"epoch-{epoch:04d}"


def fingerprint(path: Path) -> str:
    """Return the first 12 hexadecimal digits of the SHA-256 of a file of weights.

    Where ``path`` is missing, that of the checkpoint before it, which is then used in its place.
    """
    used = path if path.is_file() else previous_path(path)
    facts = used.stat()
    return _digest(used, facts.st_size, facts.st_mtime_ns)


@lru_cache(maxsize=4096)
def _digest(path: Path, size: int, changed: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()[:DIGITS]


def has_still(run: Path, rows: Sequence[Mapping[str, Any]]) -> list[bool]:
    """Return of each row of a run's table whether the run still has the weights that it was measured on.

    They are the file's of that name. Where there is no such file (tables are kept longer than weights), they are those
    of the last row of that name. A row that does not name its weights passes.
    """
    named = [(_checkpoint(row), str(row.get(WEIGHTS) or "")) for row in rows]
    now = {checkpoint: weights for checkpoint, weights in named if weights}
    now |= {one: fingerprint(path) for one in now if (path := weights_path(run, one)) and _is_there(path)}
    return [not weights or now[checkpoint] == weights for checkpoint, weights in named]


def _checkpoint(row: Mapping[str, Any]) -> str:
    """Return the name of a row's file of weights; those kept along the way are called after their epoch."""
    name = str(row.get("checkpoint") or "")
    return kept_name(int(row["epoch"])) if name == "kept" and "epoch" in row else name


def _is_there(path: Path) -> bool:
    return path.is_file() or previous_path(path).is_file()
