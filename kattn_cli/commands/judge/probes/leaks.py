"""Whether outputs depend on what they must not: later tokens, other samples, earlier calls, padding."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from kattn_cli.commands.judge.probes.finding import Finding, size
from kattn_cli.commands.judge.probes.subject import TOKENS, Subject, moved, outputs
from kattn_cli.errors import RecipeError

CUTS = (0, TOKENS // 3, TOKENS // 2, TOKENS - 2)
"""The last tokens that stay as they are, when all after them change."""
PADDED = TOKENS // 4


def sees_the_future(subject: Subject) -> Finding:
    """Change the tokens after one: no output up to it may move, neither in ``eval`` mode nor in training."""
    question = "Does its causal form see the future?"
    if not subject.supports_causal:
        return Finding.unasked(question, "it has none: supports_causal is not set")
    try:
        module = subject.built(causal=True)
    except RecipeError as error:
        return Finding.unasked(question, f"it is not built: {error}")
    for training in (False, True):
        worst, cut = max((_of_the_future(module.train(training), subject, cut), cut) for cut in CUTS)
        where = f"token {cut}{' in training' if training else ''}"
        evidence = f"outputs up to {where} move by {size(worst)} of their size when the tokens after it change"
        if worst > subject.exact:
            return Finding.of(question, True, evidence)
    return Finding.of(question, False, evidence)


def _of_the_future(module: nn.Module, subject: Subject, cut: int) -> float:
    x, changed = subject.inputs(), subject.inputs()
    changed[:, cut + 1 :] = 3 * subject.inputs(1)[:, cut + 1 :]
    before, after = (outputs(module, one)[:, : cut + 1] for one in (x, changed))
    return moved(before, after)


def sees_other_samples(subject: Subject) -> Finding:
    """Change the other samples of a batch: the output of the first must not move."""
    x, changed = subject.inputs(), subject.inputs()
    changed[1:] = 3 * subject.inputs(1)[1:]
    module = subject.built()
    share = moved(outputs(module, x)[:1], outputs(module, changed)[:1])
    evidence = f"the output of a sample moves by {size(share)} when the others of its batch change"
    return Finding.of("Do other samples of the batch matter?", share > subject.exact, evidence)


@torch.no_grad()
def answers_again(subject: Subject) -> Finding:
    """Ask twice in ``eval`` mode, with another input between and other random numbers: the answer must be the same."""
    module, x = subject.built(), subject.inputs()
    answers: list[Tensor] = []
    for number in range(2):
        torch.manual_seed(number)
        answers.append(module(x).clone())
        module(5 * subject.inputs(1))
    share = moved(*answers)
    evidence = f"asked again after another input, its outputs move by {size(share)} of their size"
    return Finding.of("Does it answer otherwise when asked again?", share > subject.exact, evidence)


def sees_padding(subject: Subject) -> Finding:
    """Change what stands where the mask says that there is no token: no token's output may move."""
    question = "Does it see padding?"
    if not subject.takes_mask:
        return Finding.unasked(question, "forward takes no mask")
    module, x, changed = subject.built(), subject.inputs(), subject.inputs()
    mask = (torch.arange(TOKENS) < TOKENS - PADDED).expand(len(x), TOKENS)
    changed[:, TOKENS - PADDED :] = 3 * subject.inputs(1)[:, TOKENS - PADDED :]
    before, after = (outputs(module, one, mask)[:, : TOKENS - PADDED] for one in (x, changed))
    share = moved(before, after)
    evidence = f"outputs of tokens move by {size(share)} of their size when the padding changes"
    return Finding.of(question, share > subject.exact, evidence)
