"""SPSA, gradient-free ascent by simultaneous perturbation (Uesato et al., 2018), ℓ∞.

The RPC-Attention paper, Appendix A.2: CleverHans, 40 steps, ε = 0.1. The rest are CleverHans's defaults: 128
evaluations a step as ± pairs, the margin loss, Adam from a uniformly random start, and a learning rate and a
perturbation for the estimate of 0.01 each, which we take as shares of ε. As there, no early stop, and what is evaluated
around an image may leave [0, 1].

CleverHans's PyTorch program (4.0) differs from its TensorFlow one, which we follow: it takes 128 pairs instead of
evaluations, and evaluates at 2x ± δ instead of at the perturbed image ± δ, so that its estimate never sees where the
attack is. Rows of a paper that ran it are of a weaker attack.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.attacks import AttackSettings, Passes
from kattn_cli.attacks.ball import Model, project, require, uniform_in_ball

PAIRS = 64
RELATIVE_DELTA = 0.1
"""Size of the perturbations for the estimate, as a share of ε."""
CHUNK = 512
"""Images that the model sees at once, or one pair of perturbations of the batch where that is more."""


@torch.no_grad()
def perturb(
    model: Model, images: Tensor, labels: Tensor, settings: AttackSettings, generator: torch.Generator
) -> Tensor:
    """Take ``steps`` of Adam down the estimated gradient of the margin, each projected onto the ball and onto [0, 1].

    Raises:
        KattnError: for another norm or an infinite ε.
    """
    require("spsa", settings)
    adversarial = project(images + uniform_in_ball(images, settings, generator), images, settings)
    optimizer = torch.optim.Adam([adversarial], lr=settings.step_size)
    delta = RELATIVE_DELTA * settings.epsilon
    for _ in range(settings.steps):
        gradient = _estimate(model, adversarial, labels, delta, generator)
        adversarial.grad = gradient.neg_() if settings.targeted else gradient
        optimizer.step()
        adversarial.copy_(project(adversarial, images, settings))
    adversarial.grad = None
    return adversarial


def margin(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the logit of the label less the highest other, ``(B,)``."""
    column = labels[:, None]
    others = logits.scatter(1, column, -torch.inf).amax(1)
    return logits.gather(1, column).squeeze(1) - others


def random_signs(images: Tensor, generator: torch.Generator) -> Tensor:
    """Return -1 or 1, each with probability ½, of the images' shape and type."""
    draw = torch.randint(2, images.shape, generator=generator, dtype=torch.int8)
    return draw.mul_(2).sub_(1).to(images)


def _estimate(model: Model, images: Tensor, labels: Tensor, delta: float, generator: torch.Generator) -> Tensor:
    """Estimate each image's gradient of the margin: the mean of (f(x + δs) - f(x - δs)) / 2δ · s over random s."""
    gradient = torch.zeros_like(images)
    at_once = max(1, CHUNK // (2 * len(images)))
    for first in range(0, PAIRS, at_once):
        pairs = min(at_once, PAIRS - first)
        signs = torch.stack([random_signs(images, generator) for _ in range(pairs)])
        around = torch.cat([images + delta * signs, images - delta * signs]).flatten(0, 1)
        above, below = margin(model(around), labels.repeat(2 * pairs)).view(2, pairs, len(images))
        gradient += torch.einsum("pb,pbchw->bchw", above - below, signs)
    return gradient / (2 * delta * PAIRS)


def passes(settings: AttackSettings) -> Passes:
    """Return two forward passes a pair of perturbations and step."""
    return Passes(2 * PAIRS * settings.steps, 0)
