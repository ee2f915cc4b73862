"""Principal Attention Pursuit by itself (§3): whether it converges, and what it separates."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim, Finding, Kind, Truth, against_bound, over_seeds
from kattn_cli.papers.evidence import Evidence, by_seed, shown

AUDIT = "kattn audit audit"
FOUND = 0.5
"""F1 from which on outliers count as found; our bound."""
THRESHOLD = 16
"""Of S with λ = 4, in mean|k|: what is greater is in S after the first step, whatever the keys are."""


def _converges(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/pursuit"):
        at_end = rows[rows["iteration"] == rows["recipe_iterations"]]
        own = at_end[at_end["convention"] == at_end["recipe_convention"]]
        longest = rows[rows["iteration"] == rows["iteration"].max()]
        each = ", ".join(f"{name} {shown(by_seed(part, 'residual'))}" for name, part in longest.groupby("convention"))
        count = own["recipe_iterations"].iloc[0]
        beside = f"after the recipe's {count}; after {longest['iteration'].iloc[0]}: {each}"
        found.append(against_bound(label, by_seed(own, "residual"), below=0.05, beside=beside))
    return found


def _separates(size: int, evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/planted"):
        chosen = rows[rows["size"] == size]
        share = chosen["share"].iloc[0]
        each = []
        for method, part in chosen.groupby("method", sort=False):
            precision, recall = by_seed(part, "precision"), by_seed(part, "recall")
            each.append(f"{method} {shown(precision, 2)} and {shown(recall, 2)}")
        own = chosen[chosen["method"] == "paper"]
        score = own.assign(f1=2 * own["precision"] * own["recall"] / (own["precision"] + own["recall"]).clip(1e-12))
        beside = f"precision and recall: {', '.join(each)}; precision by chance {share:g}"
        scores = by_seed(score.fillna({"f1": 0.0}), "f1")
        if size > THRESHOLD:
            truth = Truth.true if min(scores.values()) > FOUND else Truth.false
            found.append(over_seeds(label, list(scores.values()), beside, truth=truth))
        else:
            found.append(against_bound(label, scores, above=FOUND, beside=beside))
    return found


CLAIMS = [
    Claim(
        "Algorithm 1",
        "A few iterations of Principal Attention Pursuit solve k = L + S.",
        "‖k − L − S‖ / ‖k‖ after the recipe's iterations; holds below 0.05, our bound",
        AUDIT,
        _converges,
    ),
    *(
        Claim(
            "§3",
            f"The pursuit separates sparse corruption of the keys into S: outliers of {size} mean|k|.",
            f"F1 of S's support against outliers on 5 % of the entries, convention paper; holds above {FOUND:g}, our "
            f"bound. Its first threshold, with λ = 4, is {THRESHOLD} mean|k|"
            + (", so that it is true by construction" if size > THRESHOLD else ""),
            AUDIT,
            partial(_separates, size),
            kind=Kind.arithmetic if size > THRESHOLD else Kind.statistical,
        )
        for size in (4, 32)
    ),
]
