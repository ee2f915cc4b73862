"""The verdicts on claims: what each label says, and what all labels of a claim say together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from kattn_cli.papers import PAPERS
from kattn_cli.papers.claim import Claim, Estimated, Fact, Finding, Truth
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.paper import Paper
from kattn_cli.statistics.bound import Bounded, decide_bounds
from kattn_cli.statistics.two_way import samples
from kattn_cli.statistics.verdict import Decision, Question, Verdict, across, decide
from kattn_cli.tables.margins import STATED
from kattn_cli.tables.text import listed

NOT_AT_SCALE = "not tested at the paper's scale"
NOT_MEASURED = "not measured"
IN_PART = "in part"
"""Of a claim whose labels do not all say the same."""
TRUTHS = tuple(truth.value for truth in Truth)
ORDER = [*(verdict.value for verdict in Verdict), IN_PART, NOT_AT_SCALE, NOT_MEASURED, *TRUTHS]
"""Of verdicts, in tallies."""
ROUNDING = 1e-12
KEY = ["paper", "where", "claim"]
RULE = (
    "A comparison is of two models that were trained together. Its variance is pooled over everything in their folder "
    "(mechanism + seed), so that no low spread of a few seeds is rewarded; where both say which images were right, it "
    "is of seeds and images, crossed. It comes to one of five verdicts, in the direction of the claim: better, worse, "
    "equivalent within the margin, the paper's effect is excluded here, or undecided, with the smallest effect that "
    "could have been seen and the seeds that it would take. A number against a bound holds, does not hold, or is "
    "undecided. All that is at 5 %, after Holm's correction for the labels of a claim and Benjamini and Hochberg's for "
    "the claims of this page. A claim has a verdict where all its labels have the same; else it says for how many. "
    "What needs a scale that the runs do not come up to is not tested at the paper's scale, whatever they show. What "
    "is counted, or measured once on one machine, is a fact and gets no verdict. Margins, which are ours: "
    f"{listed(map(str, STATED))}."
)


def findings(evidence: Evidence, papers: Iterable[Paper] = PAPERS.values()) -> pd.DataFrame:
    """Return a row for each claim and each label: what was claimed, measured and found, and by which command.

    Columns: ``paper, where, claim, criterion, class`` (see :attr:`~kattn_cli.papers.claim.Claim.classed`), ``label,
    mean, low, high`` (95 % interval; of facts the range), ``seeds, images, model`` (of the variance), ``margin,
    p_value`` (two-sided, against the bound), ``p_holm`` (of the test that decided, after the correction for the labels
    of the claim), ``verdict, smallest_seen, seeds_needed, paper_number, reason, beside, command``.
    """
    return judged([(paper, claim) for paper in papers for claim in paper.claims], evidence)


def judged(asked_of: Sequence[tuple[Paper, Claim]], evidence: Evidence) -> pd.DataFrame:
    """Return the rows of :func:`findings` on the claims of one page."""
    return pd.DataFrame(list(_rows([(paper, claim, _pooled(claim.judge(evidence))) for paper, claim in asked_of])))


def _pooled(found: Sequence[Finding]) -> list[Finding]:
    """Return the findings on a claim, those on samples with their effects: all of them share one variance."""
    sampled = [one for one in found if isinstance(one, Estimated) and one.sample]
    effects = dict(zip(map(id, sampled), samples([one.sample for one in sampled]), strict=True))
    return [
        replace(one, effect=effects[id(one)]) if isinstance(one, Estimated) and one.sample else one for one in found
    ]


def _rows(claims: Sequence[tuple[Paper, Claim, Sequence[Finding]]]) -> Iterator[dict[str, Any]]:
    """Yield a row for each finding, or one that says that a claim was not measured."""
    families = [_to_be_judged(claim, found) for _, claim, found in claims]
    asked = [(claim, family) for (_, claim, _), family in zip(claims, families, strict=True) if family]
    decided = iter(across([_decide(claim, family) for claim, family in asked]))
    for (paper, claim, found), family in zip(claims, families, strict=True):
        decisions = dict(zip(map(id, family), next(decided) if family else [], strict=True))
        of_claim = {
            "paper": paper.title,
            "where": claim.where,
            "claim": claim.text,
            "criterion": claim.rule,
            "class": claim.classed,
        }
        for one in found or [Finding("")]:
            of_label = _row(claim, one, decisions.get(id(one))) if found else {"verdict": NOT_MEASURED}
            yield {**of_claim, **NOTHING, **of_label, "command": claim.command}


NOTHING: dict[str, Any] = {
    "label": "",
    "mean": math.nan,
    "low": math.nan,
    "high": math.nan,
    "seeds": 0,
    "images": 0,
    "model": "",
    "margin": math.nan,
    "p_value": math.nan,
    "p_holm": math.nan,
    "verdict": "",
    "smallest_seen": math.nan,
    "seeds_needed": math.nan,
    "paper_number": math.nan,
    "reason": "",
    "beside": "",
}
"""Of a row, in the order of its columns."""


def _to_be_judged(claim: Claim, found: Sequence[Finding]) -> list[Estimated]:
    estimated = [one for one in found if isinstance(one, Estimated)]
    return [one for one in estimated if one.effect is not None and not one.why and not _unmet(claim, one)]


def _unmet(claim: Claim, one: Finding) -> str:
    """Return what of the claim's scale the runs do not come up to, in words."""
    return claim.scale.unmet(one.reached) if claim.scale else ""


