"""Which files this process opens inside a block, and how often."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_listening: list[Counter[Path]] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and isinstance(arguments[0], str):
        for counts in _listening:
            counts[Path(arguments[0])] += 1


sys.addaudithook(_note)  # it cannot be taken away again, so it is added once


@contextmanager
def files_opened(below: Path) -> Iterator[Counter[Path]]:
    """Yield how often each file below a folder has been opened, by its path from there."""
    counts: Counter[Path] = Counter()
    found: Counter[Path] = Counter()
    _listening.append(counts)
    try:
        yield found
    finally:
        _listening.remove(counts)
        found.update({path.relative_to(below): n for path, n in counts.items() if path.is_relative_to(below)})
