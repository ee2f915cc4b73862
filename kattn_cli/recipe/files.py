"""Where recipes lie: in files and folders of the user's, or shipped with kattn."""

from __future__ import annotations

from pathlib import Path

from kattn_cli.errors import RecipeError, did_you_mean


def recipes_folder() -> Path:
    """Where the shipped recipes lie: inside the wheel, or beside the package in a checkout."""
    package = Path(__file__).parents[1]
    inside = package / "recipes"
    return inside if inside.is_dir() else package.parent / "recipes"


def shipped_recipes() -> list[str]:
    """The names of the shipped recipes, ``quickstart/softmax`` and so on."""
    folder = recipes_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def find_recipes(reference: str) -> list[Path]:
    """The files that ``reference`` means: a file, a folder of recipes, or the name of shipped ones.

    Raises:
        RecipeError: if there are none, with the nearest name.
    """
    shipped = recipes_folder() / reference
    for candidate in (Path(reference), shipped):
        if candidate.is_file():
            return [candidate]
        if (candidate / "recipe.yaml").is_file():
            return [candidate / "recipe.yaml"]
        if candidate.is_dir() and (inside := sorted(candidate.glob("*.yaml"))):
            return inside
        if candidate.suffix not in (".yaml", ".yml") and Path(f"{candidate}.yaml").is_file():
            return [Path(f"{candidate}.yaml")]
    names = shipped_recipes()
    hint = (
        did_you_mean(reference.removesuffix(".yaml"), names) or "; kattn list recipes shows those that come with kattn"
    )
    raise RecipeError(f"{reference}: there is no such recipe{hint}")
