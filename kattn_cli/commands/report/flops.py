"""Operations of the models that were trained, counted from their recipes without weights and samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kattn_cli.costs.flops import model_flops_of
from kattn_cli.errors import DataError, KattnError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.loading import build
from kattn_cli.experiment.outline import outline
from kattn_cli.recipe.schema import Recipe
from kattn_cli.report.cost import Flops
from kattn_cli.runs.run import RECIPE, Run


def forward_flops(runs: Mapping[str, Run]) -> dict[str, Flops]:
    """Of one sample of each run's data, under the same names; why not, where its recipe cannot be built here.

    Equal models on equal data are counted once.
    """
    counted: dict[str, Flops] = {}
    found = {}
    for name, run in runs.items():
        path = run.folder / RECIPE
        try:
            if not path.is_file():
                raise DataError("there is no recipe")
            recipe = recipes.load(path, weights=False, data=False)
            key = recipe.model_dump_json(include={"data", "model", "attention"})
            if key not in counted:
                counted[key] = _count(recipe, run.folder)
            found[name] = counted[key]
        except KattnError as error:
            found[name] = Flops(why_not=_why(error, path))
    return found


def _count(recipe: Recipe, folder: Path) -> Flops:
    data = outline(recipe, folder)

    def sample() -> Any:
        return data.sample(1, "meta")

    return Flops(float(model_flops_of(lambda: build(recipe, data), sample).flops))


def _why(error: KattnError, path: Path) -> str:
    """Its first line, without the recipe's path."""
    return " ".join(str(error).splitlines()[:1]).removeprefix(f"{path}: ")
