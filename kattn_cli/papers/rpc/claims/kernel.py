"""RPC-Attention's paper on attention as kernel PCA (§2): the projection error, the eigenvectors, the values."""

from __future__ import annotations

import math
from functools import partial

from kattn_cli.audit.items.projection_error.draw import log_j
from kattn_cli.papers.evidence import Evidence, by_seed, first, last, less, told
from kattn_cli.papers.finding import Claim, Finding, judged

AUDIT = "kattn audit audit"


def _falls_logged(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/projection_error"):
        logged = rows[rows["convention"] == "reference"]
        begin, end = (by_seed(log_j(part, "epoch"), "ln_j") for part in (first(logged), last(logged)))
        if logged["epoch"].nunique() > 1:
            beside = f"log J from {told(begin)} to {told(end)}"
            if any(map(math.isnan, [*begin.values(), *end.values()])):
                beside += "; not a number where J ≤ 0 in a layer"
            found.append(judged(label, less(end, begin), below=0, beside=beside))
    return found


def _falls(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/projection_error"):
        paper = rows[rows["convention"] == "paper"]
        begin, end = first(paper), last(paper)
        if paper["epoch"].nunique() > 1:
            columns = {"J": "j_proj", "‖φ(q)‖²": "feature_norm", "‖h‖²": "projection_norm"}
            change = {name: [by_seed(part, column) for part in (begin, end)] for name, column in columns.items()}
            beside = ", ".join(f"{name} from {told(one)} to {told(other)}" for name, (one, other) in change.items())
            found.append(judged(label, less(*change["J"][::-1]), below=0, beside=beside))
    return found


def _is_an_error(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/projection_error"):
        end = last(rows[rows["convention"] == "paper"])
        feature, projection = (by_seed(end, column) for column in ("feature_norm", "projection_norm"))
        beside = f"‖φ(q)‖² {told(feature)}, ‖h‖² {told(projection)}"
        found.append(judged(label, by_seed(end, "j_proj"), above=0, beside=beside))
    return found


def _differences_are_small(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/eigenvectors"):
        end = last(rows)
        ratios = {
            name: {
                seed: gap / by_seed(part, "eigenvalue_mean")[seed]
                for seed, gap in by_seed(part, "difference_mean").items()
            }
            for name, part in end.groupby("values")
        }
        learned = end[end["values"] == "learned"]
        gap, middle, size = (
            by_seed(learned, one) for one in ("difference_mean", "difference_median", "eigenvalue_mean")
        )
        beside = (
            f"mean of the differences {told(gap)}, their median {told(middle)}, mean of the eigenvalues {told(size)}; "
            f"with random values the ratio is {told(ratios['random'])}"
        )
        found.append(judged(label, ratios["learned"], below=0.1, beside=beside))
    return found


def _are_eigenvectors(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/eigenvectors"):
        learned, random = (rows[rows["values"] == name] for name in ("learned", "random"))
        beside = (
            f"before training {told(by_seed(first(learned), 'residual'))}, "
            f"random values {told(by_seed(last(random), 'residual'))}"
        )
        found.append(judged(label, by_seed(last(learned), "residual"), below=0.1, beside=beside))
    return found


def _aligned(measure: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/alignment"):
        part = rows[rows["measure"] == measure]
        end = last(part)
        beside = (
            f"before training {told(by_seed(first(part), 'value'))}; tokens permuted "
            f"{told(by_seed(end, 'null_mean'))} (95 %: {told(by_seed(end, 'null_high'))}); "
            f"reproduction study: at most {part['published'].iloc[0]:g}"
        )
        found.append(judged(label, by_seed(end, "value"), above=0.9, beside=beside))
    return found


CLAIMS = [
    Claim(
        "§2.2.1, Figure 1",
        "Training minimises the projection error J_proj, as the authors' program logs it.",
        "change of log J_proj from the first to the last epoch, convention reference; holds below 0",
        AUDIT,
        _falls_logged,
    ),
    Claim(
        "§2.2.1, eq. 13",
        "Training minimises the projection error J_proj of eq. 13.",
        "change of J_proj from the first to the last epoch, convention paper; holds below 0",
        AUDIT,
        _falls,
    ),
    Claim(
        "Theorem 1, eq. 13",
        "The output h is the projection of φ(q), so that J_proj = ‖φ(q)‖² − ‖h‖² is an error.",
        "J_proj after training; an error is not negative: holds above 0",
        AUDIT,
        _is_an_error,
    ),
    Claim(
        "§2.2.2, Figures 2 and 5",
        "The entries of γ = K̃ â / (N â) are constant: their differences are far below the eigenvalues.",
        "mean |γᵢ − γⱼ| over the mean of the eigenvalues; holds below 0.1",
        AUDIT,
        _differences_are_small,
    ),
    Claim(
        "§2.2.2",
        "The values, taken back to coefficients â, are eigenvectors of the centred Gram matrix.",
        "‖K̃â − ρâ‖ / ‖K̃â‖, 0 for an eigenvector; holds below 0.1",
        AUDIT,
        _are_eigenvectors,
    ),
    *(
        Claim(
            "Theorem 1, §2.2",
            f"The learned values converge to those of Theorem 1 ({told_as}).",
            f"{told_as} after training, 1 for the same values; holds above 0.9",
            AUDIT,
            partial(_aligned, measure),
        )
        for measure, told_as in (
            ("cosine", "|cosine| of columns, best assignment"),
            ("linear_cka", "linear CKA"),
            ("kernel_cka", "kernel CKA"),
        )
    ),
]
