"""The environments that papers call by a short name: their ids in gymnasium, and what a return in them is worth.

The reference returns are D4RL's (Fu et al. 2020, arXiv:2004.07219; ``REF_MIN_SCORE`` and ``REF_MAX_SCORE`` of its
``d4rl/infos.py``): of a random policy, and of a soft actor-critic at the end of its training. They, and all published
scores, are of gym's version 2 with mujoco 2.1; here an environment is gymnasium's version 5, whose physics and rewards
differ a little (its release notes say where), so that our scores are near those that are published, not the same.
"""

from __future__ import annotations

from dataclasses import dataclass

RETURN_SCALE = 1000.0
"""What Decision Transformer divides returns by."""


@dataclass(frozen=True)
class Environment:
    """``id``: in gymnasium; the numbers of a state and of an action; the returns of a random policy and of an expert.

    ``targets``: Decision Transformer's (Chen et al. 2021, arXiv:2106.01345, its published program), the best first.
    """

    id: str
    states: int
    actions: int
    random_return: float
    expert_return: float
    targets: tuple[float, float]


ENVIRONMENTS = {
    "halfcheetah": Environment("HalfCheetah-v5", 17, 6, -280.178953, 12135.0, (12000.0, 6000.0)),
    "hopper": Environment("Hopper-v5", 11, 3, -20.272305, 3234.3, (3600.0, 1800.0)),
    "walker2d": Environment("Walker2d-v5", 17, 6, 1.629008, 4592.3, (5000.0, 2500.0)),
}
CORRIDOR = "kattn/Corridor-v0"
"""Our own, with a known optimum; see :mod:`kattn_cli.environments.scripted`."""
IDS = {**{name: one.id for name, one in ENVIRONMENTS.items()}, "corridor": CORRIDOR}
"""In gymnasium, by short names."""


def short_name(environment: str) -> str:
    """Return ``hopper`` for ``hopper``, ``Hopper-v5`` and ``hopper-medium-v2``; any other name as it is."""
    first = environment.partition("-")[0].partition("_")[0].lower()
    return first if first in ENVIRONMENTS else environment


def environment_id(environment: str) -> str:
    """Return gymnasium's id of the environment: ``Hopper-v5`` for ``hopper``, and any other name as it is."""
    return IDS.get(environment.lower(), environment)


def normalised_score(environment: str, mean_return: float) -> float | None:
    """Return ``100 (R - random) / (expert - random)``: 0 for a random policy's return, 100 for D4RL's expert's.

    None for an environment without reference returns.
    """
    known = ENVIRONMENTS.get(short_name(environment))
    if known is None:
        return None
    return 100 * (mean_return - known.random_return) / (known.expert_return - known.random_return)


def target_returns(environment: str) -> tuple[float, ...]:
    """Return what Decision Transformer is asked for, the best return first; none where no paper names any."""
    known = ENVIRONMENTS.get(short_name(environment))
    return known.targets if known else ()
