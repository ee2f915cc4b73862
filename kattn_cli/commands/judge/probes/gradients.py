"""Whether gradients are those of the function: attacks that follow wrong ones fail, and the model looks robust.

Athalye et al. (2018) call it gradient masking. L is a random weighted sum of the outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import torch
from torch import Tensor, nn

from kattn_cli.commands.judge.probes.finding import Finding, size
from kattn_cli.commands.judge.probes.subject import Subject, moved, outputs
from kattn_cli.training.seed import Stream, seed_torch

DIRECTIONS = 12
STEP = {torch.float64: 1e-7, torch.float32: 1e-2}
"""Of a finite difference, along directions whose entries are standard normal, as the inputs are."""
TOLERANCE = {torch.float64: 1e-4, torch.float32: 0.05}
FAR = 0.1
"""A step at which a function that is flat almost everywhere, such as rounding, has moved."""
MASKED = 0.1
"""The share of the slope over :data:`FAR` that a gradient must have at least."""


class _Function:
    """L of the inputs and all weights that are trained."""

    def __init__(self, subject: Subject) -> None:
        self.module = subject.built()
        self.names = [name for name, one in self.module.named_parameters() if one.requires_grad]
        self.at = [subject.inputs(), *(one.detach().clone() for one in self._weights())]
        self.direction = subject.inputs(1)

    def __call__(self, at: Sequence[Tensor]) -> Tensor:
        """Return L, ``()``."""
        seed_torch(0, Stream.PROBE, 1000)
        weights = dict(zip(self.names, at[1:], strict=True))
        return (torch.func.functional_call(self.module, weights, (at[0],)) * self.direction).sum()

    def gradients(self) -> list[Tensor]:
        """Return those of the inputs and of each weight; zeros where there is none."""
        leaves = [one.clone().requires_grad_() for one in self.at]
        value = self(leaves)
        if not value.requires_grad:
            return [torch.zeros_like(one) for one in leaves]
        found = torch.autograd.grad(value, leaves, allow_unused=True)
        return [torch.zeros_like(one) if grad is None else grad for one, grad in zip(leaves, found, strict=True)]

    @torch.no_grad()
    def slope(self, along: Sequence[Tensor], step: float) -> float:
        """Return the slope of L between one step back and one ahead along a direction."""
        ahead, back = ([one + sign * step * d for one, d in zip(self.at, along, strict=True)] for sign in (1, -1))
        return float(self(ahead) - self(back)) / (2 * step)

    def directions(self, subject: Subject, of: int | None = None) -> list[list[Tensor]]:
        """Return random directions of the inputs (0) alone, or of all."""
        return [
            [
                subject.inputs(100 * number + place, *one.shape) * (of is None or place == of)
                for place, one in enumerate(self.at)
            ]
            for number in range(DIRECTIONS)
        ]

    def _weights(self) -> list[nn.Parameter]:
        return [dict(self.module.named_parameters())[name] for name in self.names]


def gradient_is_right(subject: Subject) -> Finding:
    """Compare autograd with finite differences along random directions of inputs and weights."""
    question = "Are its gradients those of its outputs?"
    function = _Function(subject)
    gradients = function.gradients()
    found: list[tuple[float, str]] = []
    for of, what in ((0, "inputs"), (None, "inputs and weights")):
        along = function.directions(subject, of)
        slopes = [function.slope(one, STEP[subject.dtype]) for one in along]
        claimed = [_product(gradients, one) for one in along]
        scale = max(_rms(slopes), _rms(claimed), torch.finfo(torch.float32).tiny)
        errors = [abs(slope - claim) / scale for slope, claim in zip(slopes, claimed, strict=True)]
        found.append((median(errors), what))
    worst, what = max(found)
    wrong = worst > TOLERANCE[subject.dtype]
    why = "; something is detached, or replaced in the backward pass" if wrong else ""
    evidence = f"autograd is off from finite differences by {size(worst)} (median of {DIRECTIONS} directions of {what})"
    return Finding.of(question, wrong, evidence + why)


def gradient_is_whole(subject: Subject) -> Finding:
    """Look for gradients that are 0, or next to it, where a longer step moves the outputs: rounding, a maximum."""
    question = "Does it mask its gradients?"
    function = _Function(subject)
    gradients = function.gradients()
    dead = _dead(function, gradients, subject)
    along = function.directions(subject, 0)
    secants = _rms([function.slope(one, FAR) for one in along])
    claimed = _rms([_product(gradients, one) for one in along])
    share = claimed / secants if secants else 1.0  # outputs that do not depend on inputs have no gradient to mask
    evidence = f"the gradient is {size(share)} of the slope over a step of {FAR:g}"
    if dead:
        evidence += f"; exactly 0, though outputs move with them: {', '.join(dead)}"
    return Finding.of(question, bool(dead) or share < MASKED, evidence)


def _dead(function: _Function, gradients: Sequence[Tensor], subject: Subject) -> list[str]:
    """Return the inputs and weights whose gradients are all 0, and with which the outputs move."""
    names = ["the inputs", *function.names]
    found = []
    for place, (name, gradient) in enumerate(zip(names, gradients, strict=True)):
        if gradient.numel() and not gradient.any() and _moves(function, subject, place):
            found.append(name)
    return found


@torch.no_grad()
def _moves(function: _Function, subject: Subject, place: int) -> bool:
    x, module = function.at[0], function.module
    before, by = outputs(module, x), subject.inputs(50, *function.at[place].shape)
    if place == 0:
        return moved(before, outputs(module, x + by)) > subject.exact
    parameter = dict(module.named_parameters())[function.names[place - 1]]
    parameter.add_(by)
    after = outputs(module, x)
    parameter.sub_(by)
    return moved(before, after) > 1e-6  # more than what rounding leaves of weights that are used and change nothing


def _product(gradients: Sequence[Tensor], along: Sequence[Tensor]) -> float:
    return sum(float((gradient * one).sum()) for gradient, one in zip(gradients, along, strict=True))


def _rms(values: Sequence[float]) -> float:
    return (sum(value**2 for value in values) / len(values)) ** 0.5
