"""What a shipped recipe says of itself: its comment, and what to expect of it."""

from __future__ import annotations

import re

from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.load import load_recipe, read_notes
from kattn_cli.recipe.schema import Recipe
from kattn_cli.recipe.variants import Expected
from kattn_cli.tasks import kinds


def comment(name: str) -> list[str]:
    """Return the lines of a recipe's comment without their ``#``: what it is, its command, and what else is said of it.

    Of a variant that is its ``about``, of the file's first comment whatever is said of all
    variants, or of some by their names (``softmax, rpc: …``, ``All but rpc: …``), and its own. ``<name>``: the variant.
    """
    (source,) = find_recipes(name)
    lines = source.path.read_text(encoding="utf-8").splitlines()
    variant = source.variant
    if variant is None:
        return first_comment(lines)
    head = first_comment(lines)[1:]
    whole = head and head[0].startswith("   kattn train ") and "<name>" not in head[0]
    own = first_comment([line.strip() for line in lines[lines.index(f"  {variant}:") + 1 :]])
    variants = [line.strip()[:-1] for line in lines if re.fullmatch(r"  [\w.+-]+:", line)]
    said = [*said_of(variant, head[1:] if whole else head, variants), *own]
    command = [f"   kattn train {name}"] if whole else []
    title = f" {read_notes(source).about}."
    return [title, *command, *(line.replace("<name>", variant) for line in said)]


def first_comment(lines: list[str]) -> list[str]:
    first = next(number for number, line in enumerate(lines) if not line.startswith("#"))
    return [line.removeprefix("#") for line in lines[:first]]


def said_of(variant: str, lines: list[str], variants: list[str]) -> list[str]:
    """Return the lines of a file's first comment that are about a variant."""
    found, meant = [], True
    for line in lines:
        scope = re.fullmatch(r" (All but )?((?:[\w.+-]+, )*[\w.+-]+):(.*)", line)
        if scope and set(scope[2].split(", ")) <= set(variants):
            meant = (variant in scope[2].split(", ")) != bool(scope[1])
            line = scope[3]
        if meant and line:
            found.append(line)
    return found


def prose(name: str) -> str:
    """Return the comment as one line."""
    return " ".join(line.strip() for line in comment(name))


def expected(name: str) -> dict[str, Expected]:
    """Return the numbers to expect by measure."""
    (source,) = find_recipes(name)
    return dict(read_notes(source).expect)


def load(name: str, *overrides: str) -> Recipe:
    """Return a shipped recipe as it is read, with overrides applied."""
    (source,) = find_recipes(name)
    return load_recipe(source, kinds(), overrides)
