"""What is made from files once, and kept, is known by what it was made from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path


def stamp_of(files: Iterable[Path], *options: object) -> str:
    """A short name for what comes of ``files`` (where they lie, their sizes, when they were written) and ``options``.

    Raises:
        OSError: if one of the files is not there.
    """
    found = [(str(path.resolve()), (stat := path.stat()).st_size, stat.st_mtime_ns) for path in files]
    return hashlib.sha256(json.dumps([found, options]).encode()).hexdigest()[:16]
