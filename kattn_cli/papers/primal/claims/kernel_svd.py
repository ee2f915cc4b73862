"""Primal-Attention's paper on spectra (Figure 1) and kernel SVD: objective, dual, singular vectors (§3, §4)."""

from __future__ import annotations

import numpy as np
import pandas as pd

from kattn_cli.papers.claim import Claim, Finding, judged
from kattn_cli.papers.evidence import Evidence, by_seed, first, last, less, shown
from kattn_cli.tables.frames import chosen_weights

SPECTRUM = "kattn spectrum audit"


def _ranks(rows: pd.DataFrame, layer: int) -> dict[int, float]:
    """Return the effective rank of a layer over its size, in %."""
    chosen = chosen_weights(rows[rows["layer"] == layer])
    return by_seed(chosen.assign(share=100 * chosen["effective_rank"] / chosen["of"]), "share")


def _deeper_is_sharper(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("effective_rank"):
        if set(rows["layer_mechanism"]) == {"SoftmaxAttention"} and rows["layer"].nunique() > 1:
            begin, end = (_ranks(rows, layer) for layer in (rows["layer"].min(), rows["layer"].max()))
            beside = f"first layer {shown(begin)}, last layer {shown(end)} %"
            found.append(judged(label, less(end, begin), below=0, beside=beside))
    return found


def _sharper_than_softmax(evidence: Evidence) -> list[Finding]:
    found = []
    for label, ours, base in evidence.pairs("effective_rank", "primal_plus", "softmax"):
        means = [_ranks(rows, rows["layer"].max()) for rows in (ours, base)]
        beside = f"{shown(means[0])} against {shown(means[1])} % of N"
        found.append(judged(label, less(*means), below=0, beside=beside))
    return found


def _objective_vanishes(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/duality"):
        if rows["epoch"].nunique() > 1:
            sizes = [by_seed(part.assign(size=part["objective"].abs()), "size") for part in (first(rows), last(rows))]
            ratio = {seed: float(np.log10(size / sizes[0][seed])) for seed, size in sizes[1].items()}
            beside = f"|J| from {shown(sizes[0])} to {shown(sizes[1])}, convention {rows['convention'].iloc[0]}"
            found.append(judged(label, ratio, below=-1, beside=beside))
    return found


def _dual_holds(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/duality"):
        end = last(rows)
        beside = (
            f"before training {shown(by_seed(first(rows), 'residual_e'))}; r-scores {shown(by_seed(end, 'residual_r'))}"
        )
        found.append(judged(label, by_seed(end, "residual_e"), below=0.1, beside=beside))
    return found


def _spans_the_singular_vectors(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/duality"):
        end = last(rows)
        beside = (
            f"before training {shown(by_seed(first(rows), 'overlap_e'))}, chance "
            f"{shown(by_seed(end, 'overlap_chance'))}; r-scores {shown(by_seed(end, 'overlap_r'))}"
        )
        found.append(judged(label, by_seed(end, "overlap_e"), above=0.9, beside=beside))
    return found


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
]
