"""Questions to a mechanism alone, untrained: whether what it promises is so, and whether it is what it says.

Each is a function from a :class:`~kattn_cli.commands.judge.probes.subject.Subject` to one
:class:`~kattn_cli.commands.judge.probes.finding.Finding`. To add one, write it and put it into :data:`PROBES`.
"""

from __future__ import annotations

from collections.abc import Callable

from kattn_cli.commands.judge.probes.finding import Finding
from kattn_cli.commands.judge.probes.gradients import gradient_is_right, gradient_is_whole
from kattn_cli.commands.judge.probes.leaks import answers_again, sees_other_samples, sees_padding, sees_the_future
from kattn_cli.commands.judge.probes.likeness import is_known, matrix_is_softmaxs
from kattn_cli.commands.judge.probes.nature import knows_the_order, overflows, size_of_outputs
from kattn_cli.commands.judge.probes.subject import Subject

PROBES: tuple[Callable[[Subject], Finding], ...] = (
    sees_the_future,
    sees_other_samples,
    answers_again,
    sees_padding,
    gradient_is_right,
    gradient_is_whole,
    is_known,
    matrix_is_softmaxs,
    overflows,
    knows_the_order,
    size_of_outputs,
)


def probed(subject: Subject) -> list[Finding]:
    """Return what every probe says.

    Raises:
        RecipeError: if the mechanism does not fit the contract, or raises an error, in one line.
    """
    return [probe(subject) for probe in PROBES]
