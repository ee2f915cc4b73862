"""The RPC-Attention paper: attention as kernel PCA (§2), and the pursuit that is to make it robust (§3, §4)."""

from __future__ import annotations

import math
from functools import partial

from kattn_cli.claims.evidence import Evidence, by_seed, first, last, less, told
from kattn_cli.claims.finding import Claim, Finding, Paper, judged
from kattn_cli.figures.audit.projection_error import log_j

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


def _scaled(column: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, scaled, softmax in evidence.pairs("metrics", "scaled*", "softmax"):
        means = [by_seed(rows[rows["split"] != "train"], column) for rows in (scaled, softmax)]
        beside = f"{told(means[0], 4)} against {told(means[1], 4)}"
        bound = {"above": 0.0} if column == "top1" else {"below": 0.0}
        found.append(judged(label, less(*means), beside=beside, **bound))
    return found


def _converges(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/pursuit"):
        at_end = rows[rows["iteration"] == rows["recipe_iterations"]]
        own = at_end[at_end["convention"] == at_end["recipe_convention"]]
        longest = rows[rows["iteration"] == rows["iteration"].max()]
        each = ", ".join(f"{name} {told(by_seed(part, 'residual'))}" for name, part in longest.groupby("convention"))
        count = own["recipe_iterations"].iloc[0]
        beside = f"after the recipe's {count}; after {longest['iteration'].iloc[0]}: {each}"
        found.append(judged(label, by_seed(own, "residual"), below=0.05, beside=beside))
    return found


def _separates(size: int, evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/planted"):
        chosen = rows[rows["size"] == size]
        share = chosen["share"].iloc[0]
        told_of = []
        for method, part in chosen.groupby("method", sort=False):
            precision, recall = by_seed(part, "precision"), by_seed(part, "recall")
            told_of.append(f"{method} {told(precision, 2)} and {told(recall, 2)}")
        own = chosen[chosen["method"] == "paper"]
        score = own.assign(f1=2 * own["precision"] * own["recall"] / (own["precision"] + own["recall"]).clip(1e-12))
        beside = f"precision and recall: {', '.join(told_of)}; precision by chance {share:g}"
        found.append(judged(label, by_seed(score.fillna({"f1": 0.0}), "f1"), above=0.5, beside=beside))
    return found


def _robust(attack: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, ours, base in evidence.pairs("attacks", "rpc*", "symmetric"):
        means = [
            by_seed(rows[(rows["attack"] == attack) & rows["epsilon_units"].str.startswith("pixels")], "top1")
            for rows in (ours, base)
        ]
        if difference := less(*means):
            found.append(judged(label, difference, above=0, beside=f"{told(means[0])} against {told(means[1])} %"))
    return found


def _corrupted(evidence: Evidence) -> list[Finding]:
    found = []
    for label, ours, base in evidence.pairs("corruption", "rpc*", "symmetric"):
        means = [by_seed(rows, "error") for rows in (ours, base)]
        found.append(judged(label, less(*means), below=0, beside=f"{told(means[0])} against {told(means[1])} %"))
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
    Claim(
        "Remark 3, Figure 3 (right), E.1",
        "Scaled Attention learns better than softmax: validation accuracy.",
        "difference of top-1, mean over all epochs, paired by seed; holds above 0 points",
        "kattn train audit/scaled audit/softmax",
        partial(_scaled, "top1"),
    ),
    Claim(
        "Remark 3, Figure 3 (right), E.1",
        "Scaled Attention learns better than softmax: validation loss.",
        "difference of the loss, mean over all epochs, paired by seed; holds below 0 nats",
        "kattn train audit/scaled audit/softmax",
        partial(_scaled, "loss"),
    ),
    Claim(
        "Algorithm 1",
        "A few iterations of Principal Attention Pursuit solve k = L + S.",
        "‖k − L − S‖ / ‖k‖ after the recipe's iterations; holds below 0.05",
        AUDIT,
        _converges,
    ),
    *(
        Claim(
            "§3",
            f"The pursuit separates sparse corruption of the keys into S: outliers of {size} mean|k|.",
            "F1 of S's support against outliers on 5 % of the entries, convention paper; holds above 0.5. Its first "
            "threshold, with λ = 4, is 16 mean|k|",
            AUDIT,
            partial(_separates, size),
        )
        for size in (4, 32)
    ),
    Claim(
        "Table 2, Figure 3 (left)",
        "RPC-Attention is more robust than symmetric attention under PGD.",
        "difference of top-1 under attack, mean over ε, paired by seed; holds above 0 points",
        "kattn attack fashion_mnist --pgd --fgsm --limit 200",
        partial(_robust, "pgd"),
    ),
    Claim(
        "Table 2, Figure 3 (left)",
        "RPC-Attention is more robust than symmetric attention under FGSM.",
        "difference of top-1 under attack, mean over ε, paired by seed; holds above 0 points",
        "kattn attack fashion_mnist --pgd --fgsm --limit 200",
        partial(_robust, "fgsm"),
    ),
    Claim(
        "Tables 1 and 4",
        "RPC-Attention is more robust than symmetric attention under corruption.",
        "difference of the mean error over 15 types × 5 severities, paired by seed; holds below 0 points",
        "kattn eval fashion_mnist --corruptions --limit 500",
        _corrupted,
    ),
]

PAPER = Paper(
    "RPC-Attention: Unveiling the Hidden Structure of Self-Attention via Kernel PCA",
    CLAIMS,
    ("projection_error", "eigenvectors", "alignment", "scaled", "pursuit", "planted", "robustness", "corruption"),
)
