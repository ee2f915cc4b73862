"""Downloads: one process at a time, and what one that fails has to say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock

from kattn_cli.errors import DataError


@contextmanager
def downloading(name: str, root: Path, instead: str) -> Iterator[None]:
    """Around one of torchvision's downloaders, which leave alone what is there, so that the next process waits.

    Raises:
        DataError: in one line, if it fails: no network, no room, or a wrong checksum.
    """
    try:
        root.mkdir(parents=True, exist_ok=True)
        with FileLock(root / ".downloading"):
            yield
    except (OSError, RuntimeError) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        raise DataError(f"{name}: cannot be downloaded into {root}: {reason}; {instead}") from None
