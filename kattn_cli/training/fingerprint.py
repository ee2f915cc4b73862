"""Which weights a number was measured with."""

from __future__ import annotations

import hashlib
from pathlib import Path

from kattn_cli.training.checkpoint import previous_path

DIGITS = 12
_BLOCK = 1 << 20


def fingerprint(path: Path) -> str:
    """The first 12 hexadecimal digits of the SHA-256 of a file of weights.

    Where ``path`` is missing, that of the checkpoint before it, which is then used in its place.
    """
    digest = hashlib.sha256()
    with (path if path.is_file() else previous_path(path)).open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()[:DIGITS]
