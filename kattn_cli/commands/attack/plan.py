"""What ``kattn attack`` measures: which attacks, at which budgets, with which settings; and how long it may take."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor

from kattn_cli.attacks import ATTACKS, Attack, AttackSettings, Norm
from kattn_cli.attacks.ball import loss_gradient
from kattn_cli.errors import KattnError
from kattn_cli.models import Classifier

NORM_OPTIONS: dict[Norm, str] = {"linf": "--epsilon", "l2": "--epsilon-l2", "l1": "--epsilon-l1"}
_CHANGES_ALL = ("--norm", "--targeted", "--gradient-as")
"""Options without which an attack that lacks them would be another measurement."""
TRIED = 64
"""Images that the passes are timed on."""


@dataclass(frozen=True)
class Asked:
    """The options of the command line; None (or nothing) stands for each attack's own default.

    ``named``: whether the attacks were named one by one, so that an option which one of them lacks is a fault; else
    those that lack it stand aside. ``by_gradient``: whether only attacks that see gradients will do.
    """

    attacks: Sequence[str]
    named: bool = True
    budgets: Mapping[Norm, Sequence[float]] = field(default_factory=dict)
    norm: Norm | None = None
    steps: int | None = None
    relative_step: float | None = None
    restarts: int = 1
    targeted: bool = False
    by_gradient: bool = False


@dataclass(frozen=True)
class Planned:
    """One row to be measured."""

    attack: str
    settings: AttackSettings
    restarts: int = 1

    def identity(self) -> dict[str, Any]:
        """Return everything that makes it another measurement."""
        return {"attack": self.attack, **asdict(self.settings), "restarts": self.restarts}

    def stem(self, circumstances: Mapping[str, Any]) -> str:
        """Return a file name for this measurement under these circumstances, such as ``pgd_linf_0.015686_1f3a…``."""
        text = json.dumps({**self.identity(), **circumstances}, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode()).hexdigest()[:10]
        return f"{self.attack}_{self.settings.norm}_{self.settings.epsilon:.5g}_{digest}"


def plan(asked: Asked) -> list[Planned]:
    """Return the rows to be measured, attack by attack, in the order of the budgets.

    Raises:
        KattnError: if a named attack cannot do what is asked of it, or none of all can.
    """
    chosen = {name: ATTACKS[name] for name in asked.attacks}
    for option, can in _demands(asked).items():
        able = {name: attack for name, attack in chosen.items() if can(attack)}
        if not able or (asked.named and len(able) < len(chosen) and option.startswith(_CHANGES_ALL)):
            lacking = ", ".join(name for name in chosen if name not in able)
            others = ", ".join(name for name, attack in ATTACKS.items() if can(attack))
            raise KattnError(f"{option}: does not apply to {lacking}; it does to {others}")
        if option.startswith(_CHANGES_ALL):
            chosen = able
    planned = [one for name, attack in chosen.items() for one in _rows(name, attack, asked)]
    used = {one.settings.norm for one in planned}
    for norm in asked.budgets:
        if norm not in used:
            have = ", ".join(sorted({f"{one.attack} {one.settings.norm}" for one in planned}))
            none = f"none of the attacks asked for is in that norm ({have})"
            raise KattnError(f"{NORM_OPTIONS[norm]}: {none}; --norm {norm} changes it for those that know it")
    return planned


def _demands(asked: Asked) -> dict[str, Any]:
    """Return each option given that not every attack has, with the test of whether one has it."""
    demands: dict[str, Any] = {}
    if asked.norm:
        demands[f"--norm {asked.norm}"] = lambda attack: asked.norm in attack.norms
    if asked.targeted:
        demands["--targeted"] = lambda attack: attack.can_target
    if asked.by_gradient:
        demands["--gradient-as"] = lambda attack: attack.white_box
    if asked.restarts > 1:
        demands["--restarts"] = lambda attack: attack.can_restart
    if asked.steps:
        demands["--steps"] = lambda attack: attack.steps > 1
    if asked.relative_step:
        demands["--step-size"] = lambda attack: attack.steps > 1 and attack.relative_step > 0
    return demands


def _rows(name: str, attack: Attack, asked: Asked) -> list[Planned]:
    norm = asked.norm or attack.norms[0]
    own = attack.epsilons if norm == attack.norms[0] else ()
    budgets = tuple(asked.budgets.get(norm, ())) or own
    if not budgets:
        raise KattnError(f"{name} --norm {norm}: has no usual budget; give one with {NORM_OPTIONS[norm]}")
    steps, relative_step = attack.steps, attack.relative_step
    if steps > 1:
        steps = asked.steps or steps
        relative_step = (asked.relative_step or relative_step) if relative_step else 0.0
    restarts = asked.restarts if attack.can_restart else 1
    return [
        Planned(name, AttackSettings(norm, epsilon, steps, relative_step, asked.targeted), restarts)
        for epsilon in budgets
    ]


def seconds_an_image(model: Classifier, images: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return seconds of a forward pass and of the backward pass that follows it, an image."""
    images, labels = images[:TRIED], labels[:TRIED]

    @torch.no_grad()
    def forward() -> None:
        model(images)

    def both() -> None:
        loss_gradient(model, images, labels)

    times = []
    for run in (forward, both):
        run()
        _wait(images.device)
        started = time.perf_counter()
        run()
        _wait(images.device)
        times.append((time.perf_counter() - started) / len(images))
    return times[0], max(0.0, times[1] - times[0])


def estimate(planned: Sequence[Planned], images: int, passes: tuple[float, float]) -> dict[str, float]:
    """Return the seconds that each attack takes at most, all its budgets together; most take less.

    Args:
        passes: seconds of a forward and of a backward pass, an image.
    """
    seconds: dict[str, float] = {}
    for one in planned:
        need = ATTACKS[one.attack].passes(one.settings)
        an_image = need.forward * passes[0] + need.backward * passes[1]
        seconds[one.attack] = seconds.get(one.attack, 0.0) + images * one.restarts * an_image
    return seconds


def duration(seconds: float) -> str:
    """Write seconds as ``40 s``, ``12 min`` or ``3.5 h``."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)
