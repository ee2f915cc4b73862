"""The operations of models whose runs do not say them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kattn_cli.errors import DataError, KattnError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.operations import model_flops
from kattn_cli.report.cost import Flops
from kattn_cli.runs.run import RECIPE, Run


def forward_flops(runs: Mapping[str, Run]) -> dict[str, Flops]:
    """Return operations of one sample of each run, under the same names; or why a recipe cannot be built here.

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
                counted[key] = Flops(float(model_flops(recipe, run.folder).flops))
            found[name] = counted[key]
        except KattnError as error:
            found[name] = Flops(why_not=_why(error, path))
    return found


def _why(error: KattnError, path: Path) -> str:
    """Return the first line of an error, without the recipe's path."""
    return " ".join(str(error).splitlines()[:1]).removeprefix(f"{path}: ")
