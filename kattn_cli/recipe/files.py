"""Where recipes lie: in files and folders of the user's, or shipped with kattn."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.recipe.strict_yaml import Document, parse
from kattn_cli.recipe.variants import no_such_variant, variant_names

YAML = (".yaml", ".yml")
LARGEST = 256 * 1024
"""Bytes of a recipe's file at most: a hundred times a usual one, and still read in seconds."""


@dataclass(frozen=True)
class Source:
    """A recipe's file and, where that has variants, one of them; as text what a command takes: ``my.yaml/rpc``."""

    path: Path
    variant: str | None = None

    def __str__(self) -> str:
        return str(self.path) if self.variant is None else f"{self.path}/{self.variant}"


def read_file(path: Path) -> Document:
    """Return the YAML of a recipe's file.

    Raises:
        RecipeError: if it cannot be read as text, or is too large to be a recipe.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise RecipeError(f"{path}: is no recipe: it is larger than {LARGEST >> 10} KiB")
        text = content.decode("utf-8")
    except FileNotFoundError:
        raise RecipeError(f"{path}: there is no such file") from None
    except OSError as error:
        raise RecipeError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise RecipeError(f"{path}: is not a text file in UTF-8 (byte {error.start})") from None
    return deepcopy(_parsed(text))


@lru_cache(maxsize=64)
def _parsed(text: str) -> Document:
    return parse(text)


def recipes_folder() -> Path:
    """Return where the shipped recipes lie: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parent / "recipes"


def shipped_recipes() -> list[str]:
    """Return the names of the shipped recipes, ``quickstart/softmax`` and so on."""
    return sorted(name for path in recipes_folder().rglob("*.yaml") for name in _names(path))


def _names(path: Path) -> Iterator[str]:
    document = read_file(path)
    variants = variant_names(document)
    if not variants:
        yield path.relative_to(recipes_folder()).with_suffix("").as_posix()
    for variant in variants:
        yield f"{document.data['name']}/{variant}"


def find_recipes(reference: str) -> list[Source]:
    """Return the recipes that ``reference`` means: of a file, of one of its variants, of a folder, or shipped ones.

    ``my.yaml`` means all variants of the file, ``my.yaml/rpc`` or ``my/rpc`` one of them.

    Raises:
        RecipeError: if there are none, with the nearest name.
    """
    shipped = recipes_folder() / reference
    for base in (Path(reference), shipped):
        if found := [*_whole(base)] or [*_variant(base)]:
            return found
    found = [Source(path, shipped.name) for path in shipped.parent.glob("*.yaml") if shipped.name in _variants(path)]
    if found:
        return found
    for file in (Path(reference).parent, Path(f"{Path(reference).parent}.yaml")):
        if file.is_file() and file.suffix in YAML:
            raise RecipeError(no_such_variant(str(file), read_file(file), Path(reference).name))
    names = shipped_recipes()
    hint = (
        did_you_mean(reference.removesuffix(".yaml"), names) or "; kattn list recipes shows those that come with kattn"
    )
    raise RecipeError(f"{reference}: there is no such recipe{hint}")


def _whole(base: Path) -> Iterator[Source]:
    """Yield all recipes of the file or the folder at ``base``."""
    file = base if base.is_file() else Path(f"{base}.yaml")
    if base.is_file() or (base.suffix not in YAML and file.is_file()):
        yield from _of_file(file)
    elif (base / "recipe.yaml").is_file():
        yield Source(base / "recipe.yaml")
    elif base.is_dir():
        for inside in sorted(base.glob("*.yaml")):
            yield from _of_file(inside)


def _of_file(path: Path) -> Iterator[Source]:
    variants = _variants(path)
    if not variants:
        yield Source(path)
    for variant in variants:
        yield Source(path, variant)


def _variant(base: Path) -> Iterator[Source]:
    """Yield the variant that ``base`` names: of ``my.yaml`` for ``my.yaml/rpc`` and for ``my/rpc``."""
    for file in (base.parent, Path(f"{base.parent}.yaml")):
        if file.suffix in YAML and file.is_file() and base.name in _variants(file):
            yield Source(file, base.name)


def _variants(path: Path) -> list[str]:
    """Return the names of a file's variants; none where it cannot be read, which is reported when it is loaded."""
    try:
        return variant_names(read_file(path))
    except RecipeError:
        return []
