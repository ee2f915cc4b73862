"""Values of options that name a path: ``NAME=PATH``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kattn_cli.errors import KattnError


def named_paths(option: str, texts: Sequence[str], example: str) -> list[tuple[str, Path]]:
    """Each name and its path, with ``~`` for the home folder.

    Raises:
        KattnError: if one is not of that form, with the ``example``.
    """
    named = []
    for text in texts:
        name, equals, path = text.partition("=")
        if not (equals and name and path):
            raise KattnError(f"{option} {text}: expected NAME=PATH, such as {example}")
        named.append((name, Path(path).expanduser()))
    return named
