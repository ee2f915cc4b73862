"""What an attack is asked to do, and the card by which the rest of kattn knows it. Never imports torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Literal, NamedTuple

Norm = Literal["linf", "l2", "l1"]

PAPER_EPSILONS = tuple(i / 255 for i in range(1, 7))
"""The ℓ∞ budgets of the RPC-Attention paper's Figure 3, in pixels."""


@dataclass(frozen=True)
class AttackSettings:
    """What one attack is run with.

    ``epsilon``: the budget in the units of the pixels, ``math.inf`` where the attack looks for the smallest
    perturbation. ``relative_step``: the step size as a share of ε, or as it is where ε is infinite.
    ``targeted``: the labels given to the attack are classes to be reached, not to be left.
    """

    norm: Norm
    epsilon: float
    steps: int
    relative_step: float
    targeted: bool = False

    @property
    def step_size(self) -> float:
        """Return the step in the units of the pixels."""
        return self.relative_step * (self.epsilon if math.isfinite(self.epsilon) else 1)


class Passes(NamedTuple):
    """Passes of the model that an attack takes an image, at most."""

    forward: float
    backward: float


@dataclass(frozen=True)
class Attack:
    """An attack's card: where its code is, what it can do, and its defaults.

    ``module``: the dotted name of its file, which holds ``perturb`` (see :class:`~kattn_cli.attacks.ball.Perturb`)
    and ``passes(settings)``, and is imported when either is asked for. ``norms``: those it knows, the default first.
    ``epsilons``: default budgets; an infinite one is of an attack that looks for the smallest perturbation.
    ``white_box``: it sees gradients. ``steps`` and ``relative_step``: 0 where it takes none, or sets its own.
    ``can_target``, ``can_restart``: whether ``--targeted`` and ``--restarts`` apply.
    """

    module: str
    description: str
    norms: tuple[Norm, ...]
    epsilons: tuple[float, ...]
    white_box: bool
    steps: int = 0
    relative_step: float = 0.0
    can_target: bool = False
    can_restart: bool = False

    @property
    def perturb(self) -> Callable[..., Any]:
        """Return the attack's function, importing its file."""
        return resolve_name(f"{self.module}:perturb")

    @property
    def passes(self) -> Callable[[AttackSettings], Passes]:
        """Return the function from settings to the passes of the model that the attack takes."""
        return resolve_name(f"{self.module}:passes")

    @property
    def needs_budget(self) -> bool:
        """Return whether ε must be finite."""
        return all(math.isfinite(epsilon) for epsilon in self.epsilons)

    @property
    def access(self) -> str:
        """Return what the attack sees of the model: ``white-box`` or ``black-box``."""
        return "white-box" if self.white_box else "black-box"

    @property
    def schedule(self) -> str:
        """Return ``20 steps of 0.15 ε``, or nothing where the attack takes no steps."""
        unit = "ε" if self.needs_budget else "pixels"
        step = f" of {self.relative_step:g} {unit}" if self.relative_step else ""
        return f"{self.steps:,} step{'s' * (self.steps > 1)}{step}" if self.steps else ""
