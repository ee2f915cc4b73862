"""Training, as ``kattn train`` does it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from kattn_cli.api.recorded import recorded
from kattn_cli.api.runs import RESULTS, Run
from kattn_cli.commands.train.train import train as train_recipes
from kattn_cli.device import resolve_device
from kattn_cli.recipe.schema import flat


@recorded
def train(
    recipe: str | Path,
    *,
    seed: int | Sequence[int] | None = None,
    results: str | Path = RESULTS,
    device: str = "auto",
    resume: bool = False,
    **overrides: Any,
) -> list[Run]:
    """Train a recipe, and return its runs, one for each seed.

    Args:
        recipe: the name of a shipped one, or a file; of a folder of recipes, all are trained.
        seed: one or several, in place of the recipe's own.
        results: where the runs are kept.
        device: ``auto``, ``cpu``, ``cuda`` or ``cuda:1``.
        resume: go on with runs that were interrupted, and leave finished ones as they are.
        overrides: sections of the recipe: ``train={"epochs": 5}``, ``attention="tssa"``.

    Raises:
        KattnError: if the recipe or an override is wrong; nothing is trained then.

    >>> kattn.train("quickstart/rpc", seed=0, train={"epochs": 5})
    """
    words = [f"{key}={_as_text(value)}" for key, value in flat(overrides).items()]
    seeds = [] if seed is None else [seed] if isinstance(seed, int) else list(seed)
    done = train_recipes(
        [str(recipe)], words, seeds, results=Path(results), device=resolve_device(device), resume=resume
    )
    return [Run(one.folder) for one in done]


def _as_text(value: Any) -> str:
    """Return a value as the command line takes it."""
    return yaml.safe_dump(value, default_flow_style=True, width=10**6).removesuffix("\n...\n").strip()
