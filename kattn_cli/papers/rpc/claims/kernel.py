"""RPC-Attention's paper on attention as kernel PCA (§2): the projection error, the eigenvectors, the values, Scaled
Attention."""

from __future__ import annotations

import math
from functools import partial
from statistics import fmean

import pandas as pd

from kattn_cli.audit.items.projection_error.draw import log_j
from kattn_cli.papers.claim import Claim, Estimated, Finding, against_bound
from kattn_cli.papers.evidence import Evidence, by_seed, first, last, less, shown
from kattn_cli.papers.pairs import Pair
from kattn_cli.tables.margins import CLEAN, LOST

AUDIT = "kattn audit audit"


def _falls_logged(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/projection_error"):
        logged = rows[rows["convention"] == "reference"]
        begin, end = (by_seed(log_j(part, "epoch"), "ln_j") for part in (first(logged), last(logged)))
        if logged["epoch"].nunique() > 1:
            beside = f"log J from {shown(begin)} to {shown(end)}"
            if any(map(math.isnan, [*begin.values(), *end.values()])):
                beside += "; not a number where J ≤ 0 in a layer"
            found.append(against_bound(label, less(end, begin), below=0, beside=beside))
    return found


def _falls(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/projection_error"):
        paper = rows[rows["convention"] == "paper"]
        begin, end = first(paper), last(paper)
        if paper["epoch"].nunique() > 1:
            columns = {"J": "j_proj", "‖φ(q)‖²": "feature_norm", "‖h‖²": "projection_norm"}
            change = {name: [by_seed(part, column) for part in (begin, end)] for name, column in columns.items()}
            beside = ", ".join(f"{name} from {shown(one)} to {shown(other)}" for name, (one, other) in change.items())
            found.append(against_bound(label, less(*change["J"][::-1]), below=0, beside=beside))
    return found


def _is_an_error(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/projection_error"):
        end = last(rows[rows["convention"] == "paper"])
        feature, projection = (by_seed(end, column) for column in ("feature_norm", "projection_norm"))
        beside = f"‖φ(q)‖² {shown(feature)}, ‖h‖² {shown(projection)}"
        found.append(against_bound(label, by_seed(end, "j_proj"), above=0, beside=beside))
    return found


def _differences_are_small(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/eigenvectors"):
        by_values = {str(name): _relative(part) for name, part in last(rows).groupby("values")}
        end = last(rows)
        learned = end[end["values"] == "learned"]
        gap, middle, size = (
            by_seed(learned, one) for one in ("difference_mean", "difference_median", "eigenvalue_mean")
        )
        beside = (
            f"{10 ** fmean(by_values['learned'].values()):.3g} times, with random values "
            f"{10 ** fmean(by_values['random'].values()):.3g}; mean of the differences {shown(gap)}, their median "
            f"{shown(middle)}, mean of the eigenvalues {shown(size)}"
        )
        found.append(against_bound(label, by_values["learned"], below=-1, beside=beside))
    return found


def _relative(rows: pd.DataFrame) -> dict[int, float]:
    """Return by seed log₁₀ of the mean difference over the mean eigenvalue: a ratio, whose tail is heavy."""
    sizes = by_seed(rows, "eigenvalue_mean")
    return {seed: math.log10(gap / sizes[seed]) for seed, gap in by_seed(rows, "difference_mean").items()}


def _are_eigenvectors(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/eigenvectors"):
        learned, random = (rows[rows["values"] == name] for name in ("learned", "random"))
        beside = (
            f"before training {shown(by_seed(first(learned), 'residual'))}, "
            f"random values {shown(by_seed(last(random), 'residual'))}"
        )
        found.append(against_bound(label, by_seed(last(learned), "residual"), below=0.1, beside=beside))
    return found


def _aligned(measure: str, evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/alignment"):
        part = rows[rows["measure"] == measure]
        end = last(part)
        beside = (
            f"before training {shown(by_seed(first(part), 'value'))}; tokens permuted "
            f"{shown(by_seed(end, 'null_mean'))} (95 %: {shown(by_seed(end, 'null_high'))}); "
            f"reproduction study: at most {part['published'].iloc[0]:g}"
        )
        found.append(against_bound(label, by_seed(end, "value"), above=0.9, beside=beside))
    return found


def _scaled(column: str, evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, scaled, softmax in evidence.pairs("metrics", "scaled*", "softmax"):
        ours, theirs = (_over_training(rows, column) for rows in (scaled, softmax))
        peers = {name: _over_training(rows, column) for name, rows in evidence.trained_with("metrics", label)}
        pair = Pair(label, str(softmax["label"].iloc[0]), ours, theirs, peers)
        below = column == "loss"
        found.append(Estimated(label, pair.beside(4), effect=pair.effect(), below=below, why=pair.why))
    return found


def _over_training(rows: pd.DataFrame, column: str) -> dict[int, float]:
    """Return the mean over all epochs by seed, on what is not trained on; nothing without the column."""
    return by_seed(rows[rows["split"] != "train"], column) if column in rows else {}


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
        "log₁₀ of mean |γᵢ − γⱼ| over the mean of the eigenvalues; holds below −1, a tenth, which is our bound",
        AUDIT,
        _differences_are_small,
    ),
    Claim(
        "§2.2.2",
        "The values, taken back to coefficients â, are eigenvectors of the centred Gram matrix.",
        "‖K̃â − ρâ‖ / ‖K̃â‖, 0 for an eigenvector; holds below 0.1, our bound",
        AUDIT,
        _are_eigenvectors,
    ),
    *(
        Claim(
            "Theorem 1, §2.2",
            f"The learned values converge to those of Theorem 1 ({measured}).",
            f"{measured} after training, 1 for the same values; holds above 0.9, our bound",
            AUDIT,
            partial(_aligned, measure),
        )
        for measure, measured in (
            ("cosine", "|cosine| of columns, best assignment"),
            ("linear_cka", "linear CKA"),
            ("kernel_cka", "kernel CKA"),
        )
    ),
    Claim(
        "Remark 3, Figure 3 (right), E.1",
        "Scaled Attention learns better than softmax: validation accuracy.",
        "difference of top-1, mean over all epochs, paired by seed; better above 0",
        "kattn train audit/scaled audit/softmax",
        partial(_scaled, "top1"),
        margin=CLEAN,
    ),
    Claim(
        "Remark 3, Figure 3 (right), E.1",
        "Scaled Attention learns better than softmax: validation loss.",
        "difference of the loss, mean over all epochs, paired by seed; better below 0",
        "kattn train audit/scaled audit/softmax",
        partial(_scaled, "loss"),
        margin=LOST,
    ),
]
