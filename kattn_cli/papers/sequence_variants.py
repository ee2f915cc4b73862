"""Which model of Primal-Attention's ablations a run on sequences is of, and where it stands in their grid."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kattn_cli.recipe.schema import Attention
from kattn_cli.runs.run import Run

PRIMAL = ("primal", "primal_plus")


def ablated(options: Mapping[str, Any]) -> list[str]:
    """What a layer of Primal-Attention is but the paper's own, in the words of the tables.

    ``e``: without r-scores (Table 8); ``data-independent``: its projections (Tables 11 and 12); ``exp``: its feature
    map (Remark 4.1).
    """
    parts = ["e"] if options.get("scores") == "e" else []
    parts += ["data-independent"] if options.get("projection") == "data-independent" else []
    return parts + (["exp"] if options.get("feature_map") == "exp" else [])


def variant(run: Run, model: str) -> str:
    """``model`` with :func:`ablated`, as ``primal e``, if it is of Primal-Attention, else itself.

    The projections of a decoder do not count, which has data-independent ones alone.
    """
    if model not in PRIMAL:
        return model
    options, encoder = _options(run)
    return " ".join([model, *(part for part in ablated(options) if encoder or part != "data-independent")])


def grid_place(run: Run, model: str) -> str:
    """``s=30 eta=0.1`` of a run of Primal. (Table 9), ``s=32`` of Primal.+DT (Table 10).

    Nothing of others, or where the recipe does not say.
    """
    options = _options(run)[0] if model in PRIMAL else {}
    if model == "primal" and {"s", "eta"} <= options.keys():
        return f"s={options['s']} eta={options['eta']:g}"
    acts = model == "primal_plus" and run.recipe["model"]["name"] == "decision_transformer"
    return f"s={options['s']}" if acts and "s" in options else ""


def _options(run: Run) -> tuple[dict[str, Any], bool]:
    """Those of the last layer, and whether the model is an encoder."""
    recipe = run.recipe
    model = recipe["model"]
    last = Attention(**recipe["attention"]).per_layer(model["depth"])[-1]
    return dict(last.options), model["name"] == "encoder"
