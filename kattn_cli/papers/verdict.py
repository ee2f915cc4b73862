"""The verdicts on claims: what each label says, and what all labels of a claim say together."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import pandas as pd

from kattn_cli.papers import PAPERS
from kattn_cli.papers.claim import Claim, Finding, Verdict
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.paper import Paper
from kattn_cli.statistics.multiplicity import holm
from kattn_cli.tables.comparison import LEVEL

MIXED = "mixed"
ROUNDING = 1e-12
KEY = ["paper", "where", "claim"]
COUNTED = {"holds": Verdict.holds, "does_not_hold": Verdict.does_not_hold, "cannot_be_told": Verdict.cannot_be_told}
RULE = (
    "A label of a claim holds, or does not, where its 95 % interval (Student-t over seeds) is on one side of the bound "
    "that the criterion names and the p-value of the same t test, after Holm's correction for the labels of the claim, "
    "is below 0.05; else, and with fewer than three seeds or one number for all of them, it cannot be told at this "
    "size. Nothing is corrected for the number of claims. Costs are single measurements on one machine and have no "
    "p-value. A claim holds, or does "
    "not, where at least one of its labels is told and all that are agree; it is mixed where they disagree, and cannot "
    "be told where none is."
)


def findings(evidence: Evidence, papers: Iterable[Paper] = PAPERS.values()) -> pd.DataFrame:
    """Return a row for each claim and each label: what was claimed, measured and found, and by which command.

    Columns: ``paper, where, claim, criterion, label, mean, low, high, seeds, p_value, p_holm`` (after Holm's correction
    over the labels of the claim), ``verdict`` (by ``p_holm``), ``paper_number, beside, command``.
    """
    claims = [(paper, claim) for paper in papers for claim in paper.claims]
    return corrected(pd.DataFrame([row for paper, claim in claims for row in rows_of(paper, claim, evidence)]))


def rows_of(paper: Paper, claim: Claim, evidence: Evidence) -> Iterator[dict[str, object]]:
    """Yield a row for each label that a claim was judged for, or one that says that it was not measured."""
    nothing = Finding("", math.nan, math.nan, math.nan, 0, Verdict.not_measured)
    for found in claim.judge(evidence) or [nothing]:
        yield {
            "paper": paper.title,
            "where": claim.where,
            "claim": claim.text,
            "criterion": claim.criterion,
            "label": found.label,
            "mean": found.mean,
            "low": found.low,
            "high": found.high,
            "seeds": found.seeds,
            "p_value": found.p_value,
            "p_holm": math.nan,
            "verdict": found.verdict.value,
            "paper_number": found.paper_number,
            "beside": found.beside,
            "command": claim.command,
        }


def corrected(found: pd.DataFrame) -> pd.DataFrame:
    """Return the rows with ``p_holm`` over the labels of each claim; what is not below the level is undecided."""
    adjusted = found.groupby(KEY, sort=False)["p_value"].transform(lambda values: holm(values))
    decided = found["verdict"].isin([Verdict.holds.value, Verdict.does_not_hold.value])
    lost = decided & (adjusted >= LEVEL)
    verdicts = found["verdict"].where(~lost, Verdict.cannot_be_told.value)
    return found.assign(p_holm=adjusted, verdict=verdicts)


def verdicts(found: pd.DataFrame) -> pd.DataFrame:
    """Return a row for each claim, judged by :data:`RULE`.

    Columns: ``paper, where, claim, criterion, verdict`` (``mixed`` beside those of
    :class:`~kattn_cli.papers.claim.Verdict`), ``labels, holds, does_not_hold, cannot_be_told`` (how many), ``ours,
    theirs`` (our numbers and the paper's, in words), ``command``.

    Args:
        found: by :func:`findings`.
    """
    rows = []
    for key, part in found.groupby(KEY, sort=False):
        measured = part[part["verdict"] != Verdict.not_measured.value]
        counts = {name: int((measured["verdict"] == verdict.value).sum()) for name, verdict in COUNTED.items()}
        rows.append(
            {
                **dict(zip(KEY, key, strict=True)),
                "criterion": part["criterion"].iloc[0],
                "verdict": _verdict(len(measured), **counts),
                "labels": len(measured),
                **counts,
                "ours": _ours(measured),
                "theirs": _theirs(measured),
                "command": part["command"].iloc[0],
            }
        )
    return pd.DataFrame(rows)


def words(row: pd.Series) -> str:
    """Return a claim's verdict: ``holds``, ``mixed (holds for 2 of 5)``."""
    if row["verdict"] != MIXED:
        return str(row["verdict"])
    return f"{MIXED} (holds for {row['holds']} of {row['labels']})"


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


def _verdict(labels: int, holds: int, does_not_hold: int, cannot_be_told: int) -> str:
    if not labels:
        return Verdict.not_measured.value
    if holds and does_not_hold:
        return MIXED
    if holds or does_not_hold:
        return (Verdict.holds if holds else Verdict.does_not_hold).value
    return Verdict.cannot_be_told.value


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
