"""What kind of a function a mechanism is: does order matter, how large are its outputs, when does it overflow."""

from __future__ import annotations

import torch

from kattn_cli.commands.judge.probes.finding import Finding, size
from kattn_cli.commands.judge.probes.subject import TOKENS, Subject, moved, outputs
from kattn_cli.training.seed import Stream, generator

LARGE = 1e3
"""How many times larger than standard normal inputs may get in float32 before outputs must not be numbers."""


def knows_the_order(subject: Subject) -> Finding:
    """Permute the tokens: outputs are permuted alike, unless places matter."""
    order = torch.randperm(TOKENS, generator=generator(0, Stream.PROBE, 7))
    module, x = subject.built(), subject.inputs()
    share = moved(outputs(module, x)[:, order], outputs(module, x[:, order]))
    what = "no: outputs are permuted with the tokens" if share <= subject.exact else "yes: permuted tokens move outputs"
    return Finding("Does the order of tokens matter to it?", "told", f"{what} ({size(share)})")


def size_of_outputs(subject: Subject) -> Finding:
    """Compare the outputs' size with the inputs', as the constructor leaves it, and with inputs ten times as large."""
    module, x = subject.untouched().to(subject.dtype), subject.inputs()
    one, ten = (outputs(module, factor * x).square().mean().sqrt().item() for factor in (1, 10))
    growth = f"{ten / one:.3g} times with inputs ten times as large" if one else "0 as its constructor leaves it"
    share = one / x.square().mean().sqrt().item()
    return Finding("How large are its outputs?", "told", f"{share:.3g} of the inputs' size; {growth}")


def overflows(subject: Subject) -> Finding:
    """Give inputs a thousand times as large, in float32: outputs and gradients must be numbers."""
    module = subject.untouched()
    x = (LARGE * subject.inputs()).float().requires_grad_()
    found = module(x)
    if found.requires_grad:
        found.sum().backward()
    gradients = [one.grad for one in (x, *module.parameters()) if one.grad is not None]
    bad = [what for what, tensors in (("outputs", [found]), ("gradients", gradients)) if not _finite(tensors)]
    what = f"{' and '.join(bad)} are no numbers" if bad else "outputs and gradients are numbers"
    return Finding.of("Does it overflow?", bool(bad), f"with inputs of size {LARGE:,.0f} {what}")


def _finite(tensors: list[torch.Tensor]) -> bool:
    return all(bool(one.isfinite().all()) for one in tensors)
