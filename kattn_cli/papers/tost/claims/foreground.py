"""The ToST paper on what its memberships and its class token pick out of an image (§4.1, §4.2)."""

from __future__ import annotations

from functools import partial

import pandas as pd

from kattn_cli.papers.claim import Claim, Finding, judged
from kattn_cli.papers.evidence import Evidence, by_seed, less, shown

AUDIT = "kattn audit audit"


def _gain(rows: pd.DataFrame, kind: str) -> dict[int, float]:
    """Return by seed how much further from chance a map is on its own image's foreground than on others'."""
    part = rows[rows["kind"] == kind]
    return by_seed(part.assign(gain=(part["auc"] - 0.5).abs() - (part["null_auc"] - 0.5).abs()), "gain")


def _memberships_find_foreground(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/foreground"):
        part = rows[rows["kind"] == "membership"]
        if len(part):
            auc = by_seed(part.assign(far=0.5 + (part["auc"] - 0.5).abs()), "far")
            other = by_seed(part.assign(far=0.5 + (part["null_auc"] - 0.5).abs()), "far")
            beside = f"area {shown(auc)}, with other images' foregrounds {shown(other)} (either side of 0.5)"
            found.append(judged(label, _gain(rows, "membership"), above=0, beside=beside))
    return found


def _class_maps_segment_better(base: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, ours, other in evidence.pairs("audit/foreground", "tost", base):
        means = [_gain(rows, "class_attention") for rows in (ours, other)]
        beside = f"{shown(means[0])} against {shown(means[1])}"
        found.append(judged(label, less(*means), above=0, beside=beside))
    return found


CLAIMS = [
    Claim(
        "§4.1, Figures 4b and 9",
        "Memberships cluster the foreground of an image.",
        "|area under the ROC curve − 0.5| of memberships for the foreground, less that for other images' foregrounds, "
        "mean over layers and heads; holds above 0",
        AUDIT,
        _memberships_find_foreground,
    ),
    *(
        Claim(
            "§4.2, Figures 5 and 10",
            f"The class token's maps segment images better than {name}'s.",
            "|area − 0.5| for the foreground less that for other images' foregrounds, ToST's less the other's; "
            "holds above 0",
            AUDIT,
            partial(_class_maps_segment_better, base),
        )
        for base, name in (("softmax", "a ViT"), ("xcit", "XCiT"))
    ),
]
