"""The settings of a collection, and the reading of its hyperparameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kattn_cli.errors import KattnError
from kattn_cli.recipe.strict_yaml import parse


@dataclass(frozen=True)
class CollectionSettings:
    """The settings that the files depend on.

    ``steps``: of training; ``transitions``: at least so many in each file but the replay's; the policy is evaluated
    over ``episodes`` episodes every ``evaluate_every`` steps; ``medium``: the share of the way from the random
    policy's return to the best's; ``hyperparameters``: of the algorithm, where they are not the usual ones.
    """

    environment: str
    algorithm: str = "sac"
    steps: int = 300_000
    transitions: int = 200_000
    evaluate_every: int = 10_000
    episodes: int = 10
    medium: float = 0.333
    seed: int = 0
    hyperparameters: Mapping[str, Any] = field(default_factory=dict)


def hyperparameters_of(overrides: Sequence[str]) -> dict[str, Any]:
    """Return the hyperparameters of ``key=value`` each.

    Raises:
        KattnError: naming every fault.
    """
    given: dict[str, Any] = {}
    faults: list[str] = []
    for override in overrides:
        key, equals, text = override.partition("=")
        value = parse(text)
        if not equals:
            faults.append(f"{override}: expected key=value, a hyperparameter such as learning_rate=1e-3")
        faults += [f"{key}: {fault.message}" for fault in value.faults]
        given[key] = value.data
    if faults:
        raise KattnError("\n".join(faults))
    return given
