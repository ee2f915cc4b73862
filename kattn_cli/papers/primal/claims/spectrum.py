"""Primal-Attention's paper on the spectra of attention (Figure 1)."""

from __future__ import annotations

import pandas as pd

from kattn_cli.papers.evidence import Evidence, by_seed, less, told
from kattn_cli.papers.finding import Claim, Finding, judged
from kattn_cli.tables.frames import chosen_weights

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
]
