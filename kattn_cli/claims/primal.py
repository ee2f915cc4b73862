"""The Primal-Attention paper, and the talk that derives it from kernel PCA and kernel SVD."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from kattn_cli.claims.cost import race, scaling
from kattn_cli.claims.evidence import Evidence, by_seed, first, last, less, told
from kattn_cli.claims.finding import Claim, Finding, Paper, judged
from kattn_cli.figures.frames import chosen_weights, clean_rows

SPECTRUM = "kattn spectrum audit"


def _ranks(rows: pd.DataFrame, layer: int) -> dict[int, float]:
    """The effective rank of a layer over its size, in %."""
    chosen = chosen_weights(rows[rows["layer"] == layer])
    return by_seed(chosen.assign(share=100 * chosen["effective_rank"] / chosen["of"]), "share")


def _deeper_is_sharper(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("effective_rank"):
        if set(rows["layer_mechanism"]) == {"SoftmaxAttention"} and rows["layer"].nunique() > 1:
            begin, end = (_ranks(rows, layer) for layer in (rows["layer"].min(), rows["layer"].max()))
            beside = f"first layer {told(begin)}, last layer {told(end)} %"
            found.append(judged(label, less(end, begin), below=0, beside=beside))
    return found


def _sharper_than_softmax(evidence: Evidence) -> list[Finding]:
    found = []
    for label, ours, base in evidence.pairs("effective_rank", "primal_plus", "softmax"):
        means = [_ranks(rows, rows["layer"].max()) for rows in (ours, base)]
        beside = f"{told(means[0])} against {told(means[1])} % of N"
        found.append(judged(label, less(*means), below=0, beside=beside))
    return found


def _objective_vanishes(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/duality"):
        if rows["epoch"].nunique() > 1:
            sizes = [by_seed(part.assign(size=part["objective"].abs()), "size") for part in (first(rows), last(rows))]
            ratio = {seed: float(np.log10(size / sizes[0][seed])) for seed, size in sizes[1].items()}
            beside = f"|J| from {told(sizes[0])} to {told(sizes[1])}, convention {rows['convention'].iloc[0]}"
            found.append(judged(label, ratio, below=-1, beside=beside))
    return found


def _dual_holds(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/duality"):
        end = last(rows)
        beside = (
            f"before training {told(by_seed(first(rows), 'residual_e'))}; r-scores {told(by_seed(end, 'residual_r'))}"
        )
        found.append(judged(label, by_seed(end, "residual_e"), below=0.1, beside=beside))
    return found


def _spans_the_singular_vectors(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/duality"):
        end = last(rows)
        beside = (
            f"before training {told(by_seed(first(rows), 'overlap_e'))}, chance "
            f"{told(by_seed(end, 'overlap_chance'))}; r-scores {told(by_seed(end, 'overlap_r'))}"
        )
        found.append(judged(label, by_seed(end, "overlap_e"), above=0.9, beside=beside))
    return found


def _accuracy(ours: str, base: str, column: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, one, other in evidence.pairs("eval", ours, base):
        means = [by_seed(_clean(rows), column) for rows in (one, other)]
        beside = f"{told(means[0], 4)} against {told(means[1], 4)} %"
        found.append(judged(label, less(*means), above=0, beside=beside))
    return found


def _clean(rows: pd.DataFrame) -> pd.DataFrame:
    """The test set without corruption, over the most images that were measured."""
    clean = clean_rows(rows)
    return clean[clean["images"] == clean.groupby("run_seed")["images"].transform("max")]


CLAIMS = [
    Claim(
        "Figure 1(d)",
        "The singular values of softmax attention decay more sharply in deeper layers.",
        "effective rank in % of N, last layer less the first; holds below 0 points",
        SPECTRUM,
        _deeper_is_sharper,
    ),
    Claim(
        "Figure 1(c)",
        "Primal.+ has a sharper decay in the last layer than softmax attention.",
        "effective rank of the last layer in % of N, less softmax's, paired by seed; holds below 0 points. The rank "
        "of the kernel that Primal-Attention induces is at most the head's width",
        SPECTRUM,
        _sharper_than_softmax,
    ),
    Claim(
        "Lemma 4.2, eq. 10 and 11",
        "Training drives the objective J to 0, the value of the kernel SVD.",
        "log₁₀ of |J| after training over |J| before, mean over layers; holds below −1",
        "kattn audit audit",
        _objective_vanishes,
    ),
    Claim(
        "Theorem 3.2, Remark 3.3",
        "The learned scores are those of the dual: e = K r Λ.",
        "‖K r Λ − e‖ / ‖e‖ after training, 0 where the dual holds; holds below 0.1",
        "kattn audit audit",
        _dual_holds,
    ),
    Claim(
        "§3, Theorem 3.2",
        "The learned scores span the leading singular vectors of the attention matrix.",
        "mean squared cosine of the principal angles after training, 1 for the same span; holds above 0.9",
        "kattn audit audit",
        _spans_the_singular_vectors,
    ),
    Claim(
        "Table 8 of the first version",
        "Both sets of scores are better than the e-scores alone: test accuracy.",
        "difference of clean top-1, paired by seed (the claim turned round); holds above 0 points",
        "kattn eval audit",
        partial(_accuracy, "primal", "primal_e", "top1"),
    ),
    Claim(
        "Tables 5 to 7",
        "Primal.+ is at least as accurate as its softmax backbone.",
        "difference of clean top-1, paired by seed; holds above 0 points",
        "kattn eval audit fashion_mnist",
        partial(_accuracy, "primal_plus", "softmax", "top1"),
    ),
    Claim(
        "Tables 2, 4, 6, 7",
        "Primal-Attention is linear in the number of tokens.",
        "exponent of time (forward + backward) in N, one measurement; holds below 1.2",
        "kattn complexity",
        partial(scaling, "primal"),
    ),
    Claim(
        "the talk: Faster KPCA",
        "The dual solver with L-BFGS is faster than a randomised SVD at a tolerance of 10⁻² (3.7 to 9.2 times).",
        "time of the randomised SVD over that of the dual solver, median and range over rounds; holds above 1",
        "kattn kernel-pca",
        race,
    ),
]

PAPER = Paper(
    "Primal-Attention: Self-attention through Asymmetric Kernel SVD, and the talk on kernel PCA and SVD",
    CLAIMS,
    ("spectrum", "effective_rank", "duality"),
)
