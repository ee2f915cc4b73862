"""The attention of another recipe that the weights of a run are to be run as: its parameters are of the same names."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import yaml

from kattn_cli.errors import RecipeError
from kattn_cli.experiment import recipes
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.schema import Attention, Recipe


class OtherAttention(NamedTuple):
    """The ``attention`` section of the recipe of that name; ``option`` of the command line asked for it."""

    option: str
    recipe: str
    attention: Attention

    def __str__(self) -> str:
        return f"{self.option} {self.recipe}"

    def in_place_of(self, path: Path) -> Recipe:
        """Return the recipe at ``path`` with this attention.

        Raises:
            RecipeError: naming every fault, if they do not go together.
        """
        section = self.attention.model_dump()
        flow = yaml.safe_dump(section, default_flow_style=True, sort_keys=False, width=float("inf"), allow_unicode=True)
        try:
            return recipes.load(path, [f"attention={flow.strip()}"], weights=False)
        except RecipeError as error:
            raise RecipeError(f"{self}: {error}") from None


def other_attention(option: str, reference: str | None) -> OtherAttention | None:
    """Return the attention of the recipe that an option names, if it is given.

    Raises:
        RecipeError: if there is no such recipe, it has faults, or the name means several.
    """
    if reference is None:
        return None
    sources = find_recipes(reference)
    if len(sources) > 1:
        raise RecipeError(f"{option} {reference}: means several recipes, {', '.join(map(str, sources))}; name one")
    recipe = recipes.load(sources[0], weights=False, data=False)
    return OtherAttention(option, recipe.name, recipe.attention)
