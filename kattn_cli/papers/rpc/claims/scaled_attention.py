"""RPC-Attention's paper on Scaled Attention (Remark 3)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.evidence import Evidence, by_seed, less, told
from kattn_cli.papers.finding import Claim, Finding, judged


def _scaled(column: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, scaled, softmax in evidence.pairs("metrics", "scaled*", "softmax"):
        means = [by_seed(rows[rows["split"] != "train"], column) for rows in (scaled, softmax)]
        beside = f"{told(means[0], 4)} against {told(means[1], 4)}"
        bound = {"above": 0.0} if column == "top1" else {"below": 0.0}
        found.append(judged(label, less(*means), beside=beside, **bound))
    return found


CLAIMS = [
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
]