def _decide(claim: Claim, family: Sequence[Estimated]) -> Sequence[Decision]:
    """Return the decisions on the labels of a claim: comparisons by its margin, numbers against their bounds."""
    if claim.margin is None:
        return decide_bounds(
            [Bounded(one.effect, lower_is_better=one.below, bound=one.bound) for one in family if one.effect]
        )
    margin = claim.margin
    return decide(
        [Question(one.effect, margin.value, one.below, one.paper_number, margin.unit) for one in family if one.effect]
    )


def _row(claim: Claim, one: Finding, decision: Decision | None) -> dict[str, Any]:
    row: dict[str, Any] = {"label": one.label, "paper_number": one.paper_number, "beside": one.beside}
    if claim.margin:
        row["margin"] = claim.margin.value
    if isinstance(one, Fact):
        row |= {"mean": one.value, "low": one.low, "high": one.high, "seeds": one.seeds, "verdict": one.truth.value}
    if isinstance(one, Estimated):
        row |= _tested(one, decision)
    if unmet := _unmet(claim, one):
        row |= {"verdict": NOT_AT_SCALE, "reason": f"needs {unmet}"}
    return row


def _tested(one: Estimated, decision: Decision | None) -> dict[str, Any]:
    row: dict[str, Any] = {"verdict": Verdict.undecided.value, "reason": one.why}
    if effect := one.effect:
        low, high = effect.interval()
        row |= {"mean": effect.estimate, "low": low, "high": high, "seeds": effect.seeds, "images": effect.images}
        row["model"] = effect.model
    if decision and one.effect:
        row |= {"p_value": one.effect.p_apart(one.bound), "p_holm": decision.p_value}
        row |= {"verdict": decision.verdict.value, "reason": decision.sentence}
        row["smallest_seen"] = decision.smallest_seen
        row["seeds_needed"] = math.nan if decision.seeds_needed is None else decision.seeds_needed
    return row


def verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each claim, judged by :data:`RULE`.

    Columns: ``paper, where, claim, criterion, class, verdict`` (that of all its labels, or :data:`IN_PART`), ``labels``
    (how many), ``counts`` (of verdicts, in words), ``ours, theirs`` (our numbers and the paper's, in words),
    ``command``.

    Args:
        found: by :func:`findings`.
    """
    rows = []
    for key, part in found.groupby(KEY, sort=False):
        measured = part[part["verdict"] != NOT_MEASURED]
        counts = Counter(part["verdict"])
        rows.append(
            {
                **dict(zip(KEY, key, strict=True)),
                "criterion": part["criterion"].iloc[0],
                "class": part["class"].iloc[0],
                "verdict": next(iter(counts)) if len(counts) == 1 else IN_PART,
                "labels": len(measured),
                "counts": ", ".join(f"{word} {counts[word]}" for word in ORDER if counts[word]),
                "ours": _ours(measured),
                "theirs": _theirs(measured),
                "command": part["command"].iloc[0],
            }
        )
    return pd.DataFrame(rows)


def facts(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of :func:`findings` that are counted or measured once, and not judged."""
    return found[found["verdict"].isin(TRUTHS)]


def tested(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of :func:`findings` that have a verdict, or would need a larger scale."""
    return found[~found["verdict"].isin([NOT_MEASURED, *TRUTHS])]


def unmeasured(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each claim that was not measured."""
    return found[found["verdict"] == NOT_MEASURED]


def tally(found: pd.DataFrame) -> str:
    """Return how many claims came out how, facts apart: ``undecided 3, not measured 1. Facts: true 2.``"""
    if found.empty:
        return "none known."
    of_facts = found["verdict"].isin(TRUTHS)
    told, known = (_counted(found[of_kind]) for of_kind in (~of_facts, of_facts))
    return f"{told or 'none judged'}.{f' Facts: {known}.' if known else ''}"


def _counted(found: pd.DataFrame) -> str:
    counts = Counter(verdicts(found)["verdict"]) if len(found) else Counter()
    return ", ".join(f"{word} {counts[word]}" for word in ORDER if counts[word])


def words(row: pd.Series) -> str:
    """Return a claim's verdict: ``better``, ``in part: better 2, undecided 3``."""
    return f"{IN_PART}: {row['counts']}" if row["verdict"] == IN_PART else str(row["verdict"])


def measured_in_words(row: pd.Series) -> str:
    """Return the number of a finding with its interval: ``0.5 [0.1, 0.9]``."""
    if math.isnan(row["mean"]):
        return ""
    if math.isnan(row["low"]):
        seeds = "1 seed" if row["seeds"] == 1 else f"the same for {int(row['seeds'])} seeds"
        return f"{_short(row['mean'])} ({seeds})"
    if row["low"] == row["high"]:
        return _short(row["mean"])
    return f"{_short(row['mean'])} [{_short(row['low'])}, {_short(row['high'])}]"


def _short(number: float) -> str:
    """Return a number in three digits, and what rounding left of a 0 as 0."""
    return f"{0.0 if abs(number) < ROUNDING else number:.3g}"


def _ours(measured: pd.DataFrame) -> str:
    known = measured.dropna(subset="mean")
    if len(known) == 1:
        return f"{known['label'].iloc[0]} {measured_in_words(known.iloc[0])}"
    return ", ".join(f"{one['label']} {_short(one['mean'])}" for _, one in known.iterrows())


def _theirs(measured: pd.DataFrame) -> str:
    """Return the paper's number, once where it is the same for all labels."""
    known = measured.dropna(subset="paper_number")
    printed = {_short(number) for number in known["paper_number"]}
    if len(printed) == 1 and len(known) == len(measured):
        return printed.pop()
    return ", ".join(f"{one['label']} {_short(one['paper_number'])}" for _, one in known.iterrows())
