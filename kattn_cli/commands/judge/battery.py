"""The shipped studies with the candidate in them, and what they say of it."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kattn_cli.attention import attention_class
from kattn_cli.commands.judge.candidate import Candidate
from kattn_cli.studies.study import Arm, Measure, Study, find_study, load_study

DIGITS, RECALL = "judge/digits", "judge/recall"
STUDIES = (DIGITS, RECALL)
CANDIDATE, BASELINE = "candidate", "softmax"


@dataclass(frozen=True)
class Battery:
    """The studies of one judgement. ``left_out``: why a measure is not taken of the candidate."""

    studies: Sequence[Study]
    left_out: str = ""


def battery(candidate: Candidate, seeds: int) -> Battery:
    """Return the studies with the candidate in place of the one that they ship with, and the first ``seeds`` seeds."""
    decomposed = hasattr(attention_class(candidate.mechanism.name), "attention_matrix")
    studies = [_with(load_study(find_study(name)), name, candidate, seeds, decomposed) for name in STUDIES]
    why = "" if decomposed else "effective rank: not measured, since it has no attention_matrix"
    return Battery(studies, why)


def _with(study: Study, name: str, candidate: Candidate, seeds: int, decomposed: bool) -> Study:
    arm = study.arms[CANDIDATE]
    kept = [word for word in arm.overrides if not word.startswith(("name=", "attention."))]
    words = [arm.reference, f"name={name}/{candidate.label}", *kept, *candidate.overrides]
    arms = {**study.arms, CANDIDATE: Arm(recipe=shlex.join(words), about=candidate.name)}
    measures = {key: one if decomposed else _without_candidate(one, arms) for key, one in study.measures.items()}
    _, _, data = name.partition("/")
    return study.model_copy(
        update={
            "name": f"judge/{candidate.label}/{data}",
            "question": study.question.replace("the candidate", candidate.name),
            "seeds": list(range(seeds)),
            "arms": arms,
            "measures": measures,
        }
    )


def _without_candidate(measure: Measure, arms: Iterable[str]) -> Measure:
    """Return a measure of spectra with all arms but the candidate; any other as it is."""
    if measure.verb != "spectrum":
        return measure
    return measure.model_copy(update={"arms": [arm for arm in measure.arms or arms if arm != CANDIDATE]})
