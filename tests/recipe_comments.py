"""What the comment at the top of a shipped recipe says."""

from __future__ import annotations

from kattn_cli.recipe.files import find_recipes


def comment(name: str) -> list[str]:
    """The lines that a recipe begins with, without their ``#``."""
    lines = find_recipes(name)[0].read_text(encoding="utf-8").splitlines()
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [line.removeprefix("#") for line in lines[:first]]


def prose(name: str) -> str:
    """The same as one line."""
    return " ".join(line.strip() for line in comment(name))
